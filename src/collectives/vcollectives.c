/* SPDX-License-Identifier: BSD-3-Clause */
/* vcollectives - pieces of different lengths between ranks: gather, scatter, all-to-all, sums. */
#include "base/dims.h"
#include "base/dtype.h"
#include "call/staging.h"
#include "collectives/pieces.h"
#include "collectives/reduce.h"
#include "device/element.h"
#include "device/runs.h"

/* What a rank tells about a call of these. */
struct count_word {
    uint64_t count;  /* elements of its piece */
    uint64_t room;   /* elements that it can take in all */
    uint64_t digest; /* of the counts that it was given; 0: none */
};
_Static_assert(sizeof (struct count_word) <= GSI_SCRATCH_BYTES, "words are gathered in scratch");

static uint64_t digest_of (const gs_comm_t *comm, const size_t *counts)
{
    return gsi_host_digest (counts, (size_t) comm->topo.size * sizeof (*counts), 0) | 1;
}

/* A piece of [count] here; what the others have is known once ranks have told it. */
static struct count_word own_count (const gs_comm_t *comm, size_t count, size_t room,
                                    const size_t *counts)
{
    return (struct count_word){count, room, counts ? digest_of (comm, counts) : 0};
}

/* The first piece of which a list of counts says another length than its rank. */
struct difference {
    uint64_t rank, expected; /* rank: as many as there are if all are right */
};
_Static_assert(sizeof (struct difference) <= GSI_SCRATCH_BYTES, "words are gathered in scratch");

static struct difference find_difference (const gs_comm_t *comm, const size_t *given,
                                          const size_t *counts)
{
    int size = comm->topo.size, r = 0;

    while (given && r < size && given[r] == counts[r])
        r++;
    return given && r < size ? (struct difference){(uint64_t) r, given[r]}
                             : (struct difference){(uint64_t) size, 0};
}

/* Names the first rank with such a list, and the rank of that piece, on all ranks alike. */
static gs_status_t name_list (const struct gsi_request *req, const size_t *given,
                              const size_t *counts, const struct gsi_call *call)
{
    gs_comm_t *comm = req->comm;
    struct difference own = find_difference (comm, given, counts);
    const struct difference *all = comm->scratch;
    gs_status_t st = gsi_staging_control (comm, &own, comm->scratch, sizeof (own), call);
    int by = 0, of, last = comm->topo.size - 1;

    if (st)
        return gsi_call_end (comm, call, st);
    while (by < last && all[by].rank > (uint64_t) last)
        by++;
    of = all[by].rank > (uint64_t) last ? last : (int) all[by].rank;
    st = gsi_fail (GS_ERR_MISMATCH,
                   "%s: the counts that rank %d (host %s) gives are not those of the pieces: "
                   "counts[%d] is %llu, but the piece of rank %d (host %s) has %zu elements",
                   req->caller, by, comm->hosts[by], of, (unsigned long long) all[by].expected,
                   of, comm->hosts[of], counts[of]);
    return gsi_call_refuse (comm, st);
}

/* Whether all ranks have room for the pieces, and lists like [counts] if any; alike on all. */
static gs_status_t judge (const struct gsi_request *req, const size_t *counts, bool *lists_differ)
{
    const gs_comm_t *comm = req->comm;
    const struct count_word *all = comm->scratch;
    uint64_t digest = digest_of (comm, counts);
    size_t sum = 0;

    *lists_differ = false;
    for (int r = 0; r < comm->topo.size; r++)
        if (__builtin_add_overflow (sum, counts[r], &sum))
            return gsi_fail (GS_ERR_ARG, "%s: all pieces together are more than memory can hold",
                             req->caller);
    for (int r = 0; r < comm->topo.size; r++) {
        *lists_differ = *lists_differ || (all[r].digest && all[r].digest != digest);
        if (!all[r].digest && all[r].room < sum)
            return gsi_fail (
                GS_ERR_MISMATCH,
                "%s: the pieces have %zu elements in all, rank %d (host %s) has room "
                "for %llu",
                req->caller, sum, r, comm->hosts[r], (unsigned long long) all[r].room);
    }
    return GS_OK;
}

