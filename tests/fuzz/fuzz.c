/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz - gives a harness its inputs. With libFuzzer the seeds come in between what that makes;
 * elsewhere, every day, seeds are damaged at random, the same ones each time.
 */
#include "fuzz/fuzz.h"

#ifdef GS_FUZZED

size_t LLVMFuzzerMutate (uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t room, unsigned seed);

size_t LLVMFuzzerCustomMutator (uint8_t *data, size_t size, size_t room, unsigned seed)
{
    return seed % 64 || room < FUZZ_ROOM ? LLVMFuzzerMutate (data, size, room)
                                         : fuzz_seed (seed / 64, data, room);
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3000

/* xorshift64: the same numbers on every machine. */
static uint64_t next (void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

/* One change: a bit, a byte, a word of a size that hurts, or the end. Returns the new length. */
static size_t damage (uint8_t *data, size_t size)
{
    static const int64_t words[] = {-1, 0, 1, INT32_MAX, INT32_MIN, INT64_MAX, 1 << 20};
    const int64_t *word = &words[next () % (sizeof (words) / sizeof (words[0]))];
    size_t at = size ? next () % size : 0, bytes = next () % 2 ? 4 : 8;

    if (!size)
        return 0;
    switch (next () % 4) {
    case 0: data[at] ^= (uint8_t) (1 << next () % 8); break;
    case 1: data[at] = (uint8_t) next (); break;
    case 2:
        at -= at % bytes;
        memcpy (data + at, word, size - at < bytes ? size - at : bytes);
        break;
    default: return next () % 8 ? size : at;
    }
    return size;
}

int main (void)
{
    static uint8_t data[FUZZ_ROOM];

    for (unsigned i = 0; i < ROUNDS; i++) {
        size_t size = fuzz_seed (i, data, sizeof (data));
        uint8_t *copy; /* without room behind it, for those who look there */
        for (uint64_t left = i < 32 ? 0 : next () % 6; left; left--)
            size = damage (data, size);
        if (!(copy = malloc (size + !size)))
            return 99;
        memcpy (copy, data, size);
        LLVMFuzzerTestOneInput (copy, size);
        free (copy);
    }
    printf ("%d inputs\n", ROUNDS);
    return 0;
}

#endif
