/* SPDX-License-Identifier: BSD-3-Clause */
/* allgather - every rank's part in rank order on all, from elsewhere and in place. */
#include "data.h"

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

static void check_allgather (gs_dtype_t dtype, size_t count, bool in_place)
{
    size_t width = gs_dtype_size (dtype), bytes = count * width;
    char *recv = data_allocate (bytes * (size_t) size), *part = data_allocate (bytes);
    char *send = in_place ? recv + (size_t) rank * bytes : data_allocate (bytes);

    seed++;
    memset (recv, 0, bytes * (size_t) size);
    data_fill (dtype, send, seed, rank, count);
    CHECK_OK (gs_allgather (comm, send, recv, count, dtype, NULL));
    for (int r = 0; r < size; r++) {
        data_fill (dtype, part, seed, r, count);
        CHECK (!memcmp (recv + (size_t) r * bytes, part, bytes),
               "%zu %s%s: the part of rank %d is wrong", count, data_names[dtype],
               in_place ? " in place" : "", r);
    }
    data_fill (dtype, part, seed, rank, count);
    CHECK (!memcmp (send, part, bytes), "%zu %s: send was changed", count, data_names[dtype]);
    CHECK (data_free (recv, bytes * (size_t) size), "%zu %s: writes behind recv", count,
           data_names[dtype]);
    if (!in_place)
        CHECK (data_free (send, bytes), "%zu %s: writes behind send", count, data_names[dtype]);
    data_free (part, bytes);
}

/* The place of another rank is not one's own. */
static void check_overlaps (void)
{
    int32_t x[64] = {0};
    int other = (rank + 1) % size;

    if (size == 1 || size > 20)
        return;
    CHECK_FAILS (gs_allgather (comm, x + 3 * other, x, 3, GS_I32, NULL), GS_ERR_ARG, "overlap");
    CHECK_FAILS (gs_allgather (comm, x + 3 * rank + 1, x, 3, GS_I32, NULL), GS_ERR_ARG,
                 "overlap");
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (size_t count = 0; count <= 40; count++)
            check_allgather (GS_U8, count, in_place);
        for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
            check_allgather (dtype, 9, in_place);
        for (const size_t *e = data_edges (size, 1); *e; e++)
            check_allgather (GS_I8, *e, in_place);
        for (const size_t *e = data_edges (size, 8); *e; e++)
            check_allgather (GS_F64, *e / (size_t) size + 1, in_place);
    }
    check_overlaps ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("allgathers, in place and not, up to 512 KiB per rank");
}
