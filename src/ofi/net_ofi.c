/* SPDX-License-Identifier: BSD-3-Clause */
/* net_ofi - the network of hosts that libfabric is (OFI): any fabric it has a provider for. */
#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "host/coll_host_ops.h"
#include "ofi/net_ofi.h"

extern const struct gsi_coll_ops gsi_coll_ofi;

#define TAG_GATHER 0                     /* of allgather; the algorithms' begin with 1 */
#define PEEKS      100                   /* looks for the answer to a peek */
#define LAST_NS    (100 * GSI_NS_PER_MS) /* for notices to leave, where a communicator fails */

/* ---- Its life ---- */

static gs_status_t net_prepare (struct gsi_net *base, const struct gsi_boot *boot, void *memory)
{
    _Static_assert(sizeof (struct gsi_notice_card) <= GSI_NET_CARD_BYTES, "what fits a card");
    (void) base;
    return gsi_ofi_open (gsi_ofi_endpoint (false), boot->size, memory);
}

void gsi_ofi_begin (struct net_ofi *net, struct gsi_ofi_endpoint *endpoint,
                    const struct gsi_notice_card *own)
{
    net->endpoint = endpoint;
    net->number = own->number;
    net->joined = true;
    gsi_ofi_join (net->endpoint, net->number);
}

gs_status_t gsi_ofi_reach (struct net_ofi *net, int rank, const struct gsi_notice_card *card)
{
    net->peer[rank].number = card->number;
    return gsi_ofi_find (net->endpoint, card->address, card->bytes, &net->peer[rank].address);
}

/* All ranks compare the same cards; providers do not understand each other. */
static gs_status_t find_peers (struct net_ofi *net, const struct gsi_coll_setup *setup)
{
    struct gsi_notice_card zero, card;
    gs_status_t st = GS_OK;

    gsi_net_card (setup, 0, &zero, sizeof (zero));
    for (int r = 0; r < net->base.size && !st; r++) {
        gsi_net_card (setup, r, &card, sizeof (card));
        if (strncmp (card.provider, zero.provider, sizeof (card.provider)) ||
            card.bytes > sizeof (card.address))
            return gsi_fail (GS_ERR_MISMATCH,
                             "transport ofi: rank 0 has libfabric's provider %.15s, rank %d has "
                             "%.15s: set GS_OFI_PROVIDER to one that all hosts have",
                             zero.provider, r, card.provider);
        st = gsi_ofi_reach (net, r, &card);
    }
    return st;
}

static gs_status_t net_open (struct gsi_net *base, const struct gsi_coll_setup *setup,
                             const struct gsi_net *parent)
{
    struct net_ofi *net = (struct net_ofi *) base;
    struct gsi_notice_card own;

    (void) parent; /* it has the same endpoint */
    gsi_net_card (setup, base->rank, &own, sizeof (own));
    gsi_ofi_begin (net, gsi_ofi_endpoint (false), &own);
    base->tags = (1u << GSI_OFI_TAG_BITS) - 1;
    base->any_thread = true;
    return find_peers (net, setup);
}

static void net_close (struct gsi_net *net)
{
    ((struct net_ofi *) net)->well = true; /* discard does the rest */
}

bool gsi_ofi_discard (struct gsi_net *base, bool unfinished)
{
    struct net_ofi *net = (struct net_ofi *) base;
    int64_t until_ns = gsi_now_ns () + LAST_NS;

    while (atomic_load (&net->telling) && gsi_now_ns () < until_ns &&
           !gsi_ofi_progress (net->endpoint))
        sched_yield ();
    if (net->ear)
        gsi_ofi_cancel (&net->ear->request);
    if (net->peek)
        gsi_ofi_cancel (net->peek);
    net->ear = NULL;
    net->peek = NULL;
    unfinished = unfinished || atomic_load (&net->telling);
    if (net->joined)
        gsi_ofi_leave (net->endpoint, net, net->number, unfinished, net->well);
    return unfinished;
}

