/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_script - a program in Python that reads a checkpoint with h5py. */
#ifndef GS_TOOLS_CKPT_SCRIPT_H
#define GS_TOOLS_CKPT_SCRIPT_H

#include "tools/ckpt_file.h"

/* Prints it, with the names of all arrays. */
void ckpt_script_print (const struct ckpt_file *f);

#endif /* GS_TOOLS_CKPT_SCRIPT_H */
