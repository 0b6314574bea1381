/* SPDX-License-Identifier: BSD-3-Clause */
/* layout - which files there are, and where in them all that was added goes. */
#include "ckpt/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/skeleton.h"
#include "ckpt/folder/remover.h"
#include "ckpt/save/save.h"
#include "ckpt/folder/store.h"
#include "feature/consensus.h"

/* What a commit needs only for itself. */
struct layout_work {
    gs_ckpt_t *c;
    const char *caller;
    uint64_t *node_of;           /* [size] */
    struct gsi_block *blocks;    /* [size] of one array */
    struct gsi_h5_set *part_set; /* [part_sets] of this node's file */
    size_t part_sets;
    uint64_t *offset; /* what ranks tell each other */
};

static gs_status_t layout_no_memory (const struct layout_work *w)
{
    return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", w->caller);
}

/* ---- Which files ---- */

/* Rank 0 knows the file system; with one node there is nothing to be kept apart. */
static gs_status_t choose_layout (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    uint64_t nodes = (uint64_t) gs_comm_nodes (c->comm);
    gs_status_t st = GS_OK;

    if (c->opts.layout == GS_CKPT_LAYOUT_SINGLE || (!c->opts.layout && nodes == 1))
        nodes = 0;
    else if (!c->opts.layout && !c->rank && gsi_store_is_coherent (c))
        nodes = 0;
    if (!c->opts.layout)
        st = gs_broadcast (c->comm, &nodes, 1, GS_U64, 0, NULL);
    c->nodes = (int) nodes;
    c->node = nodes ? gs_comm_node (c->comm) : 0;
    return st;
}

/* Who writes replicated arrays: all ranks, or those of the first node. */
static gs_status_t find_writers (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    uint64_t node = (uint64_t) c->node;
    gs_status_t st;

    c->writers = c->nodes ? 0 : c->size;
    c->writer = c->nodes ? -1 : c->rank;
    if ((st = gs_allgather (c->comm, &node, w->node_of, 1, GS_U64, NULL)) || !c->nodes)
        return st;
    for (int r = 0; r < c->size; r++) {
        if (w->node_of[r])
            continue;
        if (r == c->rank)
            c->writer = c->writers;
        c->writers++;
    }
    return GS_OK;
}

/* ---- Regions ---- */

static void add_region (gs_ckpt_t *c, int i, uint64_t part, const struct gsi_block *block,
                        const struct gsi_array_view *view)
{
    struct gsi_region *r = &c->region[c->regions];

    if (gsi_block_is_empty (block))
        return;
    *r = (struct gsi_region){.array = (uint64_t) i, .part = part, .block = *block};
    r->bytes = gsi_block_count (block, view->dims) * view->element;
    if (!r->bytes)
        return;
    if (c->regions++)
        r->first = r[-1].first + gsi_trailer_blocks (r[-1].bytes);
}

static gs_status_t add_regions (struct layout_work *w, int i)
{
    gs_ckpt_t *c = w->c;
    const struct gsi_ckpt_array *a = &c->array[i];
    struct gsi_block whole = {.extents = {0}};
    struct gsi_array_view view;
    gs_status_t st = GS_OK;

    gsi_array_view_open (c, i, (uint64_t) c->size, &view);
    memcpy (whole.extents, view.shape, sizeof (view.shape));
    c->first_region[i] = c->regions;
    if (!c->nodes || a->kind == GSI_CKPT_REPLICATED) {
        add_region (c, i, 0, &whole, &view);
        return GS_OK;
    }
    if (a->kind == GSI_CKPT_SHARDED)
        st = gs_allgather (c->comm, &a->block, w->blocks, sizeof (a->block) / 8, GS_U64, NULL);
    for (int r = 0; r < c->size && !st; r++) {
        if (a->kind == GSI_CKPT_PER_RANK)
            w->blocks[r] = (struct gsi_block){{a->count ? 1 : 0, a->count}, {(uint64_t) r}};
        add_region (c, i, w->node_of[r], &w->blocks[r], &view);
    }
    return st;
}

static gs_status_t make_regions (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    size_t most = (size_t) c->arrays * (size_t) (c->nodes ? c->size : 1);
    gs_status_t st = GS_OK;

    if (!gsi_fault ("ckpt.memory")) {
        c->region = calloc (most + 1, sizeof (*c->region));
        c->first_region = calloc ((size_t) c->arrays + 1, sizeof (*c->first_region));
    }
    st = c->region && c->first_region ? GS_OK : layout_no_memory (w);
    st = gsi_consensus (c->comm, w->caller, st, NULL, NULL);
    for (int i = 0; i < c->arrays && !st; i++)
        st = add_regions (w, i);
    if (!st)
        c->first_region[c->arrays] = c->regions;
    return st;
}

