/* SPDX-License-Identifier: BSD-3-Clause */
/* commit - compares what all ranks added, and lays out the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"
#include "ckpt/layout.h"
#include "stop/signals.h"
#include "ckpt/folder/store.h"
#include "feature/same.h"

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
    char shape[24 * GS_CKPT_DIMS_MAX];

    gsi_dims_write (a->shape, a->dims, ", ", shape, sizeof (shape));
    gsi_text_add (t, "%s array '%s', %s, shape [%s]%s\n", kinds[a->kind], a->name,
                  gsi_dtype_name (a->dtype), shape,
                  a->kind != GSI_CKPT_REPLICATED || !a->count ? ""
                  : a->on_gpu                                 ? ", memory of the GPU"
                                                              : ", memory of the host");
    for (int i = 0; i < set->texts; i++)
        describe_text (t, a->name, set->text[i].name, set->text[i].text);
    if (set->place)
        gsi_text_add (t, "field '%s', %s of the grid\n", a->name,
                      set->place == GSI_H5_POINTS ? "at points" : "in cells");
}

static void describe_grid (struct gsi_text *t, const struct gsi_h5_grid *grid)
{
    for (int d = 0; d < grid->dims; d++)
        gsi_text_add (t, "grid of %d dimensions, number %d: origin %.17g, spacing %.17g\n",
                      grid->dims, gsi_dims_number (d, grid->dims), grid->origin[d],
                      grid->spacing[d]);
}

static gs_status_t compare_plans (const gs_ckpt_t *c)
{
    const gs_ckpt_opts_t *o = &c->opts;
    struct gsi_text t = {0};
    char signals[200];
    gs_status_t st;

    gsi_signals_describe (c->stop.signals, signals, sizeof (signals));
    describe_text (&t, c->client.name, "folder", c->given);
    gsi_text_add (&t, "keep_last %d, keep_every %" PRId64 ", overwrite %d\n", o->keep_last,
                  o->keep_every, !!o->overwrite);
    gsi_text_add (&t, "allow_missing %d, allow_extra %d, ranks %d\n", !!o->allow_missing,
                  !!o->allow_extra, (int) o->ranks);
    gsi_text_add (&t, "compare %d, busy %d, lazy %d, layout %d\n", (int) o->compare,
                  (int) o->busy, !!o->lazy, (int) o->layout);
    gsi_text_add (&t, "read_only %d, create_folder %d\n", !!o->read_only, !!o->create_folder);
    gsi_text_add (&t, "signals %s, stop_margin_s %g\n", signals, c->stop.margin_s);
    for (int i = 0; i < c->arrays; i++)
        describe_array (&t, &c->array[i], &c->set[i]);
    describe_grid (&t, &c->grid);
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
    gs_status_t st = GS_OK;

    if (!blocks || !sorted || gsi_fault ("ckpt.memory"))
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    st = gsi_ckpt_agree (c, caller, st, NULL);
    for (int i = 0; i < c->arrays && !st; i++)
        if (c->array[i].kind == GSI_CKPT_SHARDED)
            st = check_cover (c, &c->array[i], blocks, sorted);
    free (blocks);
    free (sorted);
    return st;
}

gs_status_t gs_ckpt_commit (gs_ckpt_t *ckpt)
{
    gs_status_t st = gsi_ckpt_valid (ckpt, caller);

    if (st)
        return gsi_result (st);
    if (ckpt->committed)
        return gsi_fail (GS_ERR_STATE, "%s: %s is committed already", caller, ckpt->client.name);
    if ((st = compare_plans (ckpt)))
        return gsi_result (st);
    if (!ckpt->arrays)
        return gsi_fail (GS_ERR_ARG, "%s: nothing was added to %s", caller, ckpt->client.name);
    if ((st = check_all_cover (ckpt)) || (st = gsi_ckpt_lay_out (ckpt, caller))) {
        gsi_ckpt_undo (ckpt);
        return gsi_result (st);
    }
    ckpt->committed = true;
    return gsi_result (GS_OK);
}
