/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_group - ncclGroupStart and ncclGroupEnd. Every call is a group, of itself if need be; what
 * it holds is launched at its end: by the caller, or, for communicators that do not block, by a
 * thread of its own while the call returns ncclInProgress.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl_sim.h"

#define THREADS 4096 /* lists that are kept apart */

_Atomic (int) nsim_open_groups;

/* What a group holds when it ends. */
struct launch {
    struct nsim_job *job; /* in the order of the calls */
    struct nsim_op *op;
    size_t ops;
    bool blocking;
};

static _Thread_local struct {
    int depth;
    ncclResult_t error;
    int blocking; /* 0, 1; -1: nothing came that says so */
    struct launch launch;
    size_t room;
    bool may_stay; /* open, at the end of the process */
} group = {.blocking = -1};

static bool enter_mode (ncclComm_t comm)
{
    if (group.blocking == -1)
        group.blocking = comm->blocking;
    if (group.blocking == comm->blocking)
        return true;
    nsim_warn ("Blocking and nonblocking communicators are not allowed in the same group.");
    return false;
}

ncclResult_t nsim_group_fail (ncclResult_t code)
{
    if (group.depth > 0 && code != ncclSuccess && code != ncclInProgress)
        group.error = code;
    return code;
}

/* Calls visit for each communicator once. */
static void each_comm (const struct launch *launch, void (*visit) (ncclComm_t, ncclResult_t),
                       ncclResult_t code)
{
    for (const struct nsim_job *job = launch->job; job; job = job->next)
        if (!job->at_once)
            visit (job->comm, code);
    for (size_t i = 0; i < launch->ops; i++) {
        size_t first = 0;

        while (launch->op[first].comm != launch->op[i].comm)
            first++;
        if (first == i)
            visit (launch->op[i].comm, code);
    }
}

static void begin_progress (ncclComm_t comm, ncclResult_t code)
{
    (void) code;
    pthread_mutex_lock (&comm->mutex);
    comm->jobs++;
    comm->unpolled = true;
    pthread_mutex_unlock (&comm->mutex);
}

static void end_progress (ncclComm_t comm, ncclResult_t code)
{
    pthread_mutex_lock (&comm->mutex);
    comm->jobs--;
    if (comm->error == ncclSuccess && code != ncclInProgress)
        comm->error = code;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
}

static void free_launch (struct launch *launch, bool discard)
{
    while (launch->job) {
        struct nsim_job *job = launch->job;

        launch->job = job->next;
        if (discard && job->discard)
            job->discard (job);
        free (job);
    }
    free (launch->op);
    launch->op = NULL;
}

static void *job_thread (void *arg)
{
    struct nsim_job *job = arg;

    job->result = job->run (job);
    return NULL;
}

/* All at the same time: the ranks of one process may wait for each other. */
static ncclResult_t run_jobs (struct nsim_job *first)
{
    ncclResult_t result = ncclSuccess;

    if (first && !first->next) {
        job_thread (first);
        return first->result;
    }
    for (struct nsim_job *job = first; job; job = job->next)
        if (pthread_create (&job->thread, NULL, job_thread, job) != 0)
            abort ();
    for (struct nsim_job *job = first; job; job = job->next) {
        pthread_join (job->thread, NULL);
        if (result == ncclSuccess)
            result = job->result;
    }
    return result;
}

static size_t bytes_of (const struct nsim_op *op)
{
    return op->count * nsim_type_bytes (op->type);
}

/*
 * Collectives of a group come in an order of NCCL's: what is more comes first (2.22 and later,
 * enqueue.cc), and which of equals does nobody promises.
 */
static void order_unit (struct nsim_unit *unit)
{
    for (size_t i = 0; i < unit->n; i++)
        for (size_t k = i + 1; k < unit->n; k++)
            if (unit->op[i].what < NSIM_SEND && unit->op[k].what < NSIM_SEND &&
                bytes_of (&unit->op[k]) >= bytes_of (&unit->op[i])) {
                struct nsim_op op = unit->op[i];

                unit->op[i] = unit->op[k];
                unit->op[k] = op;
            }
}

