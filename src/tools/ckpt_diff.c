/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_diff - what two checkpoints have that is not the same. */
#include "tools/ckpt_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "device/element.h"

#define PIECE_BYTES ((size_t) 1 << 20)

/* What was found in one array. */
struct finding {
    uint64_t differ, first; /* elements, or parts of complex ones; number of the first */
    double a, b, largest;   /* it in both; the largest |a - b| */
};

static bool is_near (double a, double b, double tolerance)
{
    if (isnan (a) || isnan (b))
        return isnan (a) && isnan (b);
    if (isinf (a) || isinf (b))
        return a == b; /* no share of infinity is near to anything */
    return tolerance > 0 && fabs (a - b) <= tolerance * fmax (fabs (a), fabs (b));
}

/* [count] parts from number [begin] on. */
static void compare_piece (struct finding *f, gs_dtype_t part, const char *a, const char *b,
                           uint64_t begin, size_t count, double tolerance)
{
    size_t width = gs_dtype_size (part);

    for (size_t i = 0; i < count; i++) {
        double x, y;
        if (!memcmp (a + i * width, b + i * width, width))
            continue;
        x = gsi_number_at (part, a, i);
        y = gsi_number_at (part, b, i);
        if (is_near (x, y, tolerance))
            continue;
        if (!f->differ++) {
            f->first = begin + i;
            f->a = x;
            f->b = y;
        }
        f->largest = fmax (f->largest, fabs (x - y));
    }
}

static bool compare_data (struct ckpt_file *a, struct ckpt_file *b, const struct gsi_h5_set *in_a,
                          const struct gsi_h5_set *in_b, double tolerance, struct finding *f)
{
    gs_dtype_t part = gsi_part_of (in_a->dtype);
    size_t bytes = gsi_h5_bytes (in_a), width = gs_dtype_size (part);
    char *piece = malloc (2 * PIECE_BYTES);
    bool fine = piece || ckpt_complain ("out of memory");

    for (size_t at = 0; at < bytes && fine; at += PIECE_BYTES) {
        size_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        fine = ckpt_file_read (a, in_a, at, n, piece) &&
               ckpt_file_read (b, in_b, at, n, piece + PIECE_BYTES);
        if (fine)
            compare_piece (f, part, piece, piece + PIECE_BYTES, at / width, n / width, tolerance);
    }
    free (piece);
    return fine;
}

/* 1 if the array differs, 0 if not, -1 after an error. */
static int compare_set (struct ckpt_file *a, struct ckpt_file *b, const struct gsi_h5_set *in_a,
                        const struct gsi_h5_set *in_b, double tolerance)
{
    char of_a[256], of_b[256];
    struct finding f = {.differ = 0};

    ckpt_file_describe (in_a, of_a, sizeof (of_a));
    ckpt_file_describe (in_b, of_b, sizeof (of_b));
    if (strcmp (of_a, of_b)) {
        gsi_printable_put (stdout, in_a->path);
        printf (": %s and %s\n", of_a, of_b);
        return 1;
    }
    if (!compare_data (a, b, in_a, in_b, tolerance, &f))
        return -1;
    if (!f.differ)
        return 0;
    gsi_printable_put (stdout, in_a->path);
    printf (": %" PRIu64 " numbers differ, the first is number %" PRIu64
            ": %.17g and %.17g; by at most %g\n",
            f.differ, f.first, f.a, f.b, f.largest);
    return 1;
}

static bool is_own (const struct gsi_h5_set *set)
{
    return !strncmp (set->path, "/gs/", 4);
}

/* What [f] has and [other] has not. */
static int list_missing (const struct ckpt_file *f, const struct ckpt_file *other)
{
    int number = 0;

    for (size_t i = 0; i < f->reader.file.sets; i++)
        if (!is_own (&f->reader.file.set[i]) &&
            !gsi_reader_find (&other->reader, f->reader.file.set[i].path)) {
            gsi_printable_put (stdout, f->reader.file.set[i].path);
            printf (": in %s only\n", f->path);
            number++;
        }
    return number;
}

int ckpt_diff (struct ckpt_file *a, struct ckpt_file *b, double tolerance)
{
    int number = list_missing (a, b) + list_missing (b, a);

    for (size_t i = 0; i < a->reader.file.sets; i++) {
        const struct gsi_h5_set *set = &a->reader.file.set[i],
                                *there = gsi_reader_find (&b->reader, set->path);
        int differs = there && !is_own (set) ? compare_set (a, b, set, there, tolerance) : 0;
        if (differs < 0)
            return -1;
        number += differs;
    }
    return number;
}