static gs_status_t net_enter (const struct gsi_net *net)
{
    (void) net;
    return GS_OK;
}

static bool net_usable (const struct gsi_net *net)
{
    (void) net;
    return true;
}

/* ---- Requests ---- */

static size_t net_batch_bytes (int n)
{
    return (size_t) n * sizeof (struct gsi_ofi_request);
}

/* Zeros are what it is to be. */
static void net_batch_init (void *memory, int n)
{
    (void) memory, (void) n;
}

static int post_send (struct net_ofi *net, struct gsi_ofi_request *r, const void *data,
                      size_t bytes, int peer, int tag)
{
    r->kind = GSI_OFI_SEND;
    r->out = data;
    r->bytes = bytes;
    r->peer = &net->peer[peer];
    r->endpoint = net->endpoint;
    r->owner = net;
    r->bits = gsi_ofi_bits (r->peer->number, net->base.rank, tag);
    return gsi_ofi_post (r);
}

static int post_recv (struct net_ofi *net, struct gsi_ofi_request *r, void *data, size_t bytes,
                      int peer, int tag)
{
    r->kind = GSI_OFI_RECV;
    r->in = data;
    r->bytes = bytes;
    r->ignore = 0;
    r->peer = &net->peer[peer];
    r->endpoint = net->endpoint;
    r->owner = net;
    r->bits = gsi_ofi_bits (net->number, peer, tag);
    return gsi_ofi_post (r);
}

static int net_isend (struct gsi_net *net, void *batch, int i, const void *data, size_t bytes,
                      int peer, int tag)
{
    return post_send ((struct net_ofi *) net, (struct gsi_ofi_request *) batch + i, data, bytes,
                      peer, tag);
}

static int net_irecv (struct gsi_net *net, void *batch, int i, void *data, size_t bytes, int peer,
                      int tag)
{
    return post_recv ((struct net_ofi *) net, (struct gsi_ofi_request *) batch + i, data, bytes,
                      peer, tag);
}

static int state_of (struct gsi_ofi_request *r)
{
    return atomic_load_explicit (&r->state, memory_order_acquire);
}

static bool is_short (const struct gsi_ofi_request *r, int state)
{
    return state == GSI_OFI_ENDED && r->kind == GSI_OFI_RECV && r->came != r->bytes;
}

static int net_test_all (struct gsi_net *net, void *batch, int n, bool *done, int *failed)
{
    struct gsi_ofi_request *r = batch;
    int rc = 0, state;

    *failed = -1;
    *done = true;
    for (int i = 0; i < n; i++) {
        if ((state = state_of (&r[i])) == GSI_OFI_PENDING && *done) {
            rc = gsi_ofi_progress (((struct net_ofi *) net)->endpoint); /* once */
            state = state_of (&r[i]);
        }
        *done = *done && state != GSI_OFI_PENDING;
        if (state == GSI_OFI_FAILED || is_short (&r[i], state)) {
            *failed = i;
            *done = false;
            atomic_store_explicit (&r[i].state, GSI_OFI_VOID, memory_order_relaxed);
            return state == GSI_OFI_FAILED ? r[i].code : GSI_NET_SHORT;
        }
    }
    for (int i = 0; i < n && *done; i++)
        atomic_store_explicit (&r[i].state, GSI_OFI_VOID, memory_order_relaxed);
    return *done ? 0 : rc;
}

static int net_test_some (struct gsi_net *net, void *batch, int n, int *ended, int *index,
                          int *failed)
{
    struct gsi_ofi_request *r = batch;
    int rc = gsi_ofi_progress (((struct net_ofi *) net)->endpoint), some = 0;
    bool pending = false;

    *failed = -1;
    for (int i = 0; i < n; i++) {
        int state = state_of (&r[i]);
        pending = pending || state == GSI_OFI_PENDING;
        if (state == GSI_OFI_VOID || state == GSI_OFI_PENDING)
            continue;
        atomic_store_explicit (&r[i].state, GSI_OFI_VOID, memory_order_relaxed);
        if (state == GSI_OFI_FAILED) {
            *ended = 0;
            *failed = i;
            return r[i].code;
        }
        index[some++] = i;
    }
    *ended = some || pending ? some : -1;
    return some || !pending ? 0 : rc;
}

