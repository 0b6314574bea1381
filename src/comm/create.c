/* SPDX-License-Identifier: BSD-3-Clause */
/* create - from ranks that have found each other to a working communicator. */
#include "comm/create.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/transport.h"
#include "call/failure.h"
#include "call/gpu_lock.h"
#include "call/inflight.h"
#include "call/peers.h"
#include "call/staging.h"
#include "call/watchdog.h"
#include "core/card.h"
#include "core/choice.h"

#define LATEST_NS (2 * GSI_NS_PER_S) /* how long after its deadline a rank may tell of it */

/* How many communicators of the whole job this process has made: the same on all ranks. */
static atomic_int serials;

static const char *host_of_card (const void *cards, int rank)
{
    return ((const struct gsi_card *) cards)[rank].host;
}

/* What a create works on, beside the communicator that it makes. */
struct create {
    gs_comm_t *comm;
    const struct gsi_plan *plan;
    int64_t met_ns;                      /* when all had exchanged their cards */
    const struct gsi_coll_ops *ops;      /* the transport */
    const struct gsi_coll_ops *prepared; /* whose [coll_room] is; NULL: nobody's */
    struct gsi_card card, *cards;        /* this rank's and [size] of all */
    void *team_room, *coll_room;         /* what the topo and the transport are to be made in */
    char (*coll_cards)[GSI_COLL_CARD_BYTES]; /* [size] */
    struct gsi_choice choice;
    bool named; /* a failure behind the cards says who did not come, as far as that is known */
};

/* Looks for GPUs and NCCL. Without them hosts carry the data. */
static gs_status_t find_gpus (struct create *c)
{
    const struct gsi_coll_ops *ops;
    struct gsi_gpus gpus = {0};
    gs_status_t st = gsi_device_gpus (&gpus);

    if (!st)
        st = gsi_coll_find (GS_TRANSPORT_NCCL, c->comm->boot->size, &ops);
    return gsi_choice_found (c->plan->caller, st, &gpus, &c->card);
}

/* Whether this is a group of ranks that may share GPUs, or have none: it has the transport of its
 * parent. */
static bool is_of_shared (const struct gsi_plan *plan)
{
    return plan->parent && gsi_coll_is_shared (plan->parent->coll->ops);
}

/* That transport, for a rank with [device]. */
static const struct gsi_coll_ops *shared_ops (int device)
{
    return device == GS_DEVICE_HOST ? &gsi_coll_beside_gpus : &gsi_coll_shared_gpus;
}

/* What no open has taken over. */
static void free_room (struct create *c)
{
    if (c->prepared)
        c->prepared->unprepare (c->coll_room);
    c->prepared = NULL;
    c->coll_room = NULL;
}

static gs_status_t prepare_carrier (struct create *c)
{
    const struct gsi_coll_parent *parent = c->plan->parent;

    free_room (c);                                   /* of another one, */
    memset (c->card.coll, 0, sizeof (c->card.coll)); /* and what that told */
    if (!c->ops->prepare)
        return GS_OK;
    c->prepared = c->ops;
    return c->ops->prepare (c->comm->boot, parent ? parent->coll : NULL, c->card.coll,
                            &c->coll_room);
}

/* Whether all can go on where hosts' transport fails here with [st]: if some have GPUs it is not
 * what carries the data, and libfabric joins hosts as well as MPI does. */
static bool may_do_without (const struct create *c, gs_status_t st)
{
    return st != GS_ERR_NOMEM && !c->plan->parent && c->plan->transport == GS_TRANSPORT_AUTO &&
           gsi_transport_joins (c->card.provided) == GSI_JOINS_HOSTS;
}

/* Finds and prepares what the card says that this rank can take part in. */
static gs_status_t take_provided (struct create *c)
{
    gs_status_t st = GS_OK;

    if (is_of_shared (c->plan))
        c->ops = shared_ops (c->card.device);
    else
        st = gsi_coll_find ((gs_transport_t) c->card.provided, c->comm->boot->size, &c->ops);
    return st ? st : prepare_carrier (c);
}

