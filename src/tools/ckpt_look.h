/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_look - what is in a checkpoint. In one that has no index of gradsync's own, HDF5 looks in
 * a process of its own: what crashes that does not crash the tool.
 */
#ifndef GS_TOOLS_CKPT_LOOK_H
#define GS_TOOLS_CKPT_LOOK_H

#include <stdbool.h>

#include "ckpt/format/reader.h"

/* As gsi_reader_list; says on stderr what went wrong: false. */
bool ckpt_look (struct gsi_reader *s);

#endif /* GS_TOOLS_CKPT_LOOK_H */
