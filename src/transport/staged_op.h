/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * staged_op - an operation whose arrays lie in memory that a transport does not take: they go to
 * and from other memory in pieces, and the transport has one piece after the other.
 */
#ifndef GS_COLL_STAGED_OP_H
#define GS_COLL_STAGED_OP_H

#include "transport/coll.h"

/*
 * What goes in has [ins] parts, what comes out [outs] of them, each [bytes] long, and one of the
 * numbers is 1; NULL: nothing goes in or comes out here.
 */
struct gsi_staged_op {
    const char *in;
    char *out;
    size_t bytes, unit; /* pieces are multiples of [unit] */
    int ins, outs;
    int place; /* among the parts, of the one that is alone */
    const struct gsi_reduction *how;
    int root;

    /* The operation of [coll] on a piece, whose parts lie in [memory], each [bytes] long. */
    gs_status_t (*run) (const struct gsi_staged_op *op, struct gsi_coll *coll, char *memory,
                        size_t bytes, const struct gsi_call *call);
};

/* As the operations of struct gsi_coll_ops with these names; this is [rank] of [size]. */
struct gsi_staged_op gsi_staged_allreduce (void *buf, size_t count,
                                           const struct gsi_reduction *how);
struct gsi_staged_op gsi_staged_broadcast (void *buf, size_t bytes, int root, int rank);
struct gsi_staged_op gsi_staged_allgather (const void *send, void *recv, size_t bytes, int rank,
                                           int size);
struct gsi_staged_op gsi_staged_reduce_scatter (const void *send, void *recv, size_t count,
                                                const struct gsi_reduction *how, int rank,
                                                int size);
struct gsi_staged_op gsi_staged_reduce (const void *send, void *recv, size_t count,
                                        const struct gsi_reduction *how, int root, int rank);

/* Parts of a piece in memory, all with it. */
static inline size_t gsi_staged_parts (const struct gsi_staged_op *op)
{
    return (size_t) (op->ins > op->outs ? op->ins : op->outs);
}

/* Bytes of a part of a piece that takes [room]; a unit at least. The same on all ranks. */
static inline size_t gsi_staged_piece (const struct gsi_staged_op *op, size_t room)
{
    size_t piece = room / gsi_staged_parts (op) / op->unit * op->unit;

    return piece ? piece : op->unit;
}

/* Where part [i] of [parts] lies in memory, in pieces of [bytes]. */
static inline size_t gsi_staged_at (const struct gsi_staged_op *op, int parts, int i,
                                    size_t bytes)
{
    return (size_t) (parts > 1 ? i : op->place) * bytes;
}

#endif /* GS_COLL_STAGED_OP_H */