/* ---- Our own data sets ---- */

/* Words of a row of the map: it has room for the array of most dimensions. */
static size_t count_map_words (const gs_ckpt_t *c)
{
    int most = 1;

    for (int i = 0; i < c->arrays; i++) {
        struct gsi_array_view view;
        gsi_array_view_open (c, i, 0, &view);
        most = view.dims > most ? view.dims : most;
    }
    return (size_t) (GSI_MAP_HEAD + 2 * most);
}

static gs_status_t add_own_sets (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    const struct gsi_region *last = c->regions ? &c->region[c->regions - 1] : NULL;

    c->metadata = (struct gsi_metadata){
        .set = &c->set[c->arrays],
        .arrays = (size_t) c->arrays,
        .grid = &c->grid,
        .image = &c->main_file,
        .ranks = c->size,
        .data_blocks = last ? last->first + gsi_trailer_blocks (last->bytes) : 0,
        .parts = (size_t) c->nodes,
        .regions = c->nodes ? c->regions : 0,
        .map_words = c->nodes ? count_map_words (c) : 0,
    };
    return gsi_metadata_define (&c->metadata, w->caller);
}

static gs_status_t layout_memory (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    struct gsi_metadata *own = &c->metadata;
    size_t arrays = (size_t) c->arrays;

    if (!gsi_fault ("ckpt.memory")) {
        own->block = calloc (own->blocks, sizeof (*own->block));
        own->part = calloc (own->parts + 1, sizeof (*own->part));
        own->map = calloc (own->regions + 1, (own->map_words + 1) * sizeof (*own->map));
        c->raw = calloc (own->blocks, sizeof (*c->raw));
        c->bits = calloc (own->blocks, 32);
        c->digest = calloc (arrays, 3 * sizeof (*c->digest));
        c->coming.parts = calloc ((size_t) c->size, 2 * sizeof (*c->coming.parts));
        w->offset =
            calloc (c->regions + GSI_METADATA_SETS + 1 + 3 * own->parts, sizeof (*w->offset));
    }
    if (own->block && own->part && own->map && c->raw && c->bits && c->digest &&
        c->coming.parts && w->offset)
        return GS_OK;
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory for the checksums of %zu blocks", w->caller,
                     own->blocks);
}

/* ---- Files ---- */

/* The data set of a region in its part: that of the array, or the number of its region in there.
 */
static char *path_in_part (const struct layout_work *w, const struct gsi_region *r)
{
    const gs_ckpt_t *c = w->c;
    const char *path = c->set[r->array].path;
    size_t room = strlen (path) + 16;
    char *out = malloc (room);

    if (out && c->array[r->array].kind == GSI_CKPT_REPLICATED)
        snprintf (out, room, "%s", path);
    else if (out)
        snprintf (out, room, "%s/%zu", path,
                  (size_t) (r - &c->region[c->first_region[r->array]]));
    return out;
}

/* In the data set's own dimensions. */
static void unfold (const gs_ckpt_t *c, const struct gsi_region *r, uint64_t *offsets,
                    uint64_t *extents)
{
    const struct gsi_h5_set *set = &c->set[r->array];

    for (int d = 0; d < set->dims; d++) {
        bool sharded = c->array[r->array].kind == GSI_CKPT_SHARDED;
        offsets[d] = sharded ? r->block.offsets[d] : 0;
        extents[d] = sharded ? r->block.extents[d] : set->shape[d];
    }
    if (c->array[r->array].kind == GSI_CKPT_PER_RANK) {
        offsets[0] = r->block.offsets[0];
        extents[0] = 1;
    }
}

static gs_status_t describe_region (const struct layout_work *w, const struct gsi_region *r,
                                    struct gsi_h5_set *set)
{
    const struct gsi_h5_set *whole = &w->c->set[r->array];
    uint64_t offsets[GSI_H5_DIMS_MAX];
    char text[24 * GSI_H5_DIMS_MAX + 4] = "(";
    size_t used = 1;

    *set = (struct gsi_h5_set){
        .path = path_in_part (w, r), .dtype = whole->dtype, .dims = whole->dims};
    if (!set->path)
        return layout_no_memory (w);
    unfold (w->c, r, offsets, set->shape);
    for (int d = 0; d < set->dims; d++)
        used += (size_t) snprintf (text + used, sizeof (text) - used, "%s%" PRIu64, d ? ", " : "",
                                   offsets[d]);
    snprintf (text + used, sizeof (text) - used, ")");
    return gsi_h5_set_text (set, "gs_offsets", text);
}

