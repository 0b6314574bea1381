/* SPDX-License-Identifier: BSD-3-Clause */
/* stats - moments of samples that are spread over the ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "feature/consensus.h"
#include "feature/host_access.h"
#include "stats/moments.h"

static const char caller[] = "gs_moments_compute";

#define PIECE_VALUES ((size_t) 32 << 10) /* about so many are looked at at once */
#define SMALL_BYTES  ((size_t) 64 << 10) /* up to which every rank hears of all others */
#define WORDS        (sizeof (gs_moments_t) / sizeof (uint64_t))

/* A call. */
struct samples_work {
    gs_comm_t *comm;
    const char *x;
    size_t samples, features, width;
    gs_dtype_t dtype;
    const unsigned char *mask;
    size_t mask_width;
    gs_stream_t stream;

    size_t piece; /* samples at once */
    struct gsi_host_access values, masks;
    double *values_room, *columns; /* a piece as doubles; see gsi_moments_add */
    gs_moments_t *own;             /* [features] of this rank */
    bool complained;

    bool small;           /* all ranks hear of all; else each merges a share of the features */
    gs_moments_t *heard;  /* those of other ranks */
    gs_moments_t *merged; /* [features] */
    size_t *counts;       /* [3 * size] words: sent to each rank, received, of each share */
};

/* ---- This rank's samples ---- */

#define CASE(DTYPE, TYPE)                                 \
    case DTYPE:                                           \
        for (size_t i = 0; i < count; i++)                \
            out[i] = (double) ((const TYPE *) memory)[i]; \
        break

/* [count] elements as doubles. */
static void load_piece (gs_dtype_t dtype, const void *memory, size_t count, double *out)
{
    const struct gsi_conversion how = {.from = dtype, .to = GS_F64, .scale = 1};
    const struct gsi_run run = {memory, out, count};

    switch (dtype) {
#define GSI_INTEGER(NAME, name, value, T, ...) CASE (GS_##NAME, T);
#include "base/dtype.def"
    default: gsi_host_convert (&how, &run, 1); break;
    }
}

/* Warns of the first value that is left out. */
static void warn_left_out (struct samples_work *w, const struct gsi_samples *s, size_t first)
{
    size_t sample, feature;

    if (w->complained || !gsi_moments_find_nonfinite (s, &sample, &feature))
        return;
    w->complained = true;
    gsi_log (GS_LOG_WARN, "stats",
             "%s: rank %d of '%s' (host %s) has values that are NaN or infinite, which are left "
             "out; the first is in sample %zu, feature %zu (from 0)",
             caller, gs_comm_rank (w->comm), gs_comm_name (w->comm),
             gs_comm_host_of (w->comm, gs_comm_rank (w->comm)), first + sample, feature);
}

static uint64_t bad_of (const struct samples_work *w)
{
    uint64_t bad = 0;

    for (size_t f = 0; f < w->features && !w->complained; f++)
        bad += w->own[f].bad;
    return bad;
}

static gs_status_t add_piece (struct samples_work *w, size_t first, size_t samples)
{
    size_t count = samples * w->features;
    struct gsi_samples s = {
        .mask_width = w->mask_width, .samples = samples, .features = w->features};
    const void *values, *mask = NULL;
    gs_status_t st = gsi_host_access (&w->values, w->x + first * w->features * w->width,
                                      count * w->width, &values);

    if (!st && w->mask)
        st = gsi_host_access (&w->masks, w->mask + first * w->mask_width, samples * w->mask_width,
                              &mask);
    if (st)
        return st;
    s.mask = mask;
    s.x = w->dtype == GS_F64 ? values : w->values_room;
    if (w->dtype != GS_F64)
        load_piece (w->dtype, values, count, w->values_room);
    gsi_moments_add (w->own, w->columns, &s);
    if (bad_of (w))
        warn_left_out (w, &s, first);
    return GS_OK;
}

static gs_status_t look_at_own (struct samples_work *w)
{
    gs_status_t st = GS_OK;

    for (size_t at = 0; w->features && at < w->samples && !st; at += w->piece)
        st = add_piece (w, at, w->samples - at < w->piece ? w->samples - at : w->piece);
    return st;
}

/* ---- Those of all ranks ---- */

/* The features that rank [r] merges begin with this one. */
static size_t share_begin (const struct samples_work *w, int r)
{
    size_t size = (size_t) gs_comm_size (w->comm), rank = (size_t) r;
    size_t each = w->features / size, more = w->features % size;

    return rank * each + (rank < more ? rank : more);
}

/* Merges what [size] ranks told of [features], in rank order. */
static void merge_heard (const struct samples_work *w, gs_moments_t *into, size_t features)
{
    memset (into, 0, features * sizeof (*into));
    for (int r = 0; r < gs_comm_size (w->comm); r++)
        gsi_moments_merge (into, w->heard + (size_t) r * features, features);
}

static gs_status_t hear_shares (struct samples_work *w)
{
    size_t size = (size_t) gs_comm_size (w->comm), begin;
    size_t *send = w->counts, *recv = send + size, *shares = recv + size, mine;
    int rank = gs_comm_rank (w->comm);
    gs_status_t st;

    begin = share_begin (w, rank);
    mine = share_begin (w, rank + 1) - begin;
    for (int r = 0; r < (int) size; r++) {
        shares[r] = send[r] = (share_begin (w, r + 1) - share_begin (w, r)) * WORDS;
        recv[r] = mine * WORDS;
    }
    st = gs_alltoallv (w->comm, w->own, send, NULL, w->heard, recv, NULL, GS_U64, w->stream);
    if (st)
        return st;
    merge_heard (w, w->own, mine); /* which have been sent */
    return gs_allgatherv (w->comm, w->own, mine * WORDS, w->merged, w->features * WORDS, shares,
                          NULL, GS_U64, w->stream);
}

