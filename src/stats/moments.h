/* SPDX-License-Identifier: BSD-3-Clause */
/* moments - mean, variance, minimum and maximum of columns; pure arithmetic. */
#ifndef GS_STATS_MOMENTS_H
#define GS_STATS_MOMENTS_H

#include <stdbool.h>

#include "gradsync.h"

/* Samples and a mask as in gs_moments_compute. */
struct gsi_samples {
    const double *x;
    const unsigned char *mask; /* or NULL */
    size_t mask_width, samples, features;
};

#define GSI_MOMENTS_SAMPLES 1024 /* at once: what sums of them lose is little */
#define GSI_MOMENTS_ROOM    8    /* doubles of a feature */

/* Adds samples to [moments]; [room] has GSI_MOMENTS_ROOM * features doubles. */
void gsi_moments_add (gs_moments_t *moments, double *room, const struct gsi_samples *s);

/* Merges [from] into [into]; in the same order, with the same bits. */
void gsi_moments_merge (gs_moments_t *into, const gs_moments_t *from, size_t features);

/* The first value that is counted as bad; false if there is none. */
bool gsi_moments_find_nonfinite (const struct gsi_samples *s, size_t *sample, size_t *feature);

#endif /* GS_STATS_MOMENTS_H */
