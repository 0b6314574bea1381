/* SPDX-License-Identifier: BSD-3-Clause */
/* rollcall - telling the other ranks that this one gives up, and hearing who else does. */
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "mpi/coll_mpi.h"
#include "mpi/guest.h"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

/* Takes in the notices of [source] that are here; what MPI says. */
static int take_notices (struct gsi_coll_mpi *c, int source)
{
    MPI_Message message;
    MPI_Status status;
    int there = 0, rc;

    while (!(rc = MPI_Iprobe (source, GSI_TAG_NOTICE, c->comm, &there, &status)) && there) {
        struct gsi_notice notice;
        /* N.B. Not MPI_Recv: Open MPI 5 receives nothing from a rank that has left since. */
        if ((rc = MPI_Improbe (source, GSI_TAG_NOTICE, c->comm, &there, &message, &status)) ||
            !there || (rc = MPI_Mrecv (&notice, sizeof (notice), MPI_BYTE, &message, &status)))
            return rc;
        c->heard[status.MPI_SOURCE] = notice;
        c->notice = true;
    }
    return rc;
}

/*
 * N.B. Once a rank has ended, Open MPI 5 takes no more from any source until that is
 * acknowledged; then it also has the messages of those that have ended. A library that cannot be
 * told so is asked rank by rank.
 */
void gsi_notice_hear (struct gsi_coll_mpi *c)
{
    int rc = take_notices (c, MPI_ANY_SOURCE);

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    if (rc && !MPIX_Comm_failure_ack (c->comm))
        rc = take_notices (c, MPI_ANY_SOURCE);
#endif
    for (int r = 0; rc && r < c->size; r++)
        if (r != c->rank)
            take_notices (c, r);
}

gs_status_t gsi_notice_fail (struct gsi_coll_mpi *c, int rank)
{
    const struct gsi_notice *notice = &c->heard[rank];

    c->culprit = notice->culprit < 0 ? rank : notice->culprit;
    if (notice->kind == GSI_NOTICE_ABORT && c->culprit != rank)
        return gsi_fail (GS_ERR_STATE, "rank %d gave the communicator up because of rank %d",
                         rank, c->culprit);
    if (notice->kind == GSI_NOTICE_ABORT)
        return gsi_fail (GS_ERR_STATE, "rank %d gave the communicator up", rank);
    c->base.told_by = 1 + rank;
    return gsi_fail (GS_ERR_TIMEOUT, "the deadline passed on rank %d in %s #%llu", rank,
                     notice->in_message ? "a message before its call" : "its call",
                     (unsigned long long) notice->missed);
}

/* The first rank of the communicator that MPI knows to have failed; -1: none, or not known. */
static int first_failed (struct gsi_coll_mpi *c)
{
    int rank = -1;
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    const int first = 0;
    int number = 0;
    MPI_Group failed, all;

    if (c->comm == MPI_COMM_NULL || MPIX_Comm_failure_ack (c->comm) ||
        MPIX_Comm_failure_get_acked (c->comm, &failed))
        return -1;
    MPI_Group_size (failed, &number);
    if (number) {
        MPI_Comm_group (c->comm, &all);
        MPI_Group_translate_ranks (failed, 1, &first, all, &rank);
        MPI_Group_free (&all);
    }
    if (failed != MPI_GROUP_EMPTY)
        MPI_Group_free (&failed);
#else
    (void) c;
#endif
    return rank < 0 ? -1 : rank;
}

/* The rank that has died, as flight records of the node tell, else MPI; -1: not known. */
static int find_died (struct gsi_coll_mpi *c)
{
    int died = c->base.died ? c->base.died (c->base.context) : -1;

    return died < 0 ? first_failed (c) : died;
}

/*
 * Fails for a transfer with [rank], -1 if that is not known, which MPI has ended with [rc]: for
 * what a rank has told before, or with MPI's words. N.B. To Open MPI 5 a rank that has given up
 * and left has failed as well: the culprit is one that has died, or failed first.
 */
