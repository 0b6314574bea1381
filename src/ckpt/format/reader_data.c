/* SPDX-License-Identifier: BSD-3-Clause */
/* reader_data - data sets of a checkpoint that is there. */
#include <string.h>

#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/format/reader.h"

static bool is_in (const struct gsi_h5_set *set, const char *group)
{
    return !strncmp (set->path, group, strlen (group));
}

struct gsi_h5_set *gsi_reader_find (const struct gsi_reader *s, const char *path)
{
    for (size_t i = 0; i < s->file.sets; i++)
        if (!strcmp (s->file.set[i].path, path))
            return &s->file.set[i];
    return NULL;
}

size_t gsi_reader_regions (const struct gsi_reader *s, uint64_t number,
                           const struct gsi_region **first)
{
    size_t begin = 0, n = 0;

    while (begin < s->trailer.regions && s->region[begin].array != number)
        begin++;
    while (begin + n < s->trailer.regions && s->region[begin + n].array == number)
        n++;
    *first = &s->region[begin];
    return n;
}

/* As regions have it; one that is no array has the number of none. */
static uint64_t number_of_set (const struct gsi_reader *s, const struct gsi_h5_set *set)
{
    uint64_t number = 0;

    while (number < s->arrays && strcmp (s->array[number]->path, set->path) != 0)
        number++;
    return number;
}

gs_status_t gsi_reader_view (const struct gsi_reader *s, const struct gsi_h5_set *set,
                             struct gsi_array_view *view)
{
    uint64_t elements = gsi_h5_bytes (set) / gs_dtype_size (set->dtype);
    int dims = set->dims;

    *view = (struct gsi_array_view){
        .dims = 1, .element = gs_dtype_size (set->dtype), .shape = {elements}};
    if (is_in (set, "/rank/") && dims) {
        view->dims = 2;
        view->shape[0] = set->shape[0];
        view->shape[1] = set->shape[0] ? elements / set->shape[0] : 0;
    } else if (is_in (set, "/sharded/") && dims && dims <= GS_FIELD_DIMS_MAX) {
        view->dims = dims;
        memcpy (view->shape, set->shape, (size_t) dims * sizeof (*set->shape));
    } else if (!is_in (set, "/replicated/")) {
        return gsi_fail (GS_ERR_FORMAT, "%s: data set %s is no array", s->path, set->path);
    }
    return GS_OK;
}

struct fill {
    struct gsi_reader *reader;
    char *data;
    size_t bytes; /* that are there */
};

static gs_status_t fill_part (void *context, const struct gsi_part *part)
{
    struct fill *f = context;
    const struct gsi_region *r = part->region;

    f->bytes += part->bytes;
    return gsi_reader_read (f->reader, r->part, f->data + part->at, part->bytes,
                            r->offset + part->offset);
}

/* From parts: what [n] regions have of it. */
static gs_status_t read_boxes (struct fill *f, struct gsi_array_view *view,
                               const struct gsi_region *region, size_t n, uint64_t begin,
                               uint64_t end)
{
    struct gsi_block whole = {.extents = {0}};
    uint64_t count;
    gs_status_t st = GS_OK;

    memcpy (whole.extents, view->shape, sizeof (view->shape));
    for (uint64_t i = begin; i < end && !st; i += count) {
        count = gsi_block_cut (&whole, view->dims, i, end, &view->mine);
        view->base = (size_t) (i - begin) * view->element;
        st = gsi_parts_each (view, region, n, fill_part, f);
    }
    return st;
}

gs_status_t gsi_reader_read_set (struct gsi_reader *s, const struct gsi_h5_set *set, uint64_t at,
                                 size_t bytes, void *data)
{
    struct fill f = {.reader = s, .data = data};
    const struct gsi_region *region;
    struct gsi_array_view view;
    size_t n;
    gs_status_t st;

    if (!s->trailer.parts || is_in (set, "/gs/"))
        return gsi_file_read (s->fd, s->path, data, bytes, set->offset + at);
    if ((st = gsi_reader_view (s, set, &view)))
        return st;
    n = gsi_reader_regions (s, number_of_set (s, set), &region);
    st = read_boxes (&f, &view, region, n, at / view.element, (at + bytes) / view.element);
    if (!st && f.bytes != bytes)
        st = gsi_fail (GS_ERR_FORMAT, "%s: its parts have not all of %s", s->path, set->path);
    return st;
}

