/* SPDX-License-Identifier: BSD-3-Clause */
/* info_hosts - which way data would go between hosts. */
#ifndef GS_TOOLS_INFO_HOSTS_H
#define GS_TOOLS_INFO_HOSTS_H

#include <stdbool.h>

/* Whether [layout] is RANKS, NODESxRANKS or RANKS+RANKS+..., with two ranks or more. */
bool info_hosts_is_layout (const char *layout);

/*
 * Prints what the transport of hosts would do with [layout], which is one. False, after a line on
 * stderr, if it cannot be had: its module is not there, or its MPI library.
 */
bool info_hosts (const char *layout);

#endif /* GS_TOOLS_INFO_HOSTS_H */
