/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * adjoint - every collective and its gradient are a pair: <A x, y> = <x, A* y> over all ranks,
 * for random shapes, roots and decompositions, in memory of hosts and devices; what the contracts
 * of gathers promise; and gs_adjoint_check, on functions whose gradients are right, and wrong.
 */
#include <math.h>

#include "array.h"

#define ROUNDS    6
#define TOLERANCE 1e-13

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;
static bool compares; /* GS_CHECK=collective */

/* A collective with its shapes: random, the same on all ranks. */
struct pair {
    const char *name;
    gs_dtype_t dtype; /* GS_F64 or GS_C128 */
    int root;
    size_t n; /* of one rank, where all have the same */
    struct pieces p, q;
    bool gaps;
    size_t shape[2], extents[2], offsets[2];
    gs_grad_contract_t contract;
};

/* Elements of x and y of this rank. */
typedef size_t (*length_f) (const struct pair *p);
typedef gs_status_t (*run_f) (const struct pair *p, void *from, void *to);

static const size_t *displs (const struct pair *p)
{
    return p->gaps ? p->p.displs : NULL;
}

/* ---- Lengths ---- */

static size_t each (const struct pair *p)
{
    return p->n;
}

static size_t all (const struct pair *p)
{
    return p->n * (size_t) size;
}

static size_t each_of_root (const struct pair *p)
{
    return rank == p->root ? p->n : 0;
}

static size_t all_of_root (const struct pair *p)
{
    return rank == p->root ? p->n * (size_t) size : 0;
}

static size_t piece (const struct pair *p)
{
    return p->p.counts[rank];
}

static size_t pieces (const struct pair *p)
{
    return p->p.extent;
}

static size_t pieces_of_root (const struct pair *p)
{
    return rank == p->root ? p->p.extent : 0;
}

static size_t back_pieces (const struct pair *p)
{
    return p->q.extent;
}

static size_t block (const struct pair *p)
{
    return p->extents[0] * p->extents[1];
}

static size_t field (const struct pair *p)
{
    return p->root < 0 || rank == p->root ? p->shape[0] * p->shape[1] : 0;
}

/* ---- Pairs: to y, and back ---- */

static gs_status_t do_allgather (const struct pair *p, void *x, void *y)
{
    return gs_allgather (comm, x, y, p->n, p->dtype, NULL);
}

static gs_status_t undo_allgather (const struct pair *p, void *y, void *x)
{
    return gs_allgather_backward (comm, y, x, p->n, p->dtype, p->contract, NULL);
}

static gs_status_t do_allgatherv (const struct pair *p, void *x, void *y)
{
    return gs_allgatherv (comm, x, piece (p), y, p->p.extent, p->p.counts, displs (p), p->dtype,
                          NULL);
}

static gs_status_t undo_allgatherv (const struct pair *p, void *y, void *x)
{
    return gs_allgatherv_backward (comm, y, p->p.counts, displs (p), x, piece (p), p->dtype,
                                   p->contract, NULL);
}

static gs_status_t do_gather (const struct pair *p, void *x, void *y)
{
    return gs_gather (comm, x, y, p->n, p->dtype, p->root, NULL);
}

static gs_status_t undo_gather (const struct pair *p, void *y, void *x)
{
    return gs_gather_backward (comm, y, x, p->n, p->dtype, p->root, NULL);
}

static gs_status_t do_gatherv (const struct pair *p, void *x, void *y)
{
    return gs_gatherv (comm, x, piece (p), y, p->p.extent, p->p.counts, displs (p), p->dtype,
                       p->root, NULL);
}

static gs_status_t undo_gatherv (const struct pair *p, void *y, void *x)
{
    return gs_gatherv_backward (comm, y, p->p.counts, displs (p), x, piece (p), p->dtype, p->root,
                                NULL);
}

static gs_status_t do_scatter (const struct pair *p, void *x, void *y)
{
    return gs_scatter (comm, x, y, p->n, p->dtype, p->root, NULL);
}

static gs_status_t undo_scatter (const struct pair *p, void *y, void *x)
{
    return gs_scatter_backward (comm, y, x, p->n, p->dtype, p->root, NULL);
}

