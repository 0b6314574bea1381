/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twins_test - the twins of libsimtwins.so give the bits that the host's functions give, and no
 * kernel of the library is without a twin or without a check here.
 *
 * This program is the CUDA runtime itself, as far as registration and launches go. "Device"
 * memory is mapped twice: at the address that kernels are given nothing can be read, and a twin
 * gets the other one only for what was declared to be there.
 */
#include <dlfcn.h>
#include <math.h>
#include <sys/mman.h>

#include "cuda/kernels.h"
#include "gpu/data.h"
#include "simgpu/engine.h"
#include "simgpu/twins.h"
#include "unit/unit.h"

#define MOST_KERNELS 256
#define MOST_BYTES                                                              \
    ((size_t) 4 << 20) /* of one array, and of each half of the device's memory \
                        */
#define MOST_RUNS 1100 /* more than a table takes */
#define SHIFT     3    /* elements by which arrays are not aligned */

/* Registered kernels, in the order of the program's start. */
static struct {
    const void *host;
    const char *name;
    const struct sim_twin *twin;
    int launches;
} kernels[MOST_KERNELS];
static int number_of_kernels;

static unsigned char *user, *engine; /* [2 MOST_BYTES], the same memory */
static unsigned char *wanted;        /* [MOST_BYTES] */
static struct {
    size_t begin, end;
} live[2 * MOST_RUNS + 2]; /* offsets of what kernels may use */
static int lives, refused;
static struct gsi_run here[MOST_RUNS], there[MOST_RUNS]; /* for hosts and for kernels */

/* The runtime: names and parameters are those of CUDA's crt/host_runtime.h, which is for C++. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static dim3 next_grid, next_block;

void **__cudaRegisterFatBinary (void *binary)
{
    static void *handle;

    (void) binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd (void **handle)
{
    (void) handle;
}

void __cudaUnregisterFatBinary (void **handle)
{
    (void) handle;
}

void __cudaRegisterFunction (void **handle, const char *host, char *device, const char *name,
                             int limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void) handle, (void) device, (void) limit;
    (void) tid, (void) bid, (void) block, (void) grid, (void) warp;
    kernels[number_of_kernels].host = host;
    kernels[number_of_kernels].name = name;
    if (++number_of_kernels == MOST_KERNELS)
        abort ();
}

unsigned __cudaPushCallConfiguration (dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    (void) shared, (void) stream;
    next_grid = grid;
    next_block = block;
    return 0;
}

cudaError_t __cudaPopCallConfiguration (dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = next_grid;
    *block = next_block;
    *shared = 0;
    *(cudaStream_t *) stream = NULL;
    return cudaSuccess;
}

cudaError_t cudaGetLastError (void)
{
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel (const void *kernel, dim3 grid, dim3 block, void **arguments,
                              size_t shared, cudaStream_t stream)
{
    int k = 0;

    (void) shared, (void) stream;
    while (kernels[k].host != kernel)
        k++;
    unit_check (kernels[k].twin, "%s has no twin", kernels[k].name);
    unit_check (grid.y * grid.z * block.y * block.z == 1, "%s has more than one dimension",
                kernels[k].name);
    kernels[k].launches++;
    kernels[k].twin->run (grid.x, block.x, arguments);
    return cudaSuccess;
}

#if CUDART_VERSION >= 12000 /* launches go by a handle */
cudaError_t __cudaGetKernel (cudaKernel_t *kernel, const void *host)
{
    memcpy (kernel, &host, sizeof (host));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                                size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel ((const void *) kernel, grid, block, arguments, shared, stream);
}
#endif

void *sim_alias (const void *address, size_t bytes, const char *who)
{
    size_t begin = (size_t) ((const unsigned char *) address - user);

    unit_check (who && *who, "an access by nobody");
    for (int i = 0; i < lives; i++)
        if (begin >= live[i].begin && begin + bytes <= live[i].end)
            return engine + begin;
    refused++;
    return NULL;
}

/* The checks. Sources are in the first half of the device's memory, results in the second. */

static void allow (size_t begin, size_t bytes)
{
    live[lives].begin = begin;
    live[lives++].end = begin + bytes;
}

static void start (size_t result_bytes)
{
    lives = refused = 0;
    memset (wanted, 0x5a, result_bytes);
    memset (engine + MOST_BYTES, 0x5a, result_bytes);
}

__attribute__ ((format (printf, 3, 4))) static void compare (gs_dtype_t dtype, size_t bytes,
                                                             const char *format, ...)
{
    char text[200];
    va_list ap;

    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    unit_check (!refused, "%s, %s: uses what is not there", gsi_dtype_name (dtype), text);
    unit_check (data_same (dtype, engine + MOST_BYTES, wanted, bytes), "%s, %s",
                gsi_dtype_name (dtype), text);
}

