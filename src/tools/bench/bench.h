/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench - what the parts of gs-bench share.
 *
 * To add an operation: write op_NAME.c with a const struct bench_op bench_op_NAME, declare it
 * below, and add it to the table in options.c. An operation that moves a number of bytes fills
 * in two struct bench_side and calls bench_sweep.
 */
#ifndef GS_TOOLS_BENCH_BENCH_H
#define GS_TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

/* What buffers are filled with: small numbers in every floating type, and memory that is there.
 */
#define BENCH_FILL 0x3c

/* Where arrays are: of malloc, of gs_device_alloc on hosts, of gs_device_alloc on GPUs. */
enum bench_memory { BENCH_HOST, BENCH_SHARED, BENCH_DEVICE };

struct bench_op;

/* What an operation on the gradients of a model takes. */
struct bench_model_options {
    const char *name; /* of a model of the installation, or a path; NULL: not given */
    unsigned modes;   /* bits by enum bench_mode */
    int compute_us;
    size_t bucket_bytes, first_bytes, last_bytes; /* 0: the reducer's defaults */
    gs_dtype_t wire;                              /* 0: as they are */
};

/* What an operation on checkpoints takes. */
struct bench_ckpt_options {
    const char *dir; /* NULL: not given */
    size_t bytes;    /* of the arrays in the file */
    int replicated;  /* per cent of them */
    bool async, direct, keep;
};

struct bench_options {
    const struct bench_op *op;
    size_t min_bytes, max_bytes; /* whole elements of dtype */
    gs_dtype_t dtype;
    int iterations; /* calls in a round; 0: as many as fill ROUND_US of measure.c */
    int warmup;     /* calls of each side before the first round of a size or model */
    int rounds;
    int ranks; /* to start here; 0: a launcher did */
    enum bench_memory memory;
    bool json;
    struct bench_model_options model;
    struct bench_ckpt_options ckpt;
};

struct bench {
    struct bench_options options;
    gs_comm_t *comm; /* all ranks; NULL until it is made */
};

/* One line of output. */
struct bench_result {
    const char *dtype; /* NULL: the operation has none */
    size_t bytes;
    int iterations;
    const char *transport;
    double time_us;
    double raw_time_us; /* NAN: nothing to compare with */
};

struct bench_op {
    const char *name;
    const char *help; /* one line */
    bool sized;       /* takes sizes, a type, iterations and warm-up */
    bool modelled;    /* takes a model, with what belongs to it, and warm-up */
    bool stored;      /* takes a folder, with what belongs to it, and warm-up */
    bool can_gpu;     /* takes --memory device */
    bool needs_gpu;   /* takes no other */

    /* (optional) Whether [dtype] can be measured; NULL: all. */
    bool (*takes) (gs_dtype_t dtype);

    /* (required) Collective. Measures and prints. */
    bool (*run) (const struct bench *bench);
};

extern const struct bench_op bench_op_allreduce_avg;
extern const struct bench_op bench_op_allgather;
extern const struct bench_op bench_op_allgatherv;
extern const struct bench_op bench_op_alltoall;
extern const struct bench_op bench_op_bootstrap;
extern const struct bench_op bench_op_bucket;
extern const struct bench_op bench_op_checksum;
extern const struct bench_op bench_op_ckpt;
extern const struct bench_op bench_op_split;
extern const struct bench_op bench_op_broadcast;
extern const struct bench_op bench_op_copy;
extern const struct bench_op bench_op_gather;
extern const struct bench_op bench_op_halo;
extern const struct bench_op bench_op_messages;
extern const struct bench_op bench_op_queue;
extern const struct bench_op bench_op_record;
extern const struct bench_op bench_op_reduce;
extern const struct bench_op bench_op_reduce_scatter;
extern const struct bench_op bench_op_reducer;
extern const struct bench_op bench_op_scatter;
extern const struct bench_op bench_op_sendrecv;

/* One of the things compared: ours, or the raw call. */
struct bench_side {
    /* Does it [times] times, and returns when the last is complete. */
    bool (*repeat) (void *context, int times);

    /* (optional) What comes before the ranks meet for a round. */
    bool (*prepare) (void *context);

    /* (optional) What surrounds the calls of a round, outside of its time. */
    bool (*before) (void *context);
    bool (*after) (void *context);
    void *context;
    size_t max_count; /* most elements it can take */
    int max_calls;    /* in a round; 0: any number */
};

/* Prints "gs-bench[rank/size]: text" to stderr and returns false, so that failing is a line. */
bool bench_fail (const struct bench *bench, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* An array of [bytes] where --memory says, filled; NULL after a failure that has been told. */
void *bench_make_array (const struct bench *bench, size_t bytes);
void bench_free_array (const struct bench *bench, void *array);

/* Whether [dtype] has an average. */
bool bench_has_average (gs_dtype_t dtype);

/*
 * Collective. Whether [mine] is true on all ranks. A rank that cannot go on says why by
 * bench_fail before it comes here; so all stop together and none waits for it.
 */
bool bench_agree (const struct bench *bench, bool mine);

#endif /* GS_TOOLS_BENCH_BENCH_H */
