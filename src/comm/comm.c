/* SPDX-License-Identifier: BSD-3-Clause */
/* comm - the public functions that make and end communicators. */
#include "core/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "base/sized.h"
#include "call/call.h"
#include "call/inflight.h"
#include "call/staging.h"
#include "call/traffic.h"
#include "call/watchdog.h"
#include "comm/create.h"
#include "p2p/p2p.h"

#define TELL_NS (60 * GSI_NS_PER_S) /* more than an abort of another thread takes */

static gs_status_t read_opts (const gs_comm_opts_t *given, struct gsi_plan *plan)
{
    gs_comm_opts_t taken = GS_COMM_OPTS_INIT;
    const gs_comm_opts_t *opts = &taken;
    char what[64];
    gs_status_t st;

    snprintf (what, sizeof (what), "%s: opts", plan->caller);
    if (given &&
        (st = gsi_sized_take (&taken, sizeof (taken), offsetof (gs_comm_opts_t, reserved), given,
                              what, "GS_COMM_OPTS_INIT")))
        return st;
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
    if (opts->transport < GS_TRANSPORT_AUTO || opts->transport > GS_TRANSPORT_NCCL)
        return gsi_fail (GS_ERR_ARG, "%s: unknown transport %d; see gs_transport_t in gradsync.h",
                         plan->caller, (int) opts->transport);
    if (opts->transport != GS_TRANSPORT_AUTO)
        plan->transport = opts->transport;
    if (opts->device < GS_DEVICE_HOST)
        return gsi_fail (GS_ERR_ARG,
                         "%s: device %d is neither an ordinal nor GS_DEVICE_AUTO (%d) nor "
                         "GS_DEVICE_HOST (%d)",
                         plan->caller, opts->device, GS_DEVICE_AUTO, GS_DEVICE_HOST);
    if (opts->device != GS_DEVICE_AUTO)
        plan->device = opts->device;
    return GS_OK;
}

/*
 * Begins a create: NULL in [comm], and the plan by options and environment. Where that fails the
 * plan has usable deadlines all the same: the failure is in it, and travels on the rank's card,
 * so that the other ranks need not wait for this one.
 */
static gs_status_t begin_create (const char *caller, const gs_comm_opts_t *opts, gs_comm_t **comm,
                                 struct gsi_plan *plan)
{
    int64_t begin_ns = gsi_now_ns ();
    gs_status_t st;

    if (!comm)
        return gsi_fail (GS_ERR_ARG, "%s: comm is NULL", caller);
    *comm = NULL;
    if ((st = gsi_process_use (caller)))
        return st;
    st = gsi_env_check ();
    gsi_log_configure ();
    *plan = (struct gsi_plan){.caller = caller, .name = "world", .begin_ns = begin_ns};
    plan->transport = (gs_transport_t) gsi_env_choice (GSI_ENV_TRANSPORT);
    plan->device = (int) gsi_env_int (GSI_ENV_DEVICE);
    plan->check = (enum gsi_check) gsi_env_choice (GSI_ENV_CHECK);
    plan->timeout_ns = gsi_env_int (GSI_ENV_TIMEOUT_MS) * GSI_NS_PER_MS;
    plan->boot_timeout_ns = gsi_env_int (GSI_ENV_BOOT_TIMEOUT_MS) * GSI_NS_PER_MS;
    if ((plan->st = st ? st : read_opts (opts, plan)))
        snprintf (plan->text, sizeof (plan->text), "%s", gsi_last_text ());
    plan->deadline_ns = begin_ns + plan->boot_timeout_ns;
    return GS_OK;
}

/* Another thread may be giving it up still, or leaving a call; false: it hangs there, in a
 * library maybe. */
static bool await_users (gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_for (TELL_NS, 0);

    while (atomic_load (&comm->users) && gsi_wait_on (&wait))
        ;
    return !atomic_load (&comm->users);
}

/* Of a communicator that has been given up; who is inside a call leaves it soon, and none comes
 * any more. False: it hangs there. */
static bool await_calls (gs_comm_t *comm)
{
    struct gsi_wait wait = gsi_wait_for (TELL_NS, 0);
    bool alone;

    while (!(alone = !atomic_flag_test_and_set (&comm->busy)) && gsi_wait_on (&wait))
        ;
    return alone;
}

/* Frees whatever of [comm] there is, or keeps all of it; local. */
static void dismantle (gs_comm_t *comm)
{
    bool died;

    if (!await_users (comm)) {
        gsi_log (GS_LOG_WARN, "comm",
                 "'%s' is kept: a thread that aborts or uses it does not return", comm->name);
        return;
    }
    died = atomic_load (&comm->life) != GSI_ALIVE;
    gsi_watchdog_close (comm);
    gsi_inflight_settle (comm);
    gsi_inflight_close (comm);
    if (comm->coll)
        comm->coll->ops->discard (comm->coll);
    gsi_p2p_close (comm);
    gsi_staging_close (comm);
    gsi_record_close (&comm->record, died);
    gsi_device_close (comm->device);
    gsi_boot_close (comm->boot);
    gsi_topo_clear (&comm->topo);
    free (comm->hosts);
    free (comm->scratch);
    free (comm->lengths);
    comm->magic = 0;
    free (comm);
}

