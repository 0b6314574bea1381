/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_mpi - the transport between hosts: making, ending, and choosing how an operation goes. */
#include "mpi/coll_mpi.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/record.h"
#include "base/status.h"
#include "mpi/choice.h"
#include "mpi/exchange.h"
#include "mpi/guest.h"

extern const struct gsi_coll_ops gsi_coll_mpi;

/* What every rank needs to tell the others whether it has all else; zeros. */
static struct gsi_coll_mpi *make_coll (int size)
{
    struct gsi_coll_mpi *c = calloc (1, sizeof (*c) + (size_t) size * sizeof (int));

    if (c)
        c->ranks = (int *) (void *) (c + 1);
    return c;
}

static gs_status_t mpi_prepare (const struct gsi_boot *boot, void *memory, void **room)
{
    struct gsi_coll_mpi_card *card = memory;
    int up = gsi_guest_up ();

    card->world_rank = card->world_size = -1;
    card->algorithm = (int32_t) gsi_env_choice (GSI_ENV_HOST_ALGO);
    card->deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC);
    if (up) {
        MPI_Comm_rank (MPI_COMM_WORLD, &card->world_rank);
        MPI_Comm_size (MPI_COMM_WORLD, &card->world_size);
    }
    if (!up && !strcmp (boot->ops->name, "id") && boot->size > 1)
        return gsi_fail (GS_ERR_STATE,
                         "gs_comm_create_from_id: between hosts MPI carries the "
                         "data, and the application must have initialised it before");
    if (!up && (boot->is_group || !strcmp (boot->ops->name, "pmix")) && gsi_guest_before_pmix ())
        return gsi_fail (GS_ERR_STATE,
                         "transport mpi: Open MPI 5 cannot be started once PMIx is open, which "
                         "it is since a communicator that needed no MPI: call MPI_Init before "
                         "the first gs_comm_create, or make one with transport auto or mpi "
                         "first");
    *room = make_coll (boot->size);
    return *room ? GS_OK : gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
}

/* All ranks compare the same cards and so come to the same verdict. */
static gs_status_t compare_cards (const struct gsi_coll_setup *setup)
{
    struct gsi_coll_mpi_card zero = gsi_coll_mpi_card_of (setup, 0);

    for (int r = 1; r < setup->team->size; r++) {
        struct gsi_coll_mpi_card card = gsi_coll_mpi_card_of (setup, r);
        if (card.algorithm != zero.algorithm || card.deterministic != zero.deterministic)
            return gsi_fail (GS_ERR_MISMATCH,
                             "rank 0 and rank %d have different GS_HOST_ALGO or "
                             "GS_DETERMINISTIC: set them alike on all ranks",
                             r);
    }
    return GS_OK;
}

/* What gs-info --hosts tells, of the ranks there are. */
static void log_choice (const struct gsi_coll_mpi *c)
{
    char text[256];

    for (int line = 0;
         c->rank == 0 && gsi_choice_line (&c->levels, c->size, line, text, sizeof (text)); line++)
        gsi_log (GS_LOG_INFO, "mpi", "%s", text);
}

/* Cuts [c]->memory into the staging buffers. Pieces begin at multiples of 64 bytes. */
static gs_status_t make_staging (struct gsi_coll_mpi *c)
{
    size_t size = (size_t) c->size, block, rail, total;
    char *at;

    c->piece_bytes = gsi_choice_piece (c->size);
    c->levels.halving = gsi_choice_halving ();
    if (!c->levels.shares)
        c->levels.part_bytes = gsi_choice_part (&c->levels, c->base.team);
    block = c->piece_bytes * size;
    rail = c->levels.part_bytes * (size_t) c->levels.rails;
    block = rail > block ? rail : block;
    total = GSI_SMALL_BYTES + 2 * 2 * GSI_STAGING_SLOTS * block;
    if (gsi_fault ("coll_mpi.memory") || posix_memalign ((void **) &c->memory, 4096, total))
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: no memory for staging (%zu bytes)", total);
    at = c->small = c->memory;
    at += GSI_SMALL_BYTES;
    for (int s = 0; s < 2 * GSI_STAGING_SLOTS; s++, at += 2 * block) {
        c->slot[s].send = at;
        c->slot[s].recv = at + block;
        c->slot[s].requests = calloc (2 * size, sizeof (MPI_Request));
        c->slot[s].statuses = calloc (2 * size, sizeof (MPI_Status));
        c->slot[s].peer = calloc (2 * size, sizeof (int));
        c->slot[s].sends = calloc (2 * size, sizeof (bool));
        if (!c->slot[s].requests || !c->slot[s].statuses || !c->slot[s].peer || !c->slot[s].sends)
            return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    }
    c->source = calloc (size, sizeof (*c->source));
    c->array = calloc (size, sizeof (*c->array));
    c->scale = calloc (size, sizeof (*c->scale));
    c->length = calloc (4 * size, sizeof (*c->length));
    c->heard = calloc (size, sizeof (*c->heard));
    if (!c->source || !c->array || !c->scale || !c->length || !c->heard)
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    return GS_OK;
}

