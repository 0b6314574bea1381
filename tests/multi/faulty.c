/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faulty - the program of faults.sh: one communicator, one operation of each kind, and a
 * group. Says how far each rank came and with which status it ended.
 */
#include "multi.h"

#define COUNT 140000 /* floats: more than one block of a large operation */
#define LAST  18     /* step, a destroy */

static float x[COUNT], y[COUNT];
static gs_moments_t moments[10];
static void *memory;
static gs_comm_t *group;

/* To the next rank, from the one before: one short message and a long one. */
static gs_status_t messages (gs_comm_t *comm)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    gs_status_t st = gs_group_begin (comm);

    for (size_t count = 10; count <= COUNT && !st; count *= COUNT / 10)
        if (!(st = gs_send (comm, x, count, GS_F32, (rank + 1) % size, NULL)))
            st = gs_recv (comm, y, count, GS_F32, (rank + size - 1) % size, NULL);
    return st ? st : gs_group_end (comm);
}

static gs_status_t ghosts (gs_comm_t *comm)
{
    const int grid[1] = {gs_comm_size (comm)}, periodic[1] = {1};
    const size_t extents[1] = {100}, width[1] = {3};
    gs_halo_t *halo;
    gs_status_t st = gs_halo_create (comm, 1, grid, extents, width, periodic, GS_F32, &halo);

    if (st)
        return st;
    st = gs_halo_exchange (halo, x, NULL);
    gs_halo_destroy (halo);
    return st;
}

static gs_status_t copy_rows (size_t rows, const void *in, void *out, gs_stream_t stream,
                              void *context)
{
    (void) stream;
    (void) context;
    memcpy (out, in, rows * sizeof (float));
    return GS_OK;
}

static gs_status_t pool (gs_comm_t *comm)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
    gs_pool_t *rows;
    gs_status_t st;

    opts.inputs = opts.outputs = 1;
    opts.dtype = GS_F32;
    opts.max_rows = 10;
    opts.on_batch = copy_rows;
    if ((st = gs_pool_create (comm, &opts, &rows)))
        return st;
    st = gs_pool_evaluate (rows, x, 10, y);
    gs_pool_destroy (rows);
    return st;
}

static gs_status_t use_plan (gs_ckpt_t *ckpt, int rank, int size)
{
    const size_t whole = 10 * (size_t) size, ten = 10, at = 10 * (size_t) rank;
    gs_status_t st = gs_ckpt_add_replicated (ckpt, "y", 1, &ten, GS_F32, y);

    if (st || (st = gs_ckpt_add_sharded (ckpt, "x", 1, &ten, &at, &whole, GS_F32, x)) ||
        (st = gs_ckpt_commit (ckpt)) || (st = gs_ckpt_write (ckpt, 1, NULL)) ||
        (st = gs_ckpt_write_async (ckpt, 2, NULL, NULL)) ||
        (st = gs_ckpt_wait (ckpt, NULL, NULL)))
        return st;
    return gs_ckpt_read (ckpt, 2, NULL, NULL);
}

static gs_status_t checkpoint (gs_comm_t *comm)
{
    const char *folder = getenv ("TMPDIR");
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;
    gs_status_t st;

    opts.compare = GS_CKPT_COMPARE_NONE; /* which step 13 does */
    st = gs_ckpt_create (comm, folder ? folder : "/tmp", &opts, &ckpt);
    if (st)
        return st == GS_ERR_UNSUPPORTED ? GS_OK : st;
    st = use_plan (ckpt, gs_comm_rank (comm), gs_comm_size (comm));
    gs_ckpt_destroy (ckpt);
    return st;
}

/* Step [step] of the life of [comm]; steps past the last one do nothing. */
static gs_status_t take_step (int step, gs_comm_t **comm)
{
    const gs_array_t array = {"moments", moments, sizeof (moments), GS_U8};
    gs_comm_t *ended = *comm;

    switch (step) {
    case 0: return gs_comm_create (NULL, comm);
    case 1: return gs_allreduce_avg (*comm, x, 10, GS_F32, NULL);
    case 2: return gs_allreduce_wavg (*comm, x, COUNT, GS_F32, 2, NULL);
    case 3: return gs_device_alloc (*comm, sizeof (x), &memory);
    case 4: return gs_allreduce_avg (*comm, memory, COUNT, GS_F32, NULL);
    case 5: return gs_device_free (*comm, memory);
    case 6: return gs_broadcast (*comm, x, COUNT, GS_F32, 0, NULL);
    case 7: return gs_allgather (*comm, x, y, 10, GS_F32, NULL);
    case 8: return gs_barrier (*comm, NULL);
    case 9: return gs_comm_split (*comm, 0, 0, &group);
    case 10: return gs_allreduce_avg (group, x, COUNT, GS_F32, NULL);
    case 11: return gs_comm_destroy (group);
    case 12: return gs_moments_compute (*comm, x, COUNT / 10, 10, GS_F32, NULL, 0, moments, NULL);
    case 13: return gs_arrays_compare (*comm, &array, 1, 0, NULL);
    case 14: return messages (*comm);
    case 15: return ghosts (*comm);
    case 16: return pool (*comm);
    case 17: return checkpoint (*comm);
    default: *comm = NULL; return gs_comm_destroy (ended);
    }
}

int main (void)
{
    gs_comm_t *comm = NULL;
    gs_status_t st = GS_OK;
    int step = -1;

    setenv ("GS_DEBUG", "warn", 1); /* which tells of faults */
    while (!st && step < LAST)
        st = take_step (++step, &comm);
    printf ("rank %d ended in step %d with %s: %s\n", multi_rank (), step, gs_status_string (st),
            st ? gs_last_error () : "");
    fflush (stdout);
    if (st && comm && !gs_comm_check (comm))
        gs_comm_abort (comm); /* refused here only: the others wait */
    gs_comm_destroy (comm);
    return 0;
}
