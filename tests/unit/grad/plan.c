/* SPDX-License-Identifier: BSD-3-Clause */
/* plan - buckets of models that are drawn at random, and of some that are not. */
#include "grad/plan.h"

#include "unit/unit.h"

#define MOST 3000

static struct gsi_tensor tensors[MOST];
static struct gsi_placement places[MOST];
static struct gsi_bucket_plan buckets[MOST];
static int turn[MOST];
static const struct gsi_caps usual = {1 << 20, 25 << 20, 1 << 20};

/* Lays out [n] tensors, which are ready as they lie. */
static size_t store (int n, bool forward)
{
    static int order[MOST];
    size_t bytes;

    for (int i = 0; i < n; i++)
        order[i] = forward ? i : n - 1 - i;
    unit_ok (gsi_plan_store (tensors, n, order, places, &bytes));
    for (int i = 0; i < n; i++)
        turn[i] = forward ? places[i].tensor : n - 1 - places[i].tensor;
    return bytes;
}

static int cut (int n, const struct gsi_caps *caps)
{
    return gsi_plan_cut (tensors, places, n, turn, caps, buckets);
}

static int region (const struct gsi_tensor *tensor)
{
    return (int) tensor->dtype + (tensor->outside ? 100 : 0);
}

/* No tensor is twice or never in the storage, and none lies in another. */
static void check_store (int n, size_t bytes)
{
    static bool seen[MOST];
    size_t end = 0, inside = 0;

    memset (seen, 0, sizeof (seen));
    for (int i = 0; i < n; i++) {
        const struct gsi_tensor *t = &tensors[places[i].tensor];
        unit_check (!seen[places[i].tensor], "tensor %d lies twice", places[i].tensor);
        seen[places[i].tensor] = true;
        ck_assert_uint_eq (places[i].bytes, t->bytes);
        ck_assert_uint_eq (places[i].offset % (places[i].bytes < 64 ? 16 : 64), 0);
        unit_check (places[i].offset >= end && places[i].offset < end + 64,
                    "place %d is at %zu, behind %zu", i, places[i].offset, end);
        end = places[i].offset + places[i].bytes;
        inside = t->outside ? inside : end;
        unit_check (!i || region (t) >= region (&tensors[places[i - 1].tensor]),
                    "types, or what is outside, are mixed");
    }
    ck_assert_uint_eq (bytes, inside);
}

/* Every tensor travels once, in a bucket of its type, launched in its turn, small enough. */
static void check_cut (int n, int made, const struct gsi_caps *caps)
{
    static int in[MOST];

    memset (in, 0, sizeof (in));
    unit_check (made >= (n > 0) && made <= n, "%d buckets of %d tensors", made, n);
    for (int b = 0; b < made; b++) {
        const struct gsi_bucket_plan *k = &buckets[b];
        const struct gsi_placement *last = &places[k->first + k->tensors - 1];
        int ready = 0;
        unit_check (k->tensors >= 1, "an empty bucket");
        ck_assert_uint_eq (k->offset, places[k->first].offset);
        ck_assert_uint_eq (k->offset + k->bytes, last->offset + last->bytes);
        for (int i = k->first; i < k->first + k->tensors; i++) {
            in[i]++;
            ready = turn[i] > ready ? turn[i] : ready;
            ck_assert_int_eq (tensors[places[i].tensor].dtype, k->dtype);
            ck_assert_int_eq (tensors[places[i].tensor].outside,
                              tensors[places[k->first].tensor].outside);
        }
        ck_assert_int_eq (k->turn, ready);
        unit_check (!b || buckets[b - 1].turn <= k->turn, "bucket %d is launched too late", b);
        unit_check (k->bytes <= caps->middle || k->tensors == 1, "%zu bytes in a bucket of %d",
                    k->bytes, k->tensors);
    }
    for (int i = 0; i < n; i++)
        unit_check (in[i] == 1, "place %d is in %d buckets", i, in[i]);
}

static int shuffle (uint64_t *random, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int other = (int) (unit_random (random) % (uint64_t) (i + 1)), kept = turn[i];
        turn[i] = turn[other];
        turn[other] = kept;
    }
    return n;
}

START_TEST (random_models)
{
    uint64_t random = 20261121;

    for (int t = 0; t < 400; t++) {
        int n = (int) (unit_random (&random) % (t % 10 ? 200 : MOST)) + 1;
        unsigned types = 1 + (unsigned) (unit_random (&random) % 3);
        struct gsi_caps caps = {unit_random (&random) % 100000, unit_random (&random) % 1000000,
                                unit_random (&random) % 100000};
        bool forward = unit_random (&random) % 2;
        for (int i = 0; i < n; i++) {
            tensors[i].dtype = (gs_dtype_t) (GS_F16 + unit_random (&random) % types);
            tensors[i].outside = t % 3 == 0 && unit_random (&random) % 2;
            tensors[i].bytes =
                8 * (unit_random (&random) % (unit_random (&random) % 7 ? 9000 : 9));
        }
        check_store (n, store (n, forward));
        check_cut (n, cut (n, &caps), &caps);
        shuffle (&random, n);
        check_cut (n, cut (n, &caps), &caps);
    }
}
END_TEST

