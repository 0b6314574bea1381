/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closure.c - trains a network inside a simulation, and then uses it there.
 *
 * The simulation: x'' = -x + f (x, x'). The term f = (1 - x^2) x' stands for what is costly to
 * compute. While the simulation runs with f, a network learns f from it; afterwards the
 * simulation runs with the network in the place of f.
 */
#include <gradsync.h>
#include <math.h>
#include <stdio.h>

enum { HIDDEN = 16, PARAMETERS = 4 * HIDDEN + 1, MEMBERS = 32, STEPS = 6000, RESTART = 100 };
enum closure { NOTHING, COSTLY, NETWORK }; /* what the simulation takes for f */

static double w[PARAMETERS];     /* the model: input weights, biases, output weights, bias */
static double g[PARAMETERS + 1]; /* the gradient of the loss by w; and, last, the loss */

/* The network: y = w3 . tanh (w0 x + w1 v + w2) + w4. The hidden layer's values go to [a]. */
static double network (double x, double v, double *a)
{
    double y = w[4 * HIDDEN];

    for (int i = 0; i < HIDDEN; i++) {
        a[i] = tanh (w[i] * x + w[HIDDEN + i] * v + w[2 * HIDDEN + i]);
        y += w[3 * HIDDEN + i] * a[i];
    }
    return y;
}

/* The backward pass: adds to g what a sample says. [d] is the derivative of the loss by y. */
static void network_backward (double x, double v, const double *a, double d)
{
    for (int i = 0; i < HIDDEN; i++) {
        double e = d * w[3 * HIDDEN + i] * (1 - a[i] * a[i]);
        g[i] += e * x;
        g[HIDDEN + i] += e * v;
        g[2 * HIDDEN + i] += e;
        g[3 * HIDDEN + i] += d * a[i];
    }
    g[4 * HIDDEN] += d;
}

static double f (enum closure closure, double x, double v)
{
    double a[HIDDEN];

    return closure == COSTLY ? (1 - x * x) * v : closure == NETWORK ? network (x, v, a) : 0;
}

/* A time step of the simulation (midpoint rule). */
static void advance (enum closure closure, double *x, double *v)
{
    const double dt = 0.02;
    double xm = *x + dt / 2 * *v, vm = *v + dt / 2 * (-*x + f (closure, *x, *v));

    *x += dt * vm;
    *v += dt * (-xm + f (closure, xm, vm));
}

/* A number in [-1, 1] that depends on [k] alone. */
static double scatter (int k)
{
    double s = sin (12.9898 * (k + 1)) * 43758.5453;

    return 2 * (s - floor (s)) - 1;
}

/* Adam (Kingma and Ba, 2015). All ranks have the same g here, and so they keep the same w. */
static void update (int step)
{
    static double m[PARAMETERS], s[PARAMETERS];
    double rate = 0.02 * (1 - (double) (step - 1) / STEPS);

    for (int i = 0; i < PARAMETERS; i++) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        s[i] = 0.999 * s[i] + 0.001 * g[i] * g[i];
        w[i] -= rate * (m[i] / (1 - pow (0.9, step))) /
                (sqrt (s[i] / (1 - pow (0.999, step))) + 1e-8);
    }
}

static gs_status_t train (gs_comm_t *comm)
{
    double x[MEMBERS], v[MEMBERS], a[HIDDEN];
    int rank = gs_comm_rank (comm), first = rank * MEMBERS; /* each rank has members of its own */
    gs_status_t st;

    for (int i = 0; i < PARAMETERS; i++)
        w[i] = scatter (i);
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i <= PARAMETERS; i++)
            g[i] = 0;
        for (int k = 0; k < MEMBERS; k++) {
            if (step % RESTART == 1) {
                x[k] = 2.5 * scatter (1000 + 2 * (first + k) + step);
                v[k] = 2.5 * scatter (1001 + 2 * (first + k) + step);
            }
            double off = network (x[k], v[k], a) - f (COSTLY, x[k], v[k]);
            network_backward (x[k], v[k], a, 2 * off / MEMBERS);
            g[PARAMETERS] += off * off / MEMBERS;
            advance (COSTLY, &x[k], &v[k]);
        }
        if ((st = gs_allreduce_avg (comm, g, PARAMETERS + 1, GS_F64, NULL)))
            return st;
        update (step);
        if (rank == 0 && step % 1000 == 0)
            printf ("step %d, loss %.1e\n", step, g[PARAMETERS]);
    }
    return GS_OK;
}

/* How far the simulation with [closure] is from the true one, from a state of no member. */
static double error (enum closure closure)
{
    double x = 0.7, v = 0, true_x = x, true_v = v, sum = 0;
    const int steps = 1000;

    for (int i = 0; i < steps; i++) {
        advance (closure, &x, &v);
        advance (COSTLY, &true_x, &true_v);
        sum += (x - true_x) * (x - true_x);
    }
    return sqrt (sum / steps);
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;

    opts.device = GS_DEVICE_HOST; /* this backward pass runs on the host */
    if (gs_comm_create (&opts, &comm) || train (comm))
        goto fail;
    if (gs_comm_rank (comm) == 0)
        printf ("error without f %.3f, with the network %.3f\n", error (NOTHING),
                error (NETWORK));
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "closure: %s\n", gs_last_error ());
    return 1; /* the other ranks find out */
}
