/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange - gather, scatter and all-to-all, with pieces of one length and of any, in place and
 * not, in host memory and in that of the device, against pieces that every rank can make itself.
 */
#include "array.h"

#define ROUNDS 12

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* What rank [from] has for rank [to]. */
static void make_piece (gs_dtype_t dtype, char *at, int from, int to, size_t count)
{
    data_fill (dtype, at, seed, from * MOST_RANKS + to, count);
}

static void check_piece (gs_dtype_t dtype, const char *at, int from, int to, size_t count,
                         const char *what)
{
    size_t bytes = count * gs_dtype_size (dtype);
    char *right = data_allocate (bytes);

    make_piece (dtype, right, from, to, count);
    CHECK (!memcmp (at, right, bytes), "%s: %zu %s from rank %d to rank %d are wrong", what,
           count, data_names[dtype], from, to);
    data_free (right, bytes);
}

/* ---- Pieces of one length ---- */

static void check_gather (gs_dtype_t dtype, size_t count, int root, bool in_place, bool on_device)
{
    size_t bytes = count * gs_dtype_size (dtype);
    struct array all = array_allocate (comm, rank == root ? bytes * (size_t) size : 0, on_device);
    struct array own = array_allocate (comm, bytes, on_device);
    size_t at = bytes * (size_t) rank;

    seed++;
    in_place = in_place && rank == root;
    make_piece (dtype, in_place ? all.host + at : own.host, rank, root, count);
    array_bring (&all);
    array_bring (&own);
    CHECK_OK (gs_gather (comm, in_place ? all.used + at : own.used,
                         rank == root ? all.used : NULL, count, dtype, root, NULL));
    array_fetch (&all);
    for (int r = 0; r < size && rank == root; r++)
        check_piece (dtype, all.host + bytes * (size_t) r, r, root, count, "gather");
    array_release (&all, "gather");
    array_release (&own, "gather");
}

static void check_scatter (gs_dtype_t dtype, size_t count, int root, bool in_place,
                           bool on_device)
{
    size_t bytes = count * gs_dtype_size (dtype);
    struct array all = array_allocate (comm, rank == root ? bytes * (size_t) size : 0, on_device);
    struct array own = array_allocate (comm, bytes, on_device);
    size_t at = bytes * (size_t) rank;

    seed++;
    in_place = in_place && rank == root;
    for (int r = 0; r < size && rank == root; r++)
        make_piece (dtype, all.host + bytes * (size_t) r, root, r, count);
    array_bring (&all);
    CHECK_OK (gs_scatter (comm, rank == root ? all.used : NULL,
                          in_place ? all.used + at : own.used, count, dtype, root, NULL));
    array_fetch (in_place ? &all : &own);
    check_piece (dtype, in_place ? all.host + at : own.host, root, rank, count, "scatter");
    array_release (&all, "scatter");
    array_release (&own, "scatter");
}

static void check_alltoall (gs_dtype_t dtype, size_t count, bool on_device)
{
    size_t bytes = count * gs_dtype_size (dtype);
    struct array out = array_allocate (comm, bytes * (size_t) size, on_device);
    struct array in = array_allocate (comm, bytes * (size_t) size, on_device);

    seed++;
    for (int r = 0; r < size; r++)
        make_piece (dtype, out.host + bytes * (size_t) r, rank, r, count);
    array_bring (&out);
    CHECK_OK (gs_alltoall (comm, out.used, in.used, count, dtype, NULL));
    array_fetch (&in);
    for (int r = 0; r < size; r++)
        check_piece (dtype, in.host + bytes * (size_t) r, r, rank, count, "alltoall");
    array_release (&out, "alltoall");
    array_release (&in, "alltoall");
}

static void check_regular (gs_dtype_t dtype, size_t count, int way)
{
    bool on_device = way & 1, in_place = way & 2;
    int root = (int) (seed % (uint64_t) size);

    check_gather (dtype, count, root, in_place, on_device);
    check_scatter (dtype, count, root, in_place, on_device);
    check_alltoall (dtype, count, on_device);
}

