/* SPDX-License-Identifier: BSD-3-Clause */
/* info - what gs-info tells, by the files info_*.c. */
#ifndef GS_TOOLS_INFO_H
#define GS_TOOLS_INFO_H

#include <stdbool.h>

/* ---- Which way data would go between hosts, in info_hosts.c ---- */

/* Whether [layout] is RANKS, NODESxRANKS or RANKS+RANKS+..., with two ranks or more. */
bool info_hosts_is_layout (const char *layout);

/*
 * Prints what the transport of hosts would do with [layout], which is one. False, after a line on
 * stderr, if it cannot be had: its module is not there, or its MPI library.
 */
bool info_hosts (const char *layout);

/* ---- Which NCCL is found, and what becomes of it and of other versions, in info_nccl.c ---- */

/* Prints the version that is found with its row of the table, or why there is none. */
void info_nccl_found (void);

/* Prints the table, the row of the version that is found marked. */
void info_nccl_table (void);

/* ---- The settings of a site profile and what became of them, in info_profile.c ---- */

/*
 * Prints each setting of the profile [path] (slurm/profiles: NAME=VALUE lines) to stdout, with
 * its value in this environment and where that comes from: "profile", "environment" when it
 * differs, "unset". As an array of objects with [json]. False, after a line on stderr, if the
 * file cannot be read.
 */
bool info_profile (const char *path, bool json);

/*
 * Whether the environment has the variable [name] with the value that the profile [path] gives
 * it. False also if the file cannot be read, which info_profile () tells.
 */
bool info_profile_gave (const char *path, const char *name);

/* ---- A flight record that may be damaged, in info_record.c ---- */

/*
 * Prints the flight record [path] to stdout, newest operation last. What is damaged is said on
 * stderr and left out. False if anything was.
 */
bool info_record (const char *path);

#endif /* GS_TOOLS_INFO_H */
