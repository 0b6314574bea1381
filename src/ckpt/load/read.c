/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read - a checkpoint into the arrays of a plan: rank 0 chooses a file, all ranks check it, each
 * a share of its blocks, rank 0 finds where the arrays are in it, and each reads its parts.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/region.h"
#include "ckpt/format/reader.h"
#include "ckpt/folder/store.h"
#include "feature/consensus.h"
#include "feature/host_access.h"

static const char caller[] = "gs_ckpt_read";

#define PIECE_BYTES ((size_t) 1 << 20)
#define NOWHERE     UINT64_MAX /* an array that stays as it is */

struct load {
    gs_ckpt_t *c;
    gs_stream_t stream;
    int64_t step;
    struct gsi_reader reader;
    bool strange;     /* ranks do not see the same file */
    bool begun;       /* arrays have been written to */
    uint64_t *offset; /* [arrays] in this file; or with parts, the number of the data set */
    size_t *counts;   /* [2 * size] of a gather */
    struct gsi_host_access fetch; /* of the array that is being read, */
    int array;                    /* its number, */
    uint64_t bytes;               /* and what was found of it */
    int64_t turn_ns;              /* when the other ranks are told next that this one goes on */
};

/* ---- Together ---- */

/*
 * Collective, in its own time: a rank that is at work tells the others so again and again, and
 * who is [through] listens until all are. So a file system that is slow is no rank that is gone.
 */
static gs_status_t keep_in_touch (struct load *l, bool through)
{
    int all = 0;
    gs_status_t st = GS_OK;

    while (!st && !all && (through || gsi_now_ns () >= l->turn_ns)) {
        st = gs_flag_all (l->c->comm, through, &all, l->stream);
        l->turn_ns = gsi_now_ns () + gsi_ckpt_slice_ns (l->c);
    }
    return st;
}

/* The end of work that every rank does in its own time; [st] is how it went here. */
static gs_status_t agree_when_through (struct load *l, gs_status_t st)
{
    struct gsi_failure failure;
    gs_status_t lost;

    gsi_failure_note (&failure, st);
    lost = keep_in_touch (l, true);
    return lost ? lost
                : gsi_consensus (l->c->comm, caller, gsi_failure_repeat (&failure), NULL,
                                 l->stream);
}

/* ---- Whether it is whole ---- */

static gs_status_t open_checkpoint (struct load *l)
{
    struct gsi_path path = gsi_store_find (l->c, l->step);
    gs_status_t st = gsi_reader_open (path.text, &l->reader);

    if (st == GS_ERR_IO && l->reader.fd < 0 && errno == ENOENT &&
        strstr (path.text, "/" GSI_INDEX_FILE))
        st = gsi_fail (GS_ERR_FORMAT, "%s: it is not there, but its folder is: it is damaged",
                       path.text);
    if (!st && l->reader.trailer.step != (uint64_t) l->step)
        st = gsi_fail (GS_ERR_FORMAT, "%s: it is of step %" PRIu64 " and has been renamed",
                       l->reader.path, l->reader.trailer.step);
    return st;
}

/* This rank's share of the parts and of the blocks: ranks side by side see to the same part. */
static gs_status_t check_share (struct load *l)
{
    uint64_t rank = (uint64_t) l->c->rank, size = (uint64_t) l->c->size;
    uint64_t blocks = l->reader.trailer.blocks;
    void *room = gsi_fault ("ckpt.memory") ? NULL : malloc (GSI_BLOCK_BYTES);
    gs_status_t st = room ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);

    for (uint64_t p = rank; p < l->reader.trailer.parts && !st; p += size)
        if (!(st = gsi_reader_check_part (&l->reader, p)))
            st = keep_in_touch (l, false);
    for (uint64_t b = blocks / size * rank + blocks % size * rank / size;
         b < blocks / size * (rank + 1) + blocks % size * (rank + 1) / size && !st; b++)
        if (!(st = gsi_reader_check_block (&l->reader, b, room)))
            st = keep_in_touch (l, false);
    free (room);
    return st;
}