/* Whether ranks tell no counts that they were given: NCCL carries the pieces, none compares. */
static bool is_queued (const gs_comm_t *comm, const struct gsi_call *call)
{
    bool compared = comm->check == GSI_CHECK_COLLECTIVE && !call->capturing;

    return comm->inflight && !gsi_coll_is_shared (comm->coll->ops) && !compared;
}

static gs_status_t refuse_capture (const struct gsi_request *req)
{
    return gsi_call_refuse (req->comm,
                            gsi_fail (GS_ERR_UNSUPPORTED,
                                      "%s cannot be captured into a CUDA graph: the host waits "
                                      "in it for what other ranks tell of their counts",
                                      req->caller));
}

/*
 * Finds out the counts of all ranks: they tell each other, but where all are on GPUs and this
 * rank was given them, and so all were. [*counts] becomes memory of the communicator. On failure
 * the call has ended.
 */
static gs_status_t learn_counts (const struct gsi_request *req, const struct count_word *own,
                                 const struct gsi_call *call, bool given, const size_t **counts)
{
    gs_comm_t *comm = req->comm;
    const struct count_word *all = comm->scratch;
    size_t *heard = comm->lengths + GSI_LENGTHS_COUNTS * (size_t) comm->topo.size;
    bool lists_differ;
    gs_status_t st;

    if (given && is_queued (comm, call))
        return GS_OK;
    if (call->capturing)
        return refuse_capture (req);
    if ((st = gsi_staging_control (comm, own, comm->scratch, sizeof (*own), call)))
        return gsi_call_end (comm, call, st);
    for (int r = 0; r < comm->topo.size; r++)
        heard[r] = all[r].count;
    if ((st = judge (req, heard, &lists_differ)))
        return gsi_call_refuse (comm, st);
    if (lists_differ)
        return name_list (req, *counts, heard, call);
    *counts = heard;
    return GS_OK;
}

/* What a rank tells of its counts when one is sought that is expected otherwise. */
struct pair_word {
    uint64_t sends, expects; /* to and from the ranks as far behind it and before it */
};
_Static_assert(sizeof (struct pair_word) <= GSI_SCRATCH_BYTES, "words are gathered in scratch");

/* Counts of an alltoallv as a rank was given them. */
struct counts {
    const size_t *send, *recv;
};

/* What this rank sends to the one [d] places behind it, and expects from the one before it. */
static struct pair_word pair_of (const gs_comm_t *comm, const struct counts *counts, int d)
{
    int size = comm->topo.size, rank = comm->topo.rank;

    return (struct pair_word){counts->send[(rank + d) % size],
                              counts->recv[(rank - d + size) % size]};
}

/*
 * Whether each rank expects what is sent to it from [low] to [high] places away, on all ranks
 * alike: digests of all that is sent, less those of all that is expected, are nothing in sum.
 */
static gs_status_t compare_range (gs_comm_t *comm, const struct counts *counts, int low, int high,
                                  const struct gsi_call *call, bool *equal)
{
    const uint64_t *all = comm->scratch;
    int size = comm->topo.size, rank = comm->topo.rank;
    uint64_t own = 0, sum = 0;
    gs_status_t st;

    for (int d = low; d < high; d++) {
        struct pair_word pair = pair_of (comm, counts, d);
        uint64_t before = (uint64_t) ((rank - d + size) % size);
        own += gsi_digest_word (pair.sends, (uint64_t) rank * (uint64_t) size + (uint64_t) d) -
               gsi_digest_word (pair.expects, before * (uint64_t) size + (uint64_t) d);
    }
    st = gsi_staging_control (comm, &own, comm->scratch, sizeof (own), call);
    for (int r = 0; r < size && !st; r++)
        sum += all[r];
    *equal = !sum;
    return st;
}

