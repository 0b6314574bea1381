/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nt_copy - copies to and from memory that other cores read and write in turn.
 *
 * A plain store asks the core that had the line last for it, one line after the other: on an EPYC
 * 6 ns a line within one L3 cache, 28 between two. A store past the caches asks nobody and takes
 * 4, but then the others read from memory, which makes the whole half as slow again within one L3
 * cache. Where the ranks are, and so which is better, may change: what it takes is measured.
 */
#ifndef GS_HOST_NT_COPY_H
#define GS_HOST_NT_COPY_H

#include <stddef.h>

/* What a line has taken lately, in ns, each way. Zeros to begin with. */
struct gsi_stream {
    double plain_ns, past_ns;
    unsigned copies;
};

/* Copies [bytes] to where other cores read them next; stores that follow do not overtake. */
void gsi_nt_copy_out (struct gsi_stream *stream, void *dst, const void *src, size_t bytes);

/* Copies [bytes] from where another core has written them. */
void gsi_nt_copy_in (void *dst, const void *src, size_t bytes);

#endif /* GS_HOST_NT_COPY_H */
