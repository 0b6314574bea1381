/* SPDX-License-Identifier: BSD-3-Clause */
/* commit - compares what all ranks added, and lays out the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/status.h"
#include "ckpt/ckpt.h"
#include "ckpt/store.h"
#include "comm/agree.h"
#include "comm/same.h"

static const char caller[] = "gs_ckpt_commit";

/* ---- Comparison ---- */

/* A line has no room for long ones: their hash differs, too. */
static void describe_text (struct gsi_text *t, const char *owner, const char *name,
                           const char *text)
{
    gsi_text_add (t, "%.255s: %.255s '%.400s'", owner, name, text);
    if (strlen (text) > 400)
        gsi_text_add (t, " and more, of hash %" PRIx64, gsi_hash (text, strlen (text)));
    gsi_text_add (t, "\n");
}

static void describe_array (struct gsi_text *t, const struct gsi_ckpt_array *a,
                            const struct gsi_h5_set *set)
{
    static const char *const kinds[] = {"replicated", "sharded", "per-rank"};

    gsi_text_add (t, "%s array '%s', %s, shape [", kinds[a->kind], a->name,
                  gsi_dtype_name (a->dtype));
    for (int d = 0; d < a->dims; d++)
        gsi_text_add (t, "%s%" PRIu64, d ? ", " : "", a->shape[d]);
    gsi_text_add (t, "]%s\n",
                  a->kind != GSI_CKPT_REPLICATED || !a->count ? ""
                  : a->on_gpu                                 ? ", memory of the GPU"
                                                              : ", memory of the host");
    for (int i = 0; i < set->texts; i++)
        describe_text (t, a->name, set->text[i].name, set->text[i].text);
}

static gs_status_t compare (const gs_ckpt_t *c)
{
    const gs_ckpt_opts_t *o = &c->opts;
    struct gsi_text t = {0};
    gs_status_t st;

    describe_text (&t, c->tenant.name, "folder", c->dir);
    gsi_text_add (&t, "keep_last %d, keep_every %" PRId64 ", overwrite %d\n", o->keep_last,
                  o->keep_every, !!o->overwrite);
    gsi_text_add (&t, "allow_missing %d, allow_extra %d, no_compare %d, ranks %d\n",
                  !!o->allow_missing, !!o->allow_extra, !!o->no_compare, (int) o->ranks);
    for (int i = 0; i < c->arrays; i++)
        describe_array (&t, &c->array[i], &c->set[i]);
    gsi_text_add (&t, "nothing more\n");
    st = gsi_same (
        c->comm, &t, caller,
        "All ranks give the same folder and options and add the same, in the same order", NULL);
    free (t.at);
    return st;
}

/* Whether the blocks of all ranks make the whole array. */
static gs_status_t check_cover (const gs_ckpt_t *c, const struct gsi_ckpt_array *a,
                                struct gsi_block *blocks, const struct gsi_block **sorted)
{
    char text[64 + GS_CKPT_NAME_MAX];
    struct gsi_blocks all = {c->comm, text, a->dims, a->shape, blocks, sizeof (*blocks)};
    size_t whole = 1, covered = 0;
    gs_status_t st;

    snprintf (text, sizeof (text), "%s: array '%s'", caller, a->name);
    if ((st = gs_allgather (c->comm, &a->block, blocks, sizeof (*blocks) / 8, GS_U64, NULL)) ||
        (st = gsi_blocks_check (&all, sorted)))
        return st;
    for (int d = 0; d < a->dims; d++)
        whole *= a->shape[d];
    for (int r = 0; r < c->size; r++)
        if (!gsi_block_is_empty (&blocks[r]))
            covered += gsi_block_count (&blocks[r], a->dims);
    if (covered == whole)
        return GS_OK;
    return gsi_fail (
        GS_ERR_ARG,
        "%s: the blocks of all ranks have %zu of its %zu elements: each element is of "
        "one rank",
        text, covered, whole);
}

