/* SPDX-License-Identifier: BSD-3-Clause */
/* net - posting messages in the network and waiting for them with a deadline. */
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/record.h"
#include "base/status.h"
#include "host/coll_host.h"

#define LOOK_EVERY  64u                /* polls between looks at the clock: about 5 us */
#define LISTEN_NS   100000             /* between looks for notices */
#define ASK_NS      (GSI_NS_PER_S / 2) /* before and between looks whether a wait has an end */
#define STRAYS      20    /* such looks in a row that found a message of another call: 10 s */
#define YIELDS      50u   /* offers of the core before it sleeps between polls, */
#define YIELDING_NS 20000 /* so that polls take little from the application's own work */

/* A message that could not be posted: those posted before it are left to the network, and so
 * their memory. */
static gs_status_t not_posted (struct gsi_coll_host *c, enum gsi_net_call what, int peer, int rc)
{
    c->unfinished = true;
    return gsi_transfer_fail (c, c->net->ops->words[what], peer, rc);
}

/* The network's tag for a message of the call under way. */
static int tag_of (const struct gsi_coll_host *c, enum gsi_tag tag)
{
    return (int) tag +
           (c->fingerprint ? GSI_TAGS * (int) (1 + c->fingerprint % c->fingerprints) : 0);
}

gs_status_t gsi_net_send (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot,
                          const void *data, size_t bytes, int peer, enum gsi_tag tag)
{
    int rc = gsi_fault ("p2p.send") ? GSI_NET_FAULT
                                    : c->net->ops->isend (c->net, slot->batch, slot->active, data,
                                                          bytes, peer, tag_of (c, tag));

    if (rc)
        return not_posted (c, GSI_NET_ISEND, peer, rc);
    slot->sends[slot->active] = true;
    slot->peer[slot->active++] = peer;
    gsi_coll_sent (&c->base, peer, bytes);
    return GS_OK;
}

gs_status_t gsi_net_recv (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot, void *data,
                          size_t bytes, int peer, enum gsi_tag tag)
{
    int rc = c->net->ops->irecv (c->net, slot->batch, slot->active, data, bytes, peer,
                                 tag_of (c, tag));

    if (rc)
        return not_posted (c, GSI_NET_IRECV, peer, rc);
    slot->sends[slot->active] = false;
    slot->peer[slot->active++] = peer;
    return GS_OK;
}

bool gsi_net_should_look (unsigned polls, unsigned spins, unsigned every)
{
    return polls % every == 0 || spins > GSI_SPINS;
}

gs_status_t gsi_net_interrupted (struct gsi_coll_host *c, const struct gsi_call *call)
{
    int64_t now_ns = gsi_now_ns ();
    gs_status_t st;

    if (atomic_load_explicit (c->base.life, memory_order_relaxed) != GSI_ALIVE)
        return gsi_fail (GS_ERR_STATE, "the communicator was aborted on this rank");
    if (now_ns - c->listened_ns > LISTEN_NS) {
        c->listened_ns = now_ns;
        gsi_notice_hear (c);
    }
    for (int r = 0; c->notice && r < c->size; r++) {
        /* A notice can overtake what the rank sent before: that still comes. */
        if (c->heard[r].kind != GSI_NOTICE_NONE && c->heard[r].missed <= call->seq)
            return gsi_notice_fail (c, r);
    }
    if (call->seq != c->asked_seq) {
        c->asked_seq = call->seq;
        c->asked_ns = now_ns;
    } else if (c->base.others && now_ns - c->asked_ns > ASK_NS) {
        c->asked_ns = now_ns;
        if ((st = c->base.others (c->base.context)))
            return st;
    }
    if (now_ns > call->deadline_ns)
        return gsi_fail (GS_ERR_TIMEOUT, call->op == GSI_OP_NONE ? GSI_LATE_BOOT : GSI_LATE_CALL);
    return GS_OK;
}

