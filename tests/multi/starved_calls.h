/* SPDX-License-Identifier: BSD-3-Clause */
/* starved_calls - the calls of starving.c: what each needs, does, and gives. */
#ifndef GS_TESTS_STARVED_CALLS_H
#define GS_TESTS_STARVED_CALLS_H

#include "starved_features.h"

/* Who hears of it when one rank refuses a call for want of memory. */
enum kind {
    TOGETHER, /* the call fails on all ranks, or on none */
    ALONE,    /* the call is of one rank, and no other knows of it */
    ENDS,     /* of two ends of messages: the program then ends the communicator */
};

struct call {
    const char *name;
    enum kind kind;
    void (*prepare) (void);
    gs_status_t (*run) (void);
    void (*use) (void); /* what the call has made, in [out] */
};

/* ---- Collectives ---- */

static gs_status_t sum_small (void)
{
    return gs_allreduce (comm, out, SMALL, GS_F64, GS_SUM, NULL);
}

static gs_status_t sum_large (void)
{
    return gs_allreduce_wavg (comm, out, LARGE, GS_F64, rank + 1, NULL);
}

static gs_status_t spread (void)
{
    return gs_broadcast (comm, out, LARGE, GS_F64, 0, NULL);
}

static gs_status_t gather_all (void)
{
    return gs_allgather (comm, in, out, LARGE, GS_F64, NULL);
}

static const size_t counts[] = {SMALL, SMALL / 2}, displs[] = {SMALL, 0};

static gs_status_t gather_ragged (void)
{
    return gs_allgatherv (comm, in, counts[rank], out, LARGE, counts, displs, GS_F64, NULL);
}

static gs_status_t scatter_ragged (void)
{
    return gs_scatterv (comm, in, counts, displs, out, counts[rank], GS_F64, 1, NULL);
}

static gs_status_t exchange_ragged (void)
{
    const size_t own[] = {counts[rank], counts[rank]};

    return gs_alltoallv (comm, in, own, displs, out, counts, displs, GS_F64, NULL);
}

static gs_status_t sum_to_one (void)
{
    return gs_reduce (comm, in, out, LARGE, GS_F64, GS_SUM, 1, NULL);
}

static gs_status_t sum_parts (void)
{
    return gs_reduce_scatterv (comm, in, counts, displs, out, counts[rank], GS_F64, GS_SUM, NULL);
}

static gs_status_t gather_field (void)
{
    const size_t extents[] = {10, 5}, offsets[] = {0, 5 * (size_t) rank}, shape[] = {10, 10};

    return gs_gather_field (comm, in, 2, extents, offsets, out, shape, GS_F64, -1, NULL);
}

static gs_status_t gather_field_back (void)
{
    const size_t extents[] = {10, 5}, offsets[] = {0, 5 * (size_t) rank}, shape[] = {10, 10};

    return gs_gather_field_backward (comm, in, 2, shape, out, extents, offsets, GS_F64, 0, NULL);
}

static gs_status_t gather_back (void)
{
    return gs_allgatherv_backward (comm, in, counts, displs, out, counts[rank], GS_F64,
                                   GS_GRAD_ADJOINT, NULL);
}

static gs_status_t gather_back_large (void)
{
    return gs_allgather_backward (comm, in, out, LARGE, GS_F64, GS_GRAD_ADJOINT, NULL);
}

static gs_status_t barrier (void)
{
    return gs_barrier (comm, NULL);
}

static gs_status_t all (void)
{
    int result, st = (int) gs_flag_all (comm, 1, &result, NULL);

    out[0] = result;
    return (gs_status_t) st;
}

static gs_status_t take_memory (void)
{
    return gs_device_alloc (comm, LARGE * sizeof (double), &memory);
}

static void use_memory (void)
{
    memcpy (memory, in, LARGE * sizeof (double));
    CHECK_OK (gs_allreduce_avg (comm, memory, LARGE, GS_F64, NULL));
    memcpy (out, memory, LARGE * sizeof (double));
}

/* ---- Groups ---- */

static gs_status_t split (void)
{
    return gs_comm_split (comm, 0, rank, &group);
}

