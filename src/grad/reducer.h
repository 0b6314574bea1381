/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reducer - gradients that are averaged in buckets. Private to src/grad.
 *
 * The files: reducer.c (life, what was added), commit.c (comparison, storage), overlap.c (whether
 * buckets are reduced during the backward pass), buckets.c (buckets, and how they are made anew),
 * relayout.c (another storage), step.c (what the program calls in each step), scheduler.c (who
 * sees to the buckets, and when), bucket_reduce.c (one bucket), work.c (arithmetic),
 * step_exchange.c (what ranks tell each other at the end of a step), timing.c (when buckets are
 * reduced on a GPU), stats.c (how it went).
 */
#ifndef GS_GRAD_REDUCER_H
#define GS_GRAD_REDUCER_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "feature/feature.h"
#include "grad/plan.h"

#define GSI_REDUCER_MAGIC UINT64_C (0x6773726564756365)

/* How far a gradient is in a step. */
enum gsi_mark { GSI_MARK_NONE = 0, GSI_MARK_READY = 1, GSI_MARK_SKIPPED = 2 };

/* A gradient as it was added. */
struct gsi_gradient {
    char *name;
    int dims;
    size_t shape[GS_REDUCER_DIMS_MAX];
    gs_dtype_t dtype;
    size_t count, bytes;
    void *given; /* the caller's memory, or NULL */
    int place;   /* in the order of the storage, after the commit */
    unsigned char mark;
    bool kept; /* micro-steps have left something in it */
};

struct gsi_scalar {
    char *name;
    gs_op_t op;
};

/* What travels in one reduction. */
struct gsi_segment {
    void *direct;     /* where it is; NULL: it is packed, into the staging area */
    gs_dtype_t type;  /* in which it travels */
    size_t count;     /* elements */
    size_t run, runs; /* (packed) of struct gsi_packing */
};

/* Everything that is packed, in the order of launching. */
struct gsi_packing {
    struct gsi_run *in, *out; /* [runs] */
    void **residual;          /* [runs] what earlier steps lost of it; or NULL */
    size_t runs;
};

/* A bucket under way. */
struct gsi_bucket {
    struct gsi_bucket_plan plan;
    int segment, segments;
    size_t bytes, wire_bytes;           /* of its gradients, and of its segments */
    int pending;                        /* gradients that are neither ready nor skipped */
    bool heard;                         /* (GPUs) [stream] has work that it must wait for */
    gs_stream_t stream;                 /* (GPUs) of the last one that was */
    int64_t ready_ns, begin_ns, end_ns; /* in the step of struct gsi_seen */
    char label[128];                    /* for profilers */
};

/* What ranks tell each other before a weighted step. */
struct gsi_participation {
    double weight;
    int32_t joined, micro_steps;
};

struct gsi_scheduler;     /* who sees to the buckets */
struct gsi_step_exchange; /* what ranks tell each other at the end of a step */
struct gsi_timing;        /* (GPUs) when they travelled */

/* The last step whose times are known: its first ready, the call of finish, and its end. */
struct gsi_seen {
    int64_t steps; /* that were known, up to this one */
    int64_t begin_ns, finish_ns, end_ns;
};

/* Sums over the steps, for gs_reducer_get_stats. */
struct gsi_totals {
    int64_t begin_ns, finish_ns; /* of the step, as the host sees it */
    int64_t steps, rebuilds;
    struct gsi_seen seen;
    double step_us, busy_us, exposed_us;
    double n, x, y, xx, xy; /* of buckets: bytes and microseconds */
    int late_rank;
    double late_us;
};

#define GSI_REDUCER_LISTS 32 /* that a commit makes */

struct gs_reducer {
    uint64_t magic;
    gs_comm_t *comm;
    const struct gsi_device *device;
    const struct gsi_stream_ops *queue; /* NULL on hosts */
    bool large; /* what is reduced at once is of GPUs' sizes: all ranks have one */
    struct gsi_client client;
    gs_reducer_opts_t opts; /* without its name */
    char name[64];
    int rank, size;
    bool committed;
    bool overlaps; /* buckets are reduced during the backward pass, not inside its calls; on all
                      ranks alike */

    struct gsi_gradient *gradient; /* [gradients], as they were added */
    struct gsi_scalar *scalar;     /* [scalars] */
    int gradients, gradient_room, scalars, scalar_room;

    struct gsi_tensor *tensor;   /* [gradients] for plan.h */
    struct gsi_placement *place; /* [gradients] in the order of the storage */
    void **at;                   /* [gradients] by place: where it is */
    size_t *count;               /* [gradients] by place */
    int *number;                 /* [gradients] by place: as which it was added */
    int *turn;                   /* [gradients] by place: how many were ready before, each once */
    int *bucket_of;              /* [gradients] by place: of [bucket] */
    void *storage;
    struct gsi_run *inspection; /* [gradients] by place: all of it, to be looked at */
    void **residual; /* [gradients] by place, with error_feedback: what rounding lost */
    char *staging;   /* GSI_STAGING_* bytes, or NULL if nothing is packed */

    struct gsi_bucket *bucket; /* [buckets] in the order of launching */
    int buckets;
    struct gsi_segment *segment;
    int segments;
    struct gsi_packing packing;
    struct gsi_bucket_plan *planned; /* [gradients] room for a division that is looked at */
    uint64_t digest;                 /* of the one there is */

