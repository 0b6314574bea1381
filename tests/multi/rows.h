/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows.h - what becomes of a row in tests of pools: y[o] = sum over i of w[o][i] * x[i]^2, in
 * float, so that its bits tell; and its gradients.
 */
#ifndef GS_TESTS_ROWS_H
#define GS_TESTS_ROWS_H

#define INPUTS  7
#define OUTPUTS 3

static inline float weight_of (int o, int i)
{
    return 0.25f + 0.5f * (float) o - 0.125f * (float) i;
}

static inline void evaluate_row (const float *x, float *y)
{
    for (int o = 0; o < OUTPUTS; o++) {
        y[o] = 0;
        for (int i = 0; i < INPUTS; i++)
            y[o] += weight_of (o, i) * x[i] * x[i];
    }
}

static inline void take_row_back (const float *x, const float *grad_y, float *grad_x)
{
    for (int i = 0; i < INPUTS; i++) {
        grad_x[i] = 0;
        for (int o = 0; o < OUTPUTS; o++)
            grad_x[i] += 2 * weight_of (o, i) * x[i] * grad_y[o];
    }
}

#endif /* GS_TESTS_ROWS_H */
