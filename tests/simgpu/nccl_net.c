/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_net - moves what a step of an algorithm sends and receives, all of it at once: in each
 * direction of each connection in the order given, between connections in any. Compares the heads
 * that come with what is done here: that is how ranks that disagree are found.
 *
 * After an abort it waits for nothing, but goes on, as kernels of NCCL do (v2.28.9 prims_ll.h,
 * readLL and storeLL; prims_simple.h, waitPeer and postPeer): what has not come is whatever the
 * memory held, and is handed to ranks of the host as if it were good. Between hosts the threads
 * that carry data have stopped.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "nccl_sim.h"

#define STALE 0x3c /* what memory holds where nothing has come; no number that anybody awaits */

static const char *const what_names[] = {
    [NSIM_ALLREDUCE] = "ncclAllReduce",
    [NSIM_BROADCAST] = "ncclBroadcast",
    [NSIM_REDUCE] = "ncclReduce",
    [NSIM_ALLGATHER] = "ncclAllGather",
    [NSIM_REDUCE_SCATTER] = "ncclReduceScatter",
    [NSIM_SEND] = "ncclSend",
    [NSIM_RECV] = "ncclRecv",
    [NSIM_SPLIT] = "ncclCommSplit",
    [NSIM_FINALIZE] = "ncclCommFinalize",
    [NSIM_INIT] = "ncclCommInitRank",
};

static const char *const op_names[] = {"sum", "prod", "max", "min", "avg", "premulsum"};

static void describe (const struct nsim_head *head, char *text, size_t bytes)
{
    const char *name = head->what <= NSIM_INIT ? what_names[head->what] : "nothing known";
    char count[80] = "", op[32] = "", root[24] = "", number[40] = "";

    if (head->what < NSIM_SPLIT)
        snprintf (count, sizeof (count), "count %" PRIu64 ", %s", head->count,
                  nsim_type_name ((ncclDataType_t) head->type));
    if (head->op >= 0 && head->op <= ncclNumOps)
        snprintf (op, sizeof (op), ", %s", op_names[head->op]);
    if (head->root >= 0)
        snprintf (root, sizeof (root), ", root %d", head->root);
    if (head->sequence > 0)
        snprintf (number, sizeof (number), "%scall %" PRIu64, *count ? ", " : "", head->sequence);
    snprintf (text, bytes, "%s (%s%s%s%s)", name, count, op, root, number);
}

/* Tells all ranks, which then report it as well: none is left waiting. */
static void disagree (ncclComm_t comm, const struct nsim_head *mine, const struct nsim_head *got)
{
    char ours[160], theirs[160], text[NSIM_TEXT];

    describe (mine, ours, sizeof (ours));
    describe (got, theirs, sizeof (theirs));
    snprintf (text, sizeof (text), "the ranks disagree: rank %d does %s, rank %d does %s",
              mine->rank, ours, got->rank, theirs);
    sim_misuse ("%s", text);
    nsim_warn ("%s", text);
    nsim_break (comm, ncclInvalidUsage);
    nsim_tell_all (comm, ncclInvalidUsage, text);
}

static bool agrees (ncclComm_t comm, const struct nsim_xfer *xfer)
{
    struct nsim_head mine = xfer->head, got = xfer->got;

    mine.rank = got.rank = 0;
    if (memcmp (&mine, &got, sizeof (mine)) == 0)
        return true;
    mine = xfer->head;
    mine.rank = comm->rank;
    if (mine.what == NSIM_SEND) /* what is awaited is written as its sender writes it */
        mine.what = NSIM_RECV;
    disagree (comm, &mine, &xfer->got);
    return false;
}

/* What is left of [xfer] in one piece. */
static void *rest (struct nsim_xfer *xfer, size_t *bytes)
{
    size_t head = xfer->headed ? sizeof (xfer->head) : 0;

    if (xfer->done < head) {
        *bytes = head - xfer->done;
        return (char *) (xfer->out ? &xfer->head : &xfer->got) + xfer->done;
    }
    *bytes = head + xfer->bytes - xfer->done;
    return (char *) xfer->data + (xfer->done - head);
}