/* Names the first two ranks, [d] places apart, of which one does not expect what it is sent. */
static gs_status_t name_pair (const struct gsi_request *req, const struct counts *counts, int d,
                              const struct gsi_call *call)
{
    gs_comm_t *comm = req->comm;
    const struct pair_word *all = comm->scratch;
    struct pair_word own = pair_of (comm, counts, d);
    gs_status_t st = gsi_staging_control (comm, &own, comm->scratch, sizeof (own), call);
    int size = comm->topo.size, r = 0, to;

    if (st)
        return gsi_call_end (comm, call, st);
    while (r < size - 1 && all[r].sends == all[(r + d) % size].expects)
        r++;
    to = (r + d) % size;
    st = gsi_fail (GS_ERR_MISMATCH,
                   "%s: rank %d (host %s) sends %llu elements to rank %d (host %s), which "
                   "expects %llu",
                   req->caller, r, comm->hosts[r], (unsigned long long) all[r].sends, to,
                   comm->hosts[to], (unsigned long long) all[to].expects);
    return gsi_call_refuse (comm, st);
}

/* Compares counts; of two ranks that disagree the nearest are sought. On failure the call ends.
 */
static gs_status_t compare_counts (const struct gsi_request *req, const struct counts *counts,
                                   const struct gsi_call *call)
{
    gs_comm_t *comm = req->comm;
    int low = 1, high = comm->topo.size;
    bool equal;
    gs_status_t st;

    if (is_queued (comm, call))
        return GS_OK;
    if (call->capturing)
        return refuse_capture (req);
    st = compare_range (comm, counts, low, high, call, &equal);
    if (!st && equal)
        return GS_OK;
    while (!st && high - low > 1) {
        int middle = low + (high - low) / 2;
        if (!(st = compare_range (comm, counts, low, middle, call, &equal)))
            *(equal ? &low : &high) = middle;
    }
    return st ? gsi_call_end (comm, call, st) : name_pair (req, counts, low, call);
}

/* Checks what receives pieces: those of [to], or any up to [room] elements. */
static gs_status_t check_room (const struct gsi_request *r, const struct gsi_pieces *to,
                               size_t own, size_t room, struct gsi_extent *out)
{
    int rank = r->comm->topo.rank;
    size_t extent;
    char mine[16];
    gs_status_t st;

    if (!to->counts) {
        if (to->displs)
            return gsi_fail (GS_ERR_ARG, "%s: displs without counts: give both, or none",
                             r->caller);
        return gsi_call_check (r, to->buf, room, out);
    }
    if ((st = gsi_pieces_extent (r, to, &extent)))
        return st;
    if (extent > room)
        return gsi_fail (GS_ERR_ARG,
                         "%s: the pieces take up %zu elements, but recv has room for %zu",
                         r->caller, extent, room);
    if (to->counts[rank] != own)
        return gsi_fail (GS_ERR_ARG, "%s: rank %d sends %zu elements, but counts%s is %zu",
                         r->caller, rank, own, gsi_dims_subscript (rank, mine), to->counts[rank]);
    return gsi_pieces_check (r, to, true, out);
}

static size_t longest (const gs_comm_t *comm, const size_t *counts)
{
    size_t most = 0;

    for (int r = 0; r < comm->topo.size; r++)
        most = counts[r] > most ? counts[r] : most;
    return most;
}

