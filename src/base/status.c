/* SPDX-License-Identifier: BSD-3-Clause */
/* status - names of results, and the last error text of each thread. */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"

static _Thread_local char last_text[GSI_TEXT_MAX];
static _Thread_local bool is_told; /* the last public call of this thread has failed */

gs_status_t gsi_fail (gs_status_t st, const char *format, ...)
{
    char text[GSI_TEXT_MAX]; /* the arguments may point into last_text */
    va_list ap;

    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    gsi_printable (text, sizeof (text));
    strcpy (last_text, text);
    is_told = true;
    return st;
}

gs_status_t gsi_result (gs_status_t st)
{
    is_told = st != GS_OK;
    return st;
}

void gsi_callback_begin (void)
{
    is_told = false;
}

const char *gsi_callback_text (void)
{
    return is_told ? last_text : "";
}

const char *gsi_last_text (void)
{
    return last_text;
}

void gsi_failure_note (struct gsi_failure *f, gs_status_t st)
{
    *f = (struct gsi_failure){.st = st}; /* it may travel: no more than the text */
    strcpy (f->text, last_text);
}

gs_status_t gsi_failure_repeat (const struct gsi_failure *f)
{
    return f->st ? gsi_fail (f->st, "%s", f->text) : GS_OK;
}

const char *gs_last_error (void)
{
    return gsi_callback_text ();
}

void gs_abort_on_error (gs_status_t status, const char *call, const char *file, int line)
{
    if (status == GS_OK)
        return;
    fprintf (stderr, "%s:%d: %s: %s: %s\n", file, line, call, gs_status_string (status),
             gsi_callback_text ());
    abort ();
}

const char *gs_status_string (gs_status_t status)
{
    switch (status) {
    case GS_OK: return "GS_OK";
    case GS_ERR_ARG: return "GS_ERR_ARG";
    case GS_ERR_MISMATCH: return "GS_ERR_MISMATCH";
    case GS_ERR_NOMEM: return "GS_ERR_NOMEM";
    case GS_ERR_BOOT: return "GS_ERR_BOOT";
    case GS_ERR_TRANSPORT: return "GS_ERR_TRANSPORT";
    case GS_ERR_DEVICE: return "GS_ERR_DEVICE";
    case GS_ERR_IO: return "GS_ERR_IO";
    case GS_ERR_FORMAT: return "GS_ERR_FORMAT";
    case GS_ERR_TIMEOUT: return "GS_ERR_TIMEOUT";
    case GS_ERR_UNSUPPORTED: return "GS_ERR_UNSUPPORTED";
    case GS_ERR_STATE: return "GS_ERR_STATE";
    case GS_STATUS_INT_SIZED: break;
    }
    return "unknown status";
}
