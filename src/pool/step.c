/* SPDX-License-Identifier: BSD-3-Clause */
/* step - what programs call in each step: rows go, results come back, and gradients likewise. */
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/process.h"
#include "base/sized.h"
#include "feature/consensus.h"
#include "pool/pool.h"

gs_status_t gsi_pool_valid (const gs_pool_t *pool, const char *caller)
{
    gs_status_t st =
        gsi_handle_check (caller, "pool", "pool", pool, pool && pool->magic == GSI_POOL_MAGIC);

    if (!st && pool->calling)
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s is inside a call of on_batch or on_gradient, which make no "
                         "calls on it",
                         caller, pool->client.name);
    return st ? st : gsi_feature_alive (pool->comm);
}

static struct gsi_pool_step *step_of (gs_pool_t *p, uint64_t number)
{
    return &p->step[number % GSI_POOL_STEPS];
}

static gs_status_t begin_stage (gs_pool_t *p, struct gsi_node_call *c, const char *caller,
                                enum gsi_pool_stage stage)
{
    return gsi_node_call_begin (c, p->comm, caller, GSI_OP_POOL, gsi_pool_argument (p, stage),
                                p->opts.stream);
}

/* ---- Waiting for other ranks ---- */

/* Whether the rank with place [index] has done what is numbered [number], from 1. */
typedef bool (*there_f) (const gs_pool_t *p, int index, uint64_t number);

static bool has (const atomic_uint_fast64_t *word, uint64_t number)
{
    return atomic_load_explicit (word, memory_order_acquire) >= number;
}

static bool has_told (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, index)->told, number);
}

static bool has_written (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, index)->written[(number - 1) % GSI_POOL_STEPS], number);
}

static bool has_graded (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, index)->graded, number);
}

/* Of these, [index] is the place of an evaluator among the evaluators. */
static bool has_evaluated (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, p->evaluator[index])->done[GSI_POOL_FORWARD], number);
}

static bool has_taken_back (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, p->evaluator[index])->done[GSI_POOL_BACKWARD], number);
}

/* Waits until those from [first] up to [end] have. */
static gs_status_t await (gs_pool_t *p, struct gsi_node_call *c, there_f there, uint64_t number,
                          int first, int end)
{
    gs_status_t st;

    for (int i = first;;) {
        while (i < end && there (p, i, number))
            i++;
        if (i == end)
            return GS_OK;
        if ((st = gsi_node_call_pause (c)))
            return st;
    }
}

static void announce (atomic_uint_fast64_t *word, uint64_t number)
{
    atomic_store_explicit (word, number, memory_order_release);
}

/* ---- Rows go ---- */

/* Says that this rank's rows of step [number], from 0, are there. */
static void post_written (gs_pool_t *p, uint64_t number)
{
    step_of (p, number)->given = true;
    announce (&gsi_pool_line_of (p, p->index)->written[number % GSI_POOL_STEPS], number + 1);
}

/* All ranks tell how many rows they have, by which each knows where its own are to be. */
static gs_status_t place_rows (gs_pool_t *p, struct gsi_node_call *c, size_t rows)
{
    struct gsi_pool_line *own = gsi_pool_line_of (p, p->index);
    struct gsi_pool_step *s = step_of (p, p->begun);
    uint64_t number = p->begun + 1;
    gs_status_t st;

    own->rows[number % GSI_POOL_TOLD] = rows;
    announce (&own->told, number);
    if ((st = await (p, c, has_told, number, 0, p->ranks)))
        return st;
    for (int i = 0; i < p->ranks; i++)
        p->heard[i] = gsi_pool_line_of (p, i)->rows[number % GSI_POOL_TOLD];
    gsi_share_place (p->heard, p->ranks, s->place);
    s->rows = rows;
    s->given = false;
    return GS_OK;
}

/* ---- Rows change nodes ---- */

static bool has_moved (const gs_pool_t *p, int index, uint64_t number)
{
    return has (&gsi_pool_line_of (p, index)->moved, number);
}

