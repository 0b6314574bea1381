/* SPDX-License-Identifier: BSD-3-Clause */
/* node - memory that the ranks of a node share, and how they meet in it. */
#include "host/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "host/coll_host.h"
#include "host/cma.h"

#define PROGRESS                                                                  \
    32u /* polls between looks at the network, whose messages others may wait for \
         */
#define LOOK_EVERY 512u /* polls between looks at what ends a wait */
#define RELAXED    16u  /* polls that take as long as one of the network */

/* What a rank tells of a block that it has put, in one cache line. */
struct put {
    _Alignas(64) atomic_uint_fast64_t turn;
    uint64_t fingerprint; /* what the block is of: alike on all ranks */
    uint64_t place;       /* where its array begins, where others see it; or 0 */
};

/* How far a rank has come: numbers of blocks, from 1; in cache lines that only it writes. */
struct line {
    struct put put[GSI_NODE_SLOTS];
    _Alignas(64) atomic_uint_fast64_t done;
    atomic_int revoked; /* a status: it has given up, and its arrays may be anything by now; */
    atomic_int culprit; /* because of this rank, or -1 */
};

/* What a rank has made: the memory of the node if it is the first there, and its file of arrays.
 */
struct made {
    struct gsi_memfd_handle node, arrays;
    uint64_t probe_at, probe;
};

enum { MAPS = 1, READS = 2 }; /* what every rank can do with it */

/* What all ranks have made, and what each can. */
struct node_setup {
    int32_t *can;       /* [size], and the own one behind them; part of it, behind */
    struct made made[]; /* likewise */
};

gs_status_t gsi_node_build (struct gsi_node *node, const struct gsi_topo *topo)
{
    node->rank = calloc ((size_t) topo->local_size, sizeof (*node->rank));
    if (!node->rank)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    node->size = 0;
    node->index = topo->local_rank;
    for (int r = 0; r < topo->size; r++)
        if (topo->node_of[r] == topo->node)
            node->rank[node->size++] = r;
    return GS_OK;
}

/* ---- Making the memory ---- */

static struct line *line_of (const struct gsi_node *node, int index)
{
    return (struct line *) (node->shm.base + GSI_PAGE) + index;
}

static size_t head_bytes (const struct gsi_node *node)
{
    size_t size = (size_t) node->size;

    return gsi_memfd_round (GSI_PAGE +
                            size * (sizeof (struct line) + size * sizeof (struct gsi_post)));
}

static size_t areas_bytes (const struct gsi_node *node)
{
    return (size_t) node->size * (size_t) node->slots * (node->area_bytes + node->result_bytes);
}

/* Of all of it only what is used takes up room. */
static size_t routes_bytes (const struct gsi_node *node)
{
    return gsi_memfd_round (2 * (size_t) node->size * (size_t) node->size *
                            sizeof (struct gsi_route));
}

struct gsi_route *gsi_node_route (const struct gsi_node *node, int from, int to, bool all)
{
    char *routes = node->shm.base + head_bytes (node) + areas_bytes (node);

    return (struct gsi_route *) (void *) routes + (all * node->size + from) * node->size + to;
}

struct gsi_post *gsi_node_post (const struct gsi_node *node, int from, int to)
{
    return (struct gsi_post *) (void *) line_of (node, node->size) + from * node->size + to;
}

static struct made make_node_memory (struct gsi_coll_host *c, struct gsi_node *node)
{
    struct made made = {.arrays = gsi_shm_heap_open (&c->shm_heap, node->size)};

    made.probe_at = (uint64_t) (uintptr_t) &node->probe;
    made.probe = node->probe = made.arrays.token ^ made.probe_at;
    if (node->index == 0 && !gsi_fault ("node.memory"))
        made.node = gsi_memfd_make (&node->shm,
                                    head_bytes (node) + areas_bytes (node) + routes_bytes (node));
    return made;
}

/* Maps what the ranks of the node have made. */
static bool join (struct gsi_coll_host *c, struct gsi_node *node, const struct made *made)
{
    bool ok = node->index == 0 ? made[c->rank].node.ok
                               : gsi_memfd_join (&node->shm, &made[node->rank[0]].node);

    for (int i = 0; i < node->size && ok; i++)
        ok = i == node->index ? made[c->rank].arrays.ok
                              : gsi_shm_heap_join (&c->shm_heap, i, &made[node->rank[i]].arrays);
    return ok;
}

