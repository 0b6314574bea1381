/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_nccl - the transport between GPUs: making, ending, and how an operation goes. */
#include "transport/coll_nccl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/env.h"
#include "base/status.h"
#include "base/thread.h"
#include "device/element.h"

#define EXACT_ABOVE 8 /* ranks: up to there a rounded sum of bf16 is off by 3 roundings */
#define WORD_BYTES  256

/* What a rank says on its card. */
struct card {
    ncclUniqueId id; /* of roots */
    int32_t version, average, ranks_per_root, deterministic;
    struct gsi_memfd_handle node; /* where the node meets, if the rank is its first */
    struct gsi_notice_card notice;
};
_Static_assert(sizeof (struct card) <= GSI_COLL_CARD_BYTES, "it fits on a rank's card");

/* ---- Life ---- */

/* How many ranks have an id that others meet at; NCCL 2.23 takes several. */
static int roots_of (int size, int ranks_per_root)
{
    return gsi_nccl.CommInitRankScalable ? (size + ranks_per_root - 1) / ranks_per_root : 1;
}

/* The rank of root number [i]; roots are spread over the ranks evenly. */
static int rank_of_root (int size, int roots, int i)
{
    return (int) ((int64_t) size * i / roots);
}

static gs_status_t nccl_prepare (const struct gsi_boot *boot, const struct gsi_coll *parent,
                                 void *memory, void **room)
{
    struct card card = {.version = gsi_nccl.version,
                        .average = gsi_env_choice (GSI_ENV_AVG),
                        .ranks_per_root = (int32_t) gsi_env_int (GSI_ENV_NCCL_RANKS_PER_ROOT),
                        .deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC)};
    int roots = parent ? 0 : roots_of (boot->size, card.ranks_per_root);
    ncclResult_t rc;

    for (int i = 0; i < roots; i++)
        if (rank_of_root (boot->size, roots, i) == boot->rank &&
            (rc = gsi_nccl.GetUniqueId (&card.id)))
            return gsi_nccl_fail ("ncclGetUniqueId", rc);
    if (boot->size > 1 && !(*room = gsi_nccl_node_make (&card.node)))
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    gsi_nccl_notices_prepare (boot, &card.notice);
    memcpy (memory, &card, sizeof (card));
    return GS_OK;
}

static struct card card_of (const struct gsi_coll_setup *setup, int rank)
{
    struct card card;

    memcpy (&card, (const char *) setup->cards + (size_t) rank * GSI_COLL_CARD_BYTES,
            sizeof (card));
    return card;
}

/* All ranks compare the same cards and so come to the same verdict. */
static gs_status_t compare_cards (const struct gsi_coll_setup *setup)
{
    struct card zero = card_of (setup, 0);

    for (int r = 1; r < setup->topo->size; r++) {
        struct card card = card_of (setup, r);
        if (card.version != zero.version)
            return gsi_fail (GS_ERR_MISMATCH,
                             "rank 0 runs NCCL %d, rank %d NCCL %d: let all ranks load the same "
                             "libnccl.so.2",
                             zero.version, r, card.version);
        if (card.average != zero.average || card.ranks_per_root != zero.ranks_per_root ||
            card.deterministic != zero.deterministic)
            return gsi_fail (GS_ERR_MISMATCH,
                             "rank 0 and rank %d have different GS_AVG, GS_DETERMINISTIC or "
                             "GS_NCCL_RANKS_PER_ROOT: set them alike on all ranks",
                             r);
    }
    return GS_OK;
}

/* What a thread of ours makes a communicator of. */
struct start {
    struct gsi_nccl_handle *handle;
    int size, rank, roots;
    ncclUniqueId ids[];
};

void gsi_nccl_configure (ncclConfig_t *config)
{
    int64_t most = gsi_env_int (GSI_ENV_NCCL_MAX_CTAS);

    config->blocking = 1;
    if (most)
        config->maxCTAs = (int) most;
}

static ncclResult_t start_work (void *job)
{
    struct start *s = job;
    ncclComm_t *comm = &s->handle->comm; /* there long before it is made */
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclResult_t rc;

    gsi_nccl_configure (&config);
    atomic_store (&s->handle->starting, true);
    rc = s->roots > 1
             ? gsi_nccl.CommInitRankScalable (comm, s->size, s->rank, s->roots, s->ids, &config)
             : gsi_nccl.CommInitRankConfig (comm, s->size, s->ids[0], s->rank, &config);
    atomic_store (&s->handle->starting, false);
    return rc;
}

