/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algorithms - with GS_DETERMINISTIC=1 every choice of GS_HOST_ALGO, and every node a rank may be
 * on, gives the bits of a sum in rank order; so do arrays on GPUs that ranks share, or where
 * others have none.
 */
#include "data.h"

#define WAYS 4

static const char *const ways[WAYS] = {"flat", "hier", "rabenseifner", "auto"};
static gs_comm_t *comm[WAYS];
static uint64_t seed;

/* The average in rank order, of what an allgather brings. */
static void reference (gs_dtype_t dtype, const void *mine, void *out, size_t count)
{
    int size = gs_comm_size (comm[0]);
    size_t bytes = count * gs_dtype_size (dtype);
    char *all = malloc (bytes * (size_t) size);

    CHECK_OK (gs_allgather (comm[0], mine, all, count, dtype, NULL));
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        double wide = 0;
        for (int r = 0; r < size; r++) {
            double x = (double) creall (wide_load (dtype, all + (size_t) r * bytes, i));
            sum = r ? sum + (float) x : (float) x;
            wide = r ? wide + x : x;
        }
        wide_store (dtype, out, i, dtype == GS_F64 ? wide / size : (double) (sum / (float) size),
                    0);
    }
    free (all);
}

static void copy (gs_comm_t *c, void *dst, const void *src, size_t bytes)
{
    CHECK_OK (multi_wait (c, gs_device_copy (c, dst, src, bytes, NULL)));
}

/* By a copy in memory of the device, where this rank has one. */
static void average_there (gs_comm_t *c, gs_dtype_t dtype, void *x, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype);
    void *there;

    CHECK_OK (gs_device_alloc (c, bytes, &there));
    copy (c, there, x, bytes);
    CHECK_OK (gs_allreduce_avg (c, there, count, dtype, NULL));
    copy (c, x, there, bytes);
    CHECK_OK (gs_device_free (c, there));
}

static void compare (gs_dtype_t dtype, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype);
    int rank = gs_comm_rank (comm[0]);
    void *x = data_allocate (bytes), *right = data_allocate (bytes);
    bool gpus = multi_shares_gpus () || multi_mixed ();

    data_fill (dtype, x, ++seed, rank, count);
    reference (dtype, x, right, count);
    for (int w = 0; w < WAYS; w++) {
        data_fill (dtype, x, seed, rank, count);
        CHECK_OK (gs_allreduce_avg (comm[w], x, count, dtype, NULL));
        CHECK (!memcmp (x, right, bytes), "%zu %s by %s: other bits", count, data_names[dtype],
               ways[w]);
        if (!gpus)
            continue;
        data_fill (dtype, x, seed, rank, count);
        average_there (comm[w], dtype, x, count);
        CHECK (!memcmp (x, right, bytes), "%zu %s of the device by %s: other bits", count,
               data_names[dtype], ways[w]);
    }
    data_free (x, bytes);
    data_free (right, bytes);
}

int main (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32, GS_F64};

    setenv ("GS_DETERMINISTIC", "1", 1);
    for (int w = 0; w < WAYS; w++) {
        setenv ("GS_HOST_ALGO", ways[w], 1);
        comm[w] = multi_create (NULL);
    }
    for (int t = 0; t < 4; t++) {
        size_t width = gs_dtype_size (types[t]);
        for (size_t count = 1; count <= 20; count++)
            compare (types[t], count);
        for (const size_t *e = data_edges (gs_comm_size (comm[0]), width); *e; e++)
            compare (types[t], *e);
    }
    for (int w = 0; w < WAYS; w++)
        CHECK_OK (gs_comm_destroy (comm[w]));
    return multi_end ("four algorithms, four types, the same bits");
}