/* All ranks have the same file before them, and it is whole. */
static gs_status_t check_file (struct load *l)
{
    struct gsi_agreement a = {.words = 2};
    gs_status_t st = agree_when_through (l, open_checkpoint (l));

    a.word[0] = l->reader.trailer.table_crc;
    a.word[1] = l->reader.trailer.image_crc;
    if (st || (st = gsi_consensus (l->c->comm, caller, st, &a, l->stream)))
        return st;
    l->strange = a.differs != -1;
    if (l->strange)
        return gsi_fail (
            GS_ERR_IO,
            "%s: ranks %d and %d have different files before them: %s is not shared, "
            "or was replaced",
            l->reader.path, a.least_rank, a.most_rank, l->c->dir);
    return agree_when_through (l, check_share (l));
}

/* ---- Where the arrays are ---- */

static void write_shape (const struct gsi_h5_set *set, char *text, size_t room)
{
    char shape[200];

    gsi_dims_write (set->shape, set->dims, ", ", shape, sizeof (shape));
    snprintf (text, room, "%s [%s]", gsi_dtype_name (set->dtype), shape);
}

static gs_status_t differ (const struct load *l, const struct gsi_h5_set *there,
                           const struct gsi_h5_set *ours)
{
    char is[256], should[256];

    write_shape (there, is, sizeof (is));
    write_shape (ours, should, sizeof (should));
    return gsi_fail (GS_ERR_MISMATCH, "%s: %s is %s there and %s in %s", l->reader.path,
                     there->path, is, should, l->c->client.name);
}

/* Where array [i] is; [there] is NULL if it is not. */
static gs_status_t locate_set (const struct load *l, int i, const struct gsi_h5_set *there,
                               uint64_t where)
{
    const struct gsi_h5_set *ours = &l->c->set[i];
    const gs_ckpt_opts_t *opts = &l->c->opts;
    int first = l->c->array[i].kind == GSI_CKPT_PER_RANK; /* of the dimensions that are alike */

    l->offset[i] = there ? where : NOWHERE;
    if (!there)
        return opts->allow_missing
                   ? GS_OK
                   : gsi_fail (GS_ERR_MISMATCH,
                               "%s: it has no %s: add what it has, or give the option "
                               "allow_missing",
                               l->reader.path, ours->path);
    if (there->dtype != ours->dtype || there->dims != ours->dims ||
        memcmp (there->shape + first, ours->shape + first,
                (size_t) (ours->dims - first) * sizeof (*ours->shape)))
        return differ (l, there, ours);
    if (!first || there->shape[0] == ours->shape[0] || opts->ranks == GS_CKPT_RANKS_FIRST)
        return GS_OK;
    l->offset[i] = NOWHERE;
    return opts->ranks == GS_CKPT_RANKS_KEEP
               ? GS_OK
               : gsi_fail (
                     GS_ERR_MISMATCH,
                     "%s: %s was written by %zu ranks, this job has %d: run as many, or set "
                     "the option ranks",
                     l->reader.path, there->path, (size_t) there->shape[0], l->c->size);
}

/* On rank 0. */
static gs_status_t locate_all (struct load *l)
{
    struct gsi_reader *s = &l->reader;
    gs_status_t st = gsi_reader_list (s);
    bool any = false;

    for (int i = 0; i < l->c->arrays && !st; i++) {
        struct gsi_h5_set *there = gsi_reader_find (s, l->c->set[i].path);
        uint64_t k = 0;
        while (there && s->array[k] != there)
            k++;
        st = locate_set (l, i, there, there && !s->trailer.parts ? there->offset : k);
        if (there)
            there->dims = -1; /* it is taken */
        any = any || there;
    }
    if (!st && !any)
        st = gsi_fail (GS_ERR_MISMATCH,
                       "%s: it has none of the arrays of %s: it is of something else", s->path,
                       l->c->client.name);
    for (size_t k = 0; k < s->arrays && !st && !l->c->opts.allow_extra; k++)
        if (s->array[k]->dims >= 0)
            st = gsi_fail (GS_ERR_MISMATCH,
                           "%s: it has %s, which %s has not: add it, or give the option "
                           "allow_extra",
                           s->path, s->array[k]->path, l->c->client.name);
    return st;
}

