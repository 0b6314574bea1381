/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * saver - the program of ckpt_kill.sh:
 *
 *   saver save FOLDER RANK US HOW LAYOUT
 *                        saves step after step; RANK, or all for -1, is killed after US
 *                        microseconds of it; HOW: now, async or lazy; LAYOUT: single or node
 *   saver check FOLDER   reads all there is, and says how much: on any number of ranks
 */
#include <pthread.h>
#include <signal.h>

#include "multi.h"

#define CELLS   ((size_t) 60000)
#define WEIGHTS ((size_t) 150000)
#define STEPS   100000

static double *field, weights[WEIGHTS];
static size_t cells, begin;

/* Values that only this step has. */
static double value (int64_t step, size_t i)
{
    return (double) step + (double) i / 1048576;
}

static void fill (int64_t step)
{
    for (size_t i = 0; i < cells; i++)
        field[i] = value (step, begin + i);
    for (size_t i = 0; i < WEIGHTS; i++)
        weights[i] = value (-step, i);
}

static void check (int64_t step)
{
    size_t wrong = 0;

    for (size_t i = 0; i < cells; i++)
        wrong += field[i] != value (step, begin + i);
    for (size_t i = 0; i < WEIGHTS; i++)
        wrong += weights[i] != value (-step, i);
    CHECK (!wrong, "step %lld: %zu values are wrong", (long long) step, wrong);
}

static void *kill_soon (void *us)
{
    usleep (*(useconds_t *) us);
    raise (SIGKILL);
    return NULL;
}

static gs_ckpt_t *make_plan (gs_comm_t *comm, const char *folder, const char *how,
                             const char *layout)
{
    const size_t rank = (size_t) gs_comm_rank (comm), size = (size_t) gs_comm_size (comm);
    const size_t whole = CELLS, weight_count = WEIGHTS;
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;

    begin = CELLS * rank / size;
    cells = CELLS * (rank + 1) / size - begin;
    field = calloc (cells, sizeof (*field));
    opts.keep_last = 5;
    opts.lazy = !strcmp (how, "lazy");
    opts.layout = strcmp (layout, "node") ? GS_CKPT_LAYOUT_SINGLE : GS_CKPT_LAYOUT_NODE;
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &plan));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 1, &cells, &begin, &whole, GS_F64, field));
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, &weight_count, GS_F64, weights));
    CHECK_OK (gs_ckpt_commit (plan));
    return plan;
}

/* Whether it went well, so far: else another rank is gone. */
static bool save_step (gs_ckpt_t *plan, int64_t step, const char *how)
{
    bool ok;

    fill (step);
    if (!strcmp (how, "now"))
        return !gs_ckpt_write (plan, step, NULL);
    ok = !gs_ckpt_write_async (plan, step, NULL, NULL) && !gs_ckpt_wait_staged (plan);
    fill (-step - 1); /* what must not come to the file */
    return ok && !gs_ckpt_test (plan, NULL, NULL);
}

static void save (gs_comm_t *comm, gs_ckpt_t *plan, int who, useconds_t us, const char *how)
{
    int64_t first;
    pthread_t thread;

    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &first, NULL));
    CHECK_OK (gs_barrier (comm, NULL));
    if (who < 0 || who == gs_comm_rank (comm))
        CHECK (!pthread_create (&thread, NULL, kill_soon, &us), "no thread");
    for (int64_t step = first + 1; step < first + STEPS && save_step (plan, step, how); step++)
        ;
    sleep (30);
}

/* Every file that has its name is whole, and the newest one is what a read takes. */
static void check_all (gs_ckpt_t *plan)
{
    int64_t steps[64], found;
    size_t number;

    CHECK_OK (gs_ckpt_list (plan, steps, 64, &number));
    CHECK (number <= 6, "%zu files", number); /* one may be killed before it removes another */
    for (size_t i = 0; i < number; i++) {
        CHECK_OK (gs_ckpt_read (plan, steps[i], &found, NULL));
        check (steps[i]);
    }
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == (number ? steps[number - 1] : -1), "%lld is read", (long long) found);
    if (!multi_rank ())
        printf ("%zu files are whole, the newest of step %lld\n", number, (long long) found);
}

int main (int argc, char **argv)
{
    gs_comm_t *comm;
    gs_ckpt_t *plan;

    if (argc < 3)
        return 2;
    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    comm = multi_create (NULL);
    plan = make_plan (comm, argv[2], argc > 6 ? argv[5] : "now", argc > 6 ? argv[6] : "single");
    if (argc > 6)
        save (comm, plan, atoi (argv[3]), (useconds_t) atoi (argv[4]), argv[5]);
    else
        check_all (plan);
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_comm_destroy (comm));
    free (field);
    return multi_failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
