/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver - libcuda.so.1, as far as somebody asks it behind the runtime's back: whether this
 * process has a context on a device. No header of it is needed: its types are integers.
 */
#include <stddef.h>

#include "engine.h"

int cuDevicePrimaryCtxGetState (int device, unsigned *flags, int *active);

int cuDevicePrimaryCtxGetState (int device, unsigned *flags, int *active)
{
    if (!flags || !active)
        return cudaErrorInvalidValue;
    *flags = 0;
    *active = sim_has_context (device);
    return cudaSuccess;
}
