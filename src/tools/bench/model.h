/* SPDX-License-Identifier: BSD-3-Clause */
/* model - the parameters of a model, read from a file. */
#ifndef GS_TOOLS_BENCH_MODEL_H
#define GS_TOOLS_BENCH_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/dtype.h"
#include "gradsync.h"

struct bench_tensor {
    char *name;
    gs_dtype_t dtype;
    int dims;
    size_t shape[GS_REDUCER_DIMS_MAX];
    size_t count, bytes;
    size_t offset; /* in an array that has room for all of them */
    int line;      /* of the file */
};

/* Tensors of one type lie side by side in that array: a span. */
#define BENCH_SPAN_ALIGN 256

struct bench_span {
    gs_dtype_t dtype;
    size_t count, offset;
};

struct bench_model {
    struct bench_tensor *tensor; /* in the order of the file, that of the forward pass */
    int tensors;                 /* 1 or more */
    struct bench_span span[GSI_DTYPES];
    int spans;
    size_t bytes; /* of all tensors */
    size_t room;  /* bytes of an array with all spans */
};

/*
 * Reads [name]: a model of the installation or, if that has none of this name, the path of a file
 * with lines "NAME TYPE EXTENT...", where # begins a comment. On failure the reason, with file
 * and line, is in [why]. The model is to be freed in any case.
 */
bool bench_model_read (const char *name, struct bench_model *model, char *why, size_t room);
void bench_model_free (struct bench_model *model);

#endif /* GS_TOOLS_BENCH_MODEL_H */
