/* SPDX-License-Identifier: BSD-3-Clause */
/* commit - compares what all ranks added, and makes storage for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "feature/consensus.h"
#include "feature/same.h"
#include "grad/overlap.h"
#include "grad/scheduler.h"
#include "grad/step_exchange.h"
#include "grad/timing.h"
#include "grad/work.h"

/* ---- Comparison ---- */

static void write_gradient (struct gsi_text *t, const struct gsi_gradient *g)
{
    gsi_text_add (t, "gradient '%.500s', %s, shape [", g->name, gsi_dtype_name (g->dtype));
    for (int d = 0; d < g->dims; d++)
        gsi_text_add (t, "%s%zu", d ? ", " : "", g->shape[d]);
    gsi_text_add (t, "], memory of %s\n", g->given ? "the caller" : "the reducer");
}

static void write_all (struct gsi_text *t, const void *reducer)
{
    const gs_reducer_t *r = reducer;
    const gs_reducer_opts_t *o = &r->opts;

    gsi_text_add (t, "name '%s'\nbuckets of %zu, %zu and %zu bytes\n", r->name, o->first_bytes,
                  o->bucket_bytes, o->last_bytes);
    gsi_text_add (t, "wire %s, error_feedback %d, forward %d, weighted %d\n",
                  o->wire ? gsi_dtype_name (o->wire) : "as it is", !!o->error_feedback,
                  !!o->forward, !!o->weighted);
    gsi_text_add (t, "average_micro %d, check_finite %d, want_norm %d, max_norm %.17g\n",
                  !!o->average_micro, !!o->check_finite, !!o->want_norm, o->max_norm);
    for (int i = 0; i < r->gradients; i++)
        write_gradient (t, &r->gradient[i]);
    for (int i = 0; i < r->scalars; i++)
        gsi_text_add (t, "scalar '%.500s', op %d\n", r->scalar[i].name, (int) r->scalar[i].op);
}

static gs_status_t compare_reducers (gs_reducer_t *r)
{
    char subject[sizeof (r->client.name) + 24];
    struct gsi_same same = {r->comm, subject,
                            "All ranks give the same options and add the same, in the same order",
                            r->stream};
    gs_status_t st;

    snprintf (subject, sizeof (subject), "gs_reducer_commit of %s", r->client.name);
    st = gsi_same (&same, write_all, r);
    return st ? st : gsi_overlap_agree (r);
}

/* ---- Storage ---- */

#define END_BYTES    ((size_t) 1 << 20) /* overlap begins early, and little is left at the end */
#define GPU_BYTES    ((size_t) 25 << 20)
#define HOST_BYTES   ((size_t) 4 << 20)  /* as fast as larger ones, and sooner on its way */
#define INSIDE_BYTES ((size_t) 25 << 20) /* nothing overlaps: the fewer the better */

/* Sizes of buckets that the program leaves to us. */
static void choose_sizes (gs_reducer_t *r)
{
    size_t middle = !r->overlaps ? INSIDE_BYTES : r->large ? GPU_BYTES : HOST_BYTES;

    if (!r->opts.bucket_bytes)
        r->opts.bucket_bytes = middle;
    if (!r->opts.first_bytes)
        r->opts.first_bytes = r->overlaps ? END_BYTES : r->opts.bucket_bytes;
    if (!r->opts.last_bytes)
        r->opts.last_bytes = r->overlaps ? END_BYTES : r->opts.bucket_bytes;
}

static bool make_lists (gs_reducer_t *r)
{
    size_t n = (size_t) r->gradients;

    return gsi_reducer_own (r, &r->tensor, n, sizeof (*r->tensor)) &&
           gsi_reducer_own (r, &r->place, n, sizeof (*r->place)) &&
           gsi_reducer_own (r, &r->at, n, sizeof (*r->at)) &&
           gsi_reducer_own (r, &r->count, n, sizeof (*r->count)) &&
           gsi_reducer_own (r, &r->number, n, sizeof (*r->number)) &&
           gsi_reducer_own (r, &r->turn, n, sizeof (*r->turn)) &&
           gsi_reducer_own (r, &r->bucket_of, n, sizeof (*r->bucket_of)) &&
           gsi_reducer_own (r, &r->inspection, n, sizeof (*r->inspection)) &&
           gsi_reducer_own (r, &r->residual, n, sizeof (*r->residual)) &&
           gsi_reducer_own (r, &r->participation, (size_t) r->size, sizeof (*r->participation)) &&
           gsi_reducer_own (r, &r->weights, 2 * (size_t) r->size, sizeof (*r->weights));
}

