/* SPDX-License-Identifier: BSD-3-Clause */
/* comm - makes and ends communicators. */
#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "comm/call.h"
#include "comm/card.h"

/* How many communicators this process has made: the same on all ranks of one that all make. */
static atomic_int serials;

/* The options in force. */
struct plan {
    const char *caller;
    char name[GSI_RECORD_NAME];
    gs_transport_t transport;
    int device;
    int64_t timeout_ns, boot_timeout_ns;
    char text[GSI_TEXT_MAX]; /* why it failed; opening the boot has texts of its own */
};

static gs_status_t read_opts (const gs_comm_opts_t *opts, struct plan *plan)
{
    static const gs_comm_opts_t standard = GS_COMM_OPTS_INIT;

    if (!opts)
        opts = &standard;
    if (opts->size != sizeof (*opts))
        return gsi_fail (GS_ERR_ARG,
                         "%s: opts->size is %zu, not %zu: start from "
                         "GS_COMM_OPTS_INIT",
                         plan->caller, opts->size, sizeof (*opts));
    if (opts->timeout_ms < 0 || opts->boot_timeout_ms < 0 ||
        opts->timeout_ms > INT64_MAX / 2 / GSI_NS_PER_MS ||
        opts->boot_timeout_ms > INT64_MAX / 2 / GSI_NS_PER_MS)
        return gsi_fail (GS_ERR_ARG,
                         "%s: timeout_ms %lld or boot_timeout_ms %lld is not a time "
                         "in milliseconds",
                         plan->caller, (long long) opts->timeout_ms,
                         (long long) opts->boot_timeout_ms);
    if (opts->name)
        snprintf (plan->name, sizeof (plan->name), "%s", opts->name);
    if (opts->timeout_ms)
        plan->timeout_ns = opts->timeout_ms * GSI_NS_PER_MS;
    if (opts->boot_timeout_ms)
        plan->boot_timeout_ns = opts->boot_timeout_ms * GSI_NS_PER_MS;
    if (opts->transport != GS_TRANSPORT_AUTO)
        plan->transport = opts->transport;
    plan->device = opts->device;
    return GS_OK;
}

/*
 * Joins options and environment. On failure the plan has usable deadlines all the same: the
 * failure travels on the rank's card, so that the other ranks need not wait for this one.
 */
static gs_status_t make_plan (const char *caller, const gs_comm_opts_t *opts, struct plan *plan)
{
    gs_status_t st = gsi_env_check ();

    gsi_log_configure ();
    *plan = (struct plan){.caller = caller, .name = "world"};
    plan->transport = (gs_transport_t) gsi_env_choice (GSI_ENV_TRANSPORT);
    plan->device = GS_DEVICE_AUTO;
    plan->timeout_ns = gsi_env_int (GSI_ENV_TIMEOUT_MS) * GSI_NS_PER_MS;
    plan->boot_timeout_ns = gsi_env_int (GSI_ENV_BOOT_TIMEOUT_MS) * GSI_NS_PER_MS;
    if (!st)
        st = read_opts (opts, plan);
    if (st)
        snprintf (plan->text, sizeof (plan->text), "%s", gs_last_error ());
    return st;
}

/* Frees whatever of [comm] there is; local. */
static void dismantle (gs_comm_t *comm)
{
    bool died = atomic_load (&comm->life) != GSI_ALIVE;

    if (comm->coll)
        comm->coll->ops->discard (comm->coll);
    gsi_record_close (&comm->record, died);
    gsi_device_close (comm->device);
    gsi_boot_close (comm->boot);
    gsi_team_clear (&comm->team);
    free (comm->hosts);
    free (comm->scratch);
    comm->magic = 0;
    free (comm);
}

static const char *host_of_card (const void *cards, int rank)
{
    return ((const struct gsi_card *) cards)[rank].host;
}

/* The parts of a create that no other rank takes part in; a failure goes onto the card. */
static gs_status_t prepare (gs_comm_t *comm, const struct plan *plan,
                            const struct gsi_coll_ops **ops, struct gsi_card *card,
                            const char **reason)
{
    size_t size = (size_t) comm->boot->size;
    gs_status_t st;

    comm->hosts = calloc (size, sizeof (*comm->hosts));
    comm->scratch = calloc (size, GSI_SCRATCH_BYTES);
    if (!comm->hosts || !comm->scratch || gsi_fault ("comm.memory"))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", plan->caller);
    if ((st = gsi_device_open (plan->device, &comm->device)))
        return st;
    memcpy (card->device, comm->device->id, sizeof (card->device));
    if ((st = gsi_coll_choose (plan->transport, comm->boot->size, ops, reason)))
        return st;
    return (*ops)->prepare ? (*ops)->prepare (comm->boot, card->coll) : GS_OK;
}

