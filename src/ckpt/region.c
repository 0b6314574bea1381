/* SPDX-License-Identifier: BSD-3-Clause */
/* region - where the elements of arrays lie in files, and which of them are whose. */
#include "ckpt/region.h"

#define UNIT_BYTES ((size_t) 64 << 10) /* of replicated arrays that one rank writes at least */

/* ---- Whose ---- */

void gsi_view_share (const gs_ckpt_t *c, int i, int index, int number, size_t *begin,
                     size_t *count)
{
    const struct gsi_ckpt_array *a = &c->array[i];
    size_t unit = UNIT_BYTES / gs_dtype_size (a->dtype), n = (size_t) number;
    size_t units = (a->count + unit - 1) / unit;
    size_t turn = ((size_t) index + (size_t) i) % n; /* small arrays go round */
    size_t end = (units / n * (turn + 1) + units % n * (turn + 1) / n) * unit;

    *begin = (units / n * turn + units % n * turn / n) * unit;
    *begin = *begin < a->count ? *begin : a->count;
    *count = (end < a->count ? end : a->count) - *begin;
}

void gsi_view_open (const gs_ckpt_t *c, int i, uint64_t ranks, struct gsi_view *view)
{
    const struct gsi_ckpt_array *a = &c->array[i];

    *view =
        (struct gsi_view){.dims = 1, .element = gs_dtype_size (a->dtype), .shape = {a->count}};
    if (a->kind == GSI_CKPT_PER_RANK) {
        view->dims = 2;
        view->shape[0] = ranks;
        view->shape[1] = a->count;
    } else if (a->kind == GSI_CKPT_SHARDED) {
        view->dims = a->dims;
        for (int d = 0; d < a->dims; d++)
            view->shape[d] = a->shape[d];
    }
}

/* Fills in [mine]: of a replicated array the share of [index] of [number]. */
static void take_share (const gs_ckpt_t *c, int i, int slot, int index, int number,
                        struct gsi_view *view)
{
    const struct gsi_ckpt_array *a = &c->array[i];
    size_t begin = 0, count = 0;

    if (a->kind == GSI_CKPT_SHARDED) {
        view->mine = a->block;
    } else if (a->kind == GSI_CKPT_PER_RANK) {
        view->mine = (struct gsi_block){{a->count ? 1 : 0, a->count}, {(uint64_t) slot}};
    } else {
        if (index >= 0)
            gsi_view_share (c, i, index, number, &begin, &count);
        view->mine = (struct gsi_block){{count}, {begin}};
        view->base = begin * view->element;
    }
}

void gsi_view_to_write (const gs_ckpt_t *c, int i, struct gsi_view *view)
{
    gsi_view_open (c, i, (uint64_t) c->size, view);
    take_share (c, i, c->rank, c->writer, c->writers, view);
}

void gsi_view_to_read (const gs_ckpt_t *c, int i, uint64_t ranks, int slot, struct gsi_view *view)
{
    gsi_view_open (c, i, ranks, view);
    take_share (c, i, slot, c->rank, c->size, view);
}

/* ---- Where ---- */

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

static gs_status_t each_of_region (const struct gsi_view *v, const struct gsi_region *r,
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

gs_status_t gsi_parts_each (const struct gsi_view *view, const struct gsi_region *region,
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