static gs_status_t do_scatterv (const struct pair *p, void *x, void *y)
{
    return gs_scatterv (comm, x, p->p.counts, displs (p), y, piece (p), p->dtype, p->root, NULL);
}

static gs_status_t undo_scatterv (const struct pair *p, void *y, void *x)
{
    return gs_scatterv_backward (comm, y, piece (p), x, p->p.extent, p->p.counts, displs (p),
                                 p->dtype, p->root, NULL);
}

static gs_status_t do_alltoall (const struct pair *p, void *x, void *y)
{
    return gs_alltoall (comm, x, y, p->n, p->dtype, NULL);
}

static gs_status_t undo_alltoall (const struct pair *p, void *y, void *x)
{
    return gs_alltoall_backward (comm, y, x, p->n, p->dtype, NULL);
}

static gs_status_t do_alltoallv (const struct pair *p, void *x, void *y)
{
    return gs_alltoallv (comm, x, p->p.counts, displs (p), y, p->q.counts, NULL, p->dtype, NULL);
}

static gs_status_t undo_alltoallv (const struct pair *p, void *y, void *x)
{
    return gs_alltoallv_backward (comm, y, p->q.counts, NULL, x, p->p.counts, displs (p),
                                  p->dtype, NULL);
}

static gs_status_t do_broadcast (const struct pair *p, void *x, void *y)
{
    size_t bytes = p->n * gs_dtype_size (p->dtype);

    if (rank == p->root && bytes)
        CHECK_OK (gs_device_copy (comm, y, x, bytes, NULL));
    return gs_broadcast (comm, y, p->n, p->dtype, p->root, NULL);
}

static gs_status_t undo_broadcast (const struct pair *p, void *y, void *x)
{
    return gs_broadcast_backward (comm, y, rank == p->root ? x : NULL, p->n, p->dtype, p->root,
                                  NULL);
}

static gs_status_t copy_and (gs_status_t (*call) (const struct pair *p, void *grad),
                             const struct pair *p, const void *from, void *to)
{
    size_t bytes = p->n * gs_dtype_size (p->dtype);

    if (bytes)
        CHECK_OK (gs_device_copy (comm, to, from, bytes, NULL));
    return call (p, to);
}

static gs_status_t sum (const struct pair *p, void *grad)
{
    return gs_allreduce (comm, grad, p->n, p->dtype, GS_SUM, NULL);
}

static gs_status_t sum_back (const struct pair *p, void *grad)
{
    return gs_allreduce_backward (comm, grad, p->n, p->dtype, GS_SUM, NULL);
}

static gs_status_t average (const struct pair *p, void *grad)
{
    return gs_allreduce_avg (comm, grad, p->n, p->dtype, NULL);
}

static gs_status_t average_back (const struct pair *p, void *grad)
{
    return gs_allreduce_backward (comm, grad, p->n, p->dtype, GS_AVG, NULL);
}

static gs_status_t do_sum (const struct pair *p, void *x, void *y)
{
    return copy_and (sum, p, x, y);
}

static gs_status_t undo_sum (const struct pair *p, void *y, void *x)
{
    return copy_and (sum_back, p, y, x);
}

static gs_status_t do_average (const struct pair *p, void *x, void *y)
{
    return copy_and (average, p, x, y);
}

static gs_status_t undo_average (const struct pair *p, void *y, void *x)
{
    return copy_and (average_back, p, y, x);
}

static gs_status_t do_reduce (const struct pair *p, void *x, void *y)
{
    return gs_reduce (comm, x, rank == p->root ? y : NULL, p->n, p->dtype, GS_SUM, p->root, NULL);
}

static gs_status_t undo_reduce (const struct pair *p, void *y, void *x)
{
    size_t bytes = p->n * gs_dtype_size (p->dtype);

    if (rank == p->root && bytes)
        CHECK_OK (gs_device_copy (comm, x, y, bytes, NULL));
    return gs_reduce_backward (comm, x, p->n, p->dtype, p->root, NULL);
}

static gs_status_t do_reduce_scatter (const struct pair *p, void *x, void *y)
{
    return gs_reduce_scatter (comm, x, y, p->n, p->dtype, GS_SUM, NULL);
}

static gs_status_t undo_reduce_scatter (const struct pair *p, void *y, void *x)
{
    return gs_reduce_scatter_backward (comm, y, x, p->n, p->dtype, NULL);
}

