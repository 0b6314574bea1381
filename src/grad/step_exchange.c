/* SPDX-License-Identifier: BSD-3-Clause */
/* step_exchange - what ranks tell each other at the end of a step. */
#include "grad/step_exchange.h"

#include <math.h>
#include <string.h>

#define SLOTS     8 /* exchanges that GPUs may be behind the host */
#define LATE_FROM 1 /* us: less is noise */

/* What a rank tells; bytes of it depend on the number of scalars. */
struct step_exchange_word {
    struct gsi_found found;
    uint64_t proposed; /* digest of the buckets that its order would give, when that is due */
    int64_t step;
    int32_t micro_steps, joined;
    double busy_us;
    double scalar[];
};

struct gsi_step_exchange {
    size_t bytes;            /* of a word */
    char *own, *all;         /* [SLOTS] words, [SLOTS][size] words; pinned on GPUs */
    char *own_there, *there; /* (GPUs) a word and [size] words on the device, */
    struct gsi_found *found_there, *neutral; /* what is found, and pinned, how it begins */
    double *factor;                          /* (GPUs) of max_norm; parts of a norm follow */
    struct gsi_event *event[SLOTS];          /* (GPUs) the exchange has ended */
    struct gsi_found found;                  /* (hosts) */
    int slot;                                /* of the last exchange */
    double *scalar;                          /* [scalars] this rank's */
    double *weights, weight_sum;             /* of the last exchange */
};

static int slots (const gs_reducer_t *r)
{
    return r->queue ? SLOTS : 1;
}

static const struct step_exchange_word *word_of (const gs_reducer_t *r, int rank)
{
    const struct gsi_step_exchange *t = r->step_exchange;
    size_t index = (size_t) t->slot * (size_t) r->size + (size_t) rank;

    return (const struct step_exchange_word *) (const void *) (t->all + index * t->bytes);
}

struct gsi_found *gsi_step_exchange_found (struct gsi_step_exchange *x)
{
    return x->found_there ? x->found_there : &x->found;
}

double *gsi_step_exchange_room (struct gsi_step_exchange *x)
{
    return x->factor + 1;
}

void gsi_step_exchange_set (struct gsi_step_exchange *x, int scalar, double value)
{
    x->scalar[scalar] = value;
}

static const struct gsi_found nothing = {.bad = GSI_ALL_FINITE};

/* ---- Life ---- */

static gs_status_t open_device (gs_reducer_t *r)
{
    struct gsi_step_exchange *t = r->step_exchange;
    size_t all = t->bytes * (size_t) r->size;
    void *pinned = NULL, *device = NULL;
    gs_status_t st =
        r->queue->alloc_pinned (SLOTS * (t->bytes + all) + sizeof (nothing), &pinned);

    t->own = pinned;
    for (int i = 0; i < SLOTS && !st; i++)
        st = r->queue->event_open (&t->event[i]);
    if (!st)
        st = r->device->ops->alloc (r->device,
                                    t->bytes + all + sizeof (nothing) +
                                        (1 + GSI_SQUARES_PARTS) * sizeof (double),
                                    &device);
    if (!st) {
        t->all = t->own + SLOTS * t->bytes;
        t->neutral = (struct gsi_found *) (void *) (t->all + SLOTS * all);
        *t->neutral = nothing;
        t->own_there = device;
        t->there = t->own_there + t->bytes;
        t->found_there = (struct gsi_found *) (void *) (t->there + all);
        t->factor = (double *) (void *) (t->found_there + 1);
        st = r->queue->copy (t->found_there, t->neutral, sizeof (nothing), r->stream);
    }
    return st;
}

