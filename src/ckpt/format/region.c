/* SPDX-License-Identifier: BSD-3-Clause */
/* region - where the elements of arrays lie in files. */
#include "ckpt/format/region.h"

/* What two boxes share; false if that is nothing. */
static bool intersect (const struct gsi_block *a, const struct gsi_block *b, int dims,
                       struct gsi_block *both)
{
    for (int d = 0; d < dims; d++) {
        uint64_t begin = a->offsets[d] > b->offsets[d] ? a->offsets[d] : b->offsets[d];
        uint64_t a_end = a->offsets[d] + a->extents[d], b_end = b->offsets[d] + b->extents[d];
        uint64_t end = a_end < b_end ? a_end : b_end;
        if (begin >= end)
            return false;
        both->offsets[d] = begin;
        both->extents[d] = end - begin;
    }
    return true;
}

/* The number, in [box], of the element at [index] of [both]. */
static size_t number_in (const struct gsi_block *box, const struct gsi_block *both,
                         const uint64_t *index, int dims)
{
    size_t at = 0;

    for (int d = 0; d < dims; d++)
        at = at * box->extents[d] + both->offsets[d] + index[d] - box->offsets[d];
    return at;
}

static gs_status_t each_of_region (const struct gsi_array_view *v, const struct gsi_region *r,
                                   gsi_part_f each, void *context)
{
    uint64_t index[GS_FIELD_DIMS_MAX] = {0};
    struct gsi_part part = {.region = r, .bytes = v->element};
    struct gsi_block both;
    int last = v->dims - 1, d;
    gs_status_t st;

    if (gsi_block_is_empty (&v->mine) || !intersect (&v->mine, &r->block, v->dims, &both))
        return GS_OK;
    /* From here on elements follow each other in both. */
    while (last > 0 && both.extents[last] == v->mine.extents[last] &&
           both.extents[last] == r->block.extents[last])
        last--;
    for (d = last; d < v->dims; d++)
        part.bytes *= both.extents[d];
    do {
        part.at = v->base + number_in (&v->mine, &both, index, v->dims) * v->element;
        part.offset = number_in (&r->block, &both, index, v->dims) * v->element;
        st = each (context, &part);
        for (d = last - 1; d >= 0 && ++index[d] == both.extents[d]; d--)
            index[d] = 0;
    } while (d >= 0 && !st);
    return st;
}

gs_status_t gsi_parts_each (const struct gsi_array_view *view, const struct gsi_region *region,
                            size_t regions, gsi_part_f each, void *context)
{
    gs_status_t st = GS_OK;

    for (size_t i = 0; i < regions && !st; i++)
        st = each_of_region (view, &region[i], each, context);
    return st;
}

uint64_t gsi_block_cut (const struct gsi_block *whole, int dims, uint64_t begin, uint64_t end,
                        struct gsi_block *cut)
{
    uint64_t under = 1, rest = begin, n; /* elements of an index of dimension d */
    int d = dims - 1;

    /* As far out as the indices below are all there. */
    while (d > 0 && begin % (under * whole->extents[d]) == 0 &&
           end - begin >= under * whole->extents[d])
        under *= whole->extents[d--];
    *cut = *whole;
    rest /= under;
    n = whole->extents[d] - rest % whole->extents[d];
    if (n > (end - begin) / under)
        n = (end - begin) / under;
    cut->extents[d] = n;
    for (int k = d; k >= 0; k--) {
        cut->offsets[k] += rest % whole->extents[k];
        rest /= whole->extents[k];
        if (k < d)
            cut->extents[k] = 1;
    }
    return n * under;
}
