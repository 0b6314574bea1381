/* SPDX-License-Identifier: BSD-3-Clause */
/* train.c - data-parallel training: own samples, averages, the same step on every rank. */
#include <gradsync.h>
#include <math.h>
#include <stdio.h>

/* y = w2 . tanh (w1 x + b1) + b2, in double, trained to be sin (3 x) on [-1, 1]. */
enum { HIDDEN = 16, SAMPLES = 64, STEPS = 4000 };
enum { W1, B1, W2, B2, ARRAYS }; /* as they are added: from the input to the output */

static const char *const name[ARRAYS] = {"w1", "b1", "w2", "b2"};
static const size_t elements[ARRAYS] = {HIDDEN, HIDDEN, HIDDEN, 1};
static double w[ARRAYS][HIDDEN]; /* parameters */
static double *g[ARRAYS];        /* gradients, which the reducer holds */

static gs_status_t set_up (gs_comm_t *comm, gs_reducer_t **reducer, int *loss)
{
    void *params[ARRAYS], *p = NULL;
    gs_status_t st = gs_reducer_create (comm, NULL, reducer);

    for (int i = 0; i < ARRAYS && !st; i++) {
        st = gs_reducer_add (*reducer, name[i], 1, &elements[i], GS_F64, NULL, NULL);
        params[i] = w[i];
    }
    if (!st)
        st = gs_reducer_add_scalar (*reducer, "loss", GS_AVG, loss);
    if (!st)
        st = gs_reducer_commit (*reducer);
    for (int i = 0; i < ARRAYS && !st; i++) {
        st = gs_reducer_get_grad (*reducer, i, &p);
        g[i] = p;
    }
    return st ? st : gs_reducer_broadcast (*reducer, params, 0, NULL);
}

static gs_status_t step (gs_reducer_t *reducer, int loss, const double *x, const double *y)
{
    double a[SAMPLES][HIDDEN], d[SAMPLES], sum = 0; /* d: derivative of the loss by the output */
    gs_status_t st;

    for (int s = 0; s < SAMPLES; s++) { /* forward */
        double error = w[B2][0] - y[s];
        for (int i = 0; i < HIDDEN; i++) {
            a[s][i] = tanh (w[W1][i] * x[s] + w[B1][i]);
            error += w[W2][i] * a[s][i];
        }
        d[s] = 2 * error / SAMPLES;
        sum += error * error / SAMPLES;
    }

    g[B2][0] = 0; /* backward: the output layer */
    for (int s = 0; s < SAMPLES; s++)
        g[B2][0] += d[s];
    for (int i = 0; i < HIDDEN; i++) {
        g[W2][i] = 0;
        for (int s = 0; s < SAMPLES; s++)
            g[W2][i] += d[s] * a[s][i];
    }
    st = gs_reducer_ready (reducer, B2, NULL);
    if (!st)
        st = gs_reducer_ready (reducer, W2, NULL); /* both may travel from now on */

    for (int i = 0; i < HIDDEN; i++) { /* the hidden layer */
        g[W1][i] = g[B1][i] = 0;
        for (int s = 0; s < SAMPLES; s++) {
            double e = d[s] * w[W2][i] * (1 - a[s][i] * a[s][i]);
            g[W1][i] += e * x[s];
            g[B1][i] += e;
        }
    }
    if (!st)
        st = gs_reducer_ready (reducer, B1, NULL);
    if (!st)
        st = gs_reducer_ready (reducer, W1, NULL);
    if (!st)
        st = gs_reducer_set_scalar (reducer, loss, sum);
    if (!st)
        st = gs_reducer_finish (reducer, NULL);

    for (int k = 0; k < ARRAYS && !st; k++) /* the same on all ranks, and so w stays the same */
        for (size_t i = 0; i < elements[k]; i++)
            w[k][i] -= 0.05 * g[k][i];
    return st;
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm = NULL;
    gs_reducer_t *reducer = NULL;
    double x[SAMPLES], y[SAMPLES], mean;
    int loss;

    opts.device = GS_DEVICE_HOST; /* this backward pass runs on the host */
    if (gs_comm_create (&opts, &comm))
        goto fail;
    for (int i = 0; i < HIDDEN; i++) { /* that of rank 0 counts */
        w[W1][i] = sin (3 * i + 1);
        w[B1][i] = sin (3 * (i + HIDDEN) + 1);
        w[W2][i] = sin (3 * (i + 2 * HIDDEN) + 1);
    }
    for (int s = 0; s < SAMPLES; s++) { /* every size-th point of a grid */
        int point = gs_comm_rank (comm) + s * gs_comm_size (comm);
        x[s] = (2 * point + 1.0) / (SAMPLES * gs_comm_size (comm)) - 1;
        y[s] = sin (3 * x[s]);
    }
    if (set_up (comm, &reducer, &loss))
        goto fail;
    for (int n = 1; n <= STEPS; n++) {
        if (step (reducer, loss, x, y) || gs_reducer_get_scalar (reducer, loss, &mean))
            goto fail;
        if (n % 500 == 0 && gs_comm_rank (comm) == 0)
            printf ("step %d, loss %.2e\n", n, mean);
    }
    if (gs_reducer_destroy (reducer))
        goto fail;
    return gs_comm_destroy (comm) != GS_OK;
fail:
    fprintf (stderr, "train: %s\n", gs_last_error ());
    return 1; /* the other ranks find out */
}
