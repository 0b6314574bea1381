/* SPDX-License-Identifier: BSD-3-Clause */
/* bucket_reduce - a bucket on its way. */
#include "grad/reducer.h"

#include <stdio.h>

#include "base/clock.h"
#include "grad/work.h"

/* How contributions become the average, in the type they travel in. */
static struct gsi_reduction averaging (const gs_reducer_t *r, gs_dtype_t type, gs_dtype_t dtype)
{
    struct gsi_reduction how = {.dtype = type, .op = GS_SUM, .divisor = r->size};

    how.exact = type != dtype; /* a wire type: sums stay in fp32 */
    if (r->opts.weighted) {
        how.scale = r->weights;
        how.divisor = r->weight_sum > 0 ? r->weight_sum : 1;
    }
    how.own_divisor = r->opts.average_micro;
    if (r->opts.average_micro)
        how.divisor *= r->micro_steps + 1;
    return how;
}

static gs_status_t pack_segment (const gs_reducer_t *r, const struct gsi_segment *s,
                                 gs_dtype_t dtype)
{
    struct gsi_conversion how = {.from = dtype, .to = s->type, .scale = 1};
    const struct gsi_run *in = &r->packing.in[s->run];
    gs_status_t st = GS_OK;

    if (s->type == dtype || !r->opts.error_feedback)
        return gsi_work_convert (r, &how, in, s->runs);
    if (r->opts.weighted && r->weights[r->rank] == 0)
        return GS_OK; /* it is not read, and what was lost before waits for a step that counts */
    for (size_t i = 0; i < s->runs && !st; i++)
        st = gsi_work_quantize (r, &how, &in[i], r->packing.residual[s->run + i]);
    return st;
}

static gs_status_t unpack (const gs_reducer_t *r, const struct gsi_segment *s, gs_dtype_t dtype)
{
    struct gsi_conversion how = {.from = s->type, .to = dtype, .scale = 1};

    return gsi_work_convert (r, &how, &r->packing.out[s->run], s->runs);
}

static gs_status_t move_segment (const gs_reducer_t *r, int b, const struct gsi_segment *s)
{
    gs_dtype_t dtype = r->bucket[b].plan.dtype;
    struct gsi_reduction how = averaging (r, s->type, dtype);
    gs_status_t st;

    if (s->direct)
        return gsi_feature_reduce (r->comm, s->direct, s->count, &how, b, r->stream);
    if ((st = pack_segment (r, s, dtype)) ||
        (st = gsi_feature_reduce (r->comm, r->staging, s->count, &how, b, r->stream)))
        return st;
    return unpack (r, s, dtype);
}

static gs_bucket_t view (const gs_reducer_t *r, int b)
{
    const struct gsi_bucket_plan *plan = &r->bucket[b].plan;

    return (gs_bucket_t){.size = sizeof (gs_bucket_t),
                         .index = b,
                         .buckets = r->buckets,
                         .gradients = plan->tensors,
                         .gradient = &r->number[plan->first],
                         .grad = &r->at[plan->first],
                         .count = &r->count[plan->first],
                         .dtype = plan->dtype,
                         .comm = r->comm,
                         .stream = r->stream,
                         .step = r->step,
                         .weight = r->opts.weighted ? r->weight : 1};
}

/* The reducers that call a function of the program in this thread, from the inside out. */
struct calling {
    const gs_reducer_t *reducer;
    const struct calling *outer;
};

static _Thread_local const struct calling *innermost;

gs_status_t gsi_bucket_check (const gs_reducer_t *r, const char *caller)
{
    const struct calling *c = innermost;

    while (c && c->reducer != r)
        c = c->outer;
    return c ? gsi_fail (GS_ERR_STATE,
                         "%s: %s is inside a function of the program that it has called for a "
                         "bucket, which must not call it",
                         caller, r->client.name)
             : GS_OK;
}

/* Calls a function of the program, which may leave another device. */
static gs_status_t call_program (gs_reducer_t *r, gs_bucket_f function, gs_bucket_t *bucket,
                                 void *context)
{
    struct calling own = {r, innermost};
    gs_status_t st, again;
    int unused;

    innermost = &own;
    st = function (bucket, context);
    innermost = own.outer;
    again = r->queue ? r->queue->enter (r->device, &unused) : GS_OK;
    return st ? st : again;
}

static gs_status_t call_hook (gs_reducer_t *r, int b)
{
    gs_bucket_t bucket = view (r, b);
    char text[GSI_TEXT_MAX / 2];
    gs_status_t st;

    gsi_callback_begin ();
    if (!(st = call_program (r, r->hook, &bucket, r->hook_context)))
        return GS_OK;
    snprintf (text, sizeof (text), "%s", gsi_callback_text ());
    gs_comm_abort (r->comm); /* the others may be in a call that the hook did not come to */
    return gsi_fail (st, "the hook of %s returned %s for bucket %d of %d in step %lld: %s",
                     r->client.name, gs_status_string (st), b + 1, r->buckets,
                     (long long) r->step, *text ? text : "no call of gradsync failed in it");
}

static gs_status_t call_averaged (gs_reducer_t *r, int b)
{
    gs_bucket_t bucket = view (r, b);
    gs_status_t st = call_program (r, r->averaged, &bucket, r->averaged_context);

    if (!st)
        return GS_OK;
    return gsi_fail (st, "the callback of %s returned %s for bucket %d of %d in step %lld",
                     r->client.name, gs_status_string (st), b + 1, r->buckets,
                     (long long) r->step);
}

gs_status_t gsi_bucket_reduce (gs_reducer_t *r, int b, gs_status_t *callback)
{
    struct gsi_bucket *bucket = &r->bucket[b];
    const struct gsi_bucket_plan *plan = &bucket->plan;
    gs_status_t st = GS_OK;

    if (!r->queue)
        bucket->begin_ns = gsi_now_ns ();
    if (r->opts.check_finite)
        st = gsi_work_find_bad (r, plan->first, plan->tensors);
    if (r->hook && !st)
        st = call_hook (r, b);
    for (int s = 0; !r->hook && s < bucket->segments && !st; s++)
        st = move_segment (r, b, &r->segment[bucket->segment + s]);
    if ((r->opts.want_norm || r->opts.max_norm > 0) && !st)
        st = gsi_work_squares (r, plan->first, plan->tensors);
    if (r->averaged && !st && !*callback)
        *callback = call_averaged (r, b);
    if (!r->queue)
        bucket->end_ns = gsi_now_ns ();
    return st;
}
