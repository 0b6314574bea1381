/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_child - communicators made of others: split, shrink; and revoke, which comes before.
 */
#include <stdlib.h>
#include <string.h>

#include "nccl_sim.h"

struct child_job {
    struct nsim_job base; /* of the parent: its state tells when the child is there */
    ncclComm_t *out;
    bool shrinks;
    bool aborts;
    bool blocking;
    int color, key;
    int *excluded;
    int excluded_n;
    struct nsim_fate fate;
};

/* What each rank wants of a split. */
struct wish {
    int32_t color;
    int32_t key;
    int32_t rank;
};

static int compare_wishes (const void *a, const void *b)
{
    const struct wish *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank - y->rank;
}

static enum nsim_end exchange (ncclComm_t comm, struct wish *wish)
{
    struct nsim_op op = {.what = NSIM_SPLIT, .comm = comm};
    struct nsim_head head = nsim_head_of (&op);
    struct nsim_xfer xfer[2 * NSIM_RANKS];
    size_t n = 0;

    for (int i = 0; i < comm->ranks; i++)
        for (int out = 0; out < 2 && i != comm->rank; out++)
            xfer[n++] = (struct nsim_xfer){.peer = i,
                                           .out = out,
                                           .headed = true,
                                           .head = head,
                                           .data = &wish[out ? comm->rank : i],
                                           .bytes = sizeof (*wish)};
    return nsim_transfer (comm, xfer, n);
}

/* The [ranks] of [parent] in [member], in the order of the child. */
static ncclResult_t make_child (ncclComm_t parent, const struct child_job *job, const int *member,
                                int ranks, uint64_t descent)
{
    ncclComm_t child;
    ncclResult_t result;
    bool gone;
    int rank = 0;

    while (member[rank] != parent->rank)
        rank++;
    child = nsim_comm_new (rank, ranks, job->blocking);
    child->device = parent->device;
    pthread_mutex_lock (&child->mutex);
    child->tag = (struct nsim_tag){parent->tag.secret, descent};
    pthread_mutex_unlock (&child->mutex);
    for (int i = 0; i < ranks; i++) {
        child->card[i] = parent->card[member[i]];
        child->card[i].rank = i;
    }
    pthread_mutex_lock (&parent->mutex);
    parent->child = child;
    gone = parent->stop && parent->phase != NSIM_REVOKED;
    pthread_mutex_unlock (&parent->mutex);
    if (gone)
        nsim_stop (child);
    result = nsim_mesh (child);
    pthread_mutex_lock (&parent->mutex);
    parent->child = NULL;
    child->phase = result == ncclSuccess ? NSIM_READY : NSIM_FAILED;
    child->error = job->fate.late;
    pthread_mutex_unlock (&parent->mutex);
    if (result == ncclSuccess)
        *job->out = child;
    else
        nsim_comm_close (child, NSIM_ABORTED);
    return result;
}

