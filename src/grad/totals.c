/* SPDX-License-Identifier: BSD-3-Clause */
/* totals - what the steps of a reducer add up to. */
#include "grad/reducer.h"

#include "base/clock.h"

double gsi_totals_us (int64_t ns)
{
    return (double) ns / 1e3;
}

double gsi_totals_exposed_us (const gs_reducer_t *r, const struct gsi_bucket *bucket)
{
    int64_t from = bucket->begin_ns;

    if (r->overlaps && from < r->totals.seen.finish_ns)
        from = r->totals.seen.finish_ns;
    return bucket->end_ns > from ? gsi_totals_us (bucket->end_ns - from) : 0;
}

/* What of that was before finish. */
static double exposed_before_us (const gs_reducer_t *r, const struct gsi_bucket *bucket)
{
    bool before = !r->overlaps && bucket->end_ns <= r->totals.seen.finish_ns;

    return before ? gsi_totals_exposed_us (r, bucket) : 0;
}

void gsi_totals_step (gs_reducer_t *r)
{
    struct gsi_totals *t = &r->totals;
    int64_t now_ns = gsi_now_ns ();

    t->steps++;
    t->step_us += gsi_totals_us (now_ns - t->begin_ns);
    if (r->queue)
        return; /* which goes on */
    t->seen.begin_ns = t->begin_ns;
    t->seen.finish_ns = t->finish_ns;
    t->seen.end_ns = now_ns;
    gsi_totals_seen (r);
}

void gsi_totals_seen (gs_reducer_t *r)
{
    struct gsi_totals *t = &r->totals;

    t->seen.steps++;
    t->exposed_us += gsi_totals_us (t->seen.end_ns - t->seen.finish_ns);
    for (int b = 0; b < r->buckets; b++) {
        const struct gsi_bucket *bucket = &r->bucket[b];
        double x = (double) bucket->bytes, y = gsi_totals_us (bucket->end_ns - bucket->begin_ns);
        t->busy_us += y;
        t->exposed_us += exposed_before_us (r, bucket);
        t->n += 1;
        t->x += x;
        t->y += y;
        t->xx += x * x;
        t->xy += x * y;
    }
}
