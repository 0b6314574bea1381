/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_ftorch.h - hands the gradients that libtorch computes to a gradsync reducer.
 *
 * The model is a TorchScript module, as FTorch's torch_model holds it. Its .grad tensors become
 * views of the reducer's own memory: autograd adds to them where they are averaged, and nothing
 * is copied. A hook behind each of them calls gs_reducer_ready while the backward pass goes on.
 *
 * In this order: gs_ftorch_create, gs_reducer_commit, gs_ftorch_start; in each step
 * gs_ftorch_zero_grad, forward and backward pass, gs_ftorch_finish, the optimizer's step; at the
 * end gs_ftorch_destroy, and then gs_reducer_destroy. One thread at a time.
 *
 * A function that fails leaves its text in gs_ftorch_last_error. No exception leaves it.
 */
#ifndef GRADSYNC_FTORCH_H
#define GRADSYNC_FTORCH_H

#include <gradsync.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gs_ftorch gs_ftorch_t;

/* A parameter of the model. What it points to belongs to the model or to the reducer. */
typedef struct gs_ftorch_parameter {
    const char *name; /* in the model: "hidden.0.weight" */
    int index;        /* the number of its gradient in the reducer; -1 if it needs none */
    int dims;
    size_t shape[GS_REDUCER_DIMS_MAX]; /* row-major: the last one is the fastest */
    gs_dtype_t dtype;                  /* 0: one that has no averages */
    void *data;
    void *grad; /* where .grad is now; NULL if there is none */
} gs_ftorch_parameter_t;

/*
 * Adds the parameters that need gradients to a reducer, in the order of the model; one that
 * layers share once.
 *
 *   model    in   a torch::jit::Module: component p of FTorch's torch_model, on the host
 *   comm     in   that of the reducer, with GS_DEVICE_HOST
 *   reducer  in   not yet committed
 *   net      out  the new handle; NULL if this fails, and then destroy the reducer, too
 *   count    out  how many parameters the model has: as many as torch_model_parameters gives
 *
 * Returns  GS_OK; GS_ERR_UNSUPPORTED for a model or a communicator that is not on the host, and
 *          for a parameter whose type has no averages or which is not contiguous; GS_ERR_ARG;
 *          what gs_reducer_add returns.
 */
gs_status_t gs_ftorch_create (void *model, const gs_comm_t *comm, gs_reducer_t *reducer,
                              gs_ftorch_t **net, int *count);

/*
 * Makes each .grad a view of the reducer's memory, sets the hooks, and gives all ranks the
 * parameters of one. Those that need no gradient, and buffers such as running means, stay as each
 * rank has loaded them.
 *
 * This thread's passes of TorchScript then run as they are written, without its optimizer: that
 * makes one node of several layers, whose gradients all come at the end.
 *
 *   net   in  the reducer is committed
 *   root  in  the rank that provides the values
 *
 * Collective  yes.
 * Returns     GS_OK; GS_ERR_STATE if it was started; as gs_reducer_broadcast.
 */
gs_status_t gs_ftorch_start (gs_ftorch_t *net, int root);

/*
 * Zeroes the gradients where they are, and puts them back if something replaced them, as the
 * zero_grad of an optimizer does.
 */
gs_status_t gs_ftorch_zero_grad (gs_ftorch_t *net);

/*
 * Ends the step: skips the parameters that the backward pass did not reach, and waits for the
 * averages.
 *
 * Collective  yes.
 * Returns     GS_OK; GS_ERR_STATE if a hook found a gradient that was replaced since
 *             gs_ftorch_zero_grad; what a gs_reducer_ready of a hook or gs_reducer_finish
 * returns.
 */
gs_status_t gs_ftorch_finish (gs_ftorch_t *net);

/* Tells of parameter [at], from 0: GS_OK, or GS_ERR_ARG. */
gs_status_t gs_ftorch_get (const gs_ftorch_t *net, int at, gs_ftorch_parameter_t *parameter);

/* Takes hooks and gradients off the model, which goes on as it was. NULL is allowed. */
void gs_ftorch_destroy (gs_ftorch_t *net);

/* What was wrong with the last call of this thread that failed. */
const char *gs_ftorch_last_error (void);

#ifdef __cplusplus
}
#endif

#endif