/* Waits until the lowest rank of this node has had what changes nodes in step [number]. */
static gs_status_t await_moved (gs_pool_t *p, struct gsi_node_call *c, uint64_t number)
{
    return gsi_spread_moves (p, number) ? await (p, c, has_moved, gsi_spread_exchanges (p), 0, 1)
                                        : GS_OK;
}

/* Has [area] of the rows that are evaluated on another node go there. */
static gs_status_t move_out (gs_pool_t *p, const char *caller, uint64_t number,
                             enum gsi_pool_area area)
{
    struct gsi_node_call c;
    gs_status_t st;

    if (!gsi_spread_moves (p, number))
        return GS_OK;
    if ((st = gsi_spread_move (p, number, area, false)) ||
        (st = begin_stage (p, &c, caller, GSI_POOL_MOVED)))
        return st;
    return gsi_node_call_end (&c, await_moved (p, &c, number));
}

/* Whether this rank is the one that sends rows of its node away. */
static bool moves_rows (const gs_pool_t *p, uint64_t number)
{
    return p->index == 0 && gsi_spread_moves (p, number);
}

/* ---- A step begins ---- */

static gs_status_t too_many (const gs_pool_t *p, const char *caller, size_t rows)
{
    return gsi_fail (GS_ERR_ARG,
                     "%s: %zu rows are more than max_rows, %zu: give %s a larger one, or the "
                     "rows in several steps",
                     caller, rows, p->opts.max_rows, p->client.name);
}

static gs_status_t start_step (gs_pool_t *p, const char *caller, const void *in, size_t rows)
{
    struct gsi_node_call c;
    bool staged = false;
    gs_status_t st;

    if (p->begun - p->ended == GSI_POOL_STEPS)
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s has %d steps in flight, which is all: gs_pool_end comes first",
                         caller, p->client.name, GSI_POOL_STEPS);
    if (rows > p->opts.max_rows)
        return too_many (p, caller, rows);
    if (in && (st = gsi_feature_check (p->comm, caller, in, rows * p->opts.inputs, p->opts.dtype,
                                       &staged)))
        return st;
    if ((st = gsi_spread_tell (p, caller, rows)) ||
        (st = begin_stage (p, &c, caller, GSI_POOL_BEGIN)))
        return st;
    gsi_spread_plan (p, p->begun); /* not before: where pools are crossed nothing has changed */
    if (!(st = place_rows (p, &c, rows)) && in)
        st = gsi_pool_put (p, &c, p->begun, GSI_POOL_IN, in, staged);
    if (!st && (in || !rows))
        post_written (p, p->begun);
    if (!(st = gsi_node_call_end (&c, st)))
        p->begun++;
    return st;
}

gs_status_t gs_pool_begin (gs_pool_t *pool, const void *in, size_t rows)
{
    static const char caller[] = "gs_pool_begin";
    gs_status_t st = gsi_pool_valid (pool, caller);

    return gsi_result (st ? st : start_step (pool, caller, in, rows));
}

/* GS_OK if a step has begun and not ended. */
static gs_status_t check_begun (const gs_pool_t *p, const char *caller)
{
    return p->begun > p->ended ? GS_OK
                               : gsi_fail (GS_ERR_STATE,
                                           "%s: %s has no step in flight: gs_pool_begin comes "
                                           "first",
                                           caller, p->client.name);
}

gs_status_t gs_pool_get_rows (gs_pool_t *pool, void **rows)
{
    static const char caller[] = "gs_pool_get_rows";
    gs_status_t st = gsi_pool_valid (pool, caller);

    if (!st && !rows)
        st = gsi_fail (GS_ERR_ARG, "%s: rows is NULL", caller);
    if (!st && !(st = check_begun (pool, caller)))
        *rows = gsi_pool_row (pool, pool->begun - 1, GSI_POOL_IN,
                              step_of (pool, pool->begun - 1)->place[pool->index]);
    return gsi_result (st);
}

