/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels - the kernels of cuda/ give the bits that the host's functions give, for every type,
 * many shapes and any alignment. Where the result is a NaN any NaN will do.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/half.h"
#include "cuda/kernels.h"

#define MOST_BYTES ((size_t) 64 << 20)
#define MOST_RUNS  2500

static unsigned char *host_src, *host_dst, *wanted; /* [MOST_BYTES] */
static unsigned char *device_src, *device_dst;
static struct gsi_run host_runs[MOST_RUNS], device_runs[MOST_RUNS];
static cudaStream_t stream;
static uint64_t state = 88172645463325252;
static int failures, checks;

static void must (cudaError_t error, const char *what)
{
    if (!error)
        return;
    printf ("Bail out! %s: %s\n", what, cudaGetErrorString (error));
    exit (99);
}

__attribute__ ((format (printf, 2, 3))) static bool check (bool good, const char *format, ...)
{
    va_list ap;

    checks++;
    if (good)
        return true;
    va_start (ap, format);
    printf ("not ok - ");
    vprintf (format, ap);
    putchar ('\n');
    va_end (ap);
    failures++;
    return false;
}

/* xorshift64 (G. Marsaglia, Xorshift RNGs, 2003). */
static uint64_t next (void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Random bits: every kind of number, subnormals, infinities and NaN among them. */
static void fill_bits (void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = next ();
        memcpy ((unsigned char *) data + i, &x, bytes - i < 8 ? bytes - i : 8);
    }
}

/* Moderate numbers, so that sums have neither overflows nor NaN. */
static void fill_numbers (gs_dtype_t dtype, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double x = ((double) (next () >> 40) - 8388608.0) / 4096.0;
        switch (dtype) {
        case GS_F16: ((uint16_t *) data)[i] = gsi_f16_of_float ((float) x); break;
        case GS_BF16: ((uint16_t *) data)[i] = gsi_bf16_of_float ((float) x); break;
        case GS_F32: ((float *) data)[i] = (float) x; break;
        default: ((double *) data)[i] = x; break;
        }
    }
}

static gs_dtype_t part_of (gs_dtype_t dtype)
{
    return dtype == GS_C64 ? GS_F32 : dtype == GS_C128 ? GS_F64 : dtype;
}

static bool is_nan (gs_dtype_t part, const void *p)
{
    uint16_t h;
    uint32_t f;
    uint64_t d;

    switch (part) {
    case GS_F16: return memcpy (&h, p, 2), (h & 0x7fff) > 0x7c00;
    case GS_BF16: return memcpy (&h, p, 2), (h & 0x7fff) > 0x7f80;
    case GS_F32: return memcpy (&f, p, 4), (f & 0x7fffffff) > 0x7f800000;
    case GS_F64: return memcpy (&d, p, 8), (d & 0x7fffffffffffffff) > 0x7ff0000000000000;
    default: return false;
    }
}

/* Compares [bytes] of host_dst with wanted; where they are NaN of type [dtype] both must be. */
static bool same (gs_dtype_t dtype, size_t bytes)
{
    gs_dtype_t part = part_of (dtype);
    size_t size = gs_dtype_size (part);

    if (!memcmp (host_dst, wanted, bytes))
        return true;
    for (size_t i = 0; i + size <= bytes; i += size)
        if (memcmp (host_dst + i, wanted + i, size) &&
            !(is_nan (part, host_dst + i) && is_nan (part, wanted + i))) {
            printf ("# element %zu differs\n", i / size);
            return false;
        }
    return true;
}

/* Awkward counts: none, one, around a word, around a block, several blocks. */
static size_t count_of (size_t run)
{
    static const size_t counts[] = {5, 0, 1, 8, 4096, 17, 8192, 4095, 12293, 16384, 33, 65536};

    return counts[run % (sizeof (counts) / sizeof (counts[0]))];
}

/*
 * Lays [number] runs out with gaps of [gap] elements, which makes them unaligned if it is odd.
 * Returns the bytes of the destination.
 */
