/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write - checkpoints from their beginning to their end. What ranks do with files, they do in
 * threads: rank 0 makes the coming file, all write their parts to it, from the arrays themselves
 * or from copies, and when all have, rank 0 completes it. The program's thread only asks how far
 * they are: a file system that is slow, or hangs, does not keep it.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/thread.h"
#include "ckpt/folder/lock.h"
#include "ckpt/save/save.h"
#include "ckpt/folder/store.h"
#include "feature/consensus.h"

#define RING_BYTES ((size_t) 64 << 20) /* of a write that the caller waits for, on GPUs */
#define UNIT_BYTES ((size_t) 4096)     /* of the sizes of rings */

/* How the caller has it. */
enum mode {
    NOW,    /* it waits until the file is on disk */
    STAGED, /* until the arrays are copied */
    LAZY    /* for nothing */
};

struct order {
    gs_ckpt_t *c;
    const char *caller;
    int64_t step;
    enum mode mode;
    gs_stream_t stream;
};

/* ---- The life of a save ---- */

static void free_save (struct gsi_save *s)
{
    if (!s->c->rank)
        gsi_store_end (s->c);
    if (s->flow.path)
        gsi_flow_clear (&s->flow);
    free (s);
}

static void *run_save (void *save)
{
    struct gsi_save *s = save;
    gs_status_t st;

    if (s->beside)
        gsi_thread_stand_back ();
    if ((st = s->work (s)))
        gsi_flow_fail (&s->flow, st);
    gsi_flow_end (&s->flow);
    return NULL;
}

/* Has a thread do [work] at [path]; NULL: nothing is to be done. What fails here is told when the
 * flow has ended, on all ranks. */
static void begin_work (struct gsi_save *s, gsi_save_work_f work, const char *path,
                        const char *caller)
{
    gs_status_t st = GS_OK;

    s->work = work;
    gsi_flow_again (&s->flow, path);
    if (work)
        st = gsi_thread_start (&s->worker, run_save, s, caller);
    s->has_worker = work && !st;
    if (st)
        gsi_flow_fail (&s->flow, st);
    if (!s->has_worker)
        gsi_flow_end (&s->flow);
}

/* Waits for a thread whose flow is closed or ended, less than other ranks wait for this one. */
static bool is_through (struct gsi_save *s)
{
    if (!s->has_worker)
        return true;
    if (!gsi_flow_await (&s->flow, GSI_FLOW_ENDED, gsi_ckpt_until_ns (s->c), INT64_MAX))
        return false;
    pthread_join (s->worker, NULL);
    s->has_worker = false;
    return true;
}

static gs_status_t give_up_files (struct gsi_save *s)
{
    gsi_store_give_up (s->c, s->step);
    return GS_OK;
}

/* Of a save that has failed, when its thread is through: another takes its files away. False: the
 * file system has that one. */
static bool discard_save (struct gsi_save *s)
{
    if (!s->c->rank && s->work != give_up_files)
        begin_work (s, give_up_files, s->c->dir, s->c->client.name);
    if (!is_through (s))
        return false;
    free_save (s);
    return true;
}

bool gsi_save_come_back (gs_ckpt_t *c)
{
    if (c->hung && (!is_through (c->hung) || !discard_save (c->hung)))
        return false;
    c->hung = NULL;
    return true;
}

/* Ends a save whose flow is closed or ended; [st] is how it went. */
static void end_save (gs_ckpt_t *c, gs_status_t st)
{
    struct gsi_save *s = c->save;

    c->save = NULL;
    if (st)
        gsi_flow_fail (&s->flow, st);
    if (s->has_stager)
        pthread_join (s->stager, NULL); /* it waits for nothing without a deadline */
    if (is_through (s) && (!st || discard_save (s))) {
        if (!st)
            free_save (s);
        return;
    }
    gsi_log (GS_LOG_WARN, "ckpt", "%s: a writer thread is blocked in the file system",
             s->flow.path);
    c->hung = s;
}

static gs_status_t fail_save (gs_ckpt_t *c, gs_status_t st)
{
    struct gsi_failure failure;

    gsi_failure_note (&failure, st);
    end_save (c, st);
    return gsi_failure_repeat (&failure);
}

/* ---- Its end ---- */

