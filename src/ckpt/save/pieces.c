/* SPDX-License-Identifier: BSD-3-Clause */
/* pieces - what a rank sees to in a save. */
#include "ckpt/save/save.h"

#include "device/element.h"
#include "device/runs.h"

#define ALIGN         ((uint64_t) 8) /* digests are made of such words */
#define SAMPLE_BYTES  ((size_t) 4096)
#define SAMPLE_EVERY  100 /* one of so many */
#define SAMPLED_WHOLE 16  /* an array of so few samples */

struct walk {
    const struct gsi_save_pieces *how;
    gsi_piece_f each; /* NULL: nobody */
    void *context;
    int array;
    uint64_t pos;
};

/* Cuts what is longer than a piece, or goes beyond the end of the ring. */
static gs_status_t cut_part (void *context, const struct gsi_part *part)
{
    struct walk *w = context;
    size_t room = w->how->room, n;
    gs_status_t st = GS_OK;

    w->pos = (w->pos + ALIGN - 1) / ALIGN * ALIGN;
    for (size_t done = 0; done < part->bytes && !st; done += n) {
        struct gsi_piece piece = {.array = w->array,
                                  .at = part->at + done,
                                  .region = part->region,
                                  .offset = part->offset + done,
                                  .pos = w->pos};
        n = part->bytes - done < w->how->most ? part->bytes - done : w->how->most;
        if (room && n > room - w->pos % room)
            n = (size_t) (room - w->pos % room);
        piece.bytes = n;
        w->pos += n;
        if (w->each)
            st = w->each (w->context, &piece);
    }
    return st;
}

/* ---- Samples ---- */

static size_t array_bytes (const struct gsi_ckpt_array *a)
{
    return a->count * gs_dtype_size (a->dtype);
}

static bool is_sampled (const struct gsi_save_pieces *how, int array, size_t number)
{
    size_t samples = (array_bytes (&how->c->array[array]) + SAMPLE_BYTES - 1) / SAMPLE_BYTES;

    if (how->digests == GS_CKPT_COMPARE_FULL || samples <= SAMPLED_WHOLE || !number ||
        number == samples - 1)
        return true;
    return gsi_digest_word ((uint64_t) how->step * 1000003u + (uint64_t) array, number) %
               SAMPLE_EVERY ==
           0;
}

/* Of [begin] to [end] of a replicated array, what has to be seen for its digest. */
static gs_status_t cut_others (struct walk *w, size_t begin, size_t end)
{
    gs_status_t st = GS_OK;

    if (begin == end)
        return GS_OK;
    if (w->how->digests == GS_CKPT_COMPARE_FULL)
        return cut_part (w, &(struct gsi_part){.at = begin, .bytes = end - begin});
    /* N.B. A share begins and ends where a sample does, or the array. */
    for (size_t at = begin; at < end && !st; at += SAMPLE_BYTES) {
        size_t n = end - at < SAMPLE_BYTES ? end - at : SAMPLE_BYTES;
        if (is_sampled (w->how, w->array, at / SAMPLE_BYTES))
            st = cut_part (w, &(struct gsi_part){.at = at, .bytes = n});
    }
    return st;
}

static gs_status_t see_others (struct walk *w)
{
    const gs_ckpt_t *c = w->how->c;
    const struct gsi_ckpt_array *a = &c->array[w->array];
    struct gsi_array_view view;
    gs_status_t st;

    if (a->kind != GSI_CKPT_REPLICATED)
        return GS_OK;
    gsi_array_view_to_write (c, w->array, &view);
    st = cut_others (w, 0, view.base);
    return st ? st
              : cut_others (w, view.base + view.mine.extents[0] * view.element, array_bytes (a));
}

uint64_t gsi_save_pieces_digest (const struct gsi_save_pieces *how, const struct gsi_piece *piece,
                                 const void *data)
{
    const char *at = data;
    uint64_t digest = 0;
    size_t n;

    if (how->digests == GS_CKPT_COMPARE_FULL)
        return gsi_host_digest (data, piece->bytes, piece->at / ALIGN);
    for (size_t done = 0; done < piece->bytes; done += n) {
        size_t number = (piece->at + done) / SAMPLE_BYTES;
        n = (number + 1) * SAMPLE_BYTES - (piece->at + done);
        n = n < piece->bytes - done ? n : piece->bytes - done;
        if (is_sampled (how, piece->array, number))
            digest += gsi_host_digest (at + done, n, (piece->at + done) / ALIGN);
    }
    return digest;
}

/* ---- All ---- */

static gs_status_t see_own (struct walk *w)
{
    const gs_ckpt_t *c = w->how->c;
    size_t first = c->first_region[w->array];
    struct gsi_array_view view;

    gsi_array_view_to_write (c, w->array, &view);
    return gsi_parts_each (&view, &c->region[first], c->first_region[w->array + 1] - first,
                           cut_part, w);
}

gs_status_t gsi_save_pieces_each (const struct gsi_save_pieces *how, gsi_piece_f each,
                                  void *context, uint64_t *total)
{
    struct walk w = {.how = how, .each = each, .context = context};
    int passes = how->digests == GS_CKPT_COMPARE_NONE ? 1 : 2;
    gs_status_t st = GS_OK;

    for (int pass = 0; pass < passes; pass++)
        for (w.array = 0; w.array < how->c->arrays && !st; w.array++)
            st = pass ? see_others (&w) : see_own (&w);
    if (total)
        *total = w.pos;
    return st;
}
