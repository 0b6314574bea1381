/* SPDX-License-Identifier: BSD-3-Clause */
/* json - the little JSON the tools write. */
#include "tools/json.h"

/*
 * Bytes of the well-formed UTF-8 character at [s], 0 if there is none. The second byte's range
 * shuts out overlong forms, surrogates and what lies beyond U+10FFFF (Unicode, table 3-7).
 */
static int character_bytes (const unsigned char *s)
{
    int bytes = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    int low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    int high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;

    if (s[0] > 0xf4)
        return 0;
    if (bytes > 1 && (s[1] < low || s[1] > high))
        return 0;
    for (int i = 2; i < bytes; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

void json_string (FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *) text;

    fputc ('"', out);
    while (*s) {
        int bytes = character_bytes (s);
        if (*s < 0x20 || *s == 0x7f)
            fprintf (out, "\\u%04x", *s);
        else if (*s == '"' || *s == '\\')
            fprintf (out, "\\%c", *s);
        else if (bytes)
            fwrite (s, 1, (size_t) bytes, out);
        else
            fputs ("\\ufffd", out);
        s += bytes ? bytes : 1;
    }
    fputc ('"', out);
}
