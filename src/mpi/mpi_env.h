/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_env - how the module lives in a process with MPI: whose MPI it is.
 *
 * If the application has initialised MPI we use it and never finalize it. If not, we initialise
 * it with MPI_THREAD_MULTIPLE and finalize it when the process exits, unless a transport is still
 * open or has unfinished transfers: MPI_Finalize would then wait for ranks that may never come.
 * For others it waits GS_BOOT_TIMEOUT_MS.
 */
#ifndef GS_MPI_MPI_ENV_H
#define GS_MPI_MPI_ENV_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

/* Whether MPI is up: initialised by anybody, not finalized. */
bool gsi_mpi_env_up (void);

/* GS_ERR_STATE once it was, for it never starts again. */
gs_status_t gsi_mpi_env_not_finalized (void);

/*
 * Whether it is up since a gsi_mpi_env_start, at no cost, and no call that did not return is in
 * the way.
 */
bool gsi_mpi_env_usable (void);

/* GS_ERR_TRANSPORT, with a text, where such a call is in the way. */
gs_status_t gsi_mpi_env_enter (void);

/*
 * Makes MPI up if it is not, and checks that this thread may call it. GS_ERR_TIMEOUT if MPI,
 * which waits for all ranks, has not started by [deadline_ns]; another call then waits on.
 */
gs_status_t gsi_mpi_env_start (int64_t deadline_ns);

/*
 * Runs [work] of [argument], a call of MPI that waits for other ranks and gives a code of MPI's,
 * in a thread of its own, and waits for it. One that has not returned by [deadline_ns], a second
 * at least, is left behind with what it has: GS_ERR_TIMEOUT, [argument] is kept, and below
 * MPI_THREAD_MULTIPLE MPI is not usable until it returns: GS_ERR_TRANSPORT till then. N.B.
 * Below MPI_THREAD_SERIALIZED it is not the thread that MPI asks for; no library minds (Open MPI,
 * MPICH) as long as the others wait.
 */
gs_status_t gsi_mpi_env_by (const char *what, int (*work) (void *), void *argument,
                            int64_t deadline_ns);

/* What all ranks of [comm] do while a create meets: MPI_Comm_idup, or MPI_Iallgather into [all].
 */
struct gsi_mpi_collective {
    MPI_Comm comm, made;
    const void *own; /* [bytes] of this rank */
    void *all;       /* [size * bytes], or NULL */
    int bytes;
    int64_t deadline_ns;
    bool late;
};

/*
 * Does that as gsi_mpi_env_by would: MPI asks PMIx for the address of a rank in its first message
 * to it, and waits for one that has died (Open MPI 4). Nobody watches a create that has not met.
 * After a failure MPI may still use [own] and [all], and after GS_ERR_TIMEOUT [c].
 */
gs_status_t gsi_mpi_env_collective (const char *what, struct gsi_mpi_collective *c,
                                    int64_t deadline_ns);

/*
 * Whether MPI was never started and cannot be once PMIx is open in the process. N.B. Open MPI 5
 * asks PMIx who it is only if it is the first to open it, and else looks for the ranks of a job
 * without a name.
 */
bool gsi_mpi_env_before_pmix (void);

/*
 * Whether all tasks of the launcher, and [ranks] of us, are in MPI_COMM_WORLD: where launcher and
 * MPI library do not fit, that has one rank. GS_ERR_BOOT names both.
 */
gs_status_t gsi_mpi_env_check_world (int ranks);

/* A transport begins to use MPI, [by] 1, or has ended, -1. */
void gsi_mpi_env_count (int by);

/* "what: MPI's text" with status GS_ERR_TRANSPORT; GS_ERR_MISMATCH for a truncated message. */
gs_status_t gsi_mpi_env_fail (const char *what, int rc);

/*
 * From now on MPI still owns [memory] (or NULL), because of a transfer that did not end: it is
 * never freed, and MPI is not finalized by us, which would wait for that transfer.
 */
void gsi_mpi_env_keep (void *memory);

#endif /* GS_MPI_MPI_ENV_H */
