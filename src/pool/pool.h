/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool - rows of many ranks, evaluated by few: what a pool has.
 *
 * The ranks of a node share one memory: a line of each rank, and areas of two steps. In a step
 * the ranks tell how many rows they have, and so know where the rows of each lie. A rank that has
 * told those of step n has ended step n - 2: so once all have, the areas of that one are free.
 * Whoever is late by a step may still read what was told of an earlier one, for which reason
 * there are more places for that than steps in flight.
 *
 * Balanced across nodes, the lowest ranks of nodes exchange rows: those of other nodes lie behind
 * all of a node's own.
 */
#ifndef GS_POOL_POOL_H
#define GS_POOL_POOL_H

#include <stdatomic.h>

#include "base/memfd.h"
#include "base/status.h"
#include "feature/feature.h"
#include "feature/node_call.h"
#include "pool/share.h"

#define GSI_POOL_MAGIC      UINT64_C (0x67726164706f6f6c)
#define GSI_POOL_STEPS      2 /* in flight at most */
#define GSI_POOL_TOLD       4 /* steps whose numbers of rows are kept */
#define GSI_POOL_STAGE_BITS 3
#define GSI_POOL_WORDS      200 /* bytes of what a function of the program had to say */

/* The calls of a step, which ranks compare. */
enum gsi_pool_stage {
    GSI_POOL_BEGIN = 0,     /* numbers of rows */
    GSI_POOL_ROWS = 1,      /* their rows */
    GSI_POOL_RESULTS = 2,   /* that come back */
    GSI_POOL_GRADIENTS = 3, /* of the results */
    GSI_POOL_BACK = 4,      /* those of the rows, that come back */
    GSI_POOL_CREATE = 5,    /* the call by whose number the pool is told from others */
    GSI_POOL_MOVED = 6      /* what came from other nodes */
};

/* What is evaluated: a step, or a backward pass of it. */
enum gsi_pool_way { GSI_POOL_FORWARD = 0, GSI_POOL_BACKWARD = 1, GSI_POOL_WAYS = 2 };

enum gsi_pool_area {
    GSI_POOL_IN = 0,
    GSI_POOL_OUT = 1,
    GSI_POOL_GRAD_OUT = 2,
    GSI_POOL_GRAD_IN = 3,
    GSI_POOL_AREAS = 4
};

/* How an evaluator's function went. */
struct gsi_pool_verdict {
    int32_t st; /* gs_status_t */
    char text[GSI_POOL_WORDS];
};

/* How far a rank has come, in cache lines that only it writes. Numbers are from 1. */
struct gsi_pool_line {
    _Alignas(64) atomic_uint_fast64_t told; /* the last step whose number of rows is here */
    uint64_t rows[GSI_POOL_TOLD];
    _Alignas(64) atomic_uint_fast64_t written[GSI_POOL_STEPS]; /* steps whose rows are there */
    atomic_uint_fast64_t graded; /* the last backward pass whose gradients are */
    atomic_uint_fast64_t moved;  /* (lowest rank) exchanges with other nodes that have ended */
    _Alignas(64) atomic_uint_fast64_t done[GSI_POOL_WAYS]; /* the last that it has evaluated, */
    struct gsi_pool_verdict verdict[GSI_POOL_WAYS][GSI_POOL_STEPS]; /* and how that went */
};

/* A step in flight, or the last that ended. */
struct gsi_pool_step {
    size_t rows;   /* of this rank */
    size_t *place; /* [ranks + 1] where the rows of each begin */
    bool given;    /* the caller's rows are there, else it writes them itself */
};

struct gs_pool {
    uint64_t magic;
    gs_comm_t *comm;
    struct gsi_client client;
    gs_pool_opts_t opts;
    size_t element; /* bytes */

    int ranks, index; /* of this node; this one's place among them */
    int *rank;        /* [ranks] their ranks in the communicator */
    int evaluators;
    int *evaluator;   /* [evaluators] places */
    int own;          /* this rank's place among these, or -1 */
    int device;       /* its GPU, or GS_DEVICE_HOST */
    bool graded;      /* evaluators have on_gradient */
    bool calling;     /* a function of the program is running */
    uint64_t created; /* number of the call in which all ranks made it */

    struct gsi_memfd shm;
    size_t at[GSI_POOL_STEPS][GSI_POOL_AREAS]; /* where areas begin */
    struct gsi_event *reached;                 /* (GPUs) */
    bool pinned;                               /* (GPUs) the areas are */

    struct gsi_pool_step step[GSI_POOL_STEPS];
    uint64_t begun, ended, passes;
    size_t *heard;             /* [ranks] numbers of rows */
    struct gsi_spread *spread; /* NULL: rows stay on their node */
    gs_pool_info_t info;
};

