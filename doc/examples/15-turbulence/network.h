/* SPDX-License-Identifier: BSD-3-Clause */
/* network.h - a small network, tanh in two hidden layers, and its training on all ranks. */
#ifndef TURBULENCE_NETWORK_H
#define TURBULENCE_NETWORK_H

#include <gradsync.h>

enum { INPUTS = 16, HIDDEN = 24, OUTPUTS = 2, LAYERS = 3 };
enum { PARAMETERS = (INPUTS + 1) * HIDDEN + (HIDDEN + 1) * HIDDEN + (HIDDEN + 1) * OUTPUTS };

struct network {
    double w[PARAMETERS]; /* of each layer [inputs + 1][outputs], the last row its biases */
    double m[PARAMETERS]; /* Adam's means of the gradient */
    double v[PARAMETERS]; /* and of its square */
    int64_t updates;
};

struct trainer {
    struct network *net;
    gs_reducer_t *reducer;
    double *g[LAYERS]; /* gradients, which the reducer holds */
    int loss;          /* the reducer's scalar */
    size_t room;       /* samples that [a] and [d] are for */
    double *a[LAYERS]; /* outputs of each layer, [sample][output] */
    double *d;         /* derivatives of the loss by a layer's sums */
    double *before;    /* by those of the layer before */
};

/* Weights that are the same on all ranks. */
void network_create (struct network *net);

/* [out] of one sample. */
void network_apply (const struct network *net, const double *in, double *out);

/* [t] is all 0 before, and may be destroyed even if this fails. [room]: samples at most. */
gs_status_t trainer_create (gs_comm_t *comm, struct network *net, size_t room, struct trainer *t);
gs_status_t trainer_destroy (struct trainer *t);

/*
 * A step of training on this rank's [samples] samples, [in] and [want], at the learning rate
 * [rate]. [loss] is the mean squared error over the samples of all ranks. Collective.
 */
gs_status_t trainer_step (struct trainer *t, size_t samples, const double *in, const double *want,
                          double rate, double *loss);

#endif