/* The file of this node. It ends in a data set that nobody reads. */
static gs_status_t lay_out_part (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    size_t n = 0;
    gs_status_t st = GS_OK;

    w->part_set = calloc (c->regions + 1, sizeof (*w->part_set));
    if (!w->part_set)
        return layout_no_memory (w);
    for (size_t i = 0; i < c->regions && !st; i++)
        if (c->region[i].part == (uint64_t) c->node)
            st = describe_region (w, &c->region[i], &w->part_set[w->part_sets++]);
    if (st || !w->part_sets)
        return st;
    n = w->part_sets++;
    w->part_set[n] = (struct gsi_h5_set){
        .path = strdup ("/gs/part"), .dtype = GS_U64, .dims = 1, .shape = {GSI_TRAILER_WORDS}};
    if (!w->part_set[n].path)
        return layout_no_memory (w);
    if ((st = gsi_skeleton_make (c->dir, w->part_set, w->part_sets, NULL, &c->mine)))
        return st;
    n = 0;
    for (size_t i = 0; i < c->regions; i++)
        if (c->region[i].part == (uint64_t) c->node)
            c->region[i].offset = w->part_set[n++].offset;
    c->metadata.part[c->node] =
        (struct gsi_trailer_part){.file_bytes = c->mine.file_bytes,
                                  .image_bytes = c->mine.bytes,
                                  .image_crc = gsi_crc32c (0, c->mine.data, c->mine.bytes)};
    return GS_OK;
}

/* Where those who look at the main file find array [i]. */
static gs_status_t add_sources (const struct layout_work *w, int i)
{
    const gs_ckpt_t *c = w->c;
    struct gsi_h5_set *set = &c->set[i];
    size_t first = c->first_region[i], n = c->first_region[i + 1] - first;

    if (n && !(set->source = calloc (n, sizeof (*set->source))))
        return layout_no_memory (w);
    for (size_t k = 0; k < n; k++) {
        struct gsi_h5_source *s = &set->source[k];
        snprintf (s->file, sizeof (s->file), GSI_PART_NAME, (int) c->region[first + k].part);
        unfold (c, &c->region[first + k], s->offsets, s->extents);
        if (!(s->path = path_in_part (w, &c->region[first + k])))
            return layout_no_memory (w);
        set->sources++;
    }
    return GS_OK;
}

static gs_status_t lay_out_main (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    gs_status_t st = GS_OK;

    for (int i = 0; i < c->arrays && c->nodes && !st; i++)
        st = add_sources (w, i);
    if (!st)
        st = gsi_skeleton_make (c->dir, c->set, (size_t) (c->arrays + GSI_METADATA_SETS),
                                &c->grid, &c->main_file);
    for (size_t i = 0; i < c->regions && !c->nodes; i++)
        c->region[i].offset = c->set[c->region[i].array].offset;
    return st;
}

/* ---- What all ranks know ---- */

/* Offsets that one rank has, and the others have as 0. */
static gs_status_t exchange_offsets (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    size_t own = c->regions, parts = own + GSI_METADATA_SETS + 1,
           n = parts + 3 * (size_t) c->nodes;
    gs_status_t st;

    for (size_t i = 0; i < c->regions; i++)
        w->offset[i] = c->region[i].offset;
    for (size_t i = 0; i < GSI_METADATA_SETS; i++)
        w->offset[own + i] = c->set[(size_t) c->arrays + i].offset;
    w->offset[parts - 1] = c->main_file.file_bytes;
    memcpy (&w->offset[parts], c->metadata.part, c->metadata.parts * sizeof (*c->metadata.part));
    if ((st = gs_allreduce (c->comm, w->offset, n, GS_U64, GS_MAX, NULL)))
        return st;
    for (size_t i = 0; i < c->regions; i++)
        c->region[i].offset = w->offset[i];
    for (size_t i = 0; i < GSI_METADATA_SETS; i++)
        c->set[(size_t) c->arrays + i].offset = w->offset[own + i];
    c->main_file.file_bytes = w->offset[parts - 1];
    memcpy (c->metadata.part, &w->offset[parts], c->metadata.parts * sizeof (*c->metadata.part));
    return GS_OK;
}

static void fill_table (const gs_ckpt_t *c)
{
    for (size_t i = 0; i < c->regions; i++)
        gsi_trailer_rows (&c->metadata.block[c->region[i].first], c->region[i].offset,
                          c->region[i].bytes);
    gsi_metadata_fill (&c->metadata);
}

/* The place of an array's data set among all of them, by path. */
static uint64_t set_position (const gs_ckpt_t *c, uint64_t array)
{
    uint64_t place = 0;

    for (int i = 0; i < c->arrays; i++)
        place += strcmp (c->set[i].path, c->set[array].path) < 0;
    return place;
}

