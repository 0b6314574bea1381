/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz - what a fuzz harness is made of; fuzz.c has the rest. */
#ifndef GS_FUZZ_FUZZ_H
#define GS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_ROOM 65536 /* bytes of the largest input */

/*
 * Writes a good input to [data] of [room] bytes, at least FUZZ_ROOM, and returns its length. Of
 * several, [number] picks one.
 */
size_t fuzz_seed (unsigned number, uint8_t *data, size_t room);

/* Does with [size] bytes at [data] what a stranger could make a rank do; returns 0. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size);

#endif /* GS_FUZZ_FUZZ_H */