gs_status_t gsi_comm_build (struct gsi_boot *boot, const struct gsi_plan *plan, gs_comm_t **out)
{
    gs_comm_t *comm = calloc (1, sizeof (*comm));
    gs_status_t st;

    if (!comm) {
        st = gsi_create_decline (boot, plan);
        gsi_boot_close (boot);
        return st;
    }
    comm->magic = GSI_COMM_MAGIC;
    comm->boot = boot;
    comm->culprit = boot->rank;
    memcpy (comm->name, plan->name, sizeof (comm->name));
    comm->timeout_ns = plan->timeout_ns;
    comm->boot_timeout_ns = plan->boot_timeout_ns;
    comm->check = plan->check;
    comm->times.size = sizeof (comm->times);
    comm->times.open_us = (double) (gsi_now_ns () - plan->begin_ns) / 1e3;
    if (!boot->is_group) {
        gsi_fault_identity (boot->rank);
        gsi_log_identity (boot->rank, boot->size);
    }
    if ((st = gsi_create_join (comm, plan))) {
        dismantle (comm);
        return st;
    }
    *out = comm;
    return GS_OK;
}

gs_status_t gs_comm_create (const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct gsi_plan plan;
    gs_status_t st = begin_create ("gs_comm_create", opts, comm, &plan);

    if (st || (st = gsi_boot_open (plan.transport, plan.deadline_ns, &boot)))
        return gsi_result (st);
    return gsi_result (gsi_comm_build (boot, &plan, comm));
}

gs_status_t gs_comm_create_from_id (const gs_unique_id_t *id, int rank, int size,
                                    const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct gsi_plan plan;
    gs_status_t st;

    if (comm)
        *comm = NULL;
    if (!id)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create_from_id: id is NULL");
    if (size < 1 || rank < 0 || rank >= size)
        return gsi_fail (GS_ERR_ARG, "gs_comm_create_from_id: rank %d of size %d is out of range",
                         rank, size);
    if ((st = begin_create ("gs_comm_create_from_id", opts, comm, &plan)) ||
        (st = gsi_boot_id_open (id, rank, size, &boot)))
        return gsi_result (st);
    return gsi_result (gsi_comm_build (boot, &plan, comm));
}

gs_status_t gs_comm_from_mpi_fint (int mpi_comm, const gs_comm_opts_t *opts, gs_comm_t **comm)
{
    struct gsi_boot *boot;
    struct gsi_plan plan;
    gs_status_t st = begin_create ("gs_comm_from_mpi", opts, comm, &plan);

    if (st || (st = gsi_boot_from_mpi (mpi_comm, &boot)))
        return gsi_result (st);
    return gsi_result (gsi_comm_build (boot, &plan, comm));
}

/* Whether no other thread gives it up; one that comes later leaves the transport alone. */
static gs_status_t be_alone (gs_comm_t *comm)
{
    atomic_store (&comm->closing, true);
    if (await_users (comm) && !gsi_record_verdict (&comm->record))
        return GS_OK;
    return gsi_fail (GS_ERR_STATE, "the communicator was aborted");
}

/* Ends a live communicator together with the other ranks. */
static gs_status_t close_together (gs_comm_t *comm)
{
    struct gsi_request r = {.comm = comm, .op = GSI_OP_DESTROY};
    bool lasts = comm->coll->ops->lasts;
    struct gsi_call call;
    gs_status_t st = gsi_call_begin (&r, NULL, &call);

    if (st)
        return st;
    st = gsi_inflight_drain (comm, &call);
    if (!st)
        st = gsi_staging_meet (comm, &call);
    gsi_inflight_rest (comm, true);
    if (!st)
        st = be_alone (comm);
    if (!st)
        st = comm->coll->ops->close (comm->coll, &call);
    if (!st && !lasts)
        comm->coll = NULL;
    return gsi_call_end (comm, &call, st);
}

gs_status_t gs_comm_destroy (gs_comm_t *comm)
{
    gs_status_t st;

    if (!comm)
        return gsi_result (GS_OK);
    if ((st = gsi_comm_valid (comm, "gs_comm_destroy")))
        return gsi_result (st);
    if (atomic_load (&comm->features))
        return gsi_fail (
            GS_ERR_STATE,
            "gs_comm_destroy: communicator '%s' still has %d reducers, boundaries, halos, "
            "checkpoint plans or pools: end them first with gs_reducer_destroy, "
            "gs_boundary_destroy, gs_halo_destroy, gs_ckpt_destroy, gs_pool_destroy",
            comm->name, atomic_load (&comm->features));
    if ((st = gsi_p2p_none_open (comm, "gs_comm_destroy")))
        return gsi_result (st);
    gsi_traffic_report (comm);
    if (atomic_load (&comm->life) == GSI_ALIVE)
        st = close_together (comm);
    if (st == GS_ERR_STATE && atomic_load (&comm->life) == GSI_ALIVE)
        return gsi_result (st); /* another thread is inside a call: nothing was destroyed */
    if (st && atomic_load (&comm->life) == GSI_ALIVE)
        gs_comm_abort (comm); /* the others are in some call and must not wait for this rank */
    if (!await_calls (comm))
        return gsi_fail (GS_ERR_STATE,
                         "gs_comm_destroy: another thread is inside a call on '%s': nothing was "
                         "destroyed",
                         comm->name);
    dismantle (comm);
    /* GS_ERR_STATE would say that nothing was destroyed. */
    return gsi_result (st == GS_ERR_STATE ? GS_ERR_TRANSPORT : st);
}
