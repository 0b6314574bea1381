/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_messages - what ranks of different nodes tell each other of messages.
 *
 * A letter has the tickets of one call to one rank, of messages in both directions, with what is
 * short. A call may take less than its letters have: the rest waits in notes for later ones. What
 * a call takes itself needs no memory, so that it fails on no rank for want of that.
 */
#ifndef GS_HOST_CONTROL_MESSAGES_H
#define GS_HOST_CONTROL_MESSAGES_H

#include <stdbool.h>

#include "gradsync.h"
#include "host/route.h"

#define GSI_LETTER_BYTES   ((size_t) 60 << 10) /* at most: MPI libraries send as much at once */
#define GSI_ENCLOSED_BYTES ((size_t) 16 << 10) /* what goes with a ticket */

/* A ticket that has come. */
struct gsi_note {
    struct gsi_note *next;
    struct gsi_ticket ticket;
    char data[];
};

/* Those of one rank, of messages in one direction. */
struct gsi_notes {
    struct gsi_note *first, *last;
};

/* Begins [letter], and appends a ticket with [n] bytes; return what it has by then. */
size_t gsi_letter_begin (char *letter);
size_t gsi_letter_append (char *letter, size_t used, const struct gsi_ticket *ticket, bool send,
                          const void *data, size_t n);

/* What a letter grows by. */
static inline size_t gsi_letter_needs (size_t n)
{
    return 2 * sizeof (uint64_t) + sizeof (struct gsi_ticket) + (n + 7) / 8 * 8;
}

/* Takes the first ticket of this end out of [letter], where its data stay; false: there is none.
 */
bool gsi_letter_take (char *letter, enum gsi_route_end end, struct gsi_ticket *ticket,
                      const char **data);

/* Puts what was not taken out of [letter] into [notes], of senders and of receivers. */
gs_status_t gsi_letter_read (const char *letter, struct gsi_notes notes[GSI_ROUTE_ENDS]);

/* The oldest one, to be freed; NULL: none. */
struct gsi_note *gsi_notes_take (struct gsi_notes *notes);
void gsi_notes_free (struct gsi_notes *notes);

#endif /* GS_HOST_CONTROL_MESSAGES_H */
