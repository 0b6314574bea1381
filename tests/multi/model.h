/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - random models for the tests of reducers. Element i of gradient g in a micro-step of
 * rank r depends on the seed and these numbers alone, so that each rank knows what all gave.
 */
#ifndef GS_TESTS_MODEL_H
#define GS_TESTS_MODEL_H

#include <math.h>

#include "data.h"

#define MODEL_MOST 3000

/* One step of a model, as one rank decides on it alone. */
struct model_part {
    double weight;
    bool joins;
};

struct model {
    gs_comm_t *comm;
    gs_reducer_t *reducer;
    gs_reducer_opts_t opts;
    int rank, size, gradients;
    size_t count[MODEL_MOST];
    gs_dtype_t dtype[MODEL_MOST];
    void *given[MODEL_MOST]; /* the program's own memory, or NULL */
    int order[MODEL_MOST];
    uint64_t seed;
    size_t most; /* elements of the largest */
};

static inline uint64_t model_random (const struct model *m, int rank, uint64_t what, size_t i)
{
    return data_bits (m->seed * 1000003 + what, rank, i);
}

/* A number from [0, n). */
static inline size_t model_below (const struct model *m, int rank, uint64_t what, size_t i,
                                  size_t n)
{
    return (size_t) (model_random (m, rank, what, i) % n);
}

/* What rank [r] computes for element [i] of gradient [g] in micro-step [micro]: each has another
 * size, so that what is small is looked at, too. */
static inline double model_value (const struct model *m, int r, int step, int micro, int g,
                                  size_t i)
{
    uint64_t what = ((uint64_t) step * 16 + (uint64_t) micro) * MODEL_MOST + (uint64_t) g;
    double x = data_number (model_random (m, r, what + 77, i));

    return ldexp (x, g % 5 - 2);
}

static inline bool model_skips (const struct model *m, int r, int step, int micro, int g)
{
    return model_below (m, r, (uint64_t) step * 64 + (uint64_t) micro + 3, (size_t) g, 13) == 0;
}

/* How large gradients are: many small ones, some that fill a bucket, some of no elements. */
static inline size_t model_count (const struct model *m, int g)
{
    size_t draw = model_below (m, -1, 5, (size_t) g, 100);
    size_t most = m->gradients > 200 ? 400 : m->gradients > 20 ? 8000 : 60000;

    if (draw < 3)
        return 0;
    if (draw < 60)
        return 1 + model_below (m, -1, 6, (size_t) g, 64);
    return 1 + model_below (m, -1, 7, (size_t) g, most);
}

/* Adds all gradients; [mixed] in types and in whose memory they are. */
static inline void model_add (struct model *m, bool mixed)
{
    static const gs_dtype_t types[] = {GS_F64, GS_F32, GS_F64, GS_C128, GS_F64, GS_BF16, GS_F16};

    for (int g = 0; g < m->gradients; g++) {
        char name[32];
        size_t shape[2];
        m->count[g] = model_count (m, g);
        m->dtype[g] = mixed ? types[model_below (m, -1, 8, (size_t) g, 7)] : GS_F64;
        m->given[g] = NULL;
        if (mixed && model_below (m, -1, 9, (size_t) g, 3) == 0 && m->count[g])
            CHECK_OK (gs_device_alloc (m->comm, m->count[g] * gs_dtype_size (m->dtype[g]),
                                       &m->given[g]));
        m->most = m->count[g] > m->most ? m->count[g] : m->most;
        shape[0] = m->count[g];
        shape[1] = 1;
        snprintf (name, sizeof (name), "g%d", g);
        CHECK_OK (
            gs_reducer_add (m->reducer, name, 1 + g % 2, shape, m->dtype[g], m->given[g], NULL));
    }
}

static inline void model_open (struct model *m, bool mixed)
{
    m->rank = gs_comm_rank (m->comm);
    m->size = gs_comm_size (m->comm);
    m->most = 0;
    CHECK_OK (gs_reducer_create (m->comm, &m->opts, &m->reducer));
    if (!m->reducer)
        exit (1);
    model_add (m, mixed);
}

static inline void model_close (struct model *m)
{
    CHECK_OK (gs_reducer_destroy (m->reducer));
    for (int g = 0; g < m->gradients; g++)
        CHECK_OK (gs_device_free (m->comm, m->given[g]));
}

