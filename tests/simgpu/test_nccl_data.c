/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl_data - every collective, type and operator against the same sum computed here,
 * element by element and bit by bit.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/half.h"

#include "test_nccl.h"

static const struct {
    ncclDataType_t type;
    size_t bytes;
    bool real;
} types[] = {
    {ncclInt8, 1, false},   {ncclUint8, 1, false},   {ncclInt32, 4, false},
    {ncclUint32, 4, false}, {ncclInt64, 8, false},   {ncclUint64, 8, false},
    {ncclFloat16, 2, true}, {ncclBfloat16, 2, true}, {ncclFloat32, 4, true},
    {ncclFloat64, 8, true},
};
#define TYPES (sizeof (types) / sizeof (types[0]))

static const size_t counts[] = {1, 7, 1000, 70001};

/* One number in whatever type, as its bits. */
typedef uint64_t bits_t;

static double real_of (int t, bits_t bits)
{
    double d;
    float f;
    uint32_t word = (uint32_t) bits;

    switch (types[t].type) {
    case ncclFloat16: return gsi_float_of_f16 ((uint16_t) bits);
    case ncclBfloat16: return gsi_float_of_bf16 ((uint16_t) bits);
    case ncclFloat32: memcpy (&f, &word, 4); return f;
    default: memcpy (&d, &bits, 8); return d;
    }
}

/* Rounded once, to the type. */
static bits_t bits_of (int t, double d)
{
    bits_t bits = 0;
    float f = (float) d;

    switch (types[t].type) {
    case ncclFloat16: return gsi_f16_of_double (d);
    case ncclBfloat16: return gsi_bf16_of_double (d);
    case ncclFloat32: memcpy (&bits, &f, 4); return bits;
    default: memcpy (&bits, &d, 8); return bits;
    }
}

static int64_t signed_of (int t, bits_t bits)
{
    switch (types[t].type) {
    case ncclInt8: return (int8_t) bits;
    case ncclInt32: return (int32_t) bits;
    default: return (int64_t) bits;
    }
}

static bits_t narrowed (int t, bits_t bits)
{
    return types[t].bytes == 8 ? bits : bits & ((UINT64_C (1) << (8 * types[t].bytes)) - 1);
}

static bool is_signed (int t)
{
    return types[t].type == ncclInt8 || types[t].type == ncclInt32 || types[t].type == ncclInt64;
}

/* What [who] contributes at [i]: for real types numbers that do not add up exactly. */
static bits_t value (int t, int who, size_t i)
{
    uint64_t mixed =
        (i * 2654435761u + (uint64_t) who * 40503u + 12345u) * UINT64_C (0x9e3779b97f4a7c15);

    mixed ^= mixed >> 29;
    if (types[t].real)
        return bits_of (t, ((double) (mixed % 20011) - 10000) / 7919);
    return narrowed (t, mixed);
}

/* double sums and products of two floats or shorter types are exact enough to be rounded once. */
static bits_t combine (int t, ncclRedOp_t op, bits_t a, bits_t b)
{
    double x = real_of (t, a), y = real_of (t, b);
    bool less = is_signed (t) ? signed_of (t, a) < signed_of (t, b) : a < b;

    if (types[t].real)
        return bits_of (t, op == ncclProd  ? x * y
                           : op == ncclMax ? fmax (x, y)
                           : op == ncclMin ? fmin (x, y)
                                           : x + y);
    if (op == ncclMax || op == ncclMin)
        return less == (op == ncclMax) ? b : a;
    return narrowed (t, op == ncclProd ? a * b : a + b);
}

static bits_t scaled (int t, bits_t bits, bits_t scalar)
{
    if (types[t].real)
        return bits_of (t, real_of (t, bits) * real_of (t, scalar));
    return narrowed (t, bits * scalar);
}