/* What carries the data as far as this rank can tell. */
static gs_status_t find_carrier (struct create *c)
{
    bool looks;
    gs_status_t st = gsi_choice_begin (c->plan->caller, c->comm->boot->size, &c->card, &looks);

    if (!st && looks)
        st = find_gpus (c);
    if (st || !(st = take_provided (c)) || !may_do_without (c, st))
        return st;
    c->card.provided = GSI_TRANSPORT_AUTO;
    return GS_OK;
}

/*
 * The parts of a create that no other rank takes part in; a failure goes onto the card. All that
 * is needed behind the exchange is allocated here: from there on others wait for this rank.
 */
static gs_status_t prepare_create (struct create *c)
{
    size_t size = (size_t) c->comm->boot->size;

    c->comm->hosts = calloc (size, sizeof (*c->comm->hosts));
    c->comm->scratch = calloc (size, GSI_SCRATCH_BYTES);
    c->comm->lengths = calloc (size, GSI_LENGTHS * sizeof (*c->comm->lengths));
    c->team_room = gsi_topo_room ((int) size);
    c->coll_cards = malloc (size * sizeof (*c->coll_cards));
    if (!c->comm->hosts || !c->comm->scratch || !c->comm->lengths || !c->team_room ||
        !c->coll_cards || gsi_fault ("comm.memory"))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", c->plan->caller);
    return find_carrier (c);
}

static void write_card (const struct gsi_boot *boot, const struct gsi_plan *plan,
                        struct gsi_card *card)
{
    card->protocol = GSI_CARD_PROTOCOL;
    card->transport = (int32_t) plan->transport;
    card->device = plan->device;
    card->check = (int32_t) plan->check;
    card->allow_shared_gpu = (int32_t) gsi_env_int (GSI_ENV_ALLOW_SHARED_GPU);
    card->sharing = (int32_t) gsi_env_choice (GSI_ENV_GPU_SHARING);
    if (plan->parent) /* its parent's choice is what counts */
        card->sharing = is_of_shared (plan) ? GSI_SHARING_ALWAYS : GSI_SHARING_AUTO;
    snprintf (card->version, sizeof (card->version), "%s", gs_version ());
    memcpy (card->host, boot->host, sizeof (card->host));
}

static void put_failure (struct gsi_card *card, gs_status_t st)
{
    card->status = (int32_t) st;
    if (st)
        snprintf (card->text, sizeof (card->text), "%.*s", (int) sizeof (card->text) - 1,
                  gsi_last_text ());
}

gs_status_t gsi_create_decline (struct gsi_boot *boot, const struct gsi_plan *plan)
{
    struct gsi_card card = {.protocol = 0};
    gs_status_t st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", plan->caller);

    write_card (boot, plan, &card);
    put_failure (&card, st);
    if (!boot->ops->exchange (boot, &card, sizeof (card), NULL, plan->deadline_ns))
        gsi_boot_part (boot);
    return gsi_fail (st, "%s: out of memory", plan->caller);
}

/* Gives every rank all cards, and all the same verdict on them. */
static gs_status_t exchange_cards (struct create *c)
{
    struct gsi_boot *boot = c->comm->boot;
    gs_status_t st;

    if (gsi_boot_reserve (boot, sizeof (c->card)))
        return gsi_create_decline (boot, c->plan);
    st = boot->ops->exchange (boot, &c->card, sizeof (c->card), c->cards, c->plan->deadline_ns);
    if (st)
        return st;
    if ((st = gsi_cards_agree (c->cards, boot->size)))
        gsi_boot_part (boot);
    return st;
}

/* All ranks start over; [st] is how the other carrier was prepared here. */
static gs_status_t start_over (struct create *c, gs_status_t st)
{
    put_failure (&c->card, st);
    return exchange_cards (c);
}