static gs_status_t locate_arrays (struct load *l)
{
    gs_status_t st = agree_when_through (l, l->c->rank ? GS_OK : locate_all (l));

    return st ? st
              : gs_broadcast (l->c->comm, l->offset, (size_t) l->c->arrays, GS_U64, 0, l->stream);
}

/* ---- Reading ---- */

static gs_status_t load_part (void *context, const struct gsi_part *part)
{
    struct load *l = context;
    const struct gsi_ckpt_array *a = &l->c->array[l->array];
    uint64_t offset = part->region->offset + part->offset;
    gs_status_t st = GS_OK;

    l->bytes += part->bytes;
    for (size_t done = 0; done < part->bytes && !st; done += PIECE_BYTES) {
        size_t n = part->bytes - done < PIECE_BYTES ? part->bytes - done : PIECE_BYTES;
        char *to = (char *) a->data + part->at + done;
        if (!(st = gsi_reader_read (&l->reader, part->region->part,
                                    gsi_host_access_room (&l->fetch, to), n, offset + done)))
            st = gsi_host_access_put (&l->fetch, to, n);
        if (!st)
            st = keep_in_touch (l, false);
    }
    return st;
}

/* What the file, or its parts, have of array [i]. */
static gs_status_t read_regions (struct load *l, int i, const struct gsi_array_view *view)
{
    struct gsi_region whole = {.offset = l->offset[i]};
    const struct gsi_region *region = &whole;
    size_t n = 1;

    memcpy (whole.block.extents, view->shape, sizeof (view->shape));
    if (l->reader.trailer.parts)
        n = gsi_reader_regions (&l->reader, l->offset[i], &region);
    return gsi_parts_each (view, region, n, load_part, l);
}

static gs_status_t read_array (struct load *l, int i)
{
    const struct gsi_ckpt_array *a = &l->c->array[i];
    int slot = (uint64_t) l->c->rank < l->reader.trailer.ranks ? l->c->rank : 0;
    struct gsi_array_view view;
    gs_status_t st;

    l->array = i;
    l->bytes = 0;
    gsi_array_view_to_read (l->c, i, l->reader.trailer.ranks, slot, &view);
    st = gsi_host_access_open (&l->fetch, l->c->comm, caller, a->data, a->count, a->dtype,
                               PIECE_BYTES, l->stream);
    if (!st)
        st = read_regions (l, i, &view);
    if (!st && l->bytes != gsi_block_count (&view.mine, view.dims) * view.element)
        st = gsi_fail (GS_ERR_FORMAT, "%s: its map has not all of array '%s', or more than that",
                       l->reader.path, a->name);
    gsi_host_access_close (&l->fetch);
    return st;
}

/* Of replicated arrays each rank has read its share; now it gets the others. */
static gs_status_t spread (const struct load *l, int i)
{
    const struct gsi_ckpt_array *a = &l->c->array[i];
    size_t *counts = l->counts, *displs = l->counts + l->c->size, *own = &displs[l->c->rank];

    for (int r = 0; r < l->c->size; r++)
        gsi_array_view_share (l->c, i, r, l->c->size, &displs[r], &counts[r]);
    return gs_allgatherv (l->c->comm, (char *) a->data + *own * gs_dtype_size (a->dtype),
                          counts[l->c->rank], a->data, a->count, counts, displs, a->dtype,
                          l->stream);
}

static gs_status_t read_arrays (struct load *l)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < l->c->arrays && !st; i++)
        if (l->offset[i] != NOWHERE)
            st = read_array (l, i);
    st = agree_when_through (l, st);
    for (int i = 0; i < l->c->arrays && !st; i++)
        if (l->offset[i] != NOWHERE && l->c->array[i].kind == GSI_CKPT_REPLICATED &&
            l->c->array[i].count)
            st = spread (l, i);
    if (!st)
        st = gs_comm_wait (l->c->comm, l->stream);
    return st;
}

