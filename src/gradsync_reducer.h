/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_reducer.h - part of gradsync.h, which includes it: gradients averaged in buckets while
 * the backward pass still runs.
 */
#ifndef GRADSYNC_REDUCER_H
#define GRADSYNC_REDUCER_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 6. Reducers ------------------------------------------------------------------------ */
/*
 * A reducer knows the gradients of a model. The program says of each when it is complete; those
 * that lie side by side travel together, a bucket, as soon as all of them are, while the backward
 * pass goes on with others:
 *
 *   create, add each gradient, commit
 *   each step:  compute a gradient, ready it, the next, ...; finish; use the averages
 *   destroy
 *
 * On GPUs buckets are queued on a stream of the reducer's own, of high priority; no call waits on
 * the host but where it says so. On hosts a thread of the reducer's sees to them where MPI, if it
 * is used, gives MPI_THREAD_MULTIPLE, and the ranks are on several nodes, or have more than one
 * core each; else they are inside gs_reducer_ready. GS_DEBUG=info tells which, and why.
 *
 * Buckets are launched in an order that all ranks share: at first the reverse of that of the
 * adds, later that in which gradients were seen to become ready.
 *
 * From the first ready or skip of a step until finish returns the communicator is the reducer's:
 * other collectives on it return GS_ERR_STATE, but for those made in a callback. "Between steps"
 * is between a finish and the next ready or skip; micro-steps are steps in this sense.
 *
 * A reducer is used by one thread at a time. All functions but gs_reducer_destroy return
 * GS_ERR_ARG if the reducer is NULL, GS_ERR_STATE if it was destroyed or, unless they say
 * otherwise, is not committed. Those that are collective return what the collectives of section 5
 * do, too; and all that reach the communicator, what it died of.
 */
typedef struct gs_reducer gs_reducer_t;

/* When buckets are reduced. */
typedef enum gs_overlap {
    GS_OVERLAP_AUTO = 0,   /* beside the backward pass, where that can be */
    GS_OVERLAP_INLINE = 1, /* on hosts inside the gs_reducer_ready that completes them */
    GS_OVERLAP_OFF = 2,    /* in gs_reducer_finish: to compare with */
    GS_OVERLAP_THREAD = 3, /* beside it, on hosts by a thread even without a core for that */
    GS_OVERLAP_INT_SIZED = 0x7fffffff
} gs_overlap_t;

/*
 * Options of a reducer, the same on all ranks. Start from GS_REDUCER_OPTS_INIT; zero or NULL in a
 * field means its default. [size] lets later versions add fields.
 */
typedef struct gs_reducer_opts {
    size_t size;         /* sizeof (gs_reducer_opts_t) */
    const char *name;    /* shown in messages; copied; default "gradients" */
    size_t first_bytes;  /* limit of the first bucket; a larger gradient has its own: 1 MiB */
    size_t bucket_bytes; /* of the others: 25 MiB on GPUs, 4 MiB on hosts */
    size_t last_bytes;   /* of the one launched last: 1 MiB; all 25 MiB where nothing overlaps */
    gs_overlap_t overlap;
    gs_dtype_t wire; /* GS_F16, GS_BF16 or fp8: f32 and f64 travel as that; default as they are */
    int error_feedback; /* 1: what the rounding to [wire] lost is added in the next step */
    int forward;        /* 1: gradients are expected in the order of the adds, not in reverse */
    int weighted;       /* 1: averages are weighted, by gs_reducer_set_weight */
    int average_micro;  /* 1: the average is divided by the number of micro-steps, too */
    int check_finite;   /* 1: finish tells of NaN and infinities; on GPUs it then waits */
    int want_norm;      /* 1: gs_reducer_get_norm has the norm of the averaged gradient */
    double max_norm;    /* averages are scaled down to this norm in finish; 0: they are not */
    void *reserved[8];  /* NULL */
} gs_reducer_opts_t;

#define GS_REDUCER_OPTS_INIT                                                                    \
    {                                                                                           \
        sizeof (gs_reducer_opts_t), NULL, 0, 0, 0, GS_OVERLAP_AUTO, (gs_dtype_t) 0, 0, 0, 0, 0, \
            0, 0, 0.0,                                                                          \
        {                                                                                       \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                                      \
        }                                                                                       \
    }

