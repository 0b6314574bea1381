/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * known.h - a small state for checkpoints, of which each value tells its array, place and step:
 * what one program has saved another one judges, on any number of ranks.
 */
#ifndef GS_TESTS_KNOWN_H
#define GS_TESTS_KNOWN_H

#include "data.h"

#define KNOWN_WEIGHTS ((size_t) 20000) /* more than one rank's share */
#define KNOWN_BIASES  ((size_t) 300)
#define KNOWN_ROWS    ((size_t) 6) /* cut in columns: a piece for each row */
#define KNOWN_COLUMNS ((size_t) 120)
#define KNOWN_DRAWS   ((size_t) 40)

struct known {
    int rank;
    size_t columns, first; /* of this rank */
    uint32_t weights[KNOWN_WEIGHTS];
    uint64_t biases[KNOWN_BIASES], counter;
    uint64_t field[KNOWN_ROWS * KNOWN_COLUMNS];
    uint64_t draws[KNOWN_DRAWS], seed;
};

static inline struct known *known_make (const gs_comm_t *comm)
{
    size_t rank = (size_t) gs_comm_rank (comm), size = (size_t) gs_comm_size (comm);
    struct known *k = calloc (1, sizeof (*k));

    if (!k)
        exit (1);
    k->rank = (int) rank;
    k->first = KNOWN_COLUMNS * rank / size;
    k->columns = KNOWN_COLUMNS * (rank + 1) / size - k->first;
    return k;
}

static inline gs_ckpt_layout_t known_layout (const char *name)
{
    return strcmp (name, "node") ? GS_CKPT_LAYOUT_SINGLE : GS_CKPT_LAYOUT_NODE;
}

/* A committed plan of it. */
static inline gs_ckpt_t *known_plan (struct known *k, gs_comm_t *comm, const char *folder,
                                     const gs_ckpt_opts_t *opts)
{
    const size_t weights = KNOWN_WEIGHTS, biases = KNOWN_BIASES, draws = KNOWN_DRAWS;
    const size_t shape[] = {KNOWN_ROWS, KNOWN_COLUMNS}, extents[] = {KNOWN_ROWS, k->columns};
    const size_t offsets[] = {0, k->first};
    gs_ckpt_t *plan;

    CHECK_OK (gs_ckpt_create (comm, folder, opts, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "net/weights", 1, &weights, GS_U32, k->weights));
    CHECK_OK (gs_ckpt_add_replicated (plan, "net/biases", 1, &biases, GS_U64, k->biases));
    CHECK_OK (gs_ckpt_add_replicated (plan, "counter", 0, NULL, GS_U64, &k->counter));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 2, extents, offsets, shape, GS_U64, k->field));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "draws", 1, &draws, GS_U64, k->draws));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "seed", 0, NULL, GS_U64, &k->seed));
    CHECK_OK (gs_ckpt_commit (plan));
    return plan;
}

static inline uint64_t known_value (int64_t step, int array, int owner, size_t i)
{
    return data_bits ((uint64_t) step * 8 + (uint64_t) array, owner, i);
}

/* Makes it that of [step], or if [looks] tells in how many values it is not. */
static inline size_t known_visit (struct known *k, int64_t step, bool looks)
{
    struct {
        uint64_t *at;
        size_t count;
        int owner;
    } arrays[] = {{k->biases, KNOWN_BIASES, 0},
                  {&k->counter, 1, 0},
                  {k->draws, KNOWN_DRAWS, k->rank},
                  {&k->seed, 1, k->rank}};
    size_t wrong = 0;

    for (size_t i = 0; i < KNOWN_WEIGHTS; i++) {
        uint32_t value = (uint32_t) known_value (step, 0, 0, i);
        wrong += k->weights[i] != value;
        k->weights[i] = looks ? k->weights[i] : value;
    }
    for (size_t i = 0; i < KNOWN_ROWS * k->columns; i++) {
        size_t row = i / k->columns, column = i % k->columns + k->first;
        uint64_t value = known_value (step, 1, 0, row * KNOWN_COLUMNS + column);
        wrong += k->field[i] != value;
        k->field[i] = looks ? k->field[i] : value;
    }
    for (int a = 0; a < 4; a++)
        for (size_t i = 0; i < arrays[a].count; i++) {
            uint64_t value = known_value (step, 2 + a, arrays[a].owner, i);
            wrong += arrays[a].at[i] != value;
            arrays[a].at[i] = looks ? arrays[a].at[i] : value;
        }
    return wrong;
}

static inline void known_fill (struct known *k, int64_t step)
{
    known_visit (k, step, false);
}

static inline bool known_is (struct known *k, int64_t step)
{
    return !known_visit (k, step, true);
}

#endif /* GS_TESTS_KNOWN_H */
