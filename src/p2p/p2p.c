/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p - messages between pairs of ranks: noted one by one, and sent as a group. */
#include "p2p/p2p.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fault.h"

/* ---- What there is ---- */

gs_status_t gsi_p2p_reserve (struct gsi_p2p_list *list, int number)
{
    int room = list->room ? list->room : 8;
    struct gsi_message *message;

    if (number <= list->room)
        return GS_OK;
    while (room < number)
        room *= 2;
    if (!(message = realloc (list->message, (size_t) room * sizeof (*message))))
        return gsi_fail (GS_ERR_NOMEM, "no memory for %d messages", number);
    list->message = message;
    list->room = room;
    return GS_OK;
}

static gs_status_t append (struct gsi_p2p_list *list, const struct gsi_message *message)
{
    gs_status_t st = gsi_p2p_reserve (list, list->number + 1);

    if (!st)
        list->message[list->number++] = *message;
    return st;
}

static int total (const struct gsi_p2p *p2p)
{
    return p2p->others.number + p2p->sends.number + p2p->recvs.number;
}

static void forget (struct gsi_p2p *p2p)
{
    p2p->others.number = p2p->sends.number = p2p->recvs.number = 0;
    p2p->elements = 0;
    p2p->staged = false;
}

/* ---- Names ---- */

/* "rank 1 (host a) waits to send 40 bytes to rank 3 (host b)" */
static int name_ends (const gs_comm_t *comm, const struct gsi_message *m, char *text, size_t room)
{
    int own = comm->topo.rank;

    return snprintf (text, room, "rank %d (host %s) waits to %s %zu bytes %s rank %d (host %s)",
                     own, comm->hosts[own], m->send ? "send" : "receive", m->bytes,
                     m->send ? "to" : "from", m->peer, comm->hosts[m->peer]);
}

static void name_message (const gs_comm_t *comm, const struct gsi_message *m, bool known,
                          bool came, char *text, size_t room)
{
    size_t used = strlen (text);

    if (used)
        used += (size_t) snprintf (text + used, room - used, "; ");
    if (used >= room)
        return;
    used += (size_t) name_ends (comm, m, text + used, room - used);
    if (used < room)
        snprintf (text + used, room - used, "%s",
                  !known    ? ", of which nothing is known here"
                  : m->met  ? ", which came, but the transfer did not end"
                  : came    ? ", which waits in another call and has not come to that"
                  : m->send ? ", which did not come to receive them"
                            : ", which did not come to send them");
}

/* Completes the text of a timeout of [call], of messages, with both ends of some that wait;
 * came[rank], or NULL, is whether that rank is known to wait elsewhere. */
static void name_waiting (const gs_comm_t *comm, const struct gsi_call *call,
                          const unsigned char *came, char *text, size_t room)
{
    const struct gsi_p2p *p2p = comm->p2p;
    const struct gsi_p2p_group *group = &p2p->group[call->message % GSI_P2P_GROUPS];
    const struct gsi_coll_ops *ops = comm->coll->ops;
    bool tells = !ops->queued || ops->takes_hosts; /* the transport, who has met */
    const struct gsi_message *list = tells ? p2p->others.message : group->first;
    int number = tells ? p2p->others.number : group->named, named = 0;

    *text = 0;
    if (!tells && group->message != call->message)
        number = 0;
    for (int met = 0; met < 2; met++) /* who did not come is named first */
        for (int i = 0; i < number && named < GSI_P2P_NAMED; i++)
            if (list[i].met == (bool) met && (!met || !named)) {
                name_message (comm, &list[i], tells, came && came[list[i].peer], text, room);
                named++;
            }
    if (!named)
        snprintf (text, room, "which messages it was waiting for is not known any more");
}

struct gsi_p2p *gsi_p2p_of (gs_comm_t *comm)
{
    if (!comm->p2p && !gsi_fault ("p2p.memory"))
        comm->p2p = calloc (1, sizeof (*comm->p2p));
    if (comm->p2p)
        comm->name_ends = name_waiting;
    return comm->p2p;
}

static const char *type_name (gs_dtype_t dtype)
{
    return gs_dtype_size (dtype) ? gsi_dtype_name (dtype) : "unknown type";
}

gs_status_t gsi_p2p_disagree (const gs_comm_t *comm, const struct gsi_message *list, int number)
{
    for (int i = 0; i < number; i++) {
        const struct gsi_message *m = &list[i];
        size_t bytes[] = {m->bytes, m->other_bytes};
        gs_dtype_t dtype[] = {m->dtype, m->other_dtype};
        int rank[] = {comm->topo.rank, m->peer}, s = !m->send, r = m->send;
        if (!m->met || (bytes[0] == bytes[1] && dtype[0] == dtype[1]))
            continue;
        return gsi_fail (GS_ERR_MISMATCH,
                         "a message of communicator '%s': rank %d (host %s) sends %zu bytes of "
                         "%s, but rank %d (host %s) receives %zu bytes of %s: both ends must "
                         "give the same count and dtype; messages of a pair are matched in order",
                         comm->name, rank[s], comm->hosts[rank[s]], bytes[s],
                         type_name (dtype[s]), rank[r], comm->hosts[rank[r]], bytes[r],
                         type_name (dtype[r]));
    }
    return GS_ERR_MISMATCH;
}

