/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uneven - ranks that do different numbers of steps: all are told who is in which call of which
 * step, on one node and on several.
 */
#include "multi.h"

#define STEPS 3 /* of the last rank; the others do more */

static gs_comm_t *comm;
static int rank, size;

static gs_status_t step (gs_reducer_t *reducer)
{
    gs_status_t st = gs_reducer_ready (reducer, 1, NULL);

    if (!st)
        st = gs_reducer_ready (reducer, 0, NULL);
    return st ? st : gs_reducer_finish (reducer, NULL);
}

/* The text of [st] names both calls; GS_ERR_STATE is what the rank is told that comes second. */
static void check_text (gs_status_t st)
{
    char last[32];
    const char *parts[] = {"bucket, GS_F64",
                           "step 4 of reducer 'gradients', bucket 1 of",
                           "conv_w",
                           "barrier, no type",
                           "after step 3 of reducer 'gradients'",
                           "is in call #",
                           rank == size - 1 ? "rank 0" : last};

    snprintf (last, sizeof (last), "rank %d", size - 1);
    CHECK (st == GS_ERR_MISMATCH || st == GS_ERR_STATE, "uneven steps give %s: %s",
           gs_status_string (st), st ? gs_last_error () : "");
    for (size_t i = 0; i < sizeof (parts) / sizeof (parts[0]); i++)
        CHECK (strstr (gs_last_error (), parts[i]), "no '%s' in '%s'", parts[i],
               gs_last_error ());
}

int main (void)
{
    static const size_t shape[] = {3, 3};
    gs_reducer_t *reducer;
    gs_status_t st = GS_OK;

    setenv ("GS_DEBUG", "warn", 0);
    comm = multi_create (NULL);
    if (multi_any_gpus ()) {
        puts ("skip: NCCL and GPUs carry the data, not this transport");
        return gs_comm_destroy (comm) ? 1 : 77;
    }
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    CHECK_OK (gs_reducer_create (comm, NULL, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "conv_w", 2, shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_add (reducer, "conv_b", 1, shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_commit (reducer));
    for (int i = 0; i < STEPS; i++)
        CHECK_OK (step (reducer));
    st = rank == size - 1 ? gs_barrier (comm, NULL) : step (reducer);
    check_text (st);
    gs_reducer_destroy (reducer);
    gs_comm_destroy (comm);
    return multi_end ("ranks with different numbers of steps");
}