/* The argument of GSI_OP_POOL, by which ranks see that they are in one stage of one pool. */
static inline int gsi_pool_argument (const gs_pool_t *p, enum gsi_pool_stage stage)
{
    return (int) ((p->created << GSI_POOL_STAGE_BITS | (uint64_t) stage) & INT32_MAX);
}

/* GS_OK if [pool] is one that [caller] may use. */
gs_status_t gsi_pool_valid (const gs_pool_t *pool, const char *caller);

/* Bytes of a row in an area. */
size_t gsi_pool_width (const gs_pool_t *p, enum gsi_pool_area area);

/* ---- memory.c: what the ranks of a node share ---- */

/* How long it is, for a pool whose options and ranks are known: GS_ERR_ARG if it overflows. */
gs_status_t gsi_pool_measure (gs_pool_t *p, const char *caller, size_t *bytes);

struct gsi_pool_line *gsi_pool_line_of (const gs_pool_t *p, int index);

/* Row [row] of step [number], from 0. */
void *gsi_pool_row (const gs_pool_t *p, uint64_t number, enum gsi_pool_area area, size_t row);

/*
 * Copies what this rank has of step [number] to an area, or from there, in memory of any kind as
 * [staged] says (gsi_feature_check). Waits until it is there.
 */
gs_status_t gsi_pool_put (gs_pool_t *p, struct gsi_node_call *c, uint64_t number,
                          enum gsi_pool_area area, const void *from, bool staged);
gs_status_t gsi_pool_get (gs_pool_t *p, struct gsi_node_call *c, uint64_t number,
                          enum gsi_pool_area area, void *to, bool staged);

/* (GPUs) Waits for what was queued on the pool's stream; nothing on hosts. */
gs_status_t gsi_pool_await_stream (gs_pool_t *p, struct gsi_node_call *c);

/* Opens and closes what the waits for a stream need; nothing on hosts. */
gs_status_t gsi_pool_open_event (gs_pool_t *p);
void gsi_pool_close_event (gs_pool_t *p);

/*
 * (GPUs) Registers the areas with an evaluator's GPU, for copies from and to them; if that cannot
 * be, they are slower, which is logged. Unpin ends it, and with it closes the memory, now or when
 * the GPU has done with it.
 */
void gsi_pool_pin (gs_pool_t *p);
void gsi_pool_unpin (gs_pool_t *p);

/* ---- spread.c: rows that change nodes; without [spread] none do ---- */

gs_status_t gsi_spread_open (gs_pool_t *p, const char *caller);
void gsi_spread_close (gs_pool_t *p);

/* Of the [ranks] on [node], in their order, [evaluators] evaluate. */
void gsi_spread_set_node (gs_pool_t *p, int node, const int *rank, int ranks, int evaluators);

/* Collective: all ranks tell how many rows they have in the next step. GS_ERR_MISMATCH: of
 * another pool. */
gs_status_t gsi_spread_tell (gs_pool_t *p, const char *caller, size_t rows);

/* GS_ERR_MISMATCH: these ranks are not at the same. */
gs_status_t gsi_spread_differ (const gs_pool_t *p, const char *caller, int a, int b);

/* Which of them change nodes in step [number]. */
void gsi_spread_plan (gs_pool_t *p, uint64_t number);

/* Whether any rows change nodes in it, and how many this node evaluates. */
bool gsi_spread_moves (const gs_pool_t *p, uint64_t number);
size_t gsi_spread_evaluated (const gs_pool_t *p, uint64_t number);

/*
 * Collective, where any do: what is in [area] for these rows goes to where they are evaluated, or
 * [back]. The lowest ranks of nodes do it for all; the others wait for gsi_spread_exchanges () of
 * the lowest one's [moved].
 */
gs_status_t gsi_spread_move (gs_pool_t *p, uint64_t number, enum gsi_pool_area area, bool back);
uint64_t gsi_spread_exchanges (const gs_pool_t *p);

/* ---- evaluate.c: an evaluator's part ---- */

/*
 * Calls the program's function for the batches that this rank has of step [number], in a
 * direction; not inside a call. What went wrong is the [verdict]. Meanwhile calls of others on
 * the communicator are refused, for which the other ranks would wait in vain.
 */
void gsi_pool_evaluate_part (gs_pool_t *p, uint64_t number, enum gsi_pool_way way,
                             struct gsi_pool_verdict *verdict);

/* What this rank evaluates of step [number]. */
struct gsi_rows gsi_pool_part (const gs_pool_t *p, uint64_t number);

#endif /* GS_POOL_POOL_H */