void gsi_commit_settle (gs_reducer_t *r, void *storage)
{
    for (int p = 0; p < r->gradients; p++) {
        struct gsi_gradient *g = &r->gradient[r->place[p].tensor];
        g->place = p;
        r->number[p] = r->place[p].tensor;
        r->count[p] = g->count;
        r->at[p] = g->given ? g->given : (char *) storage + r->place[p].offset;
        r->inspection[p] = (struct gsi_run){.src = r->at[p], .count = g->count};
    }
    r->storage = storage;
}

gs_status_t gsi_commit_allocate (gs_reducer_t *r, size_t bytes, void **out)
{
    gs_status_t st = gs_device_alloc (r->comm, bytes, out);

    if (!st)
        st = gsi_work_zero (r, *out, bytes);
    if (!st && bytes)
        st = gs_comm_wait (r->comm, r->stream);
    if (!st)
        return GS_OK;
    gs_device_free (r->comm, *out);
    *out = NULL;
    return st;
}

static gs_status_t make_residuals (gs_reducer_t *r)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < r->gradients && r->opts.error_feedback && !st; p++) {
        const struct gsi_gradient *g = &r->gradient[r->number[p]];
        if (gsi_buckets_is_wired (r, g->dtype))
            st = gsi_commit_allocate (r, g->bytes, &r->residual[p]);
    }
    return st;
}

static gs_status_t make_staging (gs_reducer_t *r)
{
    bool packs = false;
    void *memory = NULL;
    gs_status_t st;

    for (int i = 0; i < r->gradients; i++)
        packs = packs || r->gradient[i].given || gsi_buckets_is_wired (r, r->gradient[i].dtype);
    if (!packs)
        return GS_OK;
    st = gsi_commit_allocate (r, r->large ? GSI_STAGING_GPU : GSI_STAGING_HOST, &memory);
    r->staging = memory;
    return st;
}

static gs_status_t make_storage (gs_reducer_t *r)
{
    void *storage = NULL;
    int *order = calloc ((size_t) r->gradients, sizeof (*order));
    size_t bytes = 0;
    gs_status_t st;

    if (!order || !make_lists (r)) {
        free (order);
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_commit: out of memory");
    }
    for (int i = 0; i < r->gradients; i++) {
        const struct gsi_gradient *g = &r->gradient[i];
        order[i] = r->opts.forward ? i : r->gradients - 1 - i;
        r->tensor[i] =
            (struct gsi_tensor){.dtype = g->dtype, .bytes = g->bytes, .outside = g->given};
    }
    st = gsi_plan_store (r->tensor, r->gradients, order, r->place, &bytes);
    if (!st)
        st = gsi_commit_allocate (r, bytes, &storage);
    if (!st)
        gsi_commit_settle (r, storage);
    /* What became ready k-th is the k-th of the order, wherever it lies. */
    for (int k = 0; k < r->gradients && !st; k++)
        r->turn[r->gradient[order[k]].place] = k;
    free (order);
    return st;
}

static gs_status_t make_all (gs_reducer_t *r)
{
    gs_status_t st;

    choose_sizes (r);
    st = make_storage (r);
    if (!st)
        st = make_residuals (r);
    if (!st)
        st = make_staging (r);
    if (!st)
        st = gsi_buckets_open (r);
    if (!st)
        st = gsi_step_exchange_open (r);
    if (!st)
        st = gsi_timing_open (r);
    return st ? st : gsi_scheduler_open (r);
}

