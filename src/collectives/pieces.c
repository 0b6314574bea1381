/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces - arrays that consist of a piece for every rank: checks, and where they lie. */
#include "collectives/pieces.h"

#include <stdlib.h>

#include "base/dims.h"

static size_t count_of (const struct gsi_pieces *p, int rank)
{
    return p->counts ? p->counts[rank] : p->each;
}

/* ---- Checks before a call ---- */

gs_status_t gsi_pieces_extent (const struct gsi_request *req, const struct gsi_pieces *p,
                               size_t *extent)
{
    size_t next = 0;

    *extent = 0;
    for (int r = 0; r < req->comm->topo.size; r++) {
        size_t at = p->displs ? p->displs[r] : next, count = count_of (p, r), end;
        if (__builtin_add_overflow (at, count, &end) || end > PTRDIFF_MAX)
            return gsi_fail (GS_ERR_ARG,
                             "%s: the piece of rank %d in %s, %zu elements from %zu on, ends "
                             "beyond what memory can hold",
                             req->caller, r, p->what, count, at);
        next = end;
        if (count && end > *extent)
            *extent = end;
    }
    return GS_OK;
}

struct place {
    size_t at, end;
    int rank;
};

static int by_place (const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Pieces that are written must not overlap. Without memory to compare them they are trusted: a
 * rank that refused the call for that would leave the others in it. */
static gs_status_t check_apart (const struct gsi_request *req, const struct gsi_pieces *p)
{
    const gs_comm_t *comm = req->comm;
    struct place *places;
    gs_status_t st = GS_OK;
    int n = 0;

    if (!p->displs || comm->check == GSI_CHECK_OFF ||
        !(places = calloc ((size_t) comm->topo.size, sizeof (*places))))
        return GS_OK;
    for (int r = 0; r < comm->topo.size; r++)
        if (count_of (p, r))
            places[n++] = (struct place){p->displs[r], p->displs[r] + count_of (p, r), r};
    qsort (places, (size_t) n, sizeof (*places), by_place);
    for (int i = 1; i < n && !st; i++)
        if (places[i].at < places[i - 1].end)
            st = gsi_fail (GS_ERR_ARG,
                           "%s: in %s the pieces of ranks %d (elements %zu to %zu) and %d (from "
                           "%zu on) overlap: give them displacements apart",
                           req->caller, p->what, places[i - 1].rank, places[i - 1].at,
                           places[i - 1].end - 1, places[i].rank, places[i].at);
    free (places);
    return st;
}

gs_status_t gsi_pieces_check (const struct gsi_request *r, const struct gsi_pieces *p,
                              bool written, struct gsi_extent *extent)
{
    size_t count;
    gs_status_t st = gsi_comm_valid (r->comm, r->caller);

    if (st || (st = gsi_pieces_extent (r, p, &count)) || (written && (st = check_apart (r, p))))
        return st;
    return gsi_call_check (r, p->buf, count, extent);
}

gs_status_t gsi_pieces_part (const struct gsi_request *r, const size_t *counts, size_t count)
{
    int own = r->comm->topo.rank;
    char mine[16];

    if (!counts)
        return gsi_fail (GS_ERR_ARG,
                         "%s: counts is NULL: give the lengths of the pieces of all ranks, which "
                         "gs_allgather of each rank's makes",
                         r->caller);
    if (counts[own] != count)
        return gsi_fail (GS_ERR_ARG, "%s: rank %d gives %zu elements, but counts%s is %zu",
                         r->caller, own, count, gsi_dims_subscript (own, mine), counts[own]);
    return GS_OK;
}

const char *gsi_pieces_place (const struct gsi_request *req, const struct gsi_pieces *p)
{
    int own = req->comm->topo.rank;
    size_t at = 0;

    if (!p->counts)
        return NULL; /* not known yet */
    for (int r = 0; r < own; r++)
        at += p->counts[r];
    return (const char *) p->buf + (p->displs ? p->displs[own] : at) * gs_dtype_size (req->dtype);
}

gs_status_t gsi_pieces_pair (const struct gsi_request *r, const void *send,
                             const struct gsi_extent *in, const void *recv,
                             const struct gsi_extent *out, bool in_place)
{
    const char *a = send, *b = recv;

    if (!in->bytes || !out->bytes)
        return GS_OK;
    if (in->staged != out->staged)
        return gsi_fail (
            GS_ERR_DEVICE, "%s: send is in %s memory, recv in %s memory: put both into the same",
            r->caller, in->staged ? "host" : "device", out->staged ? "host" : "device");
    if (!in_place && r->comm->check != GSI_CHECK_OFF && a < b + out->bytes && b < a + in->bytes)
        return gsi_fail (GS_ERR_ARG,
                         "%s: send and recv overlap, other than where this rank's own piece may "
                         "stay in its place",
                         r->caller);
    return GS_OK;
}

/* ---- In a call ---- */

/* The four arrays of an alltoallv in comm->lengths. */
enum { SEND_AT, SEND_BYTES, RECV_AT, RECV_BYTES };

static size_t *words (const gs_comm_t *comm, int which)
{
    return comm->lengths + (size_t) which * (size_t) comm->topo.size;
}

struct gsi_alltoallv gsi_pieces_alltoallv (const gs_comm_t *comm, const void *send, void *recv)
{
    return (struct gsi_alltoallv){.send = send,
                                  .recv = recv,
                                  .send_at = words (comm, SEND_AT),
                                  .send_bytes = words (comm, SEND_BYTES),
                                  .recv_at = words (comm, RECV_AT),
                                  .recv_bytes = words (comm, RECV_BYTES)};
}

static void lay_out_pieces (const struct gsi_request *req, const struct gsi_pieces *p, int only,
                            int which)
{
    const gs_comm_t *comm = req->comm;
    size_t width = gs_dtype_size (req->dtype);
    size_t *at = words (comm, which), *bytes = words (comm, which + 1), next = 0;

    for (int r = 0; r < comm->topo.size; r++) {
        bool wanted = only == GSI_PIECES_ALL || only == r;
        size_t count = wanted || !p->displs ? count_of (p, r) : 0;
        at[r] = wanted ? (p->displs ? p->displs[r] : next) * width : 0;
        bytes[r] = wanted ? count * width : 0;
        next += count;
    }
}

static void lay_same (const gs_comm_t *comm, size_t size, int only, int which)
{
    for (int r = 0; r < comm->topo.size; r++) {
        words (comm, which)[r] = 0;
        words (comm, which + 1)[r] = only == GSI_PIECES_ALL || only == r ? size : 0;
    }
}

void gsi_pieces_send (const struct gsi_request *r, const struct gsi_pieces *from, int only)
{
    lay_out_pieces (r, from, only, SEND_AT);
}

void gsi_pieces_recv (const struct gsi_request *r, const struct gsi_pieces *to, int only)
{
    lay_out_pieces (r, to, only, RECV_AT);
}

void gsi_pieces_send_same (const gs_comm_t *comm, size_t bytes, int only)
{
    lay_same (comm, bytes, only, SEND_AT);
}

void gsi_pieces_recv_same (const gs_comm_t *comm, size_t bytes, int only)
{
    lay_same (comm, bytes, only, RECV_AT);
}
