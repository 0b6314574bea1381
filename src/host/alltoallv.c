/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoallv - every rank hands something to each; and what is summed of that. */
#include "host/alltoallv.h"

#include <string.h>

#include "host/tuning.h"
#include "host/cma.h"

/* ---- Little ---- */

static bool is_small (const struct gsi_coll_host *c, size_t bytes)
{
    return gsi_tuning_algo (&c->hier, c->size, GSI_TUNED_ALLTOALLV, bytes) ==
           GSI_ALGO_SMALL_ALLGATHER;
}

/* All blocks are gathered everywhere, and each rank picks. */
static gs_status_t pick (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                         const struct gsi_call *call)
{
    bool sends = false;
    gs_status_t st;

    for (int r = 0; r < c->size && !sends; r++)
        sends = x->send_bytes[r] > 0;
    if ((st = gsi_small_allgather (c, sends ? x->send : NULL, x->own ? x->own : x->block,
                                   x->block, call)))
        return st;
    for (int r = 0; r < c->size; r++)
        if (x->recv_bytes[r] &&
            (r != c->rank || x->recv + x->recv_at[r] != x->send + x->send_at[r]))
            memcpy (x->recv + x->recv_at[r],
                    (const char *) gsi_small_place (c, r, x->block) + x->pick, x->recv_bytes[r]);
    return GS_OK;
}

/* ---- By messages ---- */

/* Length of message number [k] of a piece. */
static size_t message_length (const struct gsi_coll_host *c, size_t bytes, size_t k)
{
    return gsi_step_of (bytes, k * c->piece_bytes, c->piece_bytes);
}

static bool by_message (const struct gsi_coll_host *c, int r)
{
    const struct gsi_topo *topo = c->base.topo;

    return r != c->rank && !(gsi_cma_can (c) && topo->node_of[r] == topo->node);
}

/* How many messages the longest piece of this rank takes. */
static size_t rounds (const struct gsi_coll_host *c, const struct gsi_alltoallv *x)
{
    size_t most = 0;

    for (int r = 0; r < c->size; r++) {
        if (!by_message (c, r))
            continue;
        most = x->send_bytes[r] > most ? x->send_bytes[r] : most;
        most = x->recv_bytes[r] > most ? x->recv_bytes[r] : most;
    }
    return most / c->piece_bytes + !!(most % c->piece_bytes);
}

static gs_status_t start_message (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                                  size_t k)
{
    struct gsi_pipeline_slot *slot = &c->gather[k % GSI_STAGING_SLOTS];
    gs_status_t st = GS_OK;

    for (int d = 1; d < c->size && !st; d++) {
        int from = (c->rank - d + c->size) % c->size, to = (c->rank + d) % c->size;
        size_t in = message_length (c, x->recv_bytes[from], k),
               out = message_length (c, x->send_bytes[to], k);
        if (in && by_message (c, from))
            st = gsi_net_recv (c, slot, gsi_piece_at (c, slot->recv, from), in, from,
                               GSI_TAG_EXCHANGE);
        if (!out || st || !by_message (c, to))
            continue;
        memcpy (gsi_piece_at (c, slot->send, to), x->send + x->send_at[to] + k * c->piece_bytes,
                out);
        st = gsi_net_send (c, slot, gsi_piece_at (c, slot->send, to), out, to, GSI_TAG_EXCHANGE);
    }
    return st;
}

static gs_status_t finish_message (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                                   size_t k, const struct gsi_call *call)
{
    struct gsi_pipeline_slot *slot = &c->gather[k % GSI_STAGING_SLOTS];
    gs_status_t st = gsi_net_wait (c, slot, call);

    for (int r = 0; r < c->size && !st; r++) {
        size_t n = message_length (c, x->recv_bytes[r], k);
        if (n && by_message (c, r))
            memcpy (x->recv + x->recv_at[r] + k * c->piece_bytes, gsi_piece_at (c, slot->recv, r),
                    n);
    }
    return st;
}

static gs_status_t send_all (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                             const struct gsi_call *call)
{
    size_t n = rounds (c, x);
    gs_status_t st = GS_OK;

    for (size_t k = 0; k < n + GSI_LAG && !st; k++) {
        if (k < n)
            st = start_message (c, x, k);
        if (k >= GSI_LAG && k - GSI_LAG < n && !st)
            st = finish_message (c, x, k - GSI_LAG, call);
    }
    return st;
}

/* ---- Either ---- */

static void copy_own (const struct gsi_coll_host *c, const struct gsi_alltoallv *x)
{
    const char *from = x->send + x->send_at[c->rank];
    char *to = x->recv + x->recv_at[c->rank];

    if (x->recv_bytes[c->rank] && from != to)
        memcpy (to, from, x->recv_bytes[c->rank]);
}

gs_status_t gsi_host_alltoallv (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                                const struct gsi_call *call)
{
    gs_status_t st;

    if (x->block && is_small (c, x->block))
        return pick (c, x, call);
    if (gsi_cma_can (c))
        gsi_cma_begin (c, x);
    copy_own (c, x);
    st = send_all (c, x, call);
    return st || !gsi_cma_can (c) ? st : gsi_cma_finish (c, x, call);
}

/* ---- With sums ---- */

/* [bytes] of every rank, which [x] brings, are summed into [recv]. */
static gs_status_t reduce_part (struct gsi_coll_host *c, struct gsi_alltoallv *x, char *recv,
                                size_t bytes, const struct gsi_reduction *how,
                                const struct gsi_call *call)
{
    gs_status_t st = gsi_host_alltoallv (c, x, call);

    for (int r = 0; r < c->size; r++)
        c->source[r] = x->recv + x->recv_at[r];
    if (!st)
        c->device->ops->reduce (how, recv, c->source, c->size,
                                bytes / gs_dtype_size (how->dtype));
    return st;
}

