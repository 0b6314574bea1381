/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shared_sums - sums between ranks that share GPUs: within a GPU by its leader, in rank
 * order, between GPUs by NCCL, averaged over all ranks.
 *
 * A sum goes in blocks, by two turns: while NCCL has one block, the group has the next one
 * summed. Streams alone wait for each other, so that all of it is queued, and can be captured.
 */
#include "base/dtype.h"
#include "base/status.h"
#include "transport/coll_shared.h"

/* A sum under way. */
struct sum {
    struct gsi_coll_shared *c;
    struct gsi_gpu_group *g;
    const struct gsi_call *call;
    gs_stream_t net; /* what is behind the sum of a block goes there: a capture has one stream */
    struct gsi_reduction inner, across, finish; /* in a group, between them, and behind */
    char *buf;
    size_t count, block, width; /* elements, those of a block, bytes of one */
};

/* One block of it. */
struct block_of_sum {
    char *at;
    size_t count;
    int turn;
    bool used; /* this call has had the turn before, so that its event is the call's */
};

static const uint32_t *dead_of (const struct gsi_gpu_group *g)
{
    return gsi_group_mark (g->dead, g->place);
}

/* What keeps a flag from being set: that this rank has given up, or, from being taken back, that
 * its streams go on. Until then they wait for what is meant. */
static const uint32_t *kept_by (const struct gsi_gpu_group *g, uint32_t value)
{
    return value ? dead_of (g) : gsi_group_mark (g->released, g->place);
}

/* For all ranks of the group but the leader. */
static gs_status_t put_all (const struct sum *s, enum gsi_group_flag kind, int turn,
                            uint32_t value, gs_stream_t stream)
{
    return s->c->queue->set_flags (gsi_group_flag (s->g, kind, turn, 1), GSI_GROUP_STRIDE,
                                   s->g->size - 1, value, kept_by (s->g, value), stream);
}

static gs_status_t put_own (const struct sum *s, enum gsi_group_flag kind, int turn,
                            uint32_t value)
{
    return s->c->queue->set_flags (gsi_group_flag (s->g, kind, turn, s->g->place), 1, 1, value,
                                   kept_by (s->g, value), s->call->stream);
}

/* ---- The leader ---- */

/*
 * Waits for the contributions of the group. What calls before this one did with the turn is done:
 * the stream waits for them.
 */
static gs_status_t collect_block (const struct sum *s, const struct block_of_sum *b)
{
    gs_stream_t stream = s->call->stream;
    gs_status_t st = GS_OK;

    if (b->used && s->net != stream)
        st = s->c->queue->stream_wait (stream, s->g->done[b->turn]);
    for (int i = 1; i < s->g->size && !st; i++)
        st = s->c->queue->stream_wait_value (stream,
                                             gsi_group_flag (s->g, GSI_GROUP_FULL, b->turn, i));
    return st ? st : put_all (s, GSI_GROUP_FULL, b->turn, 0, stream);
}

/* Sums what the group has brought. */
static gs_status_t sum_block (const struct sum *s, const struct block_of_sum *b)
{
    struct gsi_gpu_group *g = s->g;
    const struct gsi_stream_ops *queue = s->c->queue;
    char *first = gsi_group_slot (g, b->turn, 0), *sums = gsi_group_slot (g, b->turn, g->size);
    gs_stream_t stream = s->call->stream;
    gs_status_t st = collect_block (s, b);

    if (!st)
        st = queue->copy (first, b->at, b->count * s->width, stream);
    if (!st)
        st = queue->reduce (&s->inner, sums, first, g->slot_bytes / s->width, g->size, b->count,
                            NULL, stream);
    return st || s->net == stream ? st : queue->event_record (g->summed[b->turn], stream);
}

/* Behind it: over all groups, and back to the ranks of this one. */
static gs_status_t finish_block (const struct sum *s, const struct block_of_sum *b)
{
    struct gsi_gpu_group *g = s->g;
    const struct gsi_stream_ops *queue = s->c->queue;
    char *sums = gsi_group_slot (g, b->turn, g->size), *result = sums + g->slot_bytes;
    char *own = gsi_group_slot (g, b->turn, 0); /* which is free again */
    struct gsi_call apart = *s->call;
    gs_status_t st = GS_OK;

    apart.stream = s->net;
    if (s->net != s->call->stream && (st = queue->stream_wait (s->net, g->summed[b->turn])))
        return st;
    if (g->leaders)
        st = g->leaders->ops->allreduce (g->leaders, sums, b->count, &s->across, &apart);
    if (!st)
        st = queue->reduce (&s->finish, own, sums, b->count, 1, b->count, NULL, s->net);
    if (!st)
        st = queue->move (result, own, b->count * s->width, dead_of (g), s->net);
    if (!st)
        st = put_all (s, GSI_GROUP_READY, b->turn, 1, s->net);
    if (!st)
        st = queue->copy (b->at, own, b->count * s->width, s->net);
    return st || s->net == s->call->stream ? st : queue->event_record (g->done[b->turn], s->net);
}

/* ---- The others ---- */

static gs_status_t bring_block (const struct sum *s, const struct block_of_sum *b)
{
    gs_status_t st = s->c->queue->move (gsi_group_slot (s->g, b->turn, s->g->place), b->at,
                                        b->count * s->width, dead_of (s->g), s->call->stream);

    return st ? st : put_own (s, GSI_GROUP_FULL, b->turn, 1);
}