static gs_status_t check_all_cover (const gs_ckpt_t *c)
{
    size_t size = (size_t) c->size;
    struct gsi_block *blocks = calloc (size, sizeof (*blocks));
    const struct gsi_block **sorted = calloc (size, sizeof (const struct gsi_block *));
    struct gsi_agreement nothing = {.words = 0};
    gs_status_t st = GS_OK;

    if (!blocks || !sorted || gsi_fault ("ckpt.memory"))
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    st = gsi_agree (c->comm, caller, st, &nothing, NULL);
    for (int i = 0; i < c->arrays && !st; i++)
        if (c->array[i].kind == GSI_CKPT_SHARDED)
            st = check_cover (c, &c->array[i], blocks, sorted);
    free (blocks);
    free (sorted);
    return st;
}

/* ---- The file ---- */

static gs_status_t add_own_set (gs_ckpt_t *c, enum gsi_ckpt_own own, const char *path,
                                gs_dtype_t dtype, size_t rows)
{
    struct gsi_h5_set *set = &c->set[c->arrays + (int) own];

    *set = (struct gsi_h5_set){.path = strdup (path), .dtype = dtype};
    if (own == GSI_SET_BLOCKS) {
        set->dims = 2;
        set->shape[0] = rows;
        set->shape[1] = sizeof (struct gsi_seal_block) / 8;
    } else if (own == GSI_SET_SEAL) {
        set->dims = 1;
        set->shape[0] = GSI_SEAL_WORDS;
    }
    return set->path ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
}

static size_t blocks_of (const struct gsi_h5_set *set)
{
    return (gsi_h5_bytes (set) + GSI_BLOCK_BYTES - 1) / GSI_BLOCK_BYTES;
}

static gs_status_t add_own_sets (gs_ckpt_t *c)
{
    size_t blocks = 3; /* of step, time and ranks */
    gs_status_t st;

    memset (&c->set[c->arrays], 0, GSI_OWN_SETS * sizeof (*c->set));
    c->has_own_sets = true;
    for (int i = 0; i < c->arrays; i++)
        blocks += blocks_of (&c->set[i]);
    c->blocks = blocks;
    if ((st = add_own_set (c, GSI_SET_STEP, "/gs/step", GS_I64, 0)) ||
        (st = add_own_set (c, GSI_SET_TIME, "/gs/time", GS_I64, 0)) ||
        (st = add_own_set (c, GSI_SET_RANKS, "/gs/ranks", GS_I64, 0)) ||
        (st = add_own_set (c, GSI_SET_BLOCKS, "/gs/blocks", GS_U64, blocks)) ||
        (st = add_own_set (c, GSI_SET_SEAL, "/gs/complete", GS_U64, 0)))
        return st;
    return gsi_h5_set_text (&c->set[c->arrays + GSI_SET_TIME], "units",
                            "nanoseconds since 1970-01-01 00:00:00 UTC");
}

static gs_status_t get_memory (gs_ckpt_t *c)
{
    if (!gsi_fault ("ckpt.memory")) {
        c->block = calloc (c->blocks, sizeof (*c->block));
        c->first = calloc ((size_t) c->arrays, sizeof (*c->first));
        c->raw = calloc (c->blocks, sizeof (*c->raw));
        c->bits = calloc (c->blocks, 32);
    }
    if (c->block && c->first && c->raw && c->bits)
        return GS_OK;
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory for the checksums of %zu blocks", caller,
                     c->blocks);
}

/* Where the blocks of all data sets lie, now that their offsets are known. */
static void lay_out_blocks (gs_ckpt_t *c)
{
    size_t next = 0;

    for (int i = 0; i < c->arrays + GSI_SET_BLOCKS; i++) {
        const struct gsi_h5_set *set = &c->set[i];
        size_t bytes = gsi_h5_bytes (set);
        if (i < c->arrays)
            c->first[i] = next;
        for (size_t at = 0; at < bytes; at += GSI_BLOCK_BYTES, next++)
            c->block[next] = (struct gsi_seal_block){
                .offset = set->offset + at,
                .bytes = bytes - at < GSI_BLOCK_BYTES ? bytes - at : GSI_BLOCK_BYTES};
    }
}

