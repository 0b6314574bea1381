/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_notice - before NCCL is told to end a communicator, ranks of other nodes are told.
 *
 * What a rank's kernels hand on once they wait for nobody reaches ranks of other nodes as well,
 * by way of a rank of its node whose network still works; and so does what its program puts into
 * arrays that it has again. So neither comes before a rank of each node has answered that it
 * knows, and its node with it. One that does not answer within a
 * second is dead, or stopped; or there is no network by which it can be told. So it is called
 * gone only if it has been heard of before, or if others answer. That each rank has heard of the
 * node behind its own, it greets it as a communicator is made, and awaits the answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/module.h"
#include "base/status.h"
#include "transport/coll_nccl.h"

#define FIRST_NS (GSI_NS_PER_S / 4) /* for one rank of each node to answer, */
#define ALL_NS   GSI_NS_PER_S       /* then for any */

#define MOST_UNANSWERED 2 /* waits in vain of a process, then there are none */

static const struct gsi_notice_ops *_Atomic ops; /* once some rank has a card */
static atomic_int unanswered;                    /* greetings, waited for in vain */
static atomic_bool warned;                       /* of it */

void gsi_nccl_notices_prepare (const struct gsi_boot *boot, struct gsi_notice_card *card)
{
    const void *found;

    if (boot->size == 1 || boot->one_node || !gsi_env_int (GSI_ENV_NCCL_NOTICES))
        return;
    if (!gsi_module_find (GSI_MODULE_OFI, GSI_NOTICES_SYMBOL, &found)) {
        atomic_store (&ops, found);
        if (!((const struct gsi_notice_ops *) found)->prepare (boot->size, card))
            return;
    }
    gsi_log (
        GS_LOG_INFO, "nccl",
        "ranks of other nodes cannot be told that this one gives up, and may take what their "
        "GPUs make of it for a result: %s",
        gsi_last_text ());
}

static bool make_tables (struct gsi_nccl_notices *n, const struct gsi_topo *topo)
{
    size_t ranks = (size_t) topo->size;

    *n = (struct gsi_nccl_notices){
        .size = topo->size, .node = topo->node, .nodes = topo->nodes, .place = topo->local_rank};
    n->node_of = malloc (ranks * sizeof (*n->node_of));
    n->ranks = calloc ((size_t) topo->nodes, sizeof (*n->ranks));
    n->seen = calloc ((size_t) topo->nodes, sizeof (*n->seen));
    n->acked = calloc ((size_t) topo->nodes, sizeof (*n->acked));
    n->here = calloc ((size_t) topo->nodes, sizeof (*n->here));
    n->met = calloc ((size_t) topo->nodes, sizeof (*n->met));
    if (n->node_of)
        memcpy (n->node_of, topo->node_of, ranks * sizeof (*n->node_of));
    return n->node_of && n->ranks && n->seen && n->acked && n->here && n->met;
}

/* Asks a rank of the next node, which will answer. */
static void greet_next (const struct gsi_nccl_notices *n)
{
    const struct gsi_notice_ops *o = atomic_load (&ops);
    int next = (n->node + 1) % n->nodes, seen = 0;

    for (int r = 0; r < n->size; r++)
        if (n->node_of[r] == next && o->reaches (n->net, r) &&
            seen++ == n->place % n->ranks[next])
            o->send (n->net, &(struct gsi_notice_msg){.what = GSI_MSG_PING}, r);
}

/* How many ranks of the node before greet this one: greet_next, from the other side. */
static int count_greeters (const struct gsi_nccl_notices *n, int rank)
{
    const struct gsi_notice_ops *o = atomic_load (&ops);
    int before = (n->node + n->nodes - 1) % n->nodes, own = 0, place = 0, count = 0;

    for (int r = 0; r < rank; r++)
        own += n->node_of[r] == n->node && o->reaches (n->net, r);
    for (int r = 0; r < n->size; r++)
        if (n->node_of[r] == before) {
            count += o->reaches (n->net, r) && place % (n->ranks[n->node] + 1) == own;
            place++;
        }
    return count;
}

