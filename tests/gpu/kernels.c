/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels - the kernels of cuda/ give the bits that the host's functions give, for every type,
 * many shapes and any alignment. Where the result is a NaN any NaN will do.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels.h"
#include "gpu/data.h"

#define MOST_BYTES ((size_t) 64 << 20)
#define MOST_RUNS  2500

static unsigned char *host_src, *host_dst, *wanted; /* [MOST_BYTES] */
static unsigned char *device_src, *device_dst;
static size_t src_bytes; /* of the source that matter to the next check */
static struct gsi_run host_runs[MOST_RUNS], device_runs[MOST_RUNS];
static cudaStream_t stream;
static int failures, checks;

static void must (cudaError_t error, const char *what)
{
    if (!error)
        return;
    printf ("Bail out! %s: %s\n", what, cudaGetErrorString (error));
    exit (99);
}

/* In the stream of the kernels: what cudaMemcpy has from pageable memory may land after it. */
static void send (void *device, const void *host, size_t bytes)
{
    must (cudaMemcpyAsync (device, host, bytes, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
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

/* Compares [bytes] of host_dst with wanted, which are of type [dtype]. */
static bool same (gs_dtype_t dtype, size_t bytes)
{
    return data_same (dtype, host_dst, wanted, bytes);
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
    src_bytes = in;
    return out;
}

/* Both sides start from the same bytes, so that what must not be written is compared as well. */
static void put (size_t bytes)
{
    memset (wanted, 0x5a, bytes);
    must (cudaMemsetAsync (device_dst, 0x5a, bytes, stream), "cudaMemsetAsync");
    must (cudaMemcpyAsync (device_src, host_src, src_bytes, cudaMemcpyHostToDevice, stream),
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
    static const gs_dtype_t real[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_F8_E4M3, GS_F8_E5M2};
    static const gs_dtype_t other[] = {GS_I8, GS_U16, GS_I32, GS_U64};
    static const double scales[] = {1, 1.0 / 3, 0x1p-7, 0, -65504};

    data_fill_bits (host_src, MOST_BYTES);
    for (int f = 0; f < 6; f++) {
        for (int t = 0; t < 6; t++)
            for (int s = 0; s < 5; s++)
                for (size_t gap = 0; gap < 3; gap++)
                    convert_one (real[f], real[t], scales[s], 24, gap);
        convert_one (real[f], real[(f + 1) % 6], 0.1, 300, 0);
        convert_one (real[f], real[(f + 3) % 6], 0.1, MOST_RUNS, 1);
    }
    for (int t = 0; t < 4; t++) {
        convert_one (other[t], other[t], 1, 24, 0);
        convert_one (other[t], other[t], 1, 24, 3);
    }
    convert_one (GS_C64, GS_C128, 0.1, 24, 0);
    convert_one (GS_C128, GS_C64, 3, 24, 1);
}

/* No element is done twice. */
static void check_scale_in_place (size_t gap)
{
    struct gsi_conversion how = {GS_BF16, GS_BF16, 0.3};
    size_t bytes = lay_out (GS_BF16, GS_BF16, 24, gap);

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
    check (same (GS_BF16, bytes), "scale in place, gap %zu", gap);
}

static void reduce_one (struct gsi_reduction how, int sources, size_t count, size_t shift)
{
    gs_dtype_t type = data_type_of (&how, GSI_SUMS_OUT);
    size_t size = gs_dtype_size (type), from = gs_dtype_size (data_type_of (&how, GSI_SUMS_IN)),
           stride = shift ? count + shift : (count + 15) / 16 * 16;
    const void *source[32];
    double *device_scale = NULL;

    for (int s = 0; s < sources; s++)
        source[s] = host_src + (shift + (size_t) s * stride) * from;
    src_bytes = (size_t) sources * stride * from;
    put ((count + shift) * size);
    if (how.scale) {
        must (cudaMalloc ((void **) &device_scale, (size_t) sources * sizeof (double)),
              "cudaMalloc");
        send (device_scale, how.scale, (size_t) sources * sizeof (double));
    }
    gsi_host_reduce (&how, wanted + shift * size, source, sources, count);
    must (gsi_cuda_reduce (&how, device_dst + shift * size, device_src + shift * from, stride,
                           sources, count, device_scale, stream),
          "gsi_cuda_reduce");
    get ((count + shift) * size);
    cudaFree (device_scale);
    check (same (type, (count + shift) * size),
           "%s of %d %s, sums %d, %zu elements from %zu on, / %g%s", gsi_op_name (how.op),
           sources, gsi_dtype_name (how.dtype), (int) how.sums, count, shift, how.divisor,
           how.scale ? ", weighted" : "");
}

/* Every operation on one type and shape; averages also with weights. */
static void reduce_all (gs_dtype_t dtype, int sources, size_t count, size_t shift)
{
    struct gsi_reduction how = {.dtype = dtype, .divisor = 1};
    double weights[32];

    for (how.op = GS_SUM; how.op <= GS_MAX; how.op++)
        if (data_reduces (dtype, how.op))
            reduce_one (how, sources, count, shift);
    if (gsi_dtype_is_integer (dtype))
        return;
    for (int i = 0; i < 32; i++)
        weights[i] = i % 3 ? 0.37 * i : i % 2;
    how.op = GS_SUM;
    how.divisor = sources;
    reduce_one (how, sources, count, shift);
    how.divisor = 17.3;
    how.scale = weights;
    for (how.sums = GSI_SUMS_NONE; how.sums <= GSI_SUMS_IN; how.sums++)
        if (!how.sums || gsi_dtype_is_reduced (dtype))
            reduce_one (how, sources, count, shift);
}

static void check_reduce (void)
{
    static const int sources[] = {1, 2, 3, 4, 5, 16, 31};
    static const size_t counts[] = {1, 7, 8, 1000, 65543};
    static const double nothing[4];
    struct gsi_reduction empty = {.dtype = GS_F32, .op = GS_SUM, .divisor = 1, .scale = nothing};

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (int kind = 0; kind < 2; kind++) {
            if (kind)
                data_fill_bits (host_src, MOST_BYTES);
            else
                data_fill_numbers (dtype, host_src, MOST_BYTES);
            for (int s = 0; s < 7; s++)
                for (int c = 0; c < 5 - kind; c++)
                    for (size_t shift = 0; shift < 2; shift++)
                        reduce_all (dtype, sources[s], counts[c], shift);
        }
    reduce_one (empty, 4, 1000, 0);
}

static void check_refusals (void)
{
    static const struct gsi_reduction refused[] = {
        {.dtype = GS_C64, .op = GS_MIN, .divisor = 1},
        {.dtype = GS_I32, .op = GS_SUM, .divisor = 2},
        {.dtype = GS_F32, .op = GS_PROD, .divisor = 2},
    };

    for (size_t i = 0; i < sizeof (refused) / sizeof (refused[0]); i++)
        check (gsi_cuda_reduce (&refused[i], device_dst, device_src, 8, 2, 8, NULL, stream) ==
                   cudaErrorInvalidValue,
               "refusal %zu", i);
}

static uint32_t find_nonfinite (gs_dtype_t dtype, size_t number)
{
    uint32_t *result, none = GSI_ALL_FINITE;

    must (cudaMalloc ((void **) &result, sizeof (*result)), "cudaMalloc");
    send (result, &none, sizeof (none));
    send (device_src, host_src, src_bytes);
    must (gsi_cuda_find_nonfinite (dtype, device_runs, number, 0, result, stream),
          "gsi_cuda_find_nonfinite");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
    must (cudaMemcpy (&none, result, sizeof (none), cudaMemcpyDeviceToHost), "cudaMemcpy");
    cudaFree (result);
    return none;
}

/* A bad number in two runs, anywhere in them: the first is named, by host and device. */
static void check_find_nonfinite (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16,    GS_F32,    GS_F64,
                                       GS_C64, GS_F8_E4M3, GS_F8_E5M2};
    static const size_t numbers[] = {24, MOST_RUNS};

    for (int t = 0; t < 7; t++) {
        size_t size = gs_dtype_size (types[t]);
        for (int n = 0; n < 2; n++) {
            data_fill_numbers (types[t], host_src, MOST_BYTES);
            lay_out (types[t], types[t], numbers[n], (size_t) t % 2);
            check (find_nonfinite (types[t], numbers[n]) == GSI_ALL_FINITE &&
                       gsi_host_find_nonfinite (types[t], host_runs, numbers[n]) ==
                           GSI_ALL_FINITE,
                   "all finite, %s", gsi_dtype_name (types[t]));
            for (size_t at = numbers[n] - 1; at + 12 > numbers[n]; at--) {
                size_t element = host_runs[at].count ? data_random () % host_runs[at].count : 0;
                uint32_t expected;
                memset ((unsigned char *) (uintptr_t) host_runs[at].src + element * size, 0xff,
                        host_runs[at].count ? size : 0);
                expected = gsi_host_find_nonfinite (types[t], host_runs, numbers[n]);
                check (find_nonfinite (types[t], numbers[n]) == expected &&
                           (expected == at || !host_runs[at].count),
                       "first bad %s: run %zu", gsi_dtype_name (types[t]), at);
            }
        }
    }
}

/* Rounding with feedback has the host's bits; a norm its value, and the same bits each time. */
static void check_gradient (gs_dtype_t from, gs_dtype_t to, size_t count)
{
    static double sums[3];
    struct gsi_conversion how = {from, to, 1};
    size_t bytes = count * gs_dtype_size (from);
    char *memory, *rest = malloc (bytes), *sent = malloc (bytes), *got = malloc (2 * bytes);
    struct gsi_run here = {host_src, sent, count}, there;
    double *room, expected;

    must (cudaMalloc ((void **) &memory, 3 * bytes), "cudaMalloc");
    must (cudaMalloc ((void **) &room, (GSI_SQUARES_PARTS + 3) * sizeof (double)), "cudaMalloc");
    must (cudaMemsetAsync (room, 0, (GSI_SQUARES_PARTS + 3) * sizeof (double), stream),
          "cudaMemsetAsync");
    data_fill_numbers (from, host_src, bytes);
    memcpy (rest, host_src, bytes);
    send (memory, host_src, bytes);
    send (memory + 2 * bytes, rest, bytes);
    there = (struct gsi_run){memory, memory + bytes, count};
    gsi_host_quantize (&how, &here, rest);
    must (gsi_cuda_quantize (&how, &there, memory + 2 * bytes, stream), "gsi_cuda_quantize");
    for (int i = 0; i < 2; i++)
        must (gsi_cuda_squares (from, memory, count, room + 3, room + i, stream),
              "gsi_cuda_squares");
    expected = gsi_host_squares (from, host_src, count);
    must (gsi_cuda_norm_factor (room, 8, 1, 0.5 * sqrt (expected), room + 2, stream),
          "gsi_cuda_norm_factor");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
    must (cudaMemcpy (got, memory + bytes, 2 * bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    must (cudaMemcpy (sums, room, sizeof (sums), cudaMemcpyDeviceToHost), "cudaMemcpy");
    check (!memcmp (got, sent, count * gs_dtype_size (to)) && !memcmp (got + bytes, rest, bytes),
           "rounding of %zu %s with feedback", count, gsi_dtype_name (from));
    check (fabs (sums[0] - expected) <= 1e-12 * expected && sums[0] == sums[1] &&
               fabs (sums[2] - 0.5) < 1e-12,
           "the norm of %zu %s", count, gsi_dtype_name (from));
    free (rest), free (sent), free (got);
    cudaFree (memory), cudaFree (room);
}

static void check_gradients (void)
{
    for (size_t count = 1; count <= 65536; count *= 4) {
        check_gradient (GS_F32, GS_F16, count);
        check_gradient (GS_F32, GS_BF16, count + 1);
        check_gradient (GS_F64, GS_F16, count);
        check_gradient (GS_F64, GS_BF16, count + 1);
    }
}

/* The box of an array of [bytes]; the packed copy is behind it. */
static void box_one (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box,
                     size_t bytes)
{
    size_t all = bytes + gsi_box_count (box) * gs_dtype_size (dtype);

    data_fill_numbers (dtype, wanted, all);
    must (cudaMemcpyAsync (device_dst, wanted, all, cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
    must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
    gsi_host_box (way, dtype, box, wanted, wanted + bytes);
    must (gsi_cuda_box (way, dtype, box, device_dst, device_dst + bytes, stream), "gsi_cuda_box");
    get (all);
    check (same (dtype, all), "way %d of a box of %zu x %zu x %zu %s", way, box->planes,
           box->rows, box->run, gsi_dtype_name (dtype));
}

/* All faces of arrays of all sizes, with ghosts of 1 to 3 layers. */
static void check_boxes (void)
{
    static const size_t sides[] = {7, 32, 61};

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (int s = 0; s < 9; s++) {
            size_t n = sides[s / 3], layers = (size_t) s % 3 + 1;
            size_t bytes = n * n * n * gs_dtype_size (dtype);
            struct gsi_box faces[] = {{layers, n, n, n * n, n, n * n},
                                      {n, layers, n, n, n, n * n},
                                      {n, n, layers, 1, n, n * n},
                                      {1, 1, n * n * n - 5, 5, 1, 1}};
            for (int way = GSI_BOX_TAKE; way <= GSI_BOX_ADD; way++)
                for (int f = 0; f < 4; f++)
                    if (way != GSI_BOX_ADD || !gsi_dtype_is_integer (dtype))
                        box_one ((enum gsi_box_way) way, dtype, &faces[f], bytes);
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

    data_fill_bits (host_src, MOST_BYTES);
    src_bytes = MOST_BYTES;
    put (16);
    for (size_t shift = 0; shift < 10; shift += 3) {
        uint64_t digest = gsi_host_digest (host_src + shift, MOST_BYTES - 13, 0);
        check (device_digest (whole, 1, shift) == digest, "digest, shift %zu", shift);
        check (device_digest (pieces, 3, shift) == digest, "digest of pieces, shift %zu", shift);
        check (device_digest (small, 1, shift) == gsi_host_digest (host_src + shift, 5, 0),
               "digest of 5 bytes");
    }
}

/* Copies and signals between processes: none where the own one has given up. */
static void check_share (void)
{
    uint32_t *dead = (uint32_t *) (void *) host_src, *words = (uint32_t *) (void *) host_dst;
    static const size_t sizes[] = {1, 15, 16, 4099, 1000003};

    for (uint32_t gave_up = 0; gave_up < 2; gave_up++) {
        *dead = gave_up;
        for (int i = 0; i < 64; i++)
            words[i] = 7;
        must (gsi_cuda_set_flags_alive (words + 1, 16, 3, 0, dead, stream),
              "gsi_cuda_set_flags_alive");
        must (gsi_cuda_set_flags_alive (words + 2, 16, 3, 5, dead, stream),
              "gsi_cuda_set_flags_alive");
        must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
        for (int i = 0; i < 64; i++) {
            uint32_t put = i > 47 ? 7 : i % 16 == 1 ? 0 : i % 16 == 2 ? 5 : 7;
            check (words[i] == (gave_up ? 7 : put), "word %d is %u", i, words[i]);
        }
        for (size_t i = 0; i < 2 * sizeof (sizes) / sizeof (sizes[0]); i++) {
            size_t bytes = sizes[i / 2], shift = i % 2;
            memset (wanted, gave_up ? 2 : 1, bytes);
            must (cudaMemsetAsync (device_src, 1, bytes + shift, stream), "cudaMemsetAsync");
            must (cudaMemsetAsync (device_dst, 2, bytes + shift, stream), "cudaMemsetAsync");
            must (gsi_cuda_move_alive (device_dst + shift, device_src, bytes, dead, stream),
                  "gsi_cuda_move_alive");
            must (cudaMemcpyAsync (host_dst, device_dst + shift, bytes, cudaMemcpyDeviceToHost,
                                   stream),
                  "cudaMemcpyAsync");
            must (cudaStreamSynchronize (stream), "cudaStreamSynchronize");
            check (!memcmp (host_dst, wanted, bytes), "%zu bytes, %zu beside: %s", bytes, shift,
                   gave_up ? "moved by the dead" : "not moved");
        }
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
        data_fill_bits (host_src, src_bytes);
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
    check_scale_in_place (0);
    check_scale_in_place (1);
    check_reduce ();
    check_refusals ();
    check_find_nonfinite ();
    check_gradients ();
    check_boxes ();
    check_digest ();
    check_share ();
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