static gs_status_t check_folder (const gs_ckpt_t *c)
{
    struct stat facts;
    const char *reason = "not a folder";

    if (stat (c->dir, &facts))
        reason = strerror (errno);
    else if (S_ISDIR (facts.st_mode))
        return GS_OK;
    return gsi_fail (GS_ERR_IO, "%s: folder %s: %s: make it first, where all ranks see it",
                     caller, c->dir, reason);
}

/* Rank 0 lays out the file; the others hear of the offsets. */
static gs_status_t lay_out (gs_ckpt_t *c)
{
    size_t number = (size_t) (c->arrays + GSI_OWN_SETS), room = strlen (c->dir) + 64;
    char *path = malloc (room);
    gs_status_t st = GS_OK;

    if (!path)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    snprintf (path, room, "%s/.gs-layout-%ld", c->dir, (long) getpid ());
    unlink (path);
    st = gsi_h5_lay_out (path, c->set, number, &c->image, &c->image_bytes, &c->file_bytes);
    free (path);
    return st;
}

static gs_status_t share_offsets (gs_ckpt_t *c)
{
    size_t number = (size_t) (c->arrays + GSI_OWN_SETS);
    uint64_t *offset = calloc (number + 1, sizeof (*offset));
    struct gsi_agreement nothing = {.words = 0};
    gs_status_t st = offset ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);

    if (!(st = gsi_agree (c->comm, caller, st, &nothing, NULL))) {
        for (size_t i = 0; i < number; i++)
            offset[i] = c->set[i].offset;
        offset[number] = c->file_bytes;
        st = gs_broadcast (c->comm, offset, number + 1, GS_U64, 0, NULL);
        for (size_t i = 0; i < number; i++)
            c->set[i].offset = offset[i];
        c->file_bytes = offset[number];
    }
    free (offset);
    return st;
}

static gs_status_t make (gs_ckpt_t *c)
{
    struct gsi_agreement nothing = {.words = 0};
    gs_status_t st;

    if (!(st = add_own_sets (c)))
        st = get_memory (c);
    if (!st && !c->rank && !(st = check_folder (c)) && !(st = lay_out (c)))
        gsi_store_sweep (c);
    if ((st = gsi_agree (c->comm, caller, st, &nothing, NULL)) || (st = share_offsets (c)))
        return st;
    lay_out_blocks (c);
    return GS_OK;
}

void gsi_ckpt_undo (gs_ckpt_t *c)
{
    for (int i = 0; i < GSI_OWN_SETS && c->has_own_sets; i++)
        gsi_h5_set_clear (&c->set[c->arrays + i]);
    c->has_own_sets = false;
    free (c->image);
    free (c->block);
    free (c->first);
    free (c->raw);
    free (c->bits);
    c->image = c->block = NULL;
    c->first = NULL;
    c->raw = NULL;
    c->bits = NULL;
    c->committed = false;
}

gs_status_t gs_ckpt_commit (gs_ckpt_t *ckpt)
{
    gs_status_t st = gsi_ckpt_valid (ckpt, caller);

    if (st)
        return st;
    if (ckpt->committed)
        return gsi_fail (GS_ERR_STATE, "%s: %s is committed already", caller, ckpt->tenant.name);
    if ((st = compare (ckpt)))
        return st;
    if (!ckpt->arrays)
        return gsi_fail (GS_ERR_ARG, "%s: nothing was added to %s", caller, ckpt->tenant.name);
    if ((st = check_all_cover (ckpt)) || (st = make (ckpt))) {
        gsi_ckpt_undo (ckpt);
        return st;
    }
    ckpt->committed = true;
    return GS_OK;
}
