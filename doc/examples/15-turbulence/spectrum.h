/* SPDX-License-Identifier: BSD-3-Clause */
/* spectrum.h - how much energy a flow has at each wavenumber. */
#ifndef TURBULENCE_SPECTRUM_H
#define TURBULENCE_SPECTRUM_H

#include <stddef.h>

/*
 * From a field of vorticity [n][n], [energy] of the wavenumbers 0 to n / 2 - 1, in waves along a
 * side, in units of the mean square of a velocity. Returns -1 when there is no memory.
 */
int spectrum (const double *vorticity, size_t n, double *energy);

#endif
