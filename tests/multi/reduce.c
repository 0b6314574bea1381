/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce - reductions that end on one rank or in parts, of all types and operations, in place and
 * not, in host memory and in that of the device, against references in long double.
 */
#include "array.h"

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

static bool exists (gs_dtype_t dtype, gs_op_t op)
{
    if (op == GS_AVG)
        return !gsi_dtype_is_integer (dtype);
    return op <= GS_PROD || !gsi_dtype_is_complex (dtype);
}

/* Elements [from] to [to] of [array] are those of the reduction, which has them there. */
static void check_elements (gs_dtype_t dtype, gs_op_t op, const char *array, size_t from,
                            size_t to, const char *what)
{
    for (size_t i = from; i < to; i++) {
        bool right = op == GS_AVG ? data_average_is_right (dtype, array, i, seed, size, NULL)
                                  : data_reduction_is_right (dtype, op, array, i, seed, size);
        CHECK (right, "%s: element %zu of %zu to %zu %s, op %d, is wrong", what, i, from, to,
               data_names[dtype], (int) op);
        if (!right)
            return;
    }
}

static char *on_device (size_t bytes)
{
    void *memory;

    CHECK_OK (gs_device_alloc (comm, bytes, &memory));
    return memory;
}

static void copy (void *dst, const void *src, size_t bytes)
{
    CHECK_OK (gs_device_copy (comm, dst, src, bytes, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
}

/* [all] is what this rank has; its elements stay as they are but for those that are asked for. */
static void check_reduce (gs_dtype_t dtype, gs_op_t op, size_t count, bool device, bool in_place)
{
    size_t bytes = count * gs_dtype_size (dtype);
    int root = (int) (seed++ % (uint64_t) size);
    char *mine = data_allocate (bytes), *result = data_allocate (bytes);
    char *send = device ? on_device (bytes) : mine, *recv = device ? on_device (bytes) : result;

    in_place = in_place && rank == root;
    data_fill (dtype, mine, seed, rank, count);
    if (device)
        copy (send, mine, bytes);
    CHECK_OK (gs_reduce (comm, send,
                         in_place       ? send
                         : rank == root ? recv
                                        : NULL,
                         count, dtype, op, root, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (device)
        copy (result, in_place ? send : recv, bytes);
    if (rank == root)
        check_elements (dtype, op, in_place && !device ? mine : result, 0, count, "reduce");
    if (!in_place) {
        data_fill (dtype, result, seed, rank, count);
        if (device)
            copy (mine, send, bytes);
        CHECK (!memcmp (mine, result, bytes), "reduce: send was changed");
    }
    if (device) {
        CHECK_OK (gs_device_free (comm, send));
        CHECK_OK (gs_device_free (comm, recv));
    }
    CHECK (data_free (mine, bytes) && data_free (result, bytes), "reduce: written behind");
}

static void check_scatter (gs_dtype_t dtype, gs_op_t op, size_t count, bool device, bool in_place)
{
    size_t part = count * gs_dtype_size (dtype), bytes = part * (size_t) size;
    size_t at = part * (size_t) rank, first = count * (size_t) rank;
    char *mine = data_allocate (bytes), *result = data_allocate (bytes);
    char *send = device ? on_device (bytes) : mine,
         *recv = device ? on_device (part) : result + at;

    seed++;
    data_fill (dtype, mine, seed, rank, count * (size_t) size);
    if (device)
        copy (send, mine, bytes);
    CHECK_OK (
        gs_reduce_scatter (comm, send, in_place ? send + at : recv, count, dtype, op, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (device)
        copy (result + at, in_place ? send + at : recv, part);
    check_elements (dtype, op, in_place && !device ? mine : result, first, first + count,
                    "reduce_scatter");
    if (device) {
        CHECK_OK (gs_device_free (comm, send));
        CHECK_OK (gs_device_free (comm, recv));
    }
    CHECK (data_free (mine, bytes) && data_free (result, bytes),
           "reduce_scatter: written behind");
}

/* Parts of any length, none too, laid out in one of three ways. */
static void check_ragged (gs_dtype_t dtype, gs_op_t op, size_t most, bool device, bool in_place)
{
    size_t width = gs_dtype_size (dtype), own, bytes;
    int gap = (int) (seed++ % 3) - 1;
    struct pieces p;
    struct array all, part;
    char *place;

    for (int r = 0; r < size; r++)
        p.counts[r] = seed % 4 == (uint64_t) r % 4 ? 0 : data_bits (seed, 99, (size_t) r) % most;
    pieces_lay_out (&p, size, gap);
    own = p.counts[rank];
    bytes = own * width;
    all = array_allocate (comm, p.extent * width, device);
    part = array_allocate (comm, bytes, device);
    data_fill (dtype, all.host, seed, rank, p.extent);
    array_bring (&all);
    place = all.used + p.displs[rank] * width;
    CHECK_OK (gs_reduce_scatterv (comm, all.used, p.counts, gap < 0 ? NULL : p.displs,
                                  in_place ? place : part.used, own, dtype, op, NULL));
    array_fetch (in_place ? &all : &part);
    if (!in_place && bytes) /* where it would be in place */
        memcpy (all.host + p.displs[rank] * width, part.host, bytes);
    check_elements (dtype, op, all.host, p.displs[rank], p.displs[rank] + own, "reduce_scatterv");
    array_release (&all, "reduce_scatterv");
    array_release (&part, "reduce_scatterv");
}

/* What is wrong is told on all ranks alike. */
static void check_refusals (void)
{
    double x[MOST_RANKS * 4] = {0}, y[4];
    size_t counts[MOST_RANKS], displs[MOST_RANKS];

    for (int r = 0; r < size; r++)
        counts[r] = 2, displs[r] = (size_t) r;
    CHECK_FAILS (gs_reduce_scatterv (comm, x, NULL, NULL, y, 2, GS_F64, GS_SUM, NULL), GS_ERR_ARG,
                 "counts is NULL");
    CHECK_FAILS (gs_reduce_scatterv (comm, x, counts, NULL, y, 3, GS_F64, GS_SUM, NULL),
                 GS_ERR_ARG, "gives 3 elements", "is 2");
    CHECK_FAILS (
        gs_reduce_scatterv (comm, x, counts, displs, x + rank + 1, 2, GS_F64, GS_SUM, NULL),
        GS_ERR_ARG, "overlap");
    if (size < 2 || multi_on_gpus ())
        return;
    counts[1] += rank == 0; /* what rank 0 believes */
    CHECK_FAILS (gs_reduce_scatterv (comm, x, counts, NULL, y, 2, GS_F64, GS_SUM, NULL),
                 GS_ERR_MISMATCH, "the counts that rank");
}

static void check (gs_dtype_t dtype, gs_op_t op, size_t count, int way)
{
    check_ragged (dtype, op, 3 * count + 2, way & 1, way & 2);
    check_reduce (dtype, op, count, way & 1, way & 2);
    check_scatter (dtype, op, count, way & 1, way & 2);
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    data_learn (comm);
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
        for (gs_op_t op = GS_SUM; op <= GS_AVG; op++) {
            size_t width = gs_dtype_size (dtype);
            if (!exists (dtype, op))
                continue;
            for (size_t count = 0; count < 4; count++)
                check (dtype, op, count, (int) count);
            check (dtype, op, 257, (int) (dtype + op) % 4);
            check (dtype, op, (16 << 10) / width + 1, (int) (dtype + op + 1) % 4);
            check (dtype, op, (100 << 10) / width + 5, (int) (dtype + op) % 4);
            check (dtype, op, (256 << 10) / width / (size_t) size + 77,
                   (int) (dtype + op + 2) % 4);
        }
    for (int way = 0; way < 4; way++)
        check (GS_F32, GS_AVG, (1 << 20) / (size_t) size + 3, way);
    check_refusals ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("reductions to one rank and in parts");
}
