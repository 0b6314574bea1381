/* SPDX-License-Identifier: BSD-3-Clause */
/* pool - handles: slots that are never unmapped, so that use after destruction is seen. */
#include <sys/mman.h>

#include "rt.h"

struct rt_pool rt_streams = {"stream", sizeof (struct rt_stream), 1 << 15, 0, 0, NULL};
struct rt_pool rt_events = {"event", sizeof (struct rt_event), 1 << 20, 0, 0, NULL};
struct rt_pool rt_graphs = {"graph", sizeof (struct rt_graph), 1 << 15, 0, 0, NULL};
struct rt_pool rt_execs = {"executable graph", sizeof (struct rt_graph), 1 << 15, 0, 0, NULL};

static struct rt_slot *slot_at (const struct rt_pool *pool, size_t i)
{
    return (struct rt_slot *) (pool->base + i * pool->bytes);
}

void *rt_pool_at (const struct rt_pool *pool, size_t i)
{
    struct rt_slot *slot = slot_at (pool, i);

    return slot->alive ? slot : NULL;
}

/* Slots are used again when there are no new ones, those that were taken longest ago first. */
static struct rt_slot *used_slot (struct rt_pool *pool)
{
    for (size_t tries = 0; tries < pool->most; tries++) {
        struct rt_slot *slot = slot_at (pool, pool->hand);
        pool->hand = (pool->hand + 1) % pool->most;
        if (!slot->alive && !slot->busy)
            return slot;
    }
    return NULL;
}

void *rt_pool_take (struct rt_pool *pool)
{
    struct rt_slot *slot;

    if (!pool->base) {
        void *base = mmap (NULL, pool->bytes * pool->most, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            return NULL;
        pool->base = base;
    }
    slot = pool->used < pool->most ? slot_at (pool, pool->used++) : used_slot (pool);
    if (slot)
        slot->alive = true;
    return slot;
}

void *rt_pool_find (const struct rt_pool *pool, const void *handle, const char *who)
{
    uintptr_t offset = (uintptr_t) handle - (uintptr_t) pool->base;
    struct rt_slot *slot;

    if (!pool->base || offset >= pool->used * pool->bytes || offset % pool->bytes)
        return NULL;
    slot = slot_at (pool, offset / pool->bytes);
    if (slot->alive)
        return slot;
    sim_misuse ("%s: the %s %p was destroyed before", who, pool->what, handle);
    return NULL;
}