/* Whether this rank has come so far, or will not. */
static bool has_come (struct gsi_save *s, enum gsi_flow_goal goal, int64_t until_ns)
{
    return gsi_flow_await (&s->flow, goal, until_ns, s->c->timeout_ns) ||
           gsi_flow_closed (&s->flow);
}

/* Collective: whether all ranks have. */
static gs_status_t have_all_come (const struct order *o, enum gsi_flow_goal goal,
                                  int64_t until_ns, int *all)
{
    return gs_flag_all (o->c->comm, has_come (o->c->save, goal, until_ns), all, o->stream);
}

/*
 * Collective. Ranks ask each other again and again: a slow disk takes its time, while the
 * deadline of each question finds a rank that is gone.
 */
static gs_status_t await_goal (const struct order *o, enum gsi_flow_goal goal)
{
    int all = 0;
    gs_status_t st = GS_OK;

    while (!all && !st)
        st = have_all_come (o, goal, gsi_now_ns () + gsi_ckpt_slice_ns (o->c), &all);
    return st;
}

static gs_status_t await_all (const struct order *o)
{
    return await_goal (o, GSI_FLOW_ENDED);
}

static gs_status_t agree_on_work (const struct order *o)
{
    return gsi_consensus (o->c->comm, o->caller, gsi_failure_repeat (&o->c->save->flow.failure),
                          NULL, o->stream);
}

/* Collective, when all have ended: goes on to the trailer, or is [*done]. */
static gs_status_t advance_save (const struct order *o, bool *done)
{
    gs_ckpt_t *c = o->c;
    struct gsi_save *s = c->save;
    gs_status_t st =
        s->completing ? agree_on_work (o) : gsi_save_settle (s, o->caller, o->stream);

    *done = s->completing;
    if (st)
        return fail_save (c, st);
    if (*done) {
        gsi_stop_note_write (&c->stop, gsi_now_ns () - s->begin_ns);
        gsi_save_log (s);
        end_save (c, GS_OK);
        return GS_OK;
    }
    is_through (s);
    s->completing = true;
    begin_work (s, c->rank ? NULL : gsi_save_complete, s->main_file.text, o->caller);
    return GS_OK;
}

/* Collective: until it is on disk. */
static gs_status_t await_save (const struct order *o)
{
    bool done = false;
    gs_status_t st = GS_OK;

    while (!done && !st)
        st = (st = await_all (o)) ? fail_save (o->c, st) : advance_save (o, &done);
    return st;
}

/* Collective, without a wait: whether it is. */
static gs_status_t look_at_save (const struct order *o, bool *done)
{
    int all = 0;
    gs_status_t st = have_all_come (o, GSI_FLOW_ENDED, 0, &all);

    *done = false;
    if (st)
        return fail_save (o->c, st);
    return all ? advance_save (o, done) : GS_OK;
}

/* ---- Its beginning ---- */

static gs_status_t make_coming (struct gsi_save *s)
{
    gs_status_t st = gsi_store_begin (s->c, s->step);

    if (!st && gsi_flow_closed (&s->flow))
        gsi_store_give_up (s->c, s->step); /* the plan may be gone, too */
    return st;
}

static gs_status_t make_part_file (struct gsi_save *s)
{
    return gsi_store_begin_part (s->c, s->step, s->c->coming.told);
}

/* All ranks are here for the same. */
static gs_status_t check_order (const struct order *o)
{
    struct gsi_agreement a = {.words = 2, .word = {(uint64_t) o->step, o->mode}};
    gs_status_t st = GS_OK;

    if (o->step < 0)
        st = gsi_fail (GS_ERR_ARG, "%s: step is %" PRId64 ": 0 or more", o->caller, o->step);
    else if (!gsi_save_come_back (o->c))
        st = gsi_fail (GS_ERR_STATE,
                       "%s: the file system still holds the thread that was to write step "
                       "%" PRId64 " to %s",
                       o->caller, o->c->hung->step, o->c->dir);
    if ((st = gsi_consensus (o->c->comm, o->caller, st, &a, o->stream)) || a.differs == -1)
        return st;
    if (a.differs == 1)
        return gsi_fail (GS_ERR_MISMATCH,
                         "%s: ranks %d and %d do not call the same function to write", o->caller,
                         a.least_rank, a.most_rank);
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d writes step %" PRId64 ", rank %d step %" PRId64
                     ": all ranks give the same",
                     o->caller, a.least_rank, (int64_t) a.least, a.most_rank, (int64_t) a.most);
}

