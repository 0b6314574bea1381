/* SPDX-License-Identifier: BSD-3-Clause */
/* bucket_reduce - a bucket on its way: packed, averaged, unpacked, with what is called in
 * between. */
#ifndef GS_GRAD_BUCKET_REDUCE_H
#define GS_GRAD_BUCKET_REDUCE_H

#include "grad/reducer.h"

/*
 * Sees to bucket [b], by a thread that calls for the reducer and, on GPUs, has entered the
 * device. A failure is of the communicator, or of the hook, after which that is aborted. What
 * r->averaged returns goes to *callback, and the bucket has travelled all the same.
 */
gs_status_t gsi_bucket_reduce (gs_reducer_t *r, int b, gs_status_t *callback);

#endif /* GS_GRAD_BUCKET_REDUCE_H */