/* ---- Pieces of any length ---- */

/* Some have nothing, one in eight has much. */
static size_t some_count (int from, int to)
{
    uint64_t bits = data_bits (seed, from, (size_t) to);

    if (bits % 4 == 0)
        return 0;
    return bits % 8 == 1 ? bits / 64 % 300000 : bits / 64 % 5000;
}

static void check_allgatherv (gs_dtype_t dtype, int gap, bool told, bool on_device)
{
    size_t width = gs_dtype_size (dtype);
    struct pieces p;
    struct array all, own;

    seed++;
    for (int r = 0; r < size; r++)
        p.counts[r] = some_count (r, r);
    pieces_lay_out (&p, size, gap);
    all = array_allocate (comm, p.extent * width, on_device);
    own = array_allocate (comm, p.counts[rank] * width, on_device);
    make_piece (dtype, own.host, rank, 0, p.counts[rank]);
    array_bring (&own);
    CHECK_OK (gs_allgatherv (comm, own.used, p.counts[rank], all.used, p.extent,
                             told ? p.counts : NULL, gap < 0 ? NULL : p.displs, dtype, NULL));
    array_fetch (&all);
    for (int r = 0; r < size; r++)
        check_piece (dtype, all.host + p.displs[r] * width, r, 0, p.counts[r], "allgatherv");
    array_release (&all, "allgatherv");
    array_release (&own, "allgatherv");
}

static void check_gatherv (gs_dtype_t dtype, int gap, bool told, bool on_device)
{
    int root = (int) (seed % (uint64_t) size);
    size_t width = gs_dtype_size (dtype);
    struct pieces p;
    struct array all, own;

    seed++;
    for (int r = 0; r < size; r++)
        p.counts[r] = some_count (r, r);
    pieces_lay_out (&p, size, gap);
    all = array_allocate (comm, rank == root ? p.extent * width : 0, on_device);
    own = array_allocate (comm, p.counts[rank] * width, on_device);
    make_piece (dtype, own.host, rank, root, p.counts[rank]);
    array_bring (&own);
    CHECK_OK (gs_gatherv (comm, own.used, p.counts[rank], rank == root ? all.used : NULL,
                          rank == root ? p.extent : 0, told ? p.counts : NULL,
                          gap < 0 ? NULL : p.displs, dtype, root, NULL));
    array_fetch (&all);
    for (int r = 0; r < size && rank == root; r++)
        check_piece (dtype, all.host + p.displs[r] * width, r, root, p.counts[r], "gatherv");
    array_release (&all, "gatherv");
    array_release (&own, "gatherv");
}

static void check_scatterv (gs_dtype_t dtype, int gap, bool on_device)
{
    int root = (int) (seed % (uint64_t) size);
    size_t width = gs_dtype_size (dtype);
    struct pieces p;
    struct array all, own;

    seed++;
    for (int r = 0; r < size; r++)
        p.counts[r] = some_count (r, r);
    pieces_lay_out (&p, size, gap);
    all = array_allocate (comm, rank == root ? p.extent * width : 0, on_device);
    own = array_allocate (comm, p.counts[rank] * width, on_device);
    for (int r = 0; r < size && rank == root; r++)
        make_piece (dtype, all.host + p.displs[r] * width, root, r, p.counts[r]);
    array_bring (&all);
    CHECK_OK (gs_scatterv (comm, rank == root ? all.used : NULL, rank == root ? p.counts : NULL,
                           gap < 0 ? NULL : p.displs, own.used, p.counts[rank], dtype, root,
                           NULL));
    array_fetch (&own);
    check_piece (dtype, own.host, root, rank, p.counts[rank], "scatterv");
    array_release (&all, "scatterv");
    array_release (&own, "scatterv");
}

