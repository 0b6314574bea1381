/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_end - NCCL ends a communicator when no GPU of the node has work of others.
 *
 * NCCL's frees wait for all work of the GPU and keep launches out meanwhile: those of commFree
 * (v2.28.9 init.cc:322), and those of its service thread, of connections, once all ranks of the
 * node have finalized (proxy.cc:1636, transport/net.cc:687). Where two ranks free so behind work
 * that each awaits from the other, nobody ever goes on. So the ranks of a node come together for
 * the finalize and the destroy, each with its GPU shut.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/status.h"
#include "base/thread.h"
#include "transport/coll_nccl.h"

#define SOON_NS      (50 * GSI_NS_PER_MS) /* the caller waits so long for others' work, */
#define MEET_NS      (2 * GSI_NS_PER_S)   /* and for ranks that are to come */
#define TOGETHER_NS  (10 * GSI_NS_PER_MS) /* a GPU is shut so long for the others, */
#define TOGETHER_MAX (80 * GSI_NS_PER_MS) /* which grows to that */
#define INTERVAL_NS  (20 * GSI_NS_PER_MS) /* from one such time to the next, */
#define INTERVAL_MAX GSI_NS_PER_S         /* which grows to that */
#define LOOK_NS      GSI_NS_PER_S         /* from one look for ranks that have died to the next */
#define EXIT_WAIT_NS GSI_NS_PER_S         /* the end of the process waits so long for others */

struct gsi_nccl_teardown {
    atomic_int places, joined; /* ranks that can meet here, and have said who they are */
    atomic_int came;           /* that have nothing under way, and want the end */
    atomic_int shut;           /* whose GPU is; once it is all of them none opens it again */
    atomic_int later;          /* a rank has work of others: a thread waits for that, on each */
    atomic_int apart;          /* a rank takes no part, for good: nobody waits for others */
    atomic_uint_fast64_t gave_up; /* because of which kernels will wait for nobody */
    struct member {
        int64_t process;
        uint64_t started, space; /* 0: not known */
    } member[];
};

#define MOST_MEMBERS ((GSI_PAGE - sizeof (struct gsi_nccl_teardown)) / sizeof (struct member))

/* ---- Where they meet ---- */

void *gsi_nccl_node_make (struct gsi_memfd_handle *handle)
{
    struct gsi_memfd *room = malloc (sizeof (*room));

    if (room)
        *handle = gsi_memfd_make (room, 2 * GSI_PAGE);
    return room;
}

void gsi_nccl_node_unmake (void *room)
{
    if (room)
        gsi_memfd_close (room);
    free (room);
}

void gsi_nccl_node_join (struct gsi_nccl_node *node, void *room, int size, bool watched, bool own,
                         const struct gsi_memfd_handle *first)
{
    bool ended, shares = size > 1 || watched;
    int place;

    *node = (struct gsi_nccl_node){.shared = GSI_MEMFD_NONE, .size = size};
    node->gave_up = &node->alone;
    if (shares && own) {
        node->shared = *(struct gsi_memfd *) room;
        free (room);
    } else {
        gsi_nccl_node_unmake (room);
        if (shares && !gsi_fault ("nccl.join"))
            gsi_memfd_join (&node->shared, first);
    }
    if (!node->shared.base || (size_t) size > MOST_MEMBERS)
        return;
    node->teardown = (struct gsi_nccl_teardown *) (void *) (node->shared.base + GSI_PAGE);
    node->gave_up = &node->teardown->gave_up;
    place = atomic_fetch_add (&node->teardown->places, 1);
    node->teardown->member[place].process = getpid ();
    node->teardown->member[place].started = gsi_process_start (getpid (), &ended);
    node->teardown->member[place].space = gsi_process_space ();
    atomic_fetch_add (&node->teardown->joined, 1);
}

void gsi_nccl_node_part (struct gsi_nccl_node *node)
{
    if (node->teardown)
        atomic_store (&node->teardown->apart, 1);
}