/* Layers of [bytes], all of one type. */
static void make_layers (int n, size_t bytes)
{
    for (int i = 0; i < n; i++)
        tensors[i] = (struct gsi_tensor){.dtype = GS_F32, .bytes = bytes};
    store (n, false);
}

START_TEST (small_at_both_ends)
{
    int made;

    make_layers (100, 1 << 20);
    ck_assert_int_eq (places[0].tensor, 99); /* a backward pass begins with the last */
    made = cut (100, &usual);
    check_cut (100, made, &usual);
    ck_assert_int_eq (made, 6);
    ck_assert_uint_eq (buckets[0].bytes, 1 << 20);
    ck_assert_int_eq (buckets[0].first, 0);
    ck_assert_uint_eq (buckets[1].bytes, 24 << 20);
    ck_assert_uint_eq (buckets[2].bytes, 25 << 20);
    ck_assert_uint_eq (buckets[5].bytes, 1 << 20);
    ck_assert_int_eq (buckets[5].first, 99);
}
END_TEST

START_TEST (thousands_of_tiny_ones)
{
    size_t bytes;

    for (int i = 0; i < MOST; i++)
        tensors[i] = (struct gsi_tensor){.dtype = GS_F32, .bytes = 4};
    bytes = store (MOST, false);
    ck_assert_uint_eq (bytes, 16 * (MOST - 1) + 4);
    ck_assert_int_eq (cut (MOST, &usual), 1);
}
END_TEST

START_TEST (larger_than_a_bucket)
{
    make_layers (3, 60 << 20);
    ck_assert_int_eq (cut (3, &usual), 3);
    check_cut (3, 3, &usual);
    make_layers (1, 60 << 20);
    ck_assert_int_eq (cut (1, &usual), 1);
}
END_TEST

START_TEST (nothing_to_send)
{
    make_layers (4, 0);
    ck_assert_int_eq (cut (4, &usual), 1);
    ck_assert_uint_eq (buckets[0].bytes, 0);
    ck_assert_int_eq (buckets[0].tensors, 4);
    ck_assert_uint_eq (store (0, false), 0);
    ck_assert_int_eq (cut (0, &usual), 0);
}
END_TEST

/* Types that alternate have buckets of their own, but are not ready far apart. */
START_TEST (types_travel_apart)
{
    for (int i = 0; i < 40; i++)
        tensors[i] = (struct gsi_tensor){.dtype = i % 2 ? GS_F32 : GS_BF16, .bytes = 1 << 20};
    store (40, false);
    check_cut (40, cut (40, &usual), &usual);
    ck_assert_int_eq (cut (40, &(struct gsi_caps){0, 1 << 30, 1 << 30}), 3);
}
END_TEST

/* A pass that has its second half first: no bucket waits for the other half. */
START_TEST (follows_the_observed_order)
{
    int made;

    make_layers (64, 1 << 20);
    for (int i = 0; i < 64; i++)
        turn[i] = (i + 32) % 64;
    made = cut (64, &usual);
    check_cut (64, made, &usual);
    ck_assert_int_eq (buckets[0].first, 32);
    ck_assert_uint_eq (buckets[0].bytes, 1 << 20);
    ck_assert_int_eq (buckets[made - 1].first, 31);
    for (int b = 0; b < made; b++)
        unit_check (buckets[b].first >= 32 || buckets[b].first + buckets[b].tensors <= 32,
                    "bucket %d holds what is ready first and what is ready last", b);
}
END_TEST

START_TEST (more_than_memory)
{
    static const int order[] = {2, 0, 1};
    size_t bytes;

    tensors[0] = (struct gsi_tensor){.dtype = GS_F64, .bytes = SIZE_MAX / 4};
    for (int i = 1; i < 5; i++)
        tensors[i] = tensors[0];
    unit_fails (gsi_plan_store (tensors, 3, order, places, &bytes), GS_ERR_ARG, "bytes");
    tensors[0].bytes = SIZE_MAX / 2;
    unit_fails (gsi_plan_store (tensors, 1, order + 1, places, &bytes), GS_ERR_ARG, "bytes");
}
END_TEST

UNIT_SUITE ("plan", 60, random_models, small_at_both_ends, thousands_of_tiny_ones,
            larger_than_a_bucket, nothing_to_send, types_travel_apart, follows_the_observed_order,
            more_than_memory)
