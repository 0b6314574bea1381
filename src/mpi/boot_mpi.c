/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_mpi - the ranks of an MPI communicator: MPI_COMM_WORLD, or one the application gives.
 *
 * The communicator is duplicated in the first exchange, without blocking; nothing is ever sent
 * on the application's own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "boot/boot.h"
#include "mpi/mpi_env.h"
#include "mpi/net_mpi.h"

extern const struct gsi_boot_mpi_entry gsi_boot_mpi;

struct boot_mpi {
    struct gsi_boot base;
    MPI_Comm theirs; /* borrowed until the first exchange */
    MPI_Comm own;    /* the duplicate, until the transport takes it */

    struct gsi_mpi_collective *duplicate; /* what the first exchange makes [own] by */
    struct exchange *next;                /* of the next exchange */
    size_t each;                          /* bytes of a rank in it */
};

struct exchange {
    struct gsi_mpi_collective call;
    char said[]; /* [size + 1] what each rank says, this one's first */
};

static gs_status_t open_over (MPI_Comm theirs, struct gsi_boot **out)
{
    struct boot_mpi *boot = calloc (1, sizeof (*boot));

    if (!boot)
        return gsi_fail (GS_ERR_NOMEM, "boot mpi: out of memory");
    boot->base.ops = &gsi_boot_mpi.ops;
    boot->base.own_job = true;
    boot->theirs = theirs;
    boot->own = MPI_COMM_NULL;
    MPI_Comm_rank (theirs, &boot->base.rank);
    MPI_Comm_size (theirs, &boot->base.size);
    gsi_process_host (boot->base.host, sizeof (boot->base.host));
    *out = &boot->base;
    return GS_OK;
}

/* MPI is up already: start has done it. */
static gs_status_t open_world (int64_t deadline_ns, struct gsi_boot **out)
{
    gs_status_t st = gsi_mpi_env_check_world (0);

    (void) deadline_ns;
    return st ? st : open_over (MPI_COMM_WORLD, out);
}

static gs_status_t from_comm (int handle, struct gsi_boot **out)
{
    MPI_Comm theirs;
    gs_status_t st;
    int inter = 0;

    if (!gsi_mpi_env_up ())
        return gsi_fail (GS_ERR_STATE, "gs_comm_from_mpi: MPI is not initialised, or finalized "
                                       "already: call it between MPI_Init and MPI_Finalize");
    if ((st = gsi_mpi_env_start (0)) /* only checks the thread */ ||
        (st = gsi_mpi_env_check_world (0)))
        return st;
    theirs = MPI_Comm_f2c ((MPI_Fint) handle);
    if (theirs == MPI_COMM_NULL)
        return gsi_fail (GS_ERR_ARG, "gs_comm_from_mpi: the communicator is MPI_COMM_NULL");
    MPI_Comm_test_inter (theirs, &inter);
    if (inter)
        return gsi_fail (GS_ERR_ARG, "gs_comm_from_mpi: an intercommunicator has two groups: "
                                     "merge it first (MPI_Intercomm_merge)");
    return open_over (theirs, out);
}

/* Duplicates the communicator; the other ranks may still be on their way. */
static gs_status_t duplicate (struct boot_mpi *boot, int64_t deadline_ns)
{
    struct gsi_mpi_collective *call = boot->duplicate;
    gs_status_t st;

    *call = (struct gsi_mpi_collective){.comm = boot->theirs};
    if ((st = gsi_mpi_env_collective ("MPI_Comm_idup", call, deadline_ns)) == GS_ERR_TIMEOUT) {
        gsi_mpi_env_keep (call);
        boot->duplicate = NULL;
        return gsi_fail (st,
                         "bootstrap: " GSI_LATE_BOOT "; not all %d ranks "
                         "of the MPI communicator made a gradsync communicator of it, or MPI did "
                         "not reach them",
                         boot->base.size);
    }
    if (st)
        return st;
    boot->own = call->made;
    MPI_Comm_set_errhandler (boot->own, MPI_ERRORS_RETURN);
    return GS_OK;
}

