/* SPDX-License-Identifier: BSD-3-Clause */
/* info_record - reads a flight record that may be damaged. */
#ifndef GS_TOOLS_INFO_RECORD_H
#define GS_TOOLS_INFO_RECORD_H

#include <stdbool.h>

/*
 * Prints the flight record [path] to stdout, newest operation last. What is damaged is said on
 * stderr and left out. False if anything was.
 */
bool info_record (const char *path);

#endif /* GS_TOOLS_INFO_RECORD_H */
