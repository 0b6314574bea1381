/* SPDX-License-Identifier: BSD-3-Clause */
/* plan - where gradients lie and in which buckets they travel. */
#include "grad/plan.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "base/status.h"

#define ALIGNMENT ((size_t) 64) /* of a tensor; vector loads of every device */
#define SMALL     ((size_t) 16) /* of one smaller than that, so that thousands stay small */
#define FAR       16            /* ready apart by more than 1 in so many tensors, and */
#define NEAR      2             /* more than so many: those of other types come in between */

/* ---- Where tensors lie ---- */

#define OUTSIDE GSI_DTYPES /* the first region behind the storage */
#define REGIONS (2 * OUTSIDE)

static int region_of (const struct gsi_tensor *tensor)
{
    return (int) tensor->dtype + (tensor->outside ? OUTSIDE : 0);
}

static size_t align (size_t offset, size_t bytes)
{
    size_t unit = bytes < ALIGNMENT ? SMALL : ALIGNMENT;

    return (offset + unit - 1) / unit * unit;
}

/* Puts tensor [t] at the end of the storage; false if it does not fit there. */
static bool place_tensor (size_t bytes, int t, struct gsi_placement *out, size_t *end)
{
    if (bytes > SIZE_MAX / 2 - ALIGNMENT - *end)
        return false;
    *out = (struct gsi_placement){.tensor = t, .offset = align (*end, bytes), .bytes = bytes};
    *end = out->offset + bytes;
    return true;
}

gs_status_t gsi_plan_store (const struct gsi_tensor *tensors, int n, const int *order,
                            struct gsi_placement *places, size_t *bytes)
{
    size_t end = 0;
    int placed = 0;

    for (int region = 0; region < REGIONS; region++) {
        for (int i = 0; i < n; i++)
            if (region_of (&tensors[order[i]]) == region &&
                !place_tensor (tensors[order[i]].bytes, order[i], &places[placed++], &end))
                return gsi_fail (GS_ERR_ARG, "the gradients have more bytes than there are");
        if (region < OUTSIDE)
            *bytes = end;
    }
    return GS_OK;
}

/* ---- In which buckets they travel ---- */

/* What a division is made from. */
struct cut {
    const struct gsi_tensor *tensors;
    const struct gsi_placement *places;
    const int *turn;
    int n;
};

static int larger (int a, int b)
{
    return a > b ? a : b;
}

/* Bytes of the [tensors] places from [first] on. */
static size_t span (const struct cut *c, int first, int tensors)
{
    const struct gsi_placement *last = &c->places[first + tensors - 1];

    return last->offset + last->bytes - c->places[first].offset;
}

static const struct gsi_tensor *tensor_at (const struct cut *c, int i)
{
    return &c->tensors[c->places[i].tensor];
}

static struct gsi_bucket_plan make_bucket (const struct cut *c, int first, int tensors)
{
    struct gsi_bucket_plan bucket = {.dtype = tensor_at (c, first)->dtype,
                                     .first = first,
                                     .tensors = tensors,
                                     .offset = c->places[first].offset,
                                     .bytes = span (c, first, tensors)};

    for (int i = first; i < first + tensors; i++)
        bucket.turn = larger (bucket.turn, c->turn[i]);
    return bucket;
}

static bool is_far (const struct cut *c, int i)
{
    int distance = abs (c->turn[i] - c->turn[i - 1]);

    return distance > NEAR && distance > c->n / FAR;
}

/* Whether place [i] begins a bucket, when the one before it begins at [first]. */
static bool begins (const struct cut *c, const struct gsi_caps *caps, int first, int i)
{
    return region_of (tensor_at (c, i)) != region_of (tensor_at (c, first)) ||
           span (c, first, i - first + 1) > caps->middle ||
           (is_far (c, i) && span (c, first, i - first) >= caps->first);
}

static int by_turn (const void *a, const void *b)
{
    const struct gsi_bucket_plan *x = a, *y = b;

    return x->turn != y->turn ? (x->turn > y->turn) - (x->turn < y->turn)
                              : (x->first > y->first) - (x->first < y->first);
}

/*
 * Splits off one end of *bucket, of at most [most] bytes but one tensor: the end that is ready
 * first if [early], else the one that is ready last. False if that changes nothing.
 */
static bool split_bucket (const struct cut *c, struct gsi_bucket_plan *bucket, size_t most,
                          bool early, struct gsi_bucket_plan *off)
{
    int first = bucket->first, n = bucket->tensors, take = 1;
    bool front = (c->turn[first] < c->turn[first + n - 1]) == early;

    if (bucket->bytes <= most || n < 2)
        return false;
    while (take < n - 1 && span (c, front ? first : first + n - take - 1, take + 1) <= most)
        take++;
    *off = make_bucket (c, front ? first : first + n - take, take);
    *bucket = make_bucket (c, front ? first + take : first, n - take);
    return true;
}

int gsi_plan_cut (const struct gsi_tensor *tensors, const struct gsi_placement *places, int n,
                  const int *turn, const struct gsi_caps *caps, struct gsi_bucket_plan *buckets)
{
    struct cut c = {.tensors = tensors, .places = places, .turn = turn, .n = n};
    int made = 0, first = 0;

    for (int i = 1; i <= n; i++)
        if (i == n || begins (&c, caps, first, i)) {
            buckets[made++] = make_bucket (&c, first, i - first);
            first = i;
        }
    qsort (buckets, (size_t) made, sizeof (*buckets), by_turn);
    made += made && split_bucket (&c, &buckets[made - 1], caps->last, false, &buckets[made]);
    made += made && split_bucket (&c, &buckets[0], caps->first, true, &buckets[made]);
    qsort (buckets, (size_t) made, sizeof (*buckets), by_turn);
    return made;
}
