/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shared_bounce - pinned memory between arrays on the GPU and the transport between hosts.
 *
 * The caller's stream is waited for before an array is read, and copies what comes back, so that
 * for the program the operation has its place in that stream, as on a GPU of one rank. Arrays in
 * host memory, where they go in pieces as those on GPUs of other ranks do, are copied at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "transport/coll_shared.h"

#define LEAST_BYTES ((size_t) 1 << 20)
#define DEFER_NS    (300 * GSI_NS_PER_MS) /* less than who watches leaves to a call */

static void free_memory (struct gsi_coll_shared *c, struct gsi_bounce *b)
{
    if (c->queue)
        c->queue->free_pinned (c->device, b->memory);
    else
        free (b->memory);
    b->memory = NULL;
    b->bytes = 0;
}

static gs_status_t make_memory (struct gsi_coll_shared *c, struct gsi_bounce *b, size_t bytes)
{
    void *memory = NULL;
    gs_status_t st = GS_OK;

    if (c->queue)
        st = c->queue->alloc_pinned (bytes, &memory);
    else if (!(memory = malloc (bytes)))
        st = gsi_fail (GS_ERR_NOMEM, "no memory for a piece of %zu bytes", bytes);
    if (st)
        return st;
    b->memory = memory;
    b->bytes = bytes;
    return GS_OK;
}

void gsi_bounce_close (struct gsi_coll_shared *c)
{
    for (int i = 0; i < GSI_BOUNCES; i++)
        free_memory (c, &c->bounce[i]);
    if (!c->queue)
        return;
    for (int i = 0; i < GSI_BOUNCES; i++) {
        struct gsi_bounce *b = &c->bounce[i];
        c->queue->event_close (b->fetched);
        c->queue->event_close (b->returned);
        *b = (struct gsi_bounce){.memory = NULL};
    }
    c->queue->event_close (c->before);
    c->queue->stream_close (c->stream);
    c->before = NULL;
    c->stream = NULL;
}

/*
 * Whether a wait that began at [begin_ns] must end without success; else a pause has passed. A
 * call that was queued before, and holds this one up, is to be blamed first, by who watches it.
 */
static gs_status_t wait_on (const struct gsi_coll_shared *c, int64_t begin_ns,
                            const struct gsi_call *call)
{
    int64_t now_ns = gsi_now_ns ();

    if (atomic_load (c->base.life) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
    if (now_ns >= call->deadline_ns + DEFER_NS)
        return gsi_fail (GS_ERR_TIMEOUT, GSI_LATE_CALL);
    gsi_pause (now_ns - begin_ns, GSI_SPIN_NS);
    return now_ns - begin_ns < GSI_SPIN_NS || !c->base.others ? GS_OK
                                                              : c->base.others (c->base.context);
}

static gs_status_t await (const struct gsi_coll_shared *c, struct gsi_event *event,
                          const struct gsi_call *call)
{
    int64_t begin_ns = gsi_now_ns ();
    bool done;
    gs_status_t st = c->queue->event_done (event, &done);

    while (!st && !done && !(st = wait_on (c, begin_ns, call)))
        st = c->queue->event_done (event, &done);
    return st;
}

gs_status_t gsi_bounce_take (struct gsi_coll_shared *c, int turn, size_t bytes,
                             const struct gsi_call *call)
{
    struct gsi_bounce *b = &c->bounce[turn];
    gs_status_t st = c->queue ? await (c, b->returned, call) : GS_OK;

    if (st || bytes <= b->bytes)
        return st;
    free_memory (c, b);
    return make_memory (c, b, bytes > LEAST_BYTES ? bytes + bytes / 4 : LEAST_BYTES);
}

gs_status_t gsi_bounce_begin (struct gsi_coll_shared *c, const struct gsi_call *call)
{
    gs_status_t st;

    if (gsi_shared_on_host (c, call))
        return GS_OK;
    if (call->capturing)
        return gsi_fail (GS_ERR_UNSUPPORTED, "it goes by way of the hosts where ranks share "
                                             "GPUs, which a CUDA graph cannot repeat");
    st = c->queue->event_record (c->before, call->stream);
    return st ? st : c->queue->stream_wait (c->stream, c->before);
}

gs_status_t gsi_bounce_fetch (struct gsi_coll_shared *c, int turn, size_t at, const void *from,
                              size_t bytes, const struct gsi_call *call)
{
    if (!bytes)
        return GS_OK;
    if (!gsi_shared_on_host (c, call))
        return c->queue->copy (c->bounce[turn].memory + at, from, bytes, c->stream);
    memcpy (c->bounce[turn].memory + at, from, bytes);
    return GS_OK;
}

gs_status_t gsi_bounce_fetched (struct gsi_coll_shared *c, int turn, const struct gsi_call *call)
{
    return gsi_shared_on_host (c, call)
               ? GS_OK
               : c->queue->event_record (c->bounce[turn].fetched, c->stream);
}

gs_status_t gsi_bounce_await (struct gsi_coll_shared *c, int turn, const struct gsi_call *call)
{
    return gsi_shared_on_host (c, call) ? GS_OK : await (c, c->bounce[turn].fetched, call);
}

gs_status_t gsi_bounce_return (struct gsi_coll_shared *c, int turn, size_t at, void *to,
                               size_t bytes, const struct gsi_call *call)
{
    if (!bytes)
        return GS_OK;
    if (!gsi_shared_on_host (c, call))
        return c->queue->copy (to, c->bounce[turn].memory + at, bytes, call->stream);
    memcpy (to, c->bounce[turn].memory + at, bytes);
    return GS_OK;
}

gs_status_t gsi_bounce_returned (struct gsi_coll_shared *c, int turn, const struct gsi_call *call)
{
    return gsi_shared_on_host (c, call)
               ? GS_OK
               : c->queue->event_record (c->bounce[turn].returned, call->stream);
}