/* Where hosts carry the data after all. */
static gs_status_t take_hosts (struct create *c)
{
    c->card.provided = (int32_t) gsi_coll_of_hosts (c->comm->topo.size);
    return start_over (c, take_provided (c));
}

/* Some rank cannot have a GPU. */
static gs_status_t fall_back (struct create *c)
{
    if (!c->comm->topo.rank)
        gsi_log (GS_LOG_WARN, "comm", "'%s' does not use GPUs: %s", c->comm->name,
                 c->choice.reason);
    return take_hosts (c);
}

/* Where NCCL cannot have all ranks. */
static gs_status_t share_gpus (struct create *c)
{
    c->ops = shared_ops (c->choice.ordinal);
    return start_over (c, prepare_carrier (c));
}

/* The variable by which Slurm or the user gave this process GPUs; NULL if there is none. */
static const char *gpus_given (void)
{
    static const char *const names[] = {"SLURM_GPUS_ON_NODE", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS",
                                        "CUDA_VISIBLE_DEVICES"};

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        const char *text = getenv (names[i]);
        if (text && *text && strcmp (text, "-1") && strcmp (text, "NoDevFiles") &&
            (i || strcmp (text, "0")))
            return names[i];
    }
    return NULL;
}

/* A job that pays for GPUs is told when it does not use them. */
static void warn_of_idle_gpus (const struct create *c)
{
    const gs_comm_t *comm = c->comm;
    const char *name = gpus_given ();

    if (!comm->topo.rank && !comm->boot->is_group && name && *c->card.text)
        gsi_log (GS_LOG_WARN, "comm",
                 "'%s' does not use GPUs though the job has some (%s=%s): %s. GS_TRANSPORT=nccl "
                 "makes this an error, GS_DEVICE=host says that it is meant",
                 comm->name, name, getenv (name), c->card.text);
}

/* Nobody has a GPU: those who could not prepare what all have now say why. */
static gs_status_t use_hosts (struct create *c)
{
    bool prepared = true;

    warn_of_idle_gpus (c);
    for (int r = 0; r < c->comm->topo.size; r++)
        prepared = prepared && c->cards[r].provided != GSI_TRANSPORT_AUTO;
    return prepared ? GS_OK : take_hosts (c);
}

/* Says once what is not as a job with GPUs would have it. */
static void warn_of_mixed (const struct create *c)
{
    const gs_comm_t *comm = c->comm;
    bool meant = true; /* all that have none asked for it */

    for (int r = 0; r < comm->topo.size; r++)
        meant = meant && (c->cards[r].gpus.count > 0 || c->cards[r].device == GS_DEVICE_HOST);
    if (!comm->topo.rank && !comm->boot->is_group)
        gsi_log (meant ? GS_LOG_INFO : GS_LOG_WARN, "comm",
                 "'%s' does not use NCCL, for not all ranks have a GPU: %s. Arrays on GPUs go by "
                 "way of the hosts",
                 comm->name, c->choice.reason);
}

/* Follows the choice that all ranks have made alike, which may take another exchange. */
static gs_status_t follow_choice (struct create *c)
{
    if (c->choice.fell_back)
        return fall_back (c);
    if (c->choice.mode == GSI_MODE_HOSTS)
        return use_hosts (c);
    if (c->choice.mode == GSI_MODE_MIXED)
        warn_of_mixed (c);
    if (!c->plan->parent &&
        (c->choice.mode == GSI_MODE_SHARED_GPUS || c->choice.mode == GSI_MODE_MIXED))
        return share_gpus (c);
    return GS_OK;
}