/* The operations of [comm], in one unit. */
static struct nsim_unit *make_unit (const struct launch *launch, ncclComm_t comm)
{
    struct nsim_unit *unit = calloc (1, sizeof (*unit) + launch->ops * sizeof (struct nsim_op));

    unit->comm = comm;
    for (size_t i = 0; i < launch->ops; i++)
        if (launch->op[i].comm == comm)
            unit->op[unit->n++] = launch->op[i];
    order_unit (unit);
    return unit;
}

static void enter_caller (ncclComm_t comm, ncclResult_t unused)
{
    (void) unused;
    comm->callers += comm->blocking; /* an abort joins a thread of NCCL's own */
}

static void leave_caller (ncclComm_t comm, ncclResult_t unused)
{
    (void) unused;
    comm->callers -= comm->blocking;
}

static ncclResult_t run_launch (const struct launch *launch)
{
    ncclResult_t result;

    each_comm (launch, enter_caller, ncclSuccess);
    result = run_jobs (launch->job);
    for (size_t i = 0; i < launch->ops; i++) /* ranks of one process wait for each other */
        if (launch->op[i].what < NSIM_SEND)
            nsim_connect_begin (&launch->op[i]);

    for (size_t i = 0; i < launch->ops && result == ncclSuccess; i++) {
        size_t first = 0;

        while (launch->op[first].comm != launch->op[i].comm)
            first++;
        if (first == i)
            result = nsim_launch (make_unit (launch, launch->op[i].comm));
    }
    each_comm (launch, leave_caller, ncclSuccess);
    return result;
}

static void *launch_thread (void *arg)
{
    struct launch *launch = arg;
    ncclResult_t result = run_launch (launch);

    each_comm (launch, end_progress, result);
    free_launch (launch, false);
    free (launch);
    return NULL;
}

/*
 * From 2.22 to 2.25 a thread's list of what its group has keeps the communicators of a call that
 * does not block until a call on one of them joins the group's thread; to be asked for the
 * asynchronous error does not. The thread's next group of others then walks off the list
 * (v2.24.3: ncclGroupEndInternal in group.cc, ncclGroupCommJoin in group.h).
 */
static ncclComm_t *own_list (void)
{
    static ncclComm_t lists[THREADS]; /* they outlive their threads */
    static _Atomic (unsigned) threads;
    static _Thread_local ncclComm_t *own;

    if (!own)
        own = &lists[threads++ % THREADS];
    return own;
}

static void join_list (ncclComm_t comm, ncclResult_t unused)
{
    ncclComm_t *list = own_list ();

    (void) unused;
    if (nsim_version () < 22200 || nsim_version () >= 22600)
        return;
    if (*list && *list != comm)
        sim_misuse ("NCCL %d crashes here: communicator %d is still in this thread's list, as no "
                    "call on it but ncclCommGetAsyncError has followed its last one",
                    nsim_version (), (*list)->number);
    comm->list = list;
}

static void enter_list (ncclComm_t comm, ncclResult_t unused)
{
    (void) unused;
    if (comm->list)
        *comm->list = comm;
}

void nsim_leave_list (ncclComm_t comm)
{
    if (comm->list)
        *comm->list = NULL;
    comm->list = NULL;
}

static ncclResult_t launch_beside (struct launch *launch)
{
    struct launch *copy = malloc (sizeof (*copy));
    pthread_t thread;
    int unused;

    if (!launch->job && nsim_version () < 22300) { /* v2.22.3 group.cc:584 */
        ncclResult_t result = run_launch (launch);

        if (result != ncclSuccess)
            each_comm (launch, nsim_refuse, result);
        free_launch (launch, false);
        free (copy);
        return result;
    }
    sim_fault ("ncclThread", &unused); /* counts them; nothing fails */

    *copy = *launch;
    *launch = (struct launch){0};
    each_comm (copy, join_list, ncclSuccess);
    each_comm (copy, enter_list, ncclSuccess);
    each_comm (copy, begin_progress, ncclSuccess);
    if (pthread_create (&thread, NULL, launch_thread, copy) != 0)
        abort ();
    pthread_detach (thread);
    return ncclInProgress;
}

static void group_start (void)
{
    group.depth++;
}

