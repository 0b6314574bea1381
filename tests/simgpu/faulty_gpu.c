/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faulty_gpu - the program of faults.sh: one communicator on GPUs and one operation of each kind,
 * on arrays of the device and of the host. Says how far each rank came and with which status it
 * ended. With an argument it ends before the step of this name, well. With FAULTY_COUNT each rank
 * has a SIM_COUNT of its own, this and its number. FAULTY_SKIP names a step that is left out;
 * with FAULTY_SLOT there is one more, with FAULTY_SUM there are three, and with FAULTY_RELAYOUT:
 * "before" ends before the relayout, "alone" leaves out what follows it.
 */
#include "../multi/multi.h"

#define LARGE  1200000 /* floats: more than one piece of what is staged */
#define COUNT  5000    /* elements of the other arrays */
#define RANKS  16
#define THREAD ((gs_stream_t) 2) /* cudaStreamPerThread */

static gs_comm_t *comm;
static float host[LARGE], values[COUNT];
static float *single, *gathered; /* [COUNT] and [RANKS * COUNT] of the device */
static uint16_t *half;           /* [COUNT] of the device, f16 or i16 */

static gs_status_t create (void)
{
    return gs_comm_create (NULL, &comm);
}

static gs_status_t alloc (void)
{
    gs_status_t st = gs_device_alloc (comm, COUNT * sizeof (*single), (void **) &single);

    if (!st)
        st = gs_device_alloc (comm, COUNT * sizeof (*half), (void **) &half);
    return st ? st
              : gs_device_alloc (comm, RANKS * COUNT * sizeof (*gathered), (void **) &gathered);
}

static gs_status_t copy_in (void)
{
    gs_status_t st = gs_device_copy (comm, single, host, COUNT * sizeof (*single), NULL);

    return st ? st : gs_device_copy (comm, half, host, COUNT * sizeof (*half), NULL);
}

/* With GS_CHECK=collective it is compared with the adjoint, in memory that it makes. */
static gs_status_t own_slot (void)
{
    if (!getenv ("FAULTY_SLOT"))
        return GS_OK;
    return gs_allgather_backward (comm, single, gathered, COUNT / RANKS, GS_F32, GS_GRAD_OWN_SLOT,
                                  NULL);
}

/* A step in which gradient 0 becomes ready first; without a hint the last comes first. */
static gs_status_t average_both (gs_reducer_t *r)
{
    gs_status_t st = GS_OK;

    for (int g = 0; g < 2 && !st; g++)
        st = gs_reducer_ready (r, g, NULL);
    return st ? st : gs_reducer_finish (r, NULL);
}

/* All of a gradient is the same number on all ranks, which averages leave. */
static gs_status_t set_value (void *grad, float value)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    return gs_device_copy (comm, grad, values, sizeof (values), NULL);
}

static gs_status_t check_value (const void *grad, float value)
{
    gs_status_t st = gs_device_copy (comm, values, grad, sizeof (values), NULL);
    int wrong = 0;

    if (st || (st = gs_comm_wait (comm, NULL)))
        return st;
    for (int i = 0; i < COUNT; i++)
        wrong += values[i] != value;
    CHECK (!wrong, "%d of %d elements are not %g, the first is %g", wrong, COUNT, value,
           values[0]);
    return GS_OK;
}

/* A sum is right, whatever way it goes; other arrays have zeros. */
static gs_status_t set (void)
{
    return getenv ("FAULTY_SUM") ? set_value (single, 1 + (float) gs_comm_rank (comm)) : GS_OK;
}

static gs_status_t sum (void)
{
    return getenv ("FAULTY_SUM") ? gs_allreduce (comm, single, COUNT, GS_F32, GS_SUM, NULL)
                                 : GS_OK;
}

/* By moments, which wait with a deadline, as copies to pageable memory do not. */
static gs_status_t check (void)
{
    int size = gs_comm_size (comm);
    double wanted = size * (size + 1) / 2;
    gs_moments_t m = {0};
    gs_status_t st;

    if (!getenv ("FAULTY_SUM"))
        return GS_OK;
    st = gs_moments_compute (comm, single, COUNT, 1, GS_F32, NULL, 0, &m, NULL);
    CHECK (st || (!m.bad && m.min == wanted && m.max == wanted),
           "a sum is from %g to %g, %llu are no numbers: wanted is %g", m.min, m.max,
           (unsigned long long) m.bad, wanted);
    return st;
}