/* Until the next node has answered, and who greets this rank has its answer. */
static void await_greetings (struct gsi_nccl_handle *h, int rank)
{
    struct gsi_nccl_notices *n = &h->notices;
    struct gsi_wait wait = gsi_wait_for (ALL_NS, 0);
    int next = (n->node + 1) % n->nodes, greeters = count_greeters (n, rank), first = 0;
    bool met, goes_on;

    while (n->node_of[first] != next)
        first++;
    do {
        gsi_nccl_notices_hear (h);
        met = !n->ranks[next] || atomic_load (&n->met[next]);
        goes_on = !met || atomic_load (&n->greeted) < greeters;
    } while (goes_on && atomic_load (&unanswered) < MOST_UNANSWERED && gsi_wait_on (&wait));
    atomic_fetch_add (&unanswered, goes_on);
    if (!met && !atomic_exchange (&warned, true))
        gsi_log (
            n->place ? GS_LOG_INFO : GS_LOG_WARN, "nccl",
            "the next node (rank %d) does not answer libfabric, by which ranks are told that "
            "one gives up, and may take what its GPU makes of it for a result: is there a "
            "port filter? GS_OFI_PROVIDER names another network",
            first);
}

void gsi_nccl_notices_open (struct gsi_nccl_handle *h, const struct gsi_topo *topo,
                            const void *cards, size_t stride)
{
    struct gsi_nccl_notices *n = &h->notices;
    const struct gsi_notice_ops *o = atomic_load (&ops);
    struct gsi_notice_card own;
    struct gsi_notices *net;

    memcpy (&own, (const char *) cards + (size_t) topo->rank * stride, sizeof (own));
    if (!o || !own.bytes || topo->nodes == 1)
        return;
    if (!make_tables (n, topo) || o->open (topo->rank, topo->size, cards, stride, &net)) {
        gsi_log (GS_LOG_INFO, "nccl", "ranks of other nodes are not told that this one gives up");
        return;
    }
    for (int r = 0; r < n->size; r++)
        n->ranks[n->node_of[r]] += o->reaches (net, r);
    pthread_mutex_init (&n->guard, NULL);
    pthread_mutex_init (&n->asking, NULL);
    n->net = net;
    greet_next (n);
    await_greetings (h, topo->rank);
}

void gsi_nccl_notices_close (struct gsi_nccl_handle *h)
{
    struct gsi_nccl_notices *n = &h->notices;

    if (n->net) {
        atomic_load (&ops)->close (n->net, !n->told && !atomic_load (h->node.gave_up));
        pthread_mutex_destroy (&n->guard);
        pthread_mutex_destroy (&n->asking);
    }
    free (n->node_of);
    free (n->ranks);
    free (n->seen);
    free (n->acked);
    free (n->here);
    free (n->met);
}

/* With the guard. */
static void take (struct gsi_nccl_handle *h, const struct gsi_notice_msg *msg, int from)
{
    struct gsi_nccl_notices *n = &h->notices;
    const struct gsi_ending how = {
        .status = (gs_status_t) msg->status, .culprit = msg->culprit, .by = from};

    atomic_store (&n->here[n->node_of[from]], true);
    atomic_store (&n->met[n->node_of[from]], true);
    if (msg->what == GSI_MSG_ACK)
        atomic_store (&n->acked[n->node_of[from]], true);
    if (msg->what == GSI_MSG_PING) {
        atomic_load (&ops)->send (n->net, &(struct gsi_notice_msg){.what = GSI_MSG_PONG}, from);
        atomic_fetch_add (&n->greeted, 1);
    }
    if (msg->what != GSI_MSG_ABORT || how.status <= GS_OK)
        return;
    atomic_store (&n->acked[n->node_of[from]], true); /* its node knows, and may soon be gone */
    gsi_nccl_node_give_up (&h->node, &how);
    atomic_load (&ops)->send (n->net, &(struct gsi_notice_msg){.what = GSI_MSG_ACK}, from);
}