static void warn_of_hidden_gpus (const struct create *c)
{
    const gs_comm_t *comm = c->comm;
    int hidden[2];

    if (c->choice.mode == GSI_MODE_GPUS && !comm->topo.rank && !comm->boot->is_group &&
        gsi_gpu_map_hidden (c->cards, &comm->topo, c->coll_cards, hidden))
        gsi_log (
            GS_LOG_WARN, "comm",
            "ranks %d and %d (host %.71s) do not see each other's GPUs, so NCCL may not copy "
            "directly between them: with --gpus-per-node and without --gpus-per-task or "
            "--gpu-bind every rank sees all GPUs of its node, and takes one by local rank",
            hidden[0], hidden[1], c->cards[hidden[0]].host);
}

/* Decides, on all ranks alike, between GPUs and hosts, and opens the device. */
static gs_status_t choose_device (struct create *c)
{
    gs_comm_t *comm = c->comm;
    int ordinal;
    gs_status_t st = gsi_choice_make (c->cards, &comm->topo, c->coll_cards, &c->choice);

    if (st) {
        gsi_boot_part (comm->boot);
        return gsi_fail (st, "%s", c->choice.reason);
    }
    if ((st = follow_choice (c)))
        return st;
    warn_of_hidden_gpus (c);
    ordinal = c->choice.ordinal;
    if (!(st = gsi_device_open (ordinal, comm->timeout_ns, &comm->device)) &&
        !(st = gsi_inflight_open (comm)))
        st = gsi_staging_open (comm);
    comm->sees_gpus = gsi_device_gpus_used ();
    /* NCCL would wait for a rank whose GPU is ill. */
    return ordinal == GS_DEVICE_HOST && !gsi_coll_is_shared (c->ops)
               ? st
               : gsi_boot_agree (comm->boot, st, c->plan->deadline_ns);
}

/* What a wait inside the transport asks; in a create the cause is for the other rank to tell. */
static gs_status_t others (void *context)
{
    gs_comm_t *comm = context;
    struct gsi_call last = {.seq = comm->record.seq};
    gs_status_t st =
        comm->inflight ? gsi_inflight_peek (comm, &last) : gsi_peers_crossed (comm, last.seq);

    return st && !comm->coll ? gsi_fail (GS_ERR_STATE, "%s", gsi_last_text ()) : st;
}

/* What a notice of this rank tells of it. */
static void tell_notice (void *context, struct gsi_told *own)
{
    gsi_peers_own (context, own);
}

/* The first rank of this node that has died; -1 if none has. */
static int find_died (void *context)
{
    const gs_comm_t *comm = context;

    for (int r = 0; r < comm->topo.size; r++)
        if (gsi_peers_died (comm, r))
            return r;
    return -1;
}

/* Whether the GPU may have something of the communicator's, or a call is under way. */
static bool is_busy (void *context)
{
    gs_comm_t *comm = context;

    return !comm->coll || comm->coll->captured || gsi_inflight_is_busy (comm);
}

/*
 * Tells all ranks how the start went on this one, [st]. A fence as well: nobody goes on, into MPI
 * for instance, while others wait inside NCCL. Those come at their deadline at the latest.
 */
static gs_status_t report_start (struct create *c, gs_status_t st)
{
    gsi_failure_record (c->comm, st, 0);
    st = gsi_boot_agree (c->comm->boot, st, c->plan->deadline_ns + LATEST_NS);
    c->named = st != GS_OK;
    return st;
}

/* Starts the transport once all cards are read. */
static gs_status_t start_transport (struct create *c)
{
    gs_comm_t *comm = c->comm;
    size_t size = (size_t) comm->boot->size;
    struct gsi_coll_setup setup = {.boot = comm->boot,
                                   .topo = &comm->topo,
                                   .life = &comm->life,
                                   .deadline_ns = c->plan->deadline_ns,
                                   .others = others,
                                   .tell = tell_notice,
                                   .died = find_died,
                                   .busy = is_busy,
                                   .context = comm,
                                   .cards = c->coll_cards,
                                   .parent = c->plan->parent};
    gs_status_t st;

    for (size_t r = 0; r < size; r++)
        memcpy (comm->hosts[r], c->cards[r].host, GSI_HOST_BYTES);
    gsi_topo_build (&comm->topo, c->team_room, comm->boot->rank, comm->boot->size, host_of_card,
                    c->cards);
    c->team_room = NULL;
    if ((st = choose_device (c))) {
        c->named = true;
        return st;
    }
    if (!(st = gsi_inflight_hold (comm))) {
        for (size_t r = 0; r < size; r++)
            memcpy (c->coll_cards[r], c->cards[r].coll, GSI_COLL_CARD_BYTES);
        setup.device = comm->device;
        setup.room = c->coll_room;
        c->prepared = NULL;
        st = c->ops->open (&setup, &comm->coll);
        gsi_gpu_unlock (comm);
        gsi_inflight_rest (comm, st != GS_OK);
    }
    return c->ops->queued || gsi_coll_is_shared (c->ops) ? report_start (c, st) : st;
}