static void net_make_void (void *batch, int i)
{
    atomic_store_explicit (&((struct gsi_ofi_request *) batch)[i].state, GSI_OFI_VOID,
                           memory_order_relaxed);
}

static bool net_pending (struct gsi_net *net, void *batch, int i)
{
    (void) net;
    return state_of ((struct gsi_ofi_request *) batch + i) == GSI_OFI_PENDING;
}

/* N.B. A provider that cannot peek says so, and then no message is found. */
static bool net_probe (struct gsi_net *base, int peer, int *tag)
{
    struct net_ofi *net = (struct net_ofi *) base;
    struct gsi_ofi_request *r = net->peek;
    int state;

    if (!r && !(r = net->peek = calloc (1, sizeof (*r))))
        return false;
    if (state_of (r) == GSI_OFI_PENDING) {
        gsi_ofi_progress (net->endpoint); /* of a look before */
        return false;
    }
    r->kind = GSI_OFI_PEEK;
    r->bits = gsi_ofi_bits (net->number, peer, 0);
    r->ignore = (1u << GSI_OFI_TAG_BITS) - 1;
    r->endpoint = net->endpoint;
    r->owner = net;
    if (gsi_ofi_post (r))
        return false;
    for (int i = 0; i < PEEKS && state_of (r) == GSI_OFI_PENDING; i++)
        gsi_ofi_progress (net->endpoint);
    state = state_of (r);
    *tag = gsi_ofi_tag_of (r->bits);
    return state == GSI_OFI_ENDED;
}

/* ---- Notices ---- */

void gsi_ofi_tell (struct gsi_net *base, const void *data, size_t bytes, int peer, int tag)
{
    struct net_ofi *net = (struct net_ofi *) base;
    struct gsi_ofi_request *r = calloc (1, sizeof (*r));

    if (!r)
        return;
    r->orphan = true;
    r->count = &net->telling;
    atomic_fetch_add (&net->telling, 1);
    if (post_send (net, r, data, bytes, peer, tag)) {
        atomic_fetch_sub (&net->telling, 1);
        free (r);
    }
}

static bool listen_for (struct net_ofi *net, int tag)
{
    struct gsi_ofi_request *r = &net->ear->request;

    r->kind = GSI_OFI_RECV;
    r->in = net->ear->data;
    r->bytes = GSI_OFI_HEARD;
    r->bits = gsi_ofi_bits (net->number, 0, tag);
    r->ignore = gsi_ofi_bits (0, (1 << GSI_OFI_RANK_BITS) - 1, 0);
    r->endpoint = net->endpoint;
    r->owner = net;
    return !gsi_ofi_post (r);
}

/* N.B. The algorithms have notices of one tag. */
bool gsi_ofi_hear (struct gsi_net *base, void *data, size_t bytes, int tag, int *from)
{
    struct net_ofi *net = (struct net_ofi *) base;
    int state;

    if (!net->ear && (!(net->ear = calloc (1, sizeof (*net->ear))) || !listen_for (net, tag)))
        return false;
    gsi_ofi_progress (net->endpoint);
    if ((state = state_of (&net->ear->request)) == GSI_OFI_PENDING)
        return false;
    *from = gsi_ofi_rank_of (net->ear->request.bits);
    memcpy (data, net->ear->data, bytes < GSI_OFI_HEARD ? bytes : GSI_OFI_HEARD);
    listen_for (net, tag);
    return state == GSI_OFI_ENDED && *from < base->size;
}

/* ---- Gathering ---- */

