/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim - the program of chaos.sh: all that a job does, small and in bulk, while one rank is
 * killed, stopped or leaves. GS_TEST_CHAOS="HOW RANK STEP MICROSECONDS" says which and when, from
 * the beginning of the step on. GS_TEST_LATE, a rank, comes to that step when the others have
 * ended. Each rank that is left says how it ended.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "multi.h"

#define BULK   ((size_t) 1 << 20) /* floats of a rank */
#define LITTLE ((size_t) 10)
#define ROUNDS 3 /* of all steps but the first and the last */

static gs_comm_t *comm;
static float *x, *y; /* [size * BULK]; of the device, where this rank has one */
static int rank, size;

static gs_status_t make (float **array)
{
    const size_t bytes = (size_t) size * BULK * sizeof (**array);
    void *memory = NULL;
    gs_status_t st = GS_OK;

    if (multi_has_gpu ())
        st = gs_device_alloc (comm, bytes, &memory);
    else if (!(memory = calloc (bytes, 1)))
        exit (1);
    *array = memory;
    return st;
}

static gs_status_t create (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_status_t st;

    opts.name = "chaos";
    if ((st = gs_comm_create (&opts, &comm)) || (st = make (&x)))
        return st;
    return make (&y);
}

/* Halves of the ranks, and all of them: groups 0, 1 and 2. */
static gs_status_t split (void)
{
    gs_comm_t *group;
    gs_status_t st;

    for (int i = 0; i < 2; i++) {
        if ((st = gs_comm_split (comm, i ? 2 : rank % 2, rank, &group)))
            return st;
        if ((st = gs_allreduce_avg (group, x, LITTLE, GS_F32, NULL)) == GS_OK)
            st = gs_allreduce_avg (group, x, BULK / 4, GS_F32, NULL);
        if (multi_keep (st)) {
            gs_comm_abort (comm); /* whose other ranks are in no call of the group */
            gs_comm_destroy (group);
            return st;
        }
        if ((st = gs_comm_destroy (group)))
            return st;
    }
    return GS_OK;
}

static gs_status_t allreduce (void)
{
    gs_status_t st = GS_OK;

    for (size_t count = LITTLE; count <= BULK && !st; count *= 47)
        st = gs_allreduce_avg (comm, x, count, GS_F32, NULL);
    return st ? st : gs_allreduce_avg (comm, x, BULK, GS_F32, NULL);
}

static gs_status_t use_reducer (gs_reducer_t *reducer)
{
    gs_status_t st = GS_OK;

    for (int g = 0; g < 12 && !st; g++) {
        const size_t extent = g % 3 ? 1000 : BULK / 8;
        char name[16];
        snprintf (name, sizeof (name), "grad%d", g);
        st = gs_reducer_add (reducer, name, 1, &extent, GS_F32, NULL, NULL);
    }
    if (!st)
        st = gs_reducer_commit (reducer);
    for (int step = 0; step < 3 && !st; step++) {
        for (int g = 11; g >= 0 && !st; g--)
            st = gs_reducer_ready (reducer, g, NULL);
        if (!st)
            st = gs_reducer_finish (reducer, NULL);
    }
    return st;
}

static gs_status_t reducer (void)
{
    gs_reducer_t *reducer;
    gs_status_t st = gs_reducer_create (comm, NULL, &reducer), ended;

    if (st)
        return st;
    st = multi_keep (use_reducer (reducer));
    ended = gs_reducer_destroy (reducer);
    return st ? st : ended;
}

static gs_status_t gather (void)
{
    gs_status_t st;

    if ((st = gs_allgather (comm, x, y, LITTLE, GS_F32, NULL)) ||
        (st = gs_allgather (comm, x, y, BULK, GS_F32, NULL)) ||
        (st = gs_alltoall (comm, y, x, BULK / (size_t) size, GS_F32, NULL)) ||
        (st = gs_gather (comm, x, y, BULK, GS_F32, size - 1, NULL)) ||
        (st = gs_reduce_scatter (comm, y, x, BULK / (size_t) size, GS_F32, GS_SUM, NULL)))
        return st;
    return gs_broadcast (comm, x, BULK, GS_F32, 0, NULL);
}