gs_status_t gsi_step_exchange_open (gs_reducer_t *r)
{
    size_t ranks = (size_t) r->size;
    struct gsi_step_exchange *t;

    if (!gsi_reducer_own (r, &r->step_exchange, 1, sizeof (*t)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    t = r->step_exchange;
    t->bytes = sizeof (struct step_exchange_word) + (size_t) r->scalars * sizeof (double);
    t->found = nothing;
    if (!gsi_reducer_own (r, &t->scalar, (size_t) r->scalars + 1, sizeof (double)) ||
        !gsi_reducer_own (r, &t->weights, ranks, sizeof (double)) ||
        (!r->queue && (!gsi_reducer_own (r, &t->own, 1, t->bytes) ||
                       !gsi_reducer_own (r, &t->all, ranks, t->bytes))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", r->client.name);
    return r->queue ? open_device (r) : GS_OK;
}

void gsi_step_exchange_close (gs_reducer_t *r)
{
    struct gsi_step_exchange *t = r->step_exchange;

    if (!t || !r->queue)
        return;
    gs_device_free (r->comm, t->own_there); /* waits for the device, or keeps it */
    for (int i = 0; i < SLOTS; i++)
        r->queue->event_close (t->event[i]);
    r->queue->free_pinned (r->device, t->own);
}

/* ---- The exchange ---- */

static void fill (gs_reducer_t *r, struct step_exchange_word *own, bool due, double busy_us)
{
    struct gsi_step_exchange *t = r->step_exchange;

    own->found = t->found;
    own->proposed = !due ? 0 : r->joined ? r->digest : gsi_buckets_propose (r);
    own->step = r->step;
    own->micro_steps = r->micro_steps;
    own->joined = r->joined;
    own->busy_us = busy_us;
    memcpy (own->scalar, t->scalar, (size_t) r->scalars * sizeof (double));
    for (int k = 0; k < r->size; k++)
        t->weights[k] = r->opts.weighted ? r->weights[k] : 1;
    t->weight_sum = r->opts.weighted ? r->weight_sum : r->size;
    t->found = nothing;
}

/* The slot must have been left by the exchange before it. */
static gs_status_t free_slot (gs_reducer_t *r, int slot)
{
    bool done = true;
    gs_status_t st = r->queue->event_done (r->step_exchange->event[slot], &done);

    return st || done ? st : gs_comm_wait (r->comm, r->stream);
}

static gs_status_t queue_exchange (gs_reducer_t *r, const struct step_exchange_word *own,
                                   int slot)
{
    struct gsi_step_exchange *t = r->step_exchange;
    const struct gsi_stream_ops *q = r->queue;
    size_t all = t->bytes * (size_t) r->size;
    bool finds = r->opts.check_finite || r->opts.want_norm || r->opts.max_norm > 0;
    gs_status_t st = q->copy (t->own_there, own, t->bytes, r->stream);

    if (finds && !st)
        st = q->copy (t->own_there, t->found_there, sizeof (nothing), r->stream);
    if (finds && !st)
        st = q->copy (t->found_there, t->neutral, sizeof (nothing), r->stream);
    if (!st)
        st = gs_allgather (r->comm, t->own_there, t->there, t->bytes, GS_U8, r->stream);
    if (!st)
        st = q->copy (t->all + (size_t) slot * all, t->there, all, r->stream);
    if (!st)
        st = q->event_record (t->event[slot], r->stream);
    return st;
}

gs_status_t gsi_step_exchange_exchange (gs_reducer_t *r, bool due, double busy_us)
{
    struct gsi_step_exchange *t = r->step_exchange;
    int slot = (int) (r->step % slots (r));
    struct step_exchange_word *own =
        (struct step_exchange_word *) (void *) (t->own + (size_t) slot * t->bytes);
    gs_status_t st = r->queue ? free_slot (r, slot) : GS_OK;

    if (st)
        return st;
    fill (r, own, due, busy_us);
    st = r->queue ? queue_exchange (r, own, slot)
                  : gs_allgather (r->comm, own, t->all, t->bytes, GS_U8, NULL);
    t->slot = slot;
    return st;
}

gs_status_t gsi_step_exchange_await (gs_reducer_t *r)
{
    return r->queue ? gs_comm_wait (r->comm, r->stream) : gsi_feature_alive (r->comm);
}

gs_status_t gsi_step_exchange_factor (gs_reducer_t *r, const double **factor)
{
    struct gsi_step_exchange *t = r->step_exchange;
    const struct gsi_found *first = (const struct gsi_found *) (const void *) t->there;

    *factor = t->factor;
    return r->queue->norm_factor (&first->squares, t->bytes, r->size, r->opts.max_norm, t->factor,
                                  r->stream);
}

/* ---- What follows from it ---- */

gs_status_t gsi_step_exchange_verdict (const gs_reducer_t *r)
{
    const struct step_exchange_word *zero = word_of (r, 0);

    for (int k = 0; k < r->size; k++) {
        const struct step_exchange_word *w = word_of (r, k);
        const char *host = gs_comm_host_of (r->comm, k);
        if (w->step != zero->step ||
            (r->opts.average_micro && w->micro_steps != zero->micro_steps))
            return gsi_fail (GS_ERR_MISMATCH,
                             "%s: rank 0 (host %s) is in step %lld after %d micro-steps, rank %d "
                             "(host %s) in step %lld after %d",
                             r->client.name, gs_comm_host_of (r->comm, 0), (long long) zero->step,
                             zero->micro_steps, k, host, (long long) w->step, w->micro_steps);
        if (w->found.bad < (uint32_t) r->gradients)
            return gsi_fail (GS_ERR_ARG,
                             "%s, step %lld: gradient '%s' of rank %d (host %s) had a NaN or an "
                             "infinity before it was averaged",
                             r->client.name, (long long) r->step,
                             r->gradient[r->number[w->found.bad]].name, k, host);
    }
    return GS_OK;
}

bool gsi_step_exchange_wants_order (const gs_reducer_t *r, bool *differ)
{
    uint64_t proposed = word_of (r, 0)->proposed;

    *differ = false;
    for (int k = 1; k < r->size; k++)
        *differ = *differ || word_of (r, k)->proposed != proposed;
    return proposed != r->digest;
}

int gsi_step_exchange_late (const gs_reducer_t *r, double *late_us)
{
    double least = word_of (r, 0)->busy_us, most = least;
    int late = 0;

    for (int k = 1; k < r->size; k++) {
        double busy = word_of (r, k)->busy_us;
        if (busy < least) {
            least = busy;
            late = k;
        }
        most = busy > most ? busy : most;
    }
    *late_us = most - least;
    return r->size == 1 || most - least < LATE_FROM ? -1 : late;
}

bool gsi_step_exchange_past (const gs_reducer_t *r)
{
    struct gsi_step_exchange *t = r->step_exchange;
    bool done = true;

    return !r->queue || (!r->queue->event_done (t->event[t->slot], &done) && done);
}

/* A NaN on either side stays. */
static double lesser (double a, double b)
{
    return isnan (a) || a < b ? a : b;
}

double gsi_step_exchange_scalar (const gs_reducer_t *r, int index)
{
    const struct gsi_step_exchange *t = r->step_exchange;
    double result = 0;
    bool first = true;

    for (int k = 0; k < r->size; k++) {
        double x = word_of (r, k)->scalar[index];
        if (word_of (r, k)->joined)
            continue; /* it had no step of its own */
        switch (r->scalar[index].op) {
        case GS_MIN: result = first ? x : lesser (result, x); break;
        case GS_MAX: result = first ? x : -lesser (-result, -x); break;
        case GS_AVG: result += t->weights[k] > 0 ? t->weights[k] * x : 0; break;
        default: result += x; break;
        }
        first = false;
    }
    if (r->scalar[index].op == GS_AVG)
        result = t->weight_sum > 0 ? result / t->weight_sum : 0;
    return result;
}

double gsi_step_exchange_norm (const gs_reducer_t *r)
{
    double sum = 0;

    for (int k = 0; k < r->size; k++)
        sum += word_of (r, k)->found.squares;
    return sqrt (sum);
}