/* ---- Results come back ---- */

/* The rows that this rank evaluates, or sends, are there. */
static gs_status_t await_rows (gs_pool_t *p, const char *caller, uint64_t number)
{
    struct gsi_rows part = gsi_pool_part (p, number);
    struct gsi_node_call c;
    int first, end;
    gs_status_t st = begin_stage (p, &c, caller, GSI_POOL_ROWS);

    if (st)
        return st;
    /* What the program has queued on its stream for its rows has ended, too. */
    if (!step_of (p, number)->given) {
        if ((st = gsi_pool_await_stream (p, &c)))
            return gsi_node_call_end (&c, st);
        post_written (p, number);
    }
    gsi_share_owners (step_of (p, number)->place, p->ranks, part, &first, &end);
    if (moves_rows (p, number)) {
        first = 0;
        end = p->ranks;
    }
    st = gsi_node_call_end (&c, await (p, &c, has_written, number + 1, first, end));
    return st ? st : move_out (p, caller, number, GSI_POOL_IN);
}

/* Says, if this rank is an evaluator, how it went, once its GPU has ended it. */
static gs_status_t tell_verdict (gs_pool_t *p, struct gsi_node_call *c, enum gsi_pool_way way,
                                 uint64_t number, const struct gsi_pool_verdict *verdict)
{
    struct gsi_pool_line *line = gsi_pool_line_of (p, p->index);
    gs_status_t st;

    if (p->own < 0)
        return GS_OK;
    if ((st = gsi_pool_await_stream (p, c)))
        return st;
    line->verdict[way][number % GSI_POOL_STEPS] = *verdict;
    announce (&line->done[way], number + 1);
    return GS_OK;
}

/* The failure of the first evaluator that has one, on all ranks of the node alike. */
static gs_status_t find_failure (const gs_pool_t *p, const char *caller, enum gsi_pool_way way,
                                 uint64_t number)
{
    for (int e = 0; e < p->evaluators; e++) {
        const struct gsi_pool_verdict *v =
            &gsi_pool_line_of (p, p->evaluator[e])->verdict[way][number % GSI_POOL_STEPS];
        int rank = p->rank[p->evaluator[e]];
        if (v->st)
            return gsi_fail ((gs_status_t) v->st,
                             "%s: %s of rank %d (host %s), an evaluator of %s, returned %d (%s) "
                             "in %s %llu: %.*s",
                             caller, way == GSI_POOL_FORWARD ? "on_batch" : "on_gradient", rank,
                             gs_comm_host_of (p->comm, rank), p->client.name, (int) v->st,
                             gs_status_string ((gs_status_t) v->st),
                             way == GSI_POOL_FORWARD ? "step" : "backward pass",
                             (unsigned long long) number + 1, GSI_POOL_WORDS - 1,
                             *v->text ? v->text : "no call of gradsync failed in it");
    }
    return GS_OK;
}

/* A way back: to what area, for the caller's array, as number what, of step what. */
struct back {
    enum gsi_pool_way way;
    enum gsi_pool_area area;
    enum gsi_pool_stage stage;
    uint64_t number, step;
    void *to; /* NULL: not wanted */
    bool staged;
};

/* Waits until the evaluators of this node are done; [*refused]: one of them has failed. */
static gs_status_t await_evaluators (gs_pool_t *p, struct gsi_node_call *c, const char *caller,
                                     const struct back *b, const struct gsi_pool_verdict *verdict,
                                     bool *refused)
{
    gs_status_t st = tell_verdict (p, c, b->way, b->number, verdict);

    if (!st)
        st = await (p, c, b->way == GSI_POOL_FORWARD ? has_evaluated : has_taken_back,
                    b->number + 1, 0, p->evaluators);
    if (st)
        return st;
    st = find_failure (p, caller, b->way, b->number);
    *refused = st != GS_OK;
    return st;
}

/* Balanced across nodes all ranks of all nodes learn of a failure, and rows come back from there.
 */
