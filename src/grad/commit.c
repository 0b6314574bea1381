/* SPDX-License-Identifier: BSD-3-Clause */
/* commit - compares what all ranks added, and makes storage for it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "grad/carrier.h"
#include "grad/tail.h"
#include "grad/timing.h"
#include "grad/work.h"

#define STATUSES 64 /* more than gs_status_t has */

/* ---- Comparison ---- */

/* What a rank added, as text, a line for each thing: the first line that differs says it all. */
struct text {
    char *at;
    size_t used, room;
    bool failed;
};

__attribute__ ((format (printf, 2, 3))) static void write_text (struct text *t,
                                                                const char *format, ...)
{
    char line[1024], *larger;
    va_list ap;
    size_t length;

    va_start (ap, format);
    vsnprintf (line, sizeof (line), format, ap);
    va_end (ap);
    length = strlen (line);
    if (t->used + length + 1 > t->room) {
        if (!(larger = realloc (t->at, 2 * t->room + sizeof (line)))) {
            t->failed = true;
            return;
        }
        t->at = larger;
        t->room = 2 * t->room + sizeof (line);
    }
    memcpy (t->at + t->used, line, length + 1);
    t->used += length;
}

static void write_gradient (struct text *t, const struct gsi_gradient *g)
{
    write_text (t, "gradient '%.500s', %s, shape [", g->name, gsi_dtype_name (g->dtype));
    for (int d = 0; d < g->dims; d++)
        write_text (t, "%s%zu", d ? ", " : "", g->shape[d]);
    write_text (t, "], memory of %s\n", g->given ? "the caller" : "the reducer");
}

static void write_all (struct text *t, const gs_reducer_t *r)
{
    const gs_reducer_opts_t *o = &r->opts;

    write_text (t, "name '%s'\nbuckets of %zu, %zu and %zu bytes\n", r->name, o->first_bytes,
                o->bucket_bytes, o->last_bytes);
    write_text (t, "wire %s, error_feedback %d, forward %d, is_static %d, weighted %d\n",
                o->wire ? gsi_dtype_name (o->wire) : "as it is", !!o->error_feedback,
                !!o->forward, !!o->is_static, !!o->weighted);
    write_text (t, "average_micro %d, check_finite %d, want_norm %d, max_norm %g\n",
                !!o->average_micro, !!o->check_finite, !!o->want_norm, o->max_norm);
    for (int i = 0; i < r->gradients; i++)
        write_gradient (t, &r->gradient[i]);
    for (int i = 0; i < r->scalars; i++)
        write_text (t, "scalar '%.500s', op %d\n", r->scalar[i].name, (int) r->scalar[i].op);
    write_text (t, "nothing more\n");
}

/* What ranks compare first. */
struct summary {
    uint64_t digest, bytes;
    int32_t failed, can_part;
};

/* The text of rank [root], on all ranks. */
static gs_status_t fetch (const gs_reducer_t *r, const struct text *mine, int root, size_t bytes,
                          char **out)
{
    gs_status_t st;

    if (!(*out = calloc (bytes + 1, 1)))
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_commit: out of memory");
    if (r->rank == root)
        memcpy (*out, mine->at, bytes);
    if ((st = gs_broadcast (r->comm, *out, bytes, GS_U8, root, r->stream))) {
        free (*out);
        *out = NULL;
    }
    return st;
}

/* Says in which line the texts of rank 0 and [other] differ first. */
static gs_status_t tell_difference (const gs_reducer_t *r, int other, char *a, char *b)
{
    char *line_a = NULL, *line_b = NULL, *rest_a = a, *rest_b = b;

    do {
        line_a = strsep (&rest_a, "\n");
        line_b = strsep (&rest_b, "\n");
    } while (rest_a && rest_b && !strcmp (line_a, line_b));
    return gsi_fail (
        GS_ERR_MISMATCH,
        "gs_reducer_commit of %s: rank 0 (host %s) has %s; rank %d (host %s) has %s. "
        "All ranks give the same options and add the same, in the same order",
        r->tenant.name, gs_comm_host_of (r->comm, 0), line_a, other,
        gs_comm_host_of (r->comm, other), line_b);
}

