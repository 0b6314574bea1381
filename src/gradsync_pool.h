/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_pool.h - part of gradsync.h, which includes it: samples of many ranks, evaluated in
 * batches by few.
 */
#ifndef GRADSYNC_POOL_H
#define GRADSYNC_POOL_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 9. Pools ---------------------------------------------------------------------------- */
/*
 * Many ranks of a node have samples for a network, each in each step as many as it likes, and few
 * of these ranks, the evaluators, have the GPUs. A pool gathers the rows, one for each sample, in
 * memory that the ranks of a node share, has its evaluators call the program's function for
 * batches of them, and gives each rank the results of its rows:
 *
 *     gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
 *     opts.inputs = 12; opts.outputs = 3; opts.dtype = GS_F32;
 *     opts.max_rows = 4096; opts.on_batch = evaluate;
 *     gs_pool_create (comm, &opts, &pool);
 *     for (each step) {
 *         gs_pool_begin (pool, features, rows);
 *         ... what does not need the results ...
 *         gs_pool_end (pool, results);
 *     }
 *     gs_pool_destroy (pool);
 *
 * A row has [inputs] elements, its result [outputs]. All rows of a step and of a node lie one
 * behind the other, those of the lowest rank first, each rank's in its order. The evaluators of
 * the node have even parts of them, in rank order, and call for batches of at most [max_batch]
 * rows, each where it lies: what a batch has depends on the numbers of rows alone.
 *
 * By default nodes do not exchange rows. With GS_BALANCE_ACROSS_NODES all evaluators of all nodes
 * have even parts: a node with more rows sends its last ones to others, where they lie behind
 * those of that node, and gets their results back.
 *
 * Two steps may be in flight: begin, begin, end, end. Steps end in the order in which they began.
 * The functions of a step are calls of all ranks of the communicator, in one order with its
 * collectives; ranks of different nodes wait for each other in them across nodes alone.
 *
 * Where a function of the program returns something else than GS_OK, all ranks of that node, or
 * of all nodes across nodes, get that status for the step, with a text that names the rank. The
 * step has ended; pool and communicator go on.
 *
 * Arrays of the program are in memory of the host or, on a communicator on GPUs, of the GPU. All
 * functions but gs_pool_create and gs_pool_destroy return GS_ERR_ARG if the pool is NULL,
 * GS_ERR_STATE if it was destroyed; all of these but gs_pool_get_info what the communicator died
 * of, and GS_ERR_TIMEOUT if a rank of the node did not come within GS_TIMEOUT_MS.
 */
typedef struct gs_pool gs_pool_t;

/*
 * Evaluates a batch, on an evaluator, in its gs_pool_end.
 *
 *   rows     in   1 to max_batch
 *   in       in   [rows * inputs], in memory of the host that the ranks share
 *   out      out  [rows * outputs], likewise
 *   stream   in   of the options
 *   context  in   of the options
 *
 * What it queues on stream has ended before the results are given back, on a rank that has a GPU
 * of the communicator; on others all has ended when it returns. It makes no calls on the pool but
 * gs_pool_get_info, nor on the communicator: they are refused with GS_ERR_STATE.
 *
 * Returns     GS_OK, or why not.
 */
typedef gs_status_t (*gs_pool_batch_f) (size_t rows, const void *in, void *out,
                                        gs_stream_t stream, void *context);

/*
 * Takes the gradients of a batch back, in gs_pool_backward.
 *
 *   rows      in   1 to max_batch
 *   in        in   [rows * inputs], what gs_pool_batch_f had
 *   grad_out  in   [rows * outputs] gradients of the results
 *   grad_in   out  [rows * inputs] gradients of the rows
 *   stream    in   of the options
 *   context   in   of the options
 *
 * The rest is as for gs_pool_batch_f.
 *
 * Returns     GS_OK, or why not.
 */
typedef gs_status_t (*gs_pool_gradient_f) (size_t rows, const void *in, const void *grad_out,
                                           void *grad_in, gs_stream_t stream, void *context);

/* Whether a rank evaluates. */
typedef enum gs_evaluator {
    GS_EVALUATOR_AUTO = 0, /* if no rank of the node wants to: the lowest ranks do, one for each
                            * GPU that the node's ranks see, or one without GPUs */
    GS_EVALUATOR_YES = 1,
    GS_EVALUATOR_NO = 2,
    GS_EVALUATOR_INT_SIZED = 0x7fffffff
} gs_evaluator_t;

/* Where rows are evaluated. */
typedef enum gs_balance {
    GS_BALANCE_WITHIN_NODES = 0, /* on the node of their rank */
    GS_BALANCE_ACROSS_NODES = 1, /* all evaluators of all nodes have as many rows as each other */
    GS_BALANCE_INT_SIZED = 0x7fffffff
} gs_balance_t;

/*
 * Options of a pool, the same on all ranks but for evaluator, functions, context and stream.
 * Start from GS_POOL_OPTS_INIT. [size] lets later versions add fields.
 */
typedef struct gs_pool_opts {
    size_t size;      /* sizeof (gs_pool_opts_t) */
    const char *name; /* shown in messages; copied; NULL: "rows" */
    size_t inputs;    /* elements of a row, 1 or more */
    size_t outputs;   /* elements of a result, 1 or more */
    gs_dtype_t dtype; /* of both; any */
    size_t max_rows;  /* that a rank has in a step at most, 1 or more */
    size_t max_batch; /* rows of a batch at most; 0: all that an evaluator has */
    gs_evaluator_t evaluator;
    gs_balance_t balance;
    gs_pool_batch_f on_batch;       /* an evaluator has it; AUTO takes ranks that have it alone */
    gs_pool_gradient_f on_gradient; /* for gs_pool_backward; on all evaluators or on none */
    void *context;                  /* handed to both */
    gs_stream_t stream;             /* handed to both; arrays on GPUs are copied on it */
    void *reserved[8];              /* NULL */
} gs_pool_opts_t;

