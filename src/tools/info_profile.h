/* SPDX-License-Identifier: BSD-3-Clause */
/* info_profile - the settings of a site profile and what became of them. */
#ifndef GS_TOOLS_INFO_PROFILE_H
#define GS_TOOLS_INFO_PROFILE_H

#include <stdbool.h>

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

#endif /* GS_TOOLS_INFO_PROFILE_H */