static ncclResult_t split (ncclComm_t comm, const struct child_job *job)
{
    struct wish wish[NSIM_RANKS];
    int member[NSIM_RANKS], n = 0;
    uint64_t descent[3] = {comm->tag.descent, (uint64_t) ++comm->children, (uint64_t) job->color};
    enum nsim_end end;

    memset (wish, 0, sizeof (wish));
    wish[comm->rank] = (struct wish){job->color, job->key, comm->rank};
    end = exchange (comm, wish);
    if (end == NSIM_STOPPED && job->color == NCCL_SPLIT_NOCOLOR && comm->stop)
        sim_misuse (
            "ncclCommSplit: NCCL crashes here: it is aborted with NCCL_SPLIT_NOCOLOR, and "
            "the communicator that would hold the error is NULL (init.cc, to 2.30.7)");
    if (end != NSIM_OK)
        return end == NSIM_LOST ? ncclRemoteError : ncclInternalError;
    qsort (wish, (size_t) comm->ranks, sizeof (*wish), compare_wishes);
    for (int i = 0; i < comm->ranks; i++)
        if (wish[i].color == job->color)
            member[n++] = wish[i].rank;
    if (job->color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    return make_child (comm, job, member, n, nsim_hash (descent, sizeof (descent)));
}

/* The survivors agree without a word: all of them have the same list. */
static ncclResult_t shrink (ncclComm_t comm, const struct child_job *job)
{
    int member[NSIM_RANKS], n = 0;
    uint64_t descent[3] = {comm->tag.descent, (uint64_t) ++comm->children, 0};

    descent[2] = nsim_hash (job->excluded, (size_t) job->excluded_n * sizeof (int)) | 1u;
    for (int i = 0; i < comm->ranks; i++) {
        bool excluded = false;

        for (int k = 0; k < job->excluded_n; k++)
            excluded = excluded || job->excluded[k] == i;
        if (!excluded)
            member[n++] = i;
    }
    return make_child (comm, job, member, n, nsim_hash (descent, sizeof (descent)));
}

/* What runs ends; the communicator is only good for an end, or for further shrinking. */
static void revoke (ncclComm_t comm)
{
    nsim_stop (comm);
    pthread_mutex_lock (&comm->mutex);
    while (comm->queued > 0)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    comm->phase = NSIM_REVOKED;
    comm->error = ncclSuccess;
    pthread_mutex_unlock (&comm->mutex);
}

static ncclResult_t run_child (struct nsim_job *base)
{
    struct child_job *job = (struct child_job *) (void *) base;
    ncclComm_t comm = base->comm;
    ncclResult_t result;

    pthread_mutex_lock (&comm->mutex);
    comm->running++;
    pthread_mutex_unlock (&comm->mutex);
    if (job->aborts)
        revoke (comm);
    if (job->fate.stall)
        nsim_await_stop (comm);
    if (job->fate.stall)
        result = ncclInternalError;
    else
        result = job->shrinks ? shrink (comm, job) : split (comm, job);
    free (job->excluded);
    pthread_mutex_lock (&comm->mutex);
    comm->running--;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
    return result;
}

static void discard_child (struct nsim_job *base)
{
    free (((struct child_job *) (void *) base)->excluded);
}

static ncclResult_t check_parent (const char *who, ncclComm_t comm, const struct child_job *job)
{
    ncclResult_t result = nsim_check (comm, who);

    if (result != ncclSuccess && !(job->aborts && comm && comm->error == result))
        return result;
    if (comm->phase == NSIM_FINALIZED) {
        sim_misuse ("%s: communicator %d was finalized before", who, comm->number);
        return ncclInvalidArgument;
    }
    if (comm->phase == NSIM_REVOKED && !job->shrinks) {
        nsim_warn ("%s: a split after ncclCommRevoke is not simulated", who);
        return ncclInvalidUsage;
    }
    if (comm->queued > 0 && !job->aborts)
        sim_misuse ("%s: communicator %d has operations that are not complete", who,
                    comm->number);
    return ncclSuccess;
}

static ncclResult_t submit (const char *who, struct child_job *job, const ncclConfig_t *config)
{
    ncclComm_t comm = job->base.comm;

    *job->out = NULL;
    job->blocking = comm->blocking;
    if (config) {
        ncclResult_t result = nsim_config (config, &job->blocking, who);

        if (result != ncclSuccess)
            return result;
    }
    return nsim_group_job (&job->base, sizeof (*job));
}

/* N.B. a call on a parent that does not block returns ncclSuccess, outside a group too (2.28.9):
 * the parent's ncclCommGetAsyncError tells when *newcomm is there. */
static ncclResult_t progress_is_success (ncclResult_t result)
{
    return result == ncclInProgress ? ncclSuccess : result;
}

ncclResult_t ncclCommSplit (ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    static const char who[] = "ncclCommSplit";
    struct child_job job = {.base = {.comm = comm, .run = run_child, .discard = discard_child},
                            .out = newcomm,
                            .color = color,
                            .key = key};
    ncclResult_t injected = nsim_enter (who, 21800, &job.fate);
    ncclResult_t result = check_parent (who, comm, &job);

    if (result == ncclSuccess)
        result = injected;
    if (result == ncclSuccess && (!newcomm || (color < 0 && color != NCCL_SPLIT_NOCOLOR))) {
        nsim_warn ("%s : newcomm is NULL, or the color %d is negative", who, color);
        result = ncclInvalidArgument;
    }
    if (result == ncclSuccess)
        result = submit (who, &job, config);
    return progress_is_success (nsim_group_fail (result));
}

static int compare_ints (const void *a, const void *b)
{
    return *(const int *) a - *(const int *) b;
}

static ncclResult_t take_list (const char *who, struct child_job *job, int *list, int n)
{
    if (!list || n <= 0 || n >= job->base.comm->ranks) {
        nsim_warn ("%s : the list of %d ranks is NULL, empty or too long", who, n);
        return ncclInvalidArgument;
    }
    qsort (list, (size_t) n, sizeof (*list), compare_ints); /* NCCL sorts the caller's list too */
    for (int i = 0; i < n; i++)
        if (list[i] < 0 || list[i] >= job->base.comm->ranks || list[i] == job->base.comm->rank) {
            nsim_warn ("%s : rank %d excludes rank %d", who, job->base.comm->rank, list[i]);
            return ncclInvalidArgument;
        }
    job->excluded = malloc ((size_t) n * sizeof (*list));
    memcpy (job->excluded, list, (size_t) n * sizeof (*list));
    job->excluded_n = n;
    return ncclSuccess;
}

ncclResult_t ncclCommShrink (ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    static const char who[] = "ncclCommShrink";
    struct child_job job = {.base = {.comm = comm, .run = run_child, .discard = discard_child},
                            .out = newcomm,
                            .shrinks = true,
                            .aborts = (shrinkFlags & NCCL_SHRINK_ABORT) != 0};
    ncclResult_t injected = nsim_enter (who, 22700, &job.fate);
    ncclResult_t result = check_parent (who, comm, &job);

    if (result == ncclSuccess)
        result = injected;
    if (result == ncclSuccess && !newcomm)
        result = ncclInvalidArgument;
    if (result == ncclSuccess)
        result = take_list (who, &job, excludeRanksList, excludeRanksCount);
    if (result == ncclSuccess)
        result = submit (who, &job, config);
    return progress_is_success (nsim_group_fail (result));
}

static ncclResult_t run_revoke (struct nsim_job *base)
{
    revoke (base->comm);
    return ncclSuccess;
}

ncclResult_t ncclCommRevoke (ncclComm_t comm, int revokeFlags)
{
    static const char who[] = "ncclCommRevoke";
    struct nsim_job job = {.comm = comm, .run = run_revoke};
    struct nsim_fate fate;
    ncclResult_t injected = nsim_enter (who, 22807, &fate), result = ncclInvalidArgument;

    if (comm && revokeFlags == NCCL_REVOKE_DEFAULT)
        result = nsim_check_end (comm, who);
    if (result == ncclSuccess)
        result = injected;
    if (result == ncclSuccess)
        result = nsim_group_job (&job, sizeof (job));
    return nsim_group_fail (result);
}
