/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_host - the transport between hosts: making, ending, and choosing how an operation goes. */
#include "host/coll_host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/record.h"
#include "base/status.h"
#include "host/tuning.h"
#include "host/alltoallv.h"
#include "host/coll_host_ops.h"

/* What every rank needs to tell the others whether it has all else; zeros. */
static struct gsi_coll_host *make_coll (const struct gsi_net_ops *net, int size)
{
    size_t ranks = (size_t) size, own = sizeof (struct gsi_coll_host);
    size_t of_net = (net->bytes + ranks * net->rank_bytes + 63) / 64 * 64;
    struct gsi_coll_host *c;

    own = (own + 63) / 64 * 64;
    c = calloc (1, own + of_net + (ranks + 1) * sizeof (struct gsi_start_word));
    if (c) {
        c->net = (struct gsi_net *) (void *) ((char *) c + own);
        c->net->ops = net;
        c->verdict = (struct gsi_start_word *) (void *) ((char *) c + own + of_net);
    }
    return c;
}

gs_status_t gsi_coll_host_prepare (const struct gsi_net_ops *net, const struct gsi_boot *boot,
                                   void *memory, void **room)
{
    struct gsi_coll_host_card *card = memory;
    struct gsi_coll_host *c = make_coll (net, boot->size);
    gs_status_t st;

    if (!c)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    snprintf (card->network, sizeof (card->network), "%s", net->name);
    card->algorithm = (int32_t) gsi_env_choice (GSI_ENV_HOST_ALGO);
    card->deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC);
    c->net->rank = boot->rank;
    c->net->size = boot->size;
    st = net->prepare ? net->prepare (c->net, boot, card->net) : GS_OK;
    if (st)
        free (c);
    else
        *room = c;
    return st;
}

static struct gsi_coll_host_card settings_of (const struct gsi_coll_setup *setup, int rank)
{
    struct gsi_coll_host_card card;

    memcpy (&card, (const char *) setup->cards + (size_t) rank * GSI_COLL_CARD_BYTES,
            sizeof (card));
    return card;
}

gs_status_t gsi_net_too_long (const char *what, const char *words)
{
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: %s: a rank has sent more than this call takes: do all do as many "
                     "steps? GS_CHECK=collective tells who makes which call",
                     what, words);
}

void gsi_net_card (const struct gsi_coll_setup *setup, int rank, void *card, size_t bytes)
{
    struct gsi_coll_host_card whole = settings_of (setup, rank);

    memcpy (card, whole.net, bytes);
}

/* All ranks compare the same cards and so come to the same verdict. */
static gs_status_t compare_cards (const struct gsi_coll_setup *setup)
{
    struct gsi_coll_host_card zero = settings_of (setup, 0);

    for (int r = 1; r < setup->topo->size; r++) {
        struct gsi_coll_host_card card = settings_of (setup, r);
        if (strncmp (card.network, zero.network, sizeof (card.network)))
            return gsi_fail (GS_ERR_MISMATCH,
                             "between hosts rank 0 uses %.8s and rank %d %.8s: initialise MPI on "
                             "all ranks or on none, and install gradsync alike on all nodes",
                             zero.network, r, card.network);
        if (card.algorithm != zero.algorithm || card.deterministic != zero.deterministic)
            return gsi_fail (GS_ERR_MISMATCH,
                             "rank 0 and rank %d have different GS_HOST_ALGO or "
                             "GS_DETERMINISTIC: set them alike on all ranks",
                             r);
    }
    return GS_OK;
}

/* What gs-info --hosts tells, of the ranks there are. */
static void log_choice (const struct gsi_coll_host *c)
{
    char text[256];

    for (int line = 0;
         c->rank == 0 && gsi_tuning_line (&c->hier, c->size, line, text, sizeof (text)); line++)
        gsi_log (GS_LOG_INFO, "hosts", "%s", text);
}