static gs_status_t name_difference (const gs_reducer_t *r, const struct text *mine,
                                    const struct summary *all, int other)
{
    char *a = NULL, *b = NULL;
    gs_status_t st = fetch (r, mine, 0, all[0].bytes, &a);

    if (!st)
        st = fetch (r, mine, other, all[other].bytes, &b);
    if (!st)
        st = tell_difference (r, other, a, b);
    free (a);
    free (b);
    return st;
}

static gs_status_t compare (gs_reducer_t *r)
{
    struct text mine = {0};
    struct summary own = {0}, *all = calloc ((size_t) r->size, sizeof (*all));
    gs_status_t st;

    write_all (&mine, r);
    if (!all) {
        free (mine.at);
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_commit: out of memory");
    }
    own.failed = mine.failed;
    own.can_part = gsi_carrier_can_part (r);
    r->apart = true;
    own.bytes = mine.used;
    own.digest = gsi_host_digest (mine.at, mine.used, 0);
    st = gs_allgather (r->comm, &own, all, sizeof (own), GS_U8, r->stream);
    for (int k = 0; k < r->size && !st; k++) {
        r->apart = r->apart && all[k].can_part;
        if (all[k].failed)
            st = gsi_fail (GS_ERR_NOMEM, "gs_reducer_commit: rank %d is out of memory", k);
        else if (all[k].digest != all[0].digest || all[k].bytes != all[0].bytes)
            st = name_difference (r, &mine, all, k);
    }
    free (mine.at);
    free (all);
    return st;
}

/* ---- Storage ---- */

#define END_BYTES    ((size_t) 1 << 20) /* overlap begins early, and little is left at the end */
#define GPU_BYTES    ((size_t) 25 << 20)
#define HOST_BYTES   ((size_t) 4 << 20)  /* as fast as larger ones, and sooner on its way */
#define INSIDE_BYTES ((size_t) 25 << 20) /* nothing overlaps: the fewer the better */

/* Sizes of buckets that the program leaves to us. */
static void choose_sizes (gs_reducer_t *r)
{
    size_t middle = !r->apart ? INSIDE_BYTES : r->queue ? GPU_BYTES : HOST_BYTES;

    if (!r->opts.bucket_bytes)
        r->opts.bucket_bytes = middle;
    if (!r->opts.first_bytes)
        r->opts.first_bytes = r->apart ? END_BYTES : r->opts.bucket_bytes;
    if (!r->opts.last_bytes)
        r->opts.last_bytes = r->apart ? END_BYTES : r->opts.bucket_bytes;
}

static bool make_lists (gs_reducer_t *r)
{
    size_t n = (size_t) r->gradients;

    r->tensor = calloc (n, sizeof (*r->tensor));
    r->place = calloc (n, sizeof (*r->place));
    r->at = calloc (n, sizeof (*r->at));
    r->count = calloc (n, sizeof (*r->count));
    r->number = calloc (n, sizeof (*r->number));
    r->turn = calloc (n, sizeof (*r->turn));
    r->bucket_of = calloc (n, sizeof (*r->bucket_of));
    r->inspection = calloc (n, sizeof (*r->inspection));
    r->rest = calloc (n, sizeof (*r->rest));
    r->weights = calloc ((size_t) r->size, sizeof (*r->weights));
    return r->tensor && r->place && r->at && r->count && r->number && r->turn && r->bucket_of &&
           r->inspection && r->rest && r->weights;
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
        st = gsi_work_zero (r, *out, bytes, r->stream);
    return st || !bytes ? st : gs_comm_wait (r->comm, r->stream);
}

bool gsi_reducer_is_wired (const gs_reducer_t *r, gs_dtype_t dtype)
{
    return r->opts.wire && (dtype == GS_F32 || dtype == GS_F64);
}

static gs_status_t make_rests (gs_reducer_t *r)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < r->gradients && r->opts.error_feedback && !st; p++) {
        const struct gsi_gradient *g = &r->gradient[r->number[p]];
        if (gsi_reducer_is_wired (r, g->dtype))
            st = gsi_commit_allocate (r, g->bytes, &r->rest[p]);
    }
    return st;
}

static gs_status_t make_staging (gs_reducer_t *r)
{
    bool packs = false;
    void *memory = NULL;
    gs_status_t st;

    for (int i = 0; i < r->gradients; i++)
        packs = packs || r->gradient[i].given || gsi_reducer_is_wired (r, r->gradient[i].dtype);
    if (!packs)
        return GS_OK;
    st = gsi_commit_allocate (r, r->queue ? GSI_STAGING_GPU : GSI_STAGING_HOST, &memory);
    r->staging = memory;
    return st;
}

