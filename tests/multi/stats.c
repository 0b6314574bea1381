/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stats - moments of samples of all ranks against long double over the joined data, which every
 * rank can make: all types, uneven and empty ranks, masks, values that are no numbers, offsets
 * that hide the variance, merges over time; and logical reductions.
 */
#include "data.h"

enum { NO_MASK, OF_SAMPLES, OF_VALUES, MASKS };

/* What the ranks have. */
struct plan {
    gs_dtype_t dtype;
    size_t most, features; /* samples of a rank, at most */
    int mask;
    double offset, scale;
    bool bad, device;
};

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;
static int warnings;
static char warning[1000];

static void hear (gs_log_level_t level, const char *line, void *context)
{
    (void) context;
    if (level != GS_LOG_WARN)
        return;
    warnings++;
    snprintf (warning, sizeof (warning), "%s", line);
}

/* Some ranks have none; the last one always has some, and one of two at least. */
static size_t samples_of (const struct plan *p, int r)
{
    uint64_t bits = data_bits (seed ^ 77, r, 0);

    return bits % 4 == 0 && r < size - 1 ? 0 : 1 + (size_t) (bits >> 8) % p->most;
}

static bool is_bad (const struct plan *p, int r, size_t i)
{
    return p->bad && data_bits (seed ^ 5, r, i) % 13 == 0;
}

static void make (const struct plan *p, void *array, size_t at, int r, size_t i)
{
    static const double worst[] = {NAN, INFINITY, -INFINITY};
    size_t width = gs_dtype_size (p->dtype);
    uint64_t bits = data_bits (seed, r, i);
    double x = p->offset + p->scale * (2 * data_number (bits) + data_number (bits * 31 + 7));

    if (gsi_dtype_is_integer (p->dtype)) {
        bits = data_integer (p->dtype, seed, r, i);
        memcpy ((char *) array + at * width, &bits, width);
    } else {
        wide_store (p->dtype, array, at, is_bad (p, r, i) ? worst[bits % 3] : x, 0);
    }
}

static long double value (const struct plan *p, int r, size_t i)
{
    _Alignas(16) unsigned char one[16];
    uint64_t bits;

    if (gsi_dtype_is_integer (p->dtype)) {
        bits = data_integer (p->dtype, seed, r, i);
        return p->dtype <= GS_I64 ? (long double) (int64_t) bits : (long double) bits;
    }
    make (p, one, 0, r, i);
    return creall (wide_load (p->dtype, one, 0));
}

static unsigned char mask_of (const struct plan *p, int r, size_t s, size_t f)
{
    size_t i = p->mask == OF_SAMPLES ? s : s * p->features + f;

    return p->mask == NO_MASK || data_bits (seed ^ 9, r, i) % 3 != 0 ? 1 + (i & 3) : 0;
}

/* Two passes over all samples of all ranks. */
static void check_feature (const struct plan *p, size_t f, const gs_moments_t *m, bool merged)
{
    long double sum = 0, m2 = 0, min = INFINITY, max = -INFINITY, most = 0, mean, deviation;
    uint64_t count = 0, bad = 0;

    for (int pass = 0; pass < 2; pass++) {
        mean = count ? sum / (long double) count : 0;
        for (int r = 0; r < size; r++)
            for (size_t s = 0; s < samples_of (p, r); s++) {
                long double x;
                if (!mask_of (p, r, s, f))
                    continue;
                if (is_bad (p, r, s * p->features + f)) {
                    bad += !pass;
                    continue;
                }
                x = value (p, r, s * p->features + f);
                m2 += pass ? (x - mean) * (x - mean) : 0;
                if (pass)
                    continue;
                count++;
                sum += x;
                min = x < min ? x : min;
                max = x > max ? x : max;
                most = fabsl (x) > most ? fabsl (x) : most;
            }
    }
    deviation = count ? sqrtl (m2 / (long double) count) : 0;
    if (merged) { /* with itself */
        count *= 2;
        bad *= 2;
        m2 *= 2;
    }
    CHECK (m->count == count && m->bad == bad,
           "feature %zu: %llu taken, %llu bad, not %llu, %llu", f, (unsigned long long) m->count,
           (unsigned long long) m->bad, (unsigned long long) count, (unsigned long long) bad);
    if (!count) {
        CHECK (m->mean == 0 && m->m2 == 0 && m->variance == 0 && m->min == 0 && m->max == 0,
               "feature %zu: none, but not 0", f);
        return;
    }
    CHECK (m->min == (double) min && m->max == (double) max, "feature %zu: %g to %g, not %g, %g",
           f, m->min, m->max, (double) min, (double) max);
    CHECK (fabsl (m->mean - mean) <= 4 * DBL_EPSILON * most,
           "feature %zu: mean %.17g, not %.17Lg", f, m->mean, mean);
    CHECK (fabsl (m->m2 - m2) <=
               DBL_EPSILON * (256 * m2 + 8 * most * deviation * (long double) count),
           "feature %zu of %llu %s: m2 %.17g, not %.17Lg", f, (unsigned long long) count,
           data_names[p->dtype], m->m2, m2);
    CHECK (m->variance == m->m2 / (double) count, "feature %zu: variance", f);
}

