/* SPDX-License-Identifier: BSD-3-Clause */
/* step - what the program calls in each step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "collectives/weights.h"
#include "grad/scheduler.h"
#include "grad/step_exchange.h"
#include "grad/timing.h"
#include "grad/work.h"

/* ---- Gradients become ready ---- */

static gs_status_t begin_step (gs_reducer_t *r, int index, gs_stream_t stream)
{
    gs_status_t st;

    if (!r->accumulates) {
        if (r->opts.weighted && !r->weight_given)
            return gsi_fail (
                GS_ERR_STATE,
                "%s is weighted: gs_reducer_set_weight comes before the step, on all "
                "ranks",
                r->client.name);
        if ((st = gsi_feature_alive (r->comm)) || (st = gsi_timing_begin (r, stream)) ||
            (st = gsi_scheduler_begin (r)))
            return st;
        r->step++;
        r->totals.begin_ns = gsi_now_ns ();
    }
    r->in_step = true;
    r->opener = r->gradient[index].name;
    return GS_OK;
}

static gs_status_t check_mark (const gs_reducer_t *r, const char *caller, int index)
{
    gs_status_t st = gsi_reducer_valid (r, caller);

    if (st || (st = gsi_bucket_check (r, caller)) || (st = gsi_reducer_index (r, index, caller)))
        return st;
    if (r->gradient[index].mark == GSI_MARK_NONE)
        return GS_OK;
    return gsi_fail (GS_ERR_STATE,
                     "%s: '%s' of %s was %s already in this step, which began with '%s': each "
                     "gradient once between two gs_reducer_finish",
                     caller, r->gradient[index].name, r->client.name,
                     r->gradient[index].mark == GSI_MARK_READY ? "ready" : "skipped", r->opener);
}

/* (GPUs) Notes which stream completes the bucket; work of another one is followed at once, and so
 * is what another thread, which may launch the bucket, does not find by its handle. */
static gs_status_t hear (gs_reducer_t *r, struct gsi_bucket *bucket, gs_stream_t stream)
{
    gs_status_t st = GS_OK;

    if (r->queue->is_per_thread (stream)) {
        st = gsi_scheduler_follow (r, stream);
        stream = r->stream;
    }
    if (!st && bucket->heard && bucket->stream != stream && bucket->stream != r->stream)
        st = gsi_scheduler_follow (r, bucket->stream);
    if (st)
        return st;
    bucket->heard = true;
    bucket->stream = stream;
    return GS_OK;
}

/* In a micro-step, which may leave gradients out. */
static void note (gs_reducer_t *r, struct gsi_gradient *g, enum gsi_mark how)
{
    g->mark = (unsigned char) how;
    g->kept = g->kept || how == GSI_MARK_READY;
    r->marked++;
}

/* What nobody has computed counts as 0, behind what uses its last average. */
static gs_status_t clear (gs_reducer_t *r, const struct gsi_gradient *g, gs_stream_t stream)
{
    gs_status_t st = r->queue ? gsi_scheduler_follow (r, stream) : GS_OK;

    return st ? st : gsi_work_zero (r, r->at[g->place], g->bytes);
}

/* A failure before the launch changes nothing. */
static gs_status_t mark (gs_reducer_t *r, struct gsi_gradient *g, enum gsi_mark how,
                         gs_stream_t stream)
{
    struct gsi_bucket *bucket = &r->bucket[r->bucket_of[g->place]];
    int before = r->launched;
    gs_status_t st;

    if (r->queue && (st = hear (r, bucket, stream)))
        return st;
    if (how == GSI_MARK_SKIPPED && !g->kept && (st = clear (r, g, stream)))
        return st;
    g->mark = (unsigned char) how;
    if (!r->joined)
        r->turn[g->place] = r->marked;
    r->marked++;
    if (--bucket->pending == 0 && !r->queue)
        bucket->ready_ns = gsi_now_ns ();
    while (r->launched < r->buckets && !r->bucket[r->launched].pending)
        r->launched++;
    return r->launched == before ? GS_OK : gsi_scheduler_launch (r);
}

