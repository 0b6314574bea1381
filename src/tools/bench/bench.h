/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench - what the parts of gs-bench share.
 *
 * To add an operation: write op_NAME.c with bench_run_NAME, declare it below, and add a row to
 * the table in options.c. An operation that moves a number of bytes fills in two struct
 * bench_side and calls bench_sweep.
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

/* What an operation takes beside the options that all take; if anything, warm-up too. */
enum bench_group {
    BENCH_PLAIN,
    BENCH_SIZED,    /* sizes, a type and iterations */
    BENCH_MODELLED, /* a model, with what belongs to it */
    BENCH_STORED    /* a folder, with what belongs to it */
};

/* Where it is measured: not with --memory device, with it too, with nothing else. */
enum bench_place { BENCH_HOSTS, BENCH_EITHER, BENCH_GPUS };

struct bench_op {
    const char *name;
    bool (*run) (const struct bench *bench);
    enum bench_group group;
    enum bench_place place;
    int what; /* which of those of run it is */

    /* (optional) Whether [dtype] can be measured; NULL: all. */
    bool (*takes) (gs_dtype_t dtype);

    const char *help; /* one line */
};

/* Collective. Each measures and prints the operations that options.c lists for it. */
bool bench_run_average (const struct bench *bench);
bool bench_run_bootstrap (const struct bench *bench);
bool bench_run_bucket (const struct bench *bench);
bool bench_run_ckpt (const struct bench *bench);
bool bench_run_copy (const struct bench *bench);
bool bench_run_move (const struct bench *bench);
bool bench_run_neighbours (const struct bench *bench);
bool bench_run_pool (const struct bench *bench);
bool bench_run_queue (const struct bench *bench);
bool bench_run_record (const struct bench *bench);
bool bench_run_reducer (const struct bench *bench);
bool bench_run_split (const struct bench *bench);

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

    /* (optional) What the last of them took, in place of the time of a round. */
    const double *us;
    size_t max_count; /* most elements it can take */
    int max_calls;    /* in a round; 0: any number */
};

/* Prints "gs-bench[rank/size]: text" to stderr and returns false, so that failing is a line. */
bool bench_fail (const struct bench *bench, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* Whether [st] is GS_OK; if not, gs_last_error is told. */
bool bench_good (const struct bench *bench, gs_status_t st);

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