/*
 * Makes a reducer without gradients; commit completes it.
 *
 *   comm     in   outlives the reducer; may have several of them, of which one is in a step
 *   opts     in   NULL for the defaults
 *   reducer  out  the new reducer; NULL on failure
 *
 * Collective  no; gs_reducer_commit is.
 * Owner       the caller, until gs_reducer_destroy.
 * Returns     GS_OK; GS_ERR_ARG for an argument or option that is wrong; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_reducer_create (gs_comm_t *comm, const gs_reducer_opts_t *opts,
                               gs_reducer_t **reducer);

#define GS_REDUCER_DIMS_MAX 15

/*
 * Adds a gradient, before the commit. All ranks add the same, in the same order.
 *
 *   reducer  in   not yet committed
 *   name     in   names it in messages, different from the others; copied
 *   dims     in   number of dimensions, 0 (a scalar) to GS_REDUCER_DIMS_MAX
 *   shape    in   [dims] extents in the caller's order; an extent may be 0
 *   dtype    in   GS_F16, GS_BF16, GS_F32, GS_F64, GS_C64 or GS_C128
 *   grad     in   contiguous memory of comm's device, which the caller keeps until the reducer is
 *                 destroyed; NULL, and better: the reducer makes it, and nothing is copied
 *   index    out  its number: 0, 1, ...; NULL if not wanted
 *
 * Returns     GS_OK; GS_ERR_ARG for a name taken twice, a size that overflows, memory that is not
 *             aligned, or that another gradient has; GS_ERR_DEVICE for memory of another device,
 *             on GPUs also of the host; GS_ERR_STATE after the commit; GS_ERR_UNSUPPORTED for
 *             integers; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_reducer_add (gs_reducer_t *reducer, const char *name, int dims,
                            const size_t *shape, gs_dtype_t dtype, void *grad, int *index);

/*
 * Adds a number that travels with the gradients of each step: a loss, a count, a wish to stop.
 *
 *   reducer  in   not yet committed
 *   name     in   names it in messages, different from the other scalars; copied
 *   op       in   GS_SUM, GS_MIN, GS_MAX, or GS_AVG, which is weighted like the gradients
 *   index    out  its number: 0, 1, ...; NULL if not wanted
 *
 * Returns     GS_OK; GS_ERR_ARG; GS_ERR_STATE after the commit; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_reducer_add_scalar (gs_reducer_t *reducer, const char *name, gs_op_t op,
                                   int *index);

/*
 * Ends the adds: compares what all ranks added, and makes storage and buckets.
 *
 *   reducer  in,out  not yet committed
 *
 * Collective  yes, over the ranks of the communicator.
 * Returns     the same on all ranks but for GS_ERR_STATE after a commit:
 *   GS_ERR_MISMATCH  options, names, shapes, types or the order of the adds differ; the first
 *                    difference is named, with both ranks. The reducer stays uncommitted
 *   GS_ERR_ARG       nothing was added
 *   GS_ERR_UNSUPPORTED  a rank asks for a thread that MPI does not allow; both are named
 *   GS_ERR_NOMEM, GS_ERR_DEVICE  there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_reducer_commit (gs_reducer_t *reducer);

/*
 * Where a gradient is: what the caller writes to and reads from between finish and ready. The
 * address holds until gs_reducer_relayout or gs_reducer_destroy. What the reducer made is zero at
 * first.
 *
 *   reducer  in   committed
 *   index    in   of gs_reducer_add
 *   grad     out  contiguous, in the shape that was given; NULL if it has no elements
 *
 * Owner       the reducer, or who gave it to gs_reducer_add.
 * Returns     GS_OK; GS_ERR_ARG if index is out of range.
 * Since       0.2
 */
gs_status_t gs_reducer_get_grad (gs_reducer_t *reducer, int index, void **grad);

/*
 * Says that a gradient of this step is complete. Nobody touches it from now on until finish.
 *
 *   reducer  in  committed
 *   index    in  of gs_reducer_add; each once in a step, on all ranks, in any order
 *   stream   in  on GPUs the stream that has the work which completes it (NULL: the legacy
 *                default stream); not one that is captured, and it lasts until finish. Ignored
 *                on hosts
 *
 * Collective  no, but buckets wait for all ranks.
 * Returns     GS_OK; GS_ERR_ARG if index is out of range; GS_ERR_STATE if it was ready or skipped
 *             in this step already, or no weight was given, which changes nothing;
 *             GS_ERR_UNSUPPORTED if the stream is captured; what a callback or a bucket failed
 *             of.
 * Since       0.1
 */
