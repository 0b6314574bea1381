/* SPDX-License-Identifier: BSD-3-Clause */
/* failure_notice - telling the other ranks that this one gives up, and hearing who else does. */
#include <stdio.h>

#include "base/clock.h"
#include "base/status.h"
#include "host/coll_host.h"

void gsi_notice_hear (struct gsi_coll_host *c)
{
    struct gsi_notice notice;
    int from;

    while (c->net->ops->hear (c->net, &notice, sizeof (notice), GSI_TAG_NOTICE, &from)) {
        c->heard[from] = notice;
        c->notice = true;
    }
}

gs_status_t gsi_notice_fail (struct gsi_coll_host *c, int rank)
{
    const struct gsi_notice *notice = &c->heard[rank];

    c->base.culprit = notice->culprit < 0 ? rank : notice->culprit;
    if (notice->kind == GSI_NOTICE_ABORT && c->base.culprit != rank)
        return gsi_fail (GS_ERR_STATE, "rank %d gave the communicator up because of rank %d",
                         rank, c->base.culprit);
    if (notice->kind == GSI_NOTICE_ABORT)
        return gsi_fail (GS_ERR_STATE, "rank %d gave the communicator up", rank);
    c->base.told = true;
    return gsi_fail (GS_ERR_TIMEOUT, GSI_LATE " on rank %d in %s #%llu", rank,
                     notice->in_message ? "a message before its call" : "its call",
                     (unsigned long long) notice->missed);
}

/* The rank that has died, as flight records of the node tell, else the network; -1: not known. */
static int find_died (struct gsi_coll_host *c)
{
    int died = c->base.died ? c->base.died (c->base.context) : -1;

    return died < 0 && c->net->ops->dead ? c->net->ops->dead (c->net) : died;
}

/*
 * Fails for a transfer with [rank], -1 if that is not known, which the network has ended with
 * [rc]: for what a rank has told before, or with its words. N.B. To Open MPI 5 a rank that has
 * given up and left has failed as well: the culprit is one that has died, or failed first.
 */
gs_status_t gsi_transfer_fail (struct gsi_coll_host *c, const char *what, int rank, int rc)
{
    char text[GSI_TEXT_MAX];
    gs_status_t st;
    int died;

    gsi_notice_hear (c);
    for (int r = 0; c->notice && r < c->size; r++)
        if (c->heard[r].kind != GSI_NOTICE_NONE)
            return gsi_notice_fail (c, r);
    st = c->net->ops->fail (what, rc);
    if (st != GS_ERR_TRANSPORT)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    died = find_died (c);
    if (died < 0 && rank < 0)
        return st;
    c->base.culprit = died < 0 ? rank : died;
    if (c->base.culprit == rank)
        return gsi_fail (st, "%s (with rank %d)", text, rank);
    return gsi_fail (st, "%s; rank %d has died", text, died);
}

gs_status_t gsi_start_fail (struct gsi_coll_host *c, gs_status_t st,
                            const struct gsi_coll_parent *parent)
{
    bool whole = parent && parent->coll->ops == c->base.ops; /* its ranks are asked first */
    char text[GSI_TEXT_MAX];
    int died;

    if (st != GS_ERR_TRANSPORT)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    died = find_died (whole ? (struct gsi_coll_host *) parent->coll : c);
    if (died < 0)
        return gsi_fail (st, "%s", text);
    if (parent && !whole)
        died = parent->rank[died];
    return gsi_fail (st, "%s; rank %d%s has died", text, died,
                     parent ? " of the communicator that the group is of" : "");
}

bool gsi_notice_told (struct gsi_coll *coll, int rank, struct gsi_told *told)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;

    if (c->net->ops->usable (c->net))
        gsi_notice_hear (c);
    *told = c->heard[rank].told;
    return c->heard[rank].kind != GSI_NOTICE_NONE && told->seq > 0;
}

void gsi_notice_send (struct gsi_coll_host *c, enum gsi_notice_kind kind, bool in_message,
                      uint64_t missed)
{
    struct gsi_notice *notice = c->own;

    if (c->notified || c->size == 1 || !notice || !c->net->ops->usable (c->net))
        return;
    if (!gsi_coll_is_allowed (&c->base))
        return; /* another thread may be inside MPI now */
    c->notified = true;
    c->own = NULL;
    *notice = (struct gsi_notice){
        .kind = kind, .in_message = in_message, .culprit = c->base.culprit, .missed = missed};
    if (c->base.tell)
        c->base.tell (c->base.context, &notice->told);
    for (int r = 0; r < c->size; r++)
        if (r != c->rank)
            c->net->ops->tell (c->net, notice, sizeof (*notice), r, GSI_TAG_NOTICE);
    c->net->ops->keep (notice);
}

bool gsi_roll_call (struct gsi_coll *coll, const struct gsi_call *call, int64_t listen_ns,
                    unsigned char *came)
{
    struct gsi_coll_host *c = (struct gsi_coll_host *) coll;
    int64_t begin_ns = gsi_now_ns ();
    struct gsi_grace grace;
    int missing;

    if (!c->net->ops->usable (c->net))
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
