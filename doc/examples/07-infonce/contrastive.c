/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * contrastive.c - a loss over the batch of all ranks (InfoNCE), with its gradient through a
 * gather.
 *
 * Two encoders bring two views of a sample to one place: u = W x / |W x| and v = V y / |V y|.
 * Each rank has some of the samples. Its loss compares its own u with the v of all ranks, which
 * it gathers; what it finds out about them must get back to the ranks they are from.
 *
 *   --common         every rank gathers u as well, and computes the loss of the whole batch
 *   --own-slot       the gradient of gathers by GS_GRAD_OWN_SLOT, which only fits --common
 *   --parameters     prints all parameters at the end
 */
#include <gradsync.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 6, OUT = 4, BATCH = 64, STEPS = 100 };

/* What is trained; the scale of products is one over the temperature. */
struct parameters {
    double w[OUT][IN], v[OUT][IN], scale;
};
enum { PARAMETERS = sizeof (struct parameters) / sizeof (double) };

static bool common; /* the whole loss on every rank */
static gs_grad_contract_t contract = GS_GRAD_ADJOINT;

/* Samples of all ranks, the same for any number of ranks: y is x turned, and noise. */
static void make_samples (double x[BATCH][IN], double y[BATCH][IN])
{
    unsigned short seed[3] = {1, 2, 3};

    for (int s = 0; s < BATCH; s++) {
        for (int i = 0; i < IN; i++)
            x[s][i] = 2 * erand48 (seed) - 1;
        for (int i = 0; i < IN; i++)
            y[s][i] = x[s][(i + 1) % IN] + 0.2 * (2 * erand48 (seed) - 1);
    }
}

/* out = w in / |w in|; returns the length. */
static double encode (const double w[OUT][IN], const double *in, double *out)
{
    double length = 0;

    for (int o = 0; o < OUT; o++) {
        out[o] = 0;
        for (int i = 0; i < IN; i++)
            out[o] += w[o][i] * in[i];
        length += out[o] * out[o];
    }
    length = sqrt (length);
    for (int o = 0; o < OUT; o++)
        out[o] /= length;
    return length;
}

/* Adds to grad what grad_out, the gradient by out, says about w. */
static void encode_backward (double grad[OUT][IN], const double *in, const double *out,
                             double length, const double *grad_out)
{
    double along = 0;

    for (int o = 0; o < OUT; o++)
        along += out[o] * grad_out[o];
    for (int o = 0; o < OUT; o++)
        for (int i = 0; i < IN; i++)
            grad[o][i] += (grad_out[o] - along * out[o]) / length * in[i];
}

/*
 * The mean over [rows] of u, which are numbers [first] and on of the batch, of minus the log of
 * how much v of the same sample stands out among all v; and its gradients.
 */
static double info_nce (int first, int rows, double u[][OUT], double v[][OUT], double scale,
                        double grad_u[][OUT], double grad_v[][OUT], double *grad_scale)
{
    double loss = 0;

    memset (grad_u, 0, (size_t) rows * sizeof (*grad_u));
    memset (grad_v, 0, BATCH * sizeof (*grad_v));
    *grad_scale = 0;
    for (int r = 0; r < rows; r++) {
        double product[BATCH], sum = 0;
        for (int s = 0; s < BATCH; s++) {
            product[s] = 0;
            for (int o = 0; o < OUT; o++)
                product[s] += u[r][o] * v[s][o];
            sum += exp (scale * product[s]);
        }
        loss += (log (sum) - scale * product[first + r]) / rows;
        for (int s = 0; s < BATCH; s++) {
            double share = (exp (scale * product[s]) / sum - (s == first + r)) / rows;
            *grad_scale += share * product[s];
            for (int o = 0; o < OUT; o++) {
                grad_u[r][o] += share * scale * v[s][o];
                grad_v[s][o] += share * scale * u[r][o];
            }
        }
    }
    return loss;
}