/* Around the ring, from the rank behind [last] to [last]. */
static bits_t reference (int t, ncclRedOp_t op, int last, size_t i, const bits_t *scalar)
{
    bits_t sum = 0,
           factor = bits_of (t, types[t].bytes == 8 ? 1.0 / ranks : (float) (1.0 / ranks));

    for (int k = 1; k <= ranks; k++) {
        int who = (last + k) % ranks;
        bits_t mine = value (t, who, i);

        if (op == ncclAvg && types[t].real)
            mine = scaled (t, mine, factor);
        if (scalar)
            mine = scaled (t, mine, scalar[who]);
        sum = k == 1 ? mine : combine (t, scalar ? ncclSum : op, sum, mine);
    }
    if (op != ncclAvg || types[t].real || scalar)
        return sum;
    if (is_signed (t))
        return narrowed (t, (bits_t) (signed_of (t, sum) / ranks));
    return sum / (bits_t) ranks;
}

static void fill (int t, void *data, size_t count, size_t from)
{
    for (size_t i = 0; i < count; i++) {
        bits_t bits = value (t, rank, from + i);

        memcpy ((char *) data + i * types[t].bytes, &bits, types[t].bytes);
    }
}

/*
 * The real one adds along rings and trees of its choice, and may round a product and a sum at
 * once: each addition errs by half an ulp of what it gives.
 */
static bool is_close (int t, bits_t bits, bits_t expected, size_t i, const bits_t *scalar)
{
    double eps = types[t].type == ncclFloat16    ? 0x1p-10
                 : types[t].type == ncclBfloat16 ? 0x1p-7
                 : types[t].type == ncclFloat32  ? 0x1p-23
                                                 : 0x1p-52;
    double sum = fabs (real_of (t, expected));

    for (int k = 0; k < ranks; k++)
        sum += fabs (real_of (t, value (t, k, i)) * (scalar ? real_of (t, scalar[k]) : 1));
    return fabs (real_of (t, bits) - real_of (t, expected)) <= ranks * eps * sum;
}

static bits_t bits_at (int t, const void *data, size_t i)
{
    bits_t bits = 0;

    memcpy (&bits, (const char *) data + i * types[t].bytes, types[t].bytes);
    return bits;
}

static void compare (const char *what, int t, int op, const void *data, size_t i, bits_t expected)
{
    bits_t bits = bits_at (t, data, i);

    if (bits != expected)
        FAIL ("%s, type %d, operator %d, element %zu: %#llx, not %#llx", what, types[t].type, op,
              i, (unsigned long long) bits, (unsigned long long) expected);
}

/* The reduction of [element] of all ranks, which lies at [i]. */
static void compare_sum (const char *what, int t, int op, const void *data, size_t i,
                         bits_t expected, size_t element, const bits_t *scalar)
{
    if (is_simulated () || !types[t].real ||
        !is_close (t, bits_at (t, data, i), expected, element, scalar))
        compare (what, t, op, data, i, expected);
}

struct work {
    ncclComm_t comm;
    cudaStream_t stream;
    char *host, *from, *to;
};

static struct work begin (void)
{
    size_t bytes = (size_t) ranks * 70001 * 8;
    struct work work = {make_comm (true), make_stream (), malloc (bytes), NULL, NULL};

    work.from = make_device (NULL, bytes);
    work.to = make_device (NULL, bytes);
    return work;
}

static void end (struct work *work)
{
    free (work->host);
    end_comm (work->comm);
}

static void load (struct work *work, void *device, int t, size_t count)
{
    fill (t, work->host, count, 0);
    write_device (device, work->host, count * types[t].bytes);
}

static void fetch (struct work *work, const void *device, int t, size_t count)
{
    CUDA (cudaStreamSynchronize (work->stream));
    read_device (work->host, device, count * types[t].bytes);
}

/* [in_place]: as each call defines it. */
static void check_allreduce (struct work *w, int t, ncclRedOp_t op, size_t count, bool in_place)
{
    size_t part = (count + (size_t) ranks - 1) / (size_t) ranks;
    char *to = in_place ? w->from : w->to;

    load (w, w->from, t, count);
    NCCL (ncclAllReduce (w->from, to, count, types[t].type, op, w->comm, w->stream));
    fetch (w, to, t, count);
    for (size_t i = 0; i < count; i++)
        compare_sum ("allreduce", t, op, w->host, i, reference (t, op, (int) (i / part), i, NULL),
                     i, NULL);
}

