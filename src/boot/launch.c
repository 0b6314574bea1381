/* SPDX-License-Identifier: BSD-3-Clause */
/* launch - what the launcher announces, and whether the ranks that were found are all of them. */
#include "boot/launch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "boot/boot.h"

/*
 * Variables that tell a task the number of tasks started with it. The launchers of MPI libraries
 * come first: inside a Slurm job they start their daemons by srun, whose variables the ranks
 * inherit.
 */
static const char *const counts[] = {
    "OMPI_COMM_WORLD_SIZE", /* mpirun of Open MPI */
    "PMI_SIZE",             /* Hydra (MPICH, Intel MPI), srun --mpi=pmi2 */
    "PALS_SIZE",            /* PALS on Cray EX: mpiexec, palsrun */
    "MV2_COMM_WORLD_SIZE",  /* MVAPICH2 */
    "MVP_COMM_WORLD_SIZE",  /* MVAPICH 3 */
    "JSM_NAMESPACE_SIZE",   /* jsrun */
    "FLUX_JOB_SIZE",        /* flux run */
    "SLURM_STEP_NUM_TASKS", /* srun; not set in a batch script or an salloc shell */
};

/* Of any PMIx server, with PMIX_RANK: it serves all tasks, and does not tell their number. */
#define SERVER "PMIX_NAMESPACE"

struct gsi_launch gsi_launch_announced (void)
{
    for (size_t i = 0; i < sizeof (counts) / sizeof (counts[0]); i++) {
        const char *text = getenv (counts[i]);
        int tasks = text ? atoi (text) : 0;
        if (tasks > 0)
            return (struct gsi_launch){.variable = counts[i], .tasks = tasks};
    }
    return (struct gsi_launch){.variable = getenv (SERVER) ? SERVER : NULL};
}

/* N.B. In a heterogeneous job Slurm counts the tasks of one component, PMIx those of all. */
bool gsi_launch_is_alone (void)
{
    return gsi_launch_announced ().tasks == 1 && !getenv ("SLURM_HET_SIZE");
}

bool gsi_launch_serves_mpi (void)
{
    return getenv ("PMI_SIZE") || getenv ("PMI_CONTROL_PORT") || getenv ("PALS_APID");
}

gs_status_t gsi_launch_check (int size, const char *way, const char *cure)
{
    struct gsi_launch launch = gsi_launch_announced ();

    if (size >= launch.tasks || gsi_env_choice (GSI_ENV_BOOT) == GSI_BOOT_SINGLE)
        return GS_OK;
    return gsi_fail (GS_ERR_BOOT,
                     "the launcher announces %d tasks (%s), but %s finds %d of them: %s. Or set "
                     "GS_BOOT=single for one rank in each process on purpose",
                     launch.tasks, launch.variable, way, size, cure);
}

/* Whether [list] has the first [n] bytes of [word], between commas. */
static bool lists (const char *list, const char *word, size_t n)
{
    for (; *list; list += strcspn (list, ","), list += *list == ',')
        if (strcspn (list, ",") == n && !strncmp (list, word, n))
            return true;
    return false;
}

bool gsi_launch_shares_security (void)
{
    const char *offered = getenv ("PMIX_SECURITY_MODE"), *wanted = getenv ("PMIX_MCA_psec");
    size_t n;

    if (!offered || !wanted || *wanted == '^')
        return true;
    for (; *wanted; wanted += n, wanted += *wanted == ',') {
        n = strcspn (wanted, ",");
        if (lists (offered, wanted, n))
            return true;
    }
    return false;
}

gs_status_t gsi_launch_refused (const char *call, const char *why)
{
    const char *offered = getenv ("PMIX_SECURITY_MODE"), *wanted = getenv ("PMIX_MCA_psec");
    char host[GSI_HOST_BYTES];

    gsi_process_host (host, sizeof (host));
    return gsi_fail (
        GS_ERR_BOOT,
        "%s on host %s: %s. Do this process and its PMIx server share a security domain? "
        "The server offers %s (PMIX_SECURITY_MODE), here PMIX_MCA_psec is %s: unset it, or start "
        "with PMIX_MCA_psec=native",
        call, host, why, offered ? offered : "what it does not say", wanted ? wanted : "not set");
}

void gsi_launch_warn_alone (void)
{
    const char *tasks = getenv ("SLURM_NTASKS");

    if (gsi_env_choice (GSI_ENV_BOOT) != GSI_BOOT_SINGLE && !gsi_launch_announced ().variable &&
        getenv ("SLURM_JOB_ID") && tasks && atoi (tasks) > 1)
        gsi_log (GS_LOG_WARN, "boot",
                 "this process is alone, in a Slurm job of %s tasks (SLURM_NTASKS): start the "
                 "program with srun --mpi=pmix, or set GS_BOOT=single if this is meant",
                 tasks);
}
