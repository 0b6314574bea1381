/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rabenseifner - an allreduce of middling size among many nodes, in 2 log2 (ranks) messages of a
 * rank.
 *
 * Ranks halve what they have left with one partner after the other, and add up the half that they
 * keep; then they double it with the same partners, the nearest first (R. Rabenseifner,
 * Optimization of collective reduction operations, 2004). Where their number is no power of two,
 * some leave what they give to a neighbour, and get the result from there.
 *
 * Each element is summed by one rank, so all get the same bits, but not in rank order. f16 and
 * bf16 travel as sums in fp32 until they are rounded, once.
 */
#include <string.h>

#include "base/dtype.h"
#include "host/coll_host.h"

#define MOST_STEPS 32

/* One block. Sums are at [sum]; what arrives, and then the results, at [in]. */
struct rabenseifner {
    struct gsi_coll_host *c;
    const struct gsi_call *call;
    size_t width, wide; /* bytes of an element, and of its sum */
    char *sum, *in;
    struct gsi_reduction add; /* two sums */
    int places, folded;       /* ranks that halve; those of them that do it for two */
    int place;                /* of this one among them, or -1 */
};

static int rank_of (const struct rabenseifner *j, int place)
{
    return place < j->folded ? 2 * place : place + j->folded;
}

/* Sends [out] bytes at [from] to [peer] and takes [in] bytes to [to], either may be 0. */
static gs_status_t swap (const struct rabenseifner *j, int peer, const char *from, size_t out,
                         char *to, size_t in)
{
    struct gsi_pipeline_slot *slot = &j->c->slot[0];
    gs_status_t st = GS_OK;

    if (in)
        st = gsi_net_recv (j->c, slot, to, in, peer, GSI_TAG_RABENSEIFNER);
    if (out && !st)
        st = gsi_net_send (j->c, slot, from, out, peer, GSI_TAG_RABENSEIFNER);
    return st ? st : gsi_net_wait (j->c, slot, j->call);
}

/* Adds the [n] sums that have arrived to those from [first] on; [before] is the lower rank's. */
static void add_arrived (const struct rabenseifner *j, size_t first, size_t n, bool before)
{
    char *own = j->sum + first * j->wide;
    const void *source[2] = {before ? j->in : own, before ? own : j->in};

    j->c->device->ops->reduce (&j->add, own, source, 2, n);
}

/* Sums the elements from low[d] to high[d], with the last d, halved from the ones before. */
static gs_status_t halve (const struct rabenseifner *j, size_t *low, size_t *high)
{
    gs_status_t st = GS_OK;

    for (int step = j->places / 2, d = 0; step && !st; step /= 2, d++) {
        size_t middle = low[d] + (high[d] - low[d]) / 2, n;
        bool upper = j->place & step;
        size_t give = upper ? low[d] : middle, given = upper ? middle - low[d] : high[d] - middle;
        low[d + 1] = upper ? middle : low[d];
        high[d + 1] = upper ? high[d] : middle;
        n = high[d + 1] - low[d + 1];
        st = swap (j, rank_of (j, j->place ^ step), j->sum + give * j->wide, given * j->wide,
                   j->in, n * j->wide);
        if (!st)
            add_arrived (j, low[d + 1], n, upper);
    }
    return st;
}

/* Gathers the results on the way back. */
static gs_status_t redouble (const struct rabenseifner *j, const size_t *low, const size_t *high)
{
    gs_status_t st = GS_OK;
    int d = 0;

    while (1 << d < j->places)
        d++;
    for (int step = 1; step < j->places && !st; step *= 2, d--) {
        bool upper = j->place & step;
        size_t take = upper ? low[d - 1] : high[d], taken_end = upper ? low[d] : high[d - 1];
        st = swap (j, rank_of (j, j->place ^ step), j->in + low[d] * j->width,
                   (high[d] - low[d]) * j->width, j->in + take * j->width,
                   (taken_end - take) * j->width);
    }
    return st;
}

/* Sums [n] elements of all ranks, of which this one gives j->sum, into j->in. */
static gs_status_t reduce_parts (const struct rabenseifner *j, const struct gsi_reduction *finish,
                                 size_t n)
{
    size_t low[MOST_STEPS] = {0}, high[MOST_STEPS] = {n};
    const void *own;
    int rank = j->c->rank, d = 0;
    bool two = rank < 2 * j->folded;
    gs_status_t st = GS_OK;

    if (j->place < 0 && (st = swap (j, rank - 1, j->sum, n * j->wide, NULL, 0)))
        return st;
    if (j->place < 0)
        return swap (j, rank - 1, NULL, 0, j->in, n * j->width);
    if (two && !(st = swap (j, rank + 1, NULL, 0, j->in, n * j->wide)))
        add_arrived (j, 0, n, false);
    if (st || (st = halve (j, low, high)))
        return st;
    while (1 << d < j->places)
        d++;
    own = j->sum + low[d] * j->wide;
    j->c->device->ops->reduce (finish, j->in + low[d] * j->width, &own, 1, high[d] - low[d]);
    if (!(st = redouble (j, low, high)) && two)
        st = swap (j, rank + 1, j->in, n * j->width, NULL, 0);
    return st;
}

gs_status_t gsi_rabenseifner_allreduce (struct gsi_coll_host *c, char *buf, size_t count,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    bool reduced = gsi_dtype_is_reduced (how->dtype);
    struct rabenseifner j = {
        .c = c, .call = call, .width = gs_dtype_size (how->dtype), .places = 1};
    struct gsi_reduction start = *how, finish = *how;
    gs_status_t st = GS_OK;
    size_t most;

    start.divisor = 1;
    start.sums = reduced ? GSI_SUMS_OUT : GSI_SUMS_NONE;
    start.scale = how->scale ? &how->scale[c->rank] : NULL;
    finish.sums = reduced ? GSI_SUMS_IN : GSI_SUMS_NONE;
    finish.scale = NULL;
    j.add = (struct gsi_reduction){
        .dtype = reduced ? GS_F32 : how->dtype, .op = how->op, .divisor = 1};
    j.wide = reduced ? sizeof (float) : j.width;
    while (2 * j.places <= c->size)
        j.places *= 2;
    j.folded = c->size - j.places;
    j.place = c->rank >= 2 * j.folded ? c->rank - j.folded : c->rank % 2 ? -1 : c->rank / 2;
    j.sum = c->slot[0].send;
    j.in = j.sum + GSI_RABENSEIFNER_BYTES;
    most = GSI_RABENSEIFNER_BYTES / j.wide;
    for (size_t done = 0, n; done < count && !st; done += n) {
        const void *own = buf + done * j.width;
        n = count - done < most ? count - done : most;
        c->device->ops->reduce (&start, j.sum, &own, 1, n);
        if (!(st = reduce_parts (&j, &finish, n)))
            memcpy (buf + done * j.width, j.in, n * j.width);
    }
    return st;
}