static gs_status_t split_list (void)
{
    const int ranks[] = {0, 1};

    return gs_comm_split_list (comm, 2, ranks, &group);
}

static gs_status_t split_grid (void)
{
    return gs_comm_split_grid (comm, size, 1, &group, &column);
}

static void use_group (void)
{
    CHECK_OK (gs_allgather (column ? column : group, in, out, SMALL, GS_F64, NULL));
}

/* ---- Messages ---- */

static gs_status_t messages (void)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    gs_status_t st = gs_group_begin (comm);

    for (size_t count = SMALL; count <= LARGE && !st; count += LARGE - SMALL)
        for (int i = 0; i < 10 && !st; i++)
            if (!(st = gs_send (comm, in + i, count, GS_F64, to, NULL)))
                st = gs_recv (comm, out + i, count, GS_F64, from, NULL);
    return st ? st : gs_group_end (comm);
}

static gs_status_t message (void)
{
    return rank ? gs_recv (comm, out, LARGE, GS_F64, 0, NULL)
                : gs_send (comm, in, LARGE, GS_F64, 1, NULL);
}

static gs_status_t make_boundary (void)
{
    const size_t shape[] = {SMALL};

    return gs_boundary_create (comm, 0, 1, 1, shape, GS_F64, &boundary);
}

static void use_boundary (void)
{
    CHECK_OK (gs_boundary_forward (boundary, rank ? out : in, NULL));
}

static gs_status_t make_halo (void)
{
    const int grid[] = {size, 1}, periodic[] = {1, 0};
    const size_t extents[] = {100, 30}, width[] = {3, 2};

    return gs_halo_create (comm, 2, grid, extents, width, periodic, GS_F64, &halo);
}

static void prepare_halo (void)
{
    CHECK_OK (make_halo ());
}

static gs_status_t exchange_halo (void)
{
    return gs_halo_exchange (halo, out, NULL);
}

static gs_status_t exchange_halo_back (void)
{
    return gs_halo_adjoint (halo, out, NULL);
}

static void use_halo (void)
{
    CHECK_OK (exchange_halo ());
}

/* ---- Statistics ---- */

static gs_moments_t moments[10];

static gs_status_t statistics (void)
{
    gs_status_t st = gs_moments_compute (comm, in, 10000, 10, GS_F64, NULL, 0, moments, NULL);

    for (int i = 0; i < 10 && !st; i++) {
        out[2 * i] = moments[i].mean;
        out[2 * i + 1] = moments[i].max;
    }
    return st;
}

static gs_status_t compare_arrays (void)
{
    const gs_array_t arrays[] = {{"a", counts, 2, GS_U64}, {"b", displs, 2, GS_U64}};

    return gs_arrays_compare (comm, arrays, 2, 0, NULL);
}

/* A difference is what there is to tell: the call goes well where it is told. */
static gs_status_t compare_differing (void)
{
    const gs_array_t arrays[] = {{"c", in, LARGE + 1, GS_F64}};
    gs_status_t st = gs_arrays_compare (comm, arrays, 1, 0, NULL);

    return st == GS_ERR_MISMATCH && strstr (gs_last_error (), "'c'") ? GS_OK : st;
}

static gs_status_t forward (const double *x, double *y, void *unused)
{
    (void) unused;
    memcpy (y, x, SMALL * sizeof (*y));
    return gs_allreduce (comm, y, SMALL, GS_F64, GS_SUM, NULL);
}

static gs_status_t backward (const double *x, const double *grad_y, double *grad_x, void *unused)
{
    (void) x;
    return forward (grad_y, grad_x, unused);
}

static gs_status_t check_adjoint (void)
{
    return gs_adjoint_check (comm, forward, backward, NULL, in, SMALL, SMALL, NULL, NULL);
}

/* ---- All ---- */

static gs_status_t destroy (void)
{
    gs_comm_t *ended = comm;

    comm = NULL;
    return gs_comm_destroy (ended);
}

