/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels - what GPUs do to arrays: the functions of device/runs.h and device/box.h, and shards
 * combined.
 *
 * Every function queues its kernels on [stream] of the current device and returns; arguments are
 * copied, so they are free again, also while a graph is captured. Arrays are in memory that the
 * device can reach. Those aligned to 16 bytes are moved in words of 16 bytes. Status: that of
 * the launch.
 */
#ifndef GS_CUDA_KERNELS_H
#define GS_CUDA_KERNELS_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "device/box.h"
#include "device/device.h"
#include "device/runs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gsi_host_convert: one launch for up to 1024 runs, 128 before CUDA 12.1. */
cudaError_t gsi_cuda_convert (const struct gsi_conversion *how, const struct gsi_run *runs,
                              size_t number, cudaStream_t stream);

/* gsi_host_find_nonfinite, plus [base], put in [first] on the device as the smaller of it and
 * what was there. */
cudaError_t gsi_cuda_find_nonfinite (gs_dtype_t dtype, const struct gsi_run *runs, size_t number,
                                     uint32_t base, uint32_t *first, cudaStream_t stream);

/* gsi_host_digest, added to [sum] on the device. */
cudaError_t gsi_cuda_digest (const void *data, size_t bytes, uint64_t begin, uint64_t *sum,
                             cudaStream_t stream);

/*
 * gsi_host_reduce: contribution r is the [count] elements from [src] + r * [stride] elements; dst
 * may be one. [scale] is NULL or on the device, where all contributions are read; [how]->scale is
 * not used. Sums of floating types may be scaled and divided; elsewhere cudaErrorInvalidValue.
 */
cudaError_t gsi_cuda_reduce (const struct gsi_reduction *how, void *dst, const void *src,
                             size_t stride, int sources, size_t count, const double *scale,
                             cudaStream_t stream);

/* gsi_host_quantize. */
cudaError_t gsi_cuda_quantize (const struct gsi_conversion *how, const struct gsi_run *run,
                               void *residual, cudaStream_t stream);

/*
 * gsi_host_squares, in another order, that depends on [count] alone, added to [sum] on the
 * device; [parts] has room for GSI_SQUARES_PARTS there.
 */
cudaError_t gsi_cuda_squares (gs_dtype_t dtype, const void *data, size_t count, double *parts,
                              double *sum, cudaStream_t stream);

/* gsi_host_box. */
cudaError_t gsi_cuda_box (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box,
                          void *array, void *packed, cudaStream_t stream);

/* norm_factor of struct gsi_stream_ops. */
cudaError_t gsi_cuda_norm_factor (const double *squares, size_t stride, int ranks, double most,
                                  double *factor, cudaStream_t stream);

/* move and set_flags of struct gsi_stream_ops; for up to 1024 flags. */
cudaError_t gsi_cuda_move_alive (void *dst, const void *src, size_t bytes, const uint32_t *dead,
                                 cudaStream_t stream);
cudaError_t gsi_cuda_set_flags_alive (uint32_t *first, size_t stride, int number, uint32_t value,
                                      const uint32_t *dead, cudaStream_t stream);

/*
 * load.c: loads all kernels that the functions above launch to the current device.
 * cudaErrorNoKernelImageForDevice: there is none for such a GPU.
 */
cudaError_t gsi_cuda_load_kernels (void);

#ifdef __cplusplus
}
#endif

#endif /* GS_CUDA_KERNELS_H */