/* Brings two gradients into the order in which they became ready, in new memory, or nothing; with
 * either a step goes on with what they are. */
static gs_status_t put_in_order (gs_reducer_t *r)
{
    const char *part = getenv ("FAULTY_RELAYOUT");
    void *before[2], *after[2];
    gs_status_t st = GS_OK, goes_on;

    for (int g = 0; g < 2 && !st; g++)
        if (!(st = gs_reducer_get_grad (r, g, &before[g])))
            st = set_value (before[g], 1 + (float) g);
    if (st || (st = average_both (r)) || !strcmp (part, "before"))
        return st;
    st = multi_keep (gs_reducer_relayout (r));
    for (int g = 0; g < 2; g++) {
        CHECK_OK (gs_reducer_get_grad (r, g, &after[g]));
        CHECK (!st == (before[g] != after[g]), "gradient %d is at %p, was at %p", g, after[g],
               before[g]);
    }
    if (!strcmp (part, "alone") || gs_comm_check (comm))
        return st;
    goes_on = multi_keep (average_both (r));
    for (int g = 0; g < 2 && !goes_on; g++)
        goes_on = multi_keep (check_value (after[g], 1 + (float) g));
    return st ? st : goes_on;
}

static gs_status_t relayout (void)
{
    size_t count = COUNT;
    gs_reducer_t *r;
    gs_status_t st;

    if (!getenv ("FAULTY_RELAYOUT"))
        return GS_OK;
    if ((st = gs_reducer_create (comm, NULL, &r)))
        return st;
    if (!(st = gs_reducer_add (r, "a", 1, &count, GS_F32, NULL, NULL)) &&
        !(st = gs_reducer_add (r, "b", 1, &count, GS_F32, NULL, NULL)) &&
        !(st = multi_keep (gs_reducer_commit (r))))
        st = multi_keep (put_in_order (r));
    gs_reducer_destroy (r);
    return st;
}

static gs_status_t average_host (void)
{
    return gs_allreduce_avg (comm, host, LARGE, GS_F32, NULL);
}

static gs_status_t average (void)
{
    return gs_allreduce_avg (comm, single, COUNT, GS_F32, NULL);
}

/* Rank 0 has no data; the scale and the division are kernels of ours. */
static gs_status_t weighted (void)
{
    return gs_allreduce_wavg (comm, single, COUNT, GS_F32, gs_comm_rank (comm), NULL);
}

static gs_status_t average_half (void)
{
    return gs_allreduce_avg (comm, half, COUNT, GS_F16, NULL);
}

static gs_status_t weighted_half (void)
{
    return gs_allreduce_wavg (comm, half, COUNT, GS_F16, 1 + gs_comm_rank (comm), NULL);
}

static gs_status_t integers (void)
{
    return gs_allreduce (comm, half, COUNT, GS_I16, GS_SUM, NULL);
}

static gs_status_t broadcast (void)
{
    return gs_broadcast (comm, single, COUNT, GS_F32, 0, NULL);
}

static gs_status_t allgather (void)
{
    return gs_allgather (comm, single, gathered, COUNT, GS_F32, NULL);
}

static gs_status_t reduce (void)
{
    return gs_reduce (comm, single, gathered, COUNT, GS_F32, GS_SUM, 0, NULL);
}

static gs_status_t reduce_scatter (void)
{
    return gs_reduce_scatter (comm, gathered, single, COUNT, GS_F32, GS_SUM, NULL);
}

/* To the next rank and from the one before, from the host to the device. */
static gs_status_t messages (void)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    gs_status_t st = gs_group_begin (comm);

    if (!st)
        st = gs_send (comm, host, COUNT, GS_F32, (rank + 1) % size, NULL);
    if (!st)
        st = gs_recv (comm, single, COUNT, GS_F32, (rank + size - 1) % size, NULL);
    return st ? st : gs_group_end (comm);
}

/* Ghosts on the device, there and back. */
static gs_status_t halo (void)
{
    const int grid[2] = {1, gs_comm_size (comm)}, periodic[2] = {1, 1};
    const size_t extents[2] = {30, 40}, width[2] = {1, 2};
    gs_halo_t *ghosts;
    gs_status_t st = gs_halo_create (comm, 2, grid, extents, width, periodic, GS_F32, &ghosts);

    if (st)
        return st;
    if (!(st = multi_keep (gs_halo_exchange (ghosts, single, NULL))))
        st = multi_keep (gs_halo_adjoint (ghosts, single, THREAD));
    gs_halo_destroy (ghosts);
    return st;
}