/* Notes what was filled, and says what was not. */
static void note_filled (const struct load *l, bool found)
{
    gs_ckpt_t *c = l->c;
    char names[600] = "";
    size_t used = 0;
    int missing = 0;

    for (int i = 0; i < c->arrays; i++) {
        c->array[i].filled = found && l->offset[i] != NOWHERE;
        if (c->array[i].filled || !found)
            continue;
        if (used + strlen (c->array[i].name) + 16 < sizeof (names))
            used += (size_t) snprintf (names + used, sizeof (names) - used, "%s'%s'",
                                       missing ? ", " : "", c->array[i].name);
        missing++;
    }
    if (missing && !c->rank)
        gsi_log (GS_LOG_WARN, "ckpt",
                 "step %" PRId64
                 ": %d of %d arrays of %s are not in the file and stay as they are: "
                 "%s%s",
                 l->step, missing, c->arrays, c->client.name, names,
                 strlen (names) + 16 < sizeof (names) ? "" : " and more");
}

/* ---- Which ---- */

static gs_status_t load_step (struct load *l)
{
    gs_status_t st = check_file (l);

    if (!st && !(st = locate_arrays (l))) {
        l->begun = true;
        st = read_arrays (l);
    }
    gsi_reader_close (&l->reader);
    return st;
}

/* The newest one before [below]; -1 if there is none. */
static gs_status_t choose_checkpoint (struct load *l, int64_t below)
{
    int64_t *steps = NULL;
    size_t number = 0;
    gs_status_t st = l->c->rank ? GS_OK : gsi_store_list (l->c, &steps, &number);

    l->step = -1;
    for (size_t i = 0; i < number && steps[i] < below; i++)
        l->step = steps[i];
    free (steps);
    if ((st = gsi_consensus (l->c->comm, caller, st, NULL, l->stream)))
        return st;
    return gs_broadcast (l->c->comm, &l->step, 1, GS_I64, 0, l->stream);
}

/* Whether an array may stay as it is. */
static bool may_stay (const struct load *l)
{
    const gs_ckpt_opts_t *opts = &l->c->opts;

    return opts->allow_missing || opts->ranks == GS_CKPT_RANKS_KEEP;
}

/* The newest one that is whole. */
static gs_status_t read_latest (struct load *l)
{
    int64_t below = INT64_MAX;
    gs_status_t st, worst = GS_ERR_FORMAT;

    while (!(st = choose_checkpoint (l, below)) && l->step >= 0) {
        if (!(st = load_step (l)))
            gsi_store_note (l->c, l->step, false);
        /* An older one is no better if this does not fit, or the folder is not shared; nor may an
         * array that it lacks, and that stays as it is, have a part of this. */
        if ((st != GS_ERR_FORMAT && st != GS_ERR_IO) || l->strange || (l->begun && may_stay (l)))
            return st;
        worst = st == GS_ERR_IO ? st : worst;
        gsi_store_note (l->c, l->step, true);
        if (!l->c->rank)
            gsi_log (GS_LOG_WARN, "ckpt", "%s; the checkpoint before is taken", gsi_last_text ());
        below = l->step;
    }
    if (st || below == INT64_MAX)
        return st;
    return gsi_fail (worst,
                     "%s: no checkpoint in %s can be read and is whole; warnings tell of each",
                     caller, l->c->dir);
}

/* Codes by which a program knows that its arrays are as they were are not for a read that has
 * begun to fill them. */
static gs_status_t tell_filled (const struct load *l, gs_status_t st)
{
    char text[GSI_TEXT_MAX];

    if (!l->begun || (st != GS_ERR_FORMAT && st != GS_ERR_MISMATCH && st != GS_ERR_UNSUPPORTED &&
                      st != GS_ERR_NOMEM))
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    return gsi_fail (GS_ERR_IO, "%.900s: arrays may have been filled in part", text);
}