/* Chooses how large reductions go, and takes what memory that needs; the same on all ranks. */
static gs_status_t choose_sizes (struct gsi_coll_mpi *c, const struct gsi_coll_setup *setup)
{
    const struct gsi_team *team = setup->team;
    gs_status_t st;

    if ((st = compare_cards (setup)) || (st = gsi_node_build (&c->node, team)))
        return st;
    if (gsi_choice_is_flat (team)) {
        st = gsi_levels_flat (&c->levels, team);
    } else if (!(st = gsi_node_reserve (&c->node, c->size)) &&
               !(st = gsi_levels_nodes (&c->levels, team, gsi_choice_owners (team)))) {
        c->levels.part_bytes = gsi_choice_part (&c->levels, team);
        c->node.slots = gsi_choice_slots (&c->levels);
    }
    if (!st && !(c->own = malloc (sizeof (*c->own))))
        st = gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    return st ? st : make_staging (c);
}

/* Frees staging, but what MPI may still use. */
static void drop_staging (struct gsi_coll_mpi *c)
{
    for (int s = 0; s < 2 * GSI_STAGING_SLOTS; s++) {
        if (c->unfinished)
            gsi_guest_keep (c->slot[s].requests);
        else
            free (c->slot[s].requests);
        free (c->slot[s].statuses);
        free (c->slot[s].peer);
        free (c->slot[s].sends);
    }
    if (c->unfinished)
        gsi_guest_keep (c->memory);
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

/* Frees what is ours alone; what MPI may still use is kept. */
static void mpi_discard (struct gsi_coll *coll)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;

    drop_staging (c);
    if (!c->unfinished)
        gsi_node_close (&c->node);
    gsi_messages_close (c);
    gsi_share_close (&c->share);
    gsi_node_clear (&c->node);
    free (c->levels.peer);
    free (c->own);
    if (c->unfinished)
        gsi_guest_keep (c);
    else
        free (c);
    gsi_guest_closed ();
}

/*
 * Makes the ranks agree on the worst status [st] of any of them, so that none waits in its first
 * transfer for one that has no memory for it.
 */
static gs_status_t agree_on_open (struct gsi_coll_mpi *c, gs_status_t st, int64_t deadline_ns)
{
    int (*all)[2] = c->verdict;
    MPI_Request request;
    gs_status_t carried;
    int rc;

    all[0][0] = (int) st;
    all[0][1] = c->rank;
    if ((rc = MPI_Iallreduce (all[0], all[1], 1, MPI_2INT, MPI_MAXLOC, c->comm, &request)))
        return gsi_guest_fail ("MPI_Iallreduce", rc);
    if ((carried = gsi_guest_wait ("transport mpi: MPI_Iallreduce", &request, deadline_ns))) {
        c->unfinished = true;
        return st ? st : carried;
    }
    if (!st && all[1][0])
        st = gsi_fail ((gs_status_t) all[1][0],
                       "transport mpi: rank %d could not start it; its own text says why",
                       all[1][1]);
    return st;
}

/*
 * The ranks of a node share memory, or, where they cannot, all ranks start over without. Nothing
 * is allocated in between that could fail on one rank alone.
 */
