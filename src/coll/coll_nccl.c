/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_nccl - the transport between GPUs: making, ending, and how an operation goes. */
#include "coll/coll_nccl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/env.h"
#include "base/log.h"
#include "base/status.h"
#include "device/element.h"

#define EXACT_ABOVE 8      /* ranks: up to there a rounded sum of bf16 is off by 3 roundings */
#define SPIN_NS     200000 /* a launch takes some 50 us; what takes longer may take its time */
#define WORD_BYTES  256

/* What a rank says on its card. */
struct card {
    ncclUniqueId id; /* of roots */
    int32_t version, average, ranks_per_root, deterministic;
};
_Static_assert(sizeof (struct card) <= GSI_COLL_CARD_BYTES, "it fits on a rank's card");

gs_status_t gsi_nccl_fail (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc)
{
    const char *more = gsi_nccl.GetLastError (c ? c->comm : NULL);

    return gsi_fail (rc == ncclUnhandledCudaError ? GS_ERR_DEVICE : GS_ERR_TRANSPORT,
                     "%s: %s%s%s", what, gsi_nccl.GetErrorString (rc), more && *more ? "; " : "",
                     more ? more : "");
}

/* Whether a wait that began at [begin_ns] must end without success; else a pause has passed. */
static gs_status_t wait_on (const struct gsi_coll_nccl *c, const char *what, int64_t begin_ns,
                            int64_t deadline_ns)
{
    int64_t now_ns = gsi_now_ns ();

    if (atomic_load (c->base.life) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "%s: the communicator was aborted", what);
    if (now_ns >= deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, "%s did not end within the deadline", what);
    gsi_pause (now_ns - begin_ns, SPIN_NS);
    return now_ns - begin_ns < SPIN_NS ? GS_OK : c->base.others (c->base.context);
}

/* Waits until what [rc] has begun has ended. */
static gs_status_t settle_state (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc,
                                 int64_t deadline_ns)
{
    int64_t begin_ns = rc == ncclInProgress ? gsi_now_ns () : 0;
    gs_status_t st = GS_OK;

    while (rc == ncclInProgress && !st) {
        ncclResult_t asked = gsi_nccl.CommGetAsyncError (c->comm, &rc);
        if (asked)
            rc = asked;
        else if (rc == ncclInProgress)
            st = wait_on (c, what, begin_ns, deadline_ns);
    }
    return st ? st : rc ? gsi_nccl_fail (c, what, rc) : GS_OK;
}

/*
 * N.B. From 2.22 to 2.25 a call that does not block leaves the communicator in the thread's list
 * until another one joins the thread that NCCL has made for it, which CommGetAsyncError does not;
 * the next call on another communicator would walk off the list (v2.24.3 group.cc:545).
 */
gs_status_t gsi_nccl_settle (const struct gsi_coll_nccl *c, const char *what, ncclResult_t rc,
                             int64_t deadline_ns)
{
    gs_status_t st = settle_state (c, what, rc, deadline_ns);
    int unused;

    if (!st && (rc = gsi_nccl.CommCount (c->comm, &unused)))
        st = gsi_nccl_fail (c, what, rc);
    return st;
}

gs_status_t gsi_nccl_await (const struct gsi_coll_nccl *c, struct gsi_event *event,
                            int64_t deadline_ns)
{
    int64_t begin_ns = gsi_now_ns ();
    bool done;
    gs_status_t st = c->queue->event_done (event, &done);

    while (!st && !done && !(st = wait_on (c, "the work queued before", begin_ns, deadline_ns)))
        st = c->queue->event_done (event, &done);
    return st;
}

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