/* The loss of this rank and its gradient, from [mine] samples of which the first is [first]. */
static gs_status_t step (gs_comm_t *comm, const struct parameters *p, int first, int mine,
                         double x[][IN], double y[][IN], struct parameters *grad, double *loss)
{
    double u[BATCH][OUT], v[BATCH][OUT], length_u[BATCH], length_v[BATCH];
    double grad_u[BATCH][OUT], grad_v[BATCH][OUT], own_u[BATCH][OUT], own_v[BATCH][OUT];
    size_t count = (size_t) mine * OUT;
    gs_status_t st;

    for (int s = first; s < first + mine; s++) {
        length_u[s] = encode (p->w, x[s], u[s]);
        length_v[s] = encode (p->v, y[s], v[s]);
    }
    st = gs_allgather (comm, v[first], v, count, GS_F64, NULL); /* in place */
    if (!st && common)
        st = gs_allgather (comm, u[first], u, count, GS_F64, NULL);
    if (st)
        return st;

    memset (grad, 0, sizeof (*grad));
    if (common)
        *loss = info_nce (0, BATCH, u, v, p->scale, grad_u, grad_v, &grad->scale);
    else
        *loss = info_nce (first, mine, &u[first], v, p->scale, own_u, grad_v, &grad->scale);

    st = gs_allgather_backward (comm, grad_v, own_v, count, GS_F64, contract, NULL);
    if (!st && common)
        st = gs_allgather_backward (comm, grad_u, own_u, count, GS_F64, contract, NULL);
    for (int s = 0; s < mine; s++) {
        encode_backward (grad->w, x[first + s], u[first + s], length_u[first + s], own_u[s]);
        encode_backward (grad->v, y[first + s], v[first + s], length_v[first + s], own_v[s]);
    }
    return st;
}

static gs_status_t train (gs_comm_t *comm, struct parameters *p)
{
    int size = gs_comm_size (comm), rank = gs_comm_rank (comm), mine = BATCH / size;
    double x[BATCH][IN], y[BATCH][IN], loss;
    struct parameters grad;
    double *all = (double *) p, *slope = (double *) &grad;
    unsigned short seed[3] = {4, 5, 6};
    gs_status_t st = GS_OK;

    make_samples (x, y);
    for (int i = 0; i < PARAMETERS; i++)
        all[i] = 2 * erand48 (seed) - 1;
    p->scale = 2;
    for (int i = 0; i <= STEPS && !st; i++) {
        st = step (comm, p, rank * mine, mine, x, y, &grad, &loss);
        if (!st) /* the mean of the losses is minimised, so gradients are averaged */
            st = gs_allreduce_avg (comm, &grad, PARAMETERS, GS_F64, NULL);
        if (!st)
            st = gs_allreduce_avg (comm, &loss, 1, GS_F64, NULL);
        if (!st && rank == 0 && i % 25 == 0)
            printf ("step %d, loss %.12f\n", i, loss);
        for (int k = 0; k < PARAMETERS && i < STEPS; k++)
            all[k] -= 0.5 * slope[k];
    }
    return st;
}

int main (int argc, char **argv)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;
    struct parameters p;
    bool print = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp (argv[i], "--common"))
            common = true;
        else if (!strcmp (argv[i], "--own-slot"))
            contract = GS_GRAD_OWN_SLOT;
        else if (!strcmp (argv[i], "--parameters"))
            print = true;
        else
            return fprintf (stderr, "usage: %s [--common] [--own-slot] [--parameters]\n",
                            argv[0]),
                   2;
    }
    opts.device = GS_DEVICE_HOST;
    if (gs_comm_create (&opts, &comm))
        goto fail;
    if (BATCH % gs_comm_size (comm)) {
        fprintf (stderr, "contrastive: %d samples are not as many for each of %d ranks\n", BATCH,
                 gs_comm_size (comm));
        return 2;
    }
    if (train (comm, &p))
        goto fail;
    for (int i = 0; i < PARAMETERS && print && gs_comm_rank (comm) == 0; i++)
        printf ("%.17g\n", ((double *) &p)[i]);
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "contrastive: %s\n", gs_last_error ());
    return 1;
}