/* Starts NCCL's communicator; collective. */
static gs_status_t nccl_start (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    int roots = roots_of (c->size, card_of (setup, 0).ranks_per_root);
    struct start *s = calloc (1, sizeof (*s) + (size_t) roots * sizeof (*s->ids));
    const struct gsi_nccl_job how = {.c = c,
                                     .what = "ncclCommInitRank",
                                     .work = start_work,
                                     .deadline_ns = setup->deadline_ns};
    ncclResult_t rc;
    gs_status_t st;

    if (!s)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    *s = (struct start){.handle = c->handle, .size = c->size, .rank = c->rank, .roots = roots};
    for (int i = 0; i < roots; i++)
        s->ids[i] = card_of (setup, rank_of_root (c->size, roots, i)).id;
    st = gsi_nccl_run (&how, s, &rc);
    if (st || !rc)
        return st;
    if (rc == ncclInProgress)
        return gsi_fail (GS_ERR_TRANSPORT,
                         "NCCL makes communicators that do not block though it is asked for such "
                         "that do: unset NCCL_COMM_BLOCKING, here and in nccl.conf");
    return gsi_nccl_fail (how.what, rc);
}

static gs_status_t make_memory (struct gsi_coll_nccl *c)
{
    gs_status_t st = c->device->ops->alloc (c->device, WORD_BYTES, &c->word);

    if (st)
        return st;
    if (!(c->length = calloc (4 * (size_t) c->size, sizeof (*c->length))))
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    if (!c->ordered && (st = gsi_nccl_rails_open (c)))
        return st;
    return c->exact ? gsi_nccl_shards_open (c) : GS_OK;
}

/* Frees what is here; the device has been entered. */
static void dissolve (struct gsi_coll_nccl *c)
{
    gsi_nccl_handle_close (c);
    gsi_nccl_rails_close (c);
    gsi_nccl_shards_close (c);
    c->device->ops->free (c->device, c->word);
    free (c->length);
    free (c);
}

static void nccl_discard (struct gsi_coll *coll)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    const struct gsi_device *device = c->device;
    int previous;
    bool entered = !device->ops->streams->enter_to_ask (device, &previous);

    dissolve (c);
    if (entered)
        device->ops->streams->leave (device, previous);
}

/* Where the ranks of the node meet before NCCL ends the communicator. */
static void join_node (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    const struct gsi_topo *topo = setup->topo;
    struct gsi_memfd_handle first;
    int rank = 0;

    while (topo->node_of[rank] != topo->node)
        rank++;
    first = card_of (setup, rank).node;
    gsi_nccl_node_join (&c->handle->node, setup->room, topo->local_size, setup->watched,
                        rank == c->rank, &first);
}

static gs_status_t open_nccl (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct gsi_coll_nccl *c = calloc (1, sizeof (*c));
    gs_status_t st;

    if (!c) {
        gsi_nccl_node_unmake (setup->room);
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    }
    gsi_coll_set_up (&c->base, &gsi_coll_nccl, setup);
    c->device = setup->device;
    c->queue = setup->device->ops->streams;
    c->rank = setup->topo->rank;
    c->size = setup->topo->size;
    c->ordered = gsi_env_int (GSI_ENV_DETERMINISTIC);
    c->exact = c->ordered || gsi_env_choice (GSI_ENV_AVG) == GSI_AVG_EXACT ||
               (gsi_env_choice (GSI_ENV_AVG) == GSI_AVG_AUTO && c->size > EXACT_ABOVE);
    if ((c->handle = gsi_nccl_handle_make (c->device))) {
        join_node (c, setup);
        st = compare_cards (setup);
        if (!st && setup->watched && setup->topo->local_size > 1 && !c->handle->node.teardown)
            st = gsi_fail (GS_ERR_UNSUPPORTED,
                           "the leaders of this node share no memory, in which one that gives up "
                           "tells all");
    } else {
        gsi_nccl_node_unmake (setup->room);
        st = gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    }
    if (!st) {
        if (!setup->parent)
            st = nccl_start (c, setup);
        if (!st)
            st = make_memory (c);
        if (!st && setup->parent) /* last: to give it up would end the parent */
            st = gsi_nccl_split (c, setup);
    }
    gsi_thread_outlast_gpu ();
    if (!st)
        gsi_nccl_notices_open (c->handle, c->base.topo,
                               (const char *) setup->cards + offsetof (struct card, notice),
                               GSI_COLL_CARD_BYTES);
    if (c->handle)
        gsi_memfd_hide (&c->handle->node.shared); /* all have made NCCL's, or none is there */
    if (st)
        dissolve (c);
    else
        *out = &c->base;
    return st;
}

