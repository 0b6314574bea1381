/* SPDX-License-Identifier: BSD-3-Clause */
/* route - what ranks of a node tell each other of messages, in memory that they share. */
#include "host/route.h"

#include <string.h>

static enum gsi_route_end other (enum gsi_route_end end)
{
    return end == GSI_ROUTE_SENDS ? GSI_ROUTE_RECEIVES : GSI_ROUTE_SENDS;
}

/* Where this end posts the header of message [number]. */
static struct gsi_posted *posted_of (struct gsi_route *route, enum gsi_route_end end,
                                     uint64_t number)
{
    return end == GSI_ROUTE_SENDS ? &route->offer[number % GSI_ROUTE_SLOTS].posted
                                  : &route->want[number % GSI_ROUTE_SLOTS];
}

uint64_t gsi_route_done (const struct gsi_route *route, enum gsi_route_end end)
{
    return atomic_load_explicit (&route->end[end].done, memory_order_acquire);
}

bool gsi_route_put (struct gsi_route *route, enum gsi_route_end end, uint64_t number,
                    const struct gsi_p2p_header *header, const void *data, size_t n)
{
    struct gsi_posted *posted = posted_of (route, end, number);
    uint64_t *seen = &route->end[end].seen;

    if (number > *seen + GSI_ROUTE_SLOTS) {
        *seen = gsi_route_done (route, other (end));
        if (number > *seen + GSI_ROUTE_SLOTS)
            return false;
    }
    if (n)
        memcpy (route->offer[number % GSI_ROUTE_SLOTS].data, data, n);
    posted->done = atomic_load_explicit (&route->end[end].done, memory_order_relaxed);
    posted->header = *header;
    atomic_store_explicit (&posted->number, number, memory_order_release);
    return true;
}

bool gsi_route_get (struct gsi_route *route, enum gsi_route_end end, uint64_t number,
                    struct gsi_p2p_header *header)
{
    const struct gsi_posted *posted = posted_of (route, other (end), number);

    if (atomic_load_explicit (&posted->number, memory_order_acquire) != number)
        return false;
    *header = posted->header;
    route->end[end].seen = posted->done;
    return true;
}

const void *gsi_route_data (const struct gsi_route *route, uint64_t number)
{
    return route->offer[number % GSI_ROUTE_SLOTS].data;
}

void gsi_route_end (struct gsi_route *route, enum gsi_route_end end, uint64_t number)
{
    atomic_store_explicit (&route->end[end].done, number, memory_order_release);
}
