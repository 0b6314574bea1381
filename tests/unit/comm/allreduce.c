/* SPDX-License-Identifier: BSD-3-Clause */
/* average - reductions on one rank: what comes back, and every argument that is refused. */
#include <complex.h>
#include <math.h>

#include "unit/alone.h"
#include "base/dtype.h"
#include "base/log.h"

static const int unknown_types[] = {0, 17, -1, 0x7fffffff};
static const int unknown_ops[] = {0, 6, -1, 0x7fffffff};

START_TEST (values_stay)
{
    gs_comm_t *comm = alone_create ();

    for (gs_dtype_t dtype = GS_F16; dtype <= GS_C128; dtype++) {
        _Alignas(16) unsigned char x[16 * 5], y[16 * 5];
        for (size_t i = 0; i < sizeof (x); i++)
            x[i] = y[i] = (unsigned char) (i * 7 + 1);
        for (gs_op_t op = GS_SUM; op <= (gsi_dtype_is_complex (dtype) ? GS_PROD : GS_MAX); op++)
            unit_ok (gs_allreduce (comm, x, 5, dtype, op, NULL));
        if (!gsi_dtype_is_integer (dtype)) {
            unit_ok (gs_allreduce_avg (comm, x, 5, dtype, NULL));
            unit_ok (gs_allreduce_wavg (comm, x, 5, dtype, 3.25, NULL));
            unit_ok (gs_allreduce_wavg (comm, x, 5, dtype, 0x1p-1070, NULL));
            unit_ok (gs_allreduce_wavg (comm, x, 5, dtype, 0x1p1000, NULL));
        }
        ck_assert_msg (!memcmp (x, y, sizeof (x)), "%s changed", gsi_dtype_name (dtype));
    }
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (averages_of_integers_are_refused)
{
    gs_comm_t *comm = alone_create ();
    int64_t x = 7;

    for (gs_dtype_t dtype = GS_I8; dtype <= GS_U64; dtype++) {
        unit_fails (gs_allreduce_avg (comm, &x, 1, dtype, NULL), GS_ERR_UNSUPPORTED,
                    "gs_allreduce_avg", gsi_dtype_name (dtype), "GS_SUM");
        unit_fails (gs_allreduce_wavg (comm, &x, 1, dtype, 1, NULL), GS_ERR_UNSUPPORTED,
                    "gs_allreduce_wavg", gsi_dtype_name (dtype), "GS_SUM");
    }
    ck_assert_int_eq (x, 7);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

START_TEST (complex_numbers_have_no_order)
{
    gs_comm_t *comm = alone_create ();
    double complex x = 1;

    for (gs_dtype_t dtype = GS_C64; dtype <= GS_C128; dtype++)
        for (gs_op_t op = GS_MIN; op <= GS_MAX; op++)
            unit_fails (gs_allreduce (comm, &x, 1, dtype, op, NULL), GS_ERR_UNSUPPORTED,
                        gsi_op_name (op), gsi_dtype_name (dtype), "order");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

/* The three functions behind one face. */
static gs_status_t call (int which, gs_comm_t *comm, void *buf, size_t count, gs_dtype_t dtype)
{
    switch (which) {
    case 0: return gs_allreduce_avg (comm, buf, count, dtype, NULL);
    case 1: return gs_allreduce_wavg (comm, buf, count, dtype, 1, NULL);
    default: return gs_allreduce (comm, buf, count, dtype, GS_SUM, NULL);
    }
}

START_TEST (bad_arguments)
{
    static const char *const names[] = {"gs_allreduce_avg", "gs_allreduce_wavg", "gs_allreduce"};
    gs_comm_t *comm = alone_create ();
    double x[2] = {1, 2};

    for (int f = 0; f < 3; f++) {
        unit_fails (call (f, NULL, x, 2, GS_F64), GS_ERR_ARG, names[f], "comm is NULL");
        unit_fails (call (f, alone_stale (), x, 2, GS_F64), GS_ERR_STATE, names[f], "destroyed");
        unit_fails (call (f, comm, NULL, 2, GS_F64), GS_ERR_ARG, names[f], "NULL", "count is 2");
        unit_ok (call (f, comm, NULL, 0, GS_F64));
        for (int t = 0; t < 4; t++)
            unit_fails (call (f, comm, x, 2, (gs_dtype_t) unknown_types[t]), GS_ERR_ARG, names[f],
                        "unknown dtype");
        unit_fails (call (f, comm, x, SIZE_MAX, GS_F64), GS_ERR_ARG, names[f], "GS_F64",
                    "elements");
        unit_fails (call (f, comm, x, SIZE_MAX / 16 + 1, GS_C128), GS_ERR_ARG, names[f]);
        unit_fails (call (f, comm, (char *) x + 1, 1, GS_F32), GS_ERR_ARG, names[f], "aligned");
    }
    for (int o = 0; o < 4; o++)
        unit_fails (gs_allreduce (comm, x, 2, GS_F64, (gs_op_t) unknown_ops[o], NULL), GS_ERR_ARG,
                    "gs_allreduce", "unknown op");
    ck_assert (x[0] == 1 && x[1] == 2);
    unit_ok (gs_allreduce_avg (comm, x, 2, GS_F64, NULL)); /* it still works */
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

/* A complex number is two reals and needs no more alignment than they do. */
START_TEST (complex_alignment_is_that_of_its_parts)
{
    gs_comm_t *comm = alone_create ();
    _Alignas(16) float x[4] = {0, 1, 2, 3};
    _Alignas(16) double y[4] = {0, 1, 2, 3};

    unit_ok (gs_allreduce_avg (comm, x + 1, 1, GS_C64, NULL));
    unit_ok (gs_allreduce_avg (comm, y + 1, 1, GS_C128, NULL));
    unit_fails (gs_allreduce_avg (comm, (char *) y + 4, 1, GS_C128, NULL), GS_ERR_ARG, "aligned");
    unit_fails (gs_allreduce_avg (comm, (char *) x + 2, 1, GS_C64, NULL), GS_ERR_ARG, "aligned");
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

static void note (gs_log_level_t level, const char *line, void *context)
{
    if (level == GS_LOG_WARN && strstr (line, "all weights are 0"))
        ++*(int *) context;
}

START_TEST (weights)
{
    static const double bad[] = {-1, -0x1p-1074, NAN, INFINITY, -INFINITY};
    gs_comm_t *comm = alone_create ();
    float x[2] = {1, NAN};
    int warnings = 0;

    for (int i = 0; i < 5; i++) {
        unit_fails (gs_allreduce_wavg (comm, x, 1, GS_F32, bad[i], NULL), GS_ERR_ARG,
                    "gs_allreduce_wavg", "rank 0", "weight");
        ck_assert (x[0] == 1);
    }
    gs_log_set_sink (note, &warnings);
    unit_ok (gs_allreduce_wavg (comm, x, 2, GS_F32, 0, NULL)); /* not read, so the NaN is gone */
    unit_ok (gs_allreduce_wavg (comm, x, 2, GS_F32, -0.0, NULL));
    gs_log_set_sink (NULL, NULL);
    ck_assert (x[0] == 0 && x[1] == 0);
    ck_assert_int_eq (warnings, 1);
    unit_ok (gs_comm_destroy (comm));
}
END_TEST

UNIT_SUITE ("average", 10, values_stay, averages_of_integers_are_refused,
            complex_numbers_have_no_order, bad_arguments, complex_alignment_is_that_of_its_parts,
            weights)
