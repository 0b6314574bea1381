/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth - the kernels of cuda/ beside a copy on the device that moves as many bytes, in turn,
 * in one process. Prints the rows of doc/results; asserts nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/dtype.h"
#include "cuda/kernels.h"

#define ROUNDS   21
#define CALLS    20 /* in a round */
#define RUNS     300
#define ELEMENTS ((size_t) 1 << 18) /* of a run: 300 MiB of float in all */

static cudaStream_t stream;
static cudaEvent_t begin, end;
static unsigned char *src, *dst;
static struct gsi_run runs[RUNS];
static uint64_t *answer;

static void must (cudaError_t error)
{
    if (!error)
        return;
    printf ("Bail out! %s\n", cudaGetErrorString (error));
    exit (99);
}

/* What is measured: [bytes] are read and written. */
struct work {
    const char *name;
    void (*run) (const struct work *w);
    gs_dtype_t from, to;
    double scale;
    size_t shift; /* of the source, in elements: 1 spoils the alignment */
    int sources;
    size_t bytes;
};

static void run_convert (const struct work *w)
{
    struct gsi_conversion how = {w->from, w->to, w->scale};

    must (gsi_cuda_convert (&how, runs, RUNS, stream));
}

static void run_sum (const struct work *w)
{
    struct gsi_reduction how = {.dtype = w->from, .op = GS_SUM, .divisor = w->sources};
    size_t count = RUNS * ELEMENTS / (size_t) w->sources;

    must (gsi_cuda_reduce (&how, dst, src, count, w->sources, count, NULL, stream));
}

static void run_find_nonfinite (const struct work *w)
{
    must (gsi_cuda_find_nonfinite (w->from, runs, RUNS, 0, (uint32_t *) answer, stream));
}

static void run_digest (const struct work *w)
{
    must (gsi_cuda_digest (src, w->bytes, 0, answer, stream));
}

static void lay_out (const struct work *w)
{
    size_t from = gs_dtype_size (w->from), to = gs_dtype_size (w->to);

    for (size_t r = 0; r < RUNS; r++)
        runs[r] = (struct gsi_run){src + (r * ELEMENTS + w->shift) * from,
                                   dst + r * ELEMENTS * to, ELEMENTS - w->shift};
}

static float time_of (const struct work *w)
{
    float ms;

    must (cudaEventRecord (begin, stream));
    for (int i = 0; i < CALLS; i++) {
        if (w->run)
            w->run (w);
        else
            must (cudaMemcpyAsync (dst, src, w->bytes / 2, cudaMemcpyDeviceToDevice, stream));
    }
    must (cudaEventRecord (end, stream));
    must (cudaEventSynchronize (end));
    must (cudaEventElapsedTime (&ms, begin, end));
    return ms / CALLS;
}

static int compare (const void *a, const void *b)
{
    float x = *(const float *) a, y = *(const float *) b;

    return (x > y) - (x < y);
}

static void measure (const struct work *w)
{
    struct work copy = {.bytes = w->bytes};
    float ours[ROUNDS], raw[ROUNDS];

    lay_out (w);
    time_of (w);
    time_of (&copy);
    for (int r = 0; r < ROUNDS; r++) {
        ours[r] = time_of (w);
        raw[r] = time_of (&copy);
    }
    qsort (ours, ROUNDS, sizeof (float), compare);
    qsort (raw, ROUNDS, sizeof (float), compare);
    printf ("| %s | %.0f | %.0f | %.2f |\n", w->name, (double) w->bytes / 1e6 / ours[ROUNDS / 2],
            (double) w->bytes / 1e6 / raw[ROUNDS / 2],
            (double) (raw[ROUNDS / 2] / ours[ROUNDS / 2]));
}

int main (void)
{
    const size_t all = RUNS * ELEMENTS;
    const struct work works[] = {
        {"pack f32, 300 tensors", run_convert, GS_F32, GS_F32, 1, 0, 0, 8 * all},
        {"pack f32 and scale", run_convert, GS_F32, GS_F32, 0.3, 0, 0, 8 * all},
        {"pack f32, not aligned", run_convert, GS_F32, GS_F32, 1, 1, 0, 8 * all},
        {"pack f32 as bf16", run_convert, GS_F32, GS_BF16, 0.3, 0, 0, 6 * all},
        {"pack f32 as f16", run_convert, GS_F32, GS_F16, 0.3, 0, 0, 6 * all},
        {"unpack bf16 as f32", run_convert, GS_BF16, GS_F32, 0.3, 0, 0, 6 * all},
        {"unpack f16 as f32", run_convert, GS_F16, GS_F32, 0.3, 0, 0, 6 * all},
        {"pack bf16", run_convert, GS_BF16, GS_BF16, 1, 0, 0, 4 * all},
        {"scale bf16", run_convert, GS_BF16, GS_BF16, 0.3, 0, 0, 4 * all},
        {"pack f64 as f32", run_convert, GS_F64, GS_F32, 0.3, 0, 0, 12 * all},
        {"pack f64 as f16", run_convert, GS_F64, GS_F16, 0.3, 0, 0, 10 * all},
        {"sum of 8 shards, f32", run_sum, GS_F32, GS_F32, 1, 0, 8, 4 * all + all / 2},
        {"sum of 8 shards, bf16", run_sum, GS_BF16, GS_BF16, 1, 0, 8, 2 * all + all / 4},
        {"search f32 for NaN", run_find_nonfinite, GS_F32, GS_F32, 1, 0, 0, 4 * all},
        {"search bf16 for NaN", run_find_nonfinite, GS_BF16, GS_BF16, 1, 0, 0, 2 * all},
        {"digest", run_digest, GS_F32, GS_F32, 1, 0, 0, 4 * all},
    };
    int devices = 0;

    if (cudaGetDeviceCount (&devices) || !devices) {
        puts ("skip: no GPU here");
        return 77;
    }
    must (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    must (cudaEventCreate (&begin));
    must (cudaEventCreate (&end));
    must (cudaMalloc ((void **) &src, 8 * all));
    must (cudaMalloc ((void **) &dst, 8 * all));
    must (cudaMalloc ((void **) &answer, sizeof (*answer)));
    must (cudaMemsetAsync (src, 0, 8 * all, stream));
    must (cudaMemsetAsync (answer, 0, sizeof (*answer), stream));
    puts ("| kernel | GB/s | copy, GB/s | ours / copy |");
    puts ("| --- | ---: | ---: | ---: |");
    for (size_t i = 0; i < sizeof (works) / sizeof (works[0]); i++)
        measure (&works[i]);
    must (cudaDeviceSynchronize ());
    return 0;
}
