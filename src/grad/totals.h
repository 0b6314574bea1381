/* SPDX-License-Identifier: BSD-3-Clause */
/* totals - what the steps of a reducer add up to. */
#ifndef GS_GRAD_TOTALS_H
#define GS_GRAD_TOTALS_H

#include "grad/reducer.h"

double gsi_totals_us (int64_t ns);

/* Time of a bucket that the program waited: all of it, or what was under way in finish. */
double gsi_totals_exposed_us (const gs_reducer_t *r, const struct gsi_load *load);

/* Adds the step that has ended. */
void gsi_totals_step (gs_reducer_t *r);

/* Adds the times of r->totals.seen and of the buckets. */
void gsi_totals_seen (gs_reducer_t *r);

#endif /* GS_GRAD_TOTALS_H */