static gs_status_t nccl_prepare (const struct gsi_boot *boot, void *memory, void **room)
{
    struct card card = {.version = gsi_nccl.version,
                        .average = gsi_env_choice (GSI_ENV_AVG),
                        .ranks_per_root = (int32_t) gsi_env_int (GSI_ENV_NCCL_RANKS_PER_ROOT),
                        .deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC)};
    int roots = boot->is_group ? 0 : roots_of (boot->size, card.ranks_per_root);
    ncclResult_t rc;

    for (int i = 0; i < roots; i++)
        if (rank_of_root (boot->size, roots, i) == boot->rank &&
            (rc = gsi_nccl.GetUniqueId (&card.id)))
            return gsi_nccl_fail (NULL, "ncclGetUniqueId", rc);
    memcpy (memory, &card, sizeof (card));
    *room = NULL;
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

    for (int r = 1; r < setup->team->size; r++) {
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

/* Starts NCCL's communicator; collective, without blocking. */
static gs_status_t nccl_start (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int roots = roots_of (c->size, card_of (setup, 0).ranks_per_root);
    ncclUniqueId *ids = calloc ((size_t) roots, sizeof (*ids));
    ncclResult_t rc;

    if (!ids)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    for (int i = 0; i < roots; i++)
        ids[i] = card_of (setup, rank_of_root (c->size, roots, i)).id;
    config.blocking = 0;
    rc = roots > 1
             ? gsi_nccl.CommInitRankScalable (&c->comm, c->size, c->rank, roots, ids, &config)
             : gsi_nccl.CommInitRankConfig (&c->comm, c->size, ids[0], c->rank, &config);
    free (ids);
    return gsi_nccl_settle (c, "ncclCommInitRank", rc, setup->deadline_ns);
}

static gs_status_t make_memory (struct gsi_coll_nccl *c)
{
    gs_status_t st = c->device->ops->alloc (c->device, WORD_BYTES, &c->word);

    if (st)
        return st;
    if (!(c->length = calloc (4 * (size_t) c->size, sizeof (*c->length))))
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    return c->exact ? gsi_nccl_shards_open (c) : GS_OK;
}

/* Ends NCCL's communicator by force, and with it those of the family. */
static void end_by_force (struct gsi_coll_nccl *c)
{
    ncclComm_t comm = c->comm;

    c->comm = NULL;
    if (!comm)
        return;
    atomic_store (&c->family->aborted, true);
    gsi_nccl.CommAbort (comm);
}

/* Joins the family of the origin of a group, else begins one. */
static gs_status_t join_family (struct gsi_coll_nccl *c, const struct gsi_coll_setup *setup)
{
    if (setup->origin)
        c->family = ((struct gsi_coll_nccl *) setup->origin->coll)->family;
    else if (!(c->family = calloc (1, sizeof (*c->family))))
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    atomic_fetch_add (&c->family->members, 1);
    return GS_OK;
}

static void leave_family (struct gsi_coll_nccl *c)
{
    if (c->family && atomic_fetch_sub (&c->family->members, 1) == 1)
        free (c->family);
}

/* Frees what is here; the device has been entered. */
static void dissolve (struct gsi_coll_nccl *c)
{
    end_by_force (c);
    gsi_nccl_shards_close (c);
    c->device->ops->free (c->device, c->word);
    leave_family (c);
    free (c->length);
    free (c);
}

static void nccl_discard (struct gsi_coll *coll)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    const struct gsi_device *device = c->device;
    int previous;
    bool entered = !device->ops->streams->enter (device, &previous);

    dissolve (c);
    if (entered)
        device->ops->streams->leave (device, previous);
}

static gs_status_t open_nccl (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct gsi_coll_nccl *c = calloc (1, sizeof (*c));
    gs_status_t st;

    if (!c)
        return gsi_fail (GS_ERR_NOMEM, "transport nccl: out of memory");
    c->base.ops = &gsi_coll_nccl;
    c->base.team = setup->team;
    c->base.life = setup->life;
    c->base.others = setup->others;
    c->base.context = setup->context;
    c->device = setup->device;
    c->queue = setup->device->ops->streams;
    c->rank = setup->team->rank;
    c->size = setup->team->size;
    c->ordered = gsi_env_int (GSI_ENV_DETERMINISTIC);
    c->exact = c->ordered || gsi_env_choice (GSI_ENV_AVG) == GSI_AVG_EXACT ||
               (gsi_env_choice (GSI_ENV_AVG) == GSI_AVG_AUTO && c->size > EXACT_ABOVE);
    st = join_family (c, setup);
    if (!st && !(st = compare_cards (setup))) {
        if (!setup->origin)
            st = nccl_start (c, setup);
        if (!st)
            st = make_memory (c);
        if (!st && setup->origin) /* last: to give it up would end the origin */
            st = gsi_nccl_split (c, setup);
    }
    if (st)
        dissolve (c);
    else
        *out = &c->base;
    return st;
}

