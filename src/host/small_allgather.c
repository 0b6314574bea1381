/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small_allgather - gathering little data from every rank: in shared memory, or with few
 * messages.
 *
 * Messages go by Bruck's algorithm (J. Bruck et al., Efficient algorithms for all-to-all
 * communications in multiport message-passing systems, 1997): in round k each rank passes all it
 * has to the rank 2^k below it. After log2 (size) rounds everybody has everything, and combines
 * it by itself in rank order: one rounding, and the same bits everywhere.
 */
#include <string.h>

#include "host/coll_host.h"

static gs_status_t lay_out_words (struct gsi_coll_host *c, const void *mine, size_t own,
                                  size_t bytes, const struct gsi_call *call)
{
    uint64_t turn = c->node.turn++, fingerprint = gsi_fingerprint_of (c, bytes);

    if (bytes)
        gsi_coll_unknown_within (&c->base);
    if (mine && own)
        memcpy (gsi_node_area (&c->node, c->rank, turn), mine, own);
    gsi_node_put (&c->node, turn, fingerprint, 0);
    return gsi_node_await_put (c, turn, fingerprint, call);
}

const void *gsi_small_place (const struct gsi_coll_host *c, int rank, size_t bytes)
{
    if (gsi_hier_together (&c->hier))
        return gsi_node_area (&c->node, rank, c->node.turn - 1);
    return c->small + (size_t) ((rank - c->rank + c->size) % c->size) * bytes;
}

static gs_status_t pass_on (struct gsi_coll_host *c, const void *mine, size_t own, size_t bytes,
                            const struct gsi_call *call)
{
    struct gsi_pipeline_slot *slot = &c->scatter[0];
    gs_status_t st = GS_OK;

    if (mine && own)
        memcpy (c->small, mine, own);
    memset (c->small + own, 0, bytes - own);
    for (int have = 1; have < c->size && !st; have *= 2) {
        int more = have < c->size - have ? have : c->size - have;
        int below = (c->rank - have + c->size) % c->size, above = (c->rank + have) % c->size;
        st = gsi_net_recv (c, slot, c->small + (size_t) have * bytes, (size_t) more * bytes,
                           above, GSI_TAG_SMALL);
        if (!st)
            st = gsi_net_send (c, slot, c->small, (size_t) more * bytes, below, GSI_TAG_SMALL);
        if (!st)
            st = gsi_net_wait (c, slot, call);
    }
    return st;
}

gs_status_t gsi_small_allgather (struct gsi_coll_host *c, const void *mine, size_t own,
                                 size_t bytes, const struct gsi_call *call)
{
    return gsi_hier_together (&c->hier) ? lay_out_words (c, mine, own, bytes, call)
                                        : pass_on (c, mine, own, bytes, call);
}

gs_status_t gsi_small_reduce (struct gsi_coll_host *c, const void *mine, void *dst, size_t count,
                              const struct gsi_reduction *how, const struct gsi_call *call)
{
    size_t bytes = count * gs_dtype_size (how->dtype);
    gs_status_t st = gsi_small_allgather (c, mine, bytes, bytes, call);

    if (st || !dst)
        return st;
    for (int r = 0; r < c->size; r++)
        c->source[r] = gsi_small_place (c, r, bytes);
    c->device->ops->reduce (how, dst, c->source, c->size, count);
    return GS_OK;
}
