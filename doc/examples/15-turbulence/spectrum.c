/* SPDX-License-Identifier: BSD-3-Clause */
/* spectrum.c - a plain Fourier transform, along x and then along y: fields here are small. */
#include "spectrum.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The coefficient of wavenumber [k] of [count] complex numbers, whose imaginary part may be NULL.
 */
static void coefficient (const double *const *in, size_t count, size_t k, const double *wave,
                         double *out)
{
    out[0] = out[1] = 0;
    for (size_t i = 0; i < count; i++) {
        double c = wave[k * i % count], s = wave[count + k * i % count];
        double re = in[0][i], im = in[1] ? in[1][i] : 0;
        out[0] += re * c + im * s;
        out[1] += im * c - re * s;
    }
}

/* Adds the energy of the waves ([kx], any ky), whose coefficients along x are [rows]. */
static void add_waves (const double *const *rows, size_t n, size_t kx, const double *wave,
                       double *energy)
{
    double twice = kx && 2 * kx < n ? 2 : 1; /* kx stands for -kx as well */

    for (size_t ky = 0; ky < n; ky++) {
        double w[2], x = (double) kx, y = ky <= n / 2 ? (double) ky : (double) ky - (double) n;
        size_t k = (size_t) (sqrt (x * x + y * y) + 0.5);
        double to_velocity = 2 * acos (-1) / (double) n * sqrt (x * x + y * y);
        if (k == 0 || k >= n / 2)
            continue;
        coefficient (rows, n, ky, wave, w);
        energy[k] += twice * (w[0] * w[0] + w[1] * w[1]) / (2 * to_velocity * to_velocity);
    }
}

int spectrum (const double *vorticity, size_t n, double *energy)
{
    double *wave = malloc (4 * n * sizeof *wave),
           scale = 1 / ((double) (n * n) * (double) (n * n));
    double *re, *im;

    memset (energy, 0, n / 2 * sizeof *energy);
    if (!wave)
        return -1;
    re = wave + 2 * n;
    im = wave + 3 * n;
    for (size_t i = 0; i < n; i++) {
        wave[i] = cos (2 * acos (-1) * (double) i / (double) n);
        wave[n + i] = sin (2 * acos (-1) * (double) i / (double) n);
    }
    for (size_t kx = 0; kx < n / 2; kx++) {
        const double *rows[2] = {re, im};
        for (size_t y = 0; y < n; y++) {
            const double *row[2] = {vorticity + y * n, NULL};
            double w[2];
            coefficient (row, n, kx, wave, w);
            re[y] = w[0];
            im[y] = w[1];
        }
        add_waves (rows, n, kx, wave, energy);
    }
    for (size_t k = 0; k < n / 2; k++)
        energy[k] *= scale;
    free (wave);
    return 0;
}