static void check_alltoallv (gs_dtype_t dtype, int gap, bool on_device)
{
    size_t width = gs_dtype_size (dtype);
    struct pieces to, from;
    struct array out, in;

    seed++;
    for (int r = 0; r < size; r++) {
        to.counts[r] = some_count (rank, r);
        from.counts[r] = some_count (r, rank);
    }
    pieces_lay_out (&to, size, gap);
    pieces_lay_out (&from, size, gap);
    out = array_allocate (comm, to.extent * width, on_device);
    in = array_allocate (comm, from.extent * width, on_device);
    for (int r = 0; r < size; r++)
        make_piece (dtype, out.host + to.displs[r] * width, rank, r, to.counts[r]);
    array_bring (&out);
    CHECK_OK (gs_alltoallv (comm, out.used, to.counts, gap < 0 ? NULL : to.displs, in.used,
                            from.counts, gap < 0 ? NULL : from.displs, dtype, NULL));
    array_fetch (&in);
    for (int r = 0; r < size; r++)
        check_piece (dtype, in.host + from.displs[r] * width, r, rank, from.counts[r],
                     "alltoallv");
    array_release (&out, "alltoallv");
    array_release (&in, "alltoallv");
}

static void check_ragged (int round)
{
    gs_dtype_t dtype = (gs_dtype_t) (GS_F16 + round % (GSI_DTYPES - 1));
    int gap = round % 3 - 1;
    bool on_device = round % 2;

    check_allgatherv (dtype, gap, gap >= 0 || round % 4 < 2, on_device);
    check_gatherv (dtype, gap, gap >= 0 || round % 4 < 2, on_device);
    check_scatterv (dtype, gap, on_device);
    check_alltoallv (dtype, gap, on_device);
}

/* ---- What is wrong ---- */

static void check_refusals (void)
{
    static int32_t x[2 * MOST_RANKS * MOST_RANKS], y[MOST_RANKS];
    size_t counts[MOST_RANKS], displs[MOST_RANKS];

    for (int r = 0; r < size; r++) {
        counts[r] = 2;
        displs[r] = (size_t) r;
    }
    CHECK_FAILS (gs_gather (comm, y, x, 1, GS_I32, size, NULL), GS_ERR_ARG, "root", "0 to");
    CHECK_FAILS (gs_scatter (comm, x, y, 1, GS_I32, -1, NULL), GS_ERR_ARG, "root -1");
    CHECK_FAILS (gs_reduce (comm, y, x, 1, GS_I32, GS_SUM, size + 3, NULL), GS_ERR_ARG, "root");
    CHECK_FAILS (gs_gather (comm, y, x, 1, (gs_dtype_t) 99, 0, NULL), GS_ERR_ARG, "gs_gather");
    CHECK_FAILS (gs_alltoall (comm, NULL, x, 1, GS_I32, NULL), GS_ERR_ARG, "NULL");
    CHECK_FAILS (gs_alltoall (comm, x, x, 1, GS_I32, NULL), GS_ERR_ARG, "overlap");
    CHECK_FAILS (gs_alltoall (comm, x, y, (size_t) PTRDIFF_MAX / 2, GS_I32, NULL), GS_ERR_ARG,
                 "gs_alltoall");
    CHECK_FAILS (gs_alltoallv (comm, x, counts, NULL, y, NULL, NULL, GS_I32, NULL), GS_ERR_ARG,
                 "recv_counts");
    CHECK_FAILS (gs_allgatherv (comm, y, 2, x, 2 * (size_t) size - 1, counts, NULL, GS_I32, NULL),
                 GS_ERR_ARG, "room for");
    CHECK_FAILS (gs_allgatherv (comm, y, 1, x, 2 * (size_t) size, counts, NULL, GS_I32, NULL),
                 GS_ERR_ARG, "counts[");
    CHECK_FAILS (gs_allgatherv (comm, y, 2, x, 9, NULL, displs, GS_I32, NULL), GS_ERR_ARG,
                 "displs without counts");
    if (size > 1)
        CHECK_FAILS (
            gs_allgatherv (comm, y, 2, x, 2 * (size_t) size, counts, displs, GS_I32, NULL),
            GS_ERR_ARG, "overlap: give them displacements apart");
    displs[size - 1] = SIZE_MAX;
    CHECK_FAILS (gs_allgatherv (comm, y, 2, x, 9, counts, displs, GS_I32, NULL), GS_ERR_ARG,
                 "beyond what memory can hold");
    CHECK_FAILS (gs_reduce_scatter (comm, x, y, 1, GS_I32, GS_AVG, NULL), GS_ERR_UNSUPPORTED,
                 "round");
    CHECK_OK (gs_barrier (comm, NULL));
}

