/* SPDX-License-Identifier: BSD-3-Clause */
/* stage - copies of the arrays. */
#include "ckpt/save/save.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"

static const struct gsi_stream_ops *queue_of (const gs_ckpt_t *c)
{
    return gsi_feature_device (c->comm)->ops->streams;
}

/* ---- The ring ---- */

static gs_status_t open_on_gpu (struct gsi_save_staging *g, const gs_ckpt_t *c, size_t room)
{
    const struct gsi_device *device = gsi_feature_device (c->comm);
    const struct gsi_stream_ops *queue = queue_of (c);
    int previous;
    gs_status_t st = queue->enter (device, &previous);

    if (st)
        return st;
    if (!(st = queue->alloc_pinned (room, &g->ring)) && !g->copied &&
        !(st = queue->event_open (&g->ready)) && !(st = queue->event_open (&g->copied)))
        st = queue->stream_open (&g->stream);
    queue->leave (device, previous);
    return st;
}

static void free_ring (gs_ckpt_t *c)
{
    const struct gsi_device *device = gsi_feature_device (c->comm);
    int previous;

    if (!queue_of (c)) {
        free (c->staging.ring);
    } else if (c->staging.ring && !queue_of (c)->enter (device, &previous)) {
        queue_of (c)->free_pinned (device, c->staging.ring);
        queue_of (c)->leave (device, previous);
    }
    c->staging.ring = NULL;
    c->staging.room = 0;
}

gs_status_t gsi_stage_prepare (gs_ckpt_t *c, size_t room)
{
    struct gsi_save_staging *g = &c->staging;
    gs_status_t st = GS_OK;

    if (g->keep)
        *g = (struct gsi_save_staging){.ring = NULL}; /* an old copy may still write there */
    if (g->room >= room)
        return GS_OK;
    free_ring (c);
    if (gsi_fault ("ckpt.memory"))
        st = gsi_fail (GS_ERR_NOMEM, "out of memory");
    else if (queue_of (c))
        st = open_on_gpu (g, c, room);
    else if (!(g->ring = malloc (room)))
        st = gsi_fail (GS_ERR_NOMEM, "out of memory");
    if (!st) {
        g->room = room;
        return GS_OK;
    }
    gsi_stage_release (c);
    return gsi_fail (st, "%s: no %zu bytes to stage arrays in: %s: set the option memory",
                     c->client.name, room, gsi_last_text ());
}

void gsi_stage_release (gs_ckpt_t *c)
{
    const struct gsi_device *device = gsi_feature_device (c->comm);
    const struct gsi_stream_ops *queue = queue_of (c);
    int previous;

    if (c->staging.keep)
        return; /* a free would wait for a GPU that hangs */
    free_ring (c);
    if (!queue || queue->enter (device, &previous))
        return;
    if (c->staging.ready)
        queue->event_close (c->staging.ready);
    if (c->staging.copied)
        queue->event_close (c->staging.copied);
    if (c->staging.stream)
        queue->stream_close (c->staging.stream);
    queue->leave (device, previous);
    c->staging = (struct gsi_save_staging){.ring = NULL};
}

gs_status_t gsi_stage_follow (const gs_ckpt_t *c, gs_stream_t stream)
{
    const struct gsi_stream_ops *queue = queue_of (c);
    int previous;
    gs_status_t st;

    if (!queue)
        return GS_OK;
    if ((st = queue->enter (gsi_feature_device (c->comm), &previous)))
        return st;
    if (!(st = queue->event_record (c->staging.ready, stream)))
        st = queue->stream_wait (c->staging.stream, c->staging.ready);
    queue->leave (gsi_feature_device (c->comm), previous);
    return st;
}

/* ---- Copies ---- */

struct stager {
    struct gsi_save *save;
    struct gsi_flow *flow;
    struct gsi_save_staging *staging;
    const struct gsi_stream_ops *queue; /* NULL on hosts */
    int64_t patience_ns;
    uint64_t copied, told; /* bytes that are on their way to the ring, that the writer knows of */
    size_t batch;          /* that it is told of at a time */
    const char *from;      /* bytes that follow each other are copied at once, past the cache */
    char *to;
    size_t bytes;
};

