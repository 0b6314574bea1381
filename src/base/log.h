/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log - lines for people: "gradsync[rank/size] topic: text", to stderr, GS_DEBUG_FILE or a sink.
 *
 * Levels are those of gs_log_level_t; who may speak at which level is said there.
 */
#ifndef GS_BASE_LOG_H
#define GS_BASE_LOG_H

#include <stdbool.h>

#include "gradsync.h"

/* Topics, for GS_DEBUG=level:topic,...: the lists in log.c and gradsync(7), which lint compares.
 */
void gsi_log (gs_log_level_t level, const char *topic, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Reads GS_DEBUG again; called by each create. */
void gsi_log_configure (void);

/* Who speaks from now on; -1 before the first communicator. */
void gsi_log_identity (int rank, int size);

/* True if [level] would be heard: guards work that is only for the log. */
bool gsi_log_on (gs_log_level_t level);

/* GS_OK if [text], the value of GS_DEBUG, is a level and perhaps topics that there are. */
gs_status_t gsi_log_check (const char *text);

#endif /* GS_BASE_LOG_H */
