/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target_clones - loops for the CPU at hand: a function with GSI_TARGET_CLONES before it is
 * compiled for AVX2 as well, and the loader takes the one that the CPU can run. Both give the
 * same bits: AVX2 alone brings no fused multiplication and addition. Elsewhere it means nothing.
 */
#ifndef GS_DEVICE_TARGET_CLONES_H
#define GS_DEVICE_TARGET_CLONES_H

#include <stddef.h>

#if defined(__has_attribute) && defined(__x86_64__) && defined(__GLIBC__)
/* A sanitizer's run-time is not there yet when the loader chooses. */
#if __has_attribute(target_clones) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define GSI_TARGET_CLONES __attribute__ ((target_clones ("avx2", "default")))
#endif
#endif
#ifndef GSI_TARGET_CLONES
#define GSI_TARGET_CLONES
#endif

#endif /* GS_DEVICE_TARGET_CLONES_H */