static gs_status_t share_memory (struct gsi_coll_mpi *c, const struct gsi_coll_setup *setup)
{
    size_t result = c->levels.part_bytes * (size_t) c->levels.rails;
    bool there;
    gs_status_t st = gsi_node_open (c, &c->node, result * (size_t) c->levels.owners, result,
                                    setup->deadline_ns, &there);

    if (st || there)
        return st;
    drop_staging (c);
    free (c->levels.peer);
    if (!(st = gsi_levels_flat (&c->levels, setup->team)))
        st = make_staging (c);
    return agree_on_open (c, st, setup->deadline_ns);
}

/* How many kinds of calls tags can tell apart: 2046 by the standard, millions as it is. */
static uint32_t kinds_of_tags (MPI_Comm comm)
{
    int *most, there = 0;

    return MPI_Comm_get_attr (comm, MPI_TAG_UB, &most, &there) || !there
               ? 1
               : (uint32_t) *most / GSI_TAGS - 1;
}

static gs_status_t open_mpi (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    struct gsi_coll_mpi *c = setup->room;
    gs_status_t st;
    int level;

    gsi_guest_opened ();
    c->base.ops = &gsi_coll_mpi;
    c->base.team = setup->team;
    c->base.life = setup->life;
    c->base.others = setup->others;
    c->base.tell = setup->tell;
    c->base.died = setup->died;
    c->base.context = setup->context;
    c->device = setup->device;
    c->comm = MPI_COMM_NULL;
    c->culprit = -1;
    c->node.shm = GSI_SHM_NONE;
    c->rank = setup->team->rank;
    c->size = setup->team->size;
    c->spins = setup->team->local_size > sysconf (_SC_NPROCESSORS_ONLN) ? GSI_GUEST_YIELD_NOW : 0;
    if (!(st = gsi_coll_mpi_comm (c, setup)) &&
        !(st = agree_on_open (c, choose_sizes (c, setup), setup->deadline_ns)) &&
        c->levels.shares)
        st = share_memory (c, setup);
    if (st) {
        st = gsi_start_fail (c, st, setup->origin);
        mpi_discard (&c->base);
        return st;
    }
    c->kinds = kinds_of_tags (c->comm);
    log_choice (c);
    MPI_Query_thread (&level);
    c->base.any_thread = level == MPI_THREAD_MULTIPLE;
    *out = &c->base;
    return GS_OK;
}

/* Small arrays are copied in any case. */
static bool alloc (struct gsi_coll *coll, size_t bytes, void **out)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;

    return gsi_choice_way (&c->levels, c->size, GSI_TASK_SUM, bytes) != GSI_WAY_EXCHANGE &&
           gsi_share_alloc (&c->share, bytes, out);
}

static bool free_array (struct gsi_coll *coll, void *memory)
{
    return gsi_share_free (&((struct gsi_coll_mpi *) coll)->share, memory);
}

gs_status_t gsi_coll_mpi_differ (const struct gsi_coll_mpi *c, int rank)
{
    return gsi_fail (
        GS_ERR_MISMATCH,
        "ranks %d and %d disagree on count, dtype or operation, or one has left a call "
        "out or done fewer steps; GS_CHECK=collective finds the first",
        c->rank, rank);
}

/* ---- Operations ---- */

/* The application may have ended MPI; every call of MPI would then end the process. */
static gs_status_t enter_mpi (struct gsi_coll_mpi *c, const struct gsi_call *call)
{
    c->kind = call->kind;
    if (gsi_guest_usable ())
        return GS_OK;
    if (gsi_guest_up ())
        return gsi_fail (GS_ERR_TRANSPORT, "MPI is inside a call that did not return by its "
                                           "deadline, and was not initialised with "
                                           "MPI_THREAD_MULTIPLE: it takes no other call");
    return gsi_fail (GS_ERR_STATE, "MPI was finalized before gs_comm_destroy: destroy "
                                   "communicators first");
}

/* After a failure the arrays are the application's again, and no other rank reads them. */
static gs_status_t leave_mpi (const struct gsi_coll_mpi *c, gs_status_t st)
{
    if (st)
        gsi_node_revoke (&c->node, st, c->culprit);
    return st;
}