static gs_status_t move_back (gs_pool_t *p, const char *caller, const struct back *b,
                              const struct gsi_pool_verdict *verdict, bool *refused)
{
    struct gsi_agreement a = {.words = 3, .word = {p->created, b->number, b->way}};
    struct gsi_node_call c;
    gs_status_t st = begin_stage (p, &c, caller, b->stage);

    if (st)
        return st;
    st = await_evaluators (p, &c, caller, b, verdict, refused);
    if (st && !*refused)
        return gsi_node_call_end (&c, st);
    gsi_node_call_end (&c, GS_OK);
    if ((st = gsi_consensus (p->comm, caller, st, &a, p->opts.stream))) {
        *refused = gsi_feature_alive (p->comm) == GS_OK;
        return st;
    }
    if (a.differs >= 0)
        return gsi_spread_differ (p, caller, a.least_rank, a.most_rank);
    return gsi_spread_moves (p, b->step) ? gsi_spread_move (p, b->step, b->area, true) : GS_OK;
}

/* [*refused]: a failure of the program's function, on all ranks, and the communicator goes on. */
static gs_status_t bring_back (gs_pool_t *p, const char *caller, const struct back *b,
                               const struct gsi_pool_verdict *verdict, bool *refused)
{
    struct gsi_node_call c;
    gs_status_t st;

    *refused = false;
    if (p->spread && (st = move_back (p, caller, b, verdict, refused)))
        return st;
    if ((st = begin_stage (p, &c, caller, p->spread ? GSI_POOL_MOVED : b->stage)))
        return st;
    st = p->spread ? await_moved (p, &c, b->step)
                   : await_evaluators (p, &c, caller, b, verdict, refused);
    if (*refused)
        return gsi_node_call_refuse (&c, st);
    if (!st && b->to)
        st = gsi_pool_get (p, &c, b->step, b->area, b->to, b->staged);
    return gsi_node_call_end (&c, st);
}

static gs_status_t finish_step (gs_pool_t *p, const char *caller, void *out)
{
    struct gsi_pool_step *s = step_of (p, p->ended);
    struct back b = {
        GSI_POOL_FORWARD, GSI_POOL_OUT, GSI_POOL_RESULTS, p->ended, p->ended, out, false};
    struct gsi_pool_verdict verdict;
    bool refused;
    gs_status_t st = check_begun (p, caller);

    if (st || (out && (st = gsi_feature_check (p->comm, caller, out, s->rows * p->opts.outputs,
                                               p->opts.dtype, &b.staged))))
        return st;
    if ((st = await_rows (p, caller, p->ended)))
        return st;
    gsi_pool_evaluate_part (p, p->ended, GSI_POOL_FORWARD, &verdict);
    st = bring_back (p, caller, &b, &verdict, &refused);
    if (!st || refused) {
        p->ended++;
        p->info.steps++;
        p->info.rows += s->rows;
    }
    return st;
}

gs_status_t gs_pool_end (gs_pool_t *pool, void *out)
{
    static const char caller[] = "gs_pool_end";
    gs_status_t st = gsi_pool_valid (pool, caller);

    return gsi_result (st ? st : finish_step (pool, caller, out));
}

gs_status_t gs_pool_evaluate (gs_pool_t *pool, const void *in, size_t rows, void *out)
{
    static const char caller[] = "gs_pool_evaluate";
    gs_status_t st = gsi_pool_valid (pool, caller);

    if (!st && pool->begun > pool->ended)
        st = gsi_fail (GS_ERR_STATE, "%s: %s has a step in flight: gs_pool_end comes first",
                       caller, pool->client.name);
    if (!st && !in && rows)
        st = gsi_fail (GS_ERR_ARG, "%s: in is NULL, but rows is %zu", caller, rows);
    if (!st && rows > pool->opts.max_rows)
        st = too_many (pool, caller, rows);
    if (!st && out) /* before anything has begun */
        st = gsi_feature_check (pool->comm, caller, out, rows * pool->opts.outputs,
                                pool->opts.dtype, NULL);
    if (!st && !(st = start_step (pool, caller, in, rows)))
        st = finish_step (pool, caller, out);
    return gsi_result (st);
}

