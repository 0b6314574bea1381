/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c - known checksums, the CPU's instruction against tables, and checksums of parts that are
 * put together.
 */
#include "base/crc32c.h"

#include "unit/unit.h"

#define BYTES ((size_t) 40000)

static unsigned char data[BYTES + 8];

static void fill (uint64_t seed)
{
    for (size_t i = 0; i < sizeof (data); i++)
        data[i] = (unsigned char) (unit_random (&seed) >> 40);
}

/* RFC 3720, B.4; and the catalogue's check value. */
START_TEST (known)
{
    unsigned char bytes[32];

    ck_assert_uint_eq (gsi_crc32c (0, "123456789", 9), 0xe3069283);
    memset (bytes, 0, 32);
    ck_assert_uint_eq (gsi_crc32c (0, bytes, 32), 0x8a9136aa);
    memset (bytes, 0xff, 32);
    ck_assert_uint_eq (gsi_crc32c (0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char) i;
    ck_assert_uint_eq (gsi_crc32c (0, bytes, 32), 0x46dd794e);
    ck_assert_uint_eq (gsi_crc32c (0, NULL, 0), 0);
}
END_TEST

START_TEST (with_and_without_instruction)
{
    fill (1);
    for (size_t bytes = 0; bytes < BYTES; bytes += bytes < 200 ? 1 : 977)
        for (size_t at = 0; at < 8; at++)
            unit_check (gsi_crc32c_raw (5, data + at, bytes) ==
                            gsi_crc32c_plain (5, data + at, bytes),
                        "%zu bytes from %zu on differ", bytes, at);
}
END_TEST

START_TEST (goes_on)
{
    fill (2);
    for (size_t bytes = 0; bytes < BYTES; bytes += 1 + bytes / 7) {
        uint32_t first = gsi_crc32c (0, data, bytes);
        unit_check (gsi_crc32c (first, data + bytes, BYTES - bytes) ==
                        gsi_crc32c (0, data, BYTES),
                    "cut at %zu", bytes);
    }
}
END_TEST

START_TEST (zeros)
{
    static const size_t lengths[] = {0, 1, 7, 8, 4096, 40000};

    memset (data, 0, sizeof (data));
    for (size_t i = 0; i < sizeof (lengths) / sizeof (*lengths); i++)
        ck_assert_uint_eq (gsi_crc32c_zeros (lengths[i]), gsi_crc32c (0, data, lengths[i]));
}
END_TEST

/* A whole of three parts, each of which knows only what lies behind it. */
START_TEST (parts)
{
    struct gsi_crc32c_gap gap;

    fill (3);
    for (size_t a = 0; a < BYTES; a += 3001)
        for (size_t b = a; b < BYTES; b += 2003) {
            uint32_t sum = gsi_crc32c_shift (gsi_crc32c_raw (0, data, a), BYTES - a);
            sum ^= gsi_crc32c_shift (gsi_crc32c_raw (0, data + a, b - a), BYTES - b);
            sum ^= gsi_crc32c_raw (0, data + b, BYTES - b);
            sum ^= gsi_crc32c_zeros (BYTES);
            unit_check (sum == gsi_crc32c (0, data, BYTES), "cut at %zu and %zu", a, b);
            gsi_crc32c_gap_init (&gap, b - a);
            unit_check (gsi_crc32c_gap_shift (&gap, 0x12345678) ==
                            gsi_crc32c_shift (0x12345678, b - a),
                        "a gap of %zu", b - a);
        }
}
END_TEST

UNIT_SUITE ("crc32c", 60, known, with_and_without_instruction, goes_on, zeros, parts)
