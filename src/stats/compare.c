/* SPDX-License-Identifier: BSD-3-Clause */
/* compare - arrays across ranks: by digests, and where these differ, by the elements. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/status.h"
#include "device/element.h"
#include "feature/consensus.h"
#include "feature/host_access.h"

static const char caller[] = "gs_arrays_compare";

#define PIECE_BYTES ((size_t) 1 << 20)
#define NAME_SHOWN  64
#define RANKS_SHOWN 8

/* What a rank tells about an array; in words. */
struct card {
    uint64_t name_hash, count, dtype, digest;
    char name[NAME_SHOWN];
};
#define CARD_WORDS (sizeof (struct card) / sizeof (uint64_t))

/* The first difference that a rank has found; in words. */
struct finding {
    uint64_t status; /* gs_status_t */
    uint64_t found, element;
    unsigned char mine[16], theirs[16];
};
#define FINDING_WORDS (sizeof (struct finding) / sizeof (uint64_t))

struct comparison {
    gs_comm_t *comm;
    const gs_array_t *arrays;
    size_t number;
    double tolerance;
    gs_stream_t stream;
    uint64_t *digests;        /* [number] */
    struct card *cards;       /* [size] of one array */
    struct finding *findings; /* [size] */
    char *piece;              /* [PIECE_BYTES] of the rank that others are held to */
};

/* ---- Digests ---- */

/* Queues the digests of the arrays on a GPU, which are added up in [there]. */
static gs_status_t queue_digests (struct comparison *w, uint64_t *there, const bool *on_gpu)
{
    const struct gsi_stream_ops *queue = gsi_feature_device (w->comm)->ops->streams;
    size_t bytes = w->number * sizeof (*there);
    gs_status_t st = queue->zero (there, bytes, w->stream);

    for (size_t i = 0; i < w->number && !st; i++)
        if (on_gpu[i])
            st = queue->digest (w->arrays[i].data,
                                w->arrays[i].count * gs_dtype_size (w->arrays[i].dtype), 0,
                                &there[i], w->stream);
    return st;
}

static gs_status_t digest_on_gpu (struct comparison *w, const bool *on_gpu)
{
    const struct gsi_device *device = gsi_feature_device (w->comm);
    size_t bytes = w->number * sizeof (uint64_t);
    struct gsi_host_access fetch;
    const void *digests;
    void *there = NULL;
    int previous;
    gs_status_t st = gs_device_alloc (w->comm, bytes, &there), freed;

    if (st)
        return st;
    st = gsi_host_access_open (&fetch, w->comm, caller, there, w->number, GS_U64, bytes,
                               w->stream);
    if (!st && !(st = device->ops->streams->enter (device, &previous))) {
        st = queue_digests (w, there, on_gpu);
        device->ops->streams->leave (device, previous);
    }
    if (!st && !(st = gsi_host_access (&fetch, there, bytes, &digests)))
        memcpy (w->digests, digests, bytes);
    gsi_host_access_close (&fetch);
    if (st == GS_ERR_TIMEOUT)
        return st; /* the GPU may still write there, and a free would wait for it */
    freed = gs_device_free (w->comm, there);
    return st ? st : freed;
}

static gs_status_t digest_all (struct comparison *w)
{
    bool *on_gpu = calloc (w->number + 1, sizeof (*on_gpu)), any = false;
    gs_status_t st = GS_OK;

    if (!on_gpu)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    for (size_t i = 0; i < w->number && !st; i++) {
        const gs_array_t *a = &w->arrays[i];
        bool staged;
        st = gsi_feature_check (w->comm, caller, a->data, a->count, a->dtype, &staged);
        on_gpu[i] = !st && a->count && gsi_feature_device (w->comm)->ops->streams && !staged;
        any = any || on_gpu[i];
    }
    if (!st && any)
        st = digest_on_gpu (w, on_gpu);
    else if (!st && gsi_feature_device (w->comm)->ops->streams)
        st = gs_comm_wait (w->comm, w->stream); /* which may write to memory of the host, too */
    for (size_t i = 0; i < w->number && !st; i++)
        if (!on_gpu[i])
            w->digests[i] = gsi_host_digest (
                w->arrays[i].data, w->arrays[i].count * gs_dtype_size (w->arrays[i].dtype), 0);
    free (on_gpu);
    return st;
}