/* Counts around words and blocks, the greatest of which is a block of bytes. */
static size_t count_of (size_t run)
{
    static const size_t counts[] = {5, 0, 1, 8, 4096, 17, 2051, 16384, 33, 1024};

    return run < 10 ? counts[run] : run % 50;
}

/* Lays [number] runs out with gaps of [gap] elements; returns the bytes of the results. */
static size_t lay_out (gs_dtype_t from, gs_dtype_t to, size_t number, size_t gap)
{
    size_t in = gap * gs_dtype_size (from), out = gap * gs_dtype_size (to);

    lives = 0;
    for (size_t r = 0; r < number; r++) {
        size_t count = count_of (r);
        here[r] = (struct gsi_run){engine + in, wanted + out, count};
        there[r] = (struct gsi_run){user + in, user + MOST_BYTES + out, count};
        allow (in, count * gs_dtype_size (from));
        allow (MOST_BYTES + out, count * gs_dtype_size (to));
        in += (count + gap) * gs_dtype_size (from);
        out += (count + gap) * gs_dtype_size (to);
        if (!gap) {
            in = (in + 15) / 16 * 16;
            out = (out + 15) / 16 * 16;
        }
    }
    unit_check (in <= MOST_BYTES && out <= MOST_BYTES, "too small");
    return out;
}

static void convert_one (gs_dtype_t from, gs_dtype_t to, double scale)
{
    static const size_t numbers[] = {10, MOST_RUNS};
    struct gsi_conversion how = {from, to, scale};

    for (int n = 0; n < 2; n++)
        for (size_t gap = 0; gap <= SHIFT; gap += SHIFT) {
            size_t bytes;
            start (MOST_BYTES);
            bytes = lay_out (from, to, numbers[n], gap);
            gsi_host_convert (&how, here, numbers[n]);
            ck_assert (!gsi_cuda_convert (&how, there, numbers[n], NULL));
            compare (to, bytes, "converted from %s, scale %g, gap %zu", gsi_dtype_name (from),
                     scale, gap);
        }
}

/* In place: no element is done twice. */
static void scale_one (size_t gap)
{
    struct gsi_conversion how = {GS_BF16, GS_BF16, 0.3};
    size_t bytes;

    start (MOST_BYTES);
    bytes = lay_out (GS_BF16, GS_BF16, 10, gap);
    memcpy (wanted, engine, bytes);
    memcpy (engine + MOST_BYTES, engine, bytes);
    for (int r = 0; r < 10; r++) {
        here[r].src = here[r].dst;
        there[r].src = there[r].dst;
    }
    gsi_host_convert (&how, here, 10);
    ck_assert (!gsi_cuda_convert (&how, there, 10, NULL));
    compare (GS_BF16, bytes, "scaled in place, gap %zu", gap);
}

static void check_convert (void)
{
    static const gs_dtype_t real[] = {GS_F16, GS_BF16, GS_F32, GS_F64, GS_F8_E4M3, GS_F8_E5M2};
    static const gs_dtype_t other[] = {GS_I8, GS_U16, GS_I32, GS_U64};

    data_fill_bits (engine, MOST_BYTES);
    for (int f = 0; f < 6; f++)
        for (int t = 0; t < 6; t++) {
            convert_one (real[f], real[t], 1);
            convert_one (real[f], real[t], 1.0 / 3);
        }
    for (int t = 0; t < 4; t++)
        convert_one (other[t], other[t], 1);
    convert_one (GS_C64, GS_C128, 0.1);
    convert_one (GS_C128, GS_C64, 3);
    scale_one (0);
    scale_one (SHIFT);
}

static void reduce_one (struct gsi_reduction how, int sources, size_t count, size_t shift)
{
    gs_dtype_t type = data_type_of (&how, GSI_SUMS_OUT);
    size_t size = gs_dtype_size (type), from = gs_dtype_size (data_type_of (&how, GSI_SUMS_IN)),
           stride = shift ? count + shift : (count + 15) / 16 * 16;
    size_t scale_at = MOST_BYTES - 1024;
    const void *source[8];

    start ((count + shift) * size);
    for (int s = 0; s < sources; s++)
        source[s] = engine + (shift + (size_t) s * stride) * from;
    allow (shift * from, ((size_t) (sources - 1) * stride + count) * from);
    allow (MOST_BYTES + shift * size, count * size);
    if (how.scale) {
        memcpy (engine + scale_at, how.scale, (size_t) sources * sizeof (double));
        allow (scale_at, (size_t) sources * sizeof (double));
    }
    gsi_host_reduce (&how, wanted + shift * size, source, sources, count);
    ck_assert (!gsi_cuda_reduce (&how, user + MOST_BYTES + shift * size, user + shift * from,
                                 stride, sources, count,
                                 how.scale ? (const double *) (user + scale_at) : NULL, NULL));
    compare (type, (count + shift) * size, "%s of %d, sums %d, %zu elements from %zu on, / %g%s",
             gsi_op_name (how.op), sources, (int) how.sums, count, shift, how.divisor,
             how.scale ? ", weighted" : "");
}

