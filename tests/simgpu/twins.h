/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * twins - how the simulated CUDA runtime finds what a kernel does: libsimtwins.so, which lies
 * beside the runtime and is loaded at the first launch, has a host function for each kernel.
 */
#ifndef GS_TESTS_SIMGPU_TWINS_H
#define GS_TESTS_SIMGPU_TWINS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_twin {
    const char *name; /* mangled name as nvcc registers it */
    int parameters;
    const size_t *bytes;                                                 /* of each parameter */
    void (*run) (unsigned grid, unsigned block, void *const *arguments); /* runs the whole grid,
                                                                            synchronously */
};

const struct sim_twin *sim_twin_find (const char *name); /* NULL if there is none */

#ifdef __cplusplus
}
#endif

#endif /* GS_TESTS_SIMGPU_TWINS_H */
