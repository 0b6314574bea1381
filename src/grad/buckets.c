/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * buckets - those that there are, what of them is reduced at once, and how they are made anew.
 *
 * All memory is had at the commit, for the most buckets and pieces there can be, so that making
 * them anew cannot fail on one rank alone.
 */
#include <stdio.h>

#include "base/dtype.h"
#include "grad/reducer.h"

#define DIRECT_HOST                                                             \
    ((size_t) 64 << 10) /* bytes from which packing costs more than a reduction \
                         */
#define DIRECT_GPU ((size_t) 1 << 20)
#define LINE       ((size_t) 64) /* where packed pieces begin */

static size_t staging_bytes (const gs_reducer_t *r)
{
    return r->large ? GSI_STAGING_GPU : GSI_STAGING_HOST;
}

/* ---- Segments ---- */

bool gsi_buckets_is_wired (const gs_reducer_t *r, gs_dtype_t dtype)
{
    return r->opts.wire && (dtype == GS_F32 || dtype == GS_F64);
}

static gs_dtype_t wire_of (const gs_reducer_t *r, gs_dtype_t dtype)
{
    return gsi_buckets_is_wired (r, dtype) ? r->opts.wire : dtype;
}

static void add_direct (gs_reducer_t *r, struct gsi_bucket *bucket, void *at, size_t count)
{
    r->segment[r->segments++] =
        (struct gsi_segment){.direct = at, .type = bucket->plan.dtype, .count = count};
    bucket->segments++;
}

/* The packed segment that is being filled, or a new one. */
static struct gsi_segment *open_segment (gs_reducer_t *r, struct gsi_bucket *bucket,
                                         bool *filling)
{
    if (!*filling) {
        r->segment[r->segments++] =
            (struct gsi_segment){.type = wire_of (r, bucket->plan.dtype), .run = r->packing.runs};
        bucket->segments++;
        *filling = true;
    }
    return &r->segment[r->segments - 1];
}

/* Packs gradient [p] behind what is packed already, in as many pieces as it takes. */
static void add_packed (gs_reducer_t *r, struct gsi_bucket *bucket, int p, bool *filling)
{
    size_t from = gs_dtype_size (bucket->plan.dtype);
    size_t to = gs_dtype_size (wire_of (r, bucket->plan.dtype));
    size_t room = staging_bytes (r) / to, line = LINE / to ? LINE / to : 1, done = 0;

    while (done < r->count[p]) {
        struct gsi_segment *s = open_segment (r, bucket, filling);
        size_t left = r->count[p] - done;
        size_t take = left < room - s->count ? left : room - s->count;
        size_t run = r->packing.runs++;
        char *own = (char *) r->at[p] + done * from, *staged = r->staging + s->count * to;
        r->packing.in[run] = (struct gsi_run){.src = own, .dst = staged, .count = take};
        r->packing.out[run] = (struct gsi_run){.src = staged, .dst = own, .count = take};
        r->packing.residual[run] = r->residual[p] ? (char *) r->residual[p] + done * from : NULL;
        s->runs++;
        done += take;
        s->count += take == left ? (take + line - 1) / line * line : take;
        if (s->count >= room) {
            s->count = room;
            *filling = false;
        }
    }
}

static void add_segments (gs_reducer_t *r, struct gsi_bucket *bucket)
{
    const struct gsi_bucket_plan *b = &bucket->plan;
    bool wired = gsi_buckets_is_wired (r, b->dtype), filling = false;
    size_t direct = r->large ? DIRECT_GPU : DIRECT_HOST;

    bucket->segment = r->segments;
    bucket->segments = 0;
    if (!wired && !r->gradient[r->number[b->first]].given) {
        if (b->bytes)
            add_direct (r, bucket, (char *) r->storage + b->offset,
                        b->bytes / gs_dtype_size (b->dtype));
        return;
    }
    for (int p = b->first; p < b->first + b->tensors; p++) {
        if (wired || r->place[p].bytes < direct) {
            add_packed (r, bucket, p, &filling);
        } else {
            add_direct (r, bucket, r->at[p], r->count[p]);
            filling = false;
        }
    }
}

/* ---- Buckets ---- */

