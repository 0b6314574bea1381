/* SPDX-License-Identifier: BSD-3-Clause */
/* device_pin - memory of the host that is there already, made known to the GPU. */
#include "base/status.h"
#include "cuda/device_cuda.h"

gs_status_t gsi_cuda_pin (void *memory, size_t bytes)
{
    return gsi_cuda_check (
        "cudaHostRegister",
        cudaHostRegister (memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped));
}

/* N.B. cudaHostUnregister waits for the work of the GPU, as cudaFreeHost does. */
void gsi_cuda_unpin (const struct gsi_device *device, void *memory, void (*done) (void *context),
                     void *context)
{
    gsi_cuda_defer_free (device, &(struct gsi_cuda_deferred){.memory = memory,
                                                             .by = cudaHostUnregister,
                                                             .done = done,
                                                             .context = context});
}