void gsi_nccl_node_give_up (struct gsi_nccl_node *node, const struct gsi_ending *how)
{
    uint_fast64_t known = 0;
    struct gsi_ending first;

    gsi_nccl_node_part (node);
    if (atomic_compare_exchange_strong (node->gave_up, &known, gsi_ending_pack (how)))
        return;
    gsi_ending_unpack (known, &first);
    if (gsi_ending_is_vague (&first) && !gsi_ending_is_vague (how))
        atomic_compare_exchange_strong (node->gave_up, &known, gsi_ending_pack (how));
}

/* Whether all ranks of the node have its word, and so would tell by it that they give up. */
static bool has_all (const struct gsi_nccl_node *node)
{
    return node->teardown && atomic_load (&node->teardown->joined) == node->size;
}

enum gsi_gave_up gsi_nccl_node_gave_up (const struct gsi_nccl_node *node, struct gsi_ending *how)
{
    uint64_t word = atomic_load (node->gave_up);

    if (!word)
        return node->size == 1 || has_all (node) ? GSI_NONE_GAVE_UP : GSI_GAVE_UP_UNKNOWN;
    gsi_ending_unpack (word, how);
    return GSI_GAVE_UP;
}

const atomic_uint_fast64_t *gsi_nccl_node_watch (const struct gsi_memfd_handle *first,
                                                 struct gsi_memfd *shm)
{
    const struct gsi_nccl_teardown *teardown;

    if (!gsi_memfd_join (shm, first))
        return NULL;
    teardown = (const struct gsi_nccl_teardown *) (const void *) (shm->base + GSI_PAGE);
    return &teardown->gave_up;
}

/* Whether it waits for no other rank. */
static bool is_alone (const struct gsi_nccl_node *node)
{
    return !has_all (node) || atomic_load (&node->teardown->apart);
}

/* A rank that has died comes no more. */
static void look_for_dead (struct gsi_nccl_node *node)
{
    for (int i = 0; i < node->size && !is_alone (node); i++) {
        const struct member *m = &node->teardown->member[i];
        if (gsi_process_has_ended (m->process, m->started, m->space))
            gsi_nccl_node_part (node);
    }
}

/* This rank's GPU is shut: whether all are, within a moment. */
static bool await_others (const struct gsi_nccl_node *node, int64_t moment_ns)
{
    struct gsi_nccl_teardown *m = node->teardown;
    struct gsi_wait wait = gsi_wait_for (moment_ns, 0);
    int shut = atomic_fetch_add (&m->shut, 1) + 1;

    while (shut < node->size) {
        if ((is_alone (node) || !gsi_wait_on (&wait)) &&
            atomic_compare_exchange_strong (&m->shut, &shut, shut - 1))
            return is_alone (node);
        shut = atomic_load (&m->shut);
    }
    return true;
}

/* ---- One's turn ---- */

void gsi_nccl_reopen (struct gsi_nccl_handle *h)
{
    h->device.ops->streams->reopen (&h->device, &h->shut);
}

static bool try_shut (struct gsi_nccl_handle *h)
{
    return h->device.ops->streams->shut (&h->device, atomic_load (&h->own), &h->shut);
}

/* A wait for one's turn. */
struct turn {
    bool together, soon;
    int64_t begin_ns, looked_ns, exit_ns;
    int64_t next_ns, interval_ns; /* when it shuts though nobody has: ever less often, */
    int64_t moment_ns;            /* and longer */
    bool stale;                   /* who has shut was waited for in vain */
    bool busy;                    /* the last time others had work */
};

/* Whether it is worthwhile to try: it stops this GPU. */
static bool is_time (const struct gsi_nccl_node *node, struct turn *t)
{
    bool shut;

    if (is_alone (node))
        return true;
    if (atomic_load (&node->teardown->came) < node->size)
        return false;
    shut = atomic_load (&node->teardown->shut);
    t->stale = t->stale && shut;
    return (shut && !t->stale) || gsi_now_ns () >= t->next_ns;
}