/* ---- A group ---- */

/* What a rank sends to itself it also receives, in the same group. The sends and receives are
 * made to alternate, in [p2p]->sends. */
static gs_status_t pair_own (const gs_comm_t *comm, struct gsi_p2p *p2p, const char *caller)
{
    int n = p2p->sends.number;
    gs_status_t st;

    if (n != p2p->recvs.number)
        return gsi_fail (GS_ERR_ARG,
                         "%s: rank %d sends %d messages to itself, but receives %d: give both "
                         "in one group",
                         caller, comm->topo.rank, n, p2p->recvs.number);
    for (int i = 0; i < n; i++) {
        const struct gsi_message *s = &p2p->sends.message[i], *r = &p2p->recvs.message[i];
        if (s->bytes != r->bytes || s->dtype != r->dtype)
            return gsi_fail (GS_ERR_MISMATCH,
                             "%s: rank %d sends %zu bytes of %s to itself, but receives %zu "
                             "bytes of %s",
                             caller, comm->topo.rank, s->bytes, type_name (s->dtype), r->bytes,
                             type_name (r->dtype));
    }
    if ((st = gsi_p2p_reserve (&p2p->sends, 2 * n)))
        return st;
    for (int i = n - 1; i >= 0; i--) {
        p2p->sends.message[2 * i] = p2p->sends.message[i];
        p2p->sends.message[2 * i + 1] = p2p->recvs.message[i];
    }
    return GS_OK;
}

static void add_to_request (struct gsi_request *r, const struct gsi_p2p_list *list)
{
    for (int i = 0; i < list->number; i++) {
        const struct gsi_message *m = &list->message[i];
        if (!r->argument++)
            r->dtype = m->dtype;
        else if (r->dtype != m->dtype)
            r->dtype = (gs_dtype_t) 0;
    }
}

/* What the flight record says of the group. */
static struct gsi_request request_of (gs_comm_t *comm, const struct gsi_p2p *p2p,
                                      const char *caller)
{
    struct gsi_request r = {.comm = comm,
                            .caller = caller,
                            .op = GSI_OP_MESSAGES,
                            .count = p2p->elements,
                            .stream = p2p->stream};

    add_to_request (&r, &p2p->others);
    add_to_request (&r, &p2p->sends);
    add_to_request (&r, &p2p->recvs);
    if (r.argument == 1) {
        r.op = p2p->others.message[0].send ? GSI_OP_SEND : GSI_OP_RECV;
        r.argument = p2p->others.message[0].peer;
    }
    return r;
}

/* Remembers some messages: of a group that was queued its list is gone when it is late. */
static void remember (struct gsi_p2p *p2p, const struct gsi_call *call)
{
    struct gsi_p2p_group *group = &p2p->group[call->message % GSI_P2P_GROUPS];

    group->message = call->message;
    group->named = p2p->others.number < GSI_P2P_NAMED ? p2p->others.number : GSI_P2P_NAMED;
    for (int i = 0; i < group->named; i++)
        group->first[i] = p2p->others.message[i];
}

/* Sends off what was noted. */
static gs_status_t dispatch (gs_comm_t *comm, struct gsi_p2p *p2p, const char *caller)
{
    struct gsi_request r;
    struct gsi_call call;
    gs_status_t st;

    if (!total (p2p))
        return GS_OK;
    if ((st = pair_own (comm, p2p, caller)))
        return st;
    r = request_of (comm, p2p, caller);
    if ((st = gsi_call_begin_messages (&r, p2p->staged, &call)))
        return st;
    remember (p2p, &call);
    st = gsi_p2p_transfer (comm, p2p->others.message, p2p->others.number, p2p->sends.message,
                           2 * p2p->recvs.number, &call);
    if (st == GS_ERR_MISMATCH) /* both ends know, and all else has gone */
        return gsi_call_refuse (comm,
                                gsi_p2p_disagree (comm, p2p->others.message, p2p->others.number));
    return gsi_call_end (comm, &call, st);
}

/* Takes the p2p for this thread. */
static gs_status_t take_p2p (gs_comm_t *comm, const char *caller)
{
    gs_status_t st = gsi_comm_valid (comm, caller);

    if (st)
        return st;
    gsi_comm_hold (comm);
    if (atomic_flag_test_and_set_explicit (&comm->p2p_busy, memory_order_acquire))
        st = gsi_fail (GS_ERR_STATE,
                       "%s: communicator '%s' is inside another call: one thread at a time",
                       caller, comm->name);
    else if (gsi_p2p_of (comm))
        return GS_OK;
    if (!st) {
        atomic_flag_clear (&comm->p2p_busy);
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    }
    gsi_comm_release (comm);
    return st;
}

