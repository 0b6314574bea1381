/* SPDX-License-Identifier: BSD-3-Clause */
/* halo_box - which part of an array goes where. */
#include "field/halo.h"

/* A part of the array in its own dimensions. */
struct part {
    size_t at[GS_HALO_DIMS_MAX], extents[GS_HALO_DIMS_MAX];
};

/*
 * In the dimensions before [d] a part spans the ghosts that have been filled, behind it the cells
 * alone. Neighbours in [d] have the same place in the others, and so the same part.
 */
static struct part cross_section (const gs_halo_t *h, int d)
{
    struct part part;

    for (int e = 0; e < GS_HALO_DIMS_MAX; e++) {
        size_t low = e < d && h->neighbour[e][GSI_LOW] >= 0 ? h->width[e] : 0;
        size_t high = e < d && h->neighbour[e][GSI_HIGH] >= 0 ? h->width[e] : 0;
        part.at[e] = h->width[e] - low;
        part.extents[e] = low + h->extents[e] + high;
    }
    part.extents[d] = h->width[d];
    return part;
}

static struct gsi_box box_of (const gs_halo_t *h, const struct part *part)
{
    struct gsi_box box = {.planes = part->extents[0],
                          .rows = part->extents[1],
                          .run = part->extents[2],
                          .row = h->array[2],
                          .plane = h->array[1] * h->array[2]};

    box.begin = part->at[0] * box.plane + part->at[1] * box.row + part->at[2];
    return box;
}

struct gsi_box gsi_halo_ghosts (const gs_halo_t *halo, int d, enum gsi_halo_side side)
{
    struct part part = cross_section (halo, d);

    part.at[d] = side == GSI_LOW ? 0 : halo->width[d] + halo->extents[d];
    return box_of (halo, &part);
}

struct gsi_box gsi_halo_cells (const gs_halo_t *halo, int d, enum gsi_halo_side side)
{
    struct part part = cross_section (halo, d);

    part.at[d] = side == GSI_LOW ? halo->width[d] : halo->extents[d];
    return box_of (halo, &part);
}