    /* The step. */
    bool in_step, accumulates;
    bool keeps_order; /* buckets stay as they are at the commit */
    int marked;       /* gradients that are ready or skipped */
    int launched;     /* buckets */
    int micro_steps;  /* before this one */
    int64_t step;     /* that communicate; this one's number from 1 while in it */
    struct gsi_participation *participation; /* [size] (weighted) what was told last */
    double *weights; /* [size] relative to the largest; then [size] that are looked at */
    double weight, weight_sum;
    bool weight_given, joined, some_joined;
    const char *opener; /* the gradient that the step began with */
    gs_stream_t stream; /* (GPUs) of the reducer's own */
    gs_stream_t last;   /* (GPUs) that the program gave in a step */

    gs_bucket_f hook, averaged;
    void *hook_context, *averaged_context;

    struct gsi_scheduler *scheduler;
    struct gsi_step_exchange *step_exchange;
    struct gsi_timing *timing; /* NULL on hosts */
    struct gsi_totals totals;

    void *
        owned[GSI_REDUCER_LISTS]; /* where pointers to the lists of gsi_reducer_own are, in the */
    int lists;                    /* order in which these were made */
};

/* Bytes of the staging area: what stays in a second-level cache; what fills NCCL's pipes. */
#define GSI_STAGING_HOST ((size_t) 512 << 10)
#define GSI_STAGING_GPU  ((size_t) 8 << 20)

/* ---- reducer.c ---- */

/* GS_OK if [reducer] is one, and committed; names [caller]. */
gs_status_t gsi_reducer_valid (const gs_reducer_t *reducer, const char *caller);

/* GS_OK if [reducer] is one, and not committed. */
gs_status_t gsi_reducer_is_open (const gs_reducer_t *reducer, const char *caller);

/* As gsi_reducer_valid, and not inside a step, which is refused. */
gs_status_t gsi_reducer_idle (const gs_reducer_t *reducer, const char *caller);

/* GS_OK if [index] is that of a gradient. */
gs_status_t gsi_reducer_index (const gs_reducer_t *reducer, int index, const char *caller);

/* The device is the current one of this thread until leave, as all else in src/grad expects it;
 * on hosts they do nothing. */
gs_status_t gsi_reducer_enter (const gs_reducer_t *r, int *previous);
void gsi_reducer_leave (const gs_reducer_t *r, int previous);

/* Makes a list of [n] zeros of [bytes] for *[pointer], which gsi_commit_undo frees and sets to
 * NULL, the last one first. False: out of memory. */
static inline bool gsi_reducer_own (gs_reducer_t *r, void *pointer, size_t n, size_t bytes)
{
    void *list = r->lists < GSI_REDUCER_LISTS ? calloc (n, bytes) : NULL;

    if (list)
        r->owned[r->lists++] = memcpy (pointer, &list, sizeof (list));
    return list;
}

/* ---- commit.c ---- */

/* Frees what the commit has made. */
void gsi_commit_undo (gs_reducer_t *r);

/* Notes where everything is, in [storage]. */
void gsi_commit_settle (gs_reducer_t *r, void *storage);

/* Memory of the device, all 0; NULL for no bytes. */
gs_status_t gsi_commit_allocate (gs_reducer_t *r, size_t bytes, void **out);

/* ---- buckets.c ---- */

/* Whether elements of [dtype] travel as the option wire has it. */
bool gsi_buckets_is_wired (const gs_reducer_t *r, gs_dtype_t dtype);

/* Memory for, and the buckets that r->turn gives. */
gs_status_t gsi_buckets_open (gs_reducer_t *r);

/* Makes the buckets that r->turn gives. */
void gsi_buckets_cut (gs_reducer_t *r);

/* Digest of these buckets. */
uint64_t gsi_buckets_propose (const gs_reducer_t *r);

/* Whether buckets may be made anew after this step: 1, 2, 4, 8, ... */
bool gsi_buckets_is_due (const gs_reducer_t *r);

/* Collective: takes over the order of this step; that of rank 0 if the ranks [differ]. */
gs_status_t gsi_buckets_follow (gs_reducer_t *r, bool differ);

/* Marks all gradients as not ready, and counts what each bucket waits for. */
void gsi_buckets_reset (gs_reducer_t *r);

/* ---- bucket_reduce.c ---- */

/*
 * Sees to bucket [b], by a thread that calls for the reducer and, on GPUs, has entered the
 * device. A failure is of the communicator, or of the hook, after which that is aborted. What
 * r->averaged returns goes to *callback, and the bucket has travelled all the same.
 */
gs_status_t gsi_bucket_reduce (gs_reducer_t *r, int b, gs_status_t *callback);

/* GS_ERR_STATE where this thread is in a function of the program that [r] has called for a
 * bucket: it would be reduced twice. */
gs_status_t gsi_bucket_check (const gs_reducer_t *r, const char *caller);

/* ---- totals.c ---- */

double gsi_totals_us (int64_t ns);

/* Time of a bucket that the program waited: all of it, or what was under way in finish. */
double gsi_totals_exposed_us (const gs_reducer_t *r, const struct gsi_bucket *bucket);

/* Adds the step that has ended. */
void gsi_totals_step (gs_reducer_t *r);

/* Adds the times of r->totals.seen and of the buckets. */
void gsi_totals_seen (gs_reducer_t *r);

#endif /* GS_GRAD_REDUCER_H */