/* Whether this rank may read the memory of the others of the node, whose processes it notes. */
static bool can_read (struct gsi_node *node, const struct made *made)
{
    bool ok = !gsi_fault ("node.read");

    for (int i = 0; i < node->size && ok; i++) {
        const struct made *there = &made[node->rank[i]];
        uint64_t seen = 0;
        node->process[i] = there->arrays.process;
        if (i != node->index)
            ok = gsi_cma_read (node->process[i], there->probe_at, &seen, sizeof (seen)) &&
                 seen == there->probe;
    }
    return ok;
}

/* Tells all ranks where the memory of each node is. */
static gs_status_t tell_node (struct gsi_coll_host *c, struct node_setup *m, int64_t deadline_ns)
{
    return c->net->ops->allgather (c->net, &m->made[c->size], m->made, sizeof (struct made),
                                   deadline_ns);
}

/* What every rank can, in [all]. */
static gs_status_t agree_on_node (struct gsi_coll_host *c, struct node_setup *m,
                                  int64_t deadline_ns, int32_t *all)
{
    gs_status_t st =
        c->net->ops->allgather (c->net, &m->can[c->size], m->can, sizeof (*m->can), deadline_ns);

    *all = MAPS | READS;
    for (int r = 0; r < c->size && !st; r++)
        *all &= m->can[r];
    return st;
}

static gs_status_t set_up_node (struct gsi_coll_host *c, struct gsi_node *node,
                                struct node_setup *m, int64_t deadline_ns, int32_t *all)
{
    int32_t *mine = &m->can[c->size];
    gs_status_t st;

    m->made[c->size] = make_node_memory (c, node);
    if (!(st = tell_node (c, m, deadline_ns))) {
        *mine = join (c, node, m->made) ? MAPS : 0;
        if (*mine && can_read (node, m->made))
            *mine |= READS;
        st = agree_on_node (c, m, deadline_ns, all);
    }
    gsi_memfd_hide (&node->shm);
    return st;
}

gs_status_t gsi_node_reserve (struct gsi_node *node, int size)
{
    size_t places = (size_t) size + 1;

    node->setup =
        calloc (1, sizeof (*node->setup) + places * (sizeof (struct made) + sizeof (int32_t)));
    node->process = calloc ((size_t) node->size, sizeof (*node->process));
    if (!node->setup || !node->process)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    node->setup->can = (int32_t *) (void *) &node->setup->made[places];
    return GS_OK;
}

void gsi_node_clear (struct gsi_node *node)
{
    free (node->rank);
    free (node->process);
    free (node->setup);
}

gs_status_t gsi_node_open (struct gsi_coll_host *c, struct gsi_node *node, size_t area_bytes,
                           size_t result_bytes, int64_t deadline_ns, bool *there)
{
    struct node_setup *m = node->setup;
    bool mine;
    int32_t all;
    gs_status_t st;

    *there = false;
    node->setup = NULL;
    node->area_bytes = gsi_memfd_round (area_bytes);
    node->result_bytes = gsi_memfd_round (result_bytes);
    node->turn = 1;
    if ((st = set_up_node (c, node, m, deadline_ns, &all))) {
        c->net->ops->keep (m);
        c->unfinished = true;
        return st;
    }
    mine = m->can[c->rank] & MAPS;
    free (m);
    *there = all & MAPS;
    if (!(all & READS)) {
        free (node->process);
        node->process = NULL;
    }
    if (!*there) {
        gsi_log (GS_LOG_INFO, "hosts",
                 "the ranks of a node share no memory%s: messages carry all",
                 mine ? " on another rank's node" : "");
        gsi_node_close (node);
        gsi_shm_heap_close (&c->shm_heap);
    }
    return GS_OK;
}

void gsi_node_close (struct gsi_node *node)
{
    gsi_memfd_close (&node->shm);
}

/* ---- Using it ---- */

enum step { PUT, DONE };

static char *slot_of (const struct gsi_node *node, int index, uint64_t turn)
{
    size_t slot =
        (size_t) index * (size_t) node->slots + (size_t) (turn % (uint64_t) node->slots);

    return node->shm.base + head_bytes (node) + slot * (node->area_bytes + node->result_bytes);
}

void *gsi_node_area (const struct gsi_node *node, int index, uint64_t turn)
{
    return slot_of (node, index, turn);
}

void *gsi_node_result (const struct gsi_node *node, int index, uint64_t turn)
{
    return slot_of (node, index, turn) + node->area_bytes;
}

static struct put *put_of (const struct gsi_node *node, int index, uint64_t turn)
{
    return &line_of (node, index)->put[turn % GSI_NODE_SLOTS];
}

static atomic_uint_fast64_t *word_of (const struct gsi_node *node, int index, enum step step,
                                      uint64_t turn)
{
    return step == PUT ? &put_of (node, index, turn)->turn : &line_of (node, index)->done;
}