void gsi_nccl_notices_hear (struct gsi_nccl_handle *h)
{
    struct gsi_nccl_notices *n = &h->notices;
    struct gsi_notice_msg msg;
    int from;

    if (!n->net || pthread_mutex_trylock (&n->guard))
        return;
    while (atomic_load (&ops)->recv (n->net, &msg, &from))
        take (h, &msg, from);
    pthread_mutex_unlock (&n->guard);
}

/* Tells rank [place] of each node that has not [answered], counted round, or all others of it. */
static void tell_nodes (struct gsi_nccl_handle *h, const struct gsi_notice_msg *msg,
                        const atomic_bool *answered, bool all)
{
    struct gsi_nccl_notices *n = &h->notices;
    const struct gsi_notice_ops *o = atomic_load (&ops);

    pthread_mutex_lock (&n->guard);
    memset (n->seen, 0, (size_t) n->nodes * sizeof (*n->seen));
    for (int r = 0; r < n->size; r++) {
        int node = n->node_of[r];
        if (node == n->node || atomic_load (&answered[node]) || !o->reaches (n->net, r))
            continue;
        if ((n->seen[node]++ == n->place % n->ranks[node]) != all)
            o->send (n->net, msg, r);
    }
    pthread_mutex_unlock (&n->guard);
}

/* Whether all nodes have, within [most_ns]. */
static bool await_answers (struct gsi_nccl_handle *h, const atomic_bool *answered,
                           int64_t most_ns)
{
    struct gsi_nccl_notices *n = &h->notices;
    struct gsi_wait wait = gsi_wait_for (most_ns, 0);
    int missing;

    do {
        gsi_nccl_notices_hear (h);
        missing = 0;
        for (int node = 0; node < n->nodes; node++)
            missing += node != n->node && !atomic_load (&answered[node]);
    } while (missing && gsi_wait_on (&wait));
    return !missing;
}

/* Whether a rank of each other node has [answered] to [msg]. */
static bool tell_until_answered (struct gsi_nccl_handle *h, const struct gsi_notice_msg *msg,
                                 const atomic_bool *answered)
{
    tell_nodes (h, msg, answered, false);
    if (await_answers (h, answered, FIRST_NS))
        return true;
    tell_nodes (h, msg, answered, true);
    return await_answers (h, answered, ALL_NS - FIRST_NS);
}

void gsi_nccl_notices_tell (struct gsi_nccl_handle *h, const struct gsi_ending *how)
{
    const struct gsi_notice_msg msg = {
        .what = GSI_MSG_ABORT, .status = (int32_t) how->status, .culprit = how->culprit};
    struct gsi_nccl_notices *n = &h->notices;
    bool answered;

    if (!n->net)
        return;
    pthread_mutex_lock (&n->asking); /* who comes second returns when all know, too */
    answered = n->told || tell_until_answered (h, &msg, n->acked);
    n->told = true;
    pthread_mutex_unlock (&n->asking);
    if (!answered)
        gsi_log (GS_LOG_INFO, "nccl", "not all nodes have answered that this rank gives up");
}

static void ask_all (struct gsi_nccl_handle *h, unsigned char *gone)
{
    const struct gsi_notice_msg msg = {.what = GSI_MSG_PING};
    struct gsi_nccl_notices *n = &h->notices;
    bool answered = false;

    for (int node = 0; node < n->nodes; node++)
        atomic_store (&n->here[node], false);
    if (tell_until_answered (h, &msg, n->here))
        return;
    for (int node = 0; node < n->nodes; node++)
        answered = answered || atomic_load (&n->here[node]);
    for (int r = 0; r < n->size; r++) {
        int node = n->node_of[r];
        gone[r] = node != n->node && !atomic_load (&n->here[node]) &&
                  (answered || atomic_load (&n->met[node])) &&
                  atomic_load (&ops)->reaches (n->net, r);
    }
}

void gsi_nccl_notices_ask (struct gsi_nccl_handle *h, unsigned char *gone)
{
    if (!h->notices.net)
        return;
    pthread_mutex_lock (&h->notices.asking);
    ask_all (h, gone);
    pthread_mutex_unlock (&h->notices.asking);
}