/* The network's own words for [rc], of request [i] or of none. */
static gs_status_t failed (struct gsi_coll_host *c, const struct gsi_pipeline_slot *slot, int i,
                           int rc)
{
    if (rc == GSI_NET_SHORT)
        return gsi_net_differ (c, slot->peer[i]);
    return i >= 0 ? gsi_transfer_fail (c, "transfer", slot->peer[i], rc)
                  : gsi_transfer_fail (c, c->net->ops->words[GSI_NET_TEST_ALL], -1, rc);
}

void gsi_net_pause (const struct gsi_call *call, unsigned *spins)
{
    bool yielding = call->yielding && atomic_load_explicit (call->yielding, memory_order_relaxed);

    if (!yielding) {
        gsi_net_spin (spins);
    } else if (*spins < GSI_YIELD_NOW + YIELDS) {
        *spins = *spins < GSI_YIELD_NOW ? GSI_YIELD_NOW : *spins + 1;
        sched_yield ();
    } else {
        nanosleep (&(struct timespec){.tv_nsec = YIELDING_NS}, NULL);
    }
}

gs_status_t gsi_net_differ (const struct gsi_coll_host *c, int rank)
{
    return gsi_fail (
        GS_ERR_MISMATCH,
        "ranks %d and %d disagree on count, dtype or operation, or one has left a call "
        "out or done fewer steps; GS_CHECK=collective compares what they call",
        c->rank, rank);
}

/* A rank that [slot] waits for, and that has sent something of another collective; or -1. */
static int find_stray (const struct gsi_coll_host *c, const struct gsi_pipeline_slot *slot)
{
    int tag;

    for (int i = 0; i < slot->active; i++) {
        if (slot->sends[i] || !c->net->ops->pending (c->net, slot->batch, i))
            continue;
        if (c->net->ops->probe (c->net, slot->peer[i], &tag) && tag >= GSI_TAGS &&
            tag / GSI_TAGS != tag_of (c, 0) / GSI_TAGS)
            return slot->peer[i];
    }
    return -1;
}

/*
 * GS_ERR_MISMATCH if a rank that is waited for makes another call: it sends in the order of its
 * calls. Asked after gsi_net_interrupted, whose last look for notices is clock enough. N.B. MPI
 * may hand out what comes next before the last of a long message is there; hence the patience,
 * which counts looks: a process that was stopped has had none.
 */
static gs_status_t look_for_strays (struct gsi_coll_host *c, const struct gsi_pipeline_slot *slot,
                                    int64_t *look_ns, int *strays)
{
    int64_t now_ns = c->listened_ns;
    int stray;

    if (now_ns < *look_ns)
        return GS_OK;
    stray = *look_ns ? find_stray (c, slot) : -1;
    *strays = stray < 0 ? 0 : *strays + 1;
    *look_ns = now_ns + ASK_NS;
    return *strays > STRAYS ? gsi_net_differ (c, stray) : GS_OK;
}

gs_status_t gsi_net_wait (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot,
                          const struct gsi_call *call)
{
    int64_t look_ns = 0;
    int strays = 0;
    unsigned spins = c->spins;
    gs_status_t st = GS_OK;
    int which = -1, rc;
    bool done = false;

    for (unsigned polls = 1;; polls++) {
        if ((rc = c->net->ops->test_all (c->net, slot->batch, slot->active, &done, &which)))
            st = failed (c, slot, which, rc);
        if (done && !rc) {
            slot->active = 0;
            return GS_OK;
        }
        if (!st && gsi_net_should_look (polls, spins, LOOK_EVERY))
            st = gsi_net_interrupted (c, call);
        if (!st && gsi_net_should_look (polls, spins, LOOK_EVERY))
            st = look_for_strays (c, slot, &look_ns, &strays);
        if (st) {
            c->unfinished = true;
            return st;
        }
        gsi_net_pause (call, &spins);
    }
}
