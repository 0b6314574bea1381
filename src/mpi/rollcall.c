/* SPDX-License-Identifier: BSD-3-Clause */
/* rollcall - telling the other ranks that this one gives up, and hearing who else does. */
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "mpi/coll_mpi.h"
#include "mpi/guest.h"

void gsi_notice_hear (struct gsi_coll_mpi *c)
{
    MPI_Status status;
    int there = 0;

    while (!MPI_Iprobe (MPI_ANY_SOURCE, GSI_TAG_NOTICE, c->comm, &there, &status) && there) {
        struct gsi_notice notice;
        /* The message is here already: this receive does not wait. */
        if (MPI_Recv (&notice, sizeof (notice), MPI_BYTE, status.MPI_SOURCE, GSI_TAG_NOTICE,
                      c->comm, MPI_STATUS_IGNORE))
            return;
        c->heard[status.MPI_SOURCE] = notice;
        c->notice = true;
    }
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

/*
 * Fails for a transfer with [rank], -1 if that is not known, which MPI has ended with [rc]: for
 * what a rank has told before, or with MPI's words.
 */
gs_status_t gsi_transfer_fail (struct gsi_coll_mpi *c, const char *what, int rank, int rc)
{
    char text[GSI_TEXT_MAX];
    gs_status_t st;

    gsi_notice_hear (c);
    for (int r = 0; c->notice && r < c->size; r++)
        if (c->heard[r].kind != GSI_NOTICE_NONE)
            return gsi_notice_fail (c, r);
    st = gsi_guest_fail (what, rc);
    if (rank < 0 || st != GS_ERR_TRANSPORT)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    c->culprit = rank;
    return gsi_fail (st, "%s (with rank %d)", text, rank);
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
