/* SPDX-License-Identifier: BSD-3-Clause */
/* memory - what the ranks of a node share: where it lies, and how arrays get there and back. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "pool/pool.h"

/* Elements of a row in an area. */
static size_t elements_of (const gs_pool_t *p, enum gsi_pool_area area)
{
    bool of_row = area == GSI_POOL_IN || area == GSI_POOL_GRAD_IN;

    return of_row ? p->opts.inputs : p->opts.outputs;
}

size_t gsi_pool_width (const gs_pool_t *p, enum gsi_pool_area area)
{
    return elements_of (p, area) * p->element;
}

static size_t head_bytes (const gs_pool_t *p)
{
    return gsi_memfd_round (GSI_PAGE + (size_t) p->ranks * sizeof (struct gsi_pool_line));
}

/* Bytes of an area for the rows of all ranks, in whole pages. */
static bool measure_area (const gs_pool_t *p, enum gsi_pool_area area, size_t *bytes)
{
    if (__builtin_mul_overflow (p->opts.max_rows, (size_t) p->ranks, bytes) ||
        __builtin_mul_overflow (*bytes, elements_of (p, area), bytes) ||
        __builtin_mul_overflow (*bytes, p->element, bytes) || *bytes > SIZE_MAX / 32)
        return false;
    *bytes = gsi_memfd_round (*bytes);
    return true;
}

gs_status_t gsi_pool_measure (gs_pool_t *p, const char *caller, size_t *bytes)
{
    size_t area_bytes;

    *bytes = head_bytes (p);
    for (int a = 0; a < GSI_POOL_AREAS; a++)
        for (int s = 0; s < GSI_POOL_STEPS; s++) {
            p->at[s][a] = *bytes;
            if (!measure_area (p, (enum gsi_pool_area) a, &area_bytes))
                return gsi_fail (GS_ERR_ARG,
                                 "%s: max_rows %zu of %zu inputs and %zu outputs, on %d ranks of "
                                 "this node, are more than memory can hold",
                                 caller, p->opts.max_rows, p->opts.inputs, p->opts.outputs,
                                 p->ranks);
            *bytes += area_bytes;
        }
    return GS_OK;
}

struct gsi_pool_line *gsi_pool_line_of (const gs_pool_t *p, int index)
{
    return (struct gsi_pool_line *) (void *) (p->shm.base + GSI_PAGE) + index;
}

void *gsi_pool_row (const gs_pool_t *p, uint64_t number, enum gsi_pool_area area, size_t row)
{
    return p->shm.base + p->at[number % GSI_POOL_STEPS][area] + row * gsi_pool_width (p, area);
}

/* ---- Streams ---- */

static const struct gsi_stream_ops *streams_of (const gs_pool_t *p)
{
    return gsi_feature_device (p->comm)->ops->streams;
}

gs_status_t gsi_pool_open_event (gs_pool_t *p)
{
    const struct gsi_stream_ops *streams = streams_of (p);
    int previous;
    gs_status_t st;

    if (!streams)
        return GS_OK;
    if ((st = streams->enter (gsi_feature_device (p->comm), &previous)))
        return st;
    st = streams->event_open (&p->reached);
    streams->leave (gsi_feature_device (p->comm), previous);
    return st;
}

void gsi_pool_close_event (gs_pool_t *p)
{
    int previous;

    if (!p->reached || streams_of (p)->enter (gsi_feature_device (p->comm), &previous))
        return;
    streams_of (p)->event_close (p->reached);
    streams_of (p)->leave (gsi_feature_device (p->comm), previous);
    p->reached = NULL;
}

gs_status_t gsi_pool_await_stream (gs_pool_t *p, struct gsi_node_call *c)
{
    gs_status_t st;

    if (!p->reached)
        return GS_OK;
    st = streams_of (p)->event_record (p->reached, p->opts.stream);
    return st ? st : gsi_node_call_await (c, p->reached);
}

/* ---- The GPU of an evaluator ---- */

/* Where the areas begin that functions of the program read and write. */
static void *pinned_part (const gs_pool_t *p)
{
    return p->shm.base + p->at[0][GSI_POOL_IN];
}

void gsi_pool_pin (gs_pool_t *p)
{
    const struct gsi_device *device = gsi_feature_device (p->comm);
    size_t end = p->graded ? p->shm.bytes : p->at[0][GSI_POOL_GRAD_OUT];
    int previous;
    gs_status_t st;

    if (!streams_of (p) || p->own < 0)
        return;
    if (!(st = streams_of (p)->enter (device, &previous))) {
        st = streams_of (p)->pin (pinned_part (p), end - p->at[0][GSI_POOL_IN]);
        p->pinned = !st;
        streams_of (p)->leave (device, previous);
    }
    if (st)
        gsi_log (GS_LOG_INFO, "pool",
                 "%s: its memory is not registered with the GPU, so copies between them take "
                 "longer: %s",
                 p->client.name, gsi_last_text ());
}

/* Once the GPU has done with it. */
static void close_memory (void *memory)
{
    gsi_memfd_close (memory);
    free (memory);
}

void gsi_pool_unpin (gs_pool_t *p)
{
    const struct gsi_device *device = gsi_feature_device (p->comm);
    struct gsi_memfd *memory;
    int previous;

    if (!p->pinned)
        return;
    p->pinned = false;
    if ((memory = malloc (sizeof (*memory))) && !streams_of (p)->enter (device, &previous)) {
        *memory = p->shm;
        streams_of (p)->unpin (device, pinned_part (p), close_memory, memory);
        streams_of (p)->leave (device, previous);
    } else {
        free (memory); /* what the pool shared stays mapped */
    }
    p->shm = GSI_MEMFD_NONE;
}

/* ---- Arrays of the program ---- */

/*
 * [bytes] between an array and the memory. On a GPU in the stream's order, and waited for: the
 * memory is other ranks' then. The stream may have an array of the host still. N.B. Memory that
 * is not pinned CUDA copies once the stream has come so far, and waits for it without a deadline.
 */
static gs_status_t copy (gs_pool_t *p, struct gsi_node_call *c, void *to, const void *from,
                         size_t bytes, bool staged)
{
    bool queued = streams_of (p) && !staged;
    gs_status_t st = GS_OK;

    if (!bytes)
        return GS_OK;
    if (queued && !p->pinned)
        st = gsi_pool_await_stream (p, c);
    if (!st && queued)
        st = streams_of (p)->copy (to, from, bytes, p->opts.stream);
    if (!st)
        st = gsi_pool_await_stream (p, c);
    if (!st && !queued)
        memcpy (to, from, bytes);
    return st;
}

/* Where the rows of this rank lie in an area of step [number], and how long they are. */
static void *own_rows (const gs_pool_t *p, uint64_t number, enum gsi_pool_area area,
                       size_t *bytes)
{
    const struct gsi_pool_step *s = &p->step[number % GSI_POOL_STEPS];

    *bytes = s->rows * gsi_pool_width (p, area);
    return gsi_pool_row (p, number, area, s->place[p->index]);
}

gs_status_t gsi_pool_put (gs_pool_t *p, struct gsi_node_call *c, uint64_t number,
                          enum gsi_pool_area area, const void *from, bool staged)
{
    size_t bytes;
    void *to = own_rows (p, number, area, &bytes);

    return copy (p, c, to, from, bytes, staged);
}

gs_status_t gsi_pool_get (gs_pool_t *p, struct gsi_node_call *c, uint64_t number,
                          enum gsi_pool_area area, void *to, bool staged)
{
    size_t bytes;
    const void *from = own_rows (p, number, area, &bytes);

    return copy (p, c, to, from, bytes, staged);
}
