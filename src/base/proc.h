/* SPDX-License-Identifier: BSD-3-Clause */
/* proc - what /proc tells of a process, whose number another one may have had. */
#ifndef GS_BASE_PROC_H
#define GS_BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The beginning of a file of the system's, without its last newline; "" if there is none. */
void gsi_system_text (const char *path, char *text, size_t room);

/*
 * When a process started, in ticks since its kernel did; 0 if that cannot be told. [*ended] tells
 * whether it only waits for its parent: a zombie, and no thread of it goes on without the first.
 */
uint64_t gsi_process_start (long long pid, bool *ended);

/* Whether process [pid], which started at [start], goes on: it has not ended, nor is it stopped.
 */
bool gsi_process_runs (long long pid, uint64_t start);

/*
 * Whether process [pid] of namespace [space], which started at [start], has ended; false if that
 * cannot be told here: they are 0, or it is another namespace's, or a look fails for now.
 */
bool gsi_process_has_ended (long long pid, uint64_t start, uint64_t space);

/* The namespace, of this host and its boot, in which this process's number counts; 0 if it is not
 * known. */
uint64_t gsi_process_space (void);

#endif /* GS_BASE_PROC_H */
