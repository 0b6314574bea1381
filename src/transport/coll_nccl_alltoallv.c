/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_nccl_alltoallv - groups of messages: every rank hands something to each, or some do. */
#include "base/status.h"
#include "transport/coll_nccl.h"

static ncclResult_t post (ncclComm_t comm, const struct gsi_alltoallv *x, int to, int from,
                          const struct gsi_call *call)
{
    ncclResult_t rc = ncclSuccess;

    if (x->send_bytes[to])
        rc = gsi_nccl.Send (x->send + x->send_at[to], x->send_bytes[to], ncclInt8, to, comm,
                            call->stream);
    if (!rc && x->recv_bytes[from])
        rc = gsi_nccl.Recv (x->recv + x->recv_at[from], x->recv_bytes[from], ncclInt8, from, comm,
                            call->stream);
    return rc;
}

gs_status_t gsi_nccl_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    const char *own = x->send + x->send_at[c->rank];
    char *place = x->recv + x->recv_at[c->rank];
    gs_status_t st = GS_OK;

    if (x->recv_bytes[c->rank] && own != place)
        st = c->queue->copy (place, own, x->recv_bytes[c->rank], call->stream);
    for (int begin = 1; begin < c->size && !st; begin += GSI_NCCL_GROUP) {
        ncclComm_t comm = gsi_nccl_enter (c);
        ncclResult_t rc = gsi_nccl.GroupStart (), ended;
        if (rc) /* there is no group to end */
            return gsi_nccl_leave (c, "ncclGroupStart", rc);
        for (int d = begin; d < c->size && d < begin + GSI_NCCL_GROUP && !rc; d++)
            rc = post (comm, x, (c->rank + d) % c->size, (c->rank + c->size - d) % c->size, call);
        ended = gsi_nccl.GroupEnd ();
        st = gsi_nccl_leave (c, "an alltoallv", rc ? rc : ended);
    }
    for (int r = 0; r < c->size && !st; r++)
        if (r != c->rank)
            gsi_coll_sent (coll, r, x->send_bytes[r]);
    return st;
}

gs_status_t gsi_nccl_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                               const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclComm_t comm = gsi_nccl_enter (c);
    ncclResult_t rc = gsi_nccl.GroupStart (), ended;

    if (rc) /* there is no group to end */
        return gsi_nccl_leave (c, "ncclGroupStart", rc);
    for (int i = 0; i < number && !rc; i++) {
        const struct gsi_message *m = &list[i];
        if (m->send)
            gsi_coll_sent (coll, m->peer, m->bytes);
        if (m->bytes && m->send)
            rc = gsi_nccl.Send (m->buf, m->bytes, ncclInt8, m->peer, comm, call->stream);
        else if (m->bytes)
            rc = gsi_nccl.Recv (m->buf, m->bytes, ncclInt8, m->peer, comm, call->stream);
    }
    ended = gsi_nccl.GroupEnd ();
    return gsi_nccl_leave (c, "messages", rc ? rc : ended);
}
