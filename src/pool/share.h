/* SPDX-License-Identifier: BSD-3-Clause */
/* share - which rows of a step lie where, who evaluates them, and in which batches: arithmetic.
 */
#ifndef GS_POOL_SHARE_H
#define GS_POOL_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"
#include "gradsync.h"

/* Rows that lie one behind the other. */
struct gsi_rows {
    size_t first, number;
};

/* Where the rows of each of [ranks] begin, in [place]; the last of ranks + 1 is how many all are.
 */
void gsi_share_place (const size_t *rows, int ranks, size_t *place);

/* What a node has of a step, and what it evaluates. */
struct gsi_node_rows {
    size_t rows, most; /* of its ranks, and that its memory has room for */
    int evaluators;
    size_t kept, taken; /* out: of its own, the first ones; and of others, which lie behind */
    size_t gives_at, takes_at; /* out: in the line of all rows that change nodes */
};

/*
 * Has all evaluators of the nodes evaluate as many rows, or one more, where there is room for
 * that. What a node has too many of, its last rows, stand in one line, in the order of nodes; the
 * others take from that line in the same order. Returns how many change nodes.
 */
size_t gsi_share_spread (struct gsi_node_rows *node, int nodes);

/* The rows that node [from] gives to node [to]: their place there, and here. */
struct gsi_moved_rows {
    size_t number, from, to;
};
struct gsi_moved_rows gsi_share_moved (const struct gsi_node_rows *from,
                                       const struct gsi_node_rows *to);

/* What evaluator [which] of [evaluators] has of [total] rows: all have as many, or one more. */
struct gsi_rows gsi_share_part (size_t total, int evaluators, int which);

/* How many batches of at most [most] rows, 0: any number, [part] is cut in; and one of them. They
 * are as long as each other, or one row longer. */
size_t gsi_share_batches (struct gsi_rows part, size_t most);
struct gsi_rows gsi_share_batch (struct gsi_rows part, size_t most, size_t which);

/* The ranks, from [*first] up to [*end], that rows of [part] are of. */
void gsi_share_owners (const size_t *place, int ranks, struct gsi_rows part, int *first,
                       int *end);

/* A rank of a node, which may evaluate. */
struct gsi_candidate {
    gs_evaluator_t requested;
    bool able;            /* it has a function for batches */
    struct gsi_gpus gpus; /* that it sees */
    bool evaluates;       /* out */
    int gpu;              /* out: place of its GPU among those; -1: none */
};

/* Chooses among the [ranks] of a node; returns how many evaluate. */
int gsi_share_choose (struct gsi_candidate *candidate, int ranks);

#endif /* GS_POOL_SHARE_H */
