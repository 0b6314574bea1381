/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fields.c - a checkpoint that nobody goes on from: each rank writes its block, and
 * gs_ckpt_set_grid has ParaView find the fields on their grid.
 */
#include "fields.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A name by which ParaView knows the file. If it cannot be made, the file is there all the same.
 */
static void make_link (const char *folder, size_t step)
{
    const char *last = strrchr (folder, '/');
    char target[4096], path[4096];

    snprintf (target, sizeof target, "%s/ck-%012zu.h5", last ? last + 1 : folder, step);
    snprintf (path, sizeof path, "%s.hdf", folder);
    if ((unlink (path), symlink (target, path)))
        perror (path);
}

gs_status_t fields_write (const struct block *b, const char *folder, size_t step,
                          double *const *vorticity)
{
    static const char *const name[FIELDS] = {"vorticity/no_closure", "vorticity/smagorinsky",
                                             "vorticity/network", "vorticity/fine"};
    const size_t extents[2] = {b->ny, b->nx}, offsets[2] = {b->y0, b->x0};
    const size_t shape[2] = {b->n, b->n};
    const double spacing[2] = {FACTOR, FACTOR}; /* in cells of the fine grid */
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt = NULL;
    gs_status_t st;

    opts.create_folder = 1;
    opts.overwrite = 1;
    st = gs_ckpt_create (b->comm, folder, &opts, &ckpt);
    for (int k = 0; k < FIELDS && !st; k++) {
        st =
            gs_ckpt_add_sharded (ckpt, name[k], 2, extents, offsets, shape, GS_F64, vorticity[k]);
        if (!st)
            st = gs_ckpt_set_grid (ckpt, name[k], GS_CKPT_CELLS, 2, NULL, spacing);
    }
    if (!st)
        st = gs_ckpt_commit (ckpt);
    if (!st)
        st = gs_ckpt_write (ckpt, (int64_t) step, NULL);
    if (!st && gs_comm_rank (b->comm) == 0)
        make_link (folder, step);
    if (st)
        return gs_ckpt_destroy (ckpt), st;
    return gs_ckpt_destroy (ckpt);
}