static gs_status_t close_nccl (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclComm_t comm = c->comm;
    ncclResult_t rc;
    gs_status_t st =
        settle_state (c, "ncclCommFinalize", gsi_nccl.CommFinalize (comm), call->deadline_ns);

    if (st)
        return st;
    c->comm = NULL;
    rc = gsi_nccl.CommDestroy (comm);
    if (rc && rc != ncclInProgress)
        gsi_log (GS_LOG_WARN, "nccl", "ncclCommDestroy: %s", gsi_nccl.GetErrorString (rc));
    dissolve (c);
    return GS_OK;
}

static void notify_abort (struct gsi_coll *coll, uint64_t missed)
{
    (void) missed; /* the other ranks see it by NCCL's own means, or by their deadline */
    end_by_force ((struct gsi_coll_nccl *) coll);
}

static gs_status_t poll_nccl (struct gsi_coll *coll)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc, asked;

    if (!c->comm || atomic_load (&c->family->aborted))
        return gsi_fail (GS_ERR_STATE,
                         "NCCL: the communicator was ended, or one that shares its resources: a "
                         "group that was made from it, or what it was made from");
    asked = gsi_nccl.CommGetAsyncError (c->comm, &rc);
    if (asked || (rc && rc != ncclInProgress))
        return gsi_nccl_fail (c, "NCCL, after its call had returned", asked ? asked : rc);
    return GS_OK;
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
    return !gsi_dtype_is_reduced (how->dtype) && !how->scale && how->divisor == c->size &&
           !(c->size & (c->size - 1)) && c->size > 1;
}

static ncclRedOp_t op_of (const struct gsi_coll_nccl *c, const struct gsi_reduction *how)
{
    static const ncclRedOp_t ops[] = {
        [GS_SUM] = ncclSum, [GS_PROD] = ncclProd, [GS_MIN] = ncclMin, [GS_MAX] = ncclMax};

    return can_average (c, how) ? ncclAvg : ops[how->op];
}

static gs_status_t reduce_native (struct gsi_coll_nccl *c, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    bool average = can_average (c, how);
    size_t parts = gsi_dtype_is_complex (how->dtype) ? 2 : 1;
    double before = average ? 1 : scale_before (c, how);
    double divisor = gsi_dtype_is_reduced (how->dtype) ? how->divisor * before : how->divisor;
    ncclDataType_t type;
    ncclResult_t rc;
    gs_status_t st = scale (c, buf, count, how->dtype, before, call);

    if (st)
        return st;
    type_of (how->dtype, &type);
    gsi_coll_hidden (&c->base);
    rc =
        gsi_nccl.AllReduce (buf, buf, count * parts, type, op_of (c, how), c->comm, call->stream);
    st = gsi_nccl_settle (c, "ncclAllReduce", rc, call->deadline_ns);
    return st || average ? st : nccl_divide (c, buf, count, how->dtype, divisor, call);
}

static bool all_ones (const double *scale, int size)
{
    for (int r = 0; r < size; r++)
        if (scale[r] != 1)
            return false;
    return true;
}

static gs_status_t nccl_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                   const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    struct gsi_reduction equal = *how;

    if (how->scale && all_ones (how->scale, c->size))
        equal.scale = NULL; /* equal weights: the same bits as the plain average */
    if (is_native (c, &equal))
        return reduce_native (c, buf, count, &equal, call);
    return gsi_nccl_shards_reduce (c, buf, count, &equal, call);
}

static gs_status_t nccl_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                   const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc = gsi_nccl.Broadcast (buf, buf, bytes, ncclInt8, root, c->comm, call->stream);

    gsi_coll_hidden (coll);
    return gsi_nccl_settle (c, "ncclBroadcast", rc, call->deadline_ns);
}

static gs_status_t nccl_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                   size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc = gsi_nccl.AllGather (send, recv, bytes, ncclInt8, c->comm, call->stream);

    gsi_coll_hidden (coll);
    return gsi_nccl_settle (c, "ncclAllGather", rc, call->deadline_ns);
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
    size_t parts = gsi_dtype_is_complex (how->dtype) ? 2 : 1;
    bool average = can_average (c, how);
    ncclDataType_t type;
    gs_status_t st;

    if (!is_plain (c, how))
        return gsi_nccl_shards_scatter (c, send, recv, count, how, call);
    type_of (how->dtype, &type);
    gsi_coll_hidden (coll);
    st = gsi_nccl_settle (c, "ncclReduceScatter",
                          gsi_nccl.ReduceScatter (send, recv, count * parts, type, op_of (c, how),
                                                  c->comm, call->stream),
                          call->deadline_ns);
    return st || average ? st : nccl_divide (c, recv, count, how->dtype, how->divisor, call);
}

