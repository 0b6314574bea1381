/* SPDX-License-Identifier: BSD-3-Clause */
/* control_messages - what ranks of different nodes tell each other of messages. */
#include "host/control_messages.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Before each ticket: whose it is, and how many bytes go with it. A letter begins with a number.
 */
struct entry {
    uint64_t end, bytes;
    struct gsi_ticket ticket;
};

#define TAKEN GSI_ROUTE_ENDS /* instead of an end */

size_t gsi_letter_begin (char *letter)
{
    memset (letter, 0, sizeof (uint64_t));
    return sizeof (uint64_t);
}

size_t gsi_letter_append (char *letter, size_t used, const struct gsi_ticket *ticket, bool send,
                          const void *data, size_t n)
{
    struct entry entry = {
        .end = send ? GSI_ROUTE_SENDS : GSI_ROUTE_RECEIVES, .bytes = n, .ticket = *ticket};
    uint64_t tickets;

    memcpy (letter + used, &entry, sizeof (entry));
    if (n)
        memcpy (letter + used + sizeof (entry), data, n);
    memcpy (&tickets, letter, sizeof (tickets));
    tickets++;
    memcpy (letter, &tickets, sizeof (tickets));
    return used + gsi_letter_needs (n);
}

bool gsi_letter_take (char *letter, enum gsi_route_end end, struct gsi_ticket *ticket,
                      const char **data)
{
    char *at = letter + sizeof (uint64_t);
    struct entry entry;
    uint64_t tickets;

    memcpy (&tickets, letter, sizeof (tickets));
    for (uint64_t i = 0; i < tickets; i++, at += gsi_letter_needs (entry.bytes)) {
        memcpy (&entry, at, sizeof (entry));
        if (entry.end != end)
            continue;
        *ticket = entry.ticket;
        *data = at + sizeof (entry);
        entry.end = TAKEN;
        memcpy (at, &entry, sizeof (entry));
        return true;
    }
    return false;
}

gs_status_t gsi_letter_read (const char *letter, struct gsi_notes notes[GSI_ROUTE_ENDS])
{
    const char *at = letter + sizeof (uint64_t);
    struct entry entry;
    uint64_t tickets;

    memcpy (&tickets, letter, sizeof (tickets));
    for (uint64_t i = 0; i < tickets; i++, at += gsi_letter_needs (entry.bytes)) {
        struct gsi_note *note;
        memcpy (&entry, at, sizeof (entry));
        if (entry.end == TAKEN)
            continue;
        if (!(note = malloc (sizeof (*note) + entry.bytes)))
            return gsi_fail (GS_ERR_NOMEM, "between hosts: no memory for a message");
        note->next = NULL;
        note->ticket = entry.ticket;
        memcpy (note->data, at + sizeof (entry), entry.bytes);
        if (notes[entry.end].first)
            notes[entry.end].last->next = note;
        else
            notes[entry.end].first = note;
        notes[entry.end].last = note;
    }
    return GS_OK;
}

struct gsi_note *gsi_notes_take (struct gsi_notes *notes)
{
    struct gsi_note *note = notes->first;

    if (note)
        notes->first = note->next;
    return note;
}

void gsi_notes_free (struct gsi_notes *notes)
{
    struct gsi_note *note;

    while ((note = gsi_notes_take (notes)))
        free (note);
}