/* Every one of a few features, some of many. */
static void check_moments (const struct plan *p, const gs_moments_t *m, bool merged)
{
    size_t step = p->features > 64 ? p->features / 23 : 1;

    for (size_t f = 0; f < p->features; f += step)
        check_feature (p, f, &m[f], merged);
    CHECK (data_same_everywhere (comm, m, p->features * sizeof (*m)), "other bits elsewhere");
}

static void check_warning (const struct plan *p, uint64_t bad)
{
    CHECK (warnings == (bad > 0), "%d warnings", warnings);
    if (bad)
        CHECK (strstr (warning, "NaN or infinite") && strstr (warning, "sample"), "'%s'",
               warning);
    (void) p;
}

static void *on_device (const void *host, size_t bytes)
{
    void *memory;

    CHECK_OK (gs_device_alloc (comm, bytes, &memory));
    CHECK_OK (gs_device_copy (comm, memory, host, bytes, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    return memory;
}

static void check (struct plan p)
{
    size_t samples, count, bytes, mask_bytes, width = p.mask == OF_SAMPLES ? 1 : p.features;
    gs_moments_t *m = data_allocate (p.features * sizeof (*m));
    gs_moments_t *twice = calloc (p.features, sizeof (*twice));
    unsigned char *mask;
    char *x, *there = NULL, *mask_there = NULL;
    uint64_t bad = 0;

    seed++;
    samples = samples_of (&p, rank);
    count = samples * p.features;
    bytes = count * gs_dtype_size (p.dtype);
    mask_bytes = samples * width;
    x = data_allocate (bytes);
    mask = data_allocate (mask_bytes);
    for (size_t i = 0; i < count; i++) {
        make (&p, x, i, rank, i);
        bad += is_bad (&p, rank, i) && mask_of (&p, rank, i / p.features, i % p.features);
    }
    for (size_t i = 0; i < mask_bytes; i++)
        mask[i] = mask_of (&p, rank, i / width, i % width);
    if (p.device && rank % 3 < 2 && bytes) {
        there = on_device (x, bytes);
        mask_there = rank % 3 ? NULL : on_device (mask, mask_bytes);
    }
    warnings = 0;
    CHECK_OK (gs_moments_compute (comm, there ? there : x, samples, p.features, p.dtype,
                                  p.mask == NO_MASK ? NULL
                                  : mask_there      ? (unsigned char *) mask_there
                                                    : mask,
                                  width, m, NULL));
    check_warning (&p, bad);
    check_moments (&p, m, false);
    CHECK_OK (gs_moments_merge (twice, m, p.features));
    CHECK (!memcmp (twice, m, p.features * sizeof (*m)), "merged into nothing");
    CHECK_OK (gs_moments_merge (twice, m, p.features));
    check_moments (&p, twice, true);
    CHECK_OK (gs_device_free (comm, there));
    CHECK_OK (gs_device_free (comm, mask_there));
    CHECK (data_free (m, p.features * sizeof (*m)) && data_free (x, bytes) &&
               data_free (mask, mask_bytes),
           "written behind");
    free (twice);
}

/* Squares that are no numbers of the type: infinite, not 0. */
static void check_huge (void)
{
    static const double x[3] = {1e300, 2e300, 4e300};
    gs_moments_t m;

    CHECK_OK (gs_moments_compute (comm, x, 3, 1, GS_F64, NULL, 0, &m, NULL));
    CHECK (isinf (m.m2) && isinf (m.variance) && m.count == 3 * (uint64_t) size && !m.bad &&
               m.max == 4e300,
           "m2 %g, variance %g, of %llu", m.m2, m.variance, (unsigned long long) m.count);
}

/* Nobody has anything, or it is all masked. */
static void check_nothing (void)
{
    static const double x[4] = {1, NAN, 3, 4};
    static const unsigned char mask[2];
    static const gs_moments_t zero;
    gs_moments_t m[2];

    CHECK_OK (gs_moments_compute (comm, NULL, 0, 2, GS_F64, NULL, 0, m, NULL));
    CHECK (!memcmp (&m[0], &zero, sizeof (zero)) && !memcmp (&m[1], &zero, sizeof (zero)),
           "no samples, but moments");
    CHECK_OK (gs_moments_compute (comm, x, 2, 2, GS_F64, mask, 1, m, NULL));
    CHECK (!memcmp (&m[0], &zero, sizeof (zero)) && !memcmp (&m[1], &zero, sizeof (zero)),
           "all masked, but moments");
    CHECK_OK (gs_moments_compute (comm, NULL, 5, 0, GS_F64, NULL, 0, NULL, NULL));
    CHECK_OK (gs_moments_merge (NULL, NULL, 0));
}

static void check_refusals (void)
{
    double x[4] = {1, 2, 3, 4};
    unsigned char mask[4] = {1, 1, 1, 1};
    gs_moments_t m[3], before[3];
    int result = 7;

    memset (m, 0x5a, sizeof (m));
    memcpy (before, m, sizeof (m));
    CHECK_FAILS (gs_moments_compute (NULL, x, 2, 2, GS_F64, NULL, 0, m, NULL), GS_ERR_ARG,
                 "gs_moments_compute", "comm is NULL");
    CHECK_FAILS (gs_moments_compute (comm, NULL, 2, 2, GS_F64, NULL, 0, m, NULL), GS_ERR_ARG,
                 "gs_moments_compute", "NULL");
    CHECK_FAILS (gs_moments_compute (comm, x, 2, 2, GS_F64, NULL, 0, NULL, NULL), GS_ERR_ARG,
                 "moments is NULL");
    CHECK_FAILS (gs_moments_compute (comm, x, 2, 1, GS_C64, NULL, 0, m, NULL), GS_ERR_UNSUPPORTED,
                 "GS_C64", "real and imaginary");
    CHECK_FAILS (gs_moments_compute (comm, x, 2, 2, (gs_dtype_t) 99, NULL, 0, m, NULL),
                 GS_ERR_ARG, "gs_moments_compute");
    CHECK_FAILS (gs_moments_compute (comm, x, SIZE_MAX / 2, 4, GS_F64, NULL, 0, m, NULL),
                 GS_ERR_ARG, "memory");
    CHECK_FAILS (gs_moments_compute (comm, x, 2, 2, GS_F64, mask, 3, m, NULL), GS_ERR_ARG,
                 "mask_width is 3", "2, the features");
    CHECK_FAILS (gs_moments_merge (m, NULL, 1), GS_ERR_ARG, "from is NULL");
    CHECK_FAILS (gs_moments_merge (NULL, m, 1), GS_ERR_ARG, "into is NULL");
    CHECK_FAILS (gs_flag_all (comm, 1, NULL, NULL), GS_ERR_ARG, "gs_flag_all: result is NULL");
    CHECK_FAILS (gs_flag_any (NULL, 1, &result, NULL), GS_ERR_ARG, "comm is NULL");
    if (size > 1)
        CHECK_FAILS (
            gs_moments_compute (comm, x, 1, rank == size - 1 ? 3 : 2, GS_F64, NULL, 0, m, NULL),
            GS_ERR_MISMATCH, "rank 0 (host", "gives 2 features", ") 3:");
    CHECK (!memcmp (m, before, sizeof (m)) && result == 7, "something was changed");
}

static void check_logical (void)
{
    for (int r = -1; r <= size; r++) {
        int all = -1, any = -1, none = -1, every = -1;
        CHECK_OK (gs_flag_all (comm, r == rank ? 0 : 256 + rank, &all, NULL));
        CHECK_OK (gs_flag_any (comm, r == rank ? -256 : 0, &any, NULL));
        CHECK_OK (gs_flag_any (comm, 0, &none, NULL));
        CHECK_OK (gs_flag_all (comm, INT32_MIN, &every, NULL));
        CHECK (all == (r < 0 || r == size) && any == (r >= 0 && r < size) && !none && every == 1,
               "rank %d alone: all %d, any %d, none %d, every %d", r, all, any, none, every);
    }
}

int main (void)
{
    bool device;

    gs_log_set_sink (hear, NULL);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    device = multi_any_gpus ();
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_U64; dtype++)
        for (int mask = 0; mask < MASKS; mask++) {
            bool bad = !gsi_dtype_is_integer (dtype) && mask != OF_SAMPLES;
            check ((struct plan){dtype, 40, 7, mask, 3, 1, bad, device});
            check ((struct plan){dtype, 3000, 1, mask, -0.5, 4, false, !bad && device});
        }
    for (int mask = 0; mask < MASKS; mask++) {
        check ((struct plan){GS_F64, 9, 3001, mask, 1, 1, mask == OF_VALUES, device});
        check ((struct plan){GS_F32, 3, 40007, mask, 1, 1, false, device});
        check ((struct plan){GS_F64, 5000, 3, mask, 1e9, 1, false, device});
        check ((struct plan){GS_F64, 5000, 2, mask, -1e15, 1, false, false});
        check ((struct plan){GS_F64, 100, 5, mask, 0, 1e100, false, false});
    }
    check_nothing ();
    check_huge ();
    check_refusals ();
    check_logical ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("moments of samples of all ranks, all and any");
}
