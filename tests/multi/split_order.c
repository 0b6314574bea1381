/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split_order - calls on groups that share ranks, made in orders with a cycle: at the deadline
 * the text says where the missing rank is, and GS_CHECK=collective does not wait for it.
 */
#include "multi.h"

#define DEADLINE_MS 120000 /* never reached */

static gs_comm_t *stays;

/* Two communicators of ranks 0 and 1; the others have none. */
static void make (gs_comm_t *world, gs_comm_t **a, gs_comm_t **b)
{
    int rank = gs_comm_rank (world), first = rank < 2 ? 0 : GS_COLOR_NONE;

    CHECK_OK (gs_comm_split (world, first, 0, a));
    CHECK_OK (gs_comm_split (world, first < 0 ? first : 1, 0, b));
    for (int i = 0; i < 3 && *a && *b; i++) {
        CHECK_OK (gs_barrier (*a, NULL));
        CHECK_OK (gs_barrier (*b, NULL));
    }
}

/* Rank 0 calls on A, rank 1 on B; neither comes to the other. */
static void crossed (gs_comm_t *a, gs_comm_t *b, gs_status_t wanted, const char *part)
{
    float x[10] = {0};
    gs_comm_t *mine = gs_comm_rank (a) ? b : a, *other = gs_comm_rank (a) ? a : b;
    char where[100];
    double begin = multi_seconds ();
    gs_status_t st;

    snprintf (where, sizeof (where), " in allreduce_avg #4 of communicator '%s'",
              gs_comm_name (other));
    st = multi_wait (mine, gs_allreduce_avg (mine, x, 10, GS_F32, NULL));
    /* On GPUs a group shares NCCL's resources: the first that ends takes the other with it. */
    if (!multi_any_gpus () || st != GS_ERR_STATE)
        CHECK_FAILS (st, wanted, where, part, gs_comm_name (mine));
    CHECK (multi_seconds () - begin < DEADLINE_MS / 2e3, "told after %g s",
           multi_seconds () - begin);
    multi_signal (part, gs_comm_rank (a)); /* its record stays until the other has read it */
    multi_await (part, !gs_comm_rank (a));
}

static void scenario (const char *check, gs_status_t wanted, const char *part, int64_t deadline)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *world, *a, *b;

    setenv ("GS_CHECK", check, 1);
    opts.timeout_ms = deadline;
    world = multi_create (&opts);
    make (world, &a, &b);
    if (a && b)
        crossed (a, b, wanted, part);
    gs_comm_abort (a); /* one of them is dead, and the other rank may have gone */
    gs_comm_abort (b);
    CHECK_OK (gs_comm_destroy (a));
    CHECK_OK (gs_comm_destroy (b));
    multi_signal (check, gs_comm_rank (world));
    multi_await_others (check, gs_comm_rank (world));
    if (!multi_any_gpus ()) { /* there they share NCCL's resources: all are dead */
        double x = 1;
        CHECK_OK (gs_allreduce (world, &x, 1, GS_F64, GS_SUM, NULL));
    }
    gs_comm_destroy (world);
}

int main (void)
{
    if (!multi_any_gpus ()) { /* there the calls are queued, and so is their end */
        /* Nobody ends MPI at exit while this is open: who is in no group would, and wait for the
         * others, which do not. */
        stays = multi_create (NULL);
        scenario ("args", GS_ERR_TIMEOUT, "did not come", 3000);
    }
    scenario ("collective", GS_ERR_MISMATCH, "in one order", DEADLINE_MS);
    return multi_end ("calls on groups in orders with a cycle");
}