/* Cuts [c]->memory into the staging buffers. Pieces begin at multiples of 64 bytes. */
static gs_status_t make_staging (struct gsi_coll_host *c)
{
    size_t size = (size_t) c->size, block, rail, total;
    char *at;

    c->piece_bytes = gsi_tuning_piece (c->size);
    c->hier.rabenseifner = gsi_tuning_rabenseifner ();
    if (!c->hier.shares)
        c->hier.part_bytes = gsi_tuning_part (&c->hier, c->base.topo);
    block = c->piece_bytes * size;
    rail = c->hier.part_bytes * (size_t) c->hier.rail_size;
    block = rail > block ? rail : block;
    total = GSI_SMALL_BYTES + 2 * 2 * GSI_STAGING_SLOTS * block;
    if (gsi_fault ("coll_host.memory") || posix_memalign ((void **) &c->memory, 4096, total))
        return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for staging (%zu bytes)", total);
    at = c->small = c->memory;
    at += GSI_SMALL_BYTES;
    for (int s = 0; s < 2 * GSI_STAGING_SLOTS; s++, at += 2 * block) {
        c->slot[s].send = at;
        c->slot[s].recv = at + block;
        c->slot[s].batch = gsi_net_batch (c->net, 2 * c->size);
        c->slot[s].peer = calloc (2 * size, sizeof (int));
        c->slot[s].sends = calloc (2 * size, sizeof (bool));
        if (!c->slot[s].batch || !c->slot[s].peer || !c->slot[s].sends)
            return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    }
    c->source = calloc (size, sizeof (*c->source));
    c->array = calloc (size, sizeof (*c->array));
    c->scale = calloc (size, sizeof (*c->scale));
    c->length = calloc (4 * size, sizeof (*c->length));
    c->heard = calloc (size, sizeof (*c->heard));
    if (!c->source || !c->array || !c->scale || !c->length || !c->heard)
        return gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    return GS_OK;
}

/* Chooses how large reductions go, and takes what memory that needs; the same on all ranks. */
static gs_status_t choose_sizes (struct gsi_coll_host *c, const struct gsi_coll_setup *setup)
{
    const struct gsi_topo *topo = setup->topo;
    gs_status_t st;

    if ((st = gsi_node_build (&c->node, topo)))
        return st;
    if (gsi_tuning_is_flat (topo)) {
        st = gsi_hier_flat (&c->hier, topo);
    } else if (!(st = gsi_node_reserve (&c->node, c->size)) &&
               !(st = gsi_hier_nodes (&c->hier, topo, gsi_tuning_owners (topo)))) {
        c->hier.part_bytes = gsi_tuning_part (&c->hier, topo);
        c->node.slots = gsi_tuning_slots (&c->hier);
    }
    if (!st && !(c->own = malloc (sizeof (*c->own))))
        st = gsi_fail (GS_ERR_NOMEM, "between hosts: out of memory");
    return st ? st : make_staging (c);
}

/* Frees staging, but what the network may still use. */
static void drop_staging (struct gsi_coll_host *c)
{
    for (int s = 0; s < 2 * GSI_STAGING_SLOTS; s++) {
        if (c->unfinished)
            c->net->ops->keep (c->slot[s].batch);
        else
            free (c->slot[s].batch);
        free (c->slot[s].peer);
        free (c->slot[s].sends);
    }
    if (c->unfinished)
        c->net->ops->keep (c->memory);
    else
        free (c->memory);
    free (c->source);
    free (c->array);
    free (c->scale);
    free (c->length);
    free (c->heard);
    memset (c->slot, 0, sizeof (c->slot));
    c->memory = NULL;
    c->source = NULL;
    c->array = NULL;
    c->scale = NULL;
    c->length = NULL;
    c->heard = NULL;
}

/* Frees what is ours alone; what the network may still use is kept. */
void gsi_coll_host_discard (struct gsi_coll *coll)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    const struct gsi_net_ops *net = c->net->ops;

    drop_staging (c);
    if (!c->unfinished)
        gsi_node_close (&c->node);
    gsi_messages_close (c);
    gsi_shm_heap_close (&c->shm_heap);
    gsi_node_clear (&c->node);
    free (c->hier.peer);
    free (c->own);
    if (net->discard (c->net, c->unfinished))
        net->keep (c);
    else
        free (c);
}

/*
 * Makes the ranks agree on the worst status [st] of any of them, so that none waits in its first
 * transfer for one that has no memory for it.
 */
