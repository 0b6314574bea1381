/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces - arrays that consist of a piece for every rank: checks, and where they lie. */
#ifndef GS_COLLECTIVES_PIECES_H
#define GS_COLLECTIVES_PIECES_H

#include "call/call.h"

/* Pieces of an array, by rank, as the caller gives them. */
struct gsi_pieces {
    const char *what; /* the argument's name */
    const void *buf;
    const size_t *counts, *displs; /* [size] elements; displs may be NULL */
    size_t each;                   /* where counts is NULL: of every rank */
};

/* Elements from the beginning of the array to the end of its last piece. */
gs_status_t gsi_pieces_extent (const struct gsi_request *r, const struct gsi_pieces *p,
                               size_t *extent);

/* Checks an array of pieces, as gsi_call_check does; [written]: they are received. */
gs_status_t gsi_pieces_check (const struct gsi_request *r, const struct gsi_pieces *p,
                              bool written, struct gsi_extent *extent);

/* Both arrays are in the same kind of memory, and apart unless [in_place]. */
gs_status_t gsi_pieces_pair (const struct gsi_request *r, const void *send,
                             const struct gsi_extent *in, const void *recv,
                             const struct gsi_extent *out, bool in_place);

/* Whether [counts] are there, and this rank's is [count]. */
gs_status_t gsi_pieces_part (const struct gsi_request *r, const size_t *counts, size_t count);

/* Where this rank's piece is; NULL without counts. */
const char *gsi_pieces_place (const struct gsi_request *r, const struct gsi_pieces *p);

#define GSI_PIECES_NONE (-2)
#define GSI_PIECES_ALL  (-1)

/*
 * An alltoallv, inside a call, whose places and lengths are then set: the pieces of an array for
 * all ranks, none or [only] one;
 */
struct gsi_alltoallv gsi_pieces_alltoallv (const gs_comm_t *comm, const void *send, void *recv);
void gsi_pieces_send (const struct gsi_request *r, const struct gsi_pieces *from, int only);
void gsi_pieces_recv (const struct gsi_request *r, const struct gsi_pieces *to, int only);

/* or one piece: the same [bytes] go from the beginning of send to all ranks, or to [only]; or
 * come from it. */
void gsi_pieces_send_same (const gs_comm_t *comm, size_t bytes, int only);
void gsi_pieces_recv_same (const gs_comm_t *comm, size_t bytes, int only);

#endif /* GS_COLLECTIVES_PIECES_H */
