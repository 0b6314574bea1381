/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * half_runs - many f16 to and from float, with F16C where the CPU has it: the bits of
 * base/half.h, those of NaNs too.
 */
#ifndef GS_DEVICE_HALF_RUNS_H
#define GS_DEVICE_HALF_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Converts [n]; returns [out]. */
const float *gsi_floats_of_f16 (float *out, const uint16_t *in, size_t n);
void gsi_f16_of_floats (uint16_t *out, const float *in, size_t n);

/* The same without F16C, and whether it is used otherwise; for tests. */
void gsi_floats_of_f16_portable (float *out, const uint16_t *in, size_t n);
void gsi_f16_of_floats_portable (uint16_t *out, const float *in, size_t n);
bool gsi_has_f16c (void);

#endif /* GS_DEVICE_HALF_RUNS_H */