static gs_status_t mpi_boot_reserve (struct gsi_boot *base, size_t bytes)
{
    struct boot_mpi *boot = (struct boot_mpi *) base;
    size_t each = bytes + GSI_JOB_BYTES;

    if (boot->each != each) {
        free (boot->next);
        boot->next = NULL;
        boot->each = each;
    }
    if (!boot->next)
        boot->next = calloc (1, sizeof (*boot->next) + ((size_t) base->size + 1) * each);
    if (!boot->duplicate)
        boot->duplicate = malloc (sizeof (*boot->duplicate));
    return boot->next && boot->duplicate ? GS_OK
                                         : gsi_fail (GS_ERR_NOMEM, "boot mpi: out of memory");
}

/* A job's name made by rank 0: its host, process and the time. */
static void name_job (char *job, const char *host)
{
    snprintf (job, GSI_JOB_BYTES, "mpi-%s-%ld-%lld", host, (long) getpid (),
              (long long) gsi_wall_ns ());
}

static gs_status_t mpi_boot_exchange (struct gsi_boot *base, const void *card, size_t bytes,
                                      void *cards, int64_t deadline_ns)
{
    struct boot_mpi *boot = (struct boot_mpi *) base;
    size_t each = bytes + GSI_JOB_BYTES;
    struct exchange *x;
    gs_status_t st;

    if (!cards)
        return GS_OK; /* the others see that this rank has not come */
    if ((st = mpi_boot_reserve (base, bytes)) ||
        (boot->own == MPI_COMM_NULL && (st = duplicate (boot, deadline_ns))))
        return st;
    /* Every rank's bytes: its card, and a name for the job of which rank 0's counts. */
    x = boot->next;
    boot->next = NULL;
    memcpy (x->said, card, bytes);
    name_job (x->said + bytes, base->host);
    x->call = (struct gsi_mpi_collective){
        .comm = boot->own, .own = x->said, .all = x->said + each, .bytes = (int) each};
    if ((st = gsi_mpi_env_collective ("bootstrap: MPI_Iallgather", &x->call, deadline_ns))) {
        gsi_mpi_env_keep (x);
        return st == GS_ERR_TIMEOUT
                   ? gsi_fail (st, "bootstrap: " GSI_LATE_BOOT " in MPI_Iallgather: a rank has "
                                   "died, or MPI does not reach it")
                   : st;
    }
    for (int r = 0; r < base->size; r++)
        memcpy ((char *) cards + (size_t) r * bytes, x->said + each * (size_t) (r + 1), bytes);
    memcpy (base->job, x->said + each + bytes, GSI_JOB_BYTES);
    free (x);
    return GS_OK;
}

MPI_Comm gsi_boot_mpi_take (struct gsi_boot *base)
{
    struct boot_mpi *boot = (struct boot_mpi *) base;
    MPI_Comm own = MPI_COMM_NULL;

    if (base->ops == &gsi_boot_mpi.ops) {
        own = boot->own;
        boot->own = MPI_COMM_NULL;
    }
    return own;
}

static int free_comm (void *comm)
{
    return MPI_Comm_free (comm);
}

/* Of communicators an MPI library has some thousands. */
static void mpi_boot_settle (struct gsi_boot *base)
{
    struct boot_mpi *boot = (struct boot_mpi *) base;
    struct gsi_mpi_collective *call = boot->duplicate;
    gs_status_t st;

    if (gsi_boot_mpi_take (base) == MPI_COMM_NULL)
        return;
    st = gsi_mpi_env_by ("MPI_Comm_free", free_comm, &call->made, 0);
    if (st == GS_ERR_NOMEM) /* the others are in it, which need not wait for this rank */
        free_comm (&call->made);
    if (st != GS_ERR_TIMEOUT)
        return;
    boot->duplicate = NULL; /* and it is MPI's */
    gsi_log (GS_LOG_WARN, "mpi", "%s: MPI may be stuck in it", gsi_last_text ());
}

static void close_mpi (struct gsi_boot *base)
{
    struct boot_mpi *boot = (struct boot_mpi *) base;

    free (boot->next);
    free (boot->duplicate);
    free (base); /* a duplicate stays if the create failed: freeing it is collective */
}

const struct gsi_boot_mpi_entry gsi_boot_mpi = {
    .ops = {.name = "mpi",
            .open = open_world,
            .reserve = mpi_boot_reserve,
            .exchange = mpi_boot_exchange,
            .settle = mpi_boot_settle,
            .close = close_mpi},
    .initialized = gsi_mpi_env_up,
    .before_pmix = gsi_mpi_env_before_pmix,
    .start = gsi_mpi_env_start,
    .from_comm = from_comm,
};
