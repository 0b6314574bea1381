/* SPDX-License-Identifier: BSD-3-Clause */
/* env - the GS_* variables: checked once per create, read by typed getters. */
#ifndef GS_BASE_ENV_H
#define GS_BASE_ENV_H

#include <stdbool.h>

#include "base/transport.h"
#include "gradsync.h"

#define GSI_ENV(id, name, kind, standard, low, high, choices, help) id,
enum gsi_env {
#include "base/env.def"
    GSI_ENV_COUNT
};
#undef GSI_ENV

enum gsi_boot_choice { GSI_BOOT_AUTO, GSI_BOOT_PMIX, GSI_BOOT_MPI, GSI_BOOT_SINGLE };
enum gsi_check { GSI_CHECK_OFF, GSI_CHECK_ARGS, GSI_CHECK_COLLECTIVE };
enum gsi_sharing { GSI_SHARING_AUTO, GSI_SHARING_NEVER, GSI_SHARING_ALWAYS };
enum gsi_avg_choice { GSI_AVG_AUTO, GSI_AVG_EXACT, GSI_AVG_FAST };
enum gsi_host_algo { GSI_HOST_AUTO, GSI_HOST_FLAT, GSI_HOST_HIER, GSI_HOST_RABENSEIFNER };
enum gsi_job_end { GSI_JOB_END_AUTO = -1, GSI_JOB_END_NONE = -2 };
enum gsi_record_choice { GSI_RECORD_FILE, GSI_RECORD_MEMORY };

/* GS_ERR_ARG, naming the variable, its value and what is allowed, for the first bad one. */
gs_status_t gsi_env_check (void);

/* The known variable that [name], which begins with GS_, may be a misspelling of; NULL if it is
 * known itself, or like none. */
const char *gsi_env_nearest (const char *name);

/* Warns, once in a process, of each variable of the environment that may be a misspelt one. */
void gsi_env_warn_misspelt (void);

bool gsi_env_is_set (enum gsi_env id); /* to something, in the environment */
const char *gsi_env_name (enum gsi_env id);

/* The value in force; a variable that is not understood counts as unset (gsi_env_check tells). */
int64_t gsi_env_int (enum gsi_env id);      /* of EITHER: -1, -2, ... for its choices */
int gsi_env_choice (enum gsi_env id);       /* index in the list of choices */
const char *gsi_env_text (enum gsi_env id); /* borrowed from the environment, never NULL */

#endif /* GS_BASE_ENV_H */
