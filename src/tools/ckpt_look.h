/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_look - what is in a checkpoint. In one that has no index of gradsync's own, HDF5 looks in
 * a process of its own: what crashes that does not crash the tool.
 */
#ifndef GS_TOOLS_CKPT_LOOK_H
#define GS_TOOLS_CKPT_LOOK_H

#include <stdbool.h>

#include "ckpt/format/reader.h"

/* As gsi_source_look; says on stderr what went wrong: false. */
bool ckpt_look (const struct gsi_source *s, struct gsi_h5_file *file);

#endif /* GS_TOOLS_CKPT_LOOK_H */