gs_status_t gs_reducer_ready (gs_reducer_t *reducer, int index, gs_stream_t stream);

/*
 * Says that a gradient is not computed in this step: it counts as 0 in the average, which it
 * receives, unless micro-steps before have made it ready.
 *
 *   reducer  in  committed
 *   index    in  as gs_reducer_ready
 *   stream   in  as gs_reducer_ready
 *
 * Returns     as gs_reducer_ready.
 * Since       0.1
 */
gs_status_t gs_reducer_skip (gs_reducer_t *reducer, int index, gs_stream_t stream);

/*
 * Ends a step: afterwards all gradients are averages. With set_sync 0 it ends a micro-step.
 *
 *   reducer  in  all gradients are ready or skipped
 *   stream   in  on GPUs the stream that goes on with the averages; the host does not wait, but
 *                in steps 1, 2, 4, 8, ... unless buckets are static: there they may be made anew.
 *                Ignored on hosts
 *
 * Collective  yes.
 * Returns     GS_OK, or what is known to have failed:
 *   GS_ERR_STATE     gradients are neither ready nor skipped, which are named: that is undone by
 *                    doing so. Or the communicator was aborted
 *   GS_ERR_ARG       with check_finite, on all ranks: a gradient of some rank was not finite
 *                    before the average; both are named. The step is over, as usual
 *   GS_ERR_MISMATCH  ranks have different numbers of steps or, with average_micro, of micro-steps
 *   GS_ERR_TIMEOUT, GS_ERR_TRANSPORT, GS_ERR_DEVICE  of gs_allreduce_avg; a text names the bucket
 *   what a callback returned
 * Since       0.1
 */
gs_status_t gs_reducer_finish (gs_reducer_t *reducer, gs_stream_t stream);

/*
 * Turns the communication of the steps off and on, as no_sync of PyTorch's DDP does: while it is
 * off, ready and skip only note, and finish ends a micro-step. The program adds to its gradients
 * itself; the step that is finished with it on averages them.
 *
 *   reducer  in  between steps
 *   sync     in  1 (at first) or 0
 *
 * Returns     GS_OK; GS_ERR_STATE inside a step.
 * Since       0.2
 */
gs_status_t gs_reducer_set_sync (gs_reducer_t *reducer, int sync);

/*
 * Gives this rank's weight, for example its number of samples. With the option weighted only:
 * before the first step, and then whenever a weight changes; before each step where ranks join,
 * or with average_micro.
 *
 *   reducer  in  between steps
 *   weight   in  finite, not negative; if all are 0, the averages are 0
 *
 * Collective  yes. Waits on the host for all ranks, on GPUs too.
 * Returns     GS_OK; GS_ERR_ARG on all ranks, naming one, if its weight is negative or not
 *             finite; GS_ERR_STATE inside a step or without the option.
 * Since       0.2
 */
gs_status_t gs_reducer_set_weight (gs_reducer_t *reducer, double weight);

/*
 * Takes part in a step of the others for a rank that has no more data, with weight 0, in place of
 * weight, ready and finish; hooks and callbacks are called as usual. To be called until [done]
 * is 1.
 *
 *   reducer  in   of option weighted, between steps
 *   stream   in   as gs_reducer_finish
 *   done     out  1 if all ranks called it: there was no step
 *
 * Collective  yes, with gs_reducer_set_weight and the step of the other ranks.
 * Returns     as gs_reducer_finish; GS_ERR_STATE inside a step or without the option.
 * Since       0.1
 */
gs_status_t gs_reducer_join (gs_reducer_t *reducer, gs_stream_t stream, int *done);

/*
 * Sets this rank's value of a scalar for the step under way or, between steps, the next one. It
 * keeps the value until it is set again; at first it is 0.
 *
 *   reducer  in  committed
 *   index    in  of gs_reducer_add_scalar
 *   value    in  any; with GS_MIN and _MAX a NaN of any rank gives NaN
 *
 * Returns     GS_OK; GS_ERR_ARG if index is out of range.
 * Since       0.1
 */
gs_status_t gs_reducer_set_scalar (gs_reducer_t *reducer, int index, double value);

/*
 * What became of a scalar in the last step that was finished; the same bits on all ranks.
 *
 *   reducer  in   committed
 *   index    in   of gs_reducer_add_scalar
 *   value    out  summed in double, in rank order; ranks that joined the step do not count
 *
 * Waits       on GPUs, until that step has ended there.
 * Returns     GS_OK; GS_ERR_ARG if index is out of range; GS_ERR_STATE before the first step.
 * Since       0.1
 */
