/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signals - which signals the process has had: the only handler of the library, installed for
 * those who ask for it. It notes the signal and calls the handler that was there before.
 *
 * A set of signals is a mask: bit n - 1 stands for signal n.
 */
#ifndef GS_STOP_SIGNALS_H
#define GS_STOP_SIGNALS_H

#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

/* Reads "USR1,TERM" or "none"; GS_ERR_ARG names [caller] and the culprit. */
gs_status_t gsi_signals_parse (const char *caller, const char *list, uint64_t *mask);

/* The other way round; [room] of 200 bytes holds all of them. */
void gsi_signals_describe (uint64_t mask, char *text, size_t room);

/* The lowest one, "SIGUSR1"; NULL of none. */
const char *gsi_signals_name (uint64_t mask);

/* Begins to note the signals of [mask], until as many closes: the last puts back what was there,
 * unless somebody else has. */
void gsi_signals_open (uint64_t mask);
void gsi_signals_close (uint64_t mask);

/* Those of [mask] that have come since they were first opened, also to other users of this. Looks
 * whether the handlers are still there; where not, warns and installs them again. */
uint64_t gsi_signals_seen (uint64_t mask);

#endif /* GS_STOP_SIGNALS_H */