static gs_status_t halo (void)
{
    const int grid[1] = {size}, periodic[1] = {1};
    const size_t extents[1] = {BULK / 2}, width[1] = {BULK / 16};
    gs_halo_t *ghosts;
    gs_status_t st = gs_halo_create (comm, 1, grid, extents, width, periodic, GS_F32, &ghosts),
                ended;

    if (st)
        return st;
    for (int i = 0; i < 3 && !st; i++)
        st = multi_keep (gs_halo_exchange (ghosts, x, NULL));
    ended = gs_halo_destroy (ghosts);
    return st ? st : ended;
}

static gs_status_t copy_rows (size_t rows, const void *in, void *out, gs_stream_t stream,
                              void *context)
{
    (void) stream;
    (void) context;
    memcpy (out, in, rows * 16 * sizeof (float));
    return GS_OK;
}

static gs_status_t copy_gradients (size_t rows, const void *in, const void *grad_out,
                                   void *grad_in, gs_stream_t stream, void *context)
{
    (void) in;
    return copy_rows (rows, grad_out, grad_in, stream, context);
}

static gs_status_t use_pool (gs_pool_t *pool)
{
    gs_status_t st = gs_pool_begin (pool, x, BULK / 16);

    for (int i = 0; i < 3 && !st; i++)
        if (!(st = gs_pool_begin (pool, x, rank % 2 ? LITTLE : 0)) &&
            !(st = gs_pool_end (pool, y)) && !(st = gs_pool_backward (pool, y, x)) &&
            !(st = gs_pool_end (pool, y)))
            st = gs_pool_begin (pool, x, BULK / 16);
    return st;
}

static gs_status_t pool (void)
{
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
    gs_pool_t *rows;
    gs_status_t st, ended;

    opts.inputs = opts.outputs = 16;
    opts.dtype = GS_F32;
    opts.max_rows = BULK / 16;
    opts.on_batch = copy_rows;
    opts.on_gradient = copy_gradients;
    if ((st = gs_pool_create (comm, &opts, &rows)))
        return st;
    st = multi_keep (use_pool (rows));
    ended = gs_pool_destroy (rows);
    return st ? st : ended;
}

static gs_status_t use_plan (gs_ckpt_t *ckpt, int64_t step)
{
    const size_t little = LITTLE, part = BULK / 4, at = part * (size_t) rank;
    const size_t whole = part * (size_t) size;
    gs_status_t st;

    if ((st = gs_ckpt_add_replicated (ckpt, "y", 1, &little, GS_F32, y)) ||
        (st = gs_ckpt_add_sharded (ckpt, "x", 1, &part, &at, &whole, GS_F32, x)) ||
        (st = gs_ckpt_commit (ckpt)) || (st = gs_ckpt_write (ckpt, step, NULL)) ||
        (st = gs_ckpt_write_async (ckpt, step + 1, NULL, NULL)) ||
        (st = gs_allreduce_avg (comm, y, LITTLE, GS_F32, NULL)) ||
        (st = gs_ckpt_wait (ckpt, NULL, NULL)))
        return st;
    return gs_ckpt_read (ckpt, step + 1, NULL, NULL);
}

static gs_status_t checkpoint (void)
{
    static int64_t step;
    const char *folder = getenv ("TMPDIR");
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;
    gs_status_t st, ended;

    opts.compare = GS_CKPT_COMPARE_NONE; /* arrays of the ranks differ here */
    st = gs_ckpt_create (comm, folder ? folder : "/tmp", &opts, &ckpt);
    if (st)
        return st == GS_ERR_UNSUPPORTED ? GS_OK : st;
    if ((st = multi_keep (use_plan (ckpt, step += 2))))
        gs_ckpt_wait (ckpt, NULL, NULL); /* for one that is still being written */
    ended = gs_ckpt_destroy (ckpt);
    return st ? st : ended;
}

static gs_status_t destroy (void)
{
    gs_comm_t *ended = comm;
    gs_status_t st;

    if (multi_has_gpu () && ((st = gs_device_free (comm, x)) || (st = gs_device_free (comm, y))))
        return st;
    comm = NULL;
    return gs_comm_destroy (ended);
}

