/* SPDX-License-Identifier: BSD-3-Clause */
/* dims - dimensions and elements of lists in texts, as who calls counts them. */
#include "base/dims.h"

#include <inttypes.h>
#include <stdio.h>

static _Thread_local bool turned;

void gsi_dims_turn (bool is_fortran)
{
    turned = is_fortran;
}

bool gsi_dims_are_turned (void)
{
    return turned;
}

int gsi_dims_number (int d, int dims)
{
    return turned ? dims - d : d + 1;
}

const char *gsi_dims_subscript (int i, char text[16])
{
    snprintf (text, 16, turned ? "(%d)" : "[%d]", turned ? i + 1 : i);
    return text;
}

bool gsi_dims_count (const size_t *extents, int dims, size_t *count)
{
    bool fits = true;

    *count = 1;
    for (int d = 0; d < dims; d++)
        if (!extents[d]) {
            *count = 0;
            return true; /* whatever the others are */
        }
    for (int d = 0; d < dims; d++)
        fits = fits && !__builtin_mul_overflow (*count, extents[d], count);
    return fits;
}

void gsi_dims_write (const uint64_t *extents, int dims, const char *between, char *text,
                     size_t room)
{
    size_t used = 0;

    *text = 0;
    for (int d = 0; d < dims && used < room; d++)
        used += (size_t) snprintf (text + used, room - used, "%s%" PRIu64, d ? between : "",
                                   extents[turned ? dims - 1 - d : d]);
}