static gs_status_t open_stream (gs_reducer_t *r)
{
    int previous;
    gs_status_t st;

    if (!r->queue)
        return GS_OK;
    if ((st = r->queue->enter (r->device, &previous)))
        return st;
    st = r->queue->stream_open (&r->stream);
    r->queue->leave (r->device, previous);
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
        st = make_rests (r);
    if (!st)
        st = make_staging (r);
    if (!st)
        st = gsi_order_open (r);
    if (!st)
        st = gsi_tail_open (r);
    if (!st)
        st = gsi_timing_open (r);
    return st ? st : gsi_carrier_open (r);
}

/* It needs no memory, for want of which a rank may have failed. */
gs_status_t gsi_commit_agree (const gs_reducer_t *r, const char *caller, gs_status_t st)
{
    int64_t first = st ? (int64_t) r->rank * STATUSES + (int64_t) st : INT64_MAX;
    gs_status_t carried = gs_allreduce (r->comm, &first, 1, GS_I64, GS_MIN, r->stream);
    int rank = (int) (first / STATUSES);

    if (st || carried || first == INT64_MAX)
        return st ? st : carried;
    return gsi_fail ((gs_status_t) (first % STATUSES),
                     "%s: rank %d (host %s) could not make %s; its own text says why", caller,
                     rank, gs_comm_host_of (r->comm, rank), r->tenant.name);
}

gs_status_t gs_reducer_commit (gs_reducer_t *reducer)
{
    gs_reducer_t *r = reducer;
    gs_status_t st;

    if ((st = gsi_reducer_is_open (r, "gs_reducer_commit")))
        return st;
    if ((st = open_stream (r)) || (st = compare (r))) {
        gsi_commit_undo (r);
        return st;
    }
    if (!r->gradients)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_commit: nothing was added to %s", r->tenant.name);
    else
        st = make_all (r);
    if ((st = gsi_commit_agree (r, "gs_reducer_commit", st))) {
        gsi_commit_undo (r);
        return st;
    }
    r->committed = true;
    gsi_order_reset (r);
    return GS_OK;
}

void gsi_commit_undo (gs_reducer_t *r)
{
    int previous;

    gsi_carrier_close (r);
    gsi_timing_close (r);
    gsi_tail_close (r);
    gsi_order_close (r);
    for (int p = 0; p < r->gradients && r->rest; p++)
        gs_device_free (r->comm, r->rest[p]);
    gs_device_free (r->comm, r->staging);
    gs_device_free (r->comm, r->storage);
    r->staging = NULL;
    r->storage = NULL;
    free (r->tensor), free (r->place), free (r->at), free (r->count), free (r->number);
    free (r->turn), free (r->bucket_of), free (r->inspection), free (r->rest);
    free (r->weights);
    r->tensor = NULL;
    r->place = NULL;
    r->at = NULL;
    r->count = NULL;
    r->number = r->turn = r->bucket_of = NULL;
    r->inspection = NULL;
    r->rest = NULL;
    r->weights = NULL;
    if (r->stream && !r->queue->enter (r->device, &previous)) {
        r->queue->stream_close (r->stream);
        r->queue->leave (r->device, previous);
        r->stream = NULL;
    }
}

gs_status_t gs_reducer_broadcast (gs_reducer_t *reducer, void *const *params, int root,
                                  gs_stream_t stream)
{
    gs_status_t st = gsi_reducer_idle (reducer, "gs_reducer_broadcast");

    if (!st && !params)
        st = gsi_fail (GS_ERR_ARG, "gs_reducer_broadcast: params is NULL");
    if (!st && (root < 0 || root >= reducer->size))
        st =
            gsi_fail (GS_ERR_ARG, "gs_reducer_broadcast: root %d is not a rank of '%s' (0 to %d)",
                      root, gs_comm_name (reducer->comm), reducer->size - 1);
    for (int i = 0; !st && i < reducer->gradients; i++) {
        const struct gsi_gradient *g = &reducer->gradient[i];
        if (params[i])
            st = gs_broadcast (reducer->comm, params[i], g->count, g->dtype, root, stream);
    }
    return st;
}
