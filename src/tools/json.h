/* SPDX-License-Identifier: BSD-3-Clause */
/* json - the little JSON the tools write. */
#ifndef GS_TOOLS_JSON_H
#define GS_TOOLS_JSON_H

#include <stdio.h>

/* Writes [text] as a JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_string (FILE *out, const char *text);

#endif /* GS_TOOLS_JSON_H */