gs_status_t gsi_reader_number (struct gsi_reader *s, const char *path, int64_t *value)
{
    const struct gsi_h5_set *set = gsi_reader_find (s, path);

    if (!set || gsi_h5_bytes (set) != sizeof (*value))
        return gsi_fail (GS_ERR_FORMAT, "%s: it has no %s", s->path, path);
    return gsi_reader_read_set (s, set, 0, sizeof (*value), value);
}

/* ---- All of it ---- */

struct scan {
    struct gsi_reader *reader;
    const struct gsi_h5_set *set;
    struct gsi_region
        whole; /* the array in one piece, as it lies in the one file that there is */
    struct gsi_array_view view;
    char *room;
    gsi_reader_bytes_f each;
    void *context;
    uint64_t bytes; /* so far */
};

static gs_status_t scan_failed (const struct scan *n)
{
    return gsi_fail (GS_ERR_FORMAT, "%s: %s has not all of %s, or more than that",
                     n->reader->path, n->reader->trailer.parts ? "its map" : "its table",
                     n->set->path);
}

static gs_status_t hand_on (void *context, const struct gsi_part *part)
{
    struct scan *n = context;

    n->bytes += part->bytes;
    return n->each (n->context, part->offset, n->room + part->at, part->bytes);
}

/* One block of a region, from element [begin] to [end] of it. */
static gs_status_t scan_block (struct scan *n, const struct gsi_region *r, uint64_t begin,
                               uint64_t end)
{
    const struct gsi_reader *s = n->reader;
    struct gsi_array_view *view = &n->view;
    uint64_t count, b = r->first + begin * view->element / GSI_BLOCK_BYTES;
    gs_status_t st;

    if (b >= s->trailer.blocks || s->table[b].bytes != (end - begin) * view->element ||
        s->table[b].offset != r->offset + begin * view->element)
        return scan_failed (n);
    st = gsi_reader_check_block (n->reader, b, n->room);
    for (uint64_t i = begin; i < end && !st; i += count) {
        count = gsi_block_cut (&r->block, view->dims, i, end, &view->mine);
        view->base = (size_t) (i - begin) * view->element;
        st = gsi_parts_each (view, &n->whole, 1, hand_on, n);
    }
    return st;
}

static gs_status_t scan_region (struct scan *n, const struct gsi_region *r)
{
    uint64_t step = GSI_BLOCK_BYTES / n->view.element;
    uint64_t elements = gsi_block_count (&r->block, n->view.dims);
    gs_status_t st = GS_OK;

    if (r->bytes % n->view.element || elements != r->bytes / n->view.element)
        return gsi_fail (GS_ERR_FORMAT, "%s: its part map is corrupt", n->reader->path);
    for (uint64_t i = 0; i < elements && !st; i += step)
        st = scan_block (n, r, i, elements - i < step ? elements : i + step);
    return st;
}

gs_status_t gsi_reader_scan (struct gsi_reader *s, const struct gsi_h5_set *set, void *room,
                             gsi_reader_bytes_f each, void *context)
{
    struct scan n = {.reader = s, .set = set, .room = room, .each = each, .context = context};
    const struct gsi_region *region = &n.whole;
    size_t regions = 1;
    gs_status_t st = gsi_reader_view (s, set, &n.view);

    if (st)
        return st;
    n.whole.offset = set->offset;
    n.whole.bytes = gsi_h5_bytes (set);
    memcpy (n.whole.block.extents, n.view.shape, sizeof (n.view.shape));
    if (s->trailer.parts)
        regions = gsi_reader_regions (s, number_of_set (s, set), &region);
    else
        while (n.whole.first < s->trailer.blocks && s->table[n.whole.first].offset != set->offset)
            n.whole.first++;
    for (size_t r = 0; r < regions && !st; r++)
        st = scan_region (&n, &region[r]);
    return st || n.bytes == n.whole.bytes ? st : scan_failed (&n);
}