/* Waits until the copies that were queued have been made. */
static gs_status_t await_copies (struct stager *g)
{
    struct gsi_wait wait = gsi_wait_for (g->patience_ns, GSI_SPIN_NS);
    bool done = false, late = false;
    gs_status_t st = g->queue->event_record (g->staging->copied, g->staging->stream);

    while (!st && !late && !(st = g->queue->event_done (g->staging->copied, &done)) && !done)
        late = !gsi_wait_on (&wait);
    if (!late)
        return st;
    g->staging->keep = true;
    return gsi_fail (GS_ERR_TIMEOUT, "%s: copies from the GPU have not ended within %lld ms",
                     g->save->c->client.name, (long long) (g->patience_ns / GSI_NS_PER_MS));
}

static gs_status_t stage_copy (struct stager *g)
{
    size_t bytes = g->bytes;

    g->bytes = 0;
    if (!bytes)
        return GS_OK;
    if (g->queue)
        return g->queue->copy (g->to, g->from, bytes, g->staging->stream);
    memcpy (g->to, g->from, bytes);
    return GS_OK;
}

/* The writer may have what was copied. */
static gs_status_t stage_tell (struct stager *g)
{
    gs_status_t st = GS_OK;

    if (g->copied == g->told)
        return GS_OK;
    if ((st = stage_copy (g)) || (g->queue && (st = await_copies (g))))
        return st;
    gsi_flow_stage (g->flow, g->copied);
    g->told = g->copied;
    return GS_OK;
}

static gs_status_t stage_piece (void *context, const struct gsi_piece *p)
{
    struct stager *g = context;
    const struct gsi_ckpt_array *a = &g->save->c->array[p->array];
    const char *from = (const char *) a->data + p->at;
    char *to = gsi_flow_place (g->flow, p->pos);
    gs_status_t st;

    if (p->pos + p->bytes - g->told > g->batch && (st = stage_tell (g)))
        return st;
    if (!gsi_flow_await_room (g->flow, p->pos + p->bytes, g->patience_ns))
        return GS_ERR_STATE; /* the flow knows why */
    if (g->bytes && (from != g->from + g->bytes || to != g->to + g->bytes) &&
        (st = stage_copy (g)))
        return st;
    if (!g->bytes) {
        g->from = from;
        g->to = to;
    }
    g->bytes += p->bytes;
    g->copied = p->pos + p->bytes;
    return GS_OK;
}

static gs_status_t stage_all (struct stager *g)
{
    gs_status_t st = gsi_save_pieces_each (&g->save->pieces, stage_piece, g, NULL);

    return st ? st : stage_tell (g);
}

static gs_status_t stage_on_gpu (struct stager *g)
{
    const struct gsi_device *device = gsi_feature_device (g->save->c->comm);
    int previous;
    gs_status_t st = g->queue->enter (device, &previous);

    if (st)
        return st;
    if (g->save->has_stager)
        g->queue->relax_capture (); /* this thread is ours */
    st = stage_all (g);
    g->queue->leave (device, previous);
    return st;
}

void *gsi_stage_all (void *save)
{
    struct gsi_save *s = save;
    struct stager g = {.save = s,
                       .flow = &s->flow,
                       .staging = &s->c->staging,
                       .queue = queue_of (s->c),
                       .patience_ns = gsi_feature_timeout_ns (s->c->comm)};
    gs_status_t st;

    /* N.B. Where all fits, the writer waits: it would take the core that the copies need. */
    g.batch = s->flow.room >= s->flow.total ? SIZE_MAX : s->flow.room / 4;
    if ((st = g.queue ? stage_on_gpu (&g) : stage_all (&g)))
        gsi_flow_fail (&s->flow, st);
    return NULL;
}