static gs_status_t hear (struct samples_work *w)
{
    gs_status_t st;

    if (!w->small)
        return hear_shares (w);
    if ((st = gs_allgather (w->comm, w->own, w->heard, w->features * WORDS, GS_U64, w->stream)))
        return st;
    merge_heard (w, w->merged, w->features);
    return GS_OK;
}

/* ---- The call ---- */

static gs_status_t check_samples (const struct samples_work *w, const gs_moments_t *moments)
{
    size_t bytes, size = (size_t) gs_comm_size (w->comm), count, all;
    gs_status_t st = gsi_dtype_bytes (caller, 1, w->dtype, &bytes);

    if (st)
        return st;
    if (gsi_dtype_is_complex (w->dtype))
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: %s has no minimum and no maximum: give real and imaginary parts as "
                         "features, as twice as many reals",
                         caller, gsi_dtype_name (w->dtype));
    if (__builtin_mul_overflow (w->samples, w->features, &count) ||
        __builtin_mul_overflow (w->features, size * GSI_MOMENTS_ROOM * sizeof (double), &all))
        return gsi_fail (GS_ERR_ARG,
                         "%s: %zu samples of %zu features are more than memory can "
                         "hold",
                         caller, w->samples, w->features);
    if (!moments && w->features)
        return gsi_fail (GS_ERR_ARG, "%s: moments is NULL, but features is %zu", caller,
                         w->features);
    if (w->mask && w->mask_width != 1 && w->mask_width != w->features)
        return gsi_fail (GS_ERR_ARG,
                         "%s: mask_width is %zu: 1 for a mask of samples, %zu, the features, for "
                         "one of values",
                         caller, w->mask_width, w->features);
    return GS_OK;
}

/* Room for all that follows; sizes were checked. */
static gs_status_t allocate (struct samples_work *w)
{
    size_t size = (size_t) gs_comm_size (w->comm), one = sizeof (gs_moments_t);
    size_t share = w->features / size + 1;

    w->piece = w->features ? PIECE_VALUES / w->features : 1;
    w->piece = w->piece > GSI_MOMENTS_SAMPLES ? GSI_MOMENTS_SAMPLES : w->piece ? w->piece : 1;
    w->small = w->features <= SMALL_BYTES / one / size;
    w->own = calloc (w->features + share, one); /* shares may be longer than what is sent */
    w->merged = malloc ((w->features + 1) * one);
    w->heard = malloc (size * (w->small ? w->features + 1 : share) * one);
    w->counts = malloc (3 * size * sizeof (*w->counts));
    w->columns = malloc ((w->features + 1) * GSI_MOMENTS_ROOM * sizeof (double));
    w->values_room = malloc ((w->piece * w->features + 1) * sizeof (double));
    if (!w->own || !w->merged || !w->heard || !w->counts || !w->columns || !w->values_room ||
        gsi_fault ("stats.memory"))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    return GS_OK;
}

static void release_work (struct samples_work *w)
{
    gsi_host_access_close (&w->values);
    gsi_host_access_close (&w->masks);
    free (w->own);
    free (w->merged);
    free (w->heard);
    free (w->counts);
    free (w->columns);
    free (w->values_room);
}

static gs_status_t open_arrays (struct samples_work *w)
{
    size_t values = w->piece * w->features, count = w->samples * w->features;
    gs_status_t st = gsi_host_access_open (&w->values, w->comm, caller, w->x, count, w->dtype,
                                           values * w->width, w->stream);

    if (st || !w->mask)
        return st;
    return gsi_host_access_open (&w->masks, w->comm, caller, w->mask, w->samples * w->mask_width,
                                 GS_U8, w->piece * w->mask_width, w->stream);
}

gs_status_t gs_moments_compute (gs_comm_t *comm, const void *x, size_t samples, size_t features,
                                gs_dtype_t dtype, const unsigned char *mask, size_t mask_width,
                                gs_moments_t *moments, gs_stream_t stream)
{
    struct samples_work w = {.comm = comm,
                             .x = x,
                             .samples = samples,
                             .features = features,
                             .width = gs_dtype_size (dtype),
                             .dtype = dtype,
                             .mask = mask,
                             .mask_width = mask_width,
                             .stream = stream};
    struct gsi_agreement same = {.words = 1, .word = {features}};
    gs_status_t st = gsi_feature_check (comm, caller, NULL, 0, GS_U8, NULL);

    if (st || (st = check_samples (&w, moments)) ||
        (st = gsi_feature_check (comm, caller, x, samples * features, dtype, NULL)) ||
        (mask &&
         (st = gsi_feature_check (comm, caller, mask, samples * mask_width, GS_U8, NULL))))
        return gsi_result (st);
    if (!(st = allocate (&w)) && !(st = open_arrays (&w)))
        st = look_at_own (&w);
    st = gsi_consensus (comm, caller, st, &same, stream);
    if (!st && same.differs >= 0)
        st = gsi_fail (
            GS_ERR_MISMATCH,
            "%s: rank %d (host %s) gives %zu features, rank %d (host %s) %zu: all ranks "
            "must give the same number",
            caller, same.least_rank, gs_comm_host_of (comm, same.least_rank), (size_t) same.least,
            same.most_rank, gs_comm_host_of (comm, same.most_rank), (size_t) same.most);
    if (!st && features && !(st = hear (&w)))
        memcpy (moments, w.merged, features * sizeof (*moments));
    release_work (&w);
    return gsi_result (st);
}
