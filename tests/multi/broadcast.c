/* SPDX-License-Identifier: BSD-3-Clause */
/* broadcast - from every root, of every size, to every rank. */
#include "data.h"

static gs_comm_t *comm;
static uint64_t seed;

static void check_broadcast (gs_dtype_t dtype, size_t count, int root)
{
    size_t bytes = count * gs_dtype_size (dtype);
    void *x = data_allocate (bytes), *wanted = data_allocate (bytes);

    data_fill (dtype, wanted, ++seed, root, count);
    if (gs_comm_rank (comm) == root)
        memcpy (x, wanted, bytes);
    else
        memset (x, 0, bytes);
    CHECK_OK (gs_broadcast (comm, x, count, dtype, root, NULL));
    CHECK (!memcmp (x, wanted, bytes), "%zu %s from %d do not arrive", count, data_names[dtype],
           root);
    CHECK (data_free (x, bytes), "%zu %s from %d: writes behind the buffer", count,
           data_names[dtype], root);
    data_free (wanted, bytes);
}

int main (void)
{
    int size;

    comm = multi_create (NULL);
    size = gs_comm_size (comm);
    for (int root = 0; root < size; root++) {
        for (size_t count = 0; count <= 40; count++)
            check_broadcast (GS_U8, count, root);
        for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
            check_broadcast (dtype, 9, root);
        for (const size_t *e = data_edges (size, 1); *e; e++)
            check_broadcast (GS_I8, *e, root);
        for (const size_t *e = data_edges (size, 8); *e; e++)
            check_broadcast (GS_F64, *e, root);
        check_broadcast (GS_C128, (5 << 20) / 16 + 1, root);
    }
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("broadcasts from every root, up to 5 MiB");
}
