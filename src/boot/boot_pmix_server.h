/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_pmix_server - the connection of this process with its PMIx server. */
#ifndef GS_BOOT_BOOT_PMIX_SERVER_H
#define GS_BOOT_BOOT_PMIX_SERVER_H

#include <pmix.h>
#include <stdint.h>

#include "gradsync.h"

/*
 * Connects once per process, counts the user, and tells in [*me] who this is. GS_ERR_UNSUPPORTED
 * where there is no server, GS_ERR_TIMEOUT where it has not answered by [deadline_ns].
 */
gs_status_t gsi_pmix_connect (int64_t deadline_ns, pmix_proc_t *me);

/*
 * Hands what was put to the server, by a thread that can be left behind: PMIx_Commit has no
 * deadline of its own, and a server that a rank has died in the arms of may never answer (4.2).
 */
gs_status_t gsi_pmix_commit (int64_t deadline_ns);

/* One user less. */
void gsi_pmix_disconnect (void);

/* Marks the ranks of this node in local[size], from the server's list "0,1,2,3". */
void gsi_pmix_local_ranks (const pmix_proc_t *me, int size, unsigned char *local);

#endif /* GS_BOOT_BOOT_PMIX_SERVER_H */
