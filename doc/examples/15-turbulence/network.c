/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * network.c - forward and backward pass by hand. The backward pass goes from the last layer to
 * the first, and each gradient travels as soon as it is there.
 */
#include "network.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const size_t width[LAYERS + 1] = {INPUTS, HIDDEN, HIDDEN, OUTPUTS};
static const char *const layer_name[LAYERS] = {"layer 1", "layer 2", "layer 3"};

/* Where the parameters of a layer begin. */
static size_t first_of (int layer)
{
    size_t first = 0;

    for (int i = 0; i < layer; i++)
        first += (width[i] + 1) * width[i + 1];
    return first;
}

void network_create (struct network *net)
{
    uint32_t random = 1;

    memset (net, 0, sizeof *net);
    for (int k = 0; k < LAYERS; k++) {
        double *w = net->w + first_of (k), scale = sqrt (3.0 / (double) width[k]);
        for (size_t i = 0; i < width[k] * width[k + 1]; i++) {
            random = random * UINT32_C (1664525) + UINT32_C (1013904223);
            w[i] = scale * (2 * (double) random / UINT32_MAX - 1);
        }
    }
}

/* y = w x + b, and tanh of it but in the last layer. */
static void forward (const struct network *net, int layer, const double *x, double *y)
{
    size_t inputs = width[layer], outputs = width[layer + 1];
    const double *w = net->w + first_of (layer);

    memcpy (y, w + inputs * outputs, outputs * sizeof *y);
    for (size_t i = 0; i < inputs; i++)
        for (size_t j = 0; j < outputs; j++)
            y[j] += x[i] * w[i * outputs + j];
    for (size_t j = 0; j < outputs && layer < LAYERS - 1; j++)
        y[j] = tanh (y[j]);
}

void network_apply (const struct network *net, const double *in, double *out)
{
    double a[2][HIDDEN];

    forward (net, 0, in, a[0]);
    forward (net, 1, a[0], a[1]);
    forward (net, 2, a[1], out);
}

gs_status_t trainer_create (gs_comm_t *comm, struct network *net, size_t room, struct trainer *t)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_status_t st;
    void *g = NULL;

    t->net = net;
    t->room = room;
    for (int k = 0; k < LAYERS; k++)
        t->a[k] = malloc (room * width[k + 1] * sizeof (double));
    t->d = malloc (room * HIDDEN * sizeof (double));
    t->before = malloc (room * HIDDEN * sizeof (double));
    if (!t->a[0] || !t->a[1] || !t->a[2] || !t->d || !t->before)
        return GS_ERR_NOMEM;

    opts.name = "closure";
    opts.weighted = 1; /* samples count the same, not ranks */
    st = gs_reducer_create (comm, &opts, &t->reducer);
    for (int k = 0; k < LAYERS && !st; k++) {
        size_t shape[2] = {width[k] + 1, width[k + 1]};
        st = gs_reducer_add (t->reducer, layer_name[k], 2, shape, GS_F64, NULL, NULL);
    }
    if (!st)
        st = gs_reducer_add_scalar (t->reducer, "loss", GS_AVG, &t->loss);
    if (!st)
        st = gs_reducer_commit (t->reducer);
    for (int k = 0; k < LAYERS && !st; k++) {
        st = gs_reducer_get_grad (t->reducer, k, &g);
        t->g[k] = g;
    }
    return st;
}

gs_status_t trainer_destroy (struct trainer *t)
{
    gs_status_t st = gs_reducer_destroy (t->reducer);

    for (int k = 0; k < LAYERS; k++)
        free (t->a[k]);
    free (t->d);
    free (t->before);
    memset (t, 0, sizeof *t);
    return st;
}

/*
 * The backward pass of a layer with inputs [x]: its gradient from t->d, and t->before, which the
 * tanh of the layer before has gone into.
 */
static void backward (struct trainer *t, int layer, size_t samples, const double *x)
{
    size_t inputs = width[layer], outputs = width[layer + 1];
    const double *w = t->net->w + first_of (layer);
    double *g = t->g[layer];

    memset (g, 0, (inputs + 1) * outputs * sizeof *g);
    for (size_t s = 0; s < samples; s++) {
        const double *in = x + s * inputs, *d = t->d + s * outputs;
        for (size_t i = 0; i < inputs; i++)
            for (size_t j = 0; j < outputs; j++)
                g[i * outputs + j] += in[i] * d[j];
        for (size_t j = 0; j < outputs; j++)
            g[inputs * outputs + j] += d[j];
    }
    for (size_t s = 0; s < samples && layer > 0; s++)
        for (size_t i = 0; i < inputs; i++) {
            double sum = 0, a = x[s * inputs + i];
            for (size_t j = 0; j < outputs; j++)
                sum += w[i * outputs + j] * t->d[s * outputs + j];
            t->before[s * inputs + i] = sum * (1 - a * a);
        }
}

/* Adam (Kingma and Ba, 2015). All ranks have the same gradient, and so they keep the same w. */
static void update (struct trainer *t, double rate)
{
    struct network *net = t->net;
    double n = (double) ++net->updates;
    double m_part = 1 - pow (0.9, n), v_part = 1 - pow (0.999, n);

    for (int k = 0; k < LAYERS; k++)
        for (size_t i = 0; i < (width[k] + 1) * width[k + 1]; i++) {
            size_t p = first_of (k) + i;
            net->m[p] = 0.9 * net->m[p] + 0.1 * t->g[k][i];
            net->v[p] = 0.999 * net->v[p] + 0.001 * t->g[k][i] * t->g[k][i];
            net->w[p] -= rate * (net->m[p] / m_part) / (sqrt (net->v[p] / v_part) + 1e-8);
        }
}

gs_status_t trainer_step (struct trainer *t, size_t samples, const double *in, const double *want,
                          double rate, double *loss)
{
    double sum = 0, mean = samples ? 1.0 / (double) samples : 0;
    gs_status_t st = gs_reducer_set_weight (t->reducer, (double) samples);

    for (size_t s = 0; s < samples; s++) {
        forward (t->net, 0, in + s * INPUTS, t->a[0] + s * HIDDEN);
        forward (t->net, 1, t->a[0] + s * HIDDEN, t->a[1] + s * HIDDEN);
        forward (t->net, 2, t->a[1] + s * HIDDEN, t->a[2] + s * OUTPUTS);
    }
    for (size_t i = 0; i < samples * OUTPUTS; i++) {
        double off = t->a[2][i] - want[i];
        sum += off * off;
        t->d[i] = 2 * off * mean;
    }
    for (int k = LAYERS - 1; k >= 0 && !st; k--) {
        double *d = t->d;
        backward (t, k, samples, k ? t->a[k - 1] : in);
        st = gs_reducer_ready (t->reducer, k, NULL); /* travels during the layers that follow */
        t->d = t->before;
        t->before = d;
    }
    if (!st)
        st = gs_reducer_set_scalar (t->reducer, t->loss, sum * mean);
    if (!st)
        st = gs_reducer_finish (t->reducer, NULL);
    if (!st)
        st = gs_reducer_get_scalar (t->reducer, t->loss, loss);
    if (!st)
        update (t, rate);
    return st;
}