static ncclResult_t group_end (void)
{
    struct launch launch;
    ncclResult_t result;
    int blocking;

    if (--group.depth > 0)
        return ncclSuccess;
    launch = group.launch;
    result = group.error;
    blocking = group.blocking;
    memset (&group, 0, sizeof (group));
    group.blocking = -1;
    if (result != ncclSuccess) {
        each_comm (&launch, nsim_refuse, result);
        free_launch (&launch, true);
        return result;
    }
    if (blocking == 0)
        return launch_beside (&launch);
    result = run_launch (&launch);
    free_launch (&launch, false);
    return result;
}

/* In no group, and without a thread: a copy in the stream. */
static ncclResult_t launch_one_rank (const struct nsim_op *op)
{
    struct nsim_op copy = *op;
    struct launch launch = {.op = &copy, .ops = 1};

    return run_launch (&launch);
}

ncclResult_t nsim_group_op (const struct nsim_op *op)
{
    if (op->comm->ranks == 1 && op->what < NSIM_SEND)
        return launch_one_rank (op);
    group_start ();
    if (group.blocking != -1 && group.blocking != op->comm->blocking)
        sim_misuse ("a group of communicators that block and such that do not: NCCL does not "
                    "look, and ends it as the last call's communicator would");
    group.blocking = op->comm->blocking;
    if (group.launch.ops == group.room) {
        group.room = 2 * group.room + 8;
        group.launch.op = realloc (group.launch.op, group.room * sizeof (*op));
    }
    group.launch.op[group.launch.ops++] = *op;
    return group_end ();
}

/* NCCL's rule, kept at each call: one graph for all streams of a group, or none for any. */
ncclResult_t nsim_group_check (const struct nsim_op *op)
{
    bool captured = sim_is_capturing (op->stream);

    for (size_t i = 0; i < group.launch.ops; i++)
        if (group.launch.op[i].comm == op->comm &&
            sim_is_capturing (group.launch.op[i].stream) != captured) {
            nsim_warn ("Streams given to a communicator within a NCCL group must either be all "
                       "uncaptured or all captured by the same graph.");
            return ncclInvalidUsage;
        }
    return ncclSuccess;
}

ncclResult_t nsim_group_job (struct nsim_job *job, size_t bytes)
{
    struct nsim_job **at = &group.launch.job, *copy;
    ncclResult_t result = ncclSuccess, end;

    group_start ();
    copy = malloc (bytes);
    memcpy (copy, job, bytes);
    copy->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = copy;
    if (!job->at_once && !enter_mode (job->comm))
        result = nsim_group_fail (ncclInvalidArgument);
    end = group_end ();
    return result != ncclSuccess ? result : end;
}

/* Whoever aborts in a group may leave it open, and the communicator with it, for ever. */
void nsim_group_may_stay (void)
{
    nsim_open_groups -= group.depth && !group.may_stay;
    group.may_stay = true;
}

/* nccl.h declares both as before C89. */
ncclResult_t ncclGroupStart (void);
ncclResult_t ncclGroupEnd (void);

ncclResult_t ncclGroupStart (void)
{
    struct nsim_fate fate;
    ncclResult_t result = nsim_enter ("ncclGroupStart", 0, &fate);

    if (result != ncclSuccess)
        return result;
    if (group.depth == 0) {
        nsim_open_groups++;
        group.may_stay = false;
    }
    group_start ();
    return ncclSuccess;
}

/* An error injected here comes after the group has ended: its operations are not launched. */
ncclResult_t ncclGroupEnd (void)
{
    struct nsim_fate fate;
    ncclResult_t result = nsim_enter ("ncclGroupEnd", 0, &fate);

    if (group.depth == 0) {
        sim_misuse ("ncclGroupEnd: not in a group call");
        nsim_warn ("ncclGroupEnd: not in a group call.");
        return ncclInvalidUsage;
    }
    for (size_t i = 0; i < group.launch.ops; i++) {
        group.launch.op[i].stall = group.launch.op[i].stall || fate.stall;
        if (fate.late != ncclSuccess)
            group.launch.op[i].late = fate.late;
    }
    nsim_group_fail (result);
    if (group.depth == 1)
        nsim_open_groups -= !group.may_stay;
    return group_end ();
}
