/* SPDX-License-Identifier: BSD-3-Clause */
/* index - what is in a file, as gradsync itself has it. */
#include "ckpt/format/metadata.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"

/* All of it is words of 8 bytes, texts are filled up with zeros: HEAD words; for each data set
 * SET words, its extents, its path, and for each attribute two lengths, name and text. */
enum { HEAD_VERSION, HEAD_SETS, HEAD_DIMS, HEAD_POINTS, HEAD = HEAD_POINTS + 9 };
enum { SET_DTYPE, SET_DIMS, SET_OFFSET, SET_PLACE, SET_TEXTS, SET_PATH_BYTES, SET };

#define TEXTS_MAX 65535 /* attributes of a data set; what HDF5 allows at most */

static size_t padded_bytes (size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* ---- Writing ---- */

/* Each of these writes at byte [at] of [out], unless that is NULL, and gives the byte behind. */

static size_t index_put (char *out, size_t at, const void *data, size_t bytes)
{
    if (out) {
        memset (out + at, 0, padded_bytes (bytes));
        memcpy (out + at, data, bytes);
    }
    return at + padded_bytes (bytes);
}

static size_t put_set (char *out, size_t at, const struct gsi_h5_set *s)
{
    uint64_t words[SET] = {
        [SET_DTYPE] = (uint64_t) s->dtype, [SET_DIMS] = (uint64_t) s->dims,
        [SET_OFFSET] = s->offset,          [SET_PLACE] = (uint64_t) s->place,
        [SET_TEXTS] = (uint64_t) s->texts, [SET_PATH_BYTES] = strlen (s->path)};

    at = index_put (out, at, words, sizeof (words));
    at = index_put (out, at, s->shape, (size_t) s->dims * sizeof (*s->shape));
    at = index_put (out, at, s->path, strlen (s->path));
    for (int i = 0; i < s->texts; i++) {
        uint64_t lengths[] = {strlen (s->text[i].name), strlen (s->text[i].text)};
        at = index_put (out, at, lengths, sizeof (lengths));
        at = index_put (out, at, s->text[i].name, lengths[0]);
        at = index_put (out, at, s->text[i].text, lengths[1]);
    }
    return at;
}

size_t gsi_index_write (const struct gsi_h5_set *set, size_t number,
                        const struct gsi_h5_grid *grid, void *out)
{
    uint64_t head[HEAD] = {[HEAD_VERSION] = GSI_INDEX_VERSION};
    size_t at = sizeof (head);

    for (size_t i = 0; i < number; i++) {
        if (!set[i].path)
            continue;
        at = put_set (out, at, &set[i]);
        head[HEAD_SETS]++;
    }
    head[HEAD_DIMS] = grid ? (uint64_t) grid->dims : 0;
    if (grid && grid->dims) {
        memcpy (&head[HEAD_POINTS], grid->points, sizeof (grid->points));
        memcpy (&head[HEAD_POINTS + 3], grid->origin, sizeof (grid->origin));
        memcpy (&head[HEAD_POINTS + 6], grid->spacing, sizeof (grid->spacing));
    }
    index_put (out, 0, head, sizeof (head));
    return at;
}

/* ---- Reading ---- */

struct reader {
    const char *at;
    size_t left;
    uint64_t file_bytes;
    bool parts;
};

/* The next [bytes]; NULL: there are not so many. */
static const void *index_take (struct reader *r, uint64_t bytes)
{
    const char *at = r->at;

    if (bytes > r->left || padded_bytes ((size_t) bytes) > r->left)
        return NULL;
    r->at += padded_bytes ((size_t) bytes);
    r->left -= padded_bytes ((size_t) bytes);
    return at;
}

static bool take_words (struct reader *r, uint64_t *words, size_t number)
{
    const void *from = index_take (r, number * sizeof (*words));

    if (from)
        memcpy (words, from, number * sizeof (*words));
    return from;
}

/* A text without a zero in it, of a byte or more; NULL: none, or *[st] is no memory. */
static char *take_text (struct reader *r, uint64_t bytes, gs_status_t *st)
{
    const char *from = bytes ? index_take (r, bytes) : NULL;
    char *text;

    if (!from || memchr (from, 0, (size_t) bytes))
        return NULL;
    if ((text = strndup (from, (size_t) bytes)))
        return text;
    *st = GS_ERR_NOMEM;
    return NULL;
}

static bool take_attribute (struct reader *r, struct gsi_h5_set *s, gs_status_t *st)
{
    struct gsi_h5_text *t = &s->text[s->texts];
    uint64_t lengths[2];

    if (!take_words (r, lengths, 2) || !(t->name = take_text (r, lengths[0], st)))
        return false;
    s->texts++;
    t->text = take_text (r, lengths[1], st);
    return t->text;
}

/* Whether the data can be where they are said to be. */
static bool lies_well (const struct reader *r, const struct gsi_h5_set *s)
{
    size_t bytes = gsi_h5_bytes (s);
    bool elsewhere = r->parts && strncmp (s->path, "/gs/", 4) != 0;

    if (bytes == SIZE_MAX)
        return false;
    if (elsewhere || !bytes)
        return !s->offset;
    return s->offset && s->offset <= r->file_bytes && bytes <= r->file_bytes - s->offset;
}

static bool take_set (struct reader *r, struct gsi_h5_set *s, gs_status_t *st)
{
    uint64_t words[SET];

    if (!take_words (r, words, SET) || words[SET_DTYPE] >= GSI_DTYPES ||
        words[SET_DIMS] > GSI_H5_DIMS_MAX || words[SET_PLACE] > GSI_H5_CELLS ||
        words[SET_TEXTS] > TEXTS_MAX || words[SET_TEXTS] > r->left / 16)
        return false;
    s->dtype = (gs_dtype_t) words[SET_DTYPE];
    s->dims = (int) words[SET_DIMS];
    s->offset = words[SET_OFFSET];
    s->place = (enum gsi_h5_place) words[SET_PLACE];
    if (!gs_dtype_size (s->dtype) || !take_words (r, s->shape, (size_t) s->dims) ||
        !(s->path = take_text (r, words[SET_PATH_BYTES], st)) || *s->path != '/' ||
        !lies_well (r, s))
        return false;
    if (!(s->text = calloc ((size_t) words[SET_TEXTS] + 1, sizeof (*s->text)))) {
        *st = GS_ERR_NOMEM;
        return false;
    }
    for (uint64_t i = 0; i < words[SET_TEXTS]; i++)
        if (!take_attribute (r, s, st))
            return false;
    return true;
}

static bool take_grid (const uint64_t *head, struct gsi_h5_grid *grid)
{
    memcpy (grid->points, &head[HEAD_POINTS], sizeof (grid->points));
    memcpy (grid->origin, &head[HEAD_POINTS + 3], sizeof (grid->origin));
    memcpy (grid->spacing, &head[HEAD_POINTS + 6], sizeof (grid->spacing));
    grid->dims = (int) head[HEAD_DIMS];
    for (int d = 0; d < grid->dims; d++)
        if (grid->points[d] < 2 || grid->points[d] >= INT32_MAX || !isfinite (grid->origin[d]) ||
            !isfinite (grid->spacing[d]))
            return false;
    return true;
}

/* As HDF5 visits them: what a group has comes behind its name, before longer names. */
static int by_hdf5_order (const void *a, const void *b)
{
    const char *x = ((const struct gsi_h5_set *) a)->path,
               *y = ((const struct gsi_h5_set *) b)->path;

    while (*x && *x == *y) {
        x++;
        y++;
    }
    return (*x == '/' ? 1 : (unsigned char) *x) - (*y == '/' ? 1 : (unsigned char) *y);
}

static bool take_index (struct reader *r, struct gsi_h5_file *file, gs_status_t *st)
{
    uint64_t head[HEAD];

    if (!take_words (r, head, HEAD) || head[HEAD_VERSION] != GSI_INDEX_VERSION ||
        head[HEAD_SETS] > r->left / (SET * 8) || head[HEAD_DIMS] > 3 || head[HEAD_DIMS] == 1 ||
        !take_grid (head, &file->grid))
        return false;
    if (!(file->set = calloc ((size_t) head[HEAD_SETS] + 1, sizeof (*file->set)))) {
        *st = GS_ERR_NOMEM;
        return false;
    }
    while (file->sets < head[HEAD_SETS]) {
        struct gsi_h5_set *s = &file->set[file->sets++];
        s->header = file->sets;
        if (!take_set (r, s, st))
            return false;
    }
    qsort (file->set, file->sets, sizeof (*file->set), by_hdf5_order);
    for (size_t i = 1; i < file->sets; i++)
        if (!strcmp (file->set[i - 1].path, file->set[i].path))
            return false;
    return !r->left;
}

gs_status_t gsi_index_read (const char *path, const void *data, size_t bytes, uint64_t file_bytes,
                            bool parts, struct gsi_h5_file *file)
{
    struct reader r = {data, bytes, file_bytes, parts};
    gs_status_t st = GS_ERR_FORMAT;

    *file = (struct gsi_h5_file){.set = NULL};
    if (take_index (&r, file, &st))
        return GS_OK;
    gsi_h5_file_clear (file);
    return gsi_fail (st,
                     st == GS_ERR_NOMEM ? "%s: no memory for what is in it"
                                        : "%s: its index says what cannot be: it is damaged",
                     path);
}