static gs_status_t agree_on_open (struct gsi_coll_host *c, gs_status_t st,
                                  const struct gsi_coll_setup *setup)
{
    const struct gsi_boot *boot = setup->boot;
    const char *job = boot->is_group ? "" : boot->job; /* a group's is its own on each rank */
    const struct gsi_start_word own = {(int32_t) st, (uint32_t) gsi_hash (job, strlen (job))};
    const struct gsi_start_word *all = c->verdict;
    gs_status_t carried;
    int worst = 0;

    c->verdict[c->size] = own;
    if ((carried = c->net->ops->allgather (c->net, &c->verdict[c->size], c->verdict,
                                           sizeof (*all), setup->deadline_ns))) {
        c->unfinished = true;
        return st ? st : carried;
    }
    for (int r = 0; r < c->size; r++) {
        if (all[r].job != own.job)
            return gsi_fail (GS_ERR_MISMATCH,
                             "transport %s: its rank %d is one of another communicator, which "
                             "another thread creates: create one after the other",
                             c->base.ops->name, r);
        worst = all[r].status > all[worst].status ? r : worst;
    }
    if (!st && all[worst].status)
        st = gsi_fail ((gs_status_t) all[worst].status,
                       "transport %s: rank %d could not start it; its own text says why",
                       c->base.ops->name, worst);
    return st;
}

/*
 * The ranks of a node share memory, or, where they cannot, all ranks start over without. Nothing
 * is allocated in between that could fail on one rank alone.
 */
static gs_status_t share_memory (struct gsi_coll_host *c, const struct gsi_coll_setup *setup)
{
    size_t result = c->hier.part_bytes * (size_t) c->hier.rail_size;
    bool there;
    gs_status_t st = gsi_node_open (c, &c->node, result * (size_t) c->hier.owners, result,
                                    setup->deadline_ns, &there);

    if (st || there)
        return st;
    drop_staging (c);
    free (c->hier.peer);
    if (!(st = gsi_hier_flat (&c->hier, setup->topo)))
        st = make_staging (c);
    return agree_on_open (c, st, setup);
}

/* The network of the ranks. One that did not get done in time has what it was to be made in. */
static gs_status_t open_net (struct gsi_coll_host *c, const struct gsi_coll_setup *setup)
{
    const struct gsi_coll_parent *parent = setup->parent;
    const struct gsi_net *of = NULL;
    gs_status_t st;

    if (parent && parent->coll->ops == c->base.ops)
        of = ((struct gsi_coll_host *) parent->coll)->net;
    st = c->net->ops->open (c->net, setup, of);
    c->unfinished = st == GS_ERR_TIMEOUT;
    return st;
}

gs_status_t gsi_coll_host_open (const struct gsi_coll_ops *ops,
                                const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct gsi_coll_host *c = setup->room;
    gs_status_t st;

    if ((st = compare_cards (setup))) {
        free (c);
        return st;
    }
    gsi_coll_set_up (&c->base, ops, setup);
    c->device = setup->device;
    c->node.shm = GSI_MEMFD_NONE;
    c->rank = setup->topo->rank;
    c->size = setup->topo->size;
    c->spins = setup->topo->local_size > sysconf (_SC_NPROCESSORS_ONLN) ? GSI_YIELD_NOW : 0;
    if (!(st = open_net (c, setup)) &&
        !(st = agree_on_open (c, choose_sizes (c, setup), setup)) && c->hier.shares)
        st = share_memory (c, setup);
    if (st) {
        st = gsi_start_fail (c, st, setup->parent);
        gsi_coll_host_discard (&c->base);
        return st;
    }
    /* MPI's standard allows 2046; it is millions. */
    c->fingerprints = c->net->tags / GSI_TAGS > 1 ? c->net->tags / GSI_TAGS - 1 : 1;
    log_choice (c);
    c->base.any_thread = c->net->any_thread;
    *out = &c->base;
    return GS_OK;
}

/* Small arrays are copied in any case. */
bool gsi_coll_host_alloc (struct gsi_coll *coll, size_t bytes, void **out)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;

    return gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_SUM, bytes) !=
               GSI_ALGO_SMALL_ALLGATHER &&
           gsi_shm_heap_alloc (&c->shm_heap, bytes, out);
}

bool gsi_coll_host_free (struct gsi_coll *coll, void *memory)
{
    return gsi_shm_heap_free (&((struct gsi_coll_host *) coll)->shm_heap, memory);
}

/* ---- Operations ---- */

static gs_status_t enter (struct gsi_coll_host *c, const struct gsi_call *call)
{
    c->fingerprint = call->fingerprint;
    c->base.owner = pthread_self ();
    return c->net->ops->enter (c->net);
}