/* What becomes of the write before, if that is still under way; [*go] tells whether this one is
 * begun. */
static gs_status_t see_to_previous (const struct order *o, bool *go)
{
    gs_ckpt_t *c = o->c;
    gs_status_t st;

    *go = true;
    if (!c->save)
        return GS_OK;
    if (o->mode == NOW || c->opts.busy == GS_CKPT_BUSY_WAIT)
        return await_save (o);
    if ((st = look_at_save (o, go)) || *go || c->opts.busy == GS_CKPT_BUSY_SKIP)
        return st;
    return gsi_fail (GS_ERR_STATE,
                     "%s: step %" PRId64 " is still being written: wait for it, or choose "
                     "another policy with the option busy",
                     o->caller, c->save->step);
}

/* On GPUs, whose kernels have the digests in no time: whether replicas are that, bit by bit. */
static gs_status_t compare_now (const struct order *o)
{
    const gs_ckpt_t *c = o->c;
    gs_array_t *arrays = calloc ((size_t) c->arrays, sizeof (*arrays));
    size_t number = 0;
    gs_status_t st = arrays ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", o->caller);

    st = gsi_consensus (c->comm, o->caller, st, NULL, o->stream);
    for (int i = 0; i < c->arrays && !st; i++)
        if (c->array[i].kind == GSI_CKPT_REPLICATED)
            arrays[number++] = (gs_array_t){.name = c->array[i].name,
                                            .data = c->array[i].data,
                                            .count = c->array[i].count,
                                            .dtype = c->array[i].dtype};
    if (!st && number)
        st = gsi_save_compare (o->caller, c->comm, arrays, number, o->stream);
    free (arrays);
    return st;
}

/* The ring of a save of [total] bytes; 0: it needs none. */
static size_t ring_for (const struct order *o, uint64_t total)
{
    const gs_ckpt_t *c = o->c;
    size_t most = c->opts.memory, whole = (size_t) (total + UNIT_BYTES - 1) / UNIT_BYTES;

    whole = (whole + 1) * UNIT_BYTES;
    if (!gsi_feature_device (c->comm)->ops->streams && o->mode != STAGED)
        return 0;
    if (!most && o->mode == NOW)
        most = RING_BYTES;
    most = most / UNIT_BYTES * UNIT_BYTES;
    return most && most < whole ? most : whole;
}

/* Whether replicas are compared before they are written: as their parts leave a GPU it is late.
 */
static bool compares_first (const gs_ckpt_t *c)
{
    return gsi_feature_device (c->comm)->ops->streams || gsi_feature_mixed (c->comm);
}

/* A save that has all it needs on this rank. */
static gs_status_t make_save (const struct order *o, struct gsi_save **out)
{
    gs_ckpt_t *c = o->c;
    struct gsi_save *s = gsi_fault ("ckpt.memory") ? NULL : calloc (1, sizeof (*s));
    uint64_t total;
    size_t room;
    gs_status_t st;

    *out = s;
    if (!s)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", o->caller);
    s->c = c;
    s->main_file = gsi_store_coming (c, o->step, GSI_STORE_MAIN);
    s->path = gsi_store_coming (c, o->step, GSI_STORE_PART);
    s->step = o->step;
    s->beside = o->mode != NOW;
    s->begin_ns = gsi_now_ns ();
    s->pieces = (struct gsi_save_pieces){
        .c = c,
        .step = o->step,
        .digests = compares_first (c) ? GS_CKPT_COMPARE_NONE : c->opts.compare,
        .most = c->opts.direct ? GSI_PIECE_DIRECT : GSI_PIECE_BYTES};
    if ((st = gsi_save_pieces_each (&s->pieces, NULL, NULL, &total)))
        return st;
    room = ring_for (o, total);
    if (room && ((st = gsi_stage_prepare (c, room)) || (st = gsi_stage_follow (c, o->stream))))
        return st;
    if (room) {
        s->pieces.room = c->staging.room;
        if (s->pieces.most > c->staging.room / 4) /* one that fills the ring, behind a gap, */
            s->pieces.most = c->staging.room / 4; /* would wait for itself */
    }
    gsi_flow_open (&s->flow, s->path.text, room ? c->staging.ring : NULL, c->staging.room, total);
    return GS_OK;
}

