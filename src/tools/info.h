/* SPDX-License-Identifier: BSD-3-Clause */
/* info - what gs-info tells, by the files info_*.c. */
#ifndef GS_TOOLS_INFO_H
#define GS_TOOLS_INFO_H

#include <stdbool.h>

/* ---- Which way data would go between hosts, in info_hosts.c ---- */

/*
 * The whole number from [least] to 2^20 at [*text], which then points behind it; [least] - 1 if
 * there is none.
 */
long info_number (const char **text, long least);

/* Whether [layout] is RANKS, NODESxRANKS or RANKS+RANKS+..., with two ranks or more. */
bool info_hosts_is_layout (const char *layout);

/*
 * Prints what the transport of hosts would do with [layout], which is one. False, after a line on
 * stderr, if it cannot be had: its module is not there, or its MPI library.
 */
bool info_hosts (const char *layout);

/* ---- Which way a job with GPUs would take, in info_layout.c ---- */

/* Whether [layout] is NODESxRANKSxGPUS, each node with so many ranks and GPUs. */
bool info_layout_is_layout (const char *layout);

/*
 * Prints which way a job of [layout], which is one, would take and what to type, as one object
 * with [json]. False, after a line on stderr, if such a job would fail.
 */
bool info_layout (const char *layout, bool json);

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