static void reduce_all (gs_dtype_t dtype, size_t count, size_t shift)
{
    static const double weights[] = {0.3, 0, 1, 1.7, 2, 0.1, 1};

    for (int sources = 1; sources <= 7; sources++) {
        struct gsi_reduction how = {.dtype = dtype, .divisor = 1};
        for (how.op = GS_SUM; how.op <= GS_MAX; how.op++)
            if (data_reduces (dtype, how.op))
                reduce_one (how, sources, count, shift);
        if (gsi_dtype_is_integer (dtype))
            continue;
        how.op = GS_SUM;
        how.divisor = sources;
        reduce_one (how, sources, count, shift);
        how.scale = weights;
        how.divisor = 6.1;
        for (how.sums = GSI_SUMS_NONE; how.sums <= GSI_SUMS_IN; how.sums++)
            if (!how.sums || gsi_dtype_is_reduced (dtype))
                reduce_one (how, sources, count, shift);
    }
}

static void check_reduce (void)
{
    static const size_t counts[] = {1, 16, 37, 4099};

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_F8_E5M2; dtype++)
        for (int kind = 0; kind < 2; kind++) {
            if (kind)
                data_fill_bits (engine, MOST_BYTES);
            else
                data_fill_numbers (dtype, engine, MOST_BYTES);
            for (int c = 0; c < 4; c++)
                for (size_t shift = 0; shift <= SHIFT; shift += SHIFT)
                    reduce_all (dtype, counts[c], shift);
        }
}

static void search_one (gs_dtype_t dtype, size_t number, size_t gap)
{
    uint32_t *first = (uint32_t *) (engine + MOST_BYTES), expected;

    data_fill_numbers (dtype, engine, MOST_BYTES);
    for (int bad = 0; bad < 3; bad++) {
        size_t run = bad ? number - (size_t) bad : 0, count = bad ? count_of (run) : 0;
        start (sizeof (*first));
        lay_out (dtype, dtype, number, gap);
        allow (MOST_BYTES, sizeof (*first));
        if (count)
            memset (engine + ((const unsigned char *) here[run].src - engine) +
                        (count - 1) * gs_dtype_size (dtype),
                    0xff, gs_dtype_size (dtype));
        *first = GSI_ALL_FINITE;
        expected = gsi_host_find_nonfinite (dtype, here, number);
        unit_check (expected == (count ? run : GSI_ALL_FINITE), "run %zu is not found", run);
        ck_assert (!gsi_cuda_find_nonfinite (dtype, there, number, 0,
                                             (uint32_t *) (user + MOST_BYTES), NULL));
        unit_check (!refused && *first == expected, "%s, %zu runs: %u, not %u",
                    gsi_dtype_name (dtype), number, *first, expected);
    }
}

static void check_find_nonfinite (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32,     GS_F64,
                                       GS_C64, GS_C128, GS_F8_E4M3, GS_F8_E5M2};

    for (int t = 0; t < 8; t++)
        for (size_t gap = 0; gap <= SHIFT; gap += SHIFT) {
            search_one (types[t], 10, gap);
            search_one (types[t], MOST_RUNS, gap);
        }
}

/* Rounding has the host's bits. */
static void check_quantize (gs_dtype_t from, gs_dtype_t to, size_t count)
{
    size_t bytes = count * gs_dtype_size (from), at[] = {0, 1 << 18, 2 << 18};
    struct gsi_conversion how = {from, to, 1};
    struct gsi_run inside = {engine, wanted, count}, outside = {user, user + at[1], count};

    data_fill_numbers (from, engine, bytes);
    data_fill_numbers (from, engine + at[2], bytes);
    start (8);
    for (int i = 0; i < 3; i++)
        allow (at[i], bytes);
    memcpy (wanted + at[2], engine + at[2], bytes);
    gsi_host_quantize (&how, &inside, wanted + at[2]);
    ck_assert (!gsi_cuda_quantize (&how, &outside, user + at[2], NULL));
    unit_check (!refused && !memcmp (engine + at[1], wanted, count * gs_dtype_size (to)) &&
                    !memcmp (engine + at[2], wanted + at[2], bytes),
                "rounding of %zu %s", count, gsi_dtype_name (from));
}

