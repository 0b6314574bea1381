/* SPDX-License-Identifier: BSD-3-Clause */
/* boot - chooses how this process finds the other ranks. */
#include "boot/boot.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/module.h"
#include "base/status.h"
#include "boot/launch.h"
#include "config.h"

static gs_status_t mpi_entry (const struct gsi_boot_mpi_entry **entry)
{
    const void *address;
    gs_status_t st = gsi_module_find (GSI_MODULE_MPI, GSI_BOOT_MPI_SYMBOL, &address);

    *entry = address;
    return st;
}

static gs_status_t open_mpi (int64_t deadline_ns, struct gsi_boot **out)
{
    const struct gsi_boot_mpi_entry *entry;
    gs_status_t st = mpi_entry (&entry);

    if (!st)
        st = entry->start (deadline_ns);
    return st ? st : entry->ops.open (deadline_ns, out);
}

/* Whether the application has MPI up already, so that its ranks are ours. */
static bool mpi_is_up (void)
{
    const struct gsi_boot_mpi_entry *entry;

    return gsi_module_mpi_present () && !mpi_entry (&entry) && entry->initialized ();
}

#ifdef HAVE_PMIX
/*
 * N.B. Open MPI 5 must start before PMIx does. It waits for the other ranks when it starts, so
 * all of them must come to the same answer here, which therefore looks at nothing that may
 * differ: not at GPUs, though with them MPI may not be needed. Where there is no module, or none
 * for the program's MPI, the transport will tell.
 */
static gs_status_t start_mpi_first (gs_transport_t requested, int64_t deadline_ns)
{
    const struct gsi_boot_mpi_entry *entry;
    struct gsi_boot *waiting = NULL;
    int64_t begin_ns = gsi_now_ns (), soon_ns = begin_ns, step_ns = (deadline_ns - begin_ns) / 2;
    gs_status_t st, opened = GS_ERR_STATE;

    if (requested == GS_TRANSPORT_AUTO ? gsi_launch_is_alone () : requested != GS_TRANSPORT_MPI)
        return GS_OK;
    if (!getenv ("PMIX_NAMESPACE") || gsi_boot_pmix_is_open () || mpi_entry (&entry) ||
        !entry->before_pmix ())
        return GS_OK;
    step_ns = step_ns < GSI_NS_PER_S ? step_ns + 1 : GSI_NS_PER_S;
    while (!waiting && soon_ns + step_ns < deadline_ns) {
        if ((st = entry->start (soon_ns += step_ns)) != GS_ERR_TIMEOUT)
            return st;
        /* Somebody is late. Once MPI has opened PMIx the ranks that came are known by that. */
        opened = gsi_boot_pmix_wait (&waiting);
    }
    if (waiting)
        waiting->timeout_ns = deadline_ns - begin_ns;
    st = entry->start (deadline_ns);
    if (st == GS_ERR_TIMEOUT && waiting)
        st = gsi_boot_pmix_missing (waiting);
    else if (st == GS_ERR_TIMEOUT && opened == GS_ERR_STATE)
        gsi_fail (st, "bootstrap: " GSI_LATE_BOOT " while MPI started, "
                      "which has not yet opened PMIx, so that it is not known who did not come: "
                      "this process is slow, or its PMIx server does not answer");
    gsi_boot_close (waiting);
    return st;
}
#endif

static gs_status_t open_pmix (gs_transport_t requested, int64_t deadline_ns,
                              struct gsi_boot **out)
{
#ifdef HAVE_PMIX
    gs_status_t st = start_mpi_first (requested, deadline_ns);

    return st ? st : gsi_boot_pmix.open (deadline_ns, out);
#else
    (void) requested;
    (void) deadline_ns;
    (void) out;
    return gsi_fail (GS_ERR_UNSUPPORTED, "this build has no PMIx: configure --with-pmix");
#endif
}

/* What to do where the launcher and what should find its tasks do not know each other. */
static gs_status_t not_found (const char *why)
{
    struct gsi_launch launch = gsi_launch_announced ();
    char tasks[32] = "several";

    if (launch.tasks)
        snprintf (tasks, sizeof (tasks), "%d", launch.tasks);
    return gsi_fail (GS_ERR_BOOT,
                     "the launcher announces %s tasks (%s), but they cannot find each other: %s. "
                     "Launch with srun --mpi=pmix (srun --mpi=list shows what the site has); or "
                     "initialise MPI first and use gs_comm_from_mpi; or set GS_BOOT=single for "
                     "one rank in each process on purpose",
                     tasks, launch.variable, why);
}

