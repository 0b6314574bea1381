/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt - the life of a plan: it is created, committed by all ranks alike, and destroyed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/layout.h"
#include "ckpt/save/save.h"
#include "feature/consensus.h"
#include "feature/same.h"
#include "stop/signals.h"

static const char commit_name[] = "gs_ckpt_commit";

#define LEAST_MEMORY ((size_t) 1 << 20)

static gs_status_t check_ckpt_opts (const gs_ckpt_opts_t *opts)
{
    const struct {
        const char *name;
        int is, most;
    } choices[] = {{"ranks", (int) opts->ranks, GS_CKPT_RANKS_FIRST},
                   {"compare", (int) opts->compare, GS_CKPT_COMPARE_NONE},
                   {"busy", (int) opts->busy, GS_CKPT_BUSY_ERROR},
                   {"layout", (int) opts->layout, GS_CKPT_LAYOUT_NODE}};

    if (opts->keep_last < 0 || opts->keep_every < 0)
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_create: keep_last is %d and keep_every %lld: 0 or more",
                         opts->keep_last, (long long) opts->keep_every);
    for (size_t i = 0; i < sizeof (choices) / sizeof (*choices); i++)
        if (choices[i].is < 0 || choices[i].is > choices[i].most)
            return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: unknown %s %d; see gs_ckpt_%s_t",
                             choices[i].name, choices[i].is, choices[i].name);
    if (opts->memory && opts->memory < LEAST_MEMORY)
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_create: memory is %zu bytes: 0 for as much as is needed, or at "
                         "least %zu",
                         opts->memory, LEAST_MEMORY);
    return GS_OK;
}

static gs_status_t check_create (const char *dir, const gs_ckpt_opts_t *opts)
{
    gs_status_t st = gsi_h5_present ("gs_ckpt_create");

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    if (!st)
        return gsi_fail (GS_ERR_UNSUPPORTED, "gs_ckpt_create: this CPU is big endian, files of "
                                             "checkpoints are little endian");
#endif
    if (st)
        return st;
    if (!dir || !*dir)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: dir is %s: give the folder of the files",
                         dir ? "empty" : "NULL");
    return check_ckpt_opts (opts);
}

static void free_plan (gs_ckpt_t *c)
{
    if (!c)
        return;
    gsi_stop_close (&c->stop);
    for (int i = 0; i < c->arrays; i++)
        gsi_h5_set_clear (&c->set[i]);
    free (c->array);
    free (c->set);
    free (c->damaged);
    free (c->given);
    free (c->dir);
    c->magic = 0;
    free (c);
}

gs_status_t gs_ckpt_create (gs_comm_t *comm, const char *dir, const gs_ckpt_opts_t *opts,
                            gs_ckpt_t **ckpt)
{
    gs_ckpt_opts_t taken = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *c;
    gs_status_t st;

    if (!ckpt)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: ckpt is NULL");
    *ckpt = NULL;
    if ((opts &&
         (st = gsi_sized_take (&taken, sizeof (taken), offsetof (gs_ckpt_opts_t, reserved), opts,
                               "gs_ckpt_create: opts", "GS_CKPT_OPTS_INIT"))) ||
        (st = check_create (dir, &taken)))
        return gsi_result (st);
    if (!(c = calloc (1, sizeof (*c))) || !(c->given = strdup (dir)) ||
        !(c->dir = gsi_file_absolute (dir))) {
        st = gsi_fail (GS_ERR_NOMEM, "gs_ckpt_create: out of memory");
    } else {
        c->opts = taken;
        c->opts.name = c->opts.signals = NULL;
        snprintf (c->client.name, sizeof (c->client.name), "plan '%.64s'",
                  taken.name ? taken.name : "checkpoint");
        if (!(st = gsi_stop_open (&c->stop, c->dir, &taken)))
            st = gsi_feature_open (comm, &c->client, "gs_ckpt_create");
    }
    if (st) {
        free_plan (c);
        return gsi_result (st);
    }
    c->magic = GSI_CKPT_MAGIC;
    c->coming.folder = c->coming.top = c->coming.main_file = -1;
    c->comm = comm;
    c->rank = gs_comm_rank (comm);
    c->size = gs_comm_size (comm);
    c->timeout_ns = gsi_feature_timeout_ns (comm);
    snprintf (c->host, sizeof (c->host), "%s", gs_comm_host_of (comm, c->rank));
    snprintf (c->first_host, sizeof (c->first_host), "%s", gs_comm_host_of (comm, 0));
    *ckpt = c;
    return gsi_result (GS_OK);
}