struct end {
    struct gsi_nccl_handle *handle;
    bool captured;
    int64_t most_ns;
};

static ncclResult_t end_work (void *job)
{
    struct end *end = job;

    return gsi_nccl_end (end->handle, end->captured, end->most_ns);
}

/* N.B. Where a graph holds operations of the communicator the finalize waits for its end. */
static gs_status_t close_nccl (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    const struct gsi_nccl_job how = {
        .c = c, .what = "ncclCommFinalize", .work = end_work, .deadline_ns = call->deadline_ns};
    struct end *job = malloc (sizeof (*job));
    ncclResult_t rc = ncclSuccess;
    gs_status_t st;

    if (!job)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    *job = (struct end){c->handle, coll->captured, (call->deadline_ns - gsi_now_ns ()) / 2};
    if ((st = gsi_nccl_run (&how, job, &rc)))
        return st;
    if (rc)
        return gsi_nccl_fail (how.what, rc);
    dissolve (c);
    return GS_OK;
}

static void notify_abort (struct gsi_coll *coll, const struct gsi_ending *how)
{
    gsi_nccl_abort ((struct gsi_coll_nccl *) coll, how);
}

static gs_status_t poll_nccl (struct gsi_coll *coll)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc = ncclSuccess, asked;

    gsi_nccl_notices_hear (c->handle);
    asked = gsi_nccl.CommGetAsyncError (gsi_nccl_enter (c), &rc);

    return gsi_nccl_leave (c, "NCCL, after its call had returned", asked ? asked : rc);
}

static enum gsi_gave_up gave_up (struct gsi_coll *coll, struct gsi_ending *how)
{
    return gsi_nccl_node_gave_up (&((struct gsi_coll_nccl *) coll)->handle->node, how);
}

static void find_gone (struct gsi_coll *coll, unsigned char *gone)
{
    gsi_nccl_notices_ask (((struct gsi_coll_nccl *) coll)->handle, gone);
}

static const atomic_uint_fast64_t *watch_node (const void *memory, struct gsi_memfd *shm)
{
    struct card card;

    memcpy (&card, memory, sizeof (card));
    return gsi_nccl_node_watch (&card.node, shm);
}

/* ---- Operations ---- */

/* NCCL's type for arithmetic; false if it has none. */
static bool type_of (gs_dtype_t dtype, ncclDataType_t *type)
{
    static const signed char types[] = {
#define GSI_REDUCED(NAME, name, value, T, exponent, fraction, largest, nccl, ...) \
    [GS_##NAME] = nccl,
#define GSI_FLOATING(NAME, name, value, T, digits, largest, nccl) [GS_##NAME] = nccl,
#define GSI_INTEGER(NAME, name, value, T, U, vtk, nccl)           [GS_##NAME] = nccl,
#include "base/dtype.def"
    };

    *type = (ncclDataType_t) types[gsi_part_of (dtype)];
    return types[gsi_part_of (dtype)] >= 0;
}

/* Whether NCCL does the reduction as gradsync.h promises it; what it cannot is done by shards. */
static bool is_native (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    ncclDataType_t type;

    if (!type_of (how->dtype, &type) || (c->ordered && !gsi_dtype_is_integer (how->dtype)))
        return false;
    if (gsi_dtype_is_reduced (how->dtype))
        return how->op == GS_SUM && !c->exact && !how->exact && !how->scale;
    if (how->op == GS_PROD)
        return !gsi_dtype_is_complex (how->dtype);
    return how->op == GS_SUM || gsi_dtype_is_integer (how->dtype); /* NCCL's min drops a NaN */
}

/* buf[i] = scale * buf[i], before a sum. */
static gs_status_t scale (const struct gsi_coll_nccl *c, void *buf, size_t count,
                          gs_dtype_t dtype, double scale, const struct gsi_call *call)
{
    struct gsi_conversion how = {.from = dtype, .to = dtype, .scale = scale};
    struct gsi_run run = {.src = buf, .dst = buf, .count = count};

    if (scale == 1)
        return GS_OK;
    if (scale == 0) /* what is not read may be NaN */
        return c->queue->zero (buf, count * gs_dtype_size (dtype), call->stream);
    return c->queue->convert (&how, &run, 1, call->stream);
}

/* buf[i] = buf[i] / divisor, as hosts do behind a sum. */
static gs_status_t nccl_divide (const struct gsi_coll_nccl *c, void *buf, size_t count,
                                gs_dtype_t dtype, double divisor, const struct gsi_call *call)
{
    struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM, .divisor = divisor};

    if (divisor == 1)
        return GS_OK;
    return c->queue->reduce (&how, buf, buf, count, 1, count, NULL, call->stream);
}

