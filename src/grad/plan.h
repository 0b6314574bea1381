/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan - where gradients lie and in which buckets they travel. Pure arithmetic, the same on all
 * ranks for the same arguments.
 *
 * Tensors are numbered as they were registered. They lie in one storage, in the order in which
 * they are expected to be ready. Those of one type are neighbours, a region. The place of a
 * tensor never changes. Tensors that are kept outside have places and regions of their own
 * behind the storage, as if they lay there.
 *
 * A bucket is a range of the storage within one region, so that it travels without being packed.
 * Buckets are launched in the order in which their last tensors are ready.
 */
#ifndef GS_GRAD_PLAN_H
#define GS_GRAD_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

struct gsi_tensor {
    gs_dtype_t dtype;
    size_t bytes; /* may be 0 */
    bool outside; /* of the storage */
};

/* A tensor in the storage. */
struct gsi_placement {
    int tensor;    /* its number */
    size_t offset; /* bytes; a multiple of its alignment, 64, or 16 if it is smaller than that */
    size_t bytes;
};

/* Bytes of a bucket, at most; one tensor alone may have more. */
struct gsi_caps {
    size_t first, middle, last; /* of the one launched first, of the others, launched last */
};

struct gsi_bucket_plan {
    gs_dtype_t dtype;
    int first, tensors;   /* places: from [first] on; one or more */
    int turn;             /* of its last tensor */
    size_t offset, bytes; /* of the storage, with what is between tensors; bytes may be 0 */
};

/*
 * Lays out [n] tensors, of which order[0] is expected to be ready first: fills places[n], in the
 * order of the storage, and *bytes, its size. GS_ERR_ARG if their size does not fit size_t.
 */
gs_status_t gsi_plan_store (const struct gsi_tensor *tensors, int n, const int *order,
                            struct gsi_placement *places, size_t *bytes);

/*
 * Divides the storage into buckets: fills buckets[n] in the order of launching and returns how
 * many there are. turn[i] is how many tensors are ready before that of places[i]. Neighbours that
 * are ready far apart share a bucket only where it would be smaller than the first one else.
 */
int gsi_plan_cut (const struct gsi_tensor *tensors, const struct gsi_placement *places, int n,
                  const int *turn, const struct gsi_caps *caps, struct gsi_bucket_plan *buckets);

#endif /* GS_GRAD_PLAN_H */
