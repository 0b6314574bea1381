/* SPDX-License-Identifier: BSD-3-Clause */
/* relayout - the storage in the order in which gradients became ready. */
#include <stdlib.h>

#include "feature/consensus.h"
#include "grad/reducer.h"

/* What is known of each gradient by its place, to be found again at another one. */
struct moved {
    void **at, **residual;       /* [gradients] as they were added */
    int *turn;                   /* [gradients] likewise */
    int *order;                  /* [gradients] which was ready first, second, ... */
    struct gsi_placement *place; /* [gradients] those that r->place has not */
};

static bool open_moved (struct moved *m, const gs_reducer_t *r)
{
    size_t n = (size_t) r->gradients;

    m->place = calloc (n, sizeof (*m->place));
    m->at = calloc (n, sizeof (*m->at));
    m->residual = calloc (n, sizeof (*m->residual));
    m->turn = calloc (n, sizeof (*m->turn));
    m->order = calloc (n, sizeof (*m->order));
    return m->place && m->at && m->residual && m->turn && m->order;
}

static void close_moved (struct moved *m)
{
    free (m->at);
    free (m->residual);
    free (m->turn);
    free (m->order);
    free (m->place);
}

static void remember (const gs_reducer_t *r, struct moved *m)
{
    for (int p = 0; p < r->gradients; p++) {
        int number = r->number[p];
        m->at[number] = r->at[p];
        m->residual[number] = r->residual[p];
        m->turn[number] = r->turn[p];
        m->order[r->turn[p]] = number;
    }
}

/* Notes that everything is in [storage], at the other places; again: where it was. */
static void settle (gs_reducer_t *r, struct moved *m, void *storage)
{
    struct gsi_placement *other = m->place;

    m->place = r->place;
    r->place = other;
    gsi_commit_settle (r, storage);
    for (int p = 0; p < r->gradients; p++) {
        r->residual[p] = m->residual[r->number[p]];
        r->turn[p] = m->turn[r->number[p]];
    }
}

static gs_status_t copy_gradients (gs_reducer_t *r, const struct moved *m)
{
    gs_status_t st = GS_OK;

    for (int p = 0; p < r->gradients && !st; p++) {
        const struct gsi_gradient *g = &r->gradient[r->number[p]];
        if (!g->given && g->bytes)
            st = gs_device_copy (r->comm, r->at[p], m->at[r->number[p]], g->bytes, r->stream);
    }
    return st ? st : gs_comm_wait (r->comm, r->stream);
}

static gs_status_t all_good (const gs_reducer_t *r, gs_status_t st)
{
    return gsi_consensus (r->comm, "gs_reducer_relayout", st, NULL, r->stream);
}

/* Plans other places, for which it makes [*storage]. */
static gs_status_t plan_places (gs_reducer_t *r, struct moved *m, void **storage)
{
    size_t bytes = 0;
    gs_status_t st;

    remember (r, m);
    st = gsi_plan_store (r->tensor, r->gradients, m->order, m->place, &bytes);
    return st ? st : gsi_commit_allocate (r, bytes, storage);
}

/* What fails on one rank changes nothing on any; [st] is this rank's so far. */
static gs_status_t relayout (gs_reducer_t *r, struct moved *m, gs_status_t st)
{
    void *old = r->storage, *storage = NULL;
    struct gsi_failure failed = {.st = GS_OK};

    if (!st && !open_moved (m, r))
        st = gsi_fail (GS_ERR_NOMEM, "gs_reducer_relayout: out of memory");
    if (!st)
        st = plan_places (r, m, &storage);
    if (!(st = all_good (r, st))) {
        settle (r, m, storage);
        if ((st = all_good (r, copy_gradients (r, m))))
            settle (r, m, old);
    }
    gsi_failure_note (&failed, st);
    gs_device_free (r->comm, st ? storage : old);
    if (!st) {
        gsi_buckets_cut (r);
        gsi_buckets_reset (r);
    }
    return gsi_failure_repeat (&failed);
}

/* What the program has queued on the gradients. */
static gs_status_t await_program (const gs_reducer_t *r)
{
    gs_status_t st = gs_comm_wait (r->comm, NULL);

    return st ? st : gs_comm_wait (r->comm, r->last);
}

gs_status_t gs_reducer_relayout (gs_reducer_t *reducer)
{
    gs_reducer_t *r = reducer;
    struct moved m = {0};
    int previous;
    gs_status_t st = gsi_reducer_idle (r, "gs_reducer_relayout"), entered;

    if (!st && !r->step)
        st = gsi_fail (GS_ERR_STATE, "gs_reducer_relayout: %s has not finished a step yet",
                       r->client.name);
    if (!st)
        st = gs_broadcast (r->comm, r->turn, (size_t) r->gradients, GS_I32, 0, r->stream);
    if (st)
        return gsi_result (st);
    entered = gsi_reducer_enter (r, &previous);
    st = relayout (r, &m, entered ? entered : await_program (r));
    if (!entered)
        gsi_reducer_leave (r, previous);
    close_moved (&m);
    return gsi_result (st);
}
