/* SPDX-License-Identifier: BSD-3-Clause */
/* create - the life of a pool: ranks compare, find evaluators, and share the memory of a node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sized.h"
#include "feature/consensus.h"
#include "feature/same.h"
#include "pool/pool.h"

static const char caller[] = "gs_pool_create";

/* What each rank tells all others. */
struct told {
    struct gsi_memfd_handle memory; /* of the lowest rank of a node */
    struct gsi_gpus gpus;           /* that it may evaluate on */
    int32_t node, requested, batches, gradients;
};
#define TOLD_WORDS (sizeof (struct told) / sizeof (uint64_t))

_Static_assert(sizeof (struct told) % sizeof (uint64_t) == 0, "it travels as words");

/* What all ranks tell, and the ranks of a node in turn. */
struct pool_setup {
    struct told *told;               /* [size + 1], this rank's at the end */
    struct gsi_candidate *candidate; /* [size] */
    int *rank;                       /* [size] of each candidate */
};

/* ---- Options ---- */

static gs_status_t check_opts (const gs_pool_opts_t *o)
{
    size_t bytes;

    if (!o->inputs || !o->outputs || !o->max_rows)
        return gsi_fail (GS_ERR_ARG,
                         "%s: inputs is %zu, outputs %zu, max_rows %zu: each must be 1 or more",
                         caller, o->inputs, o->outputs, o->max_rows);
    if ((int) o->evaluator < GS_EVALUATOR_AUTO || (int) o->evaluator > GS_EVALUATOR_NO)
        return gsi_fail (GS_ERR_ARG, "%s: unknown evaluator %d; see gs_evaluator_t", caller,
                         (int) o->evaluator);
    if ((int) o->balance < GS_BALANCE_WITHIN_NODES || (int) o->balance > GS_BALANCE_ACROSS_NODES)
        return gsi_fail (GS_ERR_ARG, "%s: unknown balance %d; see gs_balance_t", caller,
                         (int) o->balance);
    if (o->evaluator == GS_EVALUATOR_YES && !o->on_batch)
        return gsi_fail (GS_ERR_ARG, "%s: on_batch is NULL, but evaluator is GS_EVALUATOR_YES",
                         caller);
    return gsi_dtype_bytes (caller, 1, o->dtype, &bytes);
}

static gs_status_t take_pool_opts (gs_pool_t *p, const gs_pool_opts_t *opts)
{
    gs_status_t st;

    p->opts = (gs_pool_opts_t) GS_POOL_OPTS_INIT;
    if (!opts)
        return gsi_fail (GS_ERR_ARG,
                         "%s: opts is NULL: inputs, outputs, dtype, max_rows and "
                         "on_batch have no defaults",
                         caller);
    if ((st = gsi_sized_take (&p->opts, sizeof (p->opts), offsetof (gs_pool_opts_t, reserved),
                              opts, "gs_pool_create: opts", "GS_POOL_OPTS_INIT")) ||
        (st = check_opts (&p->opts)))
        return st;
    p->element = gs_dtype_size (p->opts.dtype);
    snprintf (p->client.name, sizeof (p->client.name), "pool '%.80s'",
              p->opts.name ? p->opts.name : "rows");
    p->opts.name = NULL; /* the caller's */
    return GS_OK;
}

static void write_opts (struct gsi_text *t, const void *pool)
{
    const gs_pool_t *p = pool;
    const gs_pool_opts_t *o = &p->opts;

    gsi_text_add (
        t, "%s, inputs %zu, outputs %zu, dtype %s, max_rows %zu, max_batch %zu, balance %s\n",
        p->client.name, o->inputs, o->outputs, gsi_dtype_name (o->dtype), o->max_rows,
        o->max_batch, o->balance == GS_BALANCE_WITHIN_NODES ? "within nodes" : "across nodes");
}

/* ---- What this rank brings ---- */

/* The GPUs that this rank may evaluate on: that of a communicator on GPUs, of which a rank may
 * have none, or all that it sees. */
static void find_gpus (const gs_pool_t *p, struct gsi_gpus *gpus)
{
    int ordinal = gs_comm_device (p->comm);

    memset (gpus, 0, sizeof (*gpus));
    if (p->opts.evaluator == GS_EVALUATOR_NO || !p->opts.on_batch ||
        (ordinal < 0 && gsi_feature_mixed (p->comm)))
        return;
    if (gsi_device_gpus (gpus)) {
        memset (gpus, 0, sizeof (*gpus));
        gsi_log (GS_LOG_INFO, "pool", "no GPU for %s: %s", p->client.name, gsi_last_text ());
    }
    if (gpus->count > GSI_MAX_GPUS)
        gpus->count = GSI_MAX_GPUS; /* what others can be told of */
    if (ordinal >= 0) {
        gpus->id[0] = ordinal < gpus->count ? gpus->id[ordinal] : 0;
        gpus->count = ordinal < gpus->count;
    }
}