static gs_status_t take_gradient (gs_reducer_t *r, const char *caller, int index,
                                  enum gsi_mark how, gs_stream_t stream)
{
    gs_status_t st = check_mark (r, caller, index);
    int previous;

    if (st || (st = gsi_reducer_enter (r, &previous)))
        return st;
    if (!(st = gsi_scheduler_admit (r, stream)))
        r->last = stream;
    if (!st && !r->in_step)
        st = begin_step (r, index, stream);
    if (!st && r->accumulates)
        note (r, &r->gradient[index], how);
    else if (!st)
        st = mark (r, &r->gradient[index], how, stream);
    gsi_reducer_leave (r, previous);
    return st;
}

gs_status_t gs_reducer_ready (gs_reducer_t *reducer, int index, gs_stream_t stream)
{
    return gsi_result (
        take_gradient (reducer, "gs_reducer_ready", index, GSI_MARK_READY, stream));
}

gs_status_t gs_reducer_skip (gs_reducer_t *reducer, int index, gs_stream_t stream)
{
    return gsi_result (
        take_gradient (reducer, "gs_reducer_skip", index, GSI_MARK_SKIPPED, stream));
}

/* ---- The end of a step ---- */

/* Names what is neither ready nor skipped. */
static gs_status_t name_unmarked (const gs_reducer_t *r)
{
    char names[512] = "";
    size_t used = 0;
    int shown = 0;

    for (int i = 0; i < r->gradients && shown < 8; i++)
        if (r->gradient[i].mark == GSI_MARK_NONE && used < sizeof (names)) {
            used += (size_t) snprintf (names + used, sizeof (names) - used, "%s'%.100s'",
                                       shown ? ", " : "", r->gradient[i].name);
            shown++;
        }
    return gsi_fail (GS_ERR_STATE,
                     "gs_reducer_finish: on rank %d (host %s) %d of the %d gradients of %s were "
                     "neither ready nor skipped: %s%s. Do so and finish again; the other ranks "
                     "wait",
                     r->rank, gs_comm_host_of (r->comm, r->rank), r->gradients - r->marked,
                     r->gradients, r->client.name, names,
                     shown < r->gradients - r->marked ? ", ..." : "");
}

static double busy_us (const gs_reducer_t *r)
{
    int64_t busy_ns = 0;

    for (int b = 0; b < r->buckets; b++)
        busy_ns += r->bucket[b].end_ns - r->bucket[b].begin_ns;
    return (double) busy_ns / 1e3;
}

/* Brings the averages to max_norm; all become NaN where the norm is no number, as in norm_factor
 * of CUDA. */
static gs_status_t clip (gs_reducer_t *r)
{
    const double *there = NULL;
    double norm, factor = 1;
    gs_status_t st = GS_OK;

    if (!(r->opts.max_norm > 0))
        return GS_OK;
    if (r->queue)
        st = gsi_step_exchange_factor (r, &there);
    else if (!((norm = gsi_step_exchange_norm (r)) <= r->opts.max_norm))
        factor = isfinite (norm) ? r->opts.max_norm / norm : NAN;
    for (int p = 0; p < r->gradients && !st && (there || factor != 1); p++)
        st = gsi_work_scale (r, p, factor, there);
    return st;
}

/* The others wait for what this rank leaves out, and its next step must not meet this one of
 * theirs; but of a mismatch all have heard. */
static gs_status_t give_up (gs_reducer_t *r, gs_status_t st)
{
    struct gsi_failure failed;

    gsi_failure_note (&failed, st);
    if (st != GS_ERR_MISMATCH)
        gs_comm_abort (r->comm);
    return gsi_failure_repeat (&failed);
}

