/* SPDX-License-Identifier: BSD-3-Clause */
/* training.h - a fine flow, and the closures that learn from it while it runs. */
#ifndef TURBULENCE_TRAINING_H
#define TURBULENCE_TRAINING_H

#include "closure.h"
#include "turbulence.h"

/*
 * Trains [models], which are new, from a flow of their own. [problem] is NULL, or why the folder
 * of checkpoints cannot be meant; then nothing was done. Collective.
 */
gs_status_t train (gs_comm_t *comm, const struct settings *set, struct models *models,
                   const char **problem);

#endif
