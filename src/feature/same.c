/* SPDX-License-Identifier: BSD-3-Clause */
/* same - whether all ranks were told the same. */
#include "feature/same.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "device/runs.h"
#include "feature/consensus.h"

void gsi_text_add (struct gsi_text *t, const char *format, ...)
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

struct same_work {
    gs_comm_t *comm;
    const char *caller, *cure;
    gs_stream_t stream;
};

/* Says in which line the texts of two ranks differ first. */
static gs_status_t tell_difference (const struct same_work *w, const int *rank, char **text)
{
    char *line[2];

    do {
        line[0] = strsep (&text[0], "\n");
        line[1] = strsep (&text[1], "\n");
    } while (text[0] && text[1] && !strcmp (line[0], line[1]));
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) has %s; rank %d (host %s) has %s. %s", w->caller,
                     rank[0], gs_comm_host_of (w->comm, rank[0]), line[0], rank[1],
                     gs_comm_host_of (w->comm, rank[1]), line[1], w->cure);
}

/* The texts of two ranks, of at most [bytes] each, on all of them. */
static gs_status_t name_difference (const struct same_work *w, const struct gsi_text *mine,
                                    const int *rank, size_t bytes)
{
    struct gsi_agreement a = {.words = 0};
    char *text = calloc (bytes + 1, 2), *both[2] = {text, text + bytes + 1};
    gs_status_t st = text ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", w->caller);

    st = gsi_consensus (w->comm, w->caller, st, &a, w->stream);
    for (int i = 0; i < 2 && !st; i++) {
        if (gs_comm_rank (w->comm) == rank[i])
            memcpy (both[i], mine->at, mine->used);
        st = gs_broadcast (w->comm, both[i], bytes, GS_U8, rank[i], w->stream);
    }
    if (!st)
        st = tell_difference (w, rank, both);
    free (text);
    return st;
}

gs_status_t gsi_same (gs_comm_t *comm, const struct gsi_text *mine, const char *caller,
                      const char *cure, gs_stream_t stream)
{
    struct same_work w = {comm, caller, cure, stream};
    struct gsi_agreement a = {.words = 2, .word = {gsi_host_digest (mine->at, mine->used, 0)}};
    uint64_t most = mine->used;
    int rank[2];
    gs_status_t st = mine->failed ? gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller) : GS_OK;

    a.word[1] = mine->used;
    if ((st = gsi_consensus (comm, caller, st, &a, stream)) || a.differs == -1)
        return st;
    rank[a.least_rank > a.most_rank] = a.least_rank;
    rank[a.least_rank < a.most_rank] = a.most_rank;
    if ((st = gs_allreduce (comm, &most, 1, GS_U64, GS_MAX, stream)))
        return st;
    return name_difference (&w, mine, rank, most);
}
