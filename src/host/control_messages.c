/* SPDX-License-Identifier: BSD-3-Clause */
/* control_messages - what ranks of different nodes tell each other of messages. */
#include "host/control_messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Before each header: whose it is, and how many bytes go with it. Their number comes first. */
struct entry {
    uint64_t end, bytes;
    struct gsi_p2p_header header;
};

#define TAKEN GSI_ROUTE_ENDS /* instead of an end */

size_t gsi_control_begin (char *control)
{
    memset (control, 0, sizeof (uint64_t));
    return sizeof (uint64_t);
}

size_t gsi_control_append (char *control, size_t used, const struct gsi_p2p_header *header,
                           bool send, const void *data, size_t n)
{
    struct entry entry = {
        .end = send ? GSI_ROUTE_SENDS : GSI_ROUTE_RECEIVES, .bytes = n, .header = *header};
    uint64_t headers;

    memcpy (control + used, &entry, sizeof (entry));
    if (n)
        memcpy (control + used + sizeof (entry), data, n);
    memcpy (&headers, control, sizeof (headers));
    headers++;
    memcpy (control, &headers, sizeof (headers));
    return used + gsi_control_needs (n);
}

bool gsi_control_take (char *control, enum gsi_route_end end, struct gsi_p2p_header *header,
                       const char **data)
{
    char *at = control + sizeof (uint64_t);
    struct entry entry;
    uint64_t headers;

    memcpy (&headers, control, sizeof (headers));
    for (uint64_t i = 0; i < headers; i++, at += gsi_control_needs (entry.bytes)) {
        memcpy (&entry, at, sizeof (entry));
        if (entry.end != end)
            continue;
        *header = entry.header;
        *data = at + sizeof (entry);
        entry.end = TAKEN;
        memcpy (at, &entry, sizeof (entry));
        return true;
    }
    return false;
}

gs_status_t gsi_control_read (const char *control,
                              struct gsi_unexpected_queue queue[GSI_ROUTE_ENDS])
{
    const char *at = control + sizeof (uint64_t);
    struct entry entry;
    uint64_t headers;

    memcpy (&headers, control, sizeof (headers));
    for (uint64_t i = 0; i < headers; i++, at += gsi_control_needs (entry.bytes)) {
        struct gsi_unexpected *item;
        memcpy (&entry, at, sizeof (entry));
        if (entry.end == TAKEN)
            continue;
        if (!(item = malloc (sizeof (*item) + entry.bytes)))
            return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for a message");
        item->next = NULL;
        item->header = entry.header;
        memcpy (item->data, at + sizeof (entry), entry.bytes);
        if (queue[entry.end].first)
            queue[entry.end].last->next = item;
        else
            queue[entry.end].first = item;
        queue[entry.end].last = item;
    }
    return GS_OK;
}

struct gsi_unexpected *gsi_unexpected_take (struct gsi_unexpected_queue *queue)
{
    struct gsi_unexpected *item = queue->first;

    if (item)
        queue->first = item->next;
    return item;
}

void gsi_unexpected_free (struct gsi_unexpected_queue *queue)
{
    struct gsi_unexpected *item;

    while ((item = gsi_unexpected_take (queue)))
        free (item);
}