/* What the exchange brought: whether all was right, and other buckets. */
static gs_status_t conclude (gs_reducer_t *r)
{
    bool differ;
    gs_status_t st;

    if (r->queue && !gsi_buckets_is_due (r) && !r->opts.check_finite && !r->opts.average_micro)
        return GS_OK;
    if ((st = gsi_step_exchange_await (r)))
        return give_up (r, st);
    r->totals.late_rank = gsi_step_exchange_late (r, &r->totals.late_us);
    st = gsi_step_exchange_verdict (r);
    if (gsi_buckets_is_due (r) && gsi_step_exchange_wants_order (r, &differ)) {
        gs_status_t followed = gsi_buckets_follow (r, differ);
        st = followed ? give_up (r, followed) : st;
    }
    return st;
}

/* Averages what is left, tells the others how it went here, and lets the program go on. */
static gs_status_t travel (gs_reducer_t *r, gs_stream_t stream)
{
    bool clips = r->opts.max_norm > 0;
    gs_status_t st;

    if ((st = gsi_timing_finish (r, stream)) || (st = gsi_scheduler_drain (r)) ||
        (!clips && (st = gsi_scheduler_release (r, stream))) ||
        (st = gsi_step_exchange_exchange (r, gsi_buckets_is_due (r), busy_us (r))) ||
        (st = clip (r)))
        return st;
    return clips ? gsi_scheduler_release (r, stream) : GS_OK;
}

static gs_status_t end_step (gs_reducer_t *r, gs_stream_t stream)
{
    const gs_comm_t *outer = gsi_lease_enter (r->comm);
    gs_status_t st;

    r->totals.finish_ns = gsi_now_ns ();
    if ((st = travel (r, stream))) {
        st = give_up (r, st);
    } else {
        gsi_totals_step (r);
        st = conclude (r);
    }
    gsi_lease_enter (outer);
    return st;
}

static void reset (gs_reducer_t *r)
{
    for (int i = 0; i < r->gradients; i++)
        r->gradient[i].kept = false;
    if (r->some_joined || r->opts.average_micro)
        r->weight_given = false;
    r->micro_steps = 0;
    r->joined = false;
}

/* A micro-step has ended: nothing travels. */
static void keep (gs_reducer_t *r)
{
    r->micro_steps++;
    gsi_buckets_reset (r);
    r->in_step = false;
}

static gs_status_t finish (gs_reducer_t *r, gs_stream_t stream)
{
    gs_status_t st = gsi_scheduler_admit (r, stream);

    if (st)
        return st;
    r->last = stream;
    if (r->accumulates) {
        keep (r);
        return GS_OK;
    }
    if (r->marked < r->gradients)
        return (st = gs_comm_check (r->comm)) ? st : name_unmarked (r);
    st = end_step (r, stream);
    gsi_buckets_reset (r);
    gsi_lease_end (r->comm);
    r->in_step = false;
    reset (r);
    return st ? st : gsi_scheduler_callback (r);
}

gs_status_t gs_reducer_finish (gs_reducer_t *reducer, gs_stream_t stream)
{
    gs_status_t st = gsi_reducer_valid (reducer, "gs_reducer_finish");
    int previous;

    if (st || (st = gsi_bucket_check (reducer, "gs_reducer_finish")) ||
        (st = gsi_reducer_enter (reducer, &previous)))
        return gsi_result (st);
    st = finish (reducer, stream);
    gsi_reducer_leave (reducer, previous);
    return gsi_result (st);
}

gs_status_t gs_reducer_set_sync (gs_reducer_t *reducer, int sync)
{
    gs_status_t st = gsi_reducer_idle (reducer, "gs_reducer_set_sync");

    if (st)
        return gsi_result (st);
    reducer->accumulates = !sync;
    return gsi_result (GS_OK);
}

/* ---- Weights ---- */

/* Whether this rank's number of micro-steps is that of the others, *micro_steps; who joins takes
 * theirs. */
