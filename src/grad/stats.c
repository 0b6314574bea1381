/* SPDX-License-Identifier: BSD-3-Clause */
/* stats - how the steps of a reducer went. */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "base/sized.h"
#include "grad/step_exchange.h"
#include "grad/timing.h"

/* The line through time over bytes, by least squares. */
static void fit (const gs_reducer_t *r, gs_reducer_stats_t *stats)
{
    const struct gsi_totals *t = &r->totals;
    double spread = t->n * t->xx - t->x * t->x, slope, start;

    if (t->n < 2 || !(spread > 0))
        return;
    slope = (t->n * t->xy - t->x * t->y) / spread;
    start = (t->y - slope * t->x) / t->n;
    if (!(slope > 0) || !(start > 0))
        return;
    stats->latency_us = start;
    stats->bytes_per_us = 1 / slope;
    stats->recommended_bytes = (size_t) sqrt ((double) stats->bytes * start / slope);
}

/* Brings the times, and who was late, up to the last step that is past. */
static gs_status_t catch_up (gs_reducer_t *r)
{
    int previous;
    gs_status_t st = gsi_reducer_enter (r, &previous);

    if (st)
        return st;
    st = gsi_timing_read (r);
    if (!st && r->totals.steps && gsi_step_exchange_past (r))
        r->totals.late_rank = gsi_step_exchange_late (r, &r->totals.late_us);
    gsi_reducer_leave (r, previous);
    return st;
}

gs_status_t gs_reducer_get_stats (gs_reducer_t *reducer, gs_reducer_stats_t *stats)
{
    gs_reducer_t *r = reducer;
    gs_status_t st = gsi_reducer_valid (r, "gs_reducer_get_stats");
    gs_reducer_stats_t s = {.size = sizeof (s)};
    double steps, seen;

    if (st || (st = catch_up (r)))
        return gsi_result (st);
    s.steps = r->totals.steps;
    steps = r->totals.steps ? (double) r->totals.steps : 1;
    seen = r->totals.seen.steps ? (double) r->totals.seen.steps : 1;
    s.buckets = r->buckets;
    s.rebuilds = (int) r->totals.rebuilds;
    for (int b = 0; b < r->buckets; b++) {
        s.bytes += r->bucket[b].bytes;
        s.wire_bytes += r->bucket[b].wire_bytes;
    }
    s.step_us = r->totals.step_us / steps;
    s.busy_us = r->totals.busy_us / seen;
    s.exposed_us = r->totals.exposed_us / seen;
    if (s.busy_us > 0 && s.exposed_us < s.busy_us)
        s.overlap = 1 - s.exposed_us / s.busy_us;
    fit (r, &s);
    s.late_rank = r->totals.steps ? r->totals.late_rank : -1;
    s.overlaps = r->overlaps;
    s.late_us = s.late_rank < 0 ? 0 : r->totals.late_us;
    return gsi_result (gsi_sized_give (stats, &s, sizeof (s), "gs_reducer_get_stats: stats"));
}

gs_status_t gs_reducer_get_bucket (gs_reducer_t *reducer, int bucket, gs_bucket_stats_t *stats)
{
    gs_reducer_t *r = reducer;
    gs_status_t st = gsi_reducer_valid (r, "gs_reducer_get_bucket");
    const struct gsi_bucket *b;
    gs_bucket_stats_t s;

    if (st || (st = catch_up (r)))
        return gsi_result (st);
    if (bucket < 0 || bucket >= r->buckets)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_get_bucket: bucket %d is not one of the %d of %s", bucket,
                         r->buckets, r->client.name);
    b = &r->bucket[bucket];
    s = (gs_bucket_stats_t){.size = sizeof (s),
                            .gradients = b->plan.tensors,
                            .first = r->number[b->plan.first],
                            .bytes = b->bytes};
    if (b->end_ns) { /* else it was made after the last step */
        s.ready_us = gsi_totals_us (b->ready_ns - r->totals.seen.begin_ns);
        s.begin_us = gsi_totals_us (b->begin_ns - r->totals.seen.begin_ns);
        s.end_us = gsi_totals_us (b->end_ns - r->totals.seen.begin_ns);
        s.exposed_us = gsi_totals_exposed_us (r, b);
    }
    return gsi_result (gsi_sized_give (stats, &s, sizeof (s), "gs_reducer_get_bucket: stats"));
}

/* ---- The report ---- */