static gs_status_t open_any (gs_transport_t requested, int64_t deadline_ns, struct gsi_boot **out)
{
    char why_not_pmix[256];
    gs_status_t st = open_pmix (requested, deadline_ns, out);

    if (st != GS_ERR_UNSUPPORTED)
        return st;
    snprintf (why_not_pmix, sizeof (why_not_pmix), "%s", gsi_last_text ());
    if (mpi_is_up ())
        return open_mpi (deadline_ns, out);
    if (!gsi_launch_announced ().variable || gsi_launch_announced ().tasks == 1)
        return gsi_boot_single.open (deadline_ns, out);
    return gsi_launch_serves_mpi () ? open_mpi (deadline_ns, out) : not_found (why_not_pmix);
}

gs_status_t gsi_boot_open (gs_transport_t requested, int64_t deadline_ns, struct gsi_boot **out)
{
    int64_t begin_ns = gsi_now_ns ();
    gs_status_t st = GS_OK;

    *out = NULL;
    switch ((enum gsi_boot_choice) gsi_env_choice (GSI_ENV_BOOT)) {
    case GSI_BOOT_PMIX: st = open_pmix (requested, deadline_ns, out); break;
    case GSI_BOOT_MPI: st = open_mpi (deadline_ns, out); break;
    case GSI_BOOT_SINGLE: st = gsi_boot_single.open (deadline_ns, out); break;
    case GSI_BOOT_AUTO: st = open_any (requested, deadline_ns, out); break;
    }
    if (st)
        return st;
    (*out)->timeout_ns = deadline_ns - begin_ns;
    if ((*out)->size == 1)
        gsi_launch_warn_alone ();
    gsi_log (GS_LOG_TRACE, "boot", "%s: rank %d of %d on %s, job %s", (*out)->ops->name,
             (*out)->rank, (*out)->size, (*out)->host, (*out)->job);
    return GS_OK;
}

gs_status_t gsi_boot_from_mpi (int mpi_comm, struct gsi_boot **out)
{
    const struct gsi_boot_mpi_entry *entry;
    gs_status_t st = mpi_entry (&entry);

    *out = NULL;
    return st ? st : entry->from_comm (mpi_comm, out);
}

/* What a rank says in gsi_boot_agree. */
struct verdict {
    int32_t status;
    char host[GSI_HOST_BYTES];
    char text[256];
};

/* The first rank with a cause, else the first that failed; [size] if none did. */
static int worst (const struct verdict *all, int size)
{
    int first = size;

    for (int r = 0; r < size; r++) {
        gs_status_t st = (gs_status_t) all[r].status;
        if (st && st != GS_ERR_TIMEOUT && st != GS_ERR_STATE)
            return r;
        first = st && first == size ? r : first;
    }
    return first;
}

gs_status_t gsi_boot_agree (struct gsi_boot *boot, gs_status_t st, int64_t deadline_ns)
{
    struct verdict mine = {.status = 0};
    struct verdict *all = calloc ((size_t) boot->size, sizeof (*all));
    char text[GSI_TEXT_MAX];
    gs_status_t carried;
    int first;

    snprintf (text, sizeof (text), "%s", st ? gsi_last_text () : "bootstrap: out of memory");
    if (!all || gsi_boot_reserve (boot, sizeof (mine))) {
        free (all);
        all = NULL; /* this rank only tells the others */
        st = st ? st : GS_ERR_NOMEM;
    }
    memcpy (mine.host, boot->host, sizeof (mine.host));
    mine.status = (int32_t) st;
    if (st)
        snprintf (mine.text, sizeof (mine.text), "%.*s", (int) sizeof (mine.text) - 1, text);
    carried = boot->ops->exchange (boot, &mine, sizeof (mine), all, deadline_ns);
    first = carried ? boot->size : all ? worst (all, boot->size) : 0;
    if (first < boot->size)
        gsi_boot_part (boot);
    if (all && first < boot->size)
        carried = gsi_fail ((gs_status_t) all[first].status, "rank %d (host %.71s): %.255s",
                            first, all[first].host, all[first].text);
    else if (st == GS_ERR_TIMEOUT && carried) /* that names who did not come */
        carried = gsi_fail (st, "%s; %s", text, gsi_last_text ());
    else if (st)
        carried = gsi_fail (st, "%s", text);
    free (all);
    return carried;
}

gs_status_t gsi_boot_reserve (struct gsi_boot *boot, size_t bytes)
{
    return boot->ops->reserve ? boot->ops->reserve (boot, bytes) : GS_OK;
}

void gsi_boot_part (struct gsi_boot *boot)
{
    if (boot->ops->part)
        boot->ops->part (boot);
}

void gsi_boot_close (struct gsi_boot *boot)
{
    if (boot)
        boot->ops->close (boot);
}