static struct card card_of (const struct comparison *w, size_t i)
{
    const gs_array_t *a = &w->arrays[i];
    struct card card = {.name_hash = gsi_hash (a->name, strlen (a->name)),
                        .count = a->count,
                        .dtype = a->dtype,
                        .digest = w->digests[i]};

    snprintf (card.name, sizeof (card.name), "%s", a->name);
    return card;
}

/* One number for all that this rank gives. */
static uint64_t digest_of_list (const struct comparison *w)
{
    uint64_t hash = 0;

    for (size_t i = 0; i < w->number; i++) {
        struct card card = card_of (w, i);
        hash += gsi_host_digest (&card, sizeof (card), i * CARD_WORDS);
    }
    return hash;
}

/* ---- Elements ---- */

static bool is_near (double a, double b, double tolerance)
{
    if (isnan (a) || isnan (b))
        return isnan (a) && isnan (b);
    if (isinf (a) || isinf (b))
        return a == b;
    return fabs (a - b) <= tolerance * fmax (fabs (a), fabs (b));
}

/* Whether two elements count as equal. */
static bool is_equal (const struct comparison *w, gs_dtype_t dtype, const unsigned char *a,
                      const unsigned char *b)
{
    gs_dtype_t part = gsi_part_of (dtype);
    size_t width = gs_dtype_size (dtype), step = gs_dtype_size (part);

    if (!memcmp (a, b, width))
        return true;
    if (w->tolerance == 0 || gsi_dtype_is_integer (dtype))
        return false;
    for (size_t at = 0; at < width; at += step)
        if (!is_near (gsi_number_at (part, a + at, 0), gsi_number_at (part, b + at, 0),
                      w->tolerance))
            return false;
    return true;
}

/* Looks for the first difference in [bytes] of both, which begin at [at] in the array. */
static void search (const struct comparison *w, gs_dtype_t dtype, const unsigned char *mine,
                    size_t at, size_t bytes, struct finding *f)
{
    const unsigned char *theirs = (const unsigned char *) w->piece;
    size_t width = gs_dtype_size (dtype);

    if (f->found || !memcmp (mine, theirs, bytes))
        return;
    for (size_t i = 0; i < bytes; i += width)
        if (!is_equal (w, dtype, mine + i, theirs + i)) {
            f->found = 1;
            f->element = (at + i) / width;
            memcpy (f->mine, mine + i, width);
            memcpy (f->theirs, theirs + i, width);
            return;
        }
}

/* Holds array [i] of all ranks to that of rank [root], piece by piece. All ranks find out. */
static gs_status_t find_elements (struct comparison *w, size_t i, int root)
{
    const gs_array_t *a = &w->arrays[i];
    size_t bytes = a->count * gs_dtype_size (a->dtype);
    struct finding own = {0};
    struct gsi_host_access fetch;
    gs_status_t mine, st = GS_OK;

    mine = gsi_host_access_open (&fetch, w->comm, caller, a->data, a->count, a->dtype,
                                 PIECE_BYTES, w->stream);
    for (size_t at = 0; at < bytes && !st; at += PIECE_BYTES) {
        size_t part = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        const void *piece = NULL;
        if (!mine)
            mine = gsi_host_access (&fetch, (const char *) a->data + at, part, &piece);
        if (!mine && gs_comm_rank (w->comm) == root)
            memcpy (w->piece, piece, part);
        st = gs_broadcast (w->comm, w->piece, part, GS_U8, root, w->stream);
        if (!mine && !st)
            search (w, a->dtype, piece, at, part, &own);
    }
    gsi_host_access_close (&fetch);
    if (st)
        return st;
    own.status = mine;
    st = gs_allgather (w->comm, &own, w->findings, FINDING_WORDS, GS_U64, w->stream);
    for (int r = 0; r < gs_comm_size (w->comm) && !st; r++)
        if (w->findings[r].status && r != gs_comm_rank (w->comm))
            st = gsi_fail ((gs_status_t) w->findings[r].status,
                           "%s: rank %d (host %s) could not read its array '%s'", caller, r,
                           gs_comm_host_of (w->comm, r), a->name);
    return mine ? mine : st;
}

