/* SPDX-License-Identifier: BSD-3-Clause */
/* fields.h - fields of vorticity as a file for ParaView. */
#ifndef TURBULENCE_FIELDS_H
#define TURBULENCE_FIELDS_H

#include "evaluate.h"

/*
 * Writes [folder]/ck-STEP.h5 with the [vorticity] of all FIELDS, [ny][nx] of this rank's block
 * [b] of the coarse grid, and makes [folder].hdf a link to it, since ParaView knows files by that
 * ending. Collective.
 */
gs_status_t fields_write (const struct block *b, const char *folder, size_t step,
                          double *const *vorticity);

#endif
