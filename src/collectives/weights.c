/* SPDX-License-Identifier: BSD-3-Clause */
/* weights - those of a weighted average, as scales. */
#include "collectives/weights.h"

#include <math.h>

#include "base/log.h"
#include "core/comm.h"

gs_status_t gsi_weights_scale (const gs_comm_t *comm, const char *caller, double *weights,
                               double *sum)
{
    double largest = 0;

    *sum = 0;
    for (int r = 0; r < comm->topo.size; r++) {
        if (!isfinite (weights[r]) || weights[r] < 0)
            return gsi_fail (GS_ERR_ARG,
                             "%s: rank %d (host %s) gives weight %g: weights are finite and not "
                             "negative",
                             caller, r, comm->hosts[r], weights[r]);
        if (weights[r] > largest)
            largest = weights[r];
    }
    for (int r = 0; r < comm->topo.size && largest > 0; r++) {
        weights[r] /= largest;
        *sum += weights[r];
    }
    return GS_OK;
}

void gsi_weights_warn (gs_comm_t *comm, const char *caller)
{
    if (!comm->topo.rank && !comm->weightless)
        gsi_log (GS_LOG_WARN, "comm",
                 "%s on '%s': all weights are 0, so the average is 0; this is not said again",
                 caller, comm->name);
    comm->weightless = true;
}
