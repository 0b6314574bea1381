/* SPDX-License-Identifier: BSD-3-Clause */
/* turbulence.h - what the command line says. */
#ifndef TURBULENCE_TURBULENCE_H
#define TURBULENCE_TURBULENCE_H

#include <stddef.h>

struct settings {
    size_t size, steps, every;
    unsigned seed;
    const char *out;
    const char *checkpoint; /* folder, or NULL */
    int resume, help;
};

/* Seconds since the program began. */
double elapsed (void);

#endif