static gs_status_t do_reduce_scatterv (const struct pair *p, void *x, void *y)
{
    return gs_reduce_scatterv (comm, x, p->p.counts, displs (p), y, piece (p), p->dtype, GS_SUM,
                               NULL);
}

static gs_status_t undo_reduce_scatterv (const struct pair *p, void *y, void *x)
{
    return gs_reduce_scatterv_backward (comm, y, piece (p), x, p->p.extent, p->p.counts,
                                        displs (p), p->dtype, NULL);
}

static gs_status_t do_field (const struct pair *p, void *x, void *y)
{
    return gs_gather_field (comm, x, 2, p->extents, p->offsets, y, p->shape, p->dtype, p->root,
                            NULL);
}

static gs_status_t undo_field (const struct pair *p, void *y, void *x)
{
    return gs_gather_field_backward (comm, y, 2, p->shape, x, p->extents, p->offsets, p->dtype,
                                     p->root, NULL);
}

static const struct {
    const char *name;
    length_f x, y;
    run_f forward, backward;
    bool sparse; /* y has places that the collective does not write */
} pairs[] = {
    {"allgather", each, all, do_allgather, undo_allgather, false},
    {"allgatherv", piece, pieces, do_allgatherv, undo_allgatherv, true},
    {"gather", each, all_of_root, do_gather, undo_gather, false},
    {"gatherv", piece, pieces_of_root, do_gatherv, undo_gatherv, true},
    {"scatter", all_of_root, each, do_scatter, undo_scatter, false},
    {"scatterv", pieces_of_root, piece, do_scatterv, undo_scatterv, true},
    {"alltoall", all, all, do_alltoall, undo_alltoall, false},
    {"alltoallv", pieces, back_pieces, do_alltoallv, undo_alltoallv, true},
    {"broadcast", each_of_root, each, do_broadcast, undo_broadcast, false},
    {"allreduce", each, each, do_sum, undo_sum, false},
    {"allreduce_avg", each, each, do_average, undo_average, false},
    {"reduce", each, each_of_root, do_reduce, undo_reduce, false},
    {"reduce_scatter", all, each, do_reduce_scatter, undo_reduce_scatter, false},
    {"reduce_scatterv", pieces, piece, do_reduce_scatterv, undo_reduce_scatterv, true},
    {"gather_field", block, field, do_field, undo_field, true},
};

/* ---- Random shapes ---- */

static size_t up_to (size_t most, int what, int who)
{
    return data_bits (seed, 1000 + what, (size_t) who) % (most + 1);
}

/* Rows of the field are cut among the ranks, columns in addition between halves of them. */
static void cut_field (struct pair *p, bool by_rows)
{
    int columns = by_rows || size % 2 ? 1 : 2, rows = size / columns, row = rank / columns;
    int column = rank % columns;

    p->shape[0] = 1 + up_to (40, 1, 0);
    p->shape[1] = 2 + up_to (20, 2, 0);
    p->offsets[0] = p->shape[0] * (size_t) row / (size_t) rows;
    p->extents[0] = p->shape[0] * (size_t) (row + 1) / (size_t) rows - p->offsets[0];
    p->offsets[1] = p->shape[1] * (size_t) column / (size_t) columns;
    p->extents[1] = p->shape[1] * (size_t) (column + 1) / (size_t) columns - p->offsets[1];
    p->root = (int) up_to ((size_t) size, 3, 0) - 1;
}

static struct pair random_pair (const char *name, gs_dtype_t dtype)
{
    struct pair p = {.name = name, .dtype = dtype};
    bool to_each = !strcmp (name, "alltoallv");

    seed++;
    p.root = (int) up_to ((size_t) size - 1, 0, 0);
    p.gaps = seed % 3 == 0;
    p.n = up_to (seed % 2 ? 9 : 3000, 4, 0);
    for (int r = 0; r < size; r++) {
        /* what rank r has, or what this one has for rank r */
        p.p.counts[r] = up_to (200, 5, to_each ? rank * size + r : r);
        p.q.counts[r] = up_to (200, 5, r * size + rank);
        if (up_to (3, 6, to_each ? rank * size + r : r) == 0)
            p.p.counts[r] = 0;
        if (up_to (3, 6, r * size + rank) == 0)
            p.q.counts[r] = 0;
    }
    pieces_lay_out (&p.p, size, p.gaps ? 2 : -1);
    pieces_lay_out (&p.q, size, -1);
    if (!strcmp (name, "gather_field"))
        cut_field (&p, seed % 2);
    return p;
}

