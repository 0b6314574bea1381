/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline - moving much data between hosts, in blocks that pass through memory of ours. */
#include <string.h>

#include "host/coll_host.h"
#include "host/alltoallv.h"
#include "host/cma.h"

/* ---- On one node, in shared memory ---- */

static size_t move_length (const struct gsi_coll_host *c, size_t bytes, size_t s)
{
    size_t step = c->node.area_bytes;

    return bytes - s * step < step ? bytes - s * step : step;
}

/* Copies step [s] of what rank [r] has laid out to [recv]. */
static void copy_step (const struct gsi_coll_host *c, char *recv, int r, size_t bytes, size_t s,
                       uint64_t turn)
{
    memcpy (recv + s * c->node.area_bytes, gsi_node_area (&c->node, r, turn + s),
            move_length (c, bytes, s));
}

/*
 * [bytes] of [root], or with -1 of every rank, to all: each lays out a step while it copies the
 * one before it. [send] is NULL on a rank that has nothing to give. A step is laid out when all
 * ranks have begun the one two before it, and so have copied the one before that: four areas do.
 */
static gs_status_t share (struct gsi_coll_host *c, const char *send, char *recv, int root,
                          size_t bytes, const struct gsi_call *call)
{
    size_t area = c->node.area_bytes, steps = bytes <= area ? 1 : (bytes + area - 1) / area;
    uint64_t turn = c->node.turn, fingerprint = gsi_fingerprint_of (c, bytes);
    gs_status_t st = GS_OK;

    c->node.turn += steps;
    gsi_coll_unknown_within (&c->base);
    for (size_t s = 0; s <= steps && !st; s++) {
        if (s < steps && send)
            memcpy (gsi_node_area (&c->node, c->rank, turn + s), send + s * c->node.area_bytes,
                    move_length (c, bytes, s));
        if (s < steps)
            gsi_node_put (&c->node, turn + s, fingerprint, 0);
        if (s == 0)
            continue;
        st = gsi_node_await_put (c, turn + s - 1, fingerprint, call);
        if (!st && root >= 0 && !send)
            copy_step (c, recv, root, bytes, s - 1, turn);
        for (int r = 0; r < c->size && !st && root < 0; r++)
            if (r != c->rank)
                copy_step (c, recv + (size_t) r * bytes, r, bytes, s - 1, turn);
    }
    return st;
}

/*
 * Every rank reads what the [root] has, or with -1 what each has, as share copies it; those that
 * may not read it take it from shared memory.
 */
static gs_status_t by_cma (struct gsi_coll_host *c, const char *send, char *recv, int root,
                           size_t bytes, const struct gsi_call *call)
{
    size_t *none = c->length, *out = none + c->size, *at = out + c->size, *in = at + c->size;
    struct gsi_alltoallv x = {.send = send,
                              .recv = recv,
                              .send_at = none,
                              .send_bytes = out,
                              .recv_at = at,
                              .recv_bytes = in};

    if (!gsi_cma_can (c))
        return share (c, send, recv, root, bytes, call);
    for (int r = 0; r < c->size; r++) {
        none[r] = 0;
        out[r] = r != c->rank && send ? bytes : 0;
        at[r] = root < 0 ? (size_t) r * bytes : 0;
        in[r] = r != c->rank && (root < 0 || r == root) ? bytes : 0;
    }
    return gsi_host_alltoallv (c, &x, call);
}

/* ---- By messages ---- */

/* Starts the [n] bytes at [offset] of every rank's part on their way. */
static gs_status_t start_part (struct gsi_coll_host *c, struct gsi_pipeline_slot *slot,
                               const char *send, size_t n)
{
    gs_status_t st = GS_OK;

    memcpy (slot->send, send, n);
    for (int i = 1; i < c->size && !st; i++) {
        int from = (c->rank - i + c->size) % c->size, to = (c->rank + i) % c->size;
        st = gsi_net_recv (c, slot, gsi_piece_at (c, slot->recv, from), n, from, GSI_TAG_GATHER);
        if (!st)
            st = gsi_net_send (c, slot, slot->send, n, to, GSI_TAG_GATHER);
    }
    return st;
}

