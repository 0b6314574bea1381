/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_comm - communicators begin and end: create, finalize, destroy, abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl_sim.h"

#define FREE_NS 20000000 /* at least, of a communicator */

struct init_job {
    struct nsim_job base;
    ncclComm_t *out;
    ncclUniqueId *ids;
    int n;
    struct nsim_fate fate;
};

struct end_job {
    struct nsim_job base;
    struct nsim_fate fate;
};

/* An abort by another thread waits until a job has left. */
static void enter_job (ncclComm_t comm)
{
    pthread_mutex_lock (&comm->mutex);
    comm->running++;
    pthread_mutex_unlock (&comm->mutex);
}

static void leave_job (ncclComm_t comm)
{
    pthread_mutex_lock (&comm->mutex);
    comm->running--;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
}

static bool in_range (int value, int least, int most)
{
    return value == NCCL_CONFIG_UNDEF_INT || (value >= least && value <= most);
}

/* Only what the program's header has: its size says so. */
ncclResult_t nsim_config (const ncclConfig_t *config, bool *blocking, const char *who)
{
    ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
    char ctas[32];
    int unused;

    if (config) {
        own.magic = 0;
        memcpy (&own, config, config->size < sizeof (own) ? config->size : sizeof (own));
    }
    if (own.magic != 0xcafebeef) {
        nsim_warn ("ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
        return ncclInvalidArgument;
    }
    if (!in_range (own.blocking, 0, 1) || !in_range (own.cgaClusterSize, 0, 8) ||
        !in_range (own.minCTAs, 1, INT_MAX) || !in_range (own.maxCTAs, 1, INT_MAX) ||
        (own.maxCTAs != NCCL_CONFIG_UNDEF_INT && own.minCTAs > own.maxCTAs) ||
        !in_range (own.splitShare, 0, 1) || !in_range (own.shrinkShare, 0, 1)) {
        nsim_warn ("%s: an attribute of the configuration has an invalid value", who);
        return ncclInvalidArgument;
    }
    if (own.maxCTAs != NCCL_CONFIG_UNDEF_INT) {
        snprintf (ctas, sizeof (ctas), "maxCTAs=%d", own.maxCTAs);
        sim_fault (ctas, &unused); /* counts it; nothing fails */
    }
    *blocking = own.blocking != 0;
    return ncclSuccess;
}

static void fill_card (ncclComm_t comm)
{
    struct nsim_card *card = &comm->card[comm->rank];
    const char *bus = sim_bus_id ();

    card->rank = comm->rank;
    card->ranks = comm->ranks;
    card->host = nsim_host_hash ();
    card->device = sim_physical_device ();
    strncpy (card->bus, bus ? bus : "", sizeof (card->bus) - 1);
}

static ncclResult_t run_init (struct nsim_job *base)
{
    struct init_job *job = (struct init_job *) (void *) base;
    ncclComm_t comm = base->comm;
    ncclResult_t result = ncclInternalError;

    enter_job (comm);
    if (job->fate.stall)
        nsim_await_stop (comm);
    else
        result = nsim_meet (comm, job->ids, job->n);
    pthread_mutex_lock (&comm->mutex);
    comm->phase = result == ncclSuccess ? NSIM_READY : NSIM_FAILED;
    comm->error = result == ncclSuccess ? job->fate.late : result;
    pthread_mutex_unlock (&comm->mutex);
    leave_job (comm);
    free (job->ids);
    if (result != ncclSuccess && comm->blocking && !comm->stop) { /* else it is aborted */
        *job->out = NULL;
        nsim_comm_close (comm, NSIM_ABORTED);
    }
    return result;
}

static void discard_init (struct nsim_job *base)
{
    struct init_job *job = (struct init_job *) (void *) base;

    *job->out = NULL;
    free (job->ids);
    nsim_comm_close (base->comm, NSIM_ABORTED);
}

struct request {
    ncclComm_t *out;
    int ranks, rank, n;
    const ncclUniqueId *ids;
    const ncclConfig_t *config;
};

static ncclResult_t init (const char *who, const struct request *request, struct nsim_fate fate)
{
    struct init_job job = {.base = {.run = run_init, .discard = discard_init},
                           .out = request->out,
                           .n = request->n,
                           .fate = fate};
    bool blocking = true;
    int device = 0;
    ncclResult_t result;

    if (cudaGetDevice (&device) != cudaSuccess || !sim_bus_id ()) {
        nsim_warn ("%s: Cuda failure '%s'", who, cudaGetErrorString (cudaPeekAtLastError ()));
        return ncclUnhandledCudaError;
    }
    nsim_watch_exit ();
    if (!request->out || !request->ids || request->n < 1 || request->n > request->ranks) {
        nsim_warn ("%s : an argument is NULL, or the number of ids is wrong", who);
        return ncclInvalidArgument;
    }
    if (request->ranks < 1 || request->rank < 0 || request->rank >= request->ranks) {
        nsim_warn ("Invalid rank requested : %d/%d", request->rank, request->ranks);
        return ncclInvalidArgument;
    }
    if (request->ranks > NSIM_RANKS) {
        nsim_warn ("more than %d ranks are not simulated", NSIM_RANKS);
        return ncclInternalError;
    }
    result = nsim_config (request->config, &blocking, who);
    if (result != ncclSuccess)
        return result;
    job.base.comm = nsim_comm_new (request->rank, request->ranks, blocking);
    job.base.comm->device = device;
    fill_card (job.base.comm);
    job.ids = malloc ((size_t) request->n * sizeof (*job.ids));
    memcpy (job.ids, request->ids, (size_t) request->n * sizeof (*job.ids));
    *request->out = job.base.comm;
    return nsim_group_job (&job.base, sizeof (job));
}

static ncclResult_t enter_init (const char *who, int since, const struct request *request)
{
    struct nsim_fate fate;
    ncclResult_t result = nsim_enter (who, since, &fate);

    if (result == ncclSuccess)
        result = init (who, request, fate);
    return nsim_group_fail (result);
}

ncclResult_t ncclCommInitRank (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
    struct request request = {comm, nranks, rank, 1, &commId, NULL};

    return enter_init ("ncclCommInitRank", 0, &request);
}

ncclResult_t ncclCommInitRankConfig (ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t *config)
{
    struct request request = {comm, nranks, rank, 1, &commId, config};

    return enter_init ("ncclCommInitRankConfig", 21400, &request);
}

ncclResult_t ncclCommInitRankScalable (ncclComm_t *newcomm, int nranks, int myrank, int nId,
                                       ncclUniqueId *commIds, ncclConfig_t *config)
{
    struct request request = {newcomm, nranks, myrank, nId, commIds, config};

    return enter_init ("ncclCommInitRankScalable", 22300, &request);
}

/* Waits for all work that was issued. */
static bool drain (ncclComm_t comm)
{
    bool drained;

    pthread_mutex_lock (&comm->mutex);
    while (!comm->stop && comm->queued > 0)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    drained = !comm->stop && !comm->broken;
    pthread_mutex_unlock (&comm->mutex);
    return drained;
}

static bool all_have_left (ncclComm_t comm)
{
    for (int i = 0; i < comm->ranks; i++)
        if (!nsim_has_left (comm, i))
            return false;
    return true;
}

/*
 * The service thread, which ranks of the node call, ends when all of them are finalized, and
 * frees what it has for connections: v2.28.9 proxy.cc:1636, transport/net.cc:687.
 */
static void *end_service (void *arg)
{
    ncclComm_t comm = arg;

    nsim_say_closed (comm);
    pthread_mutex_lock (&comm->mutex);
    while (!comm->stop && !all_have_left (comm)) {
        pthread_mutex_unlock (&comm->mutex);
        nanosleep (&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_lock (&comm->mutex);
    }
    pthread_mutex_unlock (&comm->mutex);
    sim_await_to_free (comm->device);
    pthread_mutex_lock (&comm->mutex);
    comm->service = NSIM_SERVED;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
    return NULL;
}

static void stop_service (ncclComm_t comm)
{
    pthread_attr_t detached;
    pthread_t thread;

    comm->service = NSIM_CLOSING;
    pthread_attr_init (&detached);
    pthread_attr_setdetachstate (&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create (&thread, &detached, end_service, comm) != 0)
        abort ();
    pthread_attr_destroy (&detached);
}

static ncclResult_t run_finalize (struct nsim_job *base)
{
    struct end_job *job = (struct end_job *) (void *) base;
    ncclComm_t comm = base->comm;
    enum nsim_end end = NSIM_STOPPED;

    enter_job (comm);
    if (job->fate.stall)
        nsim_await_stop (comm);
    else if (drain (comm)) { /* it waits for no other rank: v2.28.9 init.cc, commDestroySync */
        nsim_tell (comm, NSIM_FINALIZE);
        stop_service (comm);
        end = NSIM_OK;
    }
    leave_job (comm);
    if (end == NSIM_OK && job->fate.late != ncclSuccess)
        nsim_set_error (comm, job->fate.late);
    if (end == NSIM_OK)
        return ncclSuccess;
    return comm->error != ncclSuccess ? comm->error : ncclInternalError;
}

/* NCCL would wait for the graphs to be destroyed, usually for ever. */
static void check_graphs (ncclComm_t comm, const char *who)
{
    if (comm->graphs > 0)
        sim_misuse ("%s: a graph with operations of communicator %d is still there: destroy "
                    "graphs first",
                    who, comm->number);
}

ncclResult_t ncclCommFinalize (ncclComm_t comm)
{
    static const char who[] = "ncclCommFinalize";
    struct end_job job = {.base = {.comm = comm, .run = run_finalize}};
    ncclResult_t injected = nsim_enter (who, 21400, &job.fate), result;

    if (!comm)
        return ncclSuccess;
    result = nsim_check (comm, who);
    if (result == ncclSuccess)
        result = injected;
    if (result == ncclSuccess && comm->phase == NSIM_FINALIZED) {
        sim_misuse ("%s: communicator %d was finalized before", who, comm->number);
        result = ncclInvalidArgument;
    }
    if (result == ncclSuccess && comm->phase == NSIM_REVOKED)
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return nsim_group_fail (result);
    check_graphs (comm, who);
    comm->phase = NSIM_FINALIZED;
    return nsim_group_job (&job.base, sizeof (job));
}

static void await_quiet (ncclComm_t comm)
{
    pthread_mutex_lock (&comm->mutex);
    while (comm->running > 0 || comm->jobs > 0 || comm->service == NSIM_CLOSING)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    pthread_mutex_unlock (&comm->mutex);
}

/* NCCL's commFree has a cudaFreeHost (v2.28.9 init.cc:322). */
static void free_comm (ncclComm_t comm, enum nsim_phase phase)
{
    if (comm->phase >= NSIM_DESTROYED)
        return;
    sim_await_to_free (comm->device);
    nsim_comm_close (comm, phase);
}

static ncclResult_t run_destroy (struct nsim_job *base)
{
    ncclComm_t comm = base->comm;

    if (comm->phase == NSIM_READY)
        run_finalize (base);
    await_quiet (comm);
    free_comm (comm, NSIM_DESTROYED);
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy (ncclComm_t comm)
{
    static const char who[] = "ncclCommDestroy";
    struct end_job job = {.base = {.comm = comm, .run = run_destroy, .at_once = true}};
    ncclResult_t injected = nsim_enter (who, 0, &job.fate), result;

    if (!comm)
        return ncclSuccess;
    result = nsim_check (comm, who);
    if (result == ncclSuccess)
        result = injected;
    if (result != ncclSuccess)
        return nsim_group_fail (result);
    check_graphs (comm, who);
    return nsim_group_job (&job.base, sizeof (job));
}

/* N.B. Graphs whose end nobody waits for keep who aborts waiting, for ever if need be. */
static void await_graphs (ncclComm_t comm)
{
    while (comm->graphs > 0)
        nanosleep (&(struct timespec){0, 1000000}, NULL);
}

/*
 * Frees. A thread that is in a call on it would go on with memory that is gone. Before 2.22 an
 * abort has no second step, so whoever aborts cannot wait for such a thread.
 */
static ncclResult_t run_abort (struct nsim_job *base)
{
    if (base->comm->callers > 0 && nsim_version () >= 22200)
        sim_misuse ("ncclCommAbort: communicator %d is freed while a thread is in a call on it",
                    base->comm->number);
    await_graphs (base->comm);
    await_quiet (base->comm);
    if (nsim_version () >= 22200) /* before, nobody who aborts can wait for them */
        nsim_check_neighbours (base->comm, "ncclCommAbort");
    nsim_free_begin ();
    nanosleep (&(struct timespec){0, FREE_NS}, NULL);
    free_comm (base->comm, NSIM_ABORTED);
    nsim_free_end ();
    return ncclSuccess;
}

/* What runs is told at once, in a group too. */
ncclResult_t ncclCommAbort (ncclComm_t comm)
{
    static const char who[] = "ncclCommAbort";
    struct end_job job = {.base = {.comm = comm, .run = run_abort, .at_once = true}};
    ncclResult_t injected = nsim_enter (who, 0, &job.fate), result;

    if (!comm)
        return ncclSuccess;
    result = nsim_check_end (comm, who);
    if (result != ncclSuccess)
        return nsim_group_fail (result);
    nsim_stop (comm);
    nsim_group_may_stay ();
    result = nsim_group_job (&job.base, sizeof (job));
    return injected != ncclSuccess ? injected : result;
}
