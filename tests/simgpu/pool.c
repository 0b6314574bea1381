/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool - handles: slots whose memory is never given back, so that use after destruction is seen.
 * They lie in blocks of malloc, where leak checkers find what they point to.
 */
#include <stdlib.h>

#include "rt.h"

struct rt_pool rt_streams = {.what = "stream", .bytes = sizeof (struct rt_stream)};
struct rt_pool rt_events = {.what = "event", .bytes = sizeof (struct rt_event)};
struct rt_pool rt_graphs = {.what = "graph", .bytes = sizeof (struct rt_graph)};
struct rt_pool rt_execs = {.what = "executable graph", .bytes = sizeof (struct rt_graph)};

void *rt_pool_slot (const struct rt_pool *pool, size_t i)
{
    return pool->blocks[i / RT_POOL_BLOCK] + i % RT_POOL_BLOCK * pool->bytes;
}

void *rt_pool_at (const struct rt_pool *pool, size_t i)
{
    struct rt_slot *slot = rt_pool_slot (pool, i);

    return slot->alive ? slot : NULL;
}

/* Slots are used again when there are no new ones, those that were taken longest ago first. */
static struct rt_slot *used_slot (struct rt_pool *pool)
{
    for (size_t tries = 0; tries < pool->used; tries++) {
        struct rt_slot *slot = rt_pool_slot (pool, pool->hand);
        pool->hand = (pool->hand + 1) % pool->used;
        if (!slot->alive && !slot->busy)
            return slot;
    }
    return NULL;
}

static struct rt_slot *new_slot (struct rt_pool *pool)
{
    size_t block = pool->used / RT_POOL_BLOCK;

    if (!pool->blocks[block])
        pool->blocks[block] = calloc (RT_POOL_BLOCK, pool->bytes);
    return pool->blocks[block] ? rt_pool_slot (pool, pool->used++) : NULL;
}

void *rt_pool_take (struct rt_pool *pool)
{
    bool full = pool->used == (size_t) RT_POOL_BLOCKS * RT_POOL_BLOCK;
    struct rt_slot *slot = full ? used_slot (pool) : new_slot (pool);

    if (slot)
        slot->alive = true;
    return slot;
}

void *rt_pool_find (const struct rt_pool *pool, const void *handle, const char *who)
{
    for (size_t i = 0; i < RT_POOL_BLOCKS && pool->blocks[i]; i++) {
        uintptr_t offset = (uintptr_t) handle - (uintptr_t) pool->blocks[i];
        size_t slot = i * RT_POOL_BLOCK + offset / pool->bytes;
        if (offset >= RT_POOL_BLOCK * pool->bytes || offset % pool->bytes || slot >= pool->used)
            continue;
        if (rt_pool_at (pool, slot))
            return rt_pool_at (pool, slot);
        sim_misuse ("%s: the %s %p was destroyed before", who, pool->what, handle);
    }
    return NULL;
}
