/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype - sizes, names and families of the element types; counts that overflow are refused. */
#include "base/dtype.h"

#include <complex.h>

#include "unit/unit.h"

static const struct {
    gs_dtype_t dtype;
    int number;
    size_t size;
    const char *name;
    bool integer, complex_, half;
} types[] = {
    {GS_F16, 1, 2, "GS_F16", false, false, true},
    {GS_BF16, 2, 2, "GS_BF16", false, false, true},
    {GS_F32, 3, sizeof (float), "GS_F32", false, false, false},
    {GS_F64, 4, sizeof (double), "GS_F64", false, false, false},
    {GS_I8, 5, sizeof (int8_t), "GS_I8", true, false, false},
    {GS_I16, 6, sizeof (int16_t), "GS_I16", true, false, false},
    {GS_I32, 7, sizeof (int32_t), "GS_I32", true, false, false},
    {GS_I64, 8, sizeof (int64_t), "GS_I64", true, false, false},
    {GS_U8, 9, sizeof (uint8_t), "GS_U8", true, false, false},
    {GS_U16, 10, sizeof (uint16_t), "GS_U16", true, false, false},
    {GS_U32, 11, sizeof (uint32_t), "GS_U32", true, false, false},
    {GS_U64, 12, sizeof (uint64_t), "GS_U64", true, false, false},
    {GS_C64, 13, sizeof (float complex), "GS_C64", false, true, false},
    {GS_C128, 14, sizeof (double complex), "GS_C128", false, true, false},
    {GS_F8_E4M3, 15, 1, "GS_F8_E4M3", false, false, true},
    {GS_F8_E5M2, 16, 1, "GS_F8_E5M2", false, false, true},
};
static const int unknown[] = {0, -1, 17, 1000, 0x7fffffff, -0x7fffffff - 1};

START_TEST (table)
{
    for (int i = 0; i < 16; i++) {
        gs_dtype_t t = types[i].dtype;
        ck_assert_int_eq (t, types[i].number);
        ck_assert_uint_eq (gs_dtype_size (t), types[i].size);
        ck_assert_str_eq (gsi_dtype_name (t), types[i].name);
        ck_assert (gsi_dtype_is_integer (t) == types[i].integer);
        ck_assert (gsi_dtype_is_complex (t) == types[i].complex_);
        ck_assert (gsi_dtype_is_reduced (t) == types[i].half);
    }
}
END_TEST

START_TEST (unknown_types)
{
    for (size_t i = 0; i < sizeof (unknown) / sizeof (unknown[0]); i++) {
        gs_dtype_t t = (gs_dtype_t) unknown[i];
        char number[32];
        size_t bytes = 7;
        ck_assert_uint_eq (gs_dtype_size (t), 0);
        ck_assert_str_eq (gsi_dtype_name (t), "unknown type");
        snprintf (number, sizeof (number), "unknown dtype %d", unknown[i]);
        unit_fails (gsi_dtype_bytes ("caller", 1, t, &bytes), GS_ERR_ARG, "caller", number);
        ck_assert_uint_eq (bytes, 7);
    }
}
END_TEST

START_TEST (counts_at_the_limit)
{
    for (int i = 0; i < 14; i++) {
        size_t most = (size_t) PTRDIFF_MAX / types[i].size, bytes;
        const size_t bad[] = {most + 1, SIZE_MAX, SIZE_MAX / types[i].size, SIZE_MAX / 2 + 1};
        unit_ok (gsi_dtype_bytes ("caller", 0, types[i].dtype, &bytes));
        ck_assert_uint_eq (bytes, 0);
        unit_ok (gsi_dtype_bytes ("caller", most, types[i].dtype, &bytes));
        ck_assert_uint_eq (bytes, most * types[i].size);
        for (int j = 0; j < 4; j++)
            unit_fails (gsi_dtype_bytes ("caller", bad[j], types[i].dtype, &bytes), GS_ERR_ARG,
                        "caller", types[i].name, "in elements");
    }
}
END_TEST

START_TEST (op_names)
{
    ck_assert_str_eq (gsi_op_name (GS_SUM), "GS_SUM");
    ck_assert_str_eq (gsi_op_name (GS_PROD), "GS_PROD");
    ck_assert_str_eq (gsi_op_name (GS_MIN), "GS_MIN");
    ck_assert_str_eq (gsi_op_name (GS_MAX), "GS_MAX");
    ck_assert_str_eq (gsi_op_name ((gs_op_t) 0), "unknown op");
    ck_assert_str_eq (gsi_op_name (GS_AVG), "GS_AVG");
    ck_assert_str_eq (gsi_op_name ((gs_op_t) 6), "unknown op");
    ck_assert_str_eq (gsi_op_name (GS_OP_INT_SIZED), "unknown op");
}
END_TEST

UNIT_SUITE ("dtype", 10, table, unknown_types, counts_at_the_limit, op_names)