/* ---- The test ---- */

/* Sum over all ranks and elements; complex numbers are two reals. */
static double dot (const struct pair *p, const void *a, const void *b, size_t count)
{
    const double *x = a, *y = b;
    double result = 0;

    count *= gs_dtype_size (p->dtype) / sizeof (double);
    for (size_t i = 0; i < count; i++)
        result += x[i] * y[i];
    CHECK_OK (gs_allreduce (comm, &result, 1, GS_F64, GS_SUM, NULL));
    return result;
}

/* A y, then A* g of random g in another y; the pair holds, and inputs stay as they are. */
static void check_pair (size_t i, gs_dtype_t dtype, bool device)
{
    struct pair p = random_pair (pairs[i].name, dtype);
    size_t width = gs_dtype_size (dtype), nx = pairs[i].x (&p), ny = pairs[i].y (&p);
    struct array x = array_allocate (comm, nx * width, device);
    struct array y = array_allocate (comm, ny * width, device);
    struct array g = array_allocate (comm, ny * width, device);
    struct array back = array_allocate (comm, nx * width, device);
    double there, here, norm;

    data_fill (dtype, x.host, seed, rank, nx);
    data_fill (dtype, g.host, seed, rank + MOST_RANKS, ny);
    memset (y.host, 0, y.bytes);
    memset (back.host, 0, back.bytes);
    array_bring (&x), array_bring (&y), array_bring (&g), array_bring (&back);
    CHECK_OK (pairs[i].forward (&p, x.used, y.used));
    CHECK_OK (pairs[i].backward (&p, g.used, back.used));
    array_fetch (&y), array_fetch (&back), array_fetch (&g), array_fetch (&x);
    there = dot (&p, y.host, g.host, ny);
    here = dot (&p, x.host, back.host, nx);
    norm = sqrt (dot (&p, y.host, y.host, ny)) * sqrt (dot (&p, g.host, g.host, ny));
    CHECK (fabs (there - here) <= TOLERANCE * norm,
           "%s, seed %llu, %s: <A x, g> is %.17g, <x, A* g> %.17g, |A x| |g| %.3g", p.name,
           (unsigned long long) seed, device ? "device" : "host", there, here, norm);
    array_release (&x, p.name), array_release (&y, p.name);
    array_release (&g, p.name), array_release (&back, p.name);
}

/* ---- Contracts ---- */

/* grad_y of [who]: an average loss, or of one rank. */
static void check_contract (gs_dtype_t dtype, bool ragged, bool same, bool device)
{
    struct pair p = random_pair (ragged ? "allgatherv" : "allgather", dtype);
    size_t width = gs_dtype_size (dtype), ny = ragged ? p.p.extent : all (&p);
    size_t nx = ragged ? piece (&p) : p.n;
    struct array g = array_allocate (comm, ny * width, device);
    struct array own = array_allocate (comm, nx * width, device);
    struct array adjoint = array_allocate (comm, nx * width, device);
    run_f back = ragged ? undo_allgatherv : undo_allgather;
    bool any = false;

    for (int r = 0; r < size; r++)
        any = any || (ragged ? p.p.counts[r] : p.n);
    data_fill (dtype, g.host, seed, same ? 0 : rank, ny);
    array_bring (&g), array_bring (&own);
    CHECK_OK (back (&p, g.used, adjoint.used));
    p.contract = GS_GRAD_OWN_SLOT;
    if (!same && compares && size > 1 && any) {
        CHECK_FAILS (back (&p, g.used, own.used), GS_ERR_MISMATCH, "own part of rank",
                     "GS_GRAD_ADJOINT");
        array_fetch (&own);
        for (size_t i = 0; i < own.bytes; i++)
            if (own.host[i] != 0x11) {
                CHECK (false, "grad_x was written though the contract does not hold");
                break;
            }
    } else {
        CHECK_OK (back (&p, g.used, own.used));
    }
    array_fetch (&own), array_fetch (&adjoint);
    for (size_t i = 0; i < nx && same; i++) {
        wide_t a = wide_load (dtype, own.host, i), b = wide_load (dtype, adjoint.host, i);
        CHECK (cabsl (a - b) <= (gsi_dtype_is_reduced (dtype) ? 0.02 : 1e-6) * cabsl (b),
               "own slot: element %zu is %g, the adjoint's %g", i, (double) creall (a),
               (double) creall (b));
    }
    array_release (&g, "contract"), array_release (&own, "contract");
    array_release (&adjoint, "contract");
}