/* Another order in each step and on each rank, but often one that all have. */
static inline void model_shuffle (struct model *m, int step)
{
    bool together = model_below (m, -1, 11, (size_t) step, 3) > 0;
    uint64_t what = 12 + (together ? (uint64_t) step / 3 : (uint64_t) step);

    for (int g = 0; g < m->gradients; g++)
        m->order[g] = m->gradients - 1 - g;
    for (int g = m->gradients - 1; g > 0 && model_below (m, -1, 13, (size_t) step, 4); g--) {
        size_t other = model_below (m, together ? -1 : m->rank, what, (size_t) g, (size_t) g + 1);
        int swap = m->order[g];
        m->order[g] = m->order[other];
        m->order[other] = swap;
    }
}

static inline void *model_at (const struct model *m, int g)
{
    void *at = NULL;

    CHECK_OK (gs_reducer_get_grad (m->reducer, g, &at));
    CHECK (!m->given[g] || at == m->given[g], "gradient %d is not where the program has it", g);
    return at;
}

/* Writes what this rank has accumulated in micro-steps 0 to [micro] of gradient [g]. */
static inline void model_write (const struct model *m, int step, int micro, int g, char *host)
{
    size_t bytes = m->count[g] * gs_dtype_size (m->dtype[g]);

    for (size_t i = 0; i < m->count[g]; i++) {
        double x = 0;
        for (int k = 0; k <= micro; k++)
            if (!model_skips (m, m->rank, step, k, g))
                x += model_value (m, m->rank, step, k, g, i);
        wide_store (m->dtype[g], host, i, x, -x / 2);
    }
    if (bytes)
        CHECK_OK (gs_device_copy (m->comm, model_at (m, g), host, bytes, NULL));
}

/* What element [i] of gradient [g] averages to. */
static inline double model_average (const struct model *m, int step, int micros, int g, size_t i,
                                    const struct model_part *part)
{
    double sum = 0, weights = 0;

    for (int r = 0; r < m->size; r++) {
        double x = 0;
        weights += part[r].weight;
        for (int k = 0; k < micros && !part[r].joins; k++)
            if (!model_skips (m, r, step, k, g))
                x += model_value (m, r, step, k, g, i);
        sum += part[r].weight * x;
    }
    return weights > 0 ? sum / weights / (m->opts.average_micro ? micros : 1) : 0;
}

/* Type that gradient [g] travels in. */
static inline gs_dtype_t model_wire (const struct model *m, int g)
{
    return m->opts.wire && (m->dtype[g] == GS_F32 || m->dtype[g] == GS_F64) ? m->opts.wire
                                                                            : m->dtype[g];
}

/* How far an average may be off, of the size of what is averaged. */
static inline double model_bound (const struct model *m, int g)
{
    double fast = data_fast ? m->size : 1;

    switch (model_wire (m, g)) {
    case GS_F64:
    case GS_C128: return 1e-12;
    case GS_F32: return 1e-6;
    case GS_F16: return 2e-3 * fast;
    default: return 1.6e-2 * fast;
    }
}

/* Compares gradient [g] with the average of what all ranks gave. */
static inline void model_check (const struct model *m, int step, int micros, int g,
                                const struct model_part *part, char *host)
{
    size_t bytes = m->count[g] * gs_dtype_size (m->dtype[g]);
    double wrong = 0, norm = 0, size = model_wire (m, g) >= GS_F64 ? 0.1 : 4;

    if (!bytes)
        return;
    CHECK_OK (gs_device_copy (m->comm, host, model_at (m, g), bytes, NULL));
    CHECK_OK (gs_comm_wait (m->comm, NULL));
    for (size_t i = 0; i < m->count[g]; i++) {
        double right = model_average (m, step, micros, g, i, part);
        double got = (double) creall (wide_load (m->dtype[g], host, i));
        wrong += (got - right) * (got - right);
        norm += right * right;
        if (gsi_dtype_is_complex (m->dtype[g]))
            wrong += (double) powl (cimagl (wide_load (m->dtype[g], host, i)) + right / 2, 2);
    }
    CHECK (sqrt (wrong) <=
               model_bound (m, g) * (sqrt (norm) + size * sqrt ((double) m->count[g])),
           "seed %llu, step %d: g%d, %zu %s, is off by %g of %g", (unsigned long long) m->seed,
           step, g, m->count[g], data_names[m->dtype[g]], sqrt (wrong), sqrt (norm));
}

#endif /* GS_TESTS_MODEL_H */