/* ---- What is told ---- */

static void print_value (char *text, size_t room, gs_dtype_t dtype, const unsigned char *at)
{
    gs_dtype_t part = gsi_part_of (dtype);
    size_t width = gs_dtype_size (dtype);
    int digits = part == GS_F64 ? 17 : 9;
    uint64_t bits = 0;
    int64_t number;

    if (gsi_dtype_is_complex (dtype)) {
        snprintf (text, room, "(%.*g, %.*g)", digits, gsi_number_at (part, at, 0), digits,
                  gsi_number_at (part, at + width / 2, 0));
    } else if (!gsi_dtype_is_integer (dtype)) {
        snprintf (text, room, "%.*g", digits, gsi_number_at (part, at, 0));
    } else {
        memcpy (&bits, at, width); /* the low bytes */
        number = (int64_t) (bits << (64 - 8 * width)) >> (64 - 8 * width);
        if (dtype >= GS_U8)
            snprintf (text, room, "%llu", (unsigned long long) bits);
        else
            snprintf (text, room, "%lld", (long long) number);
    }
}

/* "3, 5, 7 and 4 more". */
static void list_ranks (const struct comparison *w, char *text, size_t room)
{
    int shown = 0, all = 0;
    size_t at = 0;

    for (int r = 0; r < gs_comm_size (w->comm); r++) {
        if (!w->findings[r].found || all++ >= RANKS_SHOWN)
            continue;
        at += (size_t) snprintf (text + at, room - at, "%s%d", shown++ ? ", " : "", r);
    }
    if (all > shown)
        snprintf (text + at, room - at, " and %d more", all - shown);
}

static gs_status_t tell_elements (const struct comparison *w, size_t i, int root, int rank)
{
    const gs_array_t *a = &w->arrays[i];
    const struct finding *f = &w->findings[rank];
    char mine[80], theirs[80], ranks[RANKS_SHOWN * 12 + 32];

    print_value (mine, sizeof (mine), a->dtype, f->mine);
    print_value (theirs, sizeof (theirs), a->dtype, f->theirs);
    list_ranks (w, ranks, sizeof (ranks));
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: array %zu of %zu, '%s' (%s, %zu elements), differs: rank %d (host %s) "
                     "has %s in element %zu (from 0), rank %d (host %s) has %s%s. Ranks that "
                     "differ: %s",
                     caller, i + 1, w->number, a->name, gsi_dtype_name (a->dtype), a->count, rank,
                     gs_comm_host_of (w->comm, rank), mine, (size_t) f->element, root,
                     gs_comm_host_of (w->comm, root), theirs,
                     strcmp (mine, theirs) != 0 ? "" : ", with other bits", ranks);
}

static gs_status_t tell_cards (const struct comparison *w, size_t i, int rank)
{
    const struct card *a = &w->cards[0], *b = &w->cards[rank];

    return gsi_fail (
        GS_ERR_MISMATCH,
        "%s: array %zu is '%s' (%s, %llu elements) on rank 0 (host %s), but '%s' (%s, %llu "
        "elements) on rank %d (host %s): all ranks must give the same arrays in the same order",
        caller, i + 1, a->name, gsi_dtype_name ((gs_dtype_t) a->dtype),
        (unsigned long long) a->count, gs_comm_host_of (w->comm, 0), b->name,
        gsi_dtype_name ((gs_dtype_t) b->dtype), (unsigned long long) b->count, rank,
        gs_comm_host_of (w->comm, rank));
}

/* The lowest rank with what most ranks have; -1 if all have the same. */
static int find_reference (const struct comparison *w)
{
    int size = gs_comm_size (w->comm), best = 0, most = 0;

    for (int r = 0; r < size; r++) {
        int same = 0;
        for (int k = 0; k < size; k++)
            same += w->cards[k].digest == w->cards[r].digest;
        if (same > most) {
            most = same;
            best = r;
        }
        if (2 * most >= size)
            break;
    }
    return most == size ? -1 : best;
}

