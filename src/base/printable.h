/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * printable - text from elsewhere, of files, hosts and other ranks, for people: what would
 * command a terminal is shown as "\x1b".
 */
#ifndef GS_BASE_PRINTABLE_H
#define GS_BASE_PRINTABLE_H

#include <stdio.h>
#include <string.h>

/*
 * Bytes of the control character at [at], 0 if there is none: of ASCII, or one of the 32 of
 * Unicode in UTF-8, which terminals obey as well.
 */
static inline int gsi_control_bytes (const char *at)
{
    const unsigned char *c = (const unsigned char *) at;

    if (c[0] < ' ' || c[0] == 127)
        return c[0] != 0;
    return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

/* Shows those of [text], in [room] bytes, in place; what has no room is cut off. */
static inline void gsi_printable (char *text, size_t room)
{
    for (size_t at = 0; text[at]; at++)
        for (int left = gsi_control_bytes (text + at); left; left--, at += left ? 4 : 3) {
            size_t rest;
            char code[5];
            if (!text[at]) /* the second of two bytes was cut off */
                return;
            rest = strlen (text + at + 1) + 1;
            snprintf (code, sizeof (code), "\\x%02x", (unsigned char) text[at]);
            if (at + 4 >= room) {
                text[at] = 0;
                return;
            }
            rest = rest < room - at - 4 ? rest : room - at - 4;
            while (rest--) /* N.B. valgrind takes a fortified memmove for memcpy */
                text[at + 4 + rest] = text[at + 1 + rest];
            memcpy (text + at, code, 4);
            text[room - 1] = 0;
        }
}

/* Prints [text] so. */
static inline void gsi_printable_put (FILE *out, const char *text)
{
    while (*text) {
        int bytes = gsi_control_bytes (text);
        if (!bytes)
            fputc (*text++, out);
        while (bytes--)
            fprintf (out, "\\x%02x", (unsigned char) *text++);
    }
}

#endif /* GS_BASE_PRINTABLE_H */
