/* SPDX-License-Identifier: BSD-3-Clause */
/* modes - the ways in which a step of the operation reducer averages the gradients of a model. */
#ifndef GS_TOOLS_BENCH_MODES_H
#define GS_TOOLS_BENCH_MODES_H

#include <stdint.h>

#include "tools/bench/bench.h"
#include "tools/bench/model.h"
#include "tools/bench/raw.h"

/* In the order of the output. */
enum bench_mode {
    BENCH_COMPUTE,        /* nothing but the work before */
    BENCH_PER_TENSOR,     /* gs_allreduce_avg of each */
    BENCH_FLAT,           /* one for each span, in memory of gs_device_alloc */
    BENCH_NO_OVERLAP,     /* a reducer with its own storage, all in finish */
    BENCH_OVERLAP,        /* the same, beside the work */
    BENCH_PACKED,         /* the same, gradients in memory of the caller */
    BENCH_RAW_PER_TENSOR, /* MPI_Allreduce and a division for each */
    BENCH_RAW_FLAT,       /* one for each span */
    BENCH_MODES
};

/* Those that --mode chooses. */
#define BENCH_CHOSEN_MODES ((1U << BENCH_RAW_PER_TENSOR) - (1U << BENCH_PER_TENSOR))

const char *bench_mode_name (enum bench_mode mode);

/* The bit of a mode that --mode names; 0 if there is none. */
unsigned bench_mode_find (const char *name);

/* A mode with what its steps need. */
struct bench_step {
    enum bench_mode mode;
    const struct bench *bench;
    const struct bench_model *model;
    const uint64_t *units;           /* [tensors] of work before each is ready */
    const struct bench_raw_mpi *mpi; /* for raw modes */
    char *memory;                    /* of model->room bytes; not for a reducer's own storage */

    gs_reducer_t *reducer; /* made by open */
    void **grad;           /* [tensors] where they are; made by open */
};

/* Collective. Makes the reducer of a mode that has one. To be closed in any case. */
bool bench_step_open (struct bench_step *step);
void bench_step_close (struct bench_step *step);

/* For struct bench_side. Writes all gradients, as a backward pass does. */
bool bench_step_prepare (void *step);

/* For struct bench_side. Does [times] steps, and returns when all averages are there. */
bool bench_step_repeat (void *step, int times);

#endif /* GS_TOOLS_BENCH_MODES_H */
