/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reducer_soak - very many steps: memory and open files stay as they were, and the last average
 * is as right as the first. A million of them with GS_TEST_LONG, for make check-long.
 */
#include "data.h"
#include "holdings.h"

#define GRADIENTS 5
#define COUNT     300
#define LARGE     ((size_t) 32 << 20)
#define MEGABYTE  ((size_t) 1 << 20)
#ifdef __SANITIZE_ADDRESS__
#define SMALL (LARGE / 4) /* it has a byte for each eight of the program's */
#elif defined(__SANITIZE_THREAD__)
#define SMALL (10 * LARGE) /* its shadow is several times what is written */
#else
#define SMALL MEGABYTE /* a bucket, and what else there is */
#endif
#ifdef __SANITIZE_THREAD__
#define GROWTH (128 * MEGABYTE)
#else
#define GROWTH MEGABYTE
#endif
#define SHORT   50000
#define LONG    1000000
#define CROWDED 500 /* where steps take milliseconds */

static gs_comm_t *comm;
static gs_reducer_t *reducer;
static int rank, size, loss;
static double *grad[GRADIENTS];

/* Bytes of memory that are there, what processes share divided among them. */
static long proportional (void)
{
    FILE *file = fopen ("/proc/self/smaps_rollup", "r");
    char line[256];
    long anonymous = 0, shared = 0;

    while (file && fgets (line, sizeof (line), file)) {
        sscanf (line, "Pss_Anon: %ld", &anonymous);
        sscanf (line, "Pss_Shmem: %ld", &shared);
    }
    if (file)
        fclose (file);
    return (anonymous + shared) * 1024;
}

/* What the ranks have of it in all, when all have come so far. */
static long of_all (void)
{
    int64_t bytes;

    CHECK_OK (multi_barrier (comm));
    bytes = proportional ();
    CHECK_OK (gs_allreduce (comm, &bytes, 1, GS_I64, GS_SUM, NULL));
    return (long) bytes;
}

/* Large gradients in the reducer's storage are all the memory there is, beside a small bucket. */
static void check_memory (void)
{
    size_t shape = LARGE / sizeof (double), half = shape / 2;
    gs_reducer_t *large;
    long before = of_all (), more;
    void *at[2];

    CHECK_OK (gs_reducer_create (comm, NULL, &large));
    CHECK_OK (gs_reducer_add (large, "large", 1, &shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_add (large, "f32", 1, &half, GS_F32, NULL, NULL));
    CHECK_OK (gs_reducer_commit (large));
    for (int i = 0; i < 3; i++)
        for (int g = 0; g < 2; g++) {
            CHECK_OK (gs_reducer_get_grad (large, g, &at[g]));
            memset (at[g], rank, g ? LARGE / 4 : LARGE);
            CHECK_OK (gs_reducer_ready (large, g, NULL));
            if (g)
                CHECK_OK (gs_reducer_finish (large, NULL));
        }
    more = of_all () - before;
    CHECK (more < size * (long) (LARGE + LARGE / 4 + SMALL), "%ld bytes for gradients of %zu",
           more, size * (LARGE + LARGE / 4));
    CHECK_OK (gs_reducer_destroy (large));
}

static void make (void)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;

    opts.first_bytes = opts.last_bytes = COUNT * sizeof (double);
    opts.bucket_bytes = 2 * COUNT * sizeof (double) + 64;
    CHECK_OK (gs_reducer_create (comm, &opts, &reducer));
    for (int g = 0; g < GRADIENTS; g++) {
        char name[8];
        size_t shape = COUNT;
        snprintf (name, sizeof (name), "g%d", g);
        CHECK_OK (gs_reducer_add (reducer, name, 1, &shape, GS_F64, NULL, NULL));
    }
    CHECK_OK (gs_reducer_add_scalar (reducer, "loss", GS_SUM, &loss));
    CHECK_OK (gs_reducer_commit (reducer));
    for (int g = 0; g < GRADIENTS; g++)
        CHECK_OK (gs_reducer_get_grad (reducer, g, (void **) &grad[g]));
}

/* One element of each gradient is this rank's own; the others follow from the step before. */
static bool step (long s)
{
    double value, mean = (double) (s % 1000) + 0.5 * (size - 1);

    for (int g = GRADIENTS - 1; g >= 0; g--) {
        grad[g][s % COUNT] = (double) (s % 1000) + rank;
        if (gs_reducer_ready (reducer, g, NULL))
            return false;
    }
    if (gs_reducer_set_scalar (reducer, loss, (double) s) || gs_reducer_finish (reducer, NULL) ||
        gs_reducer_get_scalar (reducer, loss, &value))
        return false;
    return value == (double) s * size && grad[0][s % COUNT] == mean &&
           grad[GRADIENTS - 1][s % COUNT] == mean;
}

int main (void)
{
    long steps = getenv ("GS_TEST_LONG") ? LONG : SHORT, before = 0;
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    int files = 0;

    setenv ("GS_DEBUG", "error", 1);
    setenv ("GS_TRANSPORT", multi_size () > 1 ? "mpi" : "self", 1);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    if (gs_comm_nodes (comm) == 1) {     /* else the transport has staging areas of its own */
        CHECK_OK (multi_barrier (comm)); /* what the first calls make */
        check_memory ();
    }
    if (size > 2)
        steps = CROWDED;
    make ();
    for (long s = 1; s <= steps && !multi_failures; s++) {
        if (s == steps / 10) {
            before = holdings_resident ();
            files = holdings_descriptors ();
        }
        CHECK (step (s), "step %ld is not right: %s", s, gs_last_error ());
    }
    CHECK (holdings_resident () < before + (long) GROWTH, "%ld bytes more than before",
           holdings_resident () - before);
    CHECK (holdings_descriptors () == files, "%d open files, not %d", holdings_descriptors (),
           files);
    CHECK_OK (gs_reducer_get_stats (reducer, &stats));
    CHECK (stats.steps == steps, "%lld steps were counted", (long long) stats.steps);
    if (!rank)
        printf ("%ld steps in %d buckets, %.1f us each\n", steps, stats.buckets, stats.step_us);
    CHECK_OK (gs_reducer_destroy (reducer));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("very many steps of a reducer");
}