static gs_status_t mpi_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    size_t bytes = count * gs_dtype_size (how->dtype);
    enum gsi_way way = gsi_choice_way (&c->levels, c->size, GSI_TASK_SUM, bytes);
    gs_status_t st = enter_mpi (c, call);

    if (st)
        return st;
    if (way == GSI_WAY_HALVING)
        st = gsi_halving_allreduce (c, buf, count, how, call);
    else if (way == GSI_WAY_LEVELS)
        st = gsi_levels_allreduce (c, &c->levels, buf, count, how, call);
    else
        st = gsi_small_reduce (c, buf, buf, count, how, call);
    return leave_mpi (c, st);
}

static gs_status_t mpi_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                  const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    enum gsi_way way = gsi_choice_way (&c->levels, c->size, GSI_TASK_BROADCAST, bytes);
    gs_status_t st = enter_mpi (c, call);

    return leave_mpi (c, st ? st : gsi_move_broadcast (c, way, buf, bytes, root, call));
}

static gs_status_t mpi_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);
    enum gsi_way way;

    if (st)
        return st;
    way = gsi_choice_way (&c->levels, c->size, GSI_TASK_GATHER, bytes);
    if (way != GSI_WAY_EXCHANGE)
        return leave_mpi (c, gsi_move_allgather (c, way, send, recv, bytes, call));
    if ((st = gsi_small_gather (c, send, bytes, bytes, call)))
        return leave_mpi (c, st);
    for (int r = 0; r < c->size; r++)
        memcpy ((char *) recv + (size_t) r * bytes, gsi_small_place (c, r, bytes), bytes);
    return GS_OK;
}

static gs_status_t mpi_exchange (struct gsi_coll *coll, const struct gsi_exchange *x,
                                 const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);

    return leave_mpi (c, st ? st : gsi_exchange (c, x, call));
}

static gs_status_t mpi_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                       size_t count, const struct gsi_reduction *how,
                                       const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);

    return leave_mpi (c, st ? st : gsi_exchange_reduce (c, send, recv, count, how, call));
}

static gs_status_t mpi_reduce_scatterv (struct gsi_coll *coll, const void *send, const size_t *at,
                                        const size_t *count, void *recv,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);

    return leave_mpi (c,
                      st ? st : gsi_exchange_reduce_ragged (c, send, at, count, recv, how, call));
}

static gs_status_t mpi_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                               const struct gsi_reduction *how, int root,
                               const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    size_t bytes = count * gs_dtype_size (how->dtype);
    gs_status_t st = enter_mpi (c, call);

    if (st)
        return st;
    if (gsi_levels_together (&c->levels) &&
        gsi_choice_way (&c->levels, c->size, GSI_TASK_SUM, bytes) == GSI_WAY_LEVELS)
        st = gsi_levels_reduce (c, send, recv, count, how, root, call);
    else
        st = gsi_exchange_reduce_to (c, send, recv, count, how, root, call);
    return leave_mpi (c, st);
}

static gs_status_t messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                             const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);

    return st ? st : gsi_messages (c, list, number, call);
}

static gs_status_t mpi_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = enter_mpi (c, call);

    return leave_mpi (c, st ? st : gsi_small_gather (c, NULL, 0, 0, call));
}

static void notify_abort (struct gsi_coll *coll, uint64_t missed)
{
    gsi_notice_send ((struct gsi_coll_mpi *) coll, GSI_NOTICE_ABORT, false, missed);
}

static gs_status_t close_mpi (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    gs_status_t st = mpi_barrier (coll, call);

    if (st)
        return st;
    MPI_Comm_free (&c->comm);
    mpi_discard (coll);
    return GS_OK;
}

const struct gsi_coll_ops gsi_coll_mpi = {
    .name = "mpi",
    .describe = gsi_choice_describe,
    .prepare = mpi_prepare,
    .open = open_mpi,
    .alloc = alloc,
    .free = free_array,
    .allreduce = mpi_allreduce,
    .broadcast = mpi_broadcast,
    .allgather = mpi_allgather,
    .exchange = mpi_exchange,
    .reduce_scatter = mpi_reduce_scatter,
    .reduce_scatterv = mpi_reduce_scatterv,
    .reduce = mpi_reduce,
    .messages = messages,
    .barrier = mpi_barrier,
    .roll_call = gsi_roll_call,
    .notify_abort = notify_abort,
    .heard = gsi_notice_told,
    .close = close_mpi,
    .discard = mpi_discard,
};