gs_status_t gs_reducer_get_scalar (gs_reducer_t *reducer, int index, double *value);

/*
 * The norm of the averaged gradient of the last step, over all parameters, before it was scaled
 * to max_norm; with the options want_norm or max_norm only. One that is infinite or NaN, also by
 * elements of f64 beyond 1e154, whose squares are, makes all averages NaN with max_norm.
 *
 *   reducer  in   committed
 *   norm     out  square root of the sum of |g|^2 of all elements; the same bits on all ranks
 *
 * Waits       as gs_reducer_get_scalar.
 * Returns     GS_OK; GS_ERR_STATE before the first step or without these options.
 * Since       0.2
 */
gs_status_t gs_reducer_get_norm (gs_reducer_t *reducer, double *norm);

/*
 * Gives all ranks the parameters of one: what a model begins with.
 *
 *   reducer  in      between steps
 *   params   in,out  [number of gradients] arrays of the shapes and types of the adds, in memory
 *                    of comm's device or of the host; NULL ones are left out, on all ranks alike
 *   root     in      the rank that provides the values
 *   stream   in      as gs_broadcast
 *
 * Collective  yes.
 * Waits       on GPUs, until all ranks have told which parameters they give.
 * Returns     as gs_broadcast; an array or a root that is wrong on one rank is told to all;
 *             GS_ERR_MISMATCH if others are NULL on another rank.
 * Since       0.1
 */
gs_status_t gs_reducer_broadcast (gs_reducer_t *reducer, void *const *params, int root,
                                  gs_stream_t stream);

/* A bucket, as a callback sees it; valid during the callback. */
typedef struct gs_bucket {
    size_t size;         /* sizeof (gs_bucket_t) of the library */
    int index, buckets;  /* its number in the order of launching; how many there are */
    int gradients;       /* of it */
    const int *gradient; /* [gradients] their numbers */
    void *const *grad;   /* [gradients] where they are */
    const size_t *count; /* [gradients] elements */
    gs_dtype_t dtype;    /* of all of them */
    gs_comm_t *comm;     /* calls on it may be made */
    gs_stream_t stream;  /* on GPUs, the stream to queue work on */
    int64_t step;        /* 1, 2, ... */
    double weight;       /* of this rank, with which it counts in an average */
} gs_bucket_t;

/*
 * Called for each bucket, in the order of launching, the same on all ranks: on GPUs by the thread
 * in gs_reducer_ready, to queue work on [stream]; on hosts by that one or by the reducer's own.
 * It must not call functions of the reducer. What it returns but GS_OK, finish returns too.
 */
typedef gs_status_t (*gs_bucket_f) (const gs_bucket_t *bucket, void *context);

/*
 * Puts [hook] in the place of the average: gradients of a bucket are as they were made ready, or
 * 0 if they were skipped, and what it leaves in them is the result, the same on all ranks:
 * compression, another kind of mean. Wire types, weights and micro-steps are its own business. If
 * it fails on a rank, the communicator is aborted there, for the others may wait.
 *
 *   reducer  in  between steps, on all ranks alike
 *   hook     in  NULL: back to the average
 *   context  in  handed to [hook] as it is
 *
 * Owner       the caller keeps [context] while it is set.
 * Returns     GS_OK; GS_ERR_STATE inside a step.
 * Since       0.1
 */
gs_status_t gs_reducer_set_hook (gs_reducer_t *reducer, gs_bucket_f hook, void *context);

/*
 * Has [averaged] called when a bucket has its averages, while later ones still travel: for a step
 * of the optimizer. With max_norm it would come before the scaling: that is GS_ERR_STATE.
 *
 *   reducer   in  between steps
 *   averaged  in  NULL: nothing is called
 *   context   in  handed to [averaged] as it is
 *
 * Owner       the caller keeps [context] while it is set.
 * Returns     GS_OK; GS_ERR_STATE inside a step or with max_norm.
 * Since       0.1
 */
gs_status_t gs_reducer_set_averaged (gs_reducer_t *reducer, gs_bucket_f averaged, void *context);