static size_t lay_out (gs_dtype_t from, gs_dtype_t to, size_t number, size_t gap)
{
    size_t in = gap * gs_dtype_size (from), out = gap * gs_dtype_size (to);

    for (size_t r = 0; r < number; r++) {
        size_t count = number > 300 ? count_of (r) % 200 : count_of (r);
        host_runs[r] = (struct gsi_run){host_src + in, wanted + out, count};
        device_runs[r] = (struct gsi_run){device_src + in, device_dst + out, count};
        in += (count + gap) * gs_dtype_size (from);
        out += (count + gap) * gs_dtype_size (to);
        if (!gap) {
            in = (in + 15) / 16 * 16;
            out = (out + 15) / 16 * 16;
        }
    }
    if (in > MOST_BYTES || out > MOST_BYTES)
        must (cudaErrorInvalidValue, "the test's own memory is too small");
    return out;
}

/* Both sides start from the same bytes, so that what must not be written is compared as well. */
static void put (size_t bytes)
{
    memset (wanted, 0x5a, bytes);
    must (cudaMemsetAsync (device_dst, 0x5a, bytes, stream), "cudaMemsetAsync");
    must (cudaMemcpyAsync (device_src, host_src, MOST_BYTES, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
}

static void get (size_t bytes)
{
    must (cudaMemcpyAsync (host_dst, device_dst, bytes, cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
}

static void convert_one (gs_dtype_t from, gs_dtype_t to, double scale, size_t number, size_t gap)
{
    struct gsi_conversion how = {from, to, scale};
    size_t bytes = lay_out (from, to, number, gap);

    put (bytes);
    gsi_host_convert (&how, host_runs, number);
    must (gsi_cuda_convert (&how, device_runs, number, stream), "gsi_cuda_convert");
    get (bytes);
    check (same (to, bytes), "convert %s to %s, scale %g, %zu runs, gap %zu",
           gsi_dtype_name (from), gsi_dtype_name (to), scale, number, gap);
}

static void check_convert (void)
{
    static const gs_dtype_t real[] = {GS_F16, GS_BF16, GS_F32, GS_F64};
    static const gs_dtype_t other[] = {GS_I8, GS_U16, GS_I32, GS_U64};
    static const double scales[] = {1, 1.0 / 3, 0x1p-7, 0, -65504};

    fill_bits (host_src, MOST_BYTES);
    for (int f = 0; f < 4; f++) {
        for (int t = 0; t < 4; t++)
            for (int s = 0; s < 5; s++)
                for (size_t gap = 0; gap < 3; gap++)
                    convert_one (real[f], real[t], scales[s], 24, gap);
        convert_one (real[f], real[(f + 1) % 4], 0.1, 300, 0);
        convert_one (real[f], real[(f + 3) % 4], 0.1, MOST_RUNS, 1);
        convert_one (other[f], other[f], 1, 24, 0);
        convert_one (other[f], other[f], 1, 24, 3);
    }
    convert_one (GS_C64, GS_C128, 0.1, 24, 0);
    convert_one (GS_C128, GS_C64, 3, 24, 1);
}

static void check_scale_in_place (void)
{
    struct gsi_conversion how = {GS_BF16, GS_BF16, 0.3};
    size_t bytes = lay_out (GS_BF16, GS_BF16, 24, 0);

    put (bytes);
    memcpy (wanted, host_src, bytes);
    for (int r = 0; r < 24; r++) {
        host_runs[r].src = host_runs[r].dst;
        device_runs[r].src = device_runs[r].dst;
    }
    must (cudaMemcpyAsync (device_dst, device_src, bytes, cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
    gsi_host_convert (&how, host_runs, 24);
    must (gsi_cuda_convert (&how, device_runs, 24, stream), "gsi_cuda_convert");
    get (bytes);
    check (same (GS_BF16, bytes), "scale in place");
}

static void sum_one (gs_dtype_t dtype, int sources, size_t count, size_t shift, double divisor,
                     const double *scale)
{
    struct gsi_reduction how = {.dtype = dtype, .op = GS_SUM, .divisor = divisor, .scale = scale};
    size_t size = gs_dtype_size (dtype), stride = count + shift;
    const void *source[32];
    double *device_scale = NULL;

    for (int s = 0; s < sources; s++)
        source[s] = host_src + (shift + (size_t) s * stride) * size;
    put ((count + shift) * size);
    if (scale) {
        must (cudaMalloc ((void **) &device_scale, (size_t) sources * sizeof (double)),
              "cudaMalloc");
        must (cudaMemcpy (device_scale, scale, (size_t) sources * sizeof (double),
                          cudaMemcpyHostToDevice),
              "cudaMemcpy");
    }
    gsi_host_reduce (&how, wanted + shift * size, source, sources, count);
    must (gsi_cuda_reduce (&how, device_dst + shift * size, device_src + shift * size, stride,
                           sources, count, device_scale, stream),
          "gsi_cuda_reduce");
    get ((count + shift) * size);
    cudaFree (device_scale);
    check (same (dtype, (count + shift) * size), "sum of %d %s, %zu elements from %zu on, / %g%s",
           sources, gsi_dtype_name (dtype), count, shift, divisor, scale ? ", weighted" : "");
}

static void check_sum (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_C64, GS_C128};
    static const int sources[] = {1, 2, 3, 4, 5, 16, 31};
    static const size_t counts[] = {1, 7, 8, 1000, 65543};
    static double weights[32];

    for (int i = 0; i < 32; i++)
        weights[i] = i % 3 ? 0.37 * i : i % 2;
    for (int t = 0; t < 6; t++) {
        fill_numbers (part_of (types[t]), host_src,
                      MOST_BYTES / gs_dtype_size (part_of (types[t])));
        for (int s = 0; s < 7; s++)
            for (int c = 0; c < 5; c++)
                for (size_t shift = 0; shift < 2; shift++) {
                    sum_one (types[t], sources[s], counts[c], shift, sources[s], NULL);
                    sum_one (types[t], sources[s], counts[c], shift, 17.3, weights);
                }
    }
    memset (weights, 0, sizeof (weights));
    sum_one (GS_F32, 4, 1000, 0, 1, weights);
}

static uint32_t first_bad (gs_dtype_t dtype, size_t number)
{
    uint32_t *result, none = GSI_ALL_FINITE;

    must (cudaMalloc ((void **) &result, sizeof (*result)), "cudaMalloc");
    must (cudaMemcpy (result, &none, sizeof (none), cudaMemcpyHostToDevice), "cudaMemcpy");
    must (cudaMemcpy (device_src, host_src, MOST_BYTES, cudaMemcpyHostToDevice), "cudaMemcpy");
    must (gsi_cuda_first_bad (dtype, device_runs, number, result, stream), "gsi_cuda_first_bad");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
    must (cudaMemcpy (&none, result, sizeof (none), cudaMemcpyDeviceToHost), "cudaMemcpy");
    cudaFree (result);
    return none;
}

/* A bad number in two runs, anywhere in them: the first is named, by host and device. */
static void check_first_bad (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_C64};
    static const size_t numbers[] = {24, MOST_RUNS};

    for (int t = 0; t < 5; t++) {
        size_t size = gs_dtype_size (types[t]);
        for (int n = 0; n < 2; n++) {
            fill_numbers (part_of (types[t]), host_src,
                          MOST_BYTES / gs_dtype_size (part_of (types[t])));
            lay_out (types[t], types[t], numbers[n], (size_t) t % 2);
            check (first_bad (types[t], numbers[n]) == GSI_ALL_FINITE &&
                       gsi_host_first_bad (types[t], host_runs, numbers[n]) == GSI_ALL_FINITE,
                   "all finite, %s", gsi_dtype_name (types[t]));
            for (size_t at = numbers[n] - 1; at + 12 > numbers[n]; at--) {
                size_t element = host_runs[at].count ? next () % host_runs[at].count : 0;
                uint32_t expected;
                memset ((unsigned char *) (uintptr_t) host_runs[at].src + element * size, 0xff,
                        host_runs[at].count ? size : 0);
                expected = gsi_host_first_bad (types[t], host_runs, numbers[n]);
                check (first_bad (types[t], numbers[n]) == expected &&
                           (expected == at || !host_runs[at].count),
                       "first bad %s: run %zu", gsi_dtype_name (types[t]), at);
            }
        }
    }
}

static uint64_t device_digest (const size_t *cuts, int pieces, size_t shift)
{
    uint64_t *sum, value;

    must (cudaMalloc ((void **) &sum, sizeof (*sum)), "cudaMalloc");
    must (cudaMemsetAsync (sum, 0, sizeof (*sum), stream), "cudaMemsetAsync");
    for (int p = 0; p < pieces; p++)
        must (gsi_cuda_digest (device_src + shift + cuts[p], cuts[p + 1] - cuts[p], cuts[p] / 8,
                               sum, stream),
              "gsi_cuda_digest");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
    must (cudaMemcpy (&value, sum, sizeof (value), cudaMemcpyDeviceToHost), "cudaMemcpy");
    cudaFree (sum);
    return value;
}

static void check_digest (void)
{
    static const size_t whole[] = {0, MOST_BYTES - 13}, pieces[] = {0, 8, 4096, MOST_BYTES - 13};
    static const size_t small[] = {0, 5};

    fill_bits (host_src, MOST_BYTES);
    put (16);
    for (size_t shift = 0; shift < 10; shift += 3) {
        uint64_t digest = gsi_host_digest (host_src + shift, MOST_BYTES - 13, 0);
        check (device_digest (whole, 1, shift) == digest, "digest, shift %zu", shift);
        check (device_digest (pieces, 3, shift) == digest, "digest of pieces, shift %zu", shift);
        check (device_digest (small, 1, shift) == gsi_host_digest (host_src + shift, 5, 0),
               "digest of 5 bytes");
    }
}

/* The table of runs is part of the captured graph: the list may be gone when it is replayed. */
static void check_capture (void)
{
    struct gsi_conversion how = {GS_F32, GS_BF16, 0.25};
    size_t bytes = lay_out (GS_F32, GS_BF16, 300, 0);
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    must (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal), "capture");
    must (gsi_cuda_convert (&how, device_runs, 300, stream), "gsi_cuda_convert");
    must (cudaStreamEndCapture (stream, &graph), "cudaStreamEndCapture");
    must (cudaGraphInstantiate (&exec, graph, 0), "cudaGraphInstantiate");
    memset (device_runs, 0xff, sizeof (device_runs));
    for (int replay = 0; replay < 2; replay++) {
        fill_bits (host_src, MOST_BYTES);
        put (bytes);
        gsi_host_convert (&how, host_runs, 300);
        must (cudaGraphLaunch (exec, stream), "cudaGraphLaunch");
        get (bytes);
        check (same (GS_BF16, bytes), "replay %d of a captured convert", replay);
    }
    must (cudaGraphExecDestroy (exec), "cudaGraphExecDestroy");
    must (cudaGraphDestroy (graph), "cudaGraphDestroy");
}

int main (void)
{
    int devices = 0;

    if (cudaGetDeviceCount (&devices) || !devices) {
        puts ("skip: no GPU here");
        return 77;
    }
    must (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking),
          "cudaStreamCreateWithFlags");
    must (cudaMallocHost ((void **) &host_src, MOST_BYTES), "cudaMallocHost");
    must (cudaMallocHost ((void **) &host_dst, MOST_BYTES), "cudaMallocHost");
    must (cudaMallocHost ((void **) &wanted, MOST_BYTES), "cudaMallocHost");
    must (cudaMalloc ((void **) &device_src, MOST_BYTES), "cudaMalloc");
    must (cudaMalloc ((void **) &device_dst, MOST_BYTES), "cudaMalloc");
    check_convert ();
    check_scale_in_place ();
    check_sum ();
    check_first_bad ();
    check_digest ();
    check_capture ();
    must (cudaFree (device_src), "cudaFree");
    must (cudaFree (device_dst), "cudaFree");
    cudaFreeHost (host_src);
    cudaFreeHost (host_dst);
    cudaFreeHost (wanted);
    must (cudaStreamDestroy (stream), "cudaStreamDestroy");
    printf ("%d checks, %d failed\n", checks, failures);
    return failures > 0;
}