static bool shut_together (struct gsi_nccl_handle *h, struct turn *t)
{
    if (!is_time (&h->node, t) || (t->busy = !try_shut (h)))
        return false;
    if (is_alone (&h->node) || await_others (&h->node, t->moment_ns))
        return true;
    gsi_nccl_reopen (h);
    t->stale = true;
    t->next_ns = gsi_now_ns () + (t->exit_ns ? 0 : t->interval_ns);
    t->interval_ns *= t->interval_ns < INTERVAL_MAX ? 2 : 1;
    t->moment_ns *= t->moment_ns < TOGETHER_MAX ? 2 : 1;
    return false;
}

/* Whether the end of the process, which has begun, waits no longer for it. */
static bool must_leave (const struct gsi_nccl_handle *h, struct turn *t)
{
    if (!t->exit_ns) {
        t->exit_ns = gsi_now_ns ();
        t->next_ns = 0;
        return !t->together; /* once more */
    }
    return t->busy || is_alone (&h->node) || gsi_now_ns () - t->exit_ns > EXIT_WAIT_NS;
}

static bool waited_enough (const struct gsi_nccl_handle *h, const struct turn *t, int64_t most_ns)
{
    int64_t waited_ns = gsi_now_ns () - t->begin_ns;

    return waited_ns > most_ns ||
           (t->soon && ((t->busy && waited_ns > SOON_NS) ||
                        (h->node.teardown && atomic_load (&h->node.teardown->later))));
}

enum outcome { SHUT, OPEN, LEFT };

/*
 * Waits for the end of others' work, on this GPU or on all of the node, for [most_ns]. Has
 * entered the GPU, but for LEFT: the process ends.
 */
static enum outcome await_turn (struct gsi_nccl_handle *h, struct turn t, int64_t most_ns)
{
    bool ends;

    t.begin_ns = t.looked_ns = gsi_now_ns ();
    t.interval_ns = INTERVAL_NS;
    t.moment_ns = TOGETHER_NS;
    if (!gsi_thread_enter_gpu ())
        return LEFT;
    for (;;) {
        ends = gsi_thread_must_leave_gpu () && must_leave (h, &t);
        if (t.together ? shut_together (h, &t) : try_shut (h))
            return SHUT;
        if (waited_enough (h, &t, most_ns))
            return OPEN;
        if (ends)
            break;
        if (!t.together)
            atomic_store (&h->later, true);
        if (gsi_now_ns () - t.looked_ns > LOOK_NS) {
            look_for_dead (&h->node);
            t.looked_ns = gsi_now_ns ();
        }
        gsi_pause (gsi_now_ns () - t.begin_ns, 0);
    }
    gsi_thread_leave_gpu ();
    return LEFT;
}

bool gsi_nccl_shut_in_turn (struct gsi_nccl_handle *h, int64_t most_ns)
{
    enum outcome outcome = await_turn (h, (struct turn){.together = false}, most_ns);

    if (outcome == LEFT)
        gsi_nccl_stop_here ();
    return outcome == SHUT;
}

/* ---- The end ---- */

/* What NCCL has noticed by now: a kernel that died, a peer that was lost. */
static ncclResult_t noticed (ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess, rc = gsi_nccl.CommGetAsyncError (comm, &state);

    return rc ? rc : state;
}

static ncclResult_t finalize (ncclComm_t comm)
{
    ncclResult_t rc = gsi_nccl.CommFinalize (comm);

    return rc ? rc : noticed (comm);
}

/* NCCL destroys none with an asynchronous error, which is aborted then. */
static void destroy (struct gsi_nccl_handle *h, ncclComm_t comm)
{
    ncclResult_t rc = gsi_nccl.CommDestroy (comm);

    if (rc) {
        gsi_nccl.CommAbort (comm);
        gsi_log (GS_LOG_WARN, "nccl", "ncclCommDestroy: %s", gsi_nccl.GetErrorString (rc));
    }
    atomic_store (&h->gone, true);
}

/* N.B. A destroy after a finalize that failed may have no end: v2.28.9 init.cc:254. */
static void end_unseen (struct gsi_nccl_handle *h, ncclComm_t comm)
{
    ncclResult_t rc = finalize (comm);

    if (!rc) {
        destroy (h, comm);
        return;
    }
    gsi_log (GS_LOG_WARN, "nccl", "ncclCommFinalize, after gs_comm_destroy: %s",
             gsi_nccl.GetErrorString (rc));
    gsi_nccl_node_part (&h->node);
    gsi_nccl.CommAbort (comm);
    atomic_store (&h->gone, true);
}