static void fill_card (const gs_comm_t *comm, const struct plan *plan, gs_status_t st,
                       struct gsi_card *card)
{
    card->protocol = GSI_CARD_PROTOCOL;
    card->status = (int32_t) st;
    card->transport = (int32_t) plan->transport;
    card->check = gsi_env_choice (GSI_ENV_CHECK);
    snprintf (card->version, sizeof (card->version), "%s", gs_version ());
    memcpy (card->host, comm->boot->host, sizeof (card->host));
    if (st)
        snprintf (card->text, sizeof (card->text), "%.*s", (int) sizeof (card->text) - 1,
                  gs_last_error ());
}

/* Starts the transport once all cards are read. */
static gs_status_t start (gs_comm_t *comm, const struct gsi_coll_ops *ops,
                          const struct gsi_card *cards, int64_t deadline_ns)
{
    size_t size = (size_t) comm->boot->size;
    struct gsi_coll_setup setup = {.boot = comm->boot,
                                   .team = &comm->team,
                                   .device = comm->device,
                                   .life = &comm->life,
                                   .deadline_ns = deadline_ns};
    char (*coll_cards)[GSI_COLL_CARD_BYTES];
    gs_status_t st;

    for (size_t r = 0; r < size; r++)
        memcpy (comm->hosts[r], cards[r].host, GSI_HOST_BYTES);
    if ((st = gsi_team_build (&comm->team, comm->boot->rank, comm->boot->size, host_of_card,
                              cards)))
        return st;
    if (!(coll_cards = malloc (size * sizeof (*coll_cards))))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    for (size_t r = 0; r < size; r++)
        memcpy (coll_cards[r], cards[r].coll, GSI_COLL_CARD_BYTES);
    setup.cards = coll_cards;
    st = ops->open (&setup, &comm->coll);
    free (coll_cards);
    return st;
}

