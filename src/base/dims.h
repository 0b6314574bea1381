/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dims - dimensions and elements of lists in texts, as who calls counts them: C, or Fortran,
 * whose first dimension is C's last. Of each thread, which counts as C does until it says
 * otherwise.
 */
#ifndef GS_BASE_DIMS_H
#define GS_BASE_DIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says that Fortran calls, or that it does no longer. */
void gsi_dims_turn (bool is_fortran);

bool gsi_dims_are_turned (void);

/* The number, from 1, of dimension [d] of [dims], which are in C's order and from 0. */
int gsi_dims_number (int d, int dims);

/* "[2]", or "(3)": the subscript of element [i], from 0, of a list. */
const char *gsi_dims_subscript (int i, char text[16]);

/* The number of elements of [dims] extents; false if size_t does not hold it. */
bool gsi_dims_count (const size_t *extents, int dims, size_t *count);

/* "4 x 3" with [between] " x ": extents in C's order as who calls has them; cut to [room]. */
void gsi_dims_write (const uint64_t *extents, int dims, const char *between, char *text,
                     size_t room);

#endif /* GS_BASE_DIMS_H */
