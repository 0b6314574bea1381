/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device - memory and arithmetic of what holds a rank's arrays.
 *
 * To add a device: write device_NAME.c with a const struct gsi_device_ops gsi_device_NAME,
 * declare it below, and give it a place in gsi_device_open ().
 */
#ifndef GS_DEVICE_DEVICE_H
#define GS_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

#define GSI_DEVICE_ID_BYTES 64 /* room for an identity, with the final 0 */

struct gsi_device_ops;

struct gsi_device {
    const struct gsi_device_ops *ops;
    int ordinal;                  /* of the GPU, or GS_DEVICE_HOST */
    char id[GSI_DEVICE_ID_BYTES]; /* what tells two devices of a node apart; "" on hosts */
};

/* How contributions are combined: dst[i] = round (op over r of scale_r * src_r[i] / divisor). */
struct gsi_reduction {
    gs_dtype_t dtype;
    gs_op_t op;
    double divisor;      /* 1: none; else op is GS_SUM and dtype is not an integer */
    const double *scale; /* [sources], NULL: all 1; a source with scale 0 is not read */
};

struct gsi_device_ops {
    const char *name;

    /* (required) Opens [ordinal] or GS_DEVICE_AUTO for the rank [local_rank] of its node. */
    gs_status_t (*open) (int ordinal, struct gsi_device **out);

    /* (required) */
    void (*close) (struct gsi_device *device);

    /*
     * (required) Combines [count] elements of [sources] arrays in the order given, so the same
     * inputs give the same bits. f16 and bf16 are accumulated in fp32 and rounded once; the
     * other types in themselves. dst may be one of the sources, no other overlap.
     */
    void (*reduce) (const struct gsi_reduction *how, void *dst, const void *const *src,
                    int sources, size_t count);
};

/* Host memory, plain loops. */
extern const struct gsi_device_ops gsi_device_host;

/* Opens what the option asks for. */
gs_status_t gsi_device_open (int ordinal, struct gsi_device **out);

/* NULL is allowed. */
void gsi_device_close (struct gsi_device *device);

/* The reduction of host memory, shared by every transport between hosts. */
void gsi_host_reduce (const struct gsi_reduction *how, void *dst, const void *const *src,
                      int sources, size_t count);

#endif /* GS_DEVICE_DEVICE_H */