static void check_reduce (struct work *w, int t, ncclRedOp_t op, size_t count, bool in_place)
{
    int root = (int) (count % (size_t) ranks);
    char *to = in_place ? w->from : w->to;

    load (w, w->from, t, count);
    NCCL (ncclReduce (w->from, rank == root ? to : NULL, count, types[t].type, op, root, w->comm,
                      w->stream));
    fetch (w, to, t, count);
    for (size_t i = 0; i < count && rank == root; i++)
        compare_sum ("reduce", t, op, w->host, i, reference (t, op, root, i, NULL), i, NULL);
}

static void check_reduce_scatter (struct work *w, int t, ncclRedOp_t op, size_t count,
                                  bool in_place)
{
    size_t mine = (size_t) rank * count;
    char *to = in_place ? w->from + mine * types[t].bytes : w->to;

    load (w, w->from, t, count * (size_t) ranks);
    NCCL (ncclReduceScatter (w->from, to, count, types[t].type, op, w->comm, w->stream));
    fetch (w, to, t, count);
    for (size_t i = 0; i < count; i++)
        compare_sum ("reduce-scatter", t, op, w->host, i, reference (t, op, rank, mine + i, NULL),
                     mine + i, NULL);
}

static void reductions (void)
{
    struct work w = begin ();

    for (int t = 0; t < (int) TYPES; t++)
        for (int op = ncclSum; op <= ncclAvg; op++)
            for (size_t c = 0; c < sizeof (counts) / sizeof (counts[0]); c++) {
                bool in_place = (t + op + (int) c) % 2;

                if (c == 3 && types[t].type != ncclFloat32 && op != ncclSum)
                    continue; /* long arrays are cut into pieces in one way */
                check_allreduce (&w, t, (ncclRedOp_t) op, counts[c], in_place);
                check_reduce (&w, t, (ncclRedOp_t) op, counts[c], in_place);
                check_reduce_scatter (&w, t, (ncclRedOp_t) op, counts[c], in_place);
            }
    end (&w);
}

/* As fminf and fmaxf: the number wins over the NaN. */
static void not_a_number (void)
{
    struct work w = begin ();
    float data[2] = {rank == 0 ? NAN : (float) rank, (float) rank};

    write_device (w.from, data, sizeof (data));
    NCCL (ncclAllReduce (w.from, w.to, 2, ncclFloat32, ncclMax, w.comm, w.stream));
    fetch (&w, w.to, 8, 2);
    memcpy (data, w.host, sizeof (data));
    CHECK (data[0] == (float) (ranks - 1) && data[1] == (float) (ranks - 1));
    end (&w);
}

static void broadcasts (void)
{
    struct work w = begin ();

    for (int t = 0; t < (int) TYPES; t++)
        for (size_t c = 0; c < sizeof (counts) / sizeof (counts[0]); c++)
            for (int root = 0; root < ranks; root++) {
                bool in_place = (root + t) % 2;

                load (&w, rank == root && !in_place ? w.from : w.to, t, counts[c]);
                if (in_place)
                    NCCL (ncclBcast (w.to, counts[c], types[t].type, root, w.comm, w.stream));
                else
                    NCCL (ncclBroadcast (w.from, w.to, counts[c], types[t].type, root, w.comm,
                                         w.stream));
                fetch (&w, w.to, t, counts[c]);
                for (size_t i = 0; i < counts[c]; i++)
                    compare ("broadcast", t, root, w.host, i, value (t, root, i));
            }
    end (&w);
}

static void allgathers (void)
{
    struct work w = begin ();

    for (int t = 0; t < (int) TYPES; t++)
        for (size_t c = 0; c < sizeof (counts) / sizeof (counts[0]); c++) {
            bool in_place = (c + (size_t) t) % 2;
            char *from = in_place ? w.to + (size_t) rank * counts[c] * types[t].bytes : w.from;

            load (&w, from, t, counts[c]);
            NCCL (ncclAllGather (from, w.to, counts[c], types[t].type, w.comm, w.stream));
            fetch (&w, w.to, t, counts[c] * (size_t) ranks);
            for (size_t i = 0; i < counts[c] * (size_t) ranks; i++)
                compare ("allgather", t, -1, w.host, i,
                         value (t, (int) (i / counts[c]), i % counts[c]));
        }
    end (&w);
}

