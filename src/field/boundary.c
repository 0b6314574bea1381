/* SPDX-License-Identifier: BSD-3-Clause */
/* boundary - what two stages of a pipeline hand to each other, agreed once by both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/process.h"
#include "p2p/p2p.h"

#define MAGIC UINT64_C (0x6772616462647279)

static const char caller[] = "gs_boundary_create";

struct gs_boundary {
    uint64_t magic;
    gs_comm_t *comm;
    int from, to;
    size_t count;
    gs_dtype_t dtype;
};

/* What the ends tell each other; all in words of one size. */
struct end_word {
    uint64_t status; /* not GS_OK: this end cannot go on */
    uint64_t from;   /* the rank that is before the boundary */
    uint64_t dims, dtype, shape[GS_BOUNDARY_DIMS_MAX];
};
#define WORD_COUNT (sizeof (struct end_word) / sizeof (uint64_t))

/* ---- Making it ---- */

static gs_status_t check_ranks (const gs_comm_t *comm, int from, int to)
{
    int own = comm->topo.rank;
    gs_status_t st = gsi_comm_has_rank (comm, caller, "from", from);

    if (st || (st = gsi_comm_has_rank (comm, caller, "to", to)))
        return st;
    if (from == to)
        return gsi_fail (GS_ERR_ARG,
                         "%s: from and to are both rank %d: a boundary is between two ranks",
                         caller, from);
    if (own == from || own == to)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "%s: rank %d is neither from (%d) nor to (%d): only the two stages call",
                     caller, own, from, to);
}

/* Checks what this end gives, and finds how many elements cross. */
static gs_status_t check_shape (const size_t *shape, int dims, gs_dtype_t dtype, size_t *count)
{
    size_t bytes;

    if (dims < 1 || dims > GS_BOUNDARY_DIMS_MAX)
        return gsi_fail (GS_ERR_ARG, "%s: dims is %d: 1 to %d can be had", caller, dims,
                         GS_BOUNDARY_DIMS_MAX);
    if (!shape)
        return gsi_fail (GS_ERR_ARG, "%s: shape is NULL", caller);
    if (!gsi_dims_count (shape, dims, count))
        return gsi_fail (GS_ERR_ARG, "%s: shape has more elements than memory can hold", caller);
    return gsi_dtype_bytes (caller, *count, dtype, &bytes);
}

/* "2 x 3 of GS_F32" */
static void describe_end (const struct end_word *word, char *text, size_t room)
{
    size_t used;
    int dims = word->dims < GS_BOUNDARY_DIMS_MAX ? (int) word->dims : GS_BOUNDARY_DIMS_MAX;

    gsi_dims_write (word->shape, dims, " x ", text, room);
    used = strlen (text);
    snprintf (text + used, room - used, " of %s", gsi_dtype_name ((gs_dtype_t) word->dtype));
}

/* The same verdict on both ends; a failure of this one has its text already. */
static gs_status_t compare_ends (const gs_boundary_t *b, const struct end_word *own,
                                 const struct end_word *other, int peer)
{
    const gs_comm_t *comm = b->comm;
    char mine[256], theirs[256];

    if (own->status)
        return (gs_status_t) own->status;
    if (other->status)
        return gsi_fail ((gs_status_t) other->status,
                         "%s: rank %d (host %s) could not make its end; its own text says why",
                         caller, peer, comm->hosts[peer]);
    if (own->from != other->from)
        return gsi_fail (GS_ERR_MISMATCH,
                         "%s: rank %d (host %s) gives from %d and to %d, rank %d (host %s) the "
                         "other way round: both ends give the same",
                         caller, comm->topo.rank, comm->hosts[comm->topo.rank], b->from, b->to,
                         peer, comm->hosts[peer]);
    if (!memcmp (own, other, sizeof (*own)))
        return GS_OK;
    describe_end (own, mine, sizeof (mine));
    describe_end (other, theirs, sizeof (theirs));
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) expects %s, rank %d (host %s) expects %s: both ends "
                     "must give the same shape and dtype",
                     caller, b->from, comm->hosts[b->from], peer == b->from ? theirs : mine,
                     b->to, comm->hosts[b->to], peer == b->to ? theirs : mine);
}