/* Gathers every rank's status over the new transport, so that all return the worst. */
static gs_status_t agree (gs_comm_t *comm, gs_status_t st, int64_t deadline_ns)
{
    struct gsi_call call = {.op = GSI_OP_NONE, .deadline_ns = deadline_ns};
    int32_t mine = (int32_t) st;
    const int32_t *all = comm->scratch;
    gs_status_t carried =
        comm->coll->ops->allgather (comm->coll, &mine, comm->scratch, sizeof (mine), &call);

    if (carried && comm->coll->ops->notify_abort)
        comm->coll->ops->notify_abort (comm->coll, 0); /* others may wait for us still */
    if (carried)
        return st ? st : carried;
    for (int r = 0; r < comm->team.size && !st; r++)
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

/* The collective part: from an open boot to a working communicator. */
static gs_status_t join (gs_comm_t *comm, const struct plan *plan, gs_status_t planned,
                         int64_t deadline_ns)
{
    const struct gsi_coll_ops *ops = NULL;
    const char *reason = "";
    struct gsi_card *cards = calloc ((size_t) comm->boot->size, sizeof (*cards));
    struct gsi_card card = {0};
    int64_t begin_ns = gsi_now_ns ();
    gs_status_t st = planned ? gsi_fail (planned, "%s", plan->text) : GS_OK;

    if (!st)
        st = prepare (comm, plan, &ops, &card, &reason);
    fill_card (comm, plan, st, &card);
    if (!cards)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", plan->caller);
    comm->times.transport_us = lap_us (&begin_ns);
    st = comm->boot->ops->exchange (comm->boot, &card, sizeof (card), cards, deadline_ns);
    comm->times.exchange_us = lap_us (&begin_ns);
    if (!st)
        st = gsi_cards_agree (cards, comm->boot->size);
    if (!st)
        st = start (comm, ops, cards, deadline_ns);
    free (cards);
    if (st)
        return st;
    st = gsi_record_open (&comm->record, comm->boot->job, comm->name,
                          atomic_fetch_add (&serials, 1), comm->team.rank, comm->team.size,
                          comm->boot->host);
    st = agree (comm, st, deadline_ns);
    comm->times.transport_us += lap_us (&begin_ns);
    if (!st && !comm->team.rank)
        gsi_log (GS_LOG_INFO, "comm",
                 "'%s': %d ranks on %d nodes, boot %s (%.1f ms), transport %s (%s, %.1f ms)",
                 comm->name, comm->team.size, comm->team.nodes, comm->boot->ops->name,
                 (comm->times.open_us + comm->times.exchange_us) / 1e3, ops->name, reason,
                 comm->times.transport_us / 1e3);
    return st;
}

/* Makes a communicator over [boot], which it takes over, also on failure. */
static gs_status_t create_over (struct gsi_boot *boot, const struct plan *plan,
                                gs_status_t planned, double open_us, int64_t deadline_ns,
                                gs_comm_t **out)
{
    gs_comm_t *comm = calloc (1, sizeof (*comm));
    gs_status_t st;

    if (!comm) {
        gsi_boot_close (boot);
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", plan->caller);
    }
    comm->magic = GSI_COMM_MAGIC;
    comm->boot = boot;
    memcpy (comm->name, plan->name, sizeof (comm->name));
    comm->timeout_ns = plan->timeout_ns;
    comm->check = (enum gsi_check) gsi_env_choice (GSI_ENV_CHECK);
    comm->times.size = sizeof (comm->times);
    comm->times.open_us = open_us;
    gsi_fault_identity (boot->rank);
    gsi_log_identity (boot->rank, boot->size);
    if ((st = join (comm, plan, planned, deadline_ns))) {
        dismantle (comm);
        return st;
    }
    *out = comm;
    return GS_OK;
}

gs_status_t gs_comm_create (const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct plan plan;
    gs_status_t st, planned;
    int64_t begin_ns = gsi_now_ns ();

    if (!comm)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create: comm is NULL");
    *comm = NULL;
    planned = make_plan ("gs_comm_create", opts, &plan);
    if ((st = gsi_boot_open (&boot)))
        return st;
    return create_over (boot, &plan, planned, (double) (gsi_now_ns () - begin_ns) / 1e3,
                        begin_ns + plan.boot_timeout_ns, comm);
}

gs_status_t gs_comm_create_from_id (const gs_unique_id_t *id, int rank, int size,
                                    const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct plan plan;
    gs_status_t st, planned;
    int64_t begin_ns = gsi_now_ns ();

    if (!comm)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create_from_id: comm is NULL");
    *comm = NULL;
    if (!id)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create_from_id: id is NULL");
    if (size < 1 || rank < 0 || rank >= size)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create_from_id: rank %d of size %d is out of range",
                         rank, size);
    planned = make_plan ("gs_comm_create_from_id", opts, &plan);
    if ((st = gsi_boot_id_open (id, rank, size, &boot)))
        return st;
    return create_over (boot, &plan, planned, (double) (gsi_now_ns () - begin_ns) / 1e3,
                        begin_ns + plan.boot_timeout_ns, comm);
}

gs_status_t gs_comm_from_mpi_fint (int mpi_comm, const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct plan plan;
    gs_status_t st, planned;
    int64_t begin_ns = gsi_now_ns ();

    if (!comm)
        return gsi_fail (GS_ERR_ARG, "gs_comm_from_mpi: comm is NULL");
    *comm = NULL;
    planned = make_plan ("gs_comm_from_mpi", opts, &plan);
    if ((st = gsi_boot_from_mpi (mpi_comm, &boot)))
        return st;
    return create_over (boot, &plan, planned, (double) (gsi_now_ns () - begin_ns) / 1e3,
                        begin_ns + plan.boot_timeout_ns, comm);
}

/* Ends a live communicator together with the other ranks. */
static gs_status_t close_together (gs_comm_t *comm)
{
    struct gsi_call call;
    gs_status_t st = gsi_call_begin (comm, GSI_OP_DESTROY, 0, (gs_dtype_t) 0, 0, NULL, &call);

    if (st)
        return st;
    st = comm->coll->ops->close (comm->coll, &call);
    if (!st)
        comm->coll = NULL;
    return gsi_call_end (comm, &call, st);
}

gs_status_t gs_comm_destroy (gs_comm_t *comm)
{
    gs_status_t st;

    if (!comm)
        return GS_OK;
    if ((st = gsi_comm_valid (comm, "gs_comm_destroy")))
        return st;
    if (atomic_load (&comm->life) == GSI_ALIVE)
        st = close_together (comm);
    if (st == GS_ERR_STATE && atomic_load (&comm->life) == GSI_ALIVE)
        return st; /* another thread is inside a call: nothing was destroyed */
    if (st == GS_ERR_MISMATCH)
        gs_comm_abort (comm); /* the others are in another call and must not wait for this rank */
    dismantle (comm);
    return st;
}
