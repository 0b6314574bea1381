/* SPDX-License-Identifier: BSD-3-Clause */
/* same - whether all ranks were told the same. */
#include "feature/same.h"

#include <stdarg.h>
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

/* Says in which line the texts of two ranks differ first. */
static gs_status_t tell_difference (const struct gsi_same *s, const int *rank, char **text)
{
    char *line[2];

    do {
        line[0] = strsep (&text[0], "\n");
        line[1] = strsep (&text[1], "\n");
    } while (text[0] && text[1] && !strcmp (line[0], line[1]));
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) has %s; rank %d (host %s) has %s. %s", s->caller,
                     rank[0], gs_comm_host_of (s->comm, rank[0]), line[0], rank[1],
                     gs_comm_host_of (s->comm, rank[1]), line[1], s->cure);
}

/* The texts of the two ranks that differ, on all of them. */
static gs_status_t name_difference (const struct gsi_same *s, const struct gsi_agreement *a,
                                    const struct gsi_text *mine)
{
    size_t bytes = a->differs ? mine->used : a->most;
    char *text = calloc (bytes + 1, 2), *both[2] = {text, text + bytes + 1};
    int rank[2];
    gs_status_t st = text ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->caller);

    rank[a->least_rank > a->most_rank] = a->least_rank;
    rank[a->least_rank < a->most_rank] = a->most_rank;
    st = gsi_consensus (s->comm, s->caller, st, NULL, s->stream);
    for (int i = 0; i < 2 && !st; i++) {
        if (gs_comm_rank (s->comm) == rank[i])
            memcpy (both[i], mine->at, mine->used);
        st = gs_broadcast (s->comm, both[i], bytes, GS_U8, rank[i], s->stream);
    }
    if (!st)
        st = tell_difference (s, rank, both);
    free (text);
    return st;
}

gs_status_t gsi_same (const struct gsi_same *s,
                      void (*write) (struct gsi_text *text, const void *context),
                      const void *context)
{
    struct gsi_text mine = {0};
    struct gsi_agreement a = {.words = 2};
    gs_status_t st;

    write (&mine, context);
    gsi_text_add (&mine, "nothing more\n"); /* so that no text is the beginning of another */
    st = mine.failed ? gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->caller) : GS_OK;
    a.word[0] = mine.used;
    a.word[1] = gsi_host_digest (mine.at, mine.used, 0);
    if (!(st = gsi_consensus (s->comm, s->caller, st, &a, s->stream)) && a.differs != -1)
        st = name_difference (s, &a, &mine);
    free (mine.at);
    return st;
}