gs_status_t gs_ckpt_destroy (gs_ckpt_t *ckpt)
{
    gs_status_t st;

    if (!ckpt)
        return gsi_result (GS_OK);
    if ((st = gsi_ckpt_check (ckpt, "gs_ckpt_destroy", GSI_CKPT_ANY)))
        return gsi_result (st);
    if (ckpt->save)
        return gsi_fail (GS_ERR_STATE,
                         "gs_ckpt_destroy: a checkpoint of %s is still being written: call "
                         "gs_ckpt_wait first",
                         ckpt->client.name);
    if (!gsi_save_come_back (ckpt)) {
        gsi_log (GS_LOG_WARN, "ckpt",
                 "%s: its memory and its lock stay: a writer thread is blocked in the file "
                 "system",
                 ckpt->client.name);
        pthread_detach (ckpt->hung->worker); /* nobody waits for it any more */
        gsi_feature_close (ckpt->comm, &ckpt->client);
        ckpt->magic = 0;
        return gsi_result (GS_OK);
    }
    gsi_ckpt_undo (ckpt);
    gsi_stage_release (ckpt);
    gsi_feature_close (ckpt->comm, &ckpt->client);
    free_plan (ckpt);
    return gsi_result (GS_OK);
}

gs_status_t gs_stop_requested (gs_ckpt_t *ckpt, int *reasons, gs_stream_t stream)
{
    gs_status_t st = gsi_ckpt_check (ckpt, "gs_stop_requested", GSI_CKPT_COMMITTED);

    return gsi_result (
        st ? st : gsi_stop_ask (&ckpt->stop, ckpt->comm, ckpt->client.name, reasons, stream));
}

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
                            const struct gsi_h5_set *set, bool mixed)
{
    static const char *const kinds[] = {"replicated", "sharded", "per-rank"};
    char shape[24 * GS_CKPT_DIMS_MAX];

    gsi_dims_write (a->shape, a->dims, ", ", shape, sizeof (shape));
    gsi_text_add (t, "%s array '%s', %s, shape [%s]%s\n", kinds[a->kind], a->name,
                  gsi_dtype_name (a->dtype), shape,
                  a->kind != GSI_CKPT_REPLICATED || !a->count || mixed ? ""
                  : a->on_gpu                                          ? ", memory of the GPU"
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

static void describe_plan (struct gsi_text *t, const void *plan)
{
    const gs_ckpt_t *c = plan;
    const gs_ckpt_opts_t *o = &c->opts;
    char signals[200];

    gsi_signals_describe (c->stop.signals, signals, sizeof (signals));
    describe_text (t, c->client.name, "folder", c->given);
    gsi_text_add (t, "keep_last %d, keep_every %" PRId64 ", overwrite %d\n", o->keep_last,
                  o->keep_every, !!o->overwrite);
    gsi_text_add (t, "allow_missing %d, allow_extra %d, ranks %d\n", !!o->allow_missing,
                  !!o->allow_extra, (int) o->ranks);
    gsi_text_add (t, "compare %d, busy %d, lazy %d, layout %d\n", (int) o->compare, (int) o->busy,
                  !!o->lazy, (int) o->layout);
    gsi_text_add (t, "read_only %d, create_folder %d\n", !!o->read_only, !!o->create_folder);
    gsi_text_add (t, "signals %s, stop_margin_s %g\n", signals, c->stop.margin_s);
    for (int i = 0; i < c->arrays; i++)
        describe_array (t, &c->array[i], &c->set[i], gsi_feature_mixed (c->comm));
    describe_grid (t, &c->grid);
}

static gs_status_t compare_plans (const gs_ckpt_t *c)
{
    struct gsi_same same = {
        c->comm, commit_name,
        "All ranks give the same folder and options and add the same, in the same order", NULL};

    return gsi_same (&same, describe_plan, c);
}

/* Whether the blocks of all ranks make the whole array. */
static gs_status_t check_cover (const gs_ckpt_t *c, const struct gsi_ckpt_array *a,
                                struct gsi_block *blocks, const struct gsi_block **sorted)
{
    char text[64 + GS_CKPT_NAME_MAX];
    struct gsi_blocks all = {c->comm, text, a->dims, a->shape, blocks, sizeof (*blocks)};
    size_t whole = 1, covered = 0;
    gs_status_t st;

    snprintf (text, sizeof (text), "%s: array '%s'", commit_name, a->name);
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
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", commit_name);
    st = gsi_consensus (c->comm, commit_name, st, NULL, NULL);
    for (int i = 0; i < c->arrays && !st; i++)
        if (c->array[i].kind == GSI_CKPT_SHARDED)
            st = check_cover (c, &c->array[i], blocks, sorted);
    free (blocks);
    free (sorted);
    return st;
}

gs_status_t gs_ckpt_commit (gs_ckpt_t *ckpt)
{
    gs_status_t st = gsi_ckpt_check (ckpt, commit_name, GSI_CKPT_ANY);

    if (st)
        return gsi_result (st);
    if (ckpt->committed)
        return gsi_fail (GS_ERR_STATE, "%s: %s is committed already", commit_name,
                         ckpt->client.name);
    if ((st = compare_plans (ckpt)))
        return gsi_result (st);
    if (!ckpt->arrays)
        return gsi_fail (GS_ERR_ARG, "%s: nothing was added to %s", commit_name,
                         ckpt->client.name);
    if ((st = check_all_cover (ckpt)) || (st = gsi_ckpt_lay_out (ckpt, commit_name))) {
        gsi_ckpt_undo (ckpt);
        return gsi_result (st);
    }
    ckpt->committed = true;
    return gsi_result (GS_OK);
}
