/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crc32c - the checksum of RFC 3720 (appendix B.4), also of parts that are known apart.
 *
 * CRC is affine: without initial and final inversion (raw) the parts of a whole combine by XOR,
 * each taken as if followed by as many zeros as there are bytes after it.
 */
#ifndef GS_BASE_CRC32C_H
#define GS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of [bytes] at [data], after what had [crc]; 0 to begin with. */
uint32_t gsi_crc32c (uint32_t crc, const void *data, size_t bytes);

/* Of [bytes] zeros. */
uint32_t gsi_crc32c_zeros (uint64_t bytes);

/* The raw one: after what had [raw]; 0 to begin with. */
uint32_t gsi_crc32c_raw (uint32_t raw, const void *data, size_t bytes);

/* The raw one without the help of the CPU, to compare with. */
uint32_t gsi_crc32c_plain (uint32_t raw, const void *data, size_t bytes);

/* What has [raw], followed by [bytes] zeros. */
uint32_t gsi_crc32c_shift (uint32_t raw, uint64_t bytes);

/* The same by four lookups, for a number of zeros that comes again and again. */
struct gsi_crc32c_gap {
    uint64_t bytes;
    uint32_t table[4][256];
};

void gsi_crc32c_gap_init (struct gsi_crc32c_gap *gap, uint64_t bytes);

static inline uint32_t gsi_crc32c_gap_shift (const struct gsi_crc32c_gap *gap, uint32_t raw)
{
    return gap->table[0][raw & 0xff] ^ gap->table[1][raw >> 8 & 0xff] ^
           gap->table[2][raw >> 16 & 0xff] ^ gap->table[3][raw >> 24];
}

#endif /* GS_BASE_CRC32C_H */
