/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_shared_ops - operations between ranks that share GPUs, by way of their hosts.
 *
 * An array on the GPU goes in pieces: while one is between the hosts, the next one is on its way
 * out of the GPU. One in host memory (call->staged) is handed on as it is, or in the same pieces
 * where some ranks have no GPU.
 */
#include "base/status.h"
#include "transport/coll_shared.h"

#define PIECE_BYTES ((size_t) 4 << 20)

/*
 * An operation in pieces. What leaves the GPU has [ins] parts, what comes back [outs] of them,
 * each [bytes] long, and one of the numbers is 1; NULL: nothing does here.
 */
struct passage {
    struct gsi_coll_shared *c;
    const struct gsi_call *call;
    const char *in;
    char *out;
    size_t bytes, unit; /* pieces are multiples of [unit] */
    int ins, outs;
    int place; /* among the parts, of the one that is alone */
    gs_status_t (*run) (const struct passage *p, char *memory, size_t bytes);
    const struct gsi_reduction *how;
    int root;
};

/* Where part [part] of [parts] lies in a bounce whose pieces have [bytes]. */
static size_t place_of (const struct passage *p, int parts, int part, size_t bytes)
{
    return (size_t) (parts > 1 ? part : p->place) * bytes;
}

/* Sends the piece of [bytes] at [at] on its way out of the GPU. */
static gs_status_t fetch (const struct passage *p, int turn, size_t at, size_t bytes)
{
    size_t parts = (size_t) (p->ins > p->outs ? p->ins : p->outs);
    gs_status_t st = gsi_bounce_take (p->c, turn, parts * bytes, p->call);

    for (int i = 0; p->in && i < p->ins && !st; i++)
        st = gsi_bounce_fetch (p->c, turn, place_of (p, p->ins, i, bytes),
                               p->in + (size_t) i * p->bytes + at, bytes, p->call);
    return st ? st : gsi_bounce_fetched (p->c, turn, p->call);
}

/* Has the hosts work on a piece that is there, and sends it back. */
static gs_status_t work (const struct passage *p, int turn, size_t at, size_t bytes)
{
    char *memory = p->c->bounce[turn].memory;
    gs_status_t st = gsi_bounce_await (p->c, turn, p->call);

    if (st || (st = gsi_shared_enter (p->c, p->call)))
        return st;
    st = gsi_shared_leave (p->c, p->run (p, memory, bytes));
    for (int i = 0; p->out && i < p->outs && !st; i++)
        st = gsi_bounce_return (p->c, turn, place_of (p, p->outs, i, bytes),
                                p->out + (size_t) i * p->bytes + at, bytes, p->call);
    return st ? st : gsi_bounce_returned (p->c, turn, p->call);
}

/* The same on all ranks. */
static size_t piece_bytes (const struct passage *p)
{
    size_t parts = (size_t) (p->ins > p->outs ? p->ins : p->outs);
    size_t piece = PIECE_BYTES / parts / p->unit * p->unit;

    return piece ? piece : p->unit;
}

/* An array in host memory, where it is: [buf] is all of it, on all ranks. */
static gs_status_t pass_in_place (const struct passage *p, char *buf)
{
    gs_status_t st = GS_OK;

    for (size_t at = 0, n; at < p->bytes && !st; at += n) {
        n = gsi_step_of (p->bytes, at, piece_bytes (p));
        if (!(st = gsi_shared_enter (p->c, p->call)))
            st = gsi_shared_leave (p->c, p->run (p, buf + at, n));
    }
    return st;
}

static gs_status_t pass (const struct passage *p)
{
    size_t piece = piece_bytes (p), next;
    gs_status_t st = gsi_bounce_begin (p->c, p->call);
    int turn = 0;

    if (!st)
        st = fetch (p, turn, 0, gsi_step_of (p->bytes, 0, piece));
    for (size_t at = 0; at < p->bytes && !st; at = next, turn = 1 - turn) {
        next = at + gsi_step_of (p->bytes, at, piece);
        if (next < p->bytes)
            st = fetch (p, 1 - turn, next, gsi_step_of (p->bytes, next, piece));
        if (!st)
            st = work (p, turn, at, next - at);
    }
    return st;
}

/* ---- Sums and copies ---- */

static gs_status_t run_allreduce (const struct passage *p, char *memory, size_t bytes)
{
    struct gsi_coll *hosts = p->c->hosts;

    return hosts->ops->allreduce (hosts, memory, bytes / p->unit, p->how, p->call);
}

gs_status_t gsi_shared_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                  const struct gsi_reduction *how, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    size_t width = gs_dtype_size (how->dtype);
    struct passage p = {.c = c,
                        .call = call,
                        .in = buf,
                        .out = buf,
                        .bytes = count * width,
                        .unit = width,
                        .ins = 1,
                        .outs = 1,
                        .run = run_allreduce,
                        .how = how};
    gs_status_t st;

    if (gsi_shared_sums (c, how, call))
        return gsi_shared_sum (c, buf, count, how, call);
    if (!gsi_shared_whole (c, call))
        return gsi_shared_on_host (c, call) ? pass_in_place (&p, buf) : pass (&p);
    st = gsi_shared_enter (c, call);
    return st ? st : gsi_shared_leave (c, run_allreduce (&p, buf, p.bytes));
}