enum step { ENDED, BLOCKED, GONE, DIFFERS };

static enum step advance (ncclComm_t comm, struct nsim_xfer *xfer, bool *moved)
{
    size_t bytes;
    ssize_t n;

    for (;;) {
        void *data = rest (xfer, &bytes);

        if (bytes == 0)
            return ENDED;
        n = xfer->out ? send (comm->fd[xfer->peer], data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                      : recv (comm->fd[xfer->peer], data, bytes, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return BLOCKED;
        if (n <= 0) /* heads alone are ours, not NCCL's: who has ended wants none */
            return xfer->out && xfer->bytes == 0 ? ENDED : GONE;
        *moved = true;
        xfer->done += (size_t) n;
        if (!xfer->out && xfer->headed && xfer->done == sizeof (xfer->head) &&
            !agrees (comm, xfer))
            return DIFFERS;
    }
}

/* Not if it is known why it has gone: that text is the one to keep. */
static enum nsim_end lost (ncclComm_t comm, int peer)
{
    bool broken;

    pthread_mutex_lock (&comm->mutex);
    broken = comm->broken;
    comm->silent = comm->card[peer].host == comm->card[comm->rank].host;
    if (!broken)
        nsim_warn ("Connection closed by remote peer"); /* NCCL names no rank */
    pthread_mutex_unlock (&comm->mutex);
    return broken ? NSIM_STOPPED : NSIM_LOST;
}

/* One round over all lanes; [poll] is filled with what is to be waited for. */
static enum nsim_end round_trip (ncclComm_t comm, struct nsim_xfer **lane, struct pollfd *wait,
                                 nfds_t *waits, bool *moved)
{
    *waits = 0;
    for (int i = 0; i < 2 * comm->ranks; i++) {
        while (lane[i]) {
            enum step step = advance (comm, lane[i], moved);

            if (step == GONE)
                return lost (comm, lane[i]->peer);
            if (step == DIFFERS)
                return NSIM_STOPPED;
            if (step == BLOCKED)
                break;
            lane[i] = lane[i]->next;
        }
        if (lane[i])
            wait[(*waits)++] =
                (struct pollfd){comm->fd[i / 2], lane[i]->out ? POLLOUT : POLLIN, 0};
    }
    return NSIM_OK;
}

static enum nsim_end run_lanes (ncclComm_t comm, struct nsim_xfer **lane)
{
    struct pollfd wait[2 * NSIM_RANKS + 1];
    nfds_t waits;

    for (;;) {
        bool moved = false;
        enum nsim_end end = round_trip (comm, lane, wait, &waits, &moved);

        if (end != NSIM_OK || waits == 0)
            return end;
        wait[waits] = (struct pollfd){comm->wake, POLLIN, 0};
        if (poll (wait, waits + 1, moved ? 0 : -1) > 0 && wait[waits].revents)
            return NSIM_STOPPED;
    }
}

static void append (ncclComm_t comm, struct nsim_xfer **lane, struct nsim_xfer **tail,
                    struct nsim_xfer *xfer)
{
    int i = 2 * xfer->peer + (xfer->out ? 1 : 0);

    (void) comm;
    xfer->next = NULL;
    xfer->done = 0;
    *(lane[i] ? &tail[i]->next : &lane[i]) = xfer;
    tail[i] = xfer;
}

static enum nsim_end transfer (ncclComm_t comm, struct nsim_xfer *xfer, size_t n)
{
    struct nsim_xfer *lane[2 * NSIM_RANKS], *tail[2 * NSIM_RANKS], *owed = NULL;
    int before = (comm->rank + comm->ranks - 1) % comm->ranks;
    bool pay = false;
    enum nsim_end end;

    memset (lane, 0, 2 * (size_t) comm->ranks * sizeof (*lane));
    for (size_t i = 0; i < n; i++)
        pay = pay || (!xfer[i].out && xfer[i].peer == before && comm->owed_n > 0);
    if (pay) {
        owed = calloc (comm->owed_n, sizeof (*owed));
        for (size_t i = 0; i < comm->owed_n; i++) {
            owed[i] = (struct nsim_xfer){.peer = before, .headed = true, .head = comm->owed[i]};
            append (comm, lane, tail, &owed[i]);
        }
        comm->owed_n = 0;
    }
    for (size_t i = 0; i < n; i++)
        append (comm, lane, tail, &xfer[i]);
    end = run_lanes (comm, lane);
    free (owed);
    return end;
}

/* Who gets it cannot tell that it is [STALE]. What finds no room is lost, and all behind it. */
static void store_anyway (ncclComm_t comm, struct nsim_xfer *xfer)
{
    bool moved;

    if (!comm->choked[xfer->peer] && comm->card[xfer->peer].host == comm->card[comm->rank].host)
        comm->choked[xfer->peer] = advance (comm, xfer, &moved) != ENDED;
}

static void take_anyway (struct nsim_xfer *xfer)
{
    size_t head = xfer->headed ? sizeof (xfer->head) : 0,
           done = xfer->done > head ? xfer->done - head : 0;

    if (done < xfer->bytes)
        memset ((char *) xfer->data + done, STALE, xfer->bytes - done);
}

/* Behind an operation that has not sent all nothing goes: it would be taken for the rest. */
static void choke (ncclComm_t comm, const struct nsim_xfer *xfer, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (xfer[i].out)
            comm->choked[xfer[i].peer] = true;
}

enum nsim_end nsim_transfer (ncclComm_t comm, struct nsim_xfer *xfer, size_t n)
{
    enum nsim_end end;

    for (size_t i = 0; i < n; i++)
        xfer[i].done = 0;
    end = comm->stop ? NSIM_STOPPED : transfer (comm, xfer, n);
    if (end == NSIM_OK)
        return end;
    if (end != NSIM_STOPPED || !comm->stop || comm->broken) {
        choke (comm, xfer, n);
        return end;
    }
    for (size_t i = 0; i < n; i++)
        if (xfer[i].out)
            store_anyway (comm, &xfer[i]);
        else
            take_anyway (&xfer[i]);
    return NSIM_OK;
}

void nsim_owe (ncclComm_t comm, const struct nsim_head *head)
{
    if (comm->owed_n == comm->owed_room) {
        comm->owed_room = 2 * comm->owed_room + 16;
        comm->owed = realloc (comm->owed, comm->owed_room * sizeof (*comm->owed));
    }
    comm->owed[comm->owed_n++] = *head;
}

static enum nsim_end heads (ncclComm_t comm, enum nsim_what what, int ways)
{
    struct nsim_op op = {.what = what, .comm = comm};
    struct nsim_head head = nsim_head_of (&op);
    struct nsim_xfer xfer[2 * NSIM_RANKS];
    size_t n = 0;

    for (int i = 0; i < comm->ranks; i++)
        for (int in = 0; in < ways && i != comm->rank; in++)
            xfer[n++] = (struct nsim_xfer){.peer = i, .out = !in, .headed = true, .head = head};
    return transfer (comm, xfer, n);
}

enum nsim_end nsim_barrier (ncclComm_t comm, enum nsim_what what)
{
    return heads (comm, what, 2);
}

/* To a peer that lives. */
static bool has_unsent (int fd)
{
    struct pollfd end = {fd, 0, 0};
    int unsent;

    return !ioctl (fd, SIOCOUTQ, &unsent) && unsent > 0 && poll (&end, 1, 0) == 0;
}

/*
 * So that who still waits for this rank in a call sees where it is. Returns when all that was
 * sent is with its receivers, as NCCL's proxies do, so that an end loses nothing of it.
 */
void nsim_tell (ncclComm_t comm, enum nsim_what what)
{
    heads (comm, what, 1);
    for (int i = 0; i < comm->ranks; i++)
        while (comm->fd[i] >= 0 && !comm->stop && has_unsent (comm->fd[i]))
            nanosleep (&(struct timespec){0, 100000}, NULL);
}
