/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process - which process this is, and where: a fork of one that uses the library has copies of
 * its handles, but neither its threads nor a right to its connections, shared memory and files.
 *
 * All that such a child may do is told here: nothing. A child of a process that has not used the
 * library yet, nor MPI or PMIx, is a process like any other. N.B. A child of vfork shares its
 * parent's memory and cannot be told from it; POSIX lets it call nothing but exec and _exit.
 */
#ifndef GS_BASE_PROCESS_H
#define GS_BASE_PROCESS_H

#include <stdbool.h>

#include "gradsync.h"

/* Whether this process was forked from one that uses the library: two loads, no system call. */
bool gsi_process_is_child (void);

/* This process uses the library from now on; GS_ERR_STATE with the reason if it must not. */
gs_status_t gsi_process_use (const char *caller);

/*
 * From now on a write to a socket whose peer has died fails, as MPI and PMIx expect, where
 * the program left SIGPIPE to end the process without a word. N.B. Open MPI's BTL over TCP and
 * PMIx write without MSG_NOSIGNAL, and leave the signal as it is (4.1, 5.0; PMIx 4.2).
 */
void gsi_process_outlive_pipes (void);

/*
 * A call of this process has failed on several ranks, and has said why: that its communicators
 * stay open when it ends needs no other line.
 */
void gsi_process_told (void);
bool gsi_process_is_told (void);

/*
 * A call of another library has not returned, though the process ends: what it may use is not
 * taken down beside it.
 */
void gsi_process_leave_behind (void);
bool gsi_process_has_left_behind (void);

/* This node's name as the operating system knows it, into [host] of [room] bytes, all written. */
void gsi_process_host (char *host, size_t room);

/*
 * GS_OK if a handle may be used: it is not NULL, [intact], that is it has the mark of a live one,
 * and of this process. Else a text "caller: argument was destroyed, or is no kind".
 */
gs_status_t gsi_handle_check (const char *caller, const char *argument, const char *kind,
                              const void *handle, bool intact);

#endif /* GS_BASE_PROCESS_H */