/*
 * What the array is multiplied by before NCCL's sum: this rank's weight. The average of f16 and
 * bf16 is scaled half before the sum, by 2^-ceil(log2(size)/2), and half behind it, so that
 * neither large sums overflow nor small gradients are flushed to 0.
 */
static double scale_before (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    if (gsi_dtype_is_reduced (how->dtype))
        return how->divisor == 1 ? 1 : exp2 (-ceil (log2 (c->size) / 2));
    return how->scale ? how->scale[c->rank] : 1;
}

/* ncclAvg multiplies by the rounded 1/size before it sums; that is exact for powers of two. */
static bool can_average (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    return !gsi_dtype_is_reduced (how->dtype) && !how->scale && !how->own_divisor &&
           how->divisor == c->size && !(c->size & (c->size - 1)) && c->size > 1;
}

/* What NCCL is asked for. */
struct native {
    ncclDataType_t type;
    size_t parts; /* of it in an element */
    bool average; /* nothing is left to divide by */
    ncclRedOp_t op;
};

static struct native native_of (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    static const ncclRedOp_t ops[] = {
        [GS_SUM] = ncclSum, [GS_PROD] = ncclProd, [GS_MIN] = ncclMin, [GS_MAX] = ncclMax};
    struct native n = {.parts = gsi_dtype_is_complex (how->dtype) ? 2 : 1,
                       .average = can_average (c, how)};

    type_of (how->dtype, &n.type);
    n.op = n.average ? ncclAvg : ops[how->op];
    return n;
}

static gs_status_t reduce_native (struct gsi_coll_nccl *c, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct native n = native_of (c, how);
    double before = n.average ? 1 : scale_before (c, how);
    double divisor = gsi_dtype_is_reduced (how->dtype) ? how->divisor * before : how->divisor;
    ncclResult_t rc;
    gs_status_t st = scale (c, buf, count, how->dtype, before, call);

    if (st)
        return st;
    gsi_coll_unknown (&c->base);
    rc = gsi_nccl.AllReduce (buf, buf, count * n.parts, n.type, n.op, gsi_nccl_enter (c),
                             call->stream);
    st = gsi_nccl_leave (c, "ncclAllReduce", rc);
    return st || n.average ? st : nccl_divide (c, buf, count, how->dtype, divisor, call);
}

static gs_status_t nccl_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;

    if (is_native (c, how))
        return reduce_native (c, buf, count, how, call);
    if (c->rails && gsi_dtype_is_reduced (how->dtype) && how->op == GS_SUM)
        return gsi_nccl_rails_reduce (c, buf, count, how, call);
    return gsi_nccl_shards_reduce (c, buf, count, how, call);
}

static gs_status_t nccl_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                   const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc =
        gsi_nccl.Broadcast (buf, buf, bytes, ncclInt8, root, gsi_nccl_enter (c), call->stream);

    gsi_coll_unknown (coll);
    return gsi_nccl_leave (c, "ncclBroadcast", rc);
}

static gs_status_t nccl_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                   size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc =
        gsi_nccl.AllGather (send, recv, bytes, ncclInt8, gsi_nccl_enter (c), call->stream);

    gsi_coll_unknown (coll);
    return gsi_nccl_leave (c, "ncclAllGather", rc);
}

/* Whether NCCL reduces this so that only a division is left to do behind it. */
static bool is_plain (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    return is_native (c, how) && !(gsi_dtype_is_reduced (how->dtype) && how->divisor != 1);
}

