/* SPDX-License-Identifier: BSD-3-Clause */
/* work - arithmetic on the arrays of a reducer. */
#include "grad/work.h"

#include <string.h>

#include "grad/step_exchange.h"

gs_status_t gsi_work_convert (const gs_reducer_t *r, const struct gsi_conversion *how,
                              const struct gsi_run *runs, size_t number)
{
    if (r->queue)
        return r->queue->convert (how, runs, number, r->stream);
    gsi_host_convert (how, runs, number);
    return GS_OK;
}

gs_status_t gsi_work_quantize (const gs_reducer_t *r, const struct gsi_conversion *how,
                               const struct gsi_run *run, void *residual)
{
    if (r->queue)
        return r->queue->quantize (how, run, residual, r->stream);
    gsi_host_quantize (how, run, residual);
    return GS_OK;
}

gs_status_t gsi_work_zero (const gs_reducer_t *r, void *dst, size_t bytes)
{
    if (r->queue && bytes)
        return r->queue->zero (dst, bytes, r->stream);
    if (bytes)
        memset (dst, 0, bytes);
    return GS_OK;
}

static gs_dtype_t dtype_at (const gs_reducer_t *r, int place)
{
    return r->gradient[r->number[place]].dtype;
}

gs_status_t gsi_work_find_bad (const gs_reducer_t *r, int place, int number)
{
    const struct gsi_run *runs = &r->inspection[place];
    struct gsi_found *found = gsi_step_exchange_found (r->step_exchange);
    uint32_t bad;

    if (r->queue)
        return r->queue->find_nonfinite (dtype_at (r, place), runs, (size_t) number,
                                         (uint32_t) place, &found->bad, r->stream);
    bad = gsi_host_find_nonfinite (dtype_at (r, place), runs, (size_t) number);
    if (bad != GSI_ALL_FINITE && bad + (uint32_t) place < found->bad)
        found->bad = bad + (uint32_t) place;
    return GS_OK;
}

gs_status_t gsi_work_scale (const gs_reducer_t *r, int place, double factor, const double *there)
{
    gs_dtype_t dtype = dtype_at (r, place);
    struct gsi_run run = {.src = r->at[place], .dst = r->at[place], .count = r->count[place]};
    struct gsi_conversion how = {.from = dtype, .to = dtype, .scale = factor};
    struct gsi_reduction queued = {.dtype = dtype, .op = GS_SUM, .divisor = 1};

    if (!run.count)
        return GS_OK;
    if (r->queue)
        return r->queue->reduce (&queued, run.dst, run.src, run.count, 1, run.count, there,
                                 r->stream);
    gsi_host_convert (&how, &run, 1);
    return GS_OK;
}

gs_status_t gsi_work_squares (const gs_reducer_t *r, int place, int number)
{
    struct gsi_found *found = gsi_step_exchange_found (r->step_exchange);
    gs_dtype_t dtype = dtype_at (r, place);
    size_t width = gs_dtype_size (dtype);
    gs_status_t st = GS_OK;

    for (int p = place; p < place + number && !st; p++) {
        size_t share = r->count[p] / (size_t) r->size, first = share * (size_t) r->rank;
        size_t count = r->rank == r->size - 1 ? r->count[p] - first : share;
        const char *data = (const char *) r->at[p] + first * width;
        if (!count)
            continue;
        if (r->queue)
            st = r->queue->squares (dtype, data, count, gsi_step_exchange_room (r->step_exchange),
                                    &found->squares, r->stream);
        else
            found->squares += gsi_host_squares (dtype, data, count);
    }
    return st;
}