/* Rank 0 sends [sent] elements to the last rank, which expects another number. */
static void check_pair (size_t sent, size_t expected)
{
    static int32_t x[4 * MOST_RANKS], y[4 * MOST_RANKS];
    size_t send[MOST_RANKS], recv[MOST_RANKS];
    char sends[64], expects[64];

    for (int r = 0; r < size; r++)
        send[r] = recv[r] = 1;
    if (rank == 0)
        send[size - 1] = sent;
    if (rank == size - 1)
        recv[0] = expected;
    for (int i = 0; i < 4 * MOST_RANKS; i++)
        y[i] = 7;
    snprintf (sends, sizeof (sends), "sends %zu elements to rank %d (host ", sent, size - 1);
    snprintf (expects, sizeof (expects), "which expects %zu", expected);
    CHECK_FAILS (gs_alltoallv (comm, x, send, NULL, y, recv, NULL, GS_I32, NULL), GS_ERR_MISMATCH,
                 "rank 0 (host ", sends, expects);
    for (int i = 0; i < 4 * MOST_RANKS; i++)
        CHECK (y[i] == 7, "a refused gs_alltoallv changes recv");
}

/* Counts that differ between ranks are found out on all of them, and the communicator goes on. */
static void check_mismatch (void)
{
    static int32_t x[4 * MOST_RANKS], y[4];
    size_t counts[MOST_RANKS], *nowhere = (size_t *) sizeof (size_t);
    char name[64];

    if (size == 1 || (multi_on_gpus () && !multi_shares_gpus () &&
                      strcmp (getenv ("GS_CHECK"), "collective") != 0))
        return; /* there nobody compares */
    for (int r = 0; r < size; r++)
        counts[r] = 1;
    if (rank == 0)
        counts[size - 1] = 2;
    CHECK_FAILS (
        gs_allgatherv (comm, y, counts[rank], x, 4 * (size_t) size, counts, NULL, GS_I32, NULL),
        GS_ERR_MISMATCH, "the counts that rank 0", "is 2, but the piece of rank ",
        "has 1 elements");
    CHECK_FAILS (gs_allgatherv (comm, y, 1, x, rank ? (size_t) size : (size_t) size - 1, NULL,
                                NULL, GS_I32, NULL),
                 GS_ERR_MISMATCH, "rank 0", "has room for");
    for (int r = 0; r < size; r++)
        counts[r] = r ? 1 : 2;
    snprintf (name, sizeof (name), "the counts that rank %d", size - 1);
    CHECK_FAILS (gs_scatterv (comm, x, rank == size - 1 ? counts : nowhere, NULL, y, 1, GS_I32,
                              size - 1, NULL),
                 GS_ERR_MISMATCH, name, "counts[0] is 2, but the piece of rank 0 ");
    check_pair (1, 3); /* which the network would fill in part */
    check_pair (3, 1);
    check_pair (0, 1);
    check_pair (1, 0); /* and which it would keep for the next one */
    CHECK_OK (gs_barrier (comm, NULL));
}

int main (void)
{
    bool gpus = multi_any_gpus ();

    setenv ("GS_CHECK", "collective", 0);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (size_t count = 0; count <= 20; count++)
        check_regular (GS_I16, count, (int) count % 4);
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
        check_regular (dtype, 1000, (int) dtype % 4);
    for (const size_t *e = data_edges (size, 8); *e; e++)
        check_regular (GS_F64, *e, (int) *e % 4);
    if (size <= 4)
        check_regular (GS_U8, ((size_t) 6 << 20) + 1, gpus ? 0 : 1); /* staged in several parts */
    for (int round = 0; round < ROUNDS; round++)
        check_ragged (round);
    check_refusals ();
    check_mismatch ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("gather, scatter and all-to-all, regular and ragged");
}
