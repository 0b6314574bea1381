/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_shared_pieces - alltoallv and messages between ranks that share GPUs, by way of their
 * hosts. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/coll_shared.h"

#define PART_BYTES ((size_t) 16 << 20) /* of an alltoallv, in pinned memory, each way */
#define APART      64u /* bytes that messages begin at multiples of: two cores share no line */

/* ---- Exchanges ---- */

/* Bytes of the piece of each rank that go at once. */
static size_t share_bytes (const struct gsi_coll_shared *c)
{
    size_t share = PART_BYTES / (size_t) c->size / APART * APART;

    return share ? share : APART;
}

/*
 * The longest piece of any rank: all go on until it has gone. One that has none does not know
 * whether the others' are in host memory, so this is for both.
 */
static gs_status_t find_longest (struct gsi_coll_shared *c, const struct gsi_alltoallv *x,
                                 const struct gsi_call *call, size_t *longest)
{
    const struct gsi_reduction most = {.dtype = GS_I64, .op = GS_MAX, .divisor = 1};
    struct gsi_sent sent = c->base.sent;
    int64_t bytes = 0;
    gs_status_t st;

    if ((*longest = x->block)) /* the same on all ranks */
        return GS_OK;
    for (int r = 0; r < c->size; r++) {
        bytes = (int64_t) x->send_bytes[r] > bytes ? (int64_t) x->send_bytes[r] : bytes;
        bytes = (int64_t) x->recv_bytes[r] > bytes ? (int64_t) x->recv_bytes[r] : bytes;
    }
    if ((st = gsi_shared_enter (c, call)))
        return st;
    st = gsi_shared_leave (c, c->hosts->ops->allreduce (c->hosts, &bytes, 1, &most, call));
    c->base.sent = sent; /* it is none of the program's data */
    *longest = (size_t) bytes;
    return st;
}

/*
 * Lays the parts of pieces from [at] on one behind the other, those that are the same one once;
 * returns their bytes in all.
 */
static size_t lay_parts (const struct gsi_coll_shared *c, const size_t *from,
                         const size_t *pieces, size_t at, size_t *places, size_t *bytes)
{
    size_t total = 0;

    for (int r = 0; r < c->size; r++) {
        bool again = r && from[r] == from[r - 1] && pieces[r] == pieces[r - 1];
        bytes[r] = gsi_step_of (pieces[r], at, share_bytes (c));
        places[r] = again ? places[r - 1] : total;
        total += again ? 0 : bytes[r];
    }
    return total;
}

/* Copies what this rank sends to the first bounce. */
static gs_status_t fetch_parts (struct gsi_coll_shared *c, const struct gsi_alltoallv *x,
                                size_t at, const struct gsi_alltoallv *part,
                                const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int r = 0; r < c->size && !st; r++)
        if (!r || part->send_at[r] != part->send_at[r - 1] ||
            part->send_bytes[r] != part->send_bytes[r - 1])
            st = gsi_bounce_fetch (c, 0, part->send_at[r], x->send + x->send_at[r] + at,
                                   part->send_bytes[r], call);
    return st ? st : gsi_bounce_fetched (c, 0, call);
}

static gs_status_t return_parts (struct gsi_coll_shared *c, const struct gsi_alltoallv *x,
                                 size_t at, const struct gsi_alltoallv *part,
                                 const struct gsi_call *call)
{
    gs_status_t st = gsi_bounce_returned (c, 0, call);

    for (int r = 0; r < c->size && !st; r++)
        st = gsi_bounce_return (c, 1, part->recv_at[r], x->recv + x->recv_at[r] + at,
                                part->recv_bytes[r], call);
    return st ? st : gsi_bounce_returned (c, 1, call);
}

static gs_status_t bounce_part (struct gsi_coll_shared *c, const struct gsi_alltoallv *x,
                                size_t at, const struct gsi_call *call)
{
    size_t size = (size_t) c->size, *send_at = c->length, *send_bytes = send_at + size;
    size_t *recv_at = send_bytes + size, *recv_bytes = recv_at + size, sends, recvs;
    struct gsi_alltoallv part = {.send_at = send_at,
                                 .send_bytes = send_bytes,
                                 .recv_at = recv_at,
                                 .recv_bytes = recv_bytes};
    gs_status_t st;

    sends = lay_parts (c, x->send_at, x->send_bytes, at, send_at, send_bytes);
    recvs = lay_parts (c, x->recv_at, x->recv_bytes, at, recv_at, recv_bytes);
    if ((st = gsi_bounce_take (c, 0, sends, call)) ||
        (st = gsi_bounce_take (c, 1, recvs, call)) ||
        (st = fetch_parts (c, x, at, &part, call)) || (st = gsi_bounce_await (c, 0, call)))
        return st;
    part.send = c->bounce[0].memory;
    part.recv = c->bounce[1].memory;
    if ((st = gsi_shared_enter (c, call)))
        return st;
    st = gsi_shared_leave (c, c->hosts->ops->alltoallv (c->hosts, &part, call));
    return st ? st : return_parts (c, x, at, &part, call);
}

