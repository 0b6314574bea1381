/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept - what the binding keeps beside a thing of C, from its create to its destroy: the bounds
 * of a reducer's gradients and its callbacks, the shape and type of what crosses a boundary or
 * halo, the widths of a pool's rows and its callbacks.
 *
 * Handles are those of handle.h. Lists are in Fortran's order of dimensions, and their sizes are
 * checked here. [lower] NULL stands for bounds of 1. Texts name the public procedures.
 */
#ifndef GS_FORTRAN_KEPT_H
#define GS_FORTRAN_KEPT_H

#include <stdint.h>

#include "fortran/handle.h"
#include "gradsync.h"

/* A gradient, or what is added to a plan of checkpoints. Of [shape] and [lower] [dims] are used.
 */
struct gsi_fortran_gradient {
    int64_t shape[GS_REDUCER_DIMS_MAX];
    int64_t lower[GS_REDUCER_DIMS_MAX]; /* bounds of its pointer */
    void *address;                      /* as it was added */
    int number; /* which may not be its place here: C adds gradients as well */
    int dims;
    int dtype; /* gs_dtype_t */
};

/* Beside a reducer: what was added in Fortran. */
struct gsi_fortran_gradients {
    struct gsi_fortran_gradient *list;
    int count;
    int64_t comm;
    void *hook, *averaged; /* boxes of gradsync_features.f90, which frees them; NULL: not set */
};

/* Beside a boundary or halo: the arrays that it takes. */
struct gsi_fortran_crossing {
    int64_t shape[GS_BOUNDARY_DIMS_MAX];
    int dims, dtype;
};

/* Beside a pool. */
struct gsi_fortran_pool {
    int64_t inputs, outputs;
    int dtype;
    int64_t rows[2]; /* of this rank in its steps, by their numbers */
    void *box;       /* of gradsync_pool.f90, which frees it */
};

/*
 * What comes before a create: the communicator, the handle and [bytes] of what is kept beside the
 * thing, zeros. What follows, if that went well: keeps both under the handle, or, with a failure
 * [st], gives all back. Its end: *more is what was kept, which is the caller's, or NULL.
 */
gs_status_t gsi_fortran_kept_prepare (int64_t comm, enum gsi_fortran_kind kind, const char *call,
                                      size_t bytes, gs_comm_t **found, int64_t *handle,
                                      void **more);
gs_status_t gsi_fortran_kept_bind (gs_status_t st, int64_t *handle, void *thing, void *more,
                                   const gs_comm_t *comm, const char *name);
gs_status_t gsi_fortran_kept_end (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                  void **more);

/*
 * What follows the create of a communicator, whose end was [st]: keeps it under the reserved
 * [handle], or gives that back and sets it to 0 if [comm] is NULL.
 */
void gsi_fortran_comm_keep (int64_t *handle, gs_status_t st, gs_comm_t *comm);

/* The handle of [comm] of gs_comm_from_c_ptr: that which it has, or a new one. */
gs_status_t gsi_fortran_comm_handle (gs_comm_t *comm, int64_t *handle);

gs_status_t gsi_fortran_comm_destroy (int64_t comm);
gs_status_t gsi_fortran_boundary_destroy (int64_t boundary);
gs_status_t gsi_fortran_halo_destroy (int64_t halo);
gs_status_t gsi_fortran_ckpt_destroy (int64_t ckpt);

/* ---- Reducers ---- */

gs_status_t gsi_fortran_reducer_create (int64_t comm, const gs_reducer_opts_t *opts,
                                        int64_t *reducer);
gs_status_t gsi_fortran_reducer_add (int64_t reducer, const char *name, int dims,
                                     const int64_t *shape, int dtype, void *data, int lowers,
                                     const int64_t *lower, int *index);
gs_status_t gsi_fortran_reducer_broadcast (int64_t reducer, void *const *params, int number,
                                           int root, gs_stream_t stream);