/* Each rank has a scalar of its own, on the host or on the device. */
static void premul (void)
{
    struct work w = begin ();
    size_t count = 1000, part = (count + (size_t) ranks - 1) / (size_t) ranks;

    for (int t = 0; t < (int) TYPES; t++) {
        bits_t scalar[MOST];
        ncclRedOp_t op;
        void *where;

        for (int i = 0; i < ranks; i++)
            scalar[i] = types[t].real ? bits_of (t, 0.3 + i) : (bits_t) (i + 3);
        where = t % 2 ? make_device (&scalar[rank], 8) : &scalar[rank];
        NCCL (ncclRedOpCreatePreMulSum (&op, where, types[t].type,
                                        t % 2 ? ncclScalarDevice : ncclScalarHostImmediate,
                                        w.comm));
        load (&w, w.from, t, count);
        NCCL (ncclAllReduce (w.from, w.to, count, types[t].type, op, w.comm, w.stream));
        NCCL (ncclRedOpDestroy (op, w.comm)); /* what is queued has taken it */
        fetch (&w, w.to, t, count);
        for (size_t i = 0; i < count; i++)
            compare_sum ("premul", t, op, w.host, i,
                         reference (t, ncclSum, (int) (i / part), i, scalar), i, scalar);
    }
    end (&w);
}

/* Only rank 0 calls, and does not wait for anybody. */
static void nothing (void)
{
    struct work w = begin ();

    if (rank == 0) {
        NCCL (ncclAllReduce (w.from, w.to, 0, ncclFloat32, ncclSum, w.comm, w.stream));
        NCCL (ncclBroadcast (w.from, w.to, 0, ncclFloat32, 0, w.comm, w.stream));
        NCCL (ncclAllGather (w.from, w.to, 0, ncclFloat32, w.comm, w.stream));
        CUDA (cudaStreamSynchronize (w.stream));
    }
    meet ();
    end (&w);
}

/* The last rank does not come, and rank 0 gives up: for the others that is as if all had come. */
static void abort_hands_on (void)
{
    ncclComm_t comm = make_comm (true);
    cudaStream_t stream = make_stream ();
    int one = 1, sum, *data = make_device (&one, sizeof (one));

    NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclMin, comm, stream)); /* connects */
    CUDA (cudaStreamSynchronize (stream));
    if (rank < ranks - 1 && !getenv ("NCCL_HOSTID")) {
        NCCL (ncclAllReduce (data, data, 1, ncclInt32, ncclSum, comm, stream));
        nanosleep (&(struct timespec){.tv_nsec = 100000000}, NULL);
        CHECK (cudaStreamQuery (stream) == cudaErrorNotReady);
    }
    meet ();
    if (rank == 0)
        NCCL (ncclCommAbort (comm));
    CUDA (cudaStreamSynchronize (stream));
    CUDA (cudaMemcpy (&sum, data, sizeof (sum), cudaMemcpyDefault));
    CHECK (rank == 0 || rank == ranks - 1 || sum != ranks || getenv ("NCCL_HOSTID"));
    meet ();
    if (rank > 0)
        NCCL (ncclCommAbort (comm));
}

const struct test data_tests[] = {
    {"reductions", reductions, 8, 1, 0, NULL, NULL},
    {"not-a-number", not_a_number, 8, 2, 0, NULL, NULL},
    {"broadcasts", broadcasts, 8, 1, 0, NULL, NULL},
    {"allgathers", allgathers, 8, 1, 0, NULL, NULL},
    {"premul", premul, 8, 1, 0, NULL, NULL},
    {"nothing", nothing, 8, 2, 0, NULL, NULL},
    {"abort-hands-on", abort_hands_on, 8, 3, 0, NULL, NULL},
    {0},
};