/* The new transport failed: others may wait for us still, and on GPUs they read our record. */
static gs_status_t give_up_create (gs_comm_t *comm, gs_status_t st)
{
    if (atomic_flag_test_and_set (&comm->failing)) /* the thread that watches was first */
        return gsi_failure_report (comm, NULL, st);
    st = gsi_failure_blame (comm, st);
    gsi_failure_record (comm, st, 0);
    comm->death = st;
    snprintf (comm->death_text, sizeof (comm->death_text), "%s", gsi_last_text ());
    atomic_store (&comm->told, true);
    if (comm->inflight)
        atomic_store (&comm->life, GSI_DEAD); /* which keeps the record */
    gsi_failure_tell_others (comm, st, 0);
    return st;
}

/* Gathers every rank's status over the new transport, so that all return the worst. */
static gs_status_t agree_on_create (gs_comm_t *comm, gs_status_t st, int64_t deadline_ns)
{
    struct gsi_call call = {.op = GSI_OP_NONE, .deadline_ns = deadline_ns};
    int32_t mine = (int32_t) st;
    const int32_t *all = comm->scratch;
    gs_status_t carried;

    gsi_inflight_now (comm, &call); /* also for who cannot take part: others wait for it here */
    if (!(carried = gsi_inflight_hold (comm))) {
        carried = gsi_staging_control (comm, &mine, comm->scratch, sizeof (mine), &call);
        gsi_gpu_unlock (comm);
    }
    if (carried)
        gsi_inflight_leave (comm);
    gsi_inflight_now (comm, NULL);
    if (carried)
        return give_up_create (comm, st ? st : carried);
    for (int r = 0; r < comm->topo.size && !st; r++)
        if (all[r])
            st = gsi_fail ((gs_status_t) all[r],
                           "rank %d (host %s) could not finish the create; "
                           "its own text says why",
                           r, comm->hosts[r]);
    return st;
}

/* Microseconds since [begin_ns], which becomes now. */
static double lap_us (int64_t *begin_ns)
{
    int64_t now_ns = gsi_now_ns (), took_ns = now_ns - *begin_ns;

    *begin_ns = now_ns;
    return (double) took_ns / 1e3;
}

/*
 * Adds to the text of [st] who has died since the cards were exchanged. The last rank to come may
 * have begun just then, and its deadline is as much later.
 */
static gs_status_t blame_create (struct create *c, gs_status_t st)
{
    struct gsi_boot *boot = c->comm->boot;

    if (!boot->ops->blame)
        return st;
    return boot->ops->blame (boot, st,
                             st == GS_ERR_TIMEOUT ? c->met_ns + c->plan->boot_timeout_ns : 0);
}

/* Whether [rank] is one of this node, and its process goes on. */
static bool record_goes_on (const void *comm, int rank)
{
    struct gsi_record_state other;

    return gsi_record_peek (&((const gs_comm_t *) comm)->record, rank, &other) &&
           gsi_record_runs (&other);
}

static bool record_halted (const void *comm, int rank)
{
    struct gsi_record_state other;

    return gsi_record_peek (&((const gs_comm_t *) comm)->record, rank, &other) &&
           gsi_record_halted (&other);
}