/* Has the GPU shut, or waits for its turn. */
static void *end_in_turn (void *argument)
{
    struct gsi_nccl_handle *h = argument;
    ncclComm_t comm = __atomic_load_n (&h->comm, __ATOMIC_ACQUIRE);
    bool goes_on = h->is_shut
                       ? gsi_thread_enter_gpu ()
                       : await_turn (h, (struct turn){.together = true}, INT64_MAX) == SHUT;

    if (!goes_on) {
        gsi_nccl_node_part (&h->node);
        gsi_nccl_stop_here ();
    }
    gsi_nccl_enter_device (h);
    (h->finalized ? destroy : end_unseen) (h, comm);
    gsi_nccl_reopen (h);
    gsi_thread_leave_gpu ();
    gsi_nccl_handle_release (h);
    return NULL;
}

/* By a thread; without one NCCL's communicator stays, finalized, for the others' sake. */
static void start_end (struct gsi_nccl_handle *h)
{
    ncclComm_t comm = __atomic_load_n (&h->comm, __ATOMIC_ACQUIRE);

    if (!h->is_shut) {
        atomic_store (&h->later, true);
        if (h->node.teardown)
            atomic_store (&h->node.teardown->later, 1);
    }
    if (gsi_nccl_leave_to_thread (h, end_in_turn, "NCCL's end"))
        return;
    gsi_log (GS_LOG_WARN, "nccl", "%s: NCCL's communicator is kept", gsi_last_text ());
    gsi_nccl_node_part (&h->node);
    if (!h->finalized)
        finalize (comm);
    if (h->is_shut)
        gsi_nccl_reopen (h);
    atomic_store (&h->gone, true);
}

/*
 * As far as that is soon: h->is_shut, ->finalized. N.B. Where graphs hold operations the finalize
 * waits for them, and where the ranks of the node cannot meet the destroy waits for the last
 * one's: there it comes now, with the caller's deadline, though others may have work.
 */
static ncclResult_t begin_end (struct gsi_nccl_handle *h, ncclComm_t comm, bool captured,
                               int64_t most_ns)
{
    enum outcome outcome = await_turn (h, (struct turn){.together = true, .soon = true}, most_ns);
    bool alone = h->node.size > 1 && is_alone (&h->node);
    ncclResult_t rc = ncclSuccess;

    if ((outcome == SHUT || (outcome == OPEN && (captured || alone))) &&
        !atomic_load (&h->ended)) {
        rc = finalize (comm);
        h->finalized = !rc;
    }
    h->is_shut = outcome == SHUT && h->finalized && !alone;
    if (outcome == SHUT && !h->is_shut)
        gsi_nccl_reopen (h);
    if (outcome != LEFT)
        gsi_thread_leave_gpu ();
    return rc;
}

ncclResult_t gsi_nccl_end (struct gsi_nccl_handle *h, bool captured, int64_t most_ns)
{
    ncclComm_t comm = __atomic_load_n (&h->comm, __ATOMIC_ACQUIRE);
    ncclResult_t rc = noticed (comm);

    if (rc)
        return rc;
    if (h->node.teardown)
        atomic_fetch_add (&h->node.teardown->came, 1);
    if ((rc = begin_end (h, comm, captured, most_ns < MEET_NS ? most_ns : MEET_NS)))
        return rc;
    if (!atomic_exchange (&h->ended, true)) {
        atomic_store (&h->quiet, true);
        start_end (h);
    } else if (h->is_shut) {
        gsi_nccl_reopen (h);
    }
    return ncclSuccess;
}

void gsi_nccl_end_single (const struct gsi_device *device, ncclComm_t comm)
{
    struct gsi_nccl_handle *h = gsi_nccl_handle_make (device);

    if (!h) {
        gsi_nccl.CommAbort (comm);
        return;
    }
    atomic_store (&h->own, NULL);
    h->comm = comm;
    start_end (h);
    gsi_nccl_handle_release (h);
}