void gsi_node_put (const struct gsi_node *node, uint64_t turn, uint64_t fingerprint,
                   uint64_t place)
{
    struct put *put = put_of (node, node->index, turn);

    put->fingerprint = fingerprint;
    put->place = place;
    atomic_store_explicit (&put->turn, turn, memory_order_release);
}

uint64_t gsi_node_place (const struct gsi_node *node, int index, uint64_t turn)
{
    return put_of (node, index, turn)->place;
}

void gsi_node_done (const struct gsi_node *node, uint64_t turn)
{
    atomic_store_explicit (&line_of (node, node->index)->done, turn, memory_order_release);
}

void gsi_node_revoke (const struct gsi_node *node, gs_status_t why, int culprit)
{
    if (!node->shm.base)
        return;
    atomic_store_explicit (&line_of (node, node->index)->culprit, culprit, memory_order_relaxed);
    atomic_thread_fence (memory_order_release);
    atomic_store_explicit (&line_of (node, node->index)->revoked, why, memory_order_relaxed);
    /* What the application does with its arrays comes behind it for all ranks. */
    atomic_thread_fence (memory_order_seq_cst);
}

gs_status_t gsi_node_revoked (const struct gsi_node *node, int index)
{
    atomic_thread_fence (memory_order_acquire); /* what was read was read before */
    return (gs_status_t) atomic_load_explicit (&line_of (node, index)->revoked,
                                               memory_order_acquire);
}

gs_status_t gsi_node_look (struct gsi_coll_host *c, int index)
{
    gs_status_t why = gsi_node_revoked (&c->node, index);
    int rank = c->node.rank[index], culprit;
    char cause[40] = "";

    if (!why)
        return GS_OK;
    c->unfinished = true;
    culprit = atomic_load_explicit (&line_of (&c->node, index)->culprit, memory_order_relaxed);
    if (culprit >= 0)
        snprintf (cause, sizeof (cause), " because of rank %d", culprit);
    c->base.culprit = culprit < 0 ? rank : culprit;
    return gsi_fail (why, "rank %d gave up%s (%s) before rank %d had read its array", rank, cause,
                     gs_status_string (why), c->rank);
}

gs_status_t gsi_node_pause (struct gsi_coll_host *c, unsigned polls, unsigned *spins,
                            const struct gsi_call *call)
{
    gs_status_t st;

    if (c->hier.rail_size > 1 && polls % PROGRESS == 0)
        gsi_notice_hear (c); /* and so lets messages go on */
    if (gsi_net_should_look (polls, *spins, LOOK_EVERY) && (st = gsi_net_interrupted (c, call))) {
        c->unfinished = true;
        return st;
    }
    if (c->spins || polls % RELAXED == 0)
        gsi_net_pause (call, spins);
    else
        gsi_relax ();
    return GS_OK;
}

/* Waits until [step] of the first [ranks] has come to [turn]. */
static gs_status_t await_step (struct gsi_coll_host *c, enum step step, uint64_t turn, int ranks,
                               const struct gsi_call *call)
{
    const struct gsi_node *node = &c->node;
    unsigned spins = c->spins;
    gs_status_t st;
    int i = 0;

    for (unsigned polls = 1;; polls++) {
        while (i < ranks &&
               atomic_load_explicit (word_of (node, i, step, turn), memory_order_acquire) >= turn)
            i++;
        if (i == ranks)
            return GS_OK;
        if ((st = gsi_node_pause (c, polls, &spins, call)))
            return st;
    }
}

gs_status_t gsi_node_await_put (struct gsi_coll_host *c, uint64_t turn, uint64_t fingerprint,
                                const struct gsi_call *call)
{
    const struct gsi_node *node = &c->node;
    gs_status_t st = await_step (c, PUT, turn, node->size, call);

    for (int i = 0; i < node->size && !st; i++)
        if (put_of (node, i, turn)->fingerprint != fingerprint)
            st = gsi_net_differ (c, node->rank[i]);
    return st;
}

gs_status_t gsi_node_await_done (struct gsi_coll_host *c, uint64_t turn, int ranks,
                                 const struct gsi_call *call)
{
    return await_step (c, DONE, turn, ranks, call);
}

void gsi_node_leave (struct gsi_node *node)
{
    node->leaving = node->turn++;
    gsi_node_put (node, node->leaving, 0, 0);
}

gs_status_t gsi_node_settle (struct gsi_coll_host *c, const struct gsi_call *call)
{
    uint64_t turn = c->node.leaving;

    c->node.leaving = 0;
    return turn ? await_step (c, PUT, turn, c->node.size, call) : GS_OK;
}