/* Which file the first rank of this node has made. */
static gs_status_t learn_part (const struct order *o)
{
    struct gsi_coming *coming = &o->c->coming;
    uint64_t node = (uint64_t) o->c->node, mine[] = {node, coming->part};
    gs_status_t st = gs_allgather (o->c->comm, mine, coming->parts, 2, GS_U64, o->stream);

    for (int r = 0; r < o->c->size && !st; r++)
        if (coming->parts[2 * r] == node && coming->parts[2 * r + 1])
            coming->part = coming->parts[2 * r + 1];
    return st;
}

/* Makes the files that are written to, and tells all ranks which they are. */
static gs_status_t make_coming_files (const struct order *o)
{
    gs_ckpt_t *c = o->c;
    gs_status_t st;

    c->coming.told = 0;
    begin_work (c->save, c->rank ? NULL : make_coming, c->dir, o->caller);
    if ((st = await_all (o)))
        return st;
    st = gsi_failure_repeat (&c->save->flow.failure);
    if ((st = gsi_consensus_most (c->comm, o->caller, st, &c->coming.told, 1, o->stream)))
        return st;
    is_through (c->save);
    if (!c->nodes)
        return GS_OK;
    c->coming.part = 0;
    begin_work (c->save, c->mine.data ? make_part_file : NULL, c->save->path.text, o->caller);
    if ((st = await_all (o)) || (st = agree_on_work (o)))
        return st;
    is_through (c->save);
    return learn_part (o);
}

/* Where copies wait for the disk a thread makes them, and the ranks wait for each other's. */
static void start_save (const struct order *o)
{
    struct gsi_save *s = o->c->save;
    bool waits = o->mode != STAGED || o->c->opts.memory;
    gs_status_t st = GS_OK;

    begin_work (s, gsi_save_write, s->path.text, o->caller);
    if (s->has_worker && s->flow.ring && waits) {
        s->has_stager = true; /* which it looks at */
        st = gsi_thread_start (&s->stager, gsi_stage_all, s, o->caller);
        s->has_stager = !st;
    } else if (s->has_worker && s->flow.ring) {
        gsi_stage_all (s);
    }
    if (st)
        gsi_flow_fail (&s->flow, st);
}

static gs_status_t begin_write (const struct order *o)
{
    gs_ckpt_t *c = o->c;
    gs_status_t st = GS_OK;

    if (compares_first (c) && c->opts.compare != GS_CKPT_COMPARE_NONE)
        st = compare_now (o);
    if (st)
        return st;
    if ((st = gsi_consensus (c->comm, o->caller, make_save (o, &c->save), NULL, o->stream))) {
        if (c->save)
            free_save (c->save);
        c->save = NULL;
        return st;
    }
    if ((st = make_coming_files (o)))
        return fail_save (c, st);
    start_save (o);
    if (o->mode == STAGED && c->opts.memory && (st = await_goal (o, GSI_FLOW_STAGED)))
        return fail_save (c, st);
    return GS_OK;
}

/* All that happens until a write is under way. */
static gs_status_t begin_order (const struct order *o, bool *begun)
{
    gs_status_t st = gsi_ckpt_check (o->c, o->caller, GSI_CKPT_WRITABLE);

    *begun = false;
    if (st || (st = check_order (o)) || (st = see_to_previous (o, begun)) || !*begun)
        return st;
    st = begin_write (o);
    *begun = !st;
    return st;
}

/* ---- The folder ---- */

static gs_status_t take_snapshot (struct gsi_save *s)
{
    return gsi_store_take (s->c, s->caller);
}