/* The boxes are for Fortran to free; NULL where nothing has ended, or there were none. */
gs_status_t gsi_fortran_reducer_destroy (int64_t reducer, void **hook, void **averaged);

/* *comm is the handle that was given to the create; 0 if there is no such reducer. */
void gsi_fortran_reducer_comm (int64_t reducer, int64_t *comm);

/*
 * Has [forward] called with [box], as hook or, with [averaged], behind the average; NULL ends
 * that. *other is the box that Fortran may free: the one before, or on failure [box].
 */
gs_status_t gsi_fortran_reducer_set_callback (int64_t reducer, int averaged, gs_bucket_f forward,
                                              void *box, void **other);

/* ---- Boundaries and halos ---- */

gs_status_t gsi_fortran_boundary_create (int64_t comm, int from, int to, const int64_t *shape,
                                         int dims, int dtype, int64_t *boundary);
gs_status_t gsi_fortran_halo_create (int64_t comm, int dims, const int *grid,
                                     const int64_t *extents, int extents_size,
                                     const int64_t *width, int width_size, const int *periodic,
                                     int periodic_size, int dtype, int64_t *halo);

/* An address must come with the dtype that was given to the create. */
gs_status_t gsi_fortran_boundary_forward_at (int64_t boundary, void *activations, int dtype,
                                             gs_stream_t stream);
gs_status_t gsi_fortran_boundary_backward_at (int64_t boundary, void *gradients, int dtype,
                                              gs_stream_t stream);
gs_status_t gsi_fortran_halo_exchange_at (int64_t halo, void *field, int dtype,
                                          gs_stream_t stream);
gs_status_t gsi_fortran_halo_adjoint_at (int64_t halo, void *grad, int dtype, gs_stream_t stream);

/* ---- Pools ---- */

gs_status_t gsi_fortran_pool_create (int64_t comm, const gs_pool_opts_t *opts, int64_t *pool);

/* *box, which was the context of the options, is for Fortran to free; or NULL. */
gs_status_t gsi_fortran_pool_destroy (int64_t pool, void **box);

/* An address comes with the dtype of the create and the rows that are, or must be, there. */
gs_status_t gsi_fortran_pool_begin_at (int64_t pool, const void *in, int64_t rows, int dtype);
gs_status_t gsi_fortran_pool_end_at (int64_t pool, void *out, int64_t rows, int dtype);
gs_status_t gsi_fortran_pool_evaluate_at (int64_t pool, const void *in, int64_t rows, void *out,
                                          int dtype);
gs_status_t gsi_fortran_pool_backward_at (int64_t pool, const void *grad_out, int64_t rows,
                                          void *grad_in, int dtype);

/* Rows of this rank in the step that ends next, and in that which ended last; -1 if there is
 * none, or its rows are gone. */
int64_t gsi_fortran_pool_next (const gs_pool_t *pool, const struct gsi_fortran_pool *p);
int64_t gsi_fortran_pool_last (const gs_pool_t *pool, const struct gsi_fortran_pool *p);

/* ---- Checkpoints; the file is told that the array is one of Fortran, and its bounds ---- */

gs_status_t gsi_fortran_ckpt_create (int64_t comm, const char *dir, const gs_ckpt_opts_t *opts,
                                     int64_t *ckpt);
gs_status_t gsi_fortran_ckpt_add_replicated (int64_t ckpt, const char *name, int dims,
                                             const int64_t *shape, int dtype, void *data,
                                             int lowers, const int64_t *lower);
gs_status_t gsi_fortran_ckpt_add_per_rank (int64_t ckpt, const char *name, int dims,
                                           const int64_t *shape, int dtype, void *data,
                                           int lowers, const int64_t *lower);
gs_status_t gsi_fortran_ckpt_add_sharded (int64_t ckpt, const char *name, int dims,
                                          const int64_t *extents, int offsets_size,
                                          const int64_t *offsets, int shape_size,
                                          const int64_t *shape, int dtype, void *data, int lowers,
                                          const int64_t *lower);

#endif /* GS_FORTRAN_KEPT_H */
