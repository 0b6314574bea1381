/* SPDX-License-Identifier: BSD-3-Clause */
/* train.c - data-parallel training: own samples, average, the same step on every rank. */
#include <gradsync.h>
#include <math.h>
#include <stdio.h>

enum { HIDDEN = 16, WEIGHTS = 3 * HIDDEN + 1, SAMPLES = 64, STEPS = 4000 };

/* Adds one sample's gradient of the mean squared error of y = w3 . tanh (w1 x + w2) + w4. */
static double differentiate (const double *w, double x, double y, double *gradient)
{
    double a[HIDDEN], error = w[3 * HIDDEN] - y;

    for (int i = 0; i < HIDDEN; i++) {
        a[i] = tanh (w[i] * x + w[HIDDEN + i]);
        error += w[2 * HIDDEN + i] * a[i];
    }
    for (int i = 0; i < HIDDEN; i++) {
        double d = 2 * error * w[2 * HIDDEN + i] * (1 - a[i] * a[i]) / SAMPLES;

        gradient[i] += d * x;
        gradient[HIDDEN + i] += d;
        gradient[2 * HIDDEN + i] += 2 * error * a[i] / SAMPLES;
    }
    gradient[3 * HIDDEN] += 2 * error / SAMPLES;
    return error * error / SAMPLES;
}

int main (void)
{
    gs_comm_t *comm;
    double w[WEIGHTS];

    if (gs_comm_create (NULL, &comm) != GS_OK)
        goto fail;
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = sin (3.0 * i + 1); /* any start will do, but the same one on every rank */
    for (int step = 1; step <= STEPS; step++) {
        double g[WEIGHTS + 1] = {0}; /* gradients, and behind them the loss */

        for (int i = 0; i < SAMPLES; i++) { /* every size-th point of a grid */
            double point = gs_comm_rank (comm) + i * gs_comm_size (comm) + 0.5;
            double x = 2 * point / (SAMPLES * gs_comm_size (comm)) - 1;

            g[WEIGHTS] += differentiate (w, x, sin (3 * x), g);
        }
        if (gs_allreduce_avg (comm, g, WEIGHTS + 1, GS_F64, NULL) != GS_OK)
            goto fail;
        for (int i = 0; i < WEIGHTS; i++)
            w[i] -= 0.05 * g[i];
        if (step % 500 == 0 && gs_comm_rank (comm) == 0)
            printf ("step %d, loss %.2e\n", step, g[WEIGHTS]);
    }
    return gs_comm_destroy (comm);
fail:
    fprintf (stderr, "train: %s\n", gs_last_error ());
    gs_comm_destroy (comm);
    return 1;
}