/* A norm has the host's value, and leads to the right factor. */
static void check_squares (gs_dtype_t dtype, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype), room = 8 * (GSI_SQUARES_PARTS + 2);
    double *sum = (double *) (engine + MOST_BYTES), *sum_there = (double *) (user + MOST_BYTES);
    double expected;

    data_fill_numbers (dtype, engine, bytes);
    start (room);
    allow (0, bytes);
    allow (MOST_BYTES, room);
    expected = gsi_host_squares (dtype, engine, count);
    sum[0] = 1;
    ck_assert (!gsi_cuda_squares (dtype, user, count, sum_there + 2, sum_there, NULL));
    unit_check (!refused && fabs (sum[0] - 1 - expected) <= 1e-12 * (1 + expected),
                "squares of %zu %s: %g, not %g", count, gsi_dtype_name (dtype), sum[0] - 1,
                expected);
    ck_assert (!gsi_cuda_norm_factor (sum_there, 8, 1, 0.5 * sqrt (sum[0]), sum_there + 1, NULL));
    unit_check (!refused && fabs (sum[1] - 0.5) < 1e-15, "a factor of %g", sum[1]);
}

static void check_gradients (void)
{
    static const gs_dtype_t types[] = {GS_F16, GS_BF16, GS_F32,     GS_F64,
                                       GS_C64, GS_C128, GS_F8_E4M3, GS_F8_E5M2};

    for (size_t count = 1; count <= 16384; count *= 4) {
        check_quantize (GS_F32, GS_F16, count);
        check_quantize (GS_F32, GS_BF16, count + 1);
        check_quantize (GS_F64, GS_F16, count + 2);
        check_quantize (GS_F64, GS_BF16, count);
        for (int t = 6; t < 8; t++) {
            check_quantize (GS_F32, types[t], count);
            check_quantize (GS_F64, types[t], count + 1);
        }
        for (int t = 0; t < 8; t++)
            check_squares (types[t], count + (size_t) t);
    }
}

/* A box lies [begin] elements from the start of the array, which is at 0; packed at MOST_BYTES.
 */
static void box_one (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box)
{
    size_t size = gs_dtype_size (dtype), packed = gsi_box_count (box) * size;
    size_t array =
        (box->begin + (box->planes - 1) * box->plane + (box->rows - 1) * box->row + box->run) *
        size;

    data_fill_numbers (dtype, engine, array);
    start (packed);
    data_fill_numbers (dtype, engine + MOST_BYTES, packed);
    allow (box->begin * size, array - box->begin * size);
    allow (MOST_BYTES, packed);
    memcpy (wanted, engine, array);
    memcpy (wanted + array, engine + MOST_BYTES, packed);
    gsi_host_box (way, dtype, box, wanted, wanted + array);
    ck_assert (!gsi_cuda_box (way, dtype, box, user, user + MOST_BYTES, NULL));
    unit_check (!refused && data_same (dtype, engine, wanted, array) &&
                    data_same (dtype, engine + MOST_BYTES, wanted + array, packed),
                "way %d of a box of %zu x %zu x %zu %s", way, box->planes, box->rows, box->run,
                gsi_dtype_name (dtype));
}

static void check_boxes (void)
{
    static const struct gsi_box boxes[] = {{1, 1, 1, 0, 1, 1},      {1, 1, 9000, 5, 1, 1},
                                           {3, 4, 2, 7, 13, 91},    {2, 5, 600, 16, 1024, 8192},
                                           {1, 300, 8, 0, 8, 2400}, {40, 1, 64, 32, 1, 128},
                                           {7, 3, 33, 11, 40, 203}, {2, 2500, 1, 999, 10, 25000}};

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_F8_E5M2; dtype++)
        for (size_t b = 0; b < sizeof (boxes) / sizeof (boxes[0]); b++)
            for (int way = GSI_BOX_TAKE; way <= GSI_BOX_ADD; way++)
                if (way != GSI_BOX_ADD || !gsi_dtype_is_integer (dtype))
                    box_one ((enum gsi_box_way) way, dtype, &boxes[b]);
    ck_assert (gsi_cuda_box (GSI_BOX_ADD, GS_I32, &boxes[0], user, user, NULL));
    start (1024);
    ck_assert (!gsi_cuda_box (GSI_BOX_TAKE, GS_F32, &boxes[2], user, user + MOST_BYTES, NULL));
    ck_assert_int_eq (refused, 1);
}