gs_status_t gs_allgatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                           size_t recv_room, const size_t *counts, const size_t *displs,
                           gs_dtype_t dtype, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_allgatherv", GSI_OP_ALLGATHERV, 0, dtype, 0, stream};
    struct gsi_pieces to = {.what = "recv", .buf = recv, .counts = counts, .displs = displs};
    struct gsi_extent in, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    struct count_word own;
    gs_status_t st = gsi_call_check (&r, send, send_count, &in);

    if (st || (st = check_room (&r, &to, send_count, recv_room, &out)) ||
        (st = gsi_pieces_pair (&r, send, &in, recv, &out, send == gsi_pieces_place (&r, &to))) ||
        (st = gsi_call_begin (&r, out.bytes ? &out : &in, &call)))
        return gsi_result (st);
    own = own_count (comm, send_count, recv_room, counts);
    if ((st = learn_counts (&r, &own, &call, counts, &to.counts)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    x.own = in.bytes;
    x.block = longest (comm, to.counts) * gs_dtype_size (dtype);
    gsi_pieces_send_same (comm, in.bytes, GSI_PIECES_ALL);
    gsi_pieces_recv (&r, &to, GSI_PIECES_ALL);
    return gsi_result (gsi_call_end (comm, &call, gsi_staging_alltoallv (comm, &x, &call)));
}

gs_status_t gs_gatherv (gs_comm_t *comm, const void *send, size_t send_count, void *recv,
                        size_t recv_room, const size_t *counts, const size_t *displs,
                        gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_gatherv", GSI_OP_GATHERV, 0, dtype, root, stream};
    struct gsi_pieces to = {.what = "recv", .buf = recv, .counts = counts, .displs = displs};
    struct gsi_extent in, out = {0};
    struct gsi_alltoallv x;
    struct gsi_call call;
    struct count_word own;
    bool is_root;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_check (&r, send, send_count, &in)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root &&
        ((st = check_room (&r, &to, send_count, recv_room, &out)) ||
         (st = gsi_pieces_pair (&r, send, &in, recv, &out, send == gsi_pieces_place (&r, &to)))))
        return gsi_result (st);
    if ((st = gsi_call_begin (&r, in.bytes ? &in : &out, &call)))
        return gsi_result (st);
    own = own_count (comm, send_count, is_root ? recv_room : SIZE_MAX, counts);
    if ((st = learn_counts (&r, &own, &call, counts, &to.counts)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    gsi_pieces_send_same (comm, in.bytes, root);
    gsi_pieces_recv (&r, &to, is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    return gsi_result (gsi_call_end (comm, &call, gsi_staging_alltoallv (comm, &x, &call)));
}

gs_status_t gs_scatterv (gs_comm_t *comm, const void *send, const size_t *counts,
                         const size_t *displs, void *recv, size_t recv_count, gs_dtype_t dtype,
                         int root, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_scatterv", GSI_OP_SCATTERV, 0, dtype, root, stream};
    struct gsi_pieces from = {.what = "send", .buf = send, .counts = counts, .displs = displs};
    struct gsi_extent in = {0}, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    struct count_word own;
    char mine[16];
    bool is_root;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (st || (st = gsi_comm_has_rank (comm, r.caller, "root", root)) ||
        (st = gsi_call_check (&r, recv, recv_count, &out)))
        return gsi_result (st);
    is_root = comm->topo.rank == root;
    if (is_root && !counts)
        return gsi_fail (GS_ERR_ARG, "%s: counts is NULL on the root", r.caller);
    if (is_root && counts[root] != recv_count)
        return gsi_fail (GS_ERR_ARG, "%s: rank %d receives %zu elements, but counts%s is %zu",
                         r.caller, root, recv_count, gsi_dims_subscript (root, mine),
                         counts[root]);
    if (is_root && ((st = gsi_pieces_check (&r, &from, false, &in)) ||
                    (st = gsi_pieces_pair (&r, send, &in, recv, &out,
                                           recv == gsi_pieces_place (&r, &from)))))
        return gsi_result (st);
    if ((st = gsi_call_begin (&r, out.bytes ? &out : &in, &call)))
        return gsi_result (st);
    from.counts = is_root ? counts : NULL; /* elsewhere it may be anything */
    own = own_count (comm, recv_count, SIZE_MAX, from.counts);
    if ((st = learn_counts (&r, &own, &call, true, &from.counts)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    gsi_pieces_send (&r, &from, is_root ? GSI_PIECES_ALL : GSI_PIECES_NONE);
    gsi_pieces_recv_same (comm, out.bytes, root);
    return gsi_result (gsi_call_end (comm, &call, gsi_staging_alltoallv (comm, &x, &call)));
}

gs_status_t gs_alltoallv (gs_comm_t *comm, const void *send, const size_t *send_counts,
                          const size_t *send_displs, void *recv, const size_t *recv_counts,
                          const size_t *recv_displs, gs_dtype_t dtype, gs_stream_t stream)
{
    struct gsi_request r = {comm, "gs_alltoallv", GSI_OP_ALLTOALLV, 0, dtype, 0, stream};
    struct gsi_pieces from = {
        .what = "send", .buf = send, .counts = send_counts, .displs = send_displs};
    struct gsi_pieces to = {
        .what = "recv", .buf = recv, .counts = recv_counts, .displs = recv_displs};
    struct gsi_extent in, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    gs_status_t st = gsi_comm_valid (comm, r.caller);

    if (!st && (!send_counts || !recv_counts))
        st = gsi_fail (GS_ERR_ARG, "gs_alltoallv: %s_counts is NULL",
                       send_counts ? "recv" : "send");
    if (st || (st = gsi_pieces_check (&r, &from, false, &in)) ||
        (st = gsi_pieces_check (&r, &to, true, &out)) ||
        (st = gsi_pieces_pair (&r, send, &in, recv, &out, false)))
        return gsi_result (st);
    if (send_counts[comm->topo.rank] != recv_counts[comm->topo.rank])
        return gsi_fail (
            GS_ERR_ARG, "gs_alltoallv: rank %d sends %zu elements to itself, but expects %zu",
            comm->topo.rank, send_counts[comm->topo.rank], recv_counts[comm->topo.rank]);
    if ((st = gsi_call_begin (&r, in.bytes ? &in : &out, &call)) ||
        (st = compare_counts (&r, &(struct counts){send_counts, recv_counts}, &call)))
        return gsi_result (st);
    x = gsi_pieces_alltoallv (comm, send, recv);
    gsi_pieces_send (&r, &from, GSI_PIECES_ALL);
    gsi_pieces_recv (&r, &to, GSI_PIECES_ALL);
    return gsi_result (gsi_call_end (comm, &call, gsi_staging_alltoallv (comm, &x, &call)));
}

gs_status_t gsi_reduce_scatterv (const struct gsi_request *req, const void *send,
                                 const size_t *counts, const size_t *displs, void *recv,
                                 size_t recv_count, gs_op_t op)
{
    gs_comm_t *comm = req->comm;
    struct gsi_pieces from = {.what = "send", .buf = send, .counts = counts, .displs = displs};
    struct gsi_reduction how;
    struct gsi_extent in, out;
    struct gsi_alltoallv x;
    struct gsi_call call;
    struct count_word own;
    bool any = false;
    gs_status_t st = gsi_call_check (req, recv, recv_count, &out);

    if (st || (st = gsi_reduction_of (req, op, &how)) ||
        (st = gsi_pieces_part (req, counts, recv_count)) ||
        (st = gsi_pieces_check (req, &from, recv == gsi_pieces_place (req, &from), &in)) ||
        (st = gsi_pieces_pair (req, send, &in, recv, &out,
                               recv == gsi_pieces_place (req, &from))) ||
        (st = gsi_call_begin (req, &in, &call)))
        return st;
    own = own_count (comm, recv_count, SIZE_MAX, counts);
    if ((st = learn_counts (req, &own, &call, true, &from.counts)))
        return st;
    x = gsi_pieces_alltoallv (comm, send, recv);
    gsi_pieces_send (req, &from, GSI_PIECES_ALL);
    for (int r = 0; r < comm->topo.size; r++)
        any = any || from.counts[r];
    if (any)
        st = gsi_staging_reduce_scatterv (comm, send, x.send_at, from.counts, recv, &how, &call);
    return gsi_call_end (comm, &call, st);
}

gs_status_t gs_reduce_scatterv (gs_comm_t *comm, const void *send, const size_t *counts,
                                const size_t *displs, void *recv, size_t recv_count,
                                gs_dtype_t dtype, gs_op_t op, gs_stream_t stream)
{
    struct gsi_request r = {
        comm, "gs_reduce_scatterv", GSI_OP_REDUCE_SCATTERV, 0, dtype, (int) op, stream};

    return gsi_result (gsi_reduce_scatterv (&r, send, counts, displs, recv, recv_count, op));
}