/* N.B. Those behind [no_ckpt] need HDF5. */
static const struct call calls[] = {
    {"allreduce", TOGETHER, NULL, sum_small, NULL},
    {"allreduce_wavg", TOGETHER, NULL, sum_large, NULL},
    {"broadcast", TOGETHER, NULL, spread, NULL},
    {"allgather", TOGETHER, NULL, gather_all, NULL},
    {"allgatherv", TOGETHER, NULL, gather_ragged, NULL},
    {"scatterv", TOGETHER, NULL, scatter_ragged, NULL},
    {"alltoallv", TOGETHER, NULL, exchange_ragged, NULL},
    {"reduce", TOGETHER, NULL, sum_to_one, NULL},
    {"reduce_scatterv", TOGETHER, NULL, sum_parts, NULL},
    {"gather_field", TOGETHER, NULL, gather_field, NULL},
    {"gather_field_backward", TOGETHER, NULL, gather_field_back, NULL},
    {"allgatherv_backward", TOGETHER, NULL, gather_back, NULL},
    {"allgather_backward", TOGETHER, NULL, gather_back_large, NULL},
    {"barrier", TOGETHER, NULL, barrier, NULL},
    {"all", TOGETHER, NULL, all, NULL},
    {"device_alloc", ALONE, NULL, take_memory, use_memory},
    {"comm_split", TOGETHER, NULL, split, use_group},
    {"comm_split_list", TOGETHER, NULL, split_list, use_group},
    {"comm_split_grid", TOGETHER, NULL, split_grid, use_group},
    {"messages", ENDS, NULL, messages, NULL},
    {"message", ENDS, NULL, message, NULL},
    {"boundary_create", TOGETHER, NULL, make_boundary, use_boundary},
    {"halo_create", TOGETHER, NULL, make_halo, use_halo},
    {"halo_exchange", TOGETHER, prepare_halo, exchange_halo, NULL},
    {"halo_adjoint", TOGETHER, prepare_halo, exchange_halo_back, NULL},
    {"reducer_create", ALONE, NULL, make_reducer, use_new_reducer},
    {"reducer_add", ALONE, prepare_gradients, add_gradients, use_gradients},
    {"reducer_commit", TOGETHER, prepare_commit, commit_reducer, use_reducer},
    {"reducer_finish", TOGETHER, prepare_step, step, NULL},
    {"reducer_broadcast", TOGETHER, prepare_step, share_parameters, NULL},
    {"reducer_relayout", TOGETHER, prepare_relayout, relayout, use_reducer},
    {"stats", TOGETHER, NULL, statistics, NULL},
    {"compare", TOGETHER, NULL, compare_arrays, NULL},
    {"compare of what differs", TOGETHER, NULL, compare_differing, NULL},
    {"adjoint_check", TOGETHER, NULL, check_adjoint, NULL},
    {"comm_destroy", TOGETHER, NULL, destroy, NULL},
    {"ckpt_create", ALONE, NULL, make_plan, use_new_plan},
    {"ckpt_add", ALONE, prepare_plan, add_arrays, use_arrays},
    {"ckpt_commit", TOGETHER, prepare_commit_plan, commit_plan, use_commit},
    {"ckpt_write", TOGETHER, prepare_write, write_plan, use_plan},
    {"ckpt_write_async", TOGETHER, prepare_write, begin_write, use_plan},
    {"ckpt_read", TOGETHER, prepare_read, read_plan, NULL},
    {"ckpt_list", TOGETHER, prepare_list, list_plan, NULL},
    {"stop_requested", TOGETHER, prepare_write, ask_stop, NULL},
};
#define CALLS ((int) (sizeof (calls) / sizeof (calls[0])))

/* Ends what the call and its preparation have made. */
static void finish (void)
{
    gs_reducer_destroy (reducer);
    gs_halo_destroy (halo);
    gs_boundary_destroy (boundary);
    gs_ckpt_wait (plan, NULL, NULL);
    gs_ckpt_destroy (plan);
    gs_comm_destroy (column);
    gs_comm_destroy (group);
    if (memory)
        gs_device_free (comm, memory);
    reducer = NULL;
    halo = NULL;
    boundary = NULL;
    plan = NULL;
    group = column = NULL;
    memory = NULL;
    memset (added, 0, sizeof (added));
}

#endif /* GS_TESTS_STARVED_CALLS_H */
