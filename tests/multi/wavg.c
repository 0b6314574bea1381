/* SPDX-License-Identifier: BSD-3-Clause */
/* wavg - weighted averages: uneven weights, weight 0, none at all, refused weights. */
#include "data.h"

#define MOST MULTI_MOST_RANKS

static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32,     GS_F64,
                                   GS_C64, GS_C128, GS_F8_E4M3, GS_F8_E5M2};
static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;
static double weights[MOST];

/* Averages with [weights] and checks values and bits. A rank without weight has NaN. */
static void check_weights (gs_dtype_t dtype, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype), wrong = 0;
    size_t step = count > 100 ? (size_t) size : 1;
    void *x = data_allocate (bytes);

    data_fill (dtype, x, ++seed, rank, count);
    if (weights[rank] == 0)
        memset (x, 0xff, bytes);
    CHECK_OK (gs_allreduce_wavg (comm, x, count, dtype, weights[rank], NULL));
    for (size_t i = (size_t) rank % step; i < count; i += step)
        wrong += !data_average_is_right (dtype, x, i, seed, size, weights);
    CHECK (!wrong, "%zu of %zu %s are wrong", wrong, count, data_names[dtype]);
    CHECK (data_same_everywhere (comm, x, bytes), "%zu %s: ranks have different bits", count,
           data_names[dtype]);
    CHECK (data_free (x, bytes), "%zu %s: writes behind the buffer", count, data_names[dtype]);
}

static void check_all_types (void)
{
    for (int t = 0; t < 6; t++) {
        size_t width = gs_dtype_size (types[t]), large = (300 << 10) / width + 3;
        for (size_t count = 0; count <= 5; count++)
            check_weights (types[t], count);
        check_weights (types[t], (16 << 10) / width);
        check_weights (types[t], (16 << 10) / width + 1);
        check_weights (types[t], large);
    }
}

static void uneven (void)
{
    for (int r = 0; r < size; r++)
        weights[r] = 1 + r * 37 % 11; /* numbers of samples */
    check_all_types ();
    for (int r = 0; r < size; r++)
        weights[r] = ldexp (1 + 0.1 * r, r % 2 ? 900 : 890); /* their plain sum is large */
    check_all_types ();
}

static void some_without_data (void)
{
    for (int lonely = 0; lonely < size; lonely++) {
        for (int r = 0; r < size; r++)
            weights[r] = r == lonely ? 0 : 2 + r;
        if (size > 1)
            check_weights (types[lonely % 6], 1000);
        for (int r = 0; r < size; r++)
            weights[r] = r == lonely ? 5 : 0;
        check_weights (types[lonely % 6], 50);
        check_weights (types[lonely % 6], 100000);
    }
}

static void count_warnings (gs_log_level_t level, const char *line, void *context)
{
    *(int *) context += level == GS_LOG_WARN && strstr (line, "all weights are 0") != NULL;
}

static void nobody_has_data (void)
{
    int warnings = 0;

    memset (weights, 0, sizeof (weights));
    gs_log_set_sink (count_warnings, &warnings);
    for (int t = 0; t < 6; t++) {
        check_weights (types[t], 10);
        check_weights (types[t], 40000);
    }
    gs_log_set_sink (NULL, NULL);
    CHECK (warnings == !rank, "%d warnings about weights 0", warnings);
}

/* Equal weights of any size give the bits of the plain average. */
static void equal_weights (void)
{
    static const double ws[] = {1, 3, 0.1, 0x1p-1074, 0x1.fffffffffffffp1023};
    size_t counts[] = {7, 30000};

    for (int t = 0; t < 6; t++)
        for (int c = 0; c < 2; c++) {
            size_t bytes = counts[c] * gs_dtype_size (types[t]);
            void *x = data_allocate (bytes), *y = data_allocate (bytes);
            data_fill (types[t], x, ++seed, rank, counts[c]);
            CHECK_OK (gs_allreduce_avg (comm, x, counts[c], types[t], NULL));
            for (int w = 0; w < 5; w++) {
                data_fill (types[t], y, seed, rank, counts[c]);
                CHECK_OK (gs_allreduce_wavg (comm, y, counts[c], types[t], ws[w], NULL));
                CHECK (!memcmp (x, y, bytes), "%s: weight %g does not give the average's bits",
                       data_names[types[t]], ws[w]);
            }
            data_free (x, bytes);
            data_free (y, bytes);
        }
}

/* A bad weight on one rank fails on all, names that rank, and changes nothing. */
static void refused_weights (void)
{
    static const double bad[] = {-1, -0x1p-1074, NAN, INFINITY, -INFINITY};

    for (int guilty = 0; guilty < size; guilty++)
        for (int b = 0; b < 5; b++) {
            float x = 5;
            char name[64];
            snprintf (name, sizeof (name), "rank %d (host ", guilty);
            CHECK_FAILS (
                gs_allreduce_wavg (comm, &x, 1, GS_F32, rank == guilty ? bad[b] : 2, NULL),
                GS_ERR_ARG, "gs_allreduce_wavg", name, "weight");
            CHECK (x == 5, "a refused call changes the buffer");
        }
    CHECK_OK (gs_barrier (comm, NULL)); /* it lives on */
}

int main (void)
{
    comm = multi_create (NULL);
    data_learn (comm);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    uneven ();
    some_without_data ();
    nobody_has_data ();
    equal_weights ();
    refused_weights ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("weighted averages: uneven, 0, none, equal, refused");
}