gs_status_t gsi_transfer_fail (struct gsi_coll_mpi *c, const char *what, int rank, int rc)
{
    char text[GSI_TEXT_MAX];
    gs_status_t st;
    int died;

    gsi_notice_hear (c);
    for (int r = 0; c->notice && r < c->size; r++)
        if (c->heard[r].kind != GSI_NOTICE_NONE)
            return gsi_notice_fail (c, r);
    st = gsi_guest_fail (what, rc);
    if (st != GS_ERR_TRANSPORT)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    died = find_died (c);
    if (died < 0 && rank < 0)
        return st;
    c->culprit = died < 0 ? rank : died;
    if (c->culprit == rank)
        return gsi_fail (st, "%s (with rank %d)", text, rank);
    return gsi_fail (st, "%s; rank %d has died", text, died);
}

gs_status_t gsi_start_fail (struct gsi_coll_mpi *c, gs_status_t st,
                            const struct gsi_coll_origin *origin)
{
    bool whole = origin && origin->coll->ops == c->base.ops; /* its ranks are asked first */
    char text[GSI_TEXT_MAX];
    int died;

    if (st != GS_ERR_TRANSPORT)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    died = find_died (whole ? (struct gsi_coll_mpi *) origin->coll : c);
    if (died < 0)
        return gsi_fail (st, "%s", text);
    if (origin && !whole)
        died = origin->rank[died];
    return gsi_fail (st, "%s; rank %d%s has died", text, died,
                     origin ? " of the communicator that the group is of" : "");
}

bool gsi_notice_told (struct gsi_coll *coll, int rank, struct gsi_told *told)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;

    if (gsi_guest_up ())
        gsi_notice_hear (c);
    *told = c->heard[rank].told;
    return c->heard[rank].kind != GSI_NOTICE_NONE && told->seq > 0;
}

void gsi_notice_send (struct gsi_coll_mpi *c, enum gsi_notice_kind kind, bool in_message,
                      uint64_t missed)
{
    struct gsi_notice *notice = c->own;

    if (c->notified || c->size == 1 || !notice || !gsi_guest_usable ())
        return;
    c->notified = true;
    c->own = NULL;
    *notice = (struct gsi_notice){
        .kind = kind, .in_message = in_message, .culprit = c->culprit, .missed = missed};
    if (c->base.tell)
        c->base.tell (c->base.context, &notice->told);
    for (int r = 0; r < c->size; r++) {
        MPI_Request request;
        /* A short message: it leaves at once, or as MPI makes progress elsewhere. */
        if (r != c->rank &&
            !MPI_Isend (notice, sizeof (*notice), MPI_BYTE, r, GSI_TAG_NOTICE, c->comm, &request))
            MPI_Request_free (&request);
    }
    gsi_guest_keep (notice);
}

bool gsi_roll_call (struct gsi_coll *coll, const struct gsi_call *call, int64_t listen_ns,
                    unsigned char *came)
{
    struct gsi_coll_mpi *c = (struct gsi_coll_mpi *) coll;
    int64_t begin_ns = gsi_now_ns ();
    struct gsi_grace grace;
    int missing;

    if (!gsi_guest_usable ())
        return false;
    gsi_grace_begin (&grace, listen_ns);
    gsi_notice_send (c, GSI_NOTICE_TIMEOUT, call->message > 0, call->seq);
    do {
        gsi_notice_hear (c);
        missing = 0;
        for (int r = 0; r < c->size; r++) {
            came[r] = r == c->rank || c->heard[r].kind != GSI_NOTICE_NONE;
            missing += !came[r];
        }
        gsi_pause (gsi_now_ns () - begin_ns, GSI_NS_PER_MS);
    } while (missing && !gsi_grace_is_over (&grace));
    return true;
}
