/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p - messages between pairs of ranks: noted one by one, and sent as a group.
 *
 * Who is no end of a message knows nothing of it, so messages are not among the calls that all
 * ranks count: see gsi_call_begin_messages.
 */
#ifndef GS_P2P_P2P_H
#define GS_P2P_P2P_H

#include "call/call.h"

/*
 * Checks a message to or from [peer] for [caller] and notes it; outside of a group it goes at
 * once. A failure of the checks notes nothing.
 */
gs_status_t gsi_p2p_note (gs_comm_t *comm, const char *caller, bool send, void *buf, size_t count,
                          gs_dtype_t dtype, int peer, gs_stream_t stream);

/* A group of them, which may be inside another one. */
gs_status_t gsi_p2p_begin (gs_comm_t *comm, const char *caller);
gs_status_t gsi_p2p_end (gs_comm_t *comm, const char *caller);

/* GS_ERR_STATE in a group: messages that are noted have not gone yet. A dead communicator has
 * none. */
gs_status_t gsi_p2p_none_open (const gs_comm_t *comm, const char *caller);

/* The text of GS_ERR_MISMATCH of messages: both ends of the first that disagree. */
gs_status_t gsi_p2p_disagree (const gs_comm_t *comm, const struct gsi_message *list, int number);

/* transfer.c: hands messages to and from other ranks to the transport, in any call; in one that
 * is staged any may be in host memory. So are those of a rank to itself, [own], or NULL, where
 * what it sends and receives alternates. */
gs_status_t gsi_p2p_transfer (gs_comm_t *comm, struct gsi_message *list, int number,
                              const struct gsi_message *own, int owns,
                              const struct gsi_call *call);

/* Frees what messages needed, when all have ended. */
void gsi_p2p_close (gs_comm_t *comm);

/* ---- Of p2p.c and transfer.c ---- */

#define GSI_P2P_NAMED  3   /* messages of a group that are remembered */
#define GSI_P2P_GROUPS 128 /* groups whose messages are: more than a GPU has under way */
#define GSI_P2P_ROOMS  48

struct gsi_p2p_list {
    struct gsi_message *message; /* [room] */
    int number, room;
};

/* Some messages of a group, for when it does not end. */
struct gsi_p2p_group {
    uint64_t message; /* its number */
    int named;
    struct gsi_message first[GSI_P2P_NAMED];
};

struct gsi_p2p {
    int depth; /* groups that are open, one in the other */
    bool staged;
    gs_stream_t stream;
    struct gsi_p2p_list others, sends, recvs; /* with other ranks, to and from itself */
    size_t elements;                          /* of them all */
    struct gsi_p2p_group group[GSI_P2P_GROUPS];

    struct gsi_p2p_list moved; /* messages on their way over memory of the GPU: */
    void *room[GSI_P2P_ROOMS]; /* each at least twice as large as the last */
    size_t room_bytes;
    int rooms;
};

/* The communicator's, made at the first use; NULL: out of memory. */
struct gsi_p2p *gsi_p2p_of (gs_comm_t *comm);

/* Room for [number] messages in all. */
gs_status_t gsi_p2p_reserve (struct gsi_p2p_list *list, int number);

#endif /* GS_P2P_P2P_H */
