/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_diff - what two checkpoints have that is not the same. */
#ifndef GS_TOOLS_CKPT_DIFF_H
#define GS_TOOLS_CKPT_DIFF_H

#include "tools/ckpt_file.h"

/*
 * Prints a line for each array that differs. Elements a and b, or their parts, are the same if
 * all bits are, both are NaN, or |a - b| <= tolerance * max (|a|, |b|). Returns how many arrays
 * differ, or -1 after an error, which it has told.
 */
int ckpt_diff (struct ckpt_file *a, struct ckpt_file *b, double tolerance);

#endif /* GS_TOOLS_CKPT_DIFF_H */