static gs_status_t compare_micro (const gs_reducer_t *r, int *micro_steps)
{
    const struct gsi_participation *all = r->participation;
    int first = -1;

    for (int k = 0; k < r->size && r->opts.average_micro; k++) {
        if (all[k].joined)
            continue;
        if (first < 0)
            first = k;
        if (all[k].micro_steps != all[first].micro_steps)
            return gsi_fail (GS_ERR_MISMATCH,
                             "%s: rank %d (host %s) has %d micro-steps before this step, rank %d "
                             "(host %s) has %d",
                             r->client.name, first, gs_comm_host_of (r->comm, first),
                             all[first].micro_steps, k, gs_comm_host_of (r->comm, k),
                             all[k].micro_steps);
    }
    *micro_steps = first >= 0 && r->opts.average_micro ? all[first].micro_steps : r->micro_steps;
    return GS_OK;
}

/* Takes over what all ranks told once it is known to be right; if not, all is as it was. */
static gs_status_t exchange_weights (gs_reducer_t *r, const char *caller, double weight,
                                     bool joins, bool *all_join)
{
    struct gsi_participation own = {weight, joins, r->micro_steps};
    double *weights = r->weights + r->size, sum = 0;
    int joined = 0, micro_steps = 0;
    gs_status_t st =
        gs_allgather (r->comm, &own, r->participation, sizeof (own), GS_U8, r->stream);

    if (st || (st = compare_micro (r, &micro_steps)))
        return st;
    for (int k = 0; k < r->size; k++) {
        weights[k] = r->participation[k].weight;
        joined += !!r->participation[k].joined;
    }
    if ((st = gsi_weights_scale (r->comm, caller, weights, &sum)))
        return st;
    if (sum == 0 && joined < r->size)
        gsi_weights_warn (r->comm, caller);
    memcpy (r->weights, weights, (size_t) r->size * sizeof (*weights));
    r->weight_sum = sum;
    r->micro_steps = micro_steps;
    r->some_joined = joined > 0;
    *all_join = joined == r->size;
    return GS_OK;
}

static gs_status_t check_weighted (gs_reducer_t *r, const char *caller)
{
    gs_status_t st = gsi_reducer_idle (r, caller);

    if (st || r->opts.weighted)
        return st;
    return gsi_fail (GS_ERR_STATE, "%s: %s was not made with the option weighted", caller,
                     r->client.name);
}

gs_status_t gs_reducer_set_weight (gs_reducer_t *reducer, double weight)
{
    gs_reducer_t *r = reducer;
    bool all_join;
    gs_status_t st = check_weighted (r, "gs_reducer_set_weight");

    if (!st)
        st = exchange_weights (r, "gs_reducer_set_weight", weight, false, &all_join);
    if (st)
        return gsi_result (st);
    r->weight = weight;
    r->weight_given = true;
    return gsi_result (GS_OK);
}

/* What would be refused in the step is so before the others begin it. */
static gs_status_t admit (gs_reducer_t *r, gs_stream_t stream)
{
    int previous;
    gs_status_t st = gsi_reducer_enter (r, &previous);

    if (st)
        return st;
    st = gsi_scheduler_admit (r, stream);
    gsi_reducer_leave (r, previous);
    return st;
}

