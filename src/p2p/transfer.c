/* SPDX-License-Identifier: BSD-3-Clause */
/* transfer - hands messages to the transport, those in host memory over the GPU's. */
#include <stdlib.h>
#include <string.h>

#include "call/staging.h"
#include "call/traffic.h"
#include "p2p/p2p.h"

#define LEAST_ROOM ((size_t) 1 << 20)
#define ALIGNMENT  256u

static size_t padded (size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/*
 * Makes room for [bytes] on the GPU. What was too small is kept until the end: to free it would
 * wait for all of the GPU's work, and so perhaps for other ranks.
 */
static gs_status_t p2p_make_room (gs_comm_t *comm, struct gsi_p2p *p2p, size_t bytes)
{
    size_t more = bytes > 2 * p2p->room_bytes ? bytes : 2 * p2p->room_bytes;
    gs_status_t st;

    if (bytes <= p2p->room_bytes)
        return GS_OK;
    if (p2p->rooms == GSI_P2P_ROOMS)
        return gsi_fail (GS_ERR_NOMEM, "no more room on the GPU for messages of the host");
    more = more < LEAST_ROOM ? LEAST_ROOM : more;
    if ((st = comm->device->ops->alloc (comm->device, more, &p2p->room[p2p->rooms])))
        return st;
    p2p->rooms++;
    p2p->room_bytes = more;
    return GS_OK;
}

/* Lays out [list] in memory of the GPU as p2p->moved, and copies what is sent. */
static gs_status_t move_there (gs_comm_t *comm, struct gsi_p2p *p2p,
                               const struct gsi_message *list, int number,
                               const struct gsi_call *call)
{
    const struct gsi_stream_ops *ops = comm->device->ops->streams;
    size_t total = 0, at = 0;
    gs_status_t st = gsi_p2p_reserve (&p2p->moved, number);

    for (int i = 0; i < number; i++)
        total += padded (list[i].bytes);
    if (st || (st = p2p_make_room (comm, p2p, total)))
        return st;
    for (int i = 0; i < number && !st; i++) {
        struct gsi_message *moved = &p2p->moved.message[i];
        *moved = list[i];
        if (!moved->bytes)
            continue;
        moved->buf = (char *) p2p->room[p2p->rooms - 1] + at;
        at += padded (moved->bytes);
        if (moved->send)
            st = ops->copy (moved->buf, list[i].buf, moved->bytes, call->stream);
    }
    return st;
}

static gs_status_t move_back (gs_comm_t *comm, const struct gsi_p2p *p2p,
                              const struct gsi_message *list, int number,
                              const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < number && !st; i++)
        if (!list[i].send && list[i].bytes)
            st = comm->device->ops->streams->copy (list[i].buf, p2p->moved.message[i].buf,
                                                   list[i].bytes, call->stream);
    return st;
}

static gs_status_t carry_own (gs_comm_t *comm, const struct gsi_message *own, int number,
                              const struct gsi_call *call)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i + 1 < number && !st; i += 2) {
        const struct gsi_message *from = &own[i], *to = &own[i + 1];
        if (!from->bytes || from->buf == to->buf)
            continue;
        if (comm->inflight)
            st = comm->device->ops->streams->copy (to->buf, from->buf, from->bytes, call->stream);
        else
            memmove (to->buf, from->buf, from->bytes);
    }
    return st;
}

/* A call with messages in host memory, which the transport takes from there; [apart] is of a
 * stream of ours. */
static gs_status_t hand_over (gs_comm_t *comm, struct gsi_message *list, int number,
                              const struct gsi_call *apart)
{
    gs_status_t st = GS_OK, waited;

    if (number)
        st = comm->coll->ops->messages (comm->coll, list, number, apart);
    if (st && st != GS_ERR_MISMATCH) /* else all others have gone */
        return st;
    return (waited = gsi_staging_await (comm, apart)) ? waited : st;
}

gs_status_t gsi_p2p_transfer (gs_comm_t *comm, struct gsi_message *list, int number,
                              const struct gsi_message *own, int owns,
                              const struct gsi_call *call)
{
    struct gsi_p2p *p2p = gsi_p2p_of (comm);
    struct gsi_call apart;
    gs_status_t st;

    if (!p2p)
        return gsi_fail (GS_ERR_NOMEM, "out of memory for messages");
    for (int i = 0; i < number; i++)
        if (list[i].send)
            gsi_traffic_hand (comm, list[i].bytes);
    if (!call->staged) {
        st = carry_own (comm, own, owns, call);
        return st || !number ? st : comm->coll->ops->messages (comm->coll, list, number, call);
    }
    if ((st = gsi_staging_side_stream (comm, call, &apart)) ||
        (st = carry_own (comm, own, owns, &apart)))
        return st;
    if (comm->coll->ops->takes_hosts)
        return hand_over (comm, list, number, &apart);
    if ((st = move_there (comm, p2p, list, number, &apart)))
        return st;
    if (number)
        st = comm->coll->ops->messages (comm->coll, p2p->moved.message, number, &apart);
    /* A copy to pageable memory waits without a deadline, so what it waits for comes before. */
    if (st || (st = gsi_staging_await (comm, call)) ||
        (st = move_back (comm, p2p, list, number, &apart)))
        return st;
    return gsi_staging_await (comm, call);
}

void gsi_p2p_close (gs_comm_t *comm)
{
    struct gsi_p2p *p2p = comm->p2p;
    int previous;

    if (!p2p)
        return;
    if (p2p->rooms && !comm->device->ops->streams->enter (comm->device, &previous)) {
        for (int i = 0; i < p2p->rooms; i++)
            comm->device->ops->free (comm->device, p2p->room[i]);
        comm->device->ops->streams->leave (comm->device, previous);
    }
    free (p2p->others.message);
    free (p2p->sends.message);
    free (p2p->recvs.message);
    free (p2p->moved.message);
    free (p2p);
    comm->p2p = NULL;
}