static void check_digest (void)
{
    static const size_t bytes[] = {0, 1, 7, 8, 4097, (MOST_BYTES - 64) & ~(size_t) 7};
    uint64_t *sum = (uint64_t *) (engine + MOST_BYTES);

    data_fill_bits (engine, MOST_BYTES);
    for (int b = 0; b < 6; b++)
        for (size_t shift = 0; shift < 9; shift++) {
            start (sizeof (*sum));
            allow (shift, bytes[b]);
            allow (MOST_BYTES, sizeof (*sum));
            *sum = 5;
            ck_assert (!gsi_cuda_digest (user + shift, bytes[b], 77,
                                         (uint64_t *) (user + MOST_BYTES), NULL));
            unit_check (!refused && *sum == 5 + gsi_host_digest (engine + shift, bytes[b], 77),
                        "digest of %zu bytes from %zu on", bytes[b], shift);
        }
}

static void load (void)
{
    const struct sim_twin *(*find) (const char *);
    const char *build = getenv ("top_builddir");
    char path[4096];
    void *library;
    int file = memfd_create ("twins_test", 0);

    snprintf (path, sizeof (path), "%s/tests/simgpu/lib/libsimtwins.so", build ? build : ".");
    library = dlopen (path, RTLD_LAZY | RTLD_LOCAL);
    ck_assert_msg (library != NULL, "%s", dlerror ());
    *(void **) &find = dlsym (library, "sim_twin_find");
    ck_assert_msg (find != NULL, "%s", dlerror ());
    for (int k = 0; k < number_of_kernels; k++)
        kernels[k].twin = find (kernels[k].name);
    ck_assert (!find ("") && !find ("_Z6digest"));
    ck_assert (file >= 0 && !ftruncate (file, 2 * MOST_BYTES));
    user = mmap (NULL, 2 * MOST_BYTES, PROT_NONE, MAP_SHARED, file, 0);
    engine = mmap (NULL, 2 * MOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    wanted = calloc (1, MOST_BYTES);
    ck_assert (user != MAP_FAILED && engine != MAP_FAILED && wanted);
    close (file);
}

START_TEST (every_kernel_has_a_twin)
{
    load ();
    ck_assert_int_gt (number_of_kernels, 0);
    for (int k = 0; k < number_of_kernels; k++)
        unit_check (kernels[k].twin && !strcmp (kernels[k].twin->name, kernels[k].name) &&
                        kernels[k].twin->parameters > 0,
                    "%s has no twin: add it to the lists of tests/simgpu/twins.cpp",
                    kernels[k].name);
}
END_TEST

START_TEST (twins_give_the_bits_of_hosts)
{
    load ();
    check_convert ();
    check_reduce ();
    check_find_nonfinite ();
    check_gradients ();
    check_boxes ();
    check_digest ();
    for (int k = 0; k < number_of_kernels; k++)
        unit_check (kernels[k].launches, "nothing here launches %s", kernels[k].name);
}
END_TEST

/* A twin whose arguments point nowhere does nothing; sim_alias has reported it. */
START_TEST (what_is_not_there_is_not_used)
{
    struct gsi_reduction how = {.dtype = GS_F32, .op = GS_SUM, .divisor = 1};
    struct gsi_conversion copy = {GS_F32, GS_F32, 1};
    struct gsi_run run;

    load ();
    run = (struct gsi_run){user, user + MOST_BYTES, 4};
    for (int missing = 0; missing < 2; missing++) {
        start (1024);
        allow (missing ? 0 : MOST_BYTES, 2 * 16);
        ck_assert (!gsi_cuda_reduce (&how, user + MOST_BYTES, user, 4, 2, 4, NULL, NULL));
        ck_assert_int_eq (refused, 1);
        ck_assert (!gsi_cuda_convert (&copy, &run, 1, NULL));
        ck_assert_int_eq (refused, 2);
        ck_assert (!memcmp (engine + MOST_BYTES, wanted, 1024));
    }
    start (1024); /* one byte less than is read */
    allow (0, 2 * 16 - 1);
    allow (MOST_BYTES, 16);
    ck_assert (!gsi_cuda_reduce (&how, user + MOST_BYTES, user, 4, 2, 4, NULL, NULL));
    ck_assert_int_eq (refused, 1);
    ck_assert (!memcmp (engine + MOST_BYTES, wanted, 1024));
}
END_TEST

UNIT_SUITE ("twins", 60, every_kernel_has_a_twin, twins_give_the_bits_of_hosts,
            what_is_not_there_is_not_used)
