/* SPDX-License-Identifier: BSD-3-Clause */
/* network - what can be said when MPI does not reach ranks of other hosts. */
#ifndef GS_MPI_NETWORK_H
#define GS_MPI_NETWORK_H

#include "boot/boot.h"
#include "boot/topo.h"

/*
 * Fails with [st] and its text, of a call in which MPI connects ranks that have all come; adds
 * this host and its interfaces, what may be in the way, and the variables that help.
 */
gs_status_t gsi_network_blame (gs_status_t st, const struct gsi_boot *boot,
                               const struct gsi_topo *topo);

#endif /* GS_MPI_NETWORK_H */