/*
 * Lays the reducer's storage out anew, in the order in which gradients became ready last, so that
 * buckets are full and leave early. Gradients in memory of the reducer's get
 * other addresses; values are kept.
 *
 *   reducer  in  between steps
 *
 * Collective  yes.
 * Waits       for all ranks; on GPUs for the legacy default stream, and the one that was given
 *             last to ready, skip or finish, which must still be there.
 * Returns     GS_OK; GS_ERR_STATE inside a step or before the first; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_reducer_relayout (gs_reducer_t *reducer);

/* What a reducer did, on this rank; times in microseconds. */
typedef struct gs_reducer_stats {
    size_t size;         /* in: sizeof (gs_reducer_stats_t) */
    int64_t steps;       /* that communicated */
    int buckets;         /* as they are now */
    int rebuilds;        /* how often they were made anew */
    size_t bytes;        /* of the gradients */
    size_t wire_bytes;   /* of them as they travel, with gaps between them */
    double step_us;      /* mean of a step, from the first ready to the end of finish */
    double busy_us;      /* mean of a step, in which buckets were under way */
    double exposed_us;   /* mean of a step, which the program waited, for late ranks too */
    double overlap;      /* 1 - exposed_us / busy_us, but not below 0 */
    double latency_us;   /* time of a bucket = latency_us + bytes / bytes_per_us, fitted by */
    double bytes_per_us; /* least squares; 0 while there are too few different buckets */
    size_t recommended_bytes; /* sqrt (bytes * latency_us * bytes_per_us): buckets of this size
                                 make latencies plus the last bucket shortest; 0: not known */
    int late_rank;            /* the rank others waited for most in the last step, or -1 */
    int overlaps;   /* 1: buckets are reduced during the backward pass; 0: inside calls */
    double late_us; /* how long */
    double reserved[8];
} gs_reducer_stats_t;

/*
 * Tells what a reducer did.
 *
 *   reducer  in      committed
 *   stats    in,out  [size] in, the rest out. On GPUs step_us is the host's own time; the times
 *                    that follow are taken by events, of the first 16 steps and each eighth then
 *                    whose end the GPU has reached, and so is late_rank
 *
 * Streams     does not wait for them.
 * Returns     GS_OK; GS_ERR_ARG if stats is NULL or its size is wrong; GS_ERR_DEVICE.
 * Since       0.1
 */
gs_status_t gs_reducer_get_stats (gs_reducer_t *reducer, gs_reducer_stats_t *stats);

/*
 * A bucket in the last step; on GPUs, in the last that was timed, as the first 16 are and each
 * eighth then, and whose end the GPU has reached. Times in microseconds since the first ready of
 * the step. 0 if the bucket was made after it.
 */
typedef struct gs_bucket_stats {
    size_t size;       /* in: sizeof (gs_bucket_stats_t) */
    int gradients;     /* of it */
    int first;         /* number of the gradient in it that lies first in the storage */
    size_t bytes;      /* of them */
    double ready_us;   /* all of it was ready */
    double begin_us;   /* it began to travel */
    double end_us;     /* it had arrived */
    double exposed_us; /* the part of that which the program, or its stream, waited */
    double reserved[4];
} gs_bucket_stats_t;

/*
 * Tells how a bucket went in the last step.
 *
 *   reducer  in      committed
 *   bucket   in      0, 1, ... in the order of launching; past the end GS_ERR_ARG
 *   stats    in,out  [size] in, the rest out
 *
 * Returns     GS_OK; GS_ERR_ARG.
 * Since       0.1
 */
gs_status_t gs_reducer_get_bucket (gs_reducer_t *reducer, int bucket, gs_bucket_stats_t *stats);

/*
 * Writes both on rank 0, and what buckets on the communicator have sent (gs_comm_get_traffic): a
 * table for people, or JSON, one object per line.
 *
 *   reducer  in  committed
 *   path     in  of a file, written anew, with JSON; NULL: the table goes to the log, at info
 *
 * Returns     GS_OK; GS_ERR_IO if the file cannot be written.
 * Since       0.1
 */
gs_status_t gs_reducer_report (gs_reducer_t *reducer, const char *path);

/*
 * Ends a reducer and frees its storage.
 *
 *   reducer  in  NULL does nothing; not to be used afterwards, nor are its gradients
 *
 * Collective  no. Before gs_comm_destroy.
 * Returns     GS_OK; GS_ERR_STATE inside a step of a communicator that lives: finish it, or abort
 *             the communicator; then nothing was destroyed.
 * Since       0.1
 */
gs_status_t gs_reducer_destroy (gs_reducer_t *reducer);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_REDUCER_H */
