/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch - what the launcher tells this process about the ranks that were started with it, and
 * whether those that were found are all of them.
 */
#ifndef GS_BOOT_LAUNCH_H
#define GS_BOOT_LAUNCH_H

#include <stdbool.h>

#include "gradsync.h"

/* What is announced: the variable that says so, and the number of tasks; 0: not told. */
struct gsi_launch {
    const char *variable; /* NULL: nothing is announced, this process is alone */
    int tasks;
};

/* The announcement of the launcher that is nearest to this process. */
struct gsi_launch gsi_launch_announced (void);

/* Whether it announces exactly one task. */
bool gsi_launch_is_alone (void);

/* Whether the launcher speaks to MPI libraries in a way of their own (PMI-1, PMI-2, Cray PMI). */
bool gsi_launch_serves_mpi (void);

/*
 * GS_ERR_BOOT if more tasks are announced than the [size] ranks that were found by [way]; [cure]
 * ends the text.
 */
gs_status_t gsi_launch_check (int size, const char *way, const char *cure);

/* GS_ERR_BOOT: the launcher's PMIx server does not take this process; [call] says [why]. */
gs_status_t gsi_launch_refused (const char *call, const char *why);

/* Whether PMIX_MCA_psec, where it is set, has a module that the server offers. */
bool gsi_launch_shares_security (void);

/* Warns of a process alone in a Slurm job of several tasks that no launcher has started. */
void gsi_launch_warn_alone (void);

#endif /* GS_BOOT_LAUNCH_H */