static gs_status_t send_parts (struct gsi_coll_host *c, const char *send, char *recv,
                               size_t bytes, const struct gsi_call *call)
{
    size_t step = c->piece_bytes, steps = (bytes + step - 1) / step;
    gs_status_t st = GS_OK;

    for (size_t s = 0; s <= steps && !st; s++) {
        size_t done = s - 1, n;
        if (s < steps) {
            n = bytes - s * step < step ? bytes - s * step : step;
            st = start_part (c, &c->gather[s % GSI_STAGING_SLOTS], send + s * step, n);
        }
        if (!s || st)
            continue;
        n = bytes - done * step < step ? bytes - done * step : step;
        st = gsi_net_wait (c, &c->gather[done % GSI_STAGING_SLOTS], call);
        for (int r = 0; r < c->size && !st; r++)
            if (r != c->rank)
                memcpy (recv + (size_t) r * bytes + done * step,
                        gsi_piece_at (c, c->gather[done % GSI_STAGING_SLOTS].recv, r), n);
    }
    return st;
}

/* The neighbours of this rank in a binomial tree from [root]: parent, -1 at the root. */
static int tree (const struct gsi_coll_host *c, int root, int *children, int *count)
{
    int place = (c->rank - root + c->size) % c->size, step = 1;

    while (step < c->size && !(place & step))
        step *= 2;
    *count = 0;
    for (int s = step / 2; s >= 1; s /= 2)
        if (place + s < c->size)
            children[(*count)++] = (place + s + root) % c->size;
    return place ? (place - step + root) % c->size : -1;
}

static gs_status_t send_down (struct gsi_coll_host *c, char *buf, size_t bytes, int root,
                              const struct gsi_call *call)
{
    size_t step = c->piece_bytes * (size_t) c->size, steps = (bytes + step - 1) / step;
    int children[32], count, parent = tree (c, root, children, &count);
    gs_status_t st = GS_OK;

    for (size_t s = 0; s < steps && !st; s++) {
        struct gsi_pipeline_slot *slot = &c->gather[s % GSI_STAGING_SLOTS];
        size_t n = bytes - s * step < step ? bytes - s * step : step;
        if (slot->active && (st = gsi_net_wait (c, slot, call))) /* sends two steps ago */
            return st;
        if (parent < 0)
            memcpy (slot->send, buf + s * step, n);
        else if (!(st = gsi_net_recv (c, slot, slot->send, n, parent, GSI_TAG_BROADCAST)) &&
                 !(st = gsi_net_wait (c, slot, call)))
            memcpy (buf + s * step, slot->send, n);
        for (int i = 0; i < count && !st; i++)
            st = gsi_net_send (c, slot, slot->send, n, children[i], GSI_TAG_BROADCAST);
    }
    for (int s = 0; s < GSI_STAGING_SLOTS && !st; s++)
        st = gsi_net_wait (c, &c->gather[s], call);
    return st;
}

/* ---- Either ---- */

gs_status_t gsi_pipeline_allgather (struct gsi_coll_host *c, enum gsi_algo algo, const char *send,
                                    char *recv, size_t bytes, const struct gsi_call *call)
{
    if (send != recv + (size_t) c->rank * bytes)
        memcpy (recv + (size_t) c->rank * bytes, send, bytes);
    switch (algo) {
    case GSI_ALGO_MEMORY: return share (c, send, recv, -1, bytes, call);
    case GSI_ALGO_CMA: return by_cma (c, send, recv, -1, bytes, call);
    case GSI_ALGO_HIER: return gsi_hier_allgather (c, send, recv, bytes, call);
    default: return send_parts (c, send, recv, bytes, call);
    }
}

gs_status_t gsi_pipeline_broadcast (struct gsi_coll_host *c, enum gsi_algo algo, char *buf,
                                    size_t bytes, int root, const struct gsi_call *call)
{
    switch (algo) {
    case GSI_ALGO_MEMORY: return share (c, c->rank == root ? buf : NULL, buf, root, bytes, call);
    case GSI_ALGO_CMA: return by_cma (c, c->rank == root ? buf : NULL, buf, root, bytes, call);
    case GSI_ALGO_HIER: return gsi_hier_broadcast (c, buf, bytes, root, call);
    default: return send_down (c, buf, bytes, root, call);
    }
}