static gs_status_t leave_p2p (gs_comm_t *comm, gs_status_t st)
{
    atomic_flag_clear_explicit (&comm->p2p_busy, memory_order_release);
    gsi_comm_release (comm);
    return st;
}

/* Sends the group off, with which it ends, whatever comes of it. */
static gs_status_t finish_group (gs_comm_t *comm, const char *caller)
{
    gs_status_t st = dispatch (comm, comm->p2p, caller);

    forget (comm->p2p);
    return st;
}

gs_status_t gsi_p2p_begin (gs_comm_t *comm, const char *caller)
{
    gs_status_t st = take_p2p (comm, caller);

    if (st)
        return st;
    comm->p2p->depth++;
    return leave_p2p (comm, GS_OK);
}

gs_status_t gsi_p2p_end (gs_comm_t *comm, const char *caller)
{
    gs_status_t st = take_p2p (comm, caller);

    if (st)
        return st;
    if (!comm->p2p->depth)
        st = gsi_fail (GS_ERR_STATE, "%s: no group of '%s' is open: call gs_group_begin first",
                       caller, comm->name);
    else if (!--comm->p2p->depth)
        st = finish_group (comm, caller);
    return leave_p2p (comm, st);
}

gs_status_t gsi_p2p_none_open (const gs_comm_t *comm, const char *caller)
{
    if (!comm->p2p || !comm->p2p->depth || atomic_load (&comm->life) != GSI_ALIVE)
        return GS_OK;
    return gsi_fail (GS_ERR_STATE,
                     "%s: a group of '%s' is open, with %d messages that have not gone: call "
                     "gs_group_end first",
                     caller, comm->name, total (comm->p2p));
}

/* ---- A message ---- */

static gs_status_t check_peer (const gs_comm_t *comm, const char *caller, bool send, int peer)
{
    int own = comm->topo.rank;
    gs_status_t st = gsi_comm_has_rank (comm, caller, "peer", peer);

    if (st || peer != own || comm->p2p->depth)
        return st;
    return gsi_fail (GS_ERR_ARG,
                     "%s: rank %d %s itself outside of a group, and would wait for ever: put "
                     "send and receive between gs_group_begin and gs_group_end",
                     caller, own, send ? "sends to" : "receives from");
}

/* Notes the message if it fits to those that are. */
static gs_status_t note_message (const gs_comm_t *comm, const char *caller,
                                 const struct gsi_message *message, bool staged,
                                 gs_stream_t stream)
{
    struct gsi_p2p *p2p = comm->p2p;
    gs_status_t st;

    if (total (p2p) >= GS_GROUP_MAX)
        return gsi_fail (GS_ERR_ARG, "%s: a group has at most %d messages", caller, GS_GROUP_MAX);
    if (total (p2p) && comm->inflight && p2p->stream != stream)
        return gsi_fail (GS_ERR_ARG,
                         "%s: the messages of a group go on one stream: give that of the first",
                         caller);
    st = append (message->peer != comm->topo.rank ? &p2p->others
                 : message->send                  ? &p2p->sends
                                                  : &p2p->recvs,
                 message);
    if (st)
        return st;
    p2p->stream = stream;
    p2p->staged = p2p->staged || staged;
    return GS_OK;
}

gs_status_t gsi_p2p_note (gs_comm_t *comm, const char *caller, bool send, void *buf, size_t count,
                          gs_dtype_t dtype, int peer, gs_stream_t stream)
{
    struct gsi_message message = {.buf = buf, .peer = peer, .dtype = dtype, .send = send};
    struct gsi_request r = {.comm = comm, .caller = caller, .dtype = dtype};
    struct gsi_extent extent;
    gs_status_t st = take_p2p (comm, caller);

    if (st)
        return st;
    if (!(st = check_peer (comm, caller, send, peer)) &&
        !(st = gsi_call_check (&r, buf, count, &extent))) {
        message.bytes = extent.bytes;
        message.staged = extent.staged;
        if (!(st = note_message (comm, caller, &message, extent.staged, stream)))
            comm->p2p->elements += count;
    }
    if (!st && !comm->p2p->depth)
        st = finish_group (comm, caller);
    return leave_p2p (comm, st);
}

/* ---- The functions ---- */

gs_status_t gs_send (gs_comm_t *comm, const void *buf, size_t count, gs_dtype_t dtype, int peer,
                     gs_stream_t stream)
{
    return gsi_result (gsi_p2p_note (comm, "gs_send", true, (void *) (uintptr_t) buf, count,
                                     dtype, peer, stream));
}

gs_status_t gs_recv (gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype, int peer,
                     gs_stream_t stream)
{
    return gsi_result (gsi_p2p_note (comm, "gs_recv", false, buf, count, dtype, peer, stream));
}

gs_status_t gs_group_begin (gs_comm_t *comm)
{
    return gsi_result (gsi_p2p_begin (comm, "gs_group_begin"));
}

gs_status_t gs_group_end (gs_comm_t *comm)
{
    return gsi_result (gsi_p2p_end (comm, "gs_group_end"));
}