gs_status_t gs_reducer_join (gs_reducer_t *reducer, gs_stream_t stream, int *done)
{
    gs_reducer_t *r = reducer;
    bool all_join;
    gs_status_t st = check_weighted (r, "gs_reducer_join");

    if (!st && !done)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_join: done is NULL");
    if (!st && r->accumulates)
        st =
            gsi_fail (GS_ERR_STATE,
                      "gs_reducer_join: %s is in micro-steps, which no other rank takes part in: "
                      "gs_reducer_set_sync (reducer, 1) comes first",
                      r->client.name);
    if (st || (st = admit (r, stream)) ||
        (st = exchange_weights (r, "gs_reducer_join", 0, true, &all_join)))
        return gsi_result (st);
    *done = all_join;
    r->weight = 0;
    r->weight_given = r->joined = !all_join;
    if (all_join)
        return gsi_result (GS_OK);
    for (int b = 0; b < r->buckets && !st; b++)
        for (int p = 0; p < r->bucket[b].plan.tensors && !st; p++)
            st = gs_reducer_skip (r, r->number[r->bucket[b].plan.first + p], stream);
    return gsi_result (st ? st : gs_reducer_finish (r, stream));
}

/* ---- Scalars and the norm ---- */

static gs_status_t check_scalar (const gs_reducer_t *r, int index, const char *caller)
{
    gs_status_t st = gsi_reducer_valid (r, caller);

    if (st || (index >= 0 && index < r->scalars))
        return st;
    return gsi_fail (GS_ERR_ARG, "%s: index %d is not one of the %d scalars of %s", caller, index,
                     r->scalars, r->client.name);
}

/* What the last step brought is known. */
static gs_status_t check_past (gs_reducer_t *r, const char *caller)
{
    if (!r->step || (r->step == 1 && r->in_step))
        return gsi_fail (GS_ERR_STATE, "%s: %s has not finished a step yet", caller,
                         r->client.name);
    return gsi_step_exchange_await (r);
}

gs_status_t gs_reducer_set_scalar (gs_reducer_t *reducer, int index, double value)
{
    gs_status_t st = check_scalar (reducer, index, "gs_reducer_set_scalar");

    if (!st)
        gsi_step_exchange_set (reducer->step_exchange, index, value);
    return gsi_result (st);
}

gs_status_t gs_reducer_get_scalar (gs_reducer_t *reducer, int index, double *value)
{
    gs_status_t st = check_scalar (reducer, index, "gs_reducer_get_scalar");

    if (!st && !value)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_get_scalar: value is NULL");
    if (!st && !(st = check_past (reducer, "gs_reducer_get_scalar")))
        *value = gsi_step_exchange_scalar (reducer, index);
    return gsi_result (st);
}

gs_status_t gs_reducer_get_norm (gs_reducer_t *reducer, double *norm)
{
    gs_status_t st = gsi_reducer_valid (reducer, "gs_reducer_get_norm");

    if (!st && !norm)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_get_norm: norm is NULL");
    if (!st && !reducer->opts.want_norm && !(reducer->opts.max_norm > 0))
        st = gsi_fail (GS_ERR_STATE,
                       "gs_reducer_get_norm: %s was made without want_norm and max_norm",
                       reducer->client.name);
    if (!st && !(st = check_past (reducer, "gs_reducer_get_norm")))
        *norm = gsi_step_exchange_norm (reducer);
    return gsi_result (st);
}

/* ---- Callbacks ---- */

gs_status_t gs_reducer_set_hook (gs_reducer_t *reducer, gs_bucket_f hook, void *context)
{
    gs_status_t st = gsi_reducer_idle (reducer, "gs_reducer_set_hook");

    if (st)
        return gsi_result (st);
    reducer->hook = hook;
    reducer->hook_context = context;
    return gsi_result (GS_OK);
}

gs_status_t gs_reducer_set_averaged (gs_reducer_t *reducer, gs_bucket_f averaged, void *context)
{
    gs_status_t st = gsi_reducer_idle (reducer, "gs_reducer_set_averaged");

    if (st)
        return gsi_result (st);
    if (averaged && reducer->opts.max_norm > 0)
        return gsi_fail (GS_ERR_STATE,
                         "gs_reducer_set_averaged: %s scales to max_norm in finish, after the "
                         "callback would have used the averages",
                         reducer->client.name);
    reducer->averaged = averaged;
    reducer->averaged_context = context;
    return gsi_result (GS_OK);
}