/* Compares array [i], which all ranks have. */
static gs_status_t compare_one (struct comparison *w, size_t i)
{
    struct card own = card_of (w, i);
    int root;
    gs_status_t st = gs_allgather (w->comm, &own, w->cards, CARD_WORDS, GS_U64, w->stream);

    if (st)
        return st;
    for (int r = 1; r < gs_comm_size (w->comm); r++)
        if (w->cards[r].name_hash != w->cards[0].name_hash ||
            w->cards[r].count != w->cards[0].count || w->cards[r].dtype != w->cards[0].dtype)
            return tell_cards (w, i, r);
    if ((root = find_reference (w)) < 0)
        return GS_OK;
    if ((st = find_elements (w, i, root)))
        return st;
    for (int r = 0; r < gs_comm_size (w->comm); r++)
        if (w->findings[r].found)
            return tell_elements (w, i, root, r);
    return GS_OK; /* within the tolerance */
}

/* ---- The call ---- */

static gs_status_t check_arrays (const struct comparison *w)
{
    gs_status_t st = gsi_feature_check (w->comm, caller, NULL, 0, GS_U8, NULL);

    if (st)
        return st;
    if (!(w->tolerance >= 0 && w->tolerance <= 1))
        return gsi_fail (GS_ERR_ARG, "%s: tolerance is %g: 0 to 1 make sense", caller,
                         w->tolerance);
    if (w->number && !w->arrays)
        return gsi_fail (GS_ERR_ARG, "%s: arrays is NULL, but number is %zu", caller, w->number);
    if (w->number > SIZE_MAX / sizeof (struct card))
        return gsi_fail (GS_ERR_ARG, "%s: number is %zu: too many arrays", caller, w->number);
    for (size_t i = 0; i < w->number; i++) {
        const gs_array_t *a = &w->arrays[i];
        if (!a->name)
            return gsi_fail (GS_ERR_ARG, "%s: array %zu has no name", caller, i + 1);
        if ((st = gsi_feature_check (w->comm, caller, a->data, a->count, a->dtype, NULL)))
            return st;
    }
    return GS_OK;
}

static gs_status_t allocate (struct comparison *w)
{
    size_t size = (size_t) gs_comm_size (w->comm);

    w->digests = calloc (w->number + 1, sizeof (*w->digests));
    w->cards = calloc (size, sizeof (*w->cards));
    w->findings = calloc (size, sizeof (*w->findings));
    w->piece = calloc (1, PIECE_BYTES);
    if (!w->digests || !w->cards || !w->findings || !w->piece || gsi_fault ("compare.memory"))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    return GS_OK;
}

/* Names the first difference; [same] tells where there are some. */
static gs_status_t name_difference (struct comparison *w, const struct gsi_agreement *same)
{
    size_t common = same->differs == 1 ? (size_t) same->least : w->number;
    gs_status_t st = GS_OK;

    if (same->differs == 0)
        return gsi_fail (GS_ERR_MISMATCH,
                         "%s: ranks %d and %d give different tolerances: all must give the same",
                         caller, same->least_rank, same->most_rank);
    for (size_t i = 0; i < common && !st; i++)
        st = compare_one (w, i);
    if (st || same->differs != 1)
        return st;
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) gives %zu arrays, rank %d (host %s) %zu: all ranks "
                     "must give the same",
                     caller, same->least_rank, gs_comm_host_of (w->comm, same->least_rank),
                     (size_t) same->least, same->most_rank,
                     gs_comm_host_of (w->comm, same->most_rank), (size_t) same->most);
}

gs_status_t gs_arrays_compare (gs_comm_t *comm, const gs_array_t *arrays, size_t number,
                               double tolerance, gs_stream_t stream)
{
    struct comparison w = {.comm = comm,
                           .arrays = arrays,
                           .number = number,
                           .tolerance = tolerance,
                           .stream = stream};
    struct gsi_agreement same = {.words = 3};
    gs_status_t st = check_arrays (&w);

    if (st)
        return gsi_result (st);
    if (!(st = allocate (&w)) && !(st = digest_all (&w))) {
        memcpy (&same.word[0], &tolerance, sizeof (tolerance));
        same.word[1] = number;
        same.word[2] = digest_of_list (&w);
    }
    st = gsi_consensus (comm, caller, st, &same, stream);
    if (!st && same.differs >= 0)
        st = name_difference (&w, &same);
    free (w.digests);
    free (w.cards);
    free (w.findings);
    free (w.piece);
    return gsi_result (st);
}