static gs_status_t nccl_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                                const struct gsi_reduction *how, int root,
                                const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    size_t parts = gsi_dtype_is_complex (how->dtype) ? 2 : 1;
    bool average = can_average (c, how);
    ncclDataType_t type;
    gs_status_t st;

    if (!is_plain (c, how))
        return gsi_nccl_shards_to_root (c, send, recv, count, how, root, call);
    type_of (how->dtype, &type);
    gsi_coll_hidden (coll);
    st = gsi_nccl_settle (c, "ncclReduce",
                          gsi_nccl.Reduce (send, recv, count * parts, type, op_of (c, how), root,
                                           c->comm, call->stream),
                          call->deadline_ns);
    if (st || average || c->rank != root)
        return st;
    return nccl_divide (c, recv, count, how->dtype, how->divisor, call);
}

/* A group of reductions, one to each rank from [begin] on, as many as NCCL takes. */
static gs_status_t reduce_group (struct gsi_coll_nccl *c, const char *send, const size_t *at,
                                 const size_t *count, void *recv, const struct gsi_reduction *how,
                                 int begin, const struct gsi_call *call)
{
    size_t parts = gsi_dtype_is_complex (how->dtype) ? 2 : 1;
    ncclDataType_t type;
    ncclResult_t rc = gsi_nccl.GroupStart (), ended;

    if (rc) /* there is no group to end */
        return gsi_nccl_fail (c, "ncclGroupStart", rc);
    type_of (how->dtype, &type);
    for (int r = begin; r < c->size && r < begin + GSI_NCCL_GROUP && !rc; r++) {
        if (count[r])
            rc = gsi_nccl.Reduce (send + at[r], recv, count[r] * parts, type, op_of (c, how), r,
                                  c->comm, call->stream);
        if (rc == ncclInProgress)
            rc = ncclSuccess;
    }
    ended = gsi_nccl.GroupEnd ();
    return gsi_nccl_settle (c, "ncclReduce", rc ? rc : ended, call->deadline_ns);
}

/* NCCL has no call for parts of different lengths. */
static gs_status_t nccl_reduce_scatterv (struct gsi_coll *coll, const void *send,
                                         const size_t *at, const size_t *count, void *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    size_t own = count[c->rank];
    gs_status_t st = GS_OK;

    if (!is_plain (c, how)) {
        for (int r = 0; r < c->size && !st; r++)
            if (count[r])
                st = gsi_nccl_shards_to_root (c, (const char *) send + at[r], recv, count[r], how,
                                              r, call);
        return st;
    }
    gsi_coll_hidden (coll);
    for (int r = 0; r < c->size && !st; r += GSI_NCCL_GROUP)
        st = reduce_group (c, send, at, count, recv, how, r, call);
    return st || !own || can_average (c, how)
               ? st
               : nccl_divide (c, recv, own, how->dtype, how->divisor, call);
}

static gs_status_t nccl_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_nccl *c = (struct gsi_coll_nccl *) coll;
    ncclResult_t rc =
        gsi_nccl.AllReduce (c->word, c->word, 1, ncclInt32, ncclMax, c->comm, call->stream);

    gsi_coll_hidden (coll);
    return gsi_nccl_settle (c, "ncclAllReduce", rc, call->deadline_ns);
}

const struct gsi_coll_ops gsi_coll_nccl = {
    .name = "nccl",
    .queued = true,
    .prepare = nccl_prepare,
    .open = open_nccl,
    .pass = gsi_nccl_pass,
    .allreduce = nccl_allreduce,
    .broadcast = nccl_broadcast,
    .allgather = nccl_allgather,
    .exchange = gsi_nccl_exchange,
    .messages = gsi_nccl_messages,
    .reduce_scatter = nccl_reduce_scatter,
    .reduce_scatterv = nccl_reduce_scatterv,
    .reduce = nccl_reduce,
    .barrier = nccl_barrier,
    .poll = poll_nccl,
    .notify_abort = notify_abort,
    .close = close_nccl,
    .discard = nccl_discard,
};