static gs_status_t nccl_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                        size_t count, const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    struct native n = native_of (c, how);
    gs_status_t st;

    if (!is_plain (c, how))
        return gsi_nccl_shards_scatter (c, send, recv, count, how, call);
    gsi_coll_unknown (coll);
    st = gsi_nccl_leave (c, "ncclReduceScatter",
                         gsi_nccl.ReduceScatter (send, recv, count * n.parts, n.type, n.op,
                                                 gsi_nccl_enter (c), call->stream));
    return st || n.average ? st : nccl_divide (c, recv, count, how->dtype, how->divisor, call);
}

static gs_status_t nccl_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                                const struct gsi_reduction *how, int root,
                                const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    struct native n = native_of (c, how);
    gs_status_t st;

    if (!is_plain (c, how))
        return gsi_nccl_shards_to_root (c, send, recv, count, how, root, call);
    gsi_coll_unknown (coll);
    st = gsi_nccl_leave (c, "ncclReduce",
                         gsi_nccl.Reduce (send, recv, count * n.parts, n.type, n.op, root,
                                          gsi_nccl_enter (c), call->stream));
    if (st || n.average || c->rank != root)
        return st;
    return nccl_divide (c, recv, count, how->dtype, how->divisor, call);
}

/* A group of reductions, one to each rank from [begin] on, as many as NCCL takes. */
static gs_status_t reduce_group (struct gsi_coll_nccl *c, const char *send, const size_t *at,
                                 const size_t *count, void *recv, const struct native *n,
                                 int begin, const struct gsi_call *call)
{
    ncclComm_t comm = gsi_nccl_enter (c);
    ncclResult_t rc = gsi_nccl.GroupStart (), ended;

    if (rc) /* there is no group to end */
        return gsi_nccl_leave (c, "ncclGroupStart", rc);
    for (int r = begin; r < c->size && r < begin + GSI_NCCL_GROUP && !rc; r++)
        if (count[r])
            rc = gsi_nccl.Reduce (send + at[r], recv, count[r] * n->parts, n->type, n->op, r,
                                  comm, call->stream);
    ended = gsi_nccl.GroupEnd ();
    return gsi_nccl_leave (c, "ncclReduce", rc ? rc : ended);
}

/* NCCL has no call for parts of different lengths. */
static gs_status_t nccl_reduce_scatterv (struct gsi_coll *coll, const void *send,
                                         const size_t *at, const size_t *count, void *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    struct native n = native_of (c, how);
    size_t own = count[c->rank];
    gs_status_t st = GS_OK;

    if (!is_plain (c, how)) {
        for (int r = 0; r < c->size && !st; r++)
            if (count[r])
                st = gsi_nccl_shards_to_root (c, (const char *) send + at[r], recv, count[r], how,
                                              r, call);
        return st;
    }
    gsi_coll_unknown (coll);
    for (int r = 0; r < c->size && !st; r += GSI_NCCL_GROUP)
        st = reduce_group (c, send, at, count, recv, &n, r, call);
    return st || !own || n.average ? st
                                   : nccl_divide (c, recv, own, how->dtype, how->divisor, call);
}

static gs_status_t nccl_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc = gsi_nccl.AllReduce (c->word, c->word, 1, ncclInt32, ncclMax,
                                          gsi_nccl_enter (c), call->stream);

    gsi_coll_unknown (coll);
    return gsi_nccl_leave (c, "ncclAllReduce", rc);
}

const struct gsi_coll_ops gsi_coll_nccl = {
    .name = "nccl",
    .queued = true,
    .prepare = nccl_prepare,
    .unprepare = gsi_nccl_node_unmake,
    .open = open_nccl,
    .pass = gsi_nccl_pass,
    .allreduce = nccl_allreduce,
    .broadcast = nccl_broadcast,
    .allgather = nccl_allgather,
    .alltoallv = gsi_nccl_alltoallv,
    .messages = gsi_nccl_messages,
    .reduce_scatter = nccl_reduce_scatter,
    .reduce_scatterv = nccl_reduce_scatterv,
    .reduce = nccl_reduce,
    .barrier = nccl_barrier,
    .gave_up = gave_up,
    .find_gone = find_gone,
    .watch = watch_node,
    .poll = poll_nccl,
    .notify_abort = notify_abort,
    .silence = gsi_nccl_silence,
    .settled = gsi_nccl_settled,
    .is_silent = gsi_nccl_is_silent,
    .close = close_nccl,
    .discard = nccl_discard,
};