static gs_status_t make_lists (gs_pool_t *p, struct pool_setup *m)
{
    size_t size = (size_t) gs_comm_size (p->comm), ranks = (size_t) p->ranks;
    bool ok = true;

    m->told = calloc (size + 1, sizeof (*m->told));
    m->candidate = calloc (size, sizeof (*m->candidate));
    m->rank = calloc (size, sizeof (*m->rank));
    p->rank = calloc (ranks, sizeof (*p->rank));
    p->evaluator = calloc (ranks, sizeof (*p->evaluator));
    p->heard = calloc (ranks, sizeof (*p->heard));
    for (int s = 0; s < GSI_POOL_STEPS; s++)
        ok = (p->step[s].place = calloc (ranks + 1, sizeof (*p->step[s].place))) && ok;
    if (!ok || !m->told || !m->candidate || !m->rank || !p->rank || !p->evaluator || !p->heard)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    return GS_OK;
}

/* What this rank is to tell; the lowest of a node makes its memory. */
static gs_status_t prepare (gs_pool_t *p, struct pool_setup *m)
{
    size_t bytes = 0;
    struct told *own;
    gs_status_t st = make_lists (p, m);

    if (st || (st = gsi_pool_measure (p, caller, &bytes)) || (st = gsi_pool_open_event (p)) ||
        (st = gsi_spread_open (p, caller)))
        return st;
    own = &m->told[gs_comm_size (p->comm)];
    find_gpus (p, &own->gpus);
    own->node = gs_comm_node (p->comm);
    own->requested = (int32_t) p->opts.evaluator;
    own->batches = p->opts.on_batch != NULL;
    own->gradients = p->opts.on_gradient != NULL;
    if (p->index == 0)
        own->memory = gsi_memfd_make (&p->shm, bytes);
    return GS_OK;
}

/* ---- Who evaluates ---- */

/* The ranks of a node, as candidates; returns how many they are. */
static int list_node (const gs_pool_t *p, const struct pool_setup *m, int node)
{
    int number = 0;

    for (int r = 0; r < gs_comm_size (p->comm); r++) {
        const struct told *t = &m->told[r];
        if (t->node != node)
            continue;
        m->rank[number] = r;
        m->candidate[number++] = (struct gsi_candidate){
            .requested = (gs_evaluator_t) t->requested, .able = t->batches, .gpus = t->gpus};
    }
    return number;
}

/* Whether all evaluators of all nodes have on_gradient: *some is the first that has one. */
static gs_status_t check_gradients (const gs_pool_t *p, const struct pool_setup *m, int number,
                                    int *some, int *none)
{
    for (int i = 0; i < number; i++)
        if (m->candidate[i].evaluates) {
            int *first = m->told[m->rank[i]].gradients ? some : none;
            *first = *first < 0 ? m->rank[i] : *first;
        }
    if (*some < 0 || *none < 0)
        return GS_OK;
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: of the evaluators of %s rank %d (host %s) has on_gradient, rank %d "
                     "(host %s) has none: give it to all or to none",
                     caller, p->client.name, *some, gs_comm_host_of (p->comm, *some), *none,
                     gs_comm_host_of (p->comm, *none));
}

/* Takes over what was chosen for this rank's own node. */
static void settle_node (gs_pool_t *p, const struct pool_setup *m)
{
    p->own = -1;
    p->device = GS_DEVICE_HOST;
    for (int i = 0; i < p->ranks; i++) {
        p->rank[i] = m->rank[i];
        if (!m->candidate[i].evaluates)
            continue;
        if (i == p->index) {
            p->own = p->evaluators;
            if (gs_comm_device (p->comm) >= 0)
                p->device = gs_comm_device (p->comm);
            else if (m->candidate[i].gpu >= 0)
                p->device = m->candidate[i].gpu;
        }
        p->evaluator[p->evaluators++] = i;
    }
}

/* All ranks choose for all nodes, and so come to the same verdict. */
static gs_status_t choose (gs_pool_t *p, const struct pool_setup *m)
{
    int some = -1, none = -1;
    gs_status_t st = GS_OK;

    for (int node = 0; node < gs_comm_nodes (p->comm) && !st; node++) {
        int number = list_node (p, m, node);
        int evaluators = gsi_share_choose (m->candidate, number);
        if (!evaluators)
            return gsi_fail (
                GS_ERR_ARG,
                "%s: no rank of host %s evaluates for %s: give one of them on_batch, "
                "and not GS_EVALUATOR_NO",
                caller, gs_comm_host_of (p->comm, m->rank[0]), p->client.name);
        gsi_spread_set_node (p, node, m->rank, number, evaluators);
        st = check_gradients (p, m, number, &some, &none);
        if (!st && node == gs_comm_node (p->comm))
            settle_node (p, m);
    }
    p->graded = some >= 0;
    return st;
}