/* Of the device: read in pieces, in pinned memory, and reduced to a digest there. */
static gs_status_t statistics (void)
{
    gs_moments_t moments[10];

    return gs_moments_compute (comm, single, COUNT / 10, 10, GS_F32, NULL, 0, moments, NULL);
}

static gs_status_t compare (void)
{
    const gs_array_t array = {"gathered", gathered, 2, GS_F32};

    return gs_arrays_compare (comm, &array, 1, 0, NULL);
}

/* A group of all ranks, which ends at once. */
static gs_status_t split (void)
{
    gs_comm_t *group = NULL;
    gs_status_t st = gs_comm_split (comm, 0, 0, &group);

    return st ? st : gs_comm_destroy (group);
}

static gs_status_t barrier (void)
{
    return gs_barrier (comm, THREAD);
}

static gs_status_t wait_thread (void)
{
    return gs_comm_wait (comm, THREAD);
}

static gs_status_t copy_out (void)
{
    return gs_device_copy (comm, host, gathered, COUNT * sizeof (*gathered), NULL);
}

static gs_status_t wait_all (void)
{
    return gs_comm_wait (comm, NULL);
}

static gs_status_t release (void)
{
    void *arrays[] = {single, half, gathered};
    gs_status_t st = GS_OK, next;

    for (int i = 0; i < 3; i++) {
        next = comm ? multi_keep (gs_device_free (comm, arrays[i])) : GS_OK;
        st = st ? st : next;
    }
    single = gathered = NULL;
    half = NULL;
    return st;
}

static gs_status_t destroy (void)
{
    gs_comm_t *ended = comm;

    comm = NULL;
    return gs_comm_destroy (ended);
}

static const struct {
    const char *name;
    gs_status_t (*take) (void);
} steps[] = {
    {"create", create},
    {"alloc", alloc},
    {"relayout", relayout},
    {"set", set},
    {"sum", sum},
    {"check", check},
    {"copy-in", copy_in},
    {"own-slot", own_slot},
    {"average-host", average_host},
    {"average", average},
    {"weighted", weighted},
    {"average-half", average_half},
    {"weighted-half", weighted_half},
    {"integers", integers},
    {"broadcast", broadcast},
    {"allgather", allgather},
    {"reduce", reduce},
    {"reduce-scatter", reduce_scatter},
    {"messages", messages},
    {"halo", halo},
    {"stats", statistics},
    {"compare", compare},
    {"split", split},
    {"barrier", barrier},
    {"copy-out", copy_out}, /* waits for the stream itself: its memory is not pinned */
    {"wait-thread", wait_thread},
    {"wait", wait_all},
    {"free", release},
    {"destroy", destroy},
};
#define STEPS (sizeof (steps) / sizeof (steps[0]))

int main (int argc, char **argv)
{
    const char *skipped = getenv ("FAULTY_SKIP");
    size_t step = 0;
    gs_status_t st = GS_OK;
    double begin = 0;
    char path[1000];

    setenv ("GS_DEBUG", "error", 0);
    if (getenv ("FAULTY_COUNT")) {
        snprintf (path, sizeof (path), "%s%d", getenv ("FAULTY_COUNT"), multi_rank ());
        setenv ("SIM_COUNT", path, 1);
    }
    for (; step < STEPS && !st; step++) {
        if (argc > 1 && !strcmp (argv[1], steps[step].name))
            break;
        if (skipped && !strcmp (skipped, steps[step].name))
            continue;
        begin = multi_seconds ();
        st = multi_keep (steps[step].take ());
    }
    printf ("rank %d ended in %s after %.0f ms with %s: %s\n", multi_rank (),
            steps[step ? step - 1 : 0].name, 1e3 * (multi_seconds () - begin),
            gs_status_string (st), multi_why);
    fflush (stdout);
    begin = multi_seconds ();
    if (st && comm && !gs_comm_check (comm))
        gs_comm_abort (comm); /* refused here only: the others wait */
    release ();
    destroy ();
    printf ("rank %d left after %.0f ms\n", multi_rank (), 1e3 * (multi_seconds () - begin));
    return multi_failures > 0;
}