/* An alltoallv to be summed: contributions meet in staging, places and lengths are to be set. */
static struct gsi_alltoallv to_staging (struct gsi_coll_host *c, const char *send)
{
    struct gsi_alltoallv x = {.send = send,
                              .recv = c->scatter[0].recv,
                              .send_at = c->length,
                              .send_bytes = c->length + c->size,
                              .recv_at = c->length + 2 * c->size,
                              .recv_bytes = c->length + 3 * c->size};

    for (int r = 0; r < c->size; r++)
        c->length[2 * c->size + r] = (size_t) r * c->piece_bytes;
    return x;
}

gs_status_t gsi_alltoallv_reduce (struct gsi_coll_host *c, const char *send, char *recv,
                                  size_t count, const struct gsi_reduction *how,
                                  const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype), bytes = count * width;
    size_t step = c->piece_bytes / width * width;
    struct gsi_alltoallv x = to_staging (c, send);
    gs_status_t st = GS_OK;

    for (int r = 0; r < c->size; r++)
        c->length[r] = (size_t) r * bytes;
    for (size_t at = 0; at < bytes && !st; at += step) {
        size_t n = bytes - at < step ? bytes - at : step;
        for (int r = 0; r < c->size; r++)
            c->length[c->size + r] = c->length[3 * c->size + r] = n;
        x.send = send + at;
        if (bytes <= step) { /* at once, and so regular */
            x.block = bytes * (size_t) c->size;
            x.pick = bytes * (size_t) c->rank;
        }
        st = reduce_part (c, &x, recv + at, n, how, call);
    }
    return st;
}

gs_status_t gsi_alltoallv_reduce_ragged (struct gsi_coll_host *c, const char *send,
                                         const size_t *at, const size_t *count, char *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype), step = c->piece_bytes / width, longest = 0;
    struct gsi_alltoallv x = to_staging (c, send);
    gs_status_t st = GS_OK;

    for (int r = 0; r < c->size; r++)
        longest = count[r] > longest ? count[r] : longest;
    for (size_t done = 0; done < longest && !st; done += step) {
        size_t mine = gsi_step_of (count[c->rank], done, step) * width;
        for (int r = 0; r < c->size; r++) {
            c->length[r] = at[r] + done * width;
            c->length[c->size + r] = gsi_step_of (count[r], done, step) * width;
            c->length[3 * c->size + r] = mine;
        }
        st = reduce_part (c, &x, recv + done * width, mine, how, call);
    }
    return st;
}

/* Where the parts of a block of [n] elements lie, one for each rank, from [at] bytes on. */
static void lay_parts (const struct gsi_coll_host *c, size_t *places, size_t *lengths, size_t at,
                       size_t n, size_t width)
{
    size_t even = (n + (size_t) c->size - 1) / (size_t) c->size, begin = 0;

    for (int r = 0; r < c->size; r++) {
        size_t left = n - begin, count = left < even ? left : even;
        places[r] = at + begin * width;
        lengths[r] = count * width;
        begin += count;
    }
}

/* A block of [n] elements, [at] bytes from the beginning of the arrays. */
static gs_status_t reduce_block (struct gsi_coll_host *c, const char *send, char *recv, size_t at,
                                 size_t n, const struct gsi_reduction *how, int root,
                                 const struct gsi_call *call)
{
    size_t mine, *whole_at = c->length, *whole = whole_at + c->size;
    size_t *own_at = whole + c->size, *own = own_at + c->size;
    struct gsi_alltoallv in = {.send = send,
                               .recv = c->scatter[0].recv,
                               .send_at = whole_at,
                               .send_bytes = whole,
                               .recv_at = own_at,
                               .recv_bytes = own};
    struct gsi_alltoallv out = {.send = c->scatter[1].recv,
                                .recv = recv,
                                .send_at = own_at,
                                .send_bytes = own,
                                .recv_at = whole_at,
                                .recv_bytes = whole};
    gs_status_t st;

    lay_parts (c, whole_at, whole, at, n, gs_dtype_size (how->dtype));
    mine = whole[c->rank];
    for (int r = 0; r < c->size; r++) {
        own_at[r] = (size_t) r * c->piece_bytes;
        own[r] = mine;
    }
    if ((st = reduce_part (c, &in, c->scatter[1].recv, mine, how, call)))
        return st;
    for (int r = 0; r < c->size; r++) {
        own_at[r] = 0;
        own[r] = r == root ? mine : 0;
        whole[r] = c->rank == root ? whole[r] : 0;
    }
    return gsi_host_alltoallv (c, &out, call);
}

gs_status_t gsi_alltoallv_reduce_to (struct gsi_coll_host *c, const char *send, char *recv,
                                     size_t count, const struct gsi_reduction *how, int root,
                                     const struct gsi_call *call)
{
    size_t width = gs_dtype_size (how->dtype);
    size_t most = c->piece_bytes / width * (size_t) c->size;
    gs_status_t st = GS_OK;

    if (is_small (c, count * width))
        return gsi_small_reduce (c, send, c->rank == root ? recv : NULL, count, how, call);
    for (size_t done = 0; done < count && !st; done += most) {
        size_t n = count - done < most ? count - done : most;
        st = reduce_block (c, send, recv, done * width, n, how, root, call);
    }
    return st;
}