#define GS_POOL_OPTS_INIT                                                             \
    {                                                                                 \
        sizeof (gs_pool_opts_t), NULL, 0, 0, (gs_dtype_t) 0, 0, 0, GS_EVALUATOR_AUTO, \
            GS_BALANCE_WITHIN_NODES, NULL, NULL, NULL, NULL,                          \
        {                                                                             \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                            \
        }                                                                             \
    }

/*
 * Makes a pool, and the memory that the ranks of each node share: for max_rows of each rank, in
 * two steps; it takes up room where rows were written only, but all of it on a node where an
 * evaluator has a GPU of a communicator on GPUs, with which it is registered (but for gradients
 * without on_gradient).
 *
 *   comm  in   every rank calls
 *   opts  in   see above
 *   pool  out  NULL on failure
 *
 * Collective  yes.
 * Owner       the caller, until gs_pool_destroy, which comes before gs_comm_destroy.
 * Returns     GS_ERR_ARG on all ranks for an option that is wrong on one, and where a node has no
 *             evaluator; GS_ERR_MISMATCH if they disagree; GS_ERR_UNSUPPORTED where ranks of a
 *             node cannot share memory; GS_ERR_NOMEM; else as a collective, see section 5.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_create (gs_comm_t *comm, const gs_pool_opts_t *opts, gs_pool_t **pool);

/*
 * Begins a step: hands the rows of this rank over. Waits until all ranks of the node, or across
 * nodes of all nodes, have said how many they have.
 *
 *   pool  in  every rank calls; with one step in flight at most
 *   in    in  [rows * inputs], the caller's again when it returns; NULL: the caller writes them
 *             at gs_pool_get_rows, until gs_pool_end
 *   rows  in  0 to max_rows
 *
 * Collective  yes.
 * Waits       on GPUs for what the stream does to in.
 * Returns     see above; GS_ERR_STATE with two steps in flight.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_begin (gs_pool_t *pool, const void *in, size_t rows);

/*
 * Tells where the rows of this rank lie, in the memory of the node. Local.
 *
 *   pool  in   with a step in flight
 *   rows  out  of the step that was begun last, to be written until its gs_pool_end
 *
 * Returns     see above; GS_ERR_STATE without a step in flight.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_get_rows (gs_pool_t *pool, void **rows);

/*
 * Ends the step that was begun first. Evaluators call on_batch in it.
 *
 *   pool  in   every rank calls
 *   out   out  [rows * outputs] the results of this rank's rows; NULL: they are not wanted
 *
 * Collective  yes.
 * Waits       until all evaluators of the node, or of all nodes, have done their part; on GPUs
 *             for what the stream does to rows that the program writes in place.
 * Returns     see above; what on_batch returned, on any of these ranks; GS_ERR_STATE without a
 *             step in flight.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_end (gs_pool_t *pool, void *out);

/*
 * A step at once: gs_pool_begin and gs_pool_end.
 *
 *   pool  in   every rank calls; with no step in flight
 *   in    in   as gs_pool_begin; not NULL with rows
 *   rows  in   0 to max_rows
 *   out   out  as gs_pool_end
 *
 * Collective  yes.
 * Returns     as both.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_evaluate (gs_pool_t *pool, const void *in, size_t rows, void *out);

/*
 * The adjoint of the step that ended last: hands gradients of its results to the evaluators of
 * the rows, and gives each rank those of its rows. For training; may be called several times.
 *
 *   pool      in   every rank calls; with one step in flight at most
 *   grad_out  in   [rows * outputs], of the rows of that step; NULL without rows
 *   grad_in   out  [rows * inputs]; NULL: they are not wanted
 *
 * Collective  yes.
 * Waits       for all ranks of the node, or of all nodes.
 * Returns     see above; what on_gradient returned, on any of these; GS_ERR_STATE if no step has
 *             ended, if two are in flight, or if the evaluators have no on_gradient.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_backward (gs_pool_t *pool, const void *grad_out, void *grad_in);

/* What a pool is, and what it did on this rank. */
typedef struct gs_pool_info {
    size_t size;      /* sizeof (gs_pool_info_t) */
    int evaluator;    /* 1: this rank is one */
    int evaluators;   /* of this node */
    int device;       /* an evaluator's GPU, as this process numbers them, or GS_DEVICE_HOST */
    int in_flight;    /* steps that have begun and not ended */
    uint64_t steps;   /* that ended */
    uint64_t rows;    /* of this rank, in these */
    uint64_t batches; /* that this rank evaluated, without those of gradients, */
    uint64_t taken;   /* and the rows that they had */
} gs_pool_info_t;

/*
 * Tells what a pool is, and what it did. Local.
 *
 *   pool  in      a pool
 *   info  in,out  size is sizeof (gs_pool_info_t); the rest is filled in
 *
 * Returns     see above; GS_ERR_ARG if info is NULL or info->size is none.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_get_info (const gs_pool_t *pool, gs_pool_info_t *info);

/*
 * Ends a pool; NULL is allowed. Steps in flight are given up; the other ranks of the node end it,
 * too.
 *
 *   pool  in  not used afterwards
 *
 * Collective  no.
 * Returns     GS_OK; GS_ERR_STATE for what is none, and inside a call of on_batch or on_gradient.
 * Since       0.3, experimental
 */
gs_status_t gs_pool_destroy (gs_pool_t *pool);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_POOL_H */
