/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * box - a part of a row-major array of up to three dimensions, moved between the array and
 * packed memory. It exists for hosts (host_box.c) and for GPUs (cuda/box.cu), with the same bits.
 */
#ifndef GS_DEVICE_BOX_H
#define GS_DEVICE_BOX_H

#include <stdbool.h>
#include <stddef.h>

#include "gradsync.h"

/* [planes] times [rows] runs of [run] elements. */
struct gsi_box {
    size_t planes, rows, run;
    size_t begin;      /* elements of the array before the first run */
    size_t row, plane; /* elements from a run to the next, and from a plane to the next */
};

enum gsi_box_way {
    GSI_BOX_TAKE,      /* packed = array */
    GSI_BOX_TAKE_AWAY, /* the same, and the array is 0 there afterwards */
    GSI_BOX_PUT,       /* array = packed */
    GSI_BOX_ADD /* array = array + packed, in the type; f16 and bf16 in fp32, rounded once */
};

/* [dtype] is a floating or complex one to add; [packed] has planes * rows * run elements. */
void gsi_host_box (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box, void *array,
                   void *packed);

static inline size_t gsi_box_count (const struct gsi_box *box)
{
    return box->planes * box->rows * box->run;
}

/* Whether it is one run. */
static inline bool gsi_box_is_run (const struct gsi_box *box)
{
    return (box->rows == 1 || box->run == box->row) &&
           (box->planes == 1 || box->rows * box->run == box->plane);
}

#endif /* GS_DEVICE_BOX_H */
