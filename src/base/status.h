/* SPDX-License-Identifier: BSD-3-Clause */
/* status - the result of a call and the text that goes with it, per thread. */
#ifndef GS_BASE_STATUS_H
#define GS_BASE_STATUS_H

#include "gradsync.h"

#define GSI_TEXT_MAX 1024 /* longest error text, bytes with the final 0 */

/* How every text of a missed deadline says so: any, that of a create, that of a call. */
#define GSI_LATE      "the deadline passed"
#define GSI_LATE_BOOT GSI_LATE " (GS_BOOT_TIMEOUT_MS)"
#define GSI_LATE_CALL GSI_LATE " (GS_TIMEOUT_MS)"

/*
 * Keeps the text for gs_last_error () and returns [st], so that failing is one statement:
 *     return gsi_fail (GS_ERR_BOOT, "PMIx_Fence_nb: %s", PMIx_Error_string (rc));
 * A text that is too long is cut.
 */
gs_status_t gsi_fail (gs_status_t st, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/*
 * What a public function returns, but for gsi_fail: after GS_OK gs_last_error () is "", after a
 * failure it is that one's text again. The text itself stays: public calls within one that has
 * failed, those of a clean-up for instance, do not lose it. Each return has it (tests/lint).
 */
gs_status_t gsi_result (gs_status_t st);

/* The text of the last failure in this thread, within the library and whatever came after it. */
const char *gsi_last_text (void);

/*
 * Around a function of the program's: what went wrong before has nothing to do with what it
 * returns. Behind it the text is that of a call of the library that failed in it last, else "".
 */
void gsi_callback_begin (void);
const char *gsi_callback_text (void);

/* A failure with its text, which another thread does not see: noted by the one that met it, and
 * repeated by the one that tells. Without one, GS_OK. */
struct gsi_failure {
    gs_status_t st;
    char text[GSI_TEXT_MAX];
};

void gsi_failure_note (struct gsi_failure *f, gs_status_t st);
gs_status_t gsi_failure_repeat (const struct gsi_failure *f);

#endif /* GS_BASE_STATUS_H */