static void log_table (gs_reducer_t *r, const gs_reducer_stats_t *s, const gs_traffic_t *t)
{
    gs_bucket_stats_t b = {.size = sizeof (b)};

    gsi_log (GS_LOG_INFO, "grad",
             "%s: %lld steps of %.0f us, %zu bytes in %d buckets (rebuilt %d times) %s, in "
             "flight %.0f us, exposed %.0f us, overlap %.0f %%",
             r->client.name, (long long) s->steps, s->step_us, s->wire_bytes, s->buckets,
             s->rebuilds, s->overlaps ? "during the backward pass" : "inside calls", s->busy_us,
             s->exposed_us, 100 * s->overlap);
    if (s->recommended_bytes)
        gsi_log (GS_LOG_INFO, "grad",
                 "a bucket takes %.1f us + bytes / %.0f per us: %zu bytes "
                 "are best",
                 s->latency_us, s->bytes_per_us, s->recommended_bytes);
    if (s->late_rank >= 0)
        gsi_log (GS_LOG_INFO, "grad", "last step: rank %d (host %s) came %.0f us late",
                 s->late_rank, gs_comm_host_of (r->comm, s->late_rank), s->late_us);
    gsi_log (GS_LOG_INFO, "grad",
             "buckets of communicator '%s' so far: %llu bytes from this rank; it sent %s%llu to "
             "its node, %s%llu to others",
             gs_comm_name (r->comm), (unsigned long long) t->bytes,
             t->within_known ? "" : "more than ", (unsigned long long) t->within,
             t->between_known ? "" : "more than ", (unsigned long long) t->between);
    gsi_log (GS_LOG_INFO, "grad",
             "bucket gradients        bytes   ready us   begin us     end us "
             "exposed us");
    for (int i = 0; i < s->buckets && !gs_reducer_get_bucket (r, i, &b); i++)
        gsi_log (GS_LOG_INFO, "grad", "%6d %9d %12zu %10.0f %10.0f %10.0f %10.0f", i, b.gradients,
                 b.bytes, b.ready_us, b.begin_us, b.end_us, b.exposed_us);
}

static void write_json (gs_reducer_t *r, const gs_reducer_stats_t *s, const gs_traffic_t *t,
                        FILE *file)
{
    gs_bucket_stats_t b = {.size = sizeof (b)};

    fprintf (
        file,
        "{\"steps\": %lld, \"ranks\": %d, \"buckets\": %d, \"rebuilds\": %d, \"bytes\": %zu, "
        "\"wire_bytes\": %zu, \"step_us\": %.3f, \"busy_us\": %.3f, \"exposed_us\": %.3f, "
        "\"overlap\": %.4f, \"latency_us\": %.3f, \"bytes_per_us\": %.3f, "
        "\"recommended_bytes\": %zu, \"late_rank\": %d, \"late_us\": %.3f, \"overlaps\": %s}\n",
        (long long) s->steps, r->size, s->buckets, s->rebuilds, s->bytes, s->wire_bytes,
        s->step_us, s->busy_us, s->exposed_us, s->overlap, s->latency_us, s->bytes_per_us,
        s->recommended_bytes, s->late_rank, s->late_us, s->overlaps ? "true" : "false");
    for (int i = 0; i < s->buckets && !gs_reducer_get_bucket (r, i, &b); i++)
        fprintf (file,
                 "{\"bucket\": %d, \"gradients\": %d, \"first\": %d, \"bytes\": %zu, "
                 "\"ready_us\": %.3f, \"begin_us\": %.3f, \"end_us\": %.3f, "
                 "\"exposed_us\": %.3f}\n",
                 i, b.gradients, b.first, b.bytes, b.ready_us, b.begin_us, b.end_us,
                 b.exposed_us);
    fprintf (file,
             "{\"traffic\": \"bucket\", \"calls\": %llu, \"bytes\": %llu, \"within\": %llu, "
             "\"between\": %llu, \"within_known\": %s, \"between_known\": %s}\n",
             (unsigned long long) t->calls, (unsigned long long) t->bytes,
             (unsigned long long) t->within, (unsigned long long) t->between,
             t->within_known ? "true" : "false", t->between_known ? "true" : "false");
}

gs_status_t gs_reducer_report (gs_reducer_t *reducer, const char *path)
{
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_traffic_t traffic = {.size = sizeof (traffic)};
    gs_status_t st = gs_reducer_get_stats (reducer, &stats);
    FILE *file;
    bool failed;

    if (st || reducer->rank || (st = gs_comm_get_traffic (reducer->comm, "bucket", &traffic)))
        return gsi_result (st);
    if (!path) {
        log_table (reducer, &stats, &traffic);
        return gsi_result (GS_OK);
    }
    if (!(file = fopen (path, "w")))
        return gsi_fail (GS_ERR_IO, "gs_reducer_report: %s: %m", path);
    write_json (reducer, &stats, &traffic, file);
    failed = ferror (file);
    if (fclose (file) || failed)
        return gsi_fail (GS_ERR_IO, "gs_reducer_report: %s: %m", path);
    return gsi_result (GS_OK);
}