/*
 * Opens the flight record: before the exchange, so that ranks of the node see who goes on and who
 * has died in it, or behind it where that names the job.
 */
static gs_status_t open_record (gs_comm_t *comm)
{
    struct gsi_boot *boot = comm->boot;
    gs_status_t st;

    if (comm->record.file || !*boot->job)
        return GS_OK;
    st = gsi_record_open (&comm->record, boot->job, comm->name, comm->serial, boot->rank,
                          boot->size, boot->host);
    if (st)
        return st;
    boot->goes_on = record_goes_on;
    boot->halted = record_halted;
    boot->context = comm;
    return GS_OK;
}

/* The ranks have not met: the next communicator has the number of this one. */
static gs_status_t take_back (const gs_comm_t *comm, gs_status_t st)
{
    int next = comm->serial + 1;

    if (!comm->boot->own_job)
        atomic_compare_exchange_strong (&serials, &next, comm->serial);
    return st;
}

/* The collective part: from an open boot to a working communicator. */
static gs_status_t join (struct create *c)
{
    gs_comm_t *comm = c->comm;
    int64_t begin_ns = gsi_now_ns ();
    gs_status_t st, recorded;

    if (!comm->boot->rank && !comm->boot->is_group)
        gsi_env_warn_misspelt ();
    comm->serial = comm->boot->own_job ? c->plan->serial : atomic_fetch_add (&serials, 1);
    recorded = open_record (comm);
    write_card (comm->boot, c->plan, &c->card);
    st = c->plan->st ? gsi_fail (c->plan->st, "%s", c->plan->text) : prepare_create (c);
    put_failure (&c->card, st);
    comm->times.transport_us = lap_us (&begin_ns);
    st = exchange_cards (c);
    comm->times.exchange_us = lap_us (&begin_ns);
    c->met_ns = begin_ns;
    if (st)
        return take_back (comm, st);
    recorded = recorded ? recorded : open_record (comm);
    gsi_watchdog_expect (comm, c->plan->deadline_ns + LATEST_NS);
    gsi_watchdog_open (comm);
    if (!(st = start_transport (c)))
        st = agree_on_create (comm, recorded, c->plan->deadline_ns);
    gsi_watchdog_expect (comm, 0);
    if ((st == GS_ERR_TIMEOUT || st == GS_ERR_TRANSPORT) && !c->named && !c->ops->queued &&
        !gsi_coll_is_shared (c->ops)) /* whose ranks with a GPU tell by other ways */
        st = blame_create (c, st);
    if (!st && comm->boot->ops->settle)
        comm->boot->ops->settle (comm->boot);
    comm->times.transport_us += lap_us (&begin_ns);
    if (!st && !comm->topo.rank)
        gsi_log (GS_LOG_INFO, "comm",
                 "'%s': %d ranks on %d nodes, boot %s (%.1f ms), transport %s (%s, %.1f ms)",
                 comm->name, comm->topo.size, comm->topo.nodes, comm->boot->ops->name,
                 (comm->times.open_us + comm->times.exchange_us) / 1e3, gs_comm_transport (comm),
                 c->plan->transport == GS_TRANSPORT_AUTO ? c->choice.reason : "asked for",
                 comm->times.transport_us / 1e3);
    return st;
}

gs_status_t gsi_create_join (gs_comm_t *comm, const struct gsi_plan *plan)
{
    struct create *c = calloc (1, sizeof (*c));
    gs_status_t st;

    if (c)
        c->cards = calloc ((size_t) comm->boot->size, sizeof (*c->cards));
    if (!c || !c->cards) {
        free (c);
        return gsi_create_decline (comm->boot, plan);
    }
    c->comm = comm;
    c->plan = plan;
    st = join (c);
    free (c->team_room);
    free_room (c);
    free (c->coll_cards);
    free (c->cards);
    free (c);
    return st;
}
