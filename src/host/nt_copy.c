/* SPDX-License-Identifier: BSD-3-Clause */
/* nt_copy - copies to and from memory that other cores read and write in turn. */
#include "host/nt_copy.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/clock.h"

#ifdef __SSE2__

#define LINE      64
#define LEAST     ((size_t) 8 << 10) /* bytes whose time can be measured */
#define EARLY     256u /* copies that meet pages for the first time, which distorts the means */
#define TRY_EARLY 8u   /* copies between two of the other way, then */
#define TRY_LATER 64u  /* and afterwards */
#define WORTH     2.5  /* times as slow as past the caches: then reading from memory pays */
#define RISE      0.125
#define FALL      0.5
#define OUTLIER   4 /* times the mean: a sample counts as that at most */

static void copy_past (void *dst, const void *src, size_t bytes)
{
    size_t done = 0;

    for (; done + sizeof (__m128i) <= bytes; done += sizeof (__m128i))
        _mm_stream_si128 ((__m128i *) ((char *) dst + done),
                          _mm_loadu_si128 ((const __m128i *) ((const char *) src + done)));
    _mm_sfence ();
    memcpy ((char *) dst + done, (const char *) src + done, bytes - done);
}

/*
 * Takes a sample into a mean. Less is believed sooner than more, which may be that the process
 * was put aside in between.
 */
static void learn_mean (double *mean, double sample)
{
    if (!*mean)
        *mean = sample;
    else if (sample < *mean)
        *mean += FALL * (sample - *mean);
    else
        *mean += RISE * ((sample < OUTLIER * *mean ? sample : OUTLIER * *mean) - *mean);
}

void gsi_nt_copy_out (struct gsi_stream *s, void *dst, const void *src, size_t bytes)
{
    bool past = s->plain_ns > WORTH * s->past_ns && s->past_ns;
    int64_t begin_ns;

    if (bytes < LEAST || (uintptr_t) dst % sizeof (__m128i)) {
        memcpy (dst, src, bytes);
        return;
    }
    if (s->copies % (s->copies < EARLY ? TRY_EARLY : TRY_LATER) == 0)
        past = !past;
    s->copies++;
    begin_ns = gsi_now_ns ();
    if (past)
        copy_past (dst, src, bytes);
    else
        memcpy (dst, src, bytes);
    learn_mean (past ? &s->past_ns : &s->plain_ns,
                (double) (gsi_now_ns () - begin_ns) / ((double) bytes / LINE));
}

/* N.B. memcpy by "rep movsb" takes half as long again here. */
void gsi_nt_copy_in (void *dst, const void *src, size_t bytes)
{
    size_t done = 0;

    for (; done + sizeof (__m128i) <= bytes; done += sizeof (__m128i)) {
        __m128i line = _mm_loadu_si128 ((const __m128i *) ((const char *) src + done));
        __asm__ volatile("" : "+x"(line)); /* else the compiler makes a memcpy of it */
        _mm_storeu_si128 ((__m128i *) ((char *) dst + done), line);
    }
    memcpy ((char *) dst + done, (const char *) src + done, bytes - done);
}

#else /* no such stores */

void gsi_nt_copy_out (struct gsi_stream *s, void *dst, const void *src, size_t bytes)
{
    (void) s;
    memcpy (dst, src, bytes);
}

void gsi_nt_copy_in (void *dst, const void *src, size_t bytes)
{
    memcpy (dst, src, bytes);
}

#endif