static void fill_map (const gs_ckpt_t *c)
{
    size_t dims = (c->metadata.map_words - GSI_MAP_HEAD) / 2;
    uint64_t place = 0;

    for (size_t i = 0; i < c->metadata.regions; i++) {
        const struct gsi_region *r = &c->region[i];
        uint64_t *row = &c->metadata.map[i * c->metadata.map_words];
        if (i == c->first_region[r->array])
            place = set_position (c, r->array);
        memcpy (row, (uint64_t[]){place, r->part, r->offset, r->bytes, r->first},
                GSI_MAP_HEAD * sizeof (*row));
        memcpy (row + GSI_MAP_HEAD, r->block.offsets, dims * sizeof (*row));
        memcpy (row + GSI_MAP_HEAD + dims, r->block.extents, dims * sizeof (*row));
    }
}

/* ---- All of it ---- */

static gs_status_t make_skeletons (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    uint64_t id = 0;
    gs_status_t st;

    if (!(st = add_own_sets (w)))
        st = layout_memory (w);
    if (!st && c->nodes && gs_comm_local_rank (c->comm) == 0)
        st = lay_out_part (w);
    if (!st && !c->rank)
        st = lay_out_main (w);
    if ((st = gsi_consensus (c->comm, w->caller, st, NULL, NULL)) ||
        (st = gsi_save_take (c, w->caller)))
        return st;
    if (!c->rank)
        id = strtoull (c->coming.id, NULL, 16);
    if ((st = gsi_consensus_most (c->comm, w->caller, st, &id, 1, NULL)) ||
        (st = exchange_offsets (w)))
        return st;
    snprintf (c->coming.id, sizeof (c->coming.id), "%016" PRIx64, id);
    st = c->rank ? gsi_store_see (c, w->caller) : GS_OK;
    if ((st = gsi_consensus (c->comm, w->caller, st, NULL, NULL)))
        return st;
    fill_table (c);
    fill_map (c);
    return GS_OK;
}

static gs_status_t lay_out_all (struct layout_work *w)
{
    gs_ckpt_t *c = w->c;
    gs_status_t st = GS_OK;

    if (!w->node_of || !w->blocks)
        st = layout_no_memory (w);
    else if (!c->rank)
        st = gsi_store_check_folder (c, w->caller);
    if ((st = gsi_consensus (c->comm, w->caller, st, NULL, NULL)) || (st = choose_layout (w)) ||
        (st = find_writers (w)) || (st = make_regions (w)))
        return st;
    return make_skeletons (w);
}

gs_status_t gsi_ckpt_lay_out (gs_ckpt_t *ckpt, const char *caller)
{
    struct layout_work w = {.c = ckpt, .caller = caller};
    gs_status_t st;

    w.node_of = calloc ((size_t) ckpt->size, sizeof (*w.node_of));
    w.blocks = calloc ((size_t) ckpt->size, sizeof (*w.blocks));
    st = lay_out_all (&w);
    for (size_t i = 0; i < w.part_sets; i++)
        gsi_h5_set_clear (&w.part_set[i]);
    free (w.part_set);
    free (w.node_of);
    free (w.blocks);
    free (w.offset);
    return st;
}

void gsi_ckpt_undo (gs_ckpt_t *c)
{
    for (int i = 0; i < GSI_METADATA_SETS && c->metadata.set; i++)
        gsi_h5_set_clear (&c->metadata.set[i]);
    for (int i = 0; i < c->arrays; i++)
        gsi_h5_set_forget (&c->set[i]);
    if (!c->hung) { /* else a thread has them */
        if (!gsi_remover_close (c->remover, gsi_ckpt_until_ns (c)) || !gsi_save_drop (c))
            gsi_log (GS_LOG_WARN, "ckpt",
                     "%s: its lock stays: a writer thread is blocked in the file system",
                     c->client.name);
        c->remover = NULL;
        c->lock = NULL;
    }
    gsi_h5_image_clear (&c->main_file);
    gsi_h5_image_clear (&c->mine);
    free (c->metadata.part);
    free (c->metadata.map);
    free (c->metadata.block);
    c->metadata = (struct gsi_metadata){.set = NULL};
    free (c->coming.parts);
    free (c->region);
    free (c->first_region);
    free (c->raw);
    free (c->bits);
    free (c->digest);
    c->coming.parts = c->digest = NULL;
    c->region = NULL;
    c->first_region = NULL;
    c->regions = 0;
    c->raw = NULL;
    c->bits = NULL;
    c->committed = false;
}