/* ---- Gradients ---- */

static gs_status_t check_backward (const gs_pool_t *p, const char *caller)
{
    if (!p->graded)
        return gsi_fail (GS_ERR_STATE, "%s: the evaluators of %s have no on_gradient", caller,
                         p->client.name);
    if (!p->ended)
        return gsi_fail (GS_ERR_STATE, "%s: no step of %s has ended", caller, p->client.name);
    if (p->begun - p->ended == GSI_POOL_STEPS)
        return gsi_fail (GS_ERR_STATE,
                         "%s: two steps of %s are in flight, and the rows of the one that ended "
                         "last are gone: gs_pool_backward comes before the second begins",
                         caller, p->client.name);
    return GS_OK;
}

/* Gradients of the results go to the evaluators, which wait for those of all ranks. */
static gs_status_t send_gradients (gs_pool_t *p, const char *caller, const void *grad_out,
                                   bool staged)
{
    struct gsi_node_call c;
    gs_status_t st = begin_stage (p, &c, caller, GSI_POOL_GRADIENTS);

    if (st)
        return st;
    st = gsi_pool_put (p, &c, p->ended - 1, GSI_POOL_GRAD_OUT, grad_out, staged);
    if (!st)
        announce (&gsi_pool_line_of (p, p->index)->graded, p->passes + 1);
    if (!st && (p->own >= 0 || moves_rows (p, p->ended - 1)))
        st = await (p, &c, has_graded, p->passes + 1, 0, p->ranks);
    st = gsi_node_call_end (&c, st);
    return st ? st : move_out (p, caller, p->ended - 1, GSI_POOL_GRAD_OUT);
}

static gs_status_t go_back (gs_pool_t *p, const char *caller, const void *grad_out, void *grad_in)
{
    struct back b = {.way = GSI_POOL_BACKWARD,
                     .area = GSI_POOL_GRAD_IN,
                     .stage = GSI_POOL_BACK,
                     .number = p->passes,
                     .step = p->ended - 1,
                     .to = grad_in};
    const gs_pool_opts_t *o = &p->opts;
    struct gsi_pool_verdict verdict;
    gs_status_t st = check_backward (p, caller);
    bool staged, refused;
    size_t rows;

    if (st)
        return st;
    rows = step_of (p, b.step)->rows;
    if ((st = gsi_feature_check (p->comm, caller, grad_out, rows * o->outputs, o->dtype,
                                 &staged)) ||
        (grad_in && (st = gsi_feature_check (p->comm, caller, grad_in, rows * o->inputs, o->dtype,
                                             &b.staged))))
        return st;
    if ((st = send_gradients (p, caller, grad_out, staged)))
        return st;
    gsi_pool_evaluate_part (p, b.step, GSI_POOL_BACKWARD, &verdict);
    st = bring_back (p, caller, &b, &verdict, &refused);
    if (!st || refused)
        p->passes++;
    return st;
}

gs_status_t gs_pool_backward (gs_pool_t *pool, const void *grad_out, void *grad_in)
{
    static const char caller[] = "gs_pool_backward";
    gs_status_t st = gsi_pool_valid (pool, caller);

    return gsi_result (st ? st : go_back (pool, caller, grad_out, grad_in));
}

gs_status_t gs_pool_get_info (const gs_pool_t *pool, gs_pool_info_t *info)
{
    static const char caller[] = "gs_pool_get_info";
    gs_pool_info_t now;
    gs_status_t st =
        gsi_handle_check (caller, "pool", "pool", pool, pool && pool->magic == GSI_POOL_MAGIC);

    if (st)
        return gsi_result (st);
    now = pool->info;
    now.in_flight = (int) (pool->begun - pool->ended);
    return gsi_result (gsi_sized_give (info, &now, sizeof (now), "gs_pool_get_info: info"));
}