/* Once this rank has a stream, or else [st]. */
static gs_status_t commit_all (gs_reducer_t *r, gs_status_t st)
{
    if ((st = gsi_consensus (r->comm, "gs_reducer_commit", st, NULL, r->stream)) ||
        (st = compare_reducers (r)))
        return st;
    if (!r->gradients)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_commit: nothing was added to %s", r->client.name);
    else
        st = make_all (r);
    return gsi_consensus (r->comm, "gs_reducer_commit", st, NULL, r->stream);
}

gs_status_t gs_reducer_commit (gs_reducer_t *reducer)
{
    gs_reducer_t *r = reducer;
    gs_status_t st = gsi_reducer_is_open (r, "gs_reducer_commit"), entered;
    int previous;

    if (st)
        return gsi_result (st);
    st = entered = gsi_reducer_enter (r, &previous);
    if (!st && r->queue)
        st = r->queue->stream_open (&r->stream);
    if ((st = commit_all (r, st))) {
        gsi_commit_undo (r);
    } else {
        r->committed = true;
        gsi_buckets_reset (r);
    }
    if (!entered)
        gsi_reducer_leave (r, previous);
    return gsi_result (st);
}

void gsi_commit_undo (gs_reducer_t *r)
{
    gsi_scheduler_close (r);
    gsi_timing_close (r);
    gsi_step_exchange_close (r);
    for (int p = 0; p < r->gradients && r->residual; p++)
        gs_device_free (r->comm, r->residual[p]);
    gs_device_free (r->comm, r->staging);
    gs_device_free (r->comm, r->storage);
    r->staging = NULL;
    r->storage = NULL;
    r->buckets = 0;
    while (r->lists) {
        void *pointer = r->owned[--r->lists], *list;
        memcpy (&list, pointer, sizeof (list));
        memset (pointer, 0, sizeof (list));
        free (list);
    }
    if (r->stream && gsi_feature_part (r->comm))
        r->queue->stream_close (r->stream);
    r->stream = NULL;
}

/* All of them before the first is sent; [given] becomes a number of those that are. */
static gs_status_t check_params (const gs_reducer_t *r, void *const *params, int root,
                                 uint64_t *given)
{
    gs_status_t st = GS_OK;
    char text[160];

    if (!params)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_broadcast: params is NULL");
    if (root < 0 || root >= r->size)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_broadcast: root %d is not a rank of '%s' (0 to %d)", root,
                         gs_comm_name (r->comm), r->size - 1);
    for (int i = 0; i < r->gradients && !st; i++) {
        const struct gsi_gradient *g = &r->gradient[i];
        uint64_t so_far[] = {*given, params[i] != NULL};
        snprintf (text, sizeof (text), "gs_reducer_broadcast ('%.100s')", g->name);
        *given = gsi_hash (so_far, sizeof (so_far));
        if (params[i])
            st = gsi_feature_check (r->comm, text, params[i], g->count, g->dtype, NULL);
    }
    return st;
}

/* Else two ranks might leave out different ones that look alike, and take one for the other. */
static gs_status_t agree_on_params (const gs_reducer_t *r, void *const *params, int root)
{
    struct gsi_agreement a = {.words = 1};
    gs_status_t st = check_params (r, params, root, &a.word[0]);

    st = gsi_consensus (r->comm, "gs_reducer_broadcast", st, &a, r->stream);
    if (st || a.differs < 0)
        return st;
    return gsi_fail (GS_ERR_MISMATCH,
                     "gs_reducer_broadcast: rank %d (host %s) leaves out other parameters than "
                     "rank %d (host %s): give NULL for the same ones on all ranks",
                     a.least_rank, gs_comm_host_of (r->comm, a.least_rank), a.most_rank,
                     gs_comm_host_of (r->comm, a.most_rank));
}

gs_status_t gs_reducer_broadcast (gs_reducer_t *reducer, void *const *params, int root,
                                  gs_stream_t stream)
{
    gs_status_t st = gsi_reducer_idle (reducer, "gs_reducer_broadcast");

    if (!st)
        st = agree_on_params (reducer, params, root);
    for (int i = 0; !st && i < reducer->gradients; i++) {
        const struct gsi_gradient *g = &reducer->gradient[i];
        if (params[i])
            st = gs_broadcast (reducer->comm, params[i], g->count, g->dtype, root, stream);
    }
    return gsi_result (st);
}
