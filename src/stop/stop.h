/* SPDX-License-Identifier: BSD-3-Clause */
/* stop - whether a program is to end: a signal, the end of its job, a file. */
#ifndef GS_STOP_STOP_H
#define GS_STOP_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

/* What one who asks knows of it. All but the first four are rank 0's. */
struct gsi_stop {
    uint64_t signals; /* that count, see signals.h */
    double margin_s;
    bool asked; /* there was a call */
    int reasons;
    char *file;    /* whose presence counts; */
    bool has_file; /* whether it was there, */
    int64_t looked_ns;
    struct gsi_timed_call *look; /* and a look for it that has not ended */
    double end_s;                /* of the job, since 1970; infinite if it is not known */
    int64_t called_ns;
    double longest_call_s;  /* between two calls */
    double longest_write_s; /* of a checkpoint */
};

/* Reads the options; the folder is [dir]. GS_ERR_ARG, GS_ERR_NOMEM. */
gs_status_t gsi_stop_open (struct gsi_stop *s, const char *dir, const gs_ckpt_opts_t *opts);
void gsi_stop_close (struct gsi_stop *s);

/* Notes how long a write took, from the call until the file was on disk. Not by another thread
 * than that of the plan. */
void gsi_stop_note_write (struct gsi_stop *s, int64_t ns);

/* How long before the end of the job the program must begin to stop. */
double gsi_stop_needed_s (const struct gsi_stop *s);

/* Collective, gs_stop_requested: texts begin with [name], who asks. What fails changes nothing.
 */
gs_status_t gsi_stop_ask (struct gsi_stop *s, gs_comm_t *comm, const char *name, int *reasons,
                          gs_stream_t stream);

#endif /* GS_STOP_STOP_H */