/* Where both contracts give an infinity, or no number, they agree. */
static void check_overflow (void)
{
    static const uint16_t values[] = {0x7753, 0x7c00, 0x7e01}; /* 30000, infinity, NaN */
    uint16_t y[MOST_RANKS], x = 0;

    for (int v = 0; v < 3; v++) {
        for (int r = 0; r < size; r++)
            y[r] = values[v];
        CHECK_OK (gs_allgather_backward (comm, y, &x, 1, GS_F16, GS_GRAD_OWN_SLOT, NULL));
        CHECK (size < 3 || (x & 0x7fff) >= 0x7c00, "%d ranks times %x are %x", size, values[v],
               x);
    }
    y[0] = rank ? 0x7c00 : 0x3c00; /* of rank 0, whose own part is 1 */
    if (compares && size > 1)
        CHECK_FAILS (gs_allgather_backward (comm, y, &x, 1, GS_F16, GS_GRAD_OWN_SLOT, NULL),
                     GS_ERR_MISMATCH, "own part of rank 0");
}

static void check_refusals (void)
{
    double y[MOST_RANKS] = {0}, x[1];
    size_t counts[MOST_RANKS];

    for (int r = 0; r < size; r++)
        counts[r] = 1;
    CHECK_FAILS (gs_allgather_backward (comm, y, x, 1, GS_F64, (gs_grad_contract_t) 7, NULL),
                 GS_ERR_ARG, "contract 7", "GS_GRAD_OWN_SLOT");
    CHECK_FAILS (gs_allgather_backward (comm, y, x, 1, GS_I32, GS_GRAD_ADJOINT, NULL),
                 GS_ERR_UNSUPPORTED, "gs_allgather_backward", "GS_I32");
    CHECK_FAILS (
        gs_allgatherv_backward (comm, y, NULL, NULL, x, 1, GS_F64, GS_GRAD_OWN_SLOT, NULL),
        GS_ERR_ARG, "counts is NULL");
    CHECK_FAILS (
        gs_allgatherv_backward (comm, y, counts, NULL, x, 2, GS_F64, GS_GRAD_ADJOINT, NULL),
        GS_ERR_ARG, "gives 2 elements");
    CHECK_FAILS (gs_allreduce_backward (comm, y, 1, GS_F64, GS_MAX, NULL), GS_ERR_UNSUPPORTED,
                 "gs_allreduce_backward");
    CHECK_FAILS (gs_gather_backward (comm, y, x, 1, GS_F64, size, NULL), GS_ERR_ARG, "root");
    CHECK_FAILS (gs_reduce_scatterv_backward (comm, x, 1, y, 1, NULL, NULL, GS_F64, NULL),
                 GS_ERR_ARG, "counts is NULL");
    if (size > 1 && compares)
        CHECK_FAILS (gs_allgather_backward (comm, y, x, 1, GS_F64,
                                            rank ? GS_GRAD_ADJOINT : GS_GRAD_OWN_SLOT, NULL),
                     GS_ERR_MISMATCH, "allgather_backward", "contract 0", "contract 1");
}

int main (void)
{
    const char *check = getenv ("GS_CHECK");

    compares = check && !strcmp (check, "collective");
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof (pairs) / sizeof (*pairs); i++)
            check_pair (i, round % 3 ? GS_F64 : GS_C128, round % 2);
    for (int i = 0; i < 16; i++)
        check_contract ((gs_dtype_t[]){GS_F64, GS_C64, GS_BF16, GS_F32}[i % 4], i & 4, i & 8,
                        seed & 1);
    check_overflow ();
    check_refusals ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("collectives and their gradients");
}