/* The buckets of the order of this step. */
static int plan (const gs_reducer_t *r, struct gsi_bucket_plan *out)
{
    struct gsi_caps caps = {r->opts.first_bytes, r->opts.bucket_bytes, r->opts.last_bytes};

    return gsi_plan_cut (r->tensor, r->place, r->gradients, r->turn, &caps, out);
}

/* What identifies a division: where buckets begin, in the order of launching. */
static uint64_t digest_of (const struct gsi_bucket_plan *buckets, int n)
{
    uint64_t digest = 0;

    for (int b = 0; b < n; b++) {
        int32_t words[2] = {buckets[b].first, buckets[b].tensors};
        digest += gsi_host_digest (words, sizeof (words), (uint64_t) b);
    }
    return digest;
}

uint64_t gsi_buckets_propose (const gs_reducer_t *r)
{
    return digest_of (r->planned, plan (r, r->planned));
}

/* Bucket [b] as it is launched. */
static void make_load (gs_reducer_t *r, int b)
{
    struct gsi_bucket *bucket = &r->bucket[b];

    *bucket = (struct gsi_bucket){.plan = r->planned[b]};
    snprintf (bucket->label, sizeof (bucket->label), "gradsync %s %d of %d", r->name, b + 1,
              r->buckets);
    add_segments (r, bucket);
    for (int s = bucket->segment; s < bucket->segment + bucket->segments; s++)
        bucket->wire_bytes += r->segment[s].count * gs_dtype_size (r->segment[s].type);
    for (int p = bucket->plan.first; p < bucket->plan.first + bucket->plan.tensors; p++) {
        bucket->bytes += r->place[p].bytes;
        r->bucket_of[p] = b;
    }
}

void gsi_buckets_cut (gs_reducer_t *r)
{
    r->buckets = plan (r, r->planned);
    r->digest = digest_of (r->planned, r->buckets);
    r->segments = 0;
    r->packing.runs = 0;
    for (int b = 0; b < r->buckets; b++)
        make_load (r, b);
}

bool gsi_buckets_is_due (const gs_reducer_t *r)
{
    return !r->keeps_order && !(r->step & (r->step - 1));
}

gs_status_t gsi_buckets_follow (gs_reducer_t *r, bool differ)
{
    gs_status_t st = GS_OK;

    if (differ)
        st = gs_broadcast (r->comm, r->turn, (size_t) r->gradients, GS_I32, 0, r->stream);
    if (st)
        return st;
    gsi_buckets_cut (r);
    r->totals.rebuilds++;
    return GS_OK;
}

void gsi_buckets_reset (gs_reducer_t *r)
{
    for (int b = 0; b < r->buckets; b++) {
        r->bucket[b].pending = r->bucket[b].plan.tensors;
        r->bucket[b].heard = false;
    }
    for (int i = 0; i < r->gradients; i++)
        r->gradient[i].mark = GSI_MARK_NONE;
    r->marked = r->launched = 0;
}

/* ---- Life ---- */

/* Pieces of all gradients, at most: each may begin and end within a segment. */
static size_t most_pieces (const gs_reducer_t *r)
{
    size_t most = 0;

    for (int i = 0; i < r->gradients; i++)
        most += 2 + r->gradient[i].bytes / (staging_bytes (r) / 2);
    return most;
}

gs_status_t gsi_buckets_open (gs_reducer_t *r)
{
    size_t n = (size_t) r->gradients, pieces = r->staging ? most_pieces (r) : n;

    if (!gsi_reducer_own (r, &r->planned, n, sizeof (*r->planned)) ||
        !gsi_reducer_own (r, &r->bucket, n, sizeof (*r->bucket)) ||
        !gsi_reducer_own (r, &r->segment, pieces, sizeof (*r->segment)) ||
        !gsi_reducer_own (r, &r->packing.in, pieces, sizeof (*r->packing.in)) ||
        !gsi_reducer_own (r, &r->packing.out, pieces, sizeof (*r->packing.out)) ||
        !gsi_reducer_own (r, &r->packing.residual, pieces, sizeof (*r->packing.residual)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    gsi_buckets_cut (r);
    return GS_OK;
}