static gs_status_t check_args (const struct load *l, int64_t step)
{
    struct gsi_agreement a = {.words = 1, .word = {(uint64_t) step}};
    gs_status_t st = GS_OK;

    if (step < GS_CKPT_LATEST)
        st = gsi_fail (GS_ERR_ARG, "%s: step is %" PRId64 ": 0 or more, or GS_CKPT_LATEST",
                       caller, step);
    else if (!l->offset || !l->counts)
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    if ((st = gsi_consensus (l->c->comm, caller, st, &a, l->stream)) || a.differs == -1)
        return st;
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d reads step %" PRId64 ", rank %d step %" PRId64
                     ": all ranks give the same",
                     caller, a.least_rank, (int64_t) a.least, a.most_rank, (int64_t) a.most);
}

gs_status_t gs_ckpt_read (gs_ckpt_t *ckpt, int64_t step, int64_t *found, gs_stream_t stream)
{
    struct load l = {.c = ckpt, .stream = stream, .step = step, .reader = GSI_READER_CLOSED};
    gs_status_t st = gsi_ckpt_check (ckpt, caller, GSI_CKPT_COMMITTED);

    if (st)
        return gsi_result (st);
    if (ckpt->save)
        return gsi_fail (GS_ERR_STATE,
                         "%s: a checkpoint of %s is still being written: call gs_ckpt_wait first",
                         caller, ckpt->client.name);
    l.offset = calloc ((size_t) ckpt->arrays, sizeof (*l.offset));
    l.counts = calloc (2 * (size_t) ckpt->size, sizeof (*l.counts));
    if (!(st = check_args (&l, step))) {
        note_filled (&l, false);
        st = tell_filled (&l, step == GS_CKPT_LATEST ? read_latest (&l) : load_step (&l));
    }
    if (!st && l.step >= 0)
        note_filled (&l, true);
    free (l.offset);
    free (l.counts);
    if (!st && found)
        *found = l.step;
    return gsi_result (st);
}

gs_status_t gs_ckpt_was_read (gs_ckpt_t *ckpt, const char *name, int *filled)
{
    static const char was_read[] = "gs_ckpt_was_read";
    gs_status_t st;

    if (!filled)
        return gsi_fail (GS_ERR_ARG, "%s: filled is NULL", was_read);
    *filled = 0;
    if ((st = gsi_ckpt_check (ckpt, was_read, GSI_CKPT_COMMITTED)))
        return gsi_result (st);
    for (int i = 0; i < ckpt->arrays && name; i++)
        if (!strcmp (ckpt->array[i].name, name)) {
            *filled = ckpt->array[i].filled;
            return gsi_result (GS_OK);
        }
    return gsi_fail (GS_ERR_ARG, "%s: no array '%s' was added", was_read, name ? name : "NULL");
}

/* ---- What there is ---- */

gs_status_t gs_ckpt_list (gs_ckpt_t *ckpt, int64_t *steps, size_t room, size_t *number)
{
    static const char list[] = "gs_ckpt_list";
    struct gsi_agreement a = {.words = 1, .word = {room}};
    int64_t *all = NULL;
    uint64_t there = 0;
    size_t n = 0, first;
    gs_status_t st = gsi_ckpt_check (ckpt, list, GSI_CKPT_COMMITTED);

    if (st)
        return gsi_result (st);
    if (!number || (room && !steps))
        st = gsi_fail (GS_ERR_ARG, "%s: %s is NULL", list, number ? "steps" : "number");
    else if (!ckpt->rank)
        st = gsi_store_list (ckpt, &all, &n);
    if (!(st = gsi_consensus (ckpt->comm, list, st, &a, NULL)) && a.differs != -1)
        st = gsi_fail (GS_ERR_MISMATCH, "%s: rank %d has room for %zu steps, rank %d for %zu",
                       list, a.least_rank, (size_t) a.least, a.most_rank, (size_t) a.most);
    there = n;
    if (!st)
        st = gs_broadcast (ckpt->comm, &there, 1, GS_U64, 0, NULL);
    n = there < room ? there : room;
    first = there - n;
    if (!st && n) {
        if (!ckpt->rank)
            memcpy (steps, all + first, n * sizeof (*steps));
        st = gs_broadcast (ckpt->comm, steps, n, GS_I64, 0, NULL);
    }
    free (all);
    if (!st)
        *number = there;
    return gsi_result (st);
}