static gs_status_t net_fail (const char *what, int code)
{
    if (code == FI_ETRUNC)
        return gsi_net_too_long (what, fi_strerror (code));
    if (code == GSI_NET_SHORT)
        return gsi_fail (GS_ERR_TRANSPORT, "%s: what came is too short", what);
    return gsi_fail (GS_ERR_TRANSPORT, "%s: %s", what,
                     code == GSI_NET_FAULT ? "injected" : fi_strerror (code));
}

/* A step around the ring: both requests, until the deadline. What does not come is of [origin],
 * which the ranks in between would hand on. */
static gs_status_t await_step (struct net_ofi *net, int origin, int64_t deadline_ns)
{
    unsigned spins = 0;
    bool done;
    int failed, rc;

    for (;;) {
        if ((rc = net_test_all (&net->base, net->gather, 2, &done, &failed)))
            return net_fail ("transport ofi: the start", rc);
        if (done)
            return GS_OK;
        if (gsi_now_ns () > deadline_ns)
            return gsi_fail (GS_ERR_TIMEOUT,
                             "transport ofi: " GSI_LATE " while ranks connected: nothing "
                             "has come of rank %d, or rank %d takes nothing",
                             origin, (net->base.rank + 1) % net->base.size);
        gsi_net_spin (&spins);
    }
}

/* Around a ring: it needs no memory, and its ranks connect to two others. */
static gs_status_t net_allgather (struct gsi_net *base, const void *own, void *all, size_t bytes,
                                  int64_t deadline_ns)
{
    struct net_ofi *net = (struct net_ofi *) base;
    int size = base->size, to = (base->rank + 1) % size, from = (base->rank + size - 1) % size;
    gs_status_t st = GS_OK;

    memcpy ((char *) all + (size_t) base->rank * bytes, own, bytes);
    for (int step = 0; step < size - 1 && !st; step++) {
        char *out = (char *) all + (size_t) ((base->rank + size - step) % size) * bytes;
        int origin = (from + size - step) % size;
        char *in = (char *) all + (size_t) origin * bytes;
        int rc = post_recv (net, &net->gather[0], in, bytes, from, TAG_GATHER);
        if (!rc)
            rc = post_send (net, &net->gather[1], out, bytes, to, TAG_GATHER);
        st = rc ? net_fail ("transport ofi: the start", rc)
                : await_step (net, origin, deadline_ns);
    }
    return st;
}

static const struct gsi_net_ops net_ops = {
    .name = "ofi",
    .words = {[GSI_NET_ISEND] = "fi_tsend",
              [GSI_NET_IRECV] = "fi_trecv",
              [GSI_NET_TEST_ALL] = "fi_cq_read",
              [GSI_NET_TEST_SOME] = "fi_cq_read"},
    .bytes = sizeof (struct net_ofi),
    .rank_bytes = sizeof (struct gsi_ofi_peer),
    .prepare = net_prepare,
    .open = net_open,
    .close = net_close,
    .discard = gsi_ofi_discard,
    .enter = net_enter,
    .usable = net_usable,
    .batch_bytes = net_batch_bytes,
    .batch_init = net_batch_init,
    .isend = net_isend,
    .irecv = net_irecv,
    .test_all = net_test_all,
    .test_some = net_test_some,
    .make_void = net_make_void,
    .pending = net_pending,
    .probe = net_probe,
    .tell = gsi_ofi_tell,
    .hear = gsi_ofi_hear,
    .allgather = net_allgather,
    .fail = net_fail,
    .keep = gsi_keep,
};

/* ---- The transport ---- */

static gs_status_t prepare_ofi (const struct gsi_boot *boot, const struct gsi_coll *parent,
                                void *card, void **room)
{
    (void) parent;
    return gsi_coll_host_prepare (&net_ops, boot, card, room);
}

static gs_status_t open_ofi (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    return gsi_coll_host_open (&gsi_coll_ofi, setup, out);
}

const struct gsi_coll_ops gsi_coll_ofi = {
    .name = "ofi", .prepare = prepare_ofi, .unprepare = free, .open = open_ofi, GSI_COLL_HOST};
