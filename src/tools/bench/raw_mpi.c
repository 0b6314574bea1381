/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_mpi - the plain MPI calls, in the module gs-bench-mpi.so. */
#include <mpi.h>

#include "tools/bench/raw.h"

extern const struct bench_raw_mpi bench_raw_mpi;

static int world_size (void)
{
    int up, down, size = 0;

    MPI_Initialized (&up);
    MPI_Finalized (&down);
    if (up && !down)
        MPI_Comm_size (MPI_COMM_WORLD, &size);
    return size;
}

static bool has_type (gs_dtype_t dtype)
{
    return dtype == GS_F32 || dtype == GS_F64 || dtype == GS_C64 || dtype == GS_C128;
}

static void average_f32 (float *buf, int count, int times)
{
    const float size = (float) world_size ();

    for (int t = 0; t < times; t++) {
        MPI_Allreduce (MPI_IN_PLACE, buf, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            buf[i] /= size;
    }
}

static void average_f64 (double *buf, int count, int times)
{
    const double size = world_size ();

    for (int t = 0; t < times; t++) {
        MPI_Allreduce (MPI_IN_PLACE, buf, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++)
            buf[i] /= size;
    }
}

/* A complex number is summed and divided as its two parts. */
static void allreduce_avg (void *buf, int count, gs_dtype_t dtype, int times)
{
    if (dtype == GS_F32 || dtype == GS_C64)
        average_f32 (buf, dtype == GS_C64 ? 2 * count : count, times);
    else
        average_f64 (buf, dtype == GS_C128 ? 2 * count : count, times);
}

static void allgather (const void *send, void *recv, int bytes, int times)
{
    for (int t = 0; t < times; t++)
        MPI_Allgather (send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

const struct bench_raw_mpi bench_raw_mpi = {
    .world_size = world_size,
    .has_type = has_type,
    .allreduce_avg = allreduce_avg,
    .allgather = allgather,
};
