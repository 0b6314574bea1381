/* SPDX-License-Identifier: BSD-3-Clause */
/* share - which elements of arrays are whose, when they are written and read. */
#include "ckpt/plan/plan.h"

#define UNIT_BYTES ((size_t) 64 << 10) /* of replicated arrays that one rank writes at least */

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