/* ---- Life ---- */

/* A call of all ranks, whose number is the same on all. */
static gs_status_t number_pool (gs_pool_t *p)
{
    struct gsi_node_call c;
    gs_status_t st =
        gsi_node_call_begin (&c, p->comm, caller, GSI_OP_POOL, (int) GSI_POOL_CREATE, NULL);

    if (st)
        return st;
    p->created = c.call.seq;
    return gsi_node_call_end (&c, GS_OK);
}

static gs_status_t map_memory (gs_pool_t *p, const struct pool_setup *m)
{
    int first = p->rank[0];

    if (!gsi_fault ("pool.memory") &&
        (p->index == 0 ? m->told[first].memory.ok
                       : gsi_memfd_join (&p->shm, &m->told[first].memory)))
        return GS_OK;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "%s: rank %d (host %s) cannot map the memory of rank %d of its node: the "
                     "ranks must be processes of one user that see each other in /proc, and the "
                     "node must have the memory",
                     caller, gs_comm_rank (p->comm), gs_comm_host_of (p->comm, first), first);
}

static gs_status_t agree (const gs_pool_t *p, gs_status_t st)
{
    return gsi_consensus (p->comm, caller, st, NULL, NULL);
}

static gs_status_t make (gs_pool_t *p, const gs_pool_opts_t *opts, struct pool_setup *m)
{
    static const char cure[] = "All ranks give the same, but for evaluator, functions, context "
                               "and stream";
    struct gsi_same same = {p->comm, caller, cure, NULL};
    gs_status_t st;

    if ((st = agree (p, take_pool_opts (p, opts))) || (st = gsi_same (&same, write_opts, p)) ||
        (st = agree (p, prepare (p, m))))
        return st;
    if ((st = gs_allgather (p->comm, &m->told[gs_comm_size (p->comm)], m->told, TOLD_WORDS,
                            GS_U64, NULL)) ||
        (st = choose (p, m)))
        return st;
    return (st = agree (p, map_memory (p, m))) ? st : number_pool (p);
}

static void discard (gs_pool_t *p)
{
    gsi_spread_close (p);
    gsi_pool_close_event (p);
    gsi_pool_unpin (p);
    gsi_memfd_close (&p->shm);
    for (int s = 0; s < GSI_POOL_STEPS; s++)
        free (p->step[s].place);
    free (p->rank);
    free (p->evaluator);
    free (p->heard);
    gsi_feature_close (p->comm, &p->client);
    p->magic = 0;
    free (p);
}

static void fill_info (gs_pool_t *p)
{
    p->info.size = sizeof (p->info);
    p->info.evaluator = p->own >= 0;
    p->info.evaluators = p->evaluators;
    p->info.device = p->device;
    gsi_log (GS_LOG_INFO, "pool", "%s: %d of %d ranks of this node evaluate%s", p->client.name,
             p->evaluators, p->ranks, p->own >= 0 ? ", this one too" : "");
}

gs_status_t gs_pool_create (gs_comm_t *comm, const gs_pool_opts_t *opts, gs_pool_t **pool)
{
    struct pool_setup m = {0};
    gs_pool_t *p;
    gs_status_t st;

    if (!pool)
        return gsi_fail (GS_ERR_ARG, "%s: pool is NULL", caller);
    *pool = NULL;
    if ((st = gsi_feature_check (comm, caller, NULL, 0, GS_U8, NULL)))
        return gsi_result (st);
    if (!(p = calloc (1, sizeof (*p))))
        return gsi_result (gsi_consensus (
            comm, caller, gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller), NULL, NULL));
    *p = (gs_pool_t){.magic = GSI_POOL_MAGIC, .comm = comm, .shm = GSI_MEMFD_NONE};
    p->ranks = gs_comm_local_size (comm);
    p->index = gs_comm_local_rank (comm);
    gsi_feature_open (comm, &p->client, caller); /* which was checked */
    st = make (p, opts, &m);
    gsi_memfd_hide (&p->shm);
    free (m.told);
    free (m.candidate);
    free (m.rank);
    if (st) {
        discard (p);
        return gsi_result (st);
    }
    fill_info (p);
    gsi_pool_pin (p);
    *pool = p;
    return gsi_result (GS_OK);
}

gs_status_t gs_pool_destroy (gs_pool_t *pool)
{
    gs_status_t st = pool ? gsi_handle_check ("gs_pool_destroy", "pool", "pool", pool,
                                              pool->magic == GSI_POOL_MAGIC)
                          : GS_OK;

    if (pool && !st && pool->calling)
        st = gsi_fail (GS_ERR_STATE,
                       "gs_pool_destroy: %s is inside a call of on_batch or on_gradient, which "
                       "make no calls on it",
                       pool->client.name);
    if (pool && !st)
        discard (pool);
    return gsi_result (st);
}