static gs_status_t run_broadcast (const struct passage *p, char *memory, size_t bytes)
{
    struct gsi_coll *hosts = p->c->hosts;

    return hosts->ops->broadcast (hosts, memory, bytes, p->root, p->call);
}

gs_status_t gsi_shared_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                  const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    bool is_root = c->rank == root;
    struct passage p = {.c = c,
                        .call = call,
                        .in = is_root ? buf : NULL,
                        .out = is_root ? NULL : buf,
                        .bytes = bytes,
                        .unit = 1,
                        .ins = 1,
                        .outs = 1,
                        .run = run_broadcast,
                        .root = root};
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return gsi_shared_on_host (c, call) ? pass_in_place (&p, buf) : pass (&p);
    st = gsi_shared_enter (c, call);
    return st ? st : gsi_shared_leave (c, run_broadcast (&p, buf, bytes));
}

static gs_status_t run_allgather (const struct passage *p, char *memory, size_t bytes)
{
    struct gsi_coll *hosts = p->c->hosts;

    return hosts->ops->allgather (hosts, memory + (size_t) p->place * bytes, memory, bytes,
                                  p->call);
}

gs_status_t gsi_shared_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t bytes, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    const struct passage p = {.c = c,
                              .call = call,
                              .in = send,
                              .out = recv,
                              .bytes = bytes,
                              .unit = 1,
                              .ins = 1,
                              .outs = c->size,
                              .place = c->rank,
                              .run = run_allgather};
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (&p);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (c,
                                  c->hosts->ops->allgather (c->hosts, send, recv, bytes, call));
}

static gs_status_t run_reduce_scatter (const struct passage *p, char *memory, size_t bytes)
{
    struct gsi_coll *hosts = p->c->hosts;

    return hosts->ops->reduce_scatter (hosts, memory, memory + (size_t) p->place * bytes,
                                       bytes / p->unit, p->how, p->call);
}

gs_status_t gsi_shared_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                       size_t count, const struct gsi_reduction *how,
                                       const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    size_t width = gs_dtype_size (how->dtype);
    const struct passage p = {.c = c,
                              .call = call,
                              .in = send,
                              .out = recv,
                              .bytes = count * width,
                              .unit = width,
                              .ins = c->size,
                              .outs = 1,
                              .place = c->rank,
                              .run = run_reduce_scatter,
                              .how = how};
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (&p);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (
                    c, c->hosts->ops->reduce_scatter (c->hosts, send, recv, count, how, call));
}

static gs_status_t run_reduce (const struct passage *p, char *memory, size_t bytes)
{
    struct gsi_coll *hosts = p->c->hosts;

    return hosts->ops->reduce (hosts, memory, memory, bytes / p->unit, p->how, p->root, p->call);
}

gs_status_t gsi_shared_reduce (struct gsi_coll *coll, const void *send, void *recv, size_t count,
                               const struct gsi_reduction *how, int root,
                               const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    size_t width = gs_dtype_size (how->dtype);
    const struct passage p = {.c = c,
                              .call = call,
                              .in = send,
                              .out = c->rank == root ? recv : NULL,
                              .bytes = count * width,
                              .unit = width,
                              .ins = 1,
                              .outs = 1,
                              .run = run_reduce,
                              .how = how,
                              .root = root};
    gs_status_t st;

    if (!gsi_shared_whole (c, call))
        return pass (&p);
    st = gsi_shared_enter (c, call);
    return st ? st
              : gsi_shared_leave (
                    c, c->hosts->ops->reduce (c->hosts, send, recv, count, how, root, call));
}

/* On the GPU it is one reduction to each rank. */
gs_status_t gsi_shared_reduce_scatterv (struct gsi_coll *coll, const void *send, const size_t *at,
                                        const size_t *count, void *recv,
                                        const struct gsi_reduction *how,
                                        const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st = GS_OK;

    if (gsi_shared_whole (c, call)) {
        st = gsi_shared_enter (c, call);
        return st ? st
                  : gsi_shared_leave (c, c->hosts->ops->reduce_scatterv (c->hosts, send, at,
                                                                         count, recv, how, call));
    }
    for (int r = 0; r < c->size && !st; r++)
        if (count[r])
            st = gsi_shared_reduce (coll, (const char *) send + at[r], recv, count[r], how, r,
                                    call);
    return st;
}

/* What this rank's stream had to do before is done when others pass it. */
gs_status_t gsi_shared_barrier (struct gsi_coll *coll, const struct gsi_call *call)
{
    struct gsi_coll_shared *c = (struct gsi_coll_shared *) coll;
    gs_status_t st = gsi_bounce_begin (c, call);

    if (!st && !(st = gsi_bounce_fetched (c, 0, call)))
        st = gsi_bounce_await (c, 0, call);
    if (st || (st = gsi_shared_enter (c, call)))
        return st;
    return gsi_shared_leave (c, c->hosts->ops->barrier (c->hosts, call));
}
