/* SPDX-License-Identifier: BSD-3-Clause */
/* cma - ranks of a node read from each other's memory what they are to receive. */
#include "host/cma.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/status.h"
#include "host/coll_host.h"

#define AT_ONCE ((size_t) 16 << 20) /* bytes between two looks at the deadline */

bool gsi_cma_read (int64_t process, uint64_t at, void *dst, size_t bytes)
{
    while (bytes) {
        struct iovec own = {.iov_base = dst, .iov_len = bytes};
        struct iovec there = {.iov_base = (void *) (uintptr_t) at, .iov_len = bytes};
        ssize_t got = process_vm_readv ((pid_t) process, &own, 1, &there, 1, 0);
        if (got <= 0)
            return false;
        dst = (char *) dst + got;
        at += (size_t) got;
        bytes -= (size_t) got;
    }
    return true;
}

gs_status_t gsi_cma_from (struct gsi_coll_host *c, int i, uint64_t at, void *dst, size_t bytes)
{
    bool read = gsi_cma_read (c->node.process[i], at, dst, bytes);
    int error = errno;
    gs_status_t st = gsi_node_look (c, i);

    if (st || read)
        return st;
    c->base.culprit = c->node.rank[i];
    return gsi_fail (GS_ERR_TRANSPORT, "rank %d cannot read %zu bytes of rank %d's memory: %s",
                     c->rank, bytes, c->node.rank[i], strerror (error));
}

bool gsi_cma_can (const struct gsi_coll_host *c)
{
    return c->node.process;
}

static struct gsi_post *post_to (const struct gsi_coll_host *c, int i)
{
    return gsi_node_post (&c->node, c->node.index, i);
}

static struct gsi_post *post_from (const struct gsi_coll_host *c, int i)
{
    return gsi_node_post (&c->node, i, c->node.index);
}

void gsi_cma_begin (struct gsi_coll_host *c, const struct gsi_alltoallv *x)
{
    uint64_t turn = ++c->node.pulls;

    for (int i = 0; i < c->node.size; i++) {
        struct gsi_post *post = post_to (c, i);
        int r = c->node.rank[i];
        if (r == c->rank || !x->send_bytes[r])
            continue;
        gsi_coll_sent (&c->base, r, x->send_bytes[r]);
        post->at = (uint64_t) (uintptr_t) (x->send + x->send_at[r]);
        post->bytes = x->send_bytes[r];
        post->fingerprint = c->fingerprint;
        atomic_store_explicit (&post->put, turn, memory_order_release);
    }
}

static gs_status_t await_word (struct gsi_coll_host *c, const atomic_uint_fast64_t *word,
                               const struct gsi_call *call)
{
    unsigned spins = c->spins;
    gs_status_t st = GS_OK;

    for (unsigned polls = 1; !st; polls++) {
        if (atomic_load_explicit (word, memory_order_acquire) >= c->node.pulls)
            return GS_OK;
        st = gsi_node_pause (c, polls, &spins, call);
    }
    return st;
}

/* Reads what the rank with place [i] has for this one. */
static gs_status_t read_from (struct gsi_coll_host *c, int i, char *dst, size_t bytes,
                              const struct gsi_call *call)
{
    struct gsi_post *post = post_from (c, i);
    gs_status_t st = await_word (c, &post->put, call);

    if (st)
        return st;
    if (post->fingerprint != c->fingerprint)
        return gsi_net_differ (c, c->node.rank[i]);
    if (post->bytes != bytes)
        return gsi_fail (
            GS_ERR_MISMATCH,
            "rank %d sends %llu bytes, rank %d expects %zu of it: the ranks disagree "
            "on counts",
            c->node.rank[i], (unsigned long long) post->bytes, c->rank, bytes);
    for (size_t done = 0; done < bytes && !st; done += AT_ONCE) {
        size_t n = bytes - done < AT_ONCE ? bytes - done : AT_ONCE;
        if ((st = gsi_cma_from (c, i, post->at + done, dst + done, n)))
            return st;
        st = done + n < bytes ? gsi_net_interrupted (c, call) : GS_OK;
    }
    if (!st)
        atomic_store_explicit (&post->taken, c->node.pulls, memory_order_release);
    return st;
}

gs_status_t gsi_cma_finish (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                            const struct gsi_call *call)
{
    int size = c->node.size;
    gs_status_t st = GS_OK;

    for (int d = 1; d < size && !st; d++) { /* each begins with another one */
        int i = (c->node.index + d) % size, r = c->node.rank[i];
        if (x->recv_bytes[r])
            st = read_from (c, i, x->recv + x->recv_at[r], x->recv_bytes[r], call);
    }
    for (int d = 1; d < size && !st; d++) {
        int i = (c->node.index + d) % size;
        if (x->send_bytes[c->node.rank[i]])
            st = await_word (c, &post_to (c, i)->taken, call);
    }
    return st;
}