static const struct {
    const char *name;
    gs_status_t (*take) (void);
} steps[] = {{"create", create},   {"split", split},     {"allreduce", allreduce},
             {"reducer", reducer}, {"gather", gather},   {"halo", halo},
             {"pool", pool},       {"ckpt", checkpoint}, {"destroy", destroy}};

#define LAST ((int) (sizeof (steps) / sizeof (steps[0])) - 1)

/* ---- What happens to one of them ---- */

static struct {
    char how[8], step[16];
    int rank;
    long us;
} plan;

static void *strike (void *unused)
{
    usleep ((useconds_t) plan.us);
    printf ("rank %d strikes\n", rank);
    fflush (stdout);
    if (!strcmp (plan.how, "kill"))
        raise (SIGKILL);
    else if (!strcmp (plan.how, "stop"))
        kill (getpid (), SIGSTOP);
    else
        _exit (3);
    return unused;
}

static bool others_ended (int late)
{
    for (int r = 0; r < size; r++)
        if (r != plan.rank && r != late && access (multi_signal_path ("ended", r), F_OK))
            return false;
    return true;
}

/* A line on stdout and in the file GS_TEST_SAID.RANK: mpirun may hang, and hand on nothing. */
static void say (const char *line)
{
    const char *said = getenv ("GS_TEST_SAID");
    char path[512];
    FILE *file;

    puts (line);
    fflush (stdout);
    snprintf (path, sizeof (path), "%s.%d", said ? said : "", rank);
    if (!said || !(file = fopen (path, "a")))
        return;
    fprintf (file, "%s\n", line);
    fclose (file);
}

/*
 * What the launcher started: not the rank, at whose death it would end the others, but its
 * parent. A stopped rank ends when the others have.
 */
static int supervise (pid_t child)
{
    char line[64];
    int status = 0;

    while (!waitpid (child, &status, WNOHANG)) {
        if (rank == plan.rank && others_ended (-1))
            kill (child, SIGKILL);
        usleep (20000);
    }
    if (rank == plan.rank)
        return 0;
    multi_signal ("ended", rank);
    snprintf (line, sizeof (line), "rank %d is gone", rank);
    say (line);
    if (status)
        printf ("rank %d crashed: %s %d\n", rank, WIFSIGNALED (status) ? "signal" : "status",
                WIFSIGNALED (status) ? WTERMSIG (status) : WEXITSTATUS (status));
    return 0;
}

static gs_status_t take (int which)
{
    static bool armed;
    const char *late = getenv ("GS_TEST_LATE");
    pthread_t thread;

    if (!armed && !strcmp (plan.step, steps[which].name)) {
        armed = true;
        if (rank == plan.rank && pthread_create (&thread, NULL, strike, NULL))
            exit (1);
        while (late && *late && rank == atoi (late) && !others_ended (rank))
            usleep (20000);
    }
    return steps[which].take ();
}

static int run (void)
{
    gs_status_t st;
    char line[4400];
    int which = 0;

    st = multi_keep (take (0));
    for (int i = 0; i < ROUNDS && !st; i++)
        for (which = 1; which < LAST && !st; which += !st)
            st = multi_keep (take (which));
    if (!st)
        st = multi_keep (take (which = LAST));
    snprintf (line, sizeof (line), "rank %d ended in %s with %s: %s", rank, steps[which].name,
              gs_status_string (st), multi_why);
    say (line);
    if (comm && !gs_comm_check (comm))
        gs_comm_abort (comm); /* refused here only: the others wait */
    gs_comm_destroy (comm);
    return 0;
}

int main (void)
{
    const char *text = getenv ("GS_TEST_CHAOS");
    pid_t child;

    rank = multi_rank ();
    size = multi_size ();
    plan.rank = -1;
    if (text && sscanf (text, "%7s %d %15s %ld", plan.how, &plan.rank, plan.step, &plan.us) != 4)
        return 99;
    child = fork ();
    return child ? supervise (child) : run ();
}
