/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contracts.c - which recipes for the gradient of a gather are right: the table of
 * gradsync-adjoint(7), from the smallest model that shows it.
 *
 * Each rank has some inputs x. z = tanh (a x) is gathered, and a loss is made of the z of all
 * ranks: a is a parameter before the gather, b one behind it. The average of the losses is what
 * is minimised, so gradients are averaged over the ranks; what that gives is compared with
 * differences of the average loss.
 */
#include <gradsync.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MINE = 3, MOST = 64 * MINE };
enum recipe { ADJOINT, OWN_SLOT, UNSCALED, LOSS_TIMES_N, AVERAGED, RECIPES };

static const char *const names[RECIPES] = {
    "GS_GRAD_ADJOINT",        "GS_GRAD_OWN_SLOT", "own slot, no factor",
    "own slot, loss times N", "adjoint over N",
};

/* What a rank's loss makes of a z: the same on all ranks, or it tells its own from others. */
static double weight (int rank, int i, int common)
{
    if (common)
        return 1 + 0.1 * i;
    return i / MINE == rank ? 1 : -0.25 * (1 + rank);
}

/* The loss of a rank, and its gradients by z and b. */
static double loss_of (const double *z, int count, double b, int rank, int common, double *grad_z,
                       double *grad_b)
{
    double sum = 0;

    for (int i = 0; i < count; i++)
        sum += weight (rank, i, common) * z[i];
    for (int i = 0; i < count; i++) /* loss = sin (b sum) */
        grad_z[i] = cos (b * sum) * b * weight (rank, i, common);
    *grad_b = cos (b * sum) * sum;
    return sin (b * sum);
}

static void try (gs_status_t st)
{
    if (!st)
        return;
    fprintf (stderr, "contracts: %s\n", gs_last_error ());
    exit (1);
}

/* The loss of this rank at a and b; its gradients by a recipe. */
static double run (gs_comm_t *comm, double a, double b, int common, enum recipe recipe,
                   double *grad_a, double *grad_b)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm), count = MINE * size;
    double x[MINE], own[MINE], z[MOST], grad_z[MOST], back[MINE], loss;

    for (int i = 0; i < MINE; i++) {
        x[i] = cos (3 * rank + i);
        own[i] = tanh (a * x[i]);
    }
    try (gs_allgather (comm, own, z, MINE, GS_F64, NULL));
    loss = loss_of (z, count, b, rank, common, grad_z, grad_b);
    if (recipe == LOSS_TIMES_N) {
        *grad_b *= size;
        for (int i = 0; i < count; i++)
            grad_z[i] *= size;
    }
    if (recipe == ADJOINT || recipe == AVERAGED)
        try (gs_allgather_backward (comm, grad_z, back, MINE, GS_F64, GS_GRAD_ADJOINT, NULL));
    else if (recipe == OWN_SLOT)
        try (gs_allgather_backward (comm, grad_z, back, MINE, GS_F64, GS_GRAD_OWN_SLOT, NULL));
    else
        for (int i = 0; i < MINE; i++)
            back[i] = grad_z[MINE * rank + i];
    *grad_a = 0;
    for (int i = 0; i < MINE; i++)
        *grad_a += back[i] * (1 - own[i] * own[i]) * x[i] / (recipe == AVERAGED ? size : 1);
    return loss;
}

/* The average loss, by central differences by a or b. */
static double slope (gs_comm_t *comm, double a, double b, double da, double db, int common)
{
    double unused[2];
    double change = run (comm, a + da, b + db, common, ADJOINT, &unused[0], &unused[1]) -
                    run (comm, a - da, b - db, common, ADJOINT, &unused[0], &unused[1]);

    try (gs_allreduce_avg (comm, &change, 1, GS_F64, NULL));
    return change / (2 * (da + db));
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    double a = 0.7, b = 0.3, step = 1e-5;

    opts.device = GS_DEVICE_HOST;
    try (gs_comm_create (&opts, &comm));
    if (gs_comm_size (comm) > MOST / MINE)
        return fprintf (stderr, "contracts: at most %d ranks\n", MOST / MINE), 2;
    if (gs_comm_rank (comm) == 0)
        printf ("%-24s %-8s %10s %10s\n", "recipe", "loss", "before", "behind");
    for (int common = 1; common >= 0; common--) {
        double right_a = slope (comm, a, b, step, 0, common);
        double right_b = slope (comm, a, b, 0, step, common);
        for (enum recipe r = 0; r < RECIPES; r++) {
            double grad[2];
            run (comm, a, b, common, r, &grad[0], &grad[1]);
            try (gs_allreduce_avg (comm, grad, 2, GS_F64, NULL));
            if (gs_comm_rank (comm) == 0)
                printf ("%-24s %-8s %10.4f %10.4f\n", names[r], common ? "common" : "own",
                        grad[0] / right_a, grad[1] / right_b);
        }
    }
    try (gs_comm_destroy (comm));
    return 0;
}