static gs_status_t take_block (const struct sum *s, const struct block_of_sum *b)
{
    struct gsi_gpu_group *g = s->g;
    const struct gsi_stream_ops *queue = s->c->queue;
    gs_stream_t stream = s->call->stream;
    gs_status_t st =
        queue->stream_wait_value (stream, gsi_group_flag (g, GSI_GROUP_READY, b->turn, g->place));

    if (!st)
        st = put_own (s, GSI_GROUP_READY, b->turn, 0);
    return st ? st
              : queue->move (b->at, gsi_group_slot (g, b->turn, g->size + 1), b->count * s->width,
                             dead_of (g), stream);
}

/* ---- Together ---- */

static struct block_of_sum block_at (const struct sum *s, size_t done)
{
    size_t number = done / s->block;

    return (struct block_of_sum){.at = s->buf + done * s->width,
                                 .count = gsi_step_of (s->count, done, s->block),
                                 .turn = (int) ((size_t) s->g->turn + number) % GSI_GROUP_TURNS,
                                 .used = number >= GSI_GROUP_TURNS};
}

/* What is behind the sums is joined in any case: a call that fails is no less under way. */
static gs_status_t lead (const struct sum *s)
{
    gs_stream_t stream = s->call->stream;
    gs_status_t st = GS_OK, joined = GS_OK;

    for (size_t done = 0; done < s->count && !st; done += s->block) {
        struct block_of_sum b = block_at (s, done);
        if (!(st = sum_block (s, &b)))
            st = finish_block (s, &b);
    }
    if (s->net != stream && !(joined = s->c->queue->event_record (s->g->done[0], s->net)))
        joined = s->c->queue->stream_wait (stream, s->g->done[0]);
    return st ? st : joined;
}

/* The next block is brought before the result of one is taken. */
static gs_status_t follow (const struct sum *s)
{
    struct block_of_sum b = block_at (s, 0), next;
    gs_status_t st = bring_block (s, &b);

    for (size_t done = 0; done < s->count && !st; done += s->block) {
        b = block_at (s, done);
        next = block_at (s, done + s->block);
        if (next.count)
            st = bring_block (s, &next);
        if (!st)
            st = take_block (s, &b);
    }
    return st;
}

bool gsi_shared_sums (const struct gsi_coll_shared *c, const struct gsi_reduction *how,
                      const struct gsi_call *call)
{
    return c->group && !call->staged && !how->scale && how->sums == GSI_SUMS_NONE &&
           (how->op == GS_SUM || !gsi_dtype_is_reduced (how->dtype));
}

/* Whether NCCL has an operation for it: not for integers of 16 bits, and its min drops a NaN. */
static bool is_native (const struct gsi_reduction *how)
{
    bool integer = gsi_dtype_is_integer (how->dtype);

    if (integer)
        return gs_dtype_size (how->dtype) != 2;
    return how->op == GS_SUM || (how->op == GS_PROD && !gsi_dtype_is_complex (how->dtype));
}

/*
 * The leaders take memory for what NCCL cannot do in the first such call, which a capture
 * forbids: all ranks refuse that alike.
 */
static gs_status_t check_exchange (struct gsi_gpu_group *g, const struct gsi_reduction *how,
                                   const struct gsi_call *call)
{
    if (is_native (how) || g->topo.size < 2 || g->exchanged)
        return GS_OK;
    g->exchanged = !call->capturing;
    return g->exchanged ? GS_OK
                        : gsi_fail (GS_ERR_UNSUPPORTED,
                                    "this reduction needs memory that cannot be made while a "
                                    "graph is captured: call it once before");
}

gs_status_t gsi_shared_sum (struct gsi_coll_shared *c, void *buf, size_t count,
                            const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_gpu_group *g = c->group;
    bool wide = gsi_dtype_is_reduced (how->dtype); /* fp32 on the way */
    size_t width = gs_dtype_size (how->dtype), most = wide ? sizeof (float) : width;
    struct sum s = {.c = c,
                    .g = g,
                    .call = call,
                    .net = call->capturing ? call->stream : g->net,
                    .inner = *how,
                    .across = *how,
                    .finish = *how,
                    .buf = buf,
                    .count = count,
                    .block = g->slot_bytes / most,
                    .width = width};
    gs_status_t st = check_exchange (g, how, call);

    if (st)
        return st;
    gsi_shared_queued (c);
    s.inner.divisor = s.across.divisor = 1;
    if (wide) {
        s.inner.sums = GSI_SUMS_OUT;
        s.across.dtype = GS_F32;
        s.finish.sums = GSI_SUMS_IN;
    }
    if (!call->capturing)
        st = c->queue->stream_wait (call->stream, g->before);
    if (g->leaders)
        g->leaders->sent = (struct gsi_sent){.within = 0};
    if (!st)
        st = g->place ? follow (&s) : lead (&s);
    gsi_coll_unknown (&c->base);
    g->turn = (int) ((size_t) g->turn + (count + s.block - 1) / s.block) % GSI_GROUP_TURNS;
    return st || call->capturing ? st : c->queue->event_record (g->before, call->stream);
}
