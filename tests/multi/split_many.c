/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split_many - communicators and groups made and destroyed again and again leave nothing behind:
 * descriptors, threads, mappings, memory, MPI's communicators. GS_TEST_LONG: a thousand times.
 */
#include <mpi.h>
#include <string.h>

#include "holdings.h"

#define CYCLES      30
#define LONG_CYCLES 1000
#define WARM        10
#define HEAP_BYTES  (size_t) 2048 /* that Open MPI may keep; less than a block of each group */

struct holdings {
    int descriptors, threads, mappings, comms;
    size_t heap;
};

/* The number that MPI gives the next communicator; it reuses those that were freed. */
static int next_comm (void)
{
    int up = 0, number;
    MPI_Comm own;

    MPI_Initialized (&up);
    if (!up)
        return 0;
    MPI_Comm_dup (MPI_COMM_SELF, &own);
    number = (int) MPI_Comm_c2f (own);
    MPI_Comm_free (&own);
    return number;
}

static struct holdings count_holdings (void)
{
    return (struct holdings){.comms = next_comm (),
                             .descriptors = holdings_descriptors (),
                             .threads = holdings_threads (),
                             .mappings = holdings_mapped_files (),
                             .heap = holdings_heap ()};
}

static void check_sum (gs_comm_t *comm)
{
    double x = 1;

    if (!comm)
        return;
    CHECK_OK (gs_allreduce (comm, &x, 1, GS_F64, GS_SUM, NULL));
    CHECK (x == gs_comm_size (comm), "sum of ones is %g", x);
}

/* Groups of [world] that are used and end in another order than they began; one is refused. */
static void split (gs_comm_t *world, int number, gs_comm_t **last)
{
    gs_comm_t *half, *row, *column, *node;
    int rank = gs_comm_rank (world), none = number % 3 == 0;

    CHECK_OK (gs_comm_split (world, none && !rank ? GS_COLOR_NONE : rank % 2, number, &half));
    CHECK_OK (gs_comm_split_grid (world, 0, 0, &row, &column));
    CHECK_FAILS (gs_comm_split (world, rank ? 0 : -5, 0, &node), GS_ERR_ARG, "-5");
    CHECK_OK (gs_comm_split_node (world, &node));
    check_sum (half);
    check_sum (row);
    CHECK_OK (gs_comm_destroy (row));
    check_sum (column);
    check_sum (node);
    CHECK_OK (gs_comm_destroy (node));
    CHECK_OK (gs_comm_destroy (half));
    *last = column;
}

static void check_holdings (const struct holdings *before)
{
    struct holdings after = count_holdings ();

    for (int i = 0; i < 100 && after.threads > before->threads; i++) { /* NCCL's end by and by */
        usleep (10000);
        after = count_holdings ();
    }
    CHECK (after.descriptors <= before->descriptors, "%d file descriptors became %d",
           before->descriptors, after.descriptors);
    CHECK (after.threads <= before->threads, "%d threads became %d", before->threads,
           after.threads);
    /* The simulated GPUs remember what was freed, to find its use. */
    CHECK (multi_any_gpus () || after.mappings <= before->mappings + 4,
           "%d mappings of files became %d", before->mappings, after.mappings);
    CHECK (after.comms <= before->comms, "MPI's next communicator was %d and is %d",
           before->comms, after.comms);
}

int main (void)
{
    int cycles = getenv ("GS_TEST_LONG") ? LONG_CYCLES : CYCLES;
    gs_comm_t *stays = multi_create (NULL), *world, *last;
    struct holdings before = {0};

    for (int i = 0; i < WARM + cycles && !multi_failures; i++) {
        if (i == WARM)
            before = count_holdings ();
        world = multi_create (NULL);
        split (world, i, &last);
        CHECK_OK (gs_comm_destroy (i % 2 ? world : last));
        CHECK_OK (gs_comm_destroy (i % 2 ? last : world));
    }
    check_holdings (&before);
    /* Of one communicator: PMIx keeps what each new one has put. */
    for (int i = 0; i < WARM + cycles && !multi_failures; i++) {
        if (i == WARM)
            before = count_holdings ();
        split (stays, i, &last);
        CHECK_OK (gs_comm_destroy (last));
    }
    check_holdings (&before);
    CHECK (multi_any_gpus () || holdings_heap () <= before.heap + HEAP_BYTES,
           "%zu bytes of the heap became %zu", before.heap, holdings_heap ());
    CHECK_OK (gs_comm_destroy (stays));
    return multi_end ("communicators and groups leave nothing behind");
}
