/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_vtk - fields of a checkpoint in a file of their own, which ParaView and VTK open. */
#ifndef GS_TOOLS_CKPT_VTK_H
#define GS_TOOLS_CKPT_VTK_H

#include "tools/ckpt_file.h"

/* What was asked for. Dimensions are in VTK's order, x first. */
struct ckpt_vtk_request {
    const char *output; /* NULL: the name of the checkpoint, or of its folder, and .hdf */
    const char **field; /* [fields] names; none: those that there are */
    int fields;
    double origin[3], spacing[3];
    int origins, spacings; /* numbers given: 2 or 3; 0: none */
    bool cells;            /* where fields are that the checkpoint does not place on a grid */
    bool force;
};

/* A field and where its numbers are. */
struct ckpt_vtk_field {
    const struct gsi_h5_set *set;
    char *name; /* for VTK */
    enum gsi_h5_place place;
};

struct ckpt_vtk_image {
    struct gsi_h5_grid grid;
    struct ckpt_vtk_field *field; /* [fields] */
    int fields;
};

/* Makes the file, and says what is in it. False: it has told on stderr why not. */
bool ckpt_vtk (const char *path, const struct ckpt_vtk_request *request);

/* How many numbers [field] has at each place. */
size_t ckpt_vtk_components (const struct ckpt_vtk_image *image,
                            const struct ckpt_vtk_field *field);

/*
 * ckpt_vtk_file.c: writes the file [to], which is not there yet, of the kind that [ending] says:
 * XML for .vti, else VTKHDF. All data are compared with their checksums on the way.
 */
bool ckpt_vtk_write (struct ckpt_file *f, const struct ckpt_vtk_image *image, const char *ending,
                     const char *to);

#endif /* GS_TOOLS_CKPT_VTK_H */
