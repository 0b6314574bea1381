/* SPDX-License-Identifier: BSD-3-Clause */
/* allreduce - every operation and type: integers exactly, the others within their rounding. */
#include "data.h"

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

static void check_reduction (gs_dtype_t dtype, gs_op_t op, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype), wrong = 0;
    size_t step = count > 100 ? (size_t) size : 1;
    void *x = data_allocate (bytes);

    data_fill (dtype, x, ++seed, rank, count);
    CHECK_OK (gs_allreduce (comm, x, count, dtype, op, NULL));
    for (size_t i = (size_t) rank % step; i < count; i += step)
        wrong += !data_reduction_is_right (dtype, op, x, i, seed, size);
    CHECK (!wrong, "op %d of %zu %s: %zu are wrong", op, count, data_names[dtype], wrong);
    CHECK (data_same_everywhere (comm, x, bytes), "op %d of %zu %s: ranks have different bits",
           op, count, data_names[dtype]);
    CHECK (data_free (x, bytes), "op %d of %zu %s: writes behind the buffer", op, count,
           data_names[dtype]);
}

/* GS_AVG gives the bits of gs_allreduce_avg, and like it refuses integers. */
static void check_average (gs_dtype_t dtype, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype);
    void *x = data_allocate (bytes), *right = data_allocate (bytes);

    data_fill (dtype, x, ++seed, rank, count);
    memcpy (right, x, bytes);
    if (gsi_dtype_is_integer (dtype)) {
        CHECK_FAILS (gs_allreduce (comm, x, count, dtype, GS_AVG, NULL), GS_ERR_UNSUPPORTED,
                     "gs_allreduce", "round");
    } else {
        CHECK_OK (gs_allreduce (comm, x, count, dtype, GS_AVG, NULL));
        CHECK_OK (gs_allreduce_avg (comm, right, count, dtype, NULL));
        CHECK (data_average_is_right (dtype, x, count - 1, seed, size, NULL), "average of %s",
               data_names[dtype]);
    }
    CHECK (!memcmp (x, right, bytes), "GS_AVG of %zu %s", count, data_names[dtype]);
    data_free (x, bytes);
    data_free (right, bytes);
}

/* A NaN of one rank reaches all of them. */
static void check_nan (void)
{
    for (gs_op_t op = GS_SUM; op <= GS_MAX; op++)
        for (int r = 0; r < size; r++) {
            double x = rank == r ? (double) NAN : 1;
            CHECK_OK (gs_allreduce (comm, &x, 1, GS_F64, op, NULL));
            CHECK (isnan (x), "op %d loses the NaN of rank %d", op, r);
        }
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    data_learn (comm);
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
        for (gs_op_t op = GS_SUM; op <= (gsi_dtype_is_complex (dtype) ? GS_PROD : GS_MAX); op++) {
            size_t width = gs_dtype_size (dtype);
            for (size_t count = 0; count <= 20; count++)
                check_reduction (dtype, op, count);
            check_reduction (dtype, op, (16 << 10) / width);
            check_reduction (dtype, op, (16 << 10) / width + 1);
            check_reduction (dtype, op, (256 << 10) / width + 77);
        }
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
        check_average (dtype, 1000);
    check_nan ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("four operations, fourteen types, 24 counts");
}
