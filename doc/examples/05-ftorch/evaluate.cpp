// SPDX-License-Identifier: BSD-3-Clause
//
// evaluate_cpp - the same as evaluate.f90, by libtorch alone: a TorchScript network that few
// ranks of a node evaluate for all.
//
//   evaluate_cpp FILE    a network that network.py has written
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include <torch/script.h>

#include "gradsync.h"

static const int inputs = 2, outputs = 1, steps = 10, most = 100; // rows of a rank

// Exceptions must not leave it: gradsync is C.
static gs_status_t evaluate_batch (size_t rows, const void *in, void *out, gs_stream_t,
                                   void *network)
{
    try {
        c10::InferenceMode no_gradients;
        auto n = static_cast<int64_t> (rows);
        auto x = torch::from_blob (const_cast<void *> (in), {n, inputs}, torch::kFloat64);
        auto y = torch::from_blob (out, {n, outputs}, torch::kFloat64);

        y.copy_ (static_cast<torch::jit::Module *> (network)->forward ({x}).toTensor ());
        return GS_OK;
    } catch (const std::exception &e) {
        fprintf (stderr, "evaluate: %s\n", e.what ());
        return GS_ERR_ARG;
    }
}

static void make_rows (double *rows, int n, int rank, int step)
{
    for (int i = 0; i < n; i++) {
        double k = 1000.0 * rank + 100 * step + i + 1;
        rows[i * inputs] = std::fmod (0.7548776662 * k, 1);
        rows[i * inputs + 1] = std::fmod (0.5698402910 * k, 1);
    }
}

// One step; returns how far results are from those of this rank's own evaluation.
static double run_step (gs_pool_t *pool, void *network, int n, int rank, int step)
{
    std::vector<double> out (static_cast<size_t> (n * outputs)), own (out);
    void *rows;
    double off = 0;

    GS_ABORT_ON_ERROR (gs_pool_begin (pool, nullptr, static_cast<size_t> (n)));
    GS_ABORT_ON_ERROR (gs_pool_get_rows (pool, &rows));
    make_rows (static_cast<double *> (rows), n, rank, step);
    // What this rank can do without the results comes here.
    GS_ABORT_ON_ERROR (gs_pool_end (pool, out.data ()));
    if (n > 0)
        GS_ABORT_ON_ERROR (
            evaluate_batch (static_cast<size_t> (n), rows, own.data (), nullptr, network));
    for (size_t i = 0; i < out.size (); i++)
        off = std::max (off, std::abs (out[i] - own[i]));
    return off;
}

int main (int argc, char **argv)
{
    gs_comm_opts_t comm_opts = GS_COMM_OPTS_INIT;
    gs_pool_opts_t opts = GS_POOL_OPTS_INIT;
    gs_pool_info_t info = {};
    gs_comm_t *comm;
    gs_pool_t *pool;
    double off = 0;

    if (argc != 2) {
        fprintf (stderr, "usage: evaluate_cpp FILE\n");
        return 1;
    }
    comm_opts.device = GS_DEVICE_HOST;
    GS_ABORT_ON_ERROR (gs_comm_create (&comm_opts, &comm));
    auto network = torch::jit::load (argv[1]); // who evaluates needs it; all do, to compare
    opts.name = "network";
    opts.inputs = inputs;
    opts.outputs = outputs;
    opts.dtype = GS_F64;
    opts.max_rows = most;
    opts.on_batch = evaluate_batch;
    opts.context = &network;
    GS_ABORT_ON_ERROR (gs_pool_create (comm, &opts, &pool));
    for (int step = 1; step <= steps; step++) {
        int rank = gs_comm_rank (comm), n = (37 * rank + 11 * step) % (most + 1);
        off = std::max (off, run_step (pool, &network, n, rank, step));
    }
    GS_ABORT_ON_ERROR (gs_allreduce (comm, &off, 1, GS_F64, GS_MAX, nullptr));
    info.size = sizeof (info);
    GS_ABORT_ON_ERROR (gs_pool_get_info (pool, &info));
    if (gs_comm_rank (comm) == 0)
        printf (
            "%lld batches of %lld rows; off the own evaluation of each rank by at most %.1e\n",
            static_cast<long long> (info.batches), static_cast<long long> (info.taken), off);
    gs_pool_destroy (pool);
    GS_ABORT_ON_ERROR (gs_comm_destroy (comm));
}