/* The same where the pieces are in host memory. */
static gs_status_t direct_part (struct gsi_coll_shared *c, const struct gsi_alltoallv *x,
                                size_t at, const struct gsi_call *call)
{
    size_t size = (size_t) c->size, *send_bytes = c->length, *recv_bytes = send_bytes + size;
    struct gsi_alltoallv part = {.send = x->send ? x->send + at : NULL,
                                 .recv = x->recv ? x->recv + at : NULL,
                                 .send_at = x->send_at,
                                 .send_bytes = send_bytes,
                                 .recv_at = x->recv_at,
                                 .recv_bytes = recv_bytes};
    gs_status_t st = gsi_shared_enter (c, call);

    if (st)
        return st;
    for (size_t r = 0; r < size; r++) {
        send_bytes[r] = gsi_step_of (x->send_bytes[r], at, share_bytes (c));
        recv_bytes[r] = gsi_step_of (x->recv_bytes[r], at, share_bytes (c));
    }
    return gsi_shared_leave (c, c->hosts->ops->alltoallv (c->hosts, &part, call));
}

gs_status_t gsi_shared_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                  const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    size_t longest;
    gs_status_t st = gsi_bounce_begin (c, call);

    if (!st && gsi_shared_whole (c, call) && x->block) { /* then it is on all ranks */
        st = gsi_shared_enter (c, call);
        return st ? st : gsi_shared_leave (c, c->hosts->ops->alltoallv (c->hosts, x, call));
    }
    if (!st)
        st = find_longest (c, x, call, &longest);
    for (size_t at = 0; !st && at < longest; at += share_bytes (c))
        st = gsi_shared_on_host (c, call) ? direct_part (c, x, at, call)
                                          : bounce_part (c, x, at, call);
    return st;
}

/* ---- Messages ---- */

static gs_status_t run_messages (struct gsi_coll_shared *c, struct gsi_message *list, int number,
                                 const struct gsi_call *call)
{
    gs_status_t st = gsi_shared_enter (c, call);

    return st ? st : gsi_shared_leave (c, c->hosts->ops->messages (c->hosts, list, number, call));
}

/* What it takes in pinned memory: none where it is in host memory already. */
static size_t bounce_bytes (const struct gsi_message *m)
{
    return m->staged ? 0 : (m->bytes + APART - 1) / APART * APART;
}

/*
 * Lays out [list] as [moved], in pinned memory what is on the GPU, and copies what is sent of
 * that. N.B. There is room for all of it. In parts, one call of hosts after the other, each
 * message of a group would wait for the others, and ranks for each other in a circle; and an end
 * cannot tell what else the other one's group has, so that both would cut alike.
 */
static gs_status_t fetch_messages (struct gsi_coll_shared *c, const struct gsi_message *list,
                                   struct gsi_message *moved, int number,
                                   const struct gsi_call *call)
{
    size_t total = 0, at = 0;
    bool any = false; /* on the GPU */
    gs_status_t st;

    memcpy (moved, list, (size_t) number * sizeof (*moved));
    for (int i = 0; i < number; i++) {
        total += bounce_bytes (&list[i]);
        any = any || !list[i].staged;
    }
    if (!any)
        return GS_OK;
    if ((st = gsi_bounce_begin (c, call)) || (st = gsi_bounce_take (c, 0, total, call)))
        return st;
    for (int i = 0; i < number && !st; i++) {
        if (list[i].staged)
            continue;
        moved[i].buf = c->bounce[0].memory + at;
        if (list[i].send)
            st = gsi_bounce_fetch (c, 0, at, list[i].buf, list[i].bytes, call);
        at += bounce_bytes (&list[i]);
    }
    if (st || (st = gsi_bounce_fetched (c, 0, call)))
        return st;
    return gsi_bounce_await (c, 0, call);
}

/* What came to pinned memory goes to the GPU. */
static gs_status_t return_messages (struct gsi_coll_shared *c, const struct gsi_message *list,
                                    const struct gsi_message *moved, int number,
                                    const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < number && !st; i++) {
        const struct gsi_message *m = &moved[i];
        if (!m->send && !m->staged && gsi_message_fits (m))
            st = gsi_bounce_return (c, 0, (size_t) ((char *) m->buf - c->bounce[0].memory),
                                    list[i].buf, m->bytes, call);
    }
    return st ? st : gsi_bounce_returned (c, 0, call);
}

gs_status_t gsi_shared_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                                 const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    struct gsi_call there = *call; /* of those on the GPU */
    struct gsi_message *moved;
    gs_status_t st, back;

    there.staged = false;
    if (!c->queue)
        return run_messages (c, list, number, call);
    if (!(moved = malloc ((size_t) number * sizeof (*moved))))
        return gsi_fail (GS_ERR_NOMEM, "messages of ranks that share GPUs: out of memory");
    st = fetch_messages (c, list, moved, number, &there);
    if (!st) {
        st = run_messages (c, moved, number, call);
        gsi_message_heard (list, moved, number);
        if ((!st || st == GS_ERR_MISMATCH) &&
            (back = return_messages (c, list, moved, number, &there)))
            st = back;
    }
    free (moved);
    return st;
}
