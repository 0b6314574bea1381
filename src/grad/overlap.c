/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap - whether buckets are reduced during the backward pass. */
#include "grad/overlap.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "feature/consensus.h"

_Static_assert(sizeof (cpu_set_t) == sizeof (((struct gsi_view *) 0)->cores), "masks of cores");

static void look_at_cores (const gs_reducer_t *r, struct gsi_view *own)
{
    own->overlap = (int32_t) r->opts.overlap;
    own->any_thread = gsi_feature_any_thread (r->comm);
    if (sched_getaffinity (0, sizeof (own->cores), (cpu_set_t *) (void *) own->cores))
        memset (own->cores, 0xff, sizeof (own->cores)); /* a machine with more than this has */
}

static bool may_use (const struct gsi_view *v, int core)
{
    return v->cores[core / 64] >> (core % 64) & 1;
}

struct gsi_share gsi_overlap_share (const struct gsi_view *all, int ranks, int rank)
{
    struct gsi_share share = {.whole = 0};

    for (int core = 0; core < CPU_SETSIZE; core++) {
        int users = 0;
        if (!may_use (&all[rank], core))
            continue;
        for (int k = 0; k < ranks; k++)
            users += may_use (&all[k], core);
        share.whole += 1.0 / users;
        share.cores++;
        share.sharers = users > share.sharers ? users : share.sharers;
    }
    return share;
}

/* Whether [rank] can have a thread, with gain unless one is asked for; else why not, and the
 * cure. [mend]: a line of the program would do. */
static bool can_part (const gs_reducer_t *r, const struct gsi_view *all, int rank, char *why,
                      size_t room, bool *mend)
{
    bool forced = all[rank].overlap == GS_OVERLAP_THREAD;
    const char *host = gs_comm_host_of (r->comm, rank);
    struct gsi_share share = {.whole = 0};

    if (gs_comm_nodes (r->comm) == 1)
        share = gsi_overlap_share (all, r->size, rank);
    if (all[rank].overlap == GS_OVERLAP_OFF || all[rank].overlap == GS_OVERLAP_INLINE)
        snprintf (why, room, "the option overlap asks for it");
    else if (gsi_feature_mixed (r->comm))
        snprintf (why, room, "some ranks have a GPU, others none");
    else if (r->queue)
        return true;
    else if ((*mend = !all[rank].any_thread))
        snprintf (why, room,
                  "on rank %d (host %s) MPI was initialised below MPI_THREAD_MULTIPLE, so no "
                  "thread may call it: use MPI_Init_thread",
                  rank, host);
    else if (forced)
        return true;
    else if (r->size == 1)
        snprintf (why, room, "there is one rank");
    else if (gs_comm_nodes (r->comm) > 1 || share.whole > 2 - 1e-6)
        return true;
    else
        snprintf (why, room,
                  "rank %d (host %s) has no core for a thread: %d ranks share %d. Give each two "
                  "or more (srun --cpus-per-task=2, mpirun --map-by slot:PE=2), or ask for a "
                  "thread all the same by the option overlap, GS_OVERLAP_THREAD",
                  rank, host, share.sharers, share.cores);
    return false;
}

/* The same on all ranks, which see the same. */
static gs_status_t decide (gs_reducer_t *r, const struct gsi_view *all)
{
    char why[400] = "";
    bool mend = false;
    int asks = -1;

    r->overlaps = true;
    for (int k = 0; k < r->size && r->overlaps; k++)
        r->overlaps = can_part (r, all, k, why, sizeof (why), &mend);
    for (int k = r->size - 1; k >= 0; k--)
        asks = all[k].overlap == GS_OVERLAP_THREAD ? k : asks;
    if (!r->overlaps && asks >= 0)
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "gs_reducer_commit: rank %d (host %s) asks for a thread of %s "
                         "(GS_OVERLAP_THREAD), but %s",
                         asks, gs_comm_host_of (r->comm, asks), r->client.name, why);
    if (r->rank)
        return GS_OK;
    if (r->overlaps)
        gsi_log (GS_LOG_INFO, "grad", "%s: buckets are reduced during the backward pass, by %s",
                 r->client.name, r->queue ? "a stream" : "a thread of each rank");
    else
        gsi_log (mend && r->size > 1 ? GS_LOG_WARN : GS_LOG_INFO, "grad",
                 "%s: buckets are reduced inside %s without overlap: %s", r->client.name,
                 r->opts.overlap == GS_OVERLAP_OFF ? "gs_reducer_finish" : "gs_reducer_ready",
                 why);
    return GS_OK;
}

gs_status_t gsi_overlap_agree (gs_reducer_t *r)
{
    struct gsi_view own = {0}, *all = calloc ((size_t) r->size, sizeof (*all));
    gs_status_t st = all ? GS_OK : gsi_fail (GS_ERR_NOMEM, "gs_reducer_commit: out of memory");

    if (!(st = gsi_consensus (r->comm, "gs_reducer_commit", st, NULL, r->stream))) {
        look_at_cores (r, &own);
        st = gs_allgather (r->comm, &own, all, sizeof (own), GS_U8, r->stream);
    }
    if (!st)
        st = decide (r, all);
    free (all);
    return st;
}
