/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo - ghost layers of a field that is cut in blocks. Private to halo*.c.
 *
 * Dimensions go one after the other, and each takes along the ghosts that those before it have
 * filled: so edges and corners come with the faces, in two messages a dimension instead of one
 * for each of the 26 neighbours, of which 20 would be tiny. The adjoint goes the same way back.
 */
#ifndef GS_FIELD_HALO_H
#define GS_FIELD_HALO_H

#include "call/call.h"
#include "device/box.h"

#define GSI_HALO_MAGIC UINT64_C (0x67726164686f6c6f)

enum gsi_halo_side { GSI_LOW, GSI_HIGH, GSI_SIDES };

/* Packed ghosts on their way, in one kind of memory. */
struct gsi_halo_rooms {
    char *memory, *out[GSI_SIDES], *in[GSI_SIDES];
};

/* A field of fewer dimensions has more in front of them, of one cell and without ghosts. */
struct gs_halo {
    uint64_t magic;
    gs_comm_t *comm;
    int argument; /* that tells calls on it from those on others, the same on all ranks */
    gs_dtype_t dtype;
    size_t element; /* bytes */
    size_t extents[GS_HALO_DIMS_MAX], width[GS_HALO_DIMS_MAX];
    size_t array[GS_HALO_DIMS_MAX];             /* extents with ghosts */
    size_t count, cells;                        /* elements of the array; cells of all ranks */
    int neighbour[GS_HALO_DIMS_MAX][GSI_SIDES]; /* rank, or -1 */
    struct gsi_halo_rooms host, there;          /* the latter on the GPU of the communicator */
    struct gsi_event *free; /* (GPUs) what was queued last, in whatever stream */
};

/* halo_create.c: GS_OK if [halo] is one; names [call]. */
gs_status_t gsi_halo_valid (const gs_halo_t *halo, const char *call);

#endif /* GS_FIELD_HALO_H */
