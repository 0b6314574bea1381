/* SPDX-License-Identifier: BSD-3-Clause */
/* modes - the ways in which a step of the operation reducer averages the gradients of a model. */
#include "tools/bench/modes.h"

#include <stdlib.h>
#include <string.h>

#include "tools/bench/compute.h"

static const char *const names[BENCH_MODES] = {
    [BENCH_COMPUTE] = "compute",
    [BENCH_PER_TENSOR] = "per-tensor",
    [BENCH_FLAT] = "flat",
    [BENCH_NO_OVERLAP] = "no-overlap",
    [BENCH_OVERLAP] = "overlap",
    [BENCH_PACKED] = "packed",
    [BENCH_RAW_PER_TENSOR] = "raw-per-tensor",
    [BENCH_RAW_FLAT] = "raw-flat",
};

const char *bench_mode_name (enum bench_mode mode)
{
    return names[mode];
}

unsigned bench_mode_find (const char *name)
{
    for (int mode = 0; mode < BENCH_MODES; mode++)
        if (!strcmp (name, names[mode]))
            return (1U << mode) & BENCH_CHOSEN_MODES;
    return 0;
}

static bool good (const struct bench_step *s, gs_status_t st)
{
    return !st || bench_fail (s->bench, "%s: %s", names[s->mode], gs_last_error ());
}

/* ---- Set up ---- */

static bool has_reducer (const struct bench_step *s)
{
    return s->mode == BENCH_NO_OVERLAP || s->mode == BENCH_OVERLAP || s->mode == BENCH_PACKED;
}

static bool make_reducer (struct bench_step *s)
{
    const struct bench_model_options *o = &s->bench->options.model;
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;

    opts.name = names[s->mode];
    opts.first_bytes = o->first_bytes;
    opts.bucket_bytes = o->bucket_bytes;
    opts.last_bytes = o->last_bytes;
    opts.wire = o->wire;
    opts.overlap = s->mode == BENCH_NO_OVERLAP ? GS_OVERLAP_OFF : GS_OVERLAP_AUTO;
    if (!good (s, gs_reducer_create (s->bench->comm, &opts, &s->reducer)))
        return false;
    for (int i = 0; i < s->model->tensors; i++) {
        const struct bench_tensor *t = &s->model->tensor[i];
        void *grad = s->mode == BENCH_PACKED ? s->memory + t->offset : NULL;
        if (!good (s,
                   gs_reducer_add (s->reducer, t->name, t->dims, t->shape, t->dtype, grad, NULL)))
            return false;
    }
    return true;
}

/* Collective. */
static bool commit (struct bench_step *s)
{
    if (!good (s, gs_reducer_commit (s->reducer)))
        return false;
    for (int i = 0; i < s->model->tensors; i++)
        if (!good (s, gs_reducer_get_grad (s->reducer, i, &s->grad[i])))
            return false;
    return true;
}

bool bench_step_open (struct bench_step *s)
{
    bool ok;

    s->grad = calloc ((size_t) s->model->tensors, sizeof (*s->grad));
    ok = s->grad || bench_fail (s->bench, "out of memory");
    for (int i = 0; i < s->model->tensors && ok && s->memory; i++)
        s->grad[i] = s->memory + s->model->tensor[i].offset;
    if (!has_reducer (s))
        return bench_agree (s->bench, ok);
    ok = ok && make_reducer (s);
    return bench_agree (s->bench, ok) && commit (s);
}

void bench_step_close (struct bench_step *s)
{
    good (s, gs_reducer_destroy (s->reducer));
    free (s->grad);
    s->reducer = NULL;
    s->grad = NULL;
}

bool bench_step_prepare (void *step)
{
    const struct bench_step *s = step;

    if (s->bench->options.memory == BENCH_DEVICE || s->mode == BENCH_COMPUTE)
        return true;
    for (int i = s->model->tensors - 1; i >= 0; i--)
        memset (s->grad[i], BENCH_FILL, s->model->tensor[i].bytes);
    return true;
}

/* ---- Steps ---- */

/* [count] elements, by gradsync or by MPI, which counts in int. */
static bool average (const struct bench_step *s, char *at, size_t count, gs_dtype_t dtype)
{
    if (s->mode < BENCH_RAW_PER_TENSOR)
        return good (s, gs_allreduce_avg (s->bench->comm, at, count, dtype, NULL));
    while (count > 0) {
        size_t part = count < BENCH_RAW_MPI_MAX_COUNT ? count : BENCH_RAW_MPI_MAX_COUNT;
        s->mpi->allreduce_avg (at, (int) part, dtype, 1);
        at += part * gs_dtype_size (dtype);
        count -= part;
    }
    return true;
}

static bool average_step (const struct bench_step *s)
{
    const struct bench_model *m = s->model;
    bool flat = s->mode == BENCH_FLAT || s->mode == BENCH_RAW_FLAT, ok = true;

    for (int i = m->tensors - 1; i >= 0; i--)
        bench_compute (s->units[i]);
    if (flat)
        for (int i = 0; i < m->spans && ok; i++)
            ok = average (s, s->memory + m->span[i].offset, m->span[i].count, m->span[i].dtype);
    else if (s->mode != BENCH_COMPUTE)
        for (int i = m->tensors - 1; i >= 0 && ok; i--)
            ok = average (s, s->grad[i], m->tensor[i].count, m->tensor[i].dtype);
    return ok;
}

static bool reduce_step (const struct bench_step *s)
{
    for (int i = s->model->tensors - 1; i >= 0; i--) {
        bench_compute (s->units[i]);
        if (!good (s, gs_reducer_ready (s->reducer, i, NULL)))
            return false;
    }
    return good (s, gs_reducer_finish (s->reducer, NULL));
}

bool bench_step_repeat (void *step, int times)
{
    const struct bench_step *s = step;

    for (int t = 0; t < times; t++)
        if (!(has_reducer (s) ? reduce_step (s) : average_step (s)) ||
            !good (s, gs_comm_wait (s->bench->comm, NULL)))
            return false;
    return true;
}