/* After a failure the arrays are the application's again, and no other rank reads them. */
static gs_status_t leave (const struct gsi_coll_host *c, gs_status_t st)
{
    if (st)
        gsi_node_revoke (&c->node, st, c->base.culprit);
    return st;
}

gs_status_t gsi_coll_host_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                     const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    size_t bytes = count * gs_dtype_size (how->dtype);
    enum gsi_algo algo = gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_SUM, bytes);
    gs_status_t st = enter (c, call);

    if (st)
        return st;
    if (algo == GSI_ALGO_RABENSEIFNER)
        st = gsi_rabenseifner_allreduce (c, buf, count, how, call);
    else if (algo == GSI_ALGO_HIER_SUM)
        st = gsi_hier_allreduce (c, &c->hier, buf, count, how, call);
    else
        st = gsi_small_reduce (c, buf, buf, count, how, call);
    return leave (c, st);
}

gs_status_t gsi_coll_host_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                     const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    enum gsi_algo algo = gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_BROADCAST, bytes);
    gs_status_t st = enter (c, call);

    return leave (c, st ? st : gsi_pipeline_broadcast (c, algo, buf, bytes, root, call));
}

gs_status_t gsi_coll_host_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                     size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);
    enum gsi_algo algo;

    if (st)
        return st;
    algo = gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_GATHER, bytes);
    if (algo != GSI_ALGO_SMALL_ALLGATHER)
        return leave (c, gsi_pipeline_allgather (c, algo, send, recv, bytes, call));
    if ((st = gsi_small_allgather (c, send, bytes, bytes, call)))
        return leave (c, st);
    for (int r = 0; r < c->size; r++)
        memcpy ((char *) recv + (size_t) r * bytes, gsi_small_place (c, r, bytes), bytes);
    return GS_OK;
}

gs_status_t gsi_coll_host_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                     const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);

    return leave (c, st ? st : gsi_host_alltoallv (c, x, call));
}

gs_status_t gsi_coll_host_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                          size_t count, const struct gsi_reduction *how,
                                          const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);

    return leave (c, st ? st : gsi_alltoallv_reduce (c, send, recv, count, how, call));
}

gs_status_t gsi_coll_host_reduce_scatterv (struct gsi_coll *coll, const void *send,
                                           const size_t *at, const size_t *count, void *recv,
                                           const struct gsi_reduction *how,
                                           const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);

    return leave (c, st ? st : gsi_alltoallv_reduce_ragged (c, send, at, count, recv, how, call));
}

gs_status_t gsi_coll_host_reduce (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t count, const struct gsi_reduction *how, int root,
                                  const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    size_t bytes = count * gs_dtype_size (how->dtype);
    gs_status_t st = enter (c, call);

    if (st)
        return st;
    if (gsi_hier_together (&c->hier) &&
        gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_SUM, bytes) == GSI_ALGO_HIER_SUM)
        st = gsi_hier_reduce (c, send, recv, count, how, root, call);
    else
        st = gsi_alltoallv_reduce_to (c, send, recv, count, how, root, call);
    return leave (c, st);
}

gs_status_t gsi_coll_host_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                                    const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);

    return st ? st : gsi_messages (c, list, number, call);
}

gs_status_t gsi_coll_host_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = enter (c, call);

    return leave (c, st ? st : gsi_small_allgather (c, NULL, 0, 0, call));
}

void gsi_coll_host_notify_abort (struct gsi_coll *coll, const struct gsi_ending *how)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;

    if (c->base.culprit < 0) /* else the caller may have found it */
        c->base.culprit = how->culprit;
    gsi_notice_send (c, GSI_NOTICE_ABORT, false, how->missed);
}

gs_status_t gsi_coll_host_close (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    gs_status_t st = gsi_coll_host_barrier (coll, call);

    if (st)
        return st;
    c->net->ops->close (c->net);
    gsi_coll_host_discard (coll);
    return GS_OK;
}

/* ---- What networks keep ---- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* kept */

/* Reachable, so that leak checkers know it is meant to stay. */
static struct kept {
    struct kept *next;
    void *memory;
} * kept;

void gsi_keep (void *memory)
{
    struct kept *k;

    if (!memory || !(k = malloc (sizeof (*k))))
        return;
    pthread_mutex_lock (&guard);
    *k = (struct kept){.next = kept, .memory = memory};
    kept = k;
    pthread_mutex_unlock (&guard);
}
