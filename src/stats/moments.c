/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moments - mean, variance, minimum and maximum of columns.
 *
 * T. F. Chan, G. H. Golub, R. J. LeVeque, Algorithms for computing the sample variance: analysis
 * and recommendations, The American Statistician 37 (1983) 242: two passes with a correction, and
 * the merge of two sets of which the moments are known.
 */
#include "stats/moments.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/status.h"

/* Sums of each feature; those of the second pass are about the mean of the first. */
struct columns {
    double *taken, *bad, *sum, *min, *max, *mean, *rest, *squares;
};

static struct columns columns_in (double *room, size_t features)
{
    struct columns c;
    double **column[GSI_MOMENTS_ROOM] = {&c.taken, &c.bad,  &c.sum,  &c.min,
                                         &c.max,   &c.mean, &c.rest, &c.squares};

    memset (room, 0, GSI_MOMENTS_ROOM * features * sizeof (*room));
    for (size_t i = 0; i < GSI_MOMENTS_ROOM; i++)
        *column[i] = room + i * features;
    for (size_t f = 0; f < features; f++) {
        c.min[f] = INFINITY;
        c.max[f] = -INFINITY;
    }
    return c;
}

/* Whether value [f] of sample [s] is wanted. */
static inline bool is_wanted (const struct gsi_samples *all, size_t s, size_t f)
{
    return !all->mask || all->mask[s * all->mask_width + (all->mask_width == 1 ? 0 : f)];
}

static inline bool is_good (double x)
{
    return fabs (x) <= DBL_MAX;
}

static void first_pass (const struct columns *c, const struct gsi_samples *all)
{
    for (size_t s = 0; s < all->samples; s++) {
        const double *row = all->x + s * all->features;
        for (size_t f = 0; f < all->features; f++) {
            bool wanted = is_wanted (all, s, f), good = wanted && is_good (row[f]);
            c->taken[f] += good;
            c->bad[f] += wanted && !good;
            c->sum[f] += good ? row[f] : 0;
            c->min[f] = good && row[f] < c->min[f] ? row[f] : c->min[f];
            c->max[f] = good && row[f] > c->max[f] ? row[f] : c->max[f];
        }
    }
}

static void second_pass (const struct columns *c, const struct gsi_samples *all)
{
    for (size_t f = 0; f < all->features; f++)
        c->mean[f] = c->taken[f] > 0 ? c->sum[f] / c->taken[f] : 0;
    for (size_t s = 0; s < all->samples; s++) {
        const double *row = all->x + s * all->features;
        for (size_t f = 0; f < all->features; f++) {
            bool good = is_wanted (all, s, f) && is_good (row[f]);
            double d = good ? row[f] - c->mean[f] : 0;
            c->rest[f] += d;
            c->squares[f] += d * d;
        }
    }
}

/* What is known of a feature. */
static gs_moments_t moments_of (const struct columns *c, size_t f)
{
    double n = c->taken[f], m2;
    gs_moments_t m = {.bad = (uint64_t) c->bad[f]};

    if (n == 0)
        return m;
    m2 = c->squares[f] - c->rest[f] * (c->rest[f] / n);
    m.count = (uint64_t) n;
    m.mean = c->mean[f] + c->rest[f] / n;
    m.m2 = isnan (m2) ? INFINITY : m2 > 0 ? m2 : 0; /* two infinite parts */
    m.variance = m.m2 / n;
    m.min = c->min[f];
    m.max = c->max[f];
    return m;
}

static void merge (gs_moments_t *into, const gs_moments_t *from)
{
    double a = (double) into->count, b = (double) from->count, n = a + b;
    double delta = from->mean - into->mean;
    uint64_t bad = into->bad + from->bad;

    if (!into->count) {
        *into = *from;
    } else if (from->count) {
        into->count += from->count;
        into->mean += delta * (b / n);
        into->m2 += from->m2 + delta * delta * (a * (b / n));
        into->variance = into->m2 / n;
        into->min = from->min < into->min ? from->min : into->min;
        into->max = from->max > into->max ? from->max : into->max;
    }
    into->bad = bad;
}

void gsi_moments_add (gs_moments_t *moments, double *room, const struct gsi_samples *s)
{
    struct columns c = columns_in (room, s->features);

    first_pass (&c, s);
    second_pass (&c, s);
    for (size_t f = 0; f < s->features; f++) {
        gs_moments_t m = moments_of (&c, f);
        merge (&moments[f], &m);
    }
}

void gsi_moments_merge (gs_moments_t *into, const gs_moments_t *from, size_t features)
{
    for (size_t f = 0; f < features; f++)
        merge (&into[f], &from[f]);
}

bool gsi_moments_find_nonfinite (const struct gsi_samples *s, size_t *sample, size_t *feature)
{
    for (*sample = 0; *sample < s->samples; ++*sample)
        for (*feature = 0; *feature < s->features; ++*feature)
            if (is_wanted (s, *sample, *feature) &&
                !is_good (s->x[*sample * s->features + *feature]))
                return true;
    return false;
}

gs_status_t gs_moments_merge (gs_moments_t *into, const gs_moments_t *from, size_t features)
{
    if (features && (!into || !from))
        return gsi_fail (GS_ERR_ARG, "gs_moments_merge: %s is NULL, but features is %zu",
                         into ? "from" : "into", features);
    gsi_moments_merge (into, from, features);
    return gsi_result (GS_OK);
}