/* Both ends tell, whatever their own checks said. */
static gs_status_t tell_peer (gs_comm_t *comm, const struct end_word *own, struct end_word *other,
                              int peer)
{
    char text[GSI_TEXT_MAX];
    gs_status_t st, ended;

    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    if ((st = gsi_p2p_begin (comm, caller)))
        return st == GS_ERR_NOMEM ? gsi_call_no_memory (comm, GSI_OP_MESSAGES, caller) : st;
    st = gsi_p2p_note (comm, caller, true, (void *) (uintptr_t) own, WORD_COUNT, GS_U64, peer,
                       NULL);
    if (!st)
        st = gsi_p2p_note (comm, caller, false, other, WORD_COUNT, GS_U64, peer, NULL);
    ended = gsi_p2p_end (comm, caller);
    st = st ? st : ended;
    if (st == GS_ERR_NOMEM && !gs_comm_check (comm)) /* the other end has half of it */
        st = gsi_call_no_memory (comm, GSI_OP_MESSAGES, caller);
    if (!st && own->status)
        gsi_fail ((gs_status_t) own->status, "%s", text);
    return st;
}

gs_status_t gs_boundary_create (gs_comm_t *comm, int from, int to, int dims, const size_t *shape,
                                gs_dtype_t dtype, gs_boundary_t **boundary)
{
    struct end_word own = {.from = (uint64_t) from, .dims = (uint64_t) dims, .dtype = dtype},
                    other = {0};
    gs_boundary_t made = {.magic = MAGIC, .comm = comm, .from = from, .to = to, .dtype = dtype},
                  *b;
    gs_status_t st;
    int peer;

    if (!boundary)
        return gsi_fail (GS_ERR_ARG, "%s: boundary is NULL", caller);
    *boundary = NULL;
    if ((st = gsi_comm_valid (comm, caller)) || (st = check_ranks (comm, from, to)) ||
        (st = gsi_comm_alive (comm)) || (st = gsi_p2p_none_open (comm, caller)))
        return gsi_result (st);
    if (!(own.status = check_shape (shape, dims, dtype, &made.count)))
        for (int d = 0; d < dims; d++)
            own.shape[d] = shape[d];
    if (!(b = calloc (1, sizeof (*b))) && !own.status)
        own.status = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    peer = comm->topo.rank == from ? to : from;
    if (!(st = tell_peer (comm, &own, &other, peer)))
        st = compare_ends (&made, &own, &other, peer);
    if (st) {
        free (b);
        return gsi_result (st);
    }
    *b = made;
    atomic_fetch_add (&comm->features, 1);
    *boundary = b;
    return gsi_result (GS_OK);
}

/* ---- Using it ---- */

static gs_status_t check_handle (const gs_boundary_t *b, const char *call)
{
    return gsi_handle_check (call, "boundary", "boundary", b, b && b->magic == MAGIC);
}

static gs_status_t cross (gs_boundary_t *b, const char *call, bool forward, void *buf,
                          gs_stream_t stream)
{
    gs_status_t st = check_handle (b, call);
    bool is_from;

    if (st)
        return st;
    is_from = b->comm->topo.rank == b->from;
    return gsi_p2p_note (b->comm, call, is_from == forward, buf, b->count, b->dtype,
                         is_from ? b->to : b->from, stream);
}

gs_status_t gs_boundary_forward (gs_boundary_t *boundary, void *activations, gs_stream_t stream)
{
    return gsi_result (cross (boundary, "gs_boundary_forward", true, activations, stream));
}

gs_status_t gs_boundary_backward (gs_boundary_t *boundary, void *gradients, gs_stream_t stream)
{
    return gsi_result (cross (boundary, "gs_boundary_backward", false, gradients, stream));
}

gs_status_t gs_boundary_destroy (gs_boundary_t *boundary)
{
    gs_status_t st = boundary ? check_handle (boundary, "gs_boundary_destroy") : GS_OK;

    if (!boundary || st)
        return gsi_result (st);
    atomic_fetch_sub (&boundary->comm->features, 1);
    boundary->magic = 0;
    free (boundary);
    return gsi_result (GS_OK);
}
