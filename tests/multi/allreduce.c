/* SPDX-License-Identifier: BSD-3-Clause */
/* allreduce - every operation and type: integers exactly, the others within their rounding. */
#include "data.h"

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* Element [i] of rank [r] as 64 bits of the type's sign. */
static uint64_t integer (gs_dtype_t dtype, int r, size_t i)
{
    uint64_t bits = data_bits (seed, r, i);

    switch (dtype) {
    case GS_I8: return (uint64_t) (int8_t) bits;
    case GS_I16: return (uint64_t) (int16_t) bits;
    case GS_I32: return (uint64_t) (int32_t) bits;
    case GS_U8: return (uint8_t) bits;
    case GS_U16: return (uint16_t) bits;
    case GS_U32: return (uint32_t) bits;
    default: return bits;
    }
}

static bool integer_is_right (gs_dtype_t dtype, gs_op_t op, const void *x, size_t i)
{
    uint64_t acc = integer (dtype, 0, i);
    size_t width = gs_dtype_size (dtype);

    for (int r = 1; r < size; r++) {
        uint64_t b = integer (dtype, r, i);
        bool less = dtype <= GS_I64 ? (int64_t) acc < (int64_t) b : acc < b;
        switch (op) {
        case GS_SUM: acc += b; break;
        case GS_PROD: acc *= b; break;
        case GS_MIN: acc = less ? acc : b; break;
        default: acc = less ? b : acc; break;
        }
    }
    return !memcmp ((const char *) x + i * width, &acc, width); /* little endian: the low bytes */
}

static bool floating_is_right (gs_dtype_t dtype, gs_op_t op, const void *x, size_t i)
{
    _Alignas(16) unsigned char one[16];
    long double absolutes = 0, bound = 0;
    wide_t acc = 0, got = data_load (dtype, x, i);

    for (int r = 0; r < size; r++) {
        wide_t b;
        data_make (dtype, one, 0, seed, r, i);
        b = data_load (dtype, one, 0);
        absolutes += cabsl (b);
        if (!r)
            acc = b;
        else if (op == GS_SUM)
            acc += b;
        else if (op == GS_PROD)
            acc *= b;
        else if (op == GS_MIN)
            acc = creall (b) < creall (acc) ? b : acc;
        else
            acc = creall (b) > creall (acc) ? b : acc;
    }
    if (op == GS_PROD)
        bound = 4 * size * data_sum_epsilon (dtype) * cabsl (acc);
    else if (op == GS_SUM)
        bound =
            2 * size * absolutes * (data_fast ? data_epsilon (dtype) : data_sum_epsilon (dtype));
    if (op <= GS_PROD)
        bound += 1.0001L * data_epsilon (dtype) * cabsl (acc) + (dtype == GS_F16 ? 0x1p-25L : 0);
    return cabsl (got - acc) <= bound;
}

static void check_reduction (gs_dtype_t dtype, gs_op_t op, size_t count)
{
    size_t bytes = count * gs_dtype_size (dtype), wrong = 0;
    size_t step = count > 100 ? (size_t) size : 1;
    void *x = data_allocate (bytes);

    data_fill (dtype, x, ++seed, rank, count);
    CHECK_OK (gs_allreduce (comm, x, count, dtype, op, NULL));
    for (size_t i = (size_t) rank % step; i < count; i += step)
        wrong += data_is_integer (dtype) ? !integer_is_right (dtype, op, x, i)
                                         : !floating_is_right (dtype, op, x, i);
    CHECK (!wrong, "op %d of %zu %s: %zu are wrong", op, count, data_names[dtype], wrong);
    CHECK (data_same_everywhere (comm, x, bytes), "op %d of %zu %s: ranks have different bits",
           op, count, data_names[dtype]);
    CHECK (data_free (x, bytes), "op %d of %zu %s: writes behind the buffer", op, count,
           data_names[dtype]);
}

/* A NaN of one rank reaches all of them. */
static void check_nan (void)
{
    for (gs_op_t op = GS_SUM; op <= GS_MAX; op++)
        for (int r = 0; r < size; r++) {
            double x = rank == r ? (double) NAN : 1;
            CHECK_OK (gs_allreduce (comm, &x, 1, GS_F64, op, NULL));
            CHECK (isnan (x), "op %d loses the NaN of rank %d", op, r);
        }
}

int main (void)
{
    comm = multi_create (NULL);
    data_fast = data_is_fast (comm);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++)
        for (gs_op_t op = GS_SUM; op <= (data_is_complex (dtype) ? GS_PROD : GS_MAX); op++) {
            size_t width = gs_dtype_size (dtype);
            for (size_t count = 0; count <= 20; count++)
                check_reduction (dtype, op, count);
            check_reduction (dtype, op, (16 << 10) / width);
            check_reduction (dtype, op, (16 << 10) / width + 1);
            check_reduction (dtype, op, (256 << 10) / width + 77);
        }
    check_nan ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("four operations, fourteen types, 24 counts");
}