gs_status_t gsi_save_take (gs_ckpt_t *c, const char *caller)
{
    struct order o = {.c = c, .caller = caller};
    struct gsi_save *s = gsi_fault ("ckpt.memory") ? NULL : calloc (1, sizeof (*s));
    gs_status_t st = s ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);

    if (!st && !gsi_save_come_back (c))
        st = gsi_fail (GS_ERR_STATE,
                       "%s: the file system still holds the thread that was to "
                       "take folder %s",
                       caller, c->dir);
    if ((st = gsi_consensus (c->comm, caller, st, NULL, NULL))) {
        free (s);
        return st;
    }
    s->c = c;
    s->caller = caller;
    c->save = s;
    gsi_flow_open (&s->flow, c->dir, NULL, 0, 0);
    begin_work (s, c->rank ? NULL : take_snapshot, c->dir, caller);
    if ((st = await_all (&o)) || (st = agree_on_work (&o)))
        return fail_save (c, st);
    end_save (c, GS_OK);
    return GS_OK;
}

/* Those whose folder hung when it was given back; reachable, as leak checkers want it. */
static _Atomic (struct gsi_save *) left;

static gs_status_t drop_lock (struct gsi_save *s)
{
    gsi_lock_drop (s->lock);
    return GS_OK;
}

bool gsi_save_drop (const gs_ckpt_t *c)
{
    struct gsi_save *s = c->lock ? calloc (1, sizeof (*s)) : NULL;

    if (!s) {
        gsi_lock_drop (c->lock);
        return true;
    }
    s->c = (gs_ckpt_t *) (uintptr_t) c;
    s->lock = c->lock;
    gsi_flow_open (&s->flow, c->dir, NULL, 0, 0);
    begin_work (s, drop_lock, c->dir, c->client.name);
    if (!is_through (s)) { /* the thread still has it, and nobody else waits for it */
        pthread_detach (s->worker);
        s->left = atomic_load (&left);
        while (!atomic_compare_exchange_weak (&left, &s->left, s))
            ;
        return false;
    }
    gsi_flow_clear (&s->flow);
    free (s);
    return true;
}

/* ---- The calls ---- */

gs_status_t gs_ckpt_write (gs_ckpt_t *ckpt, int64_t step, gs_stream_t stream)
{
    struct order o = {ckpt, "gs_ckpt_write", step, NOW, stream};
    bool begun;
    gs_status_t st = begin_order (&o, &begun);

    return gsi_result (st ? st : await_save (&o));
}

gs_status_t gs_ckpt_write_async (gs_ckpt_t *ckpt, int64_t step, int *begun, gs_stream_t stream)
{
    struct order o = {ckpt, "gs_ckpt_write_async", step, STAGED, stream};
    bool yes = false;
    gs_status_t st;

    if (ckpt && ckpt->magic == GSI_CKPT_MAGIC && ckpt->opts.lazy)
        o.mode = LAZY;
    st = begin_order (&o, &yes);
    if (begun)
        *begun = yes;
    return gsi_result (st);
}

gs_status_t gs_ckpt_wait_staged (gs_ckpt_t *ckpt)
{
    gs_status_t st = gsi_ckpt_check (ckpt, "gs_ckpt_wait_staged", GSI_CKPT_COMMITTED);

    if (!st && ckpt->save)
        gsi_flow_await (&ckpt->save->flow, GSI_FLOW_STAGED, INT64_MAX,
                        gsi_feature_timeout_ns (ckpt->comm));
    return gsi_result (st);
}

/* Collective: until the write that is under way is on disk, or whether it is. */
static gs_status_t end_write (const struct order *o, bool wait, int64_t *written)
{
    gs_status_t st = gsi_ckpt_check (o->c, o->caller, GSI_CKPT_COMMITTED);
    int64_t step;
    bool done = true;

    if (written)
        *written = -1;
    if (st || !o->c->save)
        return st;
    step = o->c->save->step;
    st = wait ? await_save (o) : look_at_save (o, &done);
    if (written && !st && done)
        *written = step;
    return st;
}

gs_status_t gs_ckpt_test (gs_ckpt_t *ckpt, int64_t *written, gs_stream_t stream)
{
    const struct order o = {ckpt, "gs_ckpt_test", 0, NOW, stream};

    return gsi_result (end_write (&o, false, written));
}

gs_status_t gs_ckpt_wait (gs_ckpt_t *ckpt, int64_t *written, gs_stream_t stream)
{
    const struct order o = {ckpt, "gs_ckpt_wait", 0, NOW, stream};

    return gsi_result (end_write (&o, true, written));
}
