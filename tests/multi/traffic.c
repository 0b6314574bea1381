/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic - what calls on a communicator are said to have sent is what they must send: calls,
 * bytes, the split between the node and others, what is not known; and it does not depend on how
 * many samples a rank has.
 */
#include "data.h"

static gs_comm_t *comm;
static int rank, size;
static bool gpus, flat;

static gs_traffic_t traffic_of (const char *op)
{
    gs_traffic_t t = {.size = sizeof (t)};

    CHECK_OK (gs_comm_get_traffic (comm, op, &t));
    return t;
}

static void expect (const char *op, uint64_t calls, uint64_t bytes)
{
    gs_traffic_t t = traffic_of (op);

    CHECK (t.calls == calls && t.bytes == bytes,
           "%s: %llu calls with %llu bytes, not %llu with %llu", op, (unsigned long long) t.calls,
           (unsigned long long) t.bytes, (unsigned long long) calls, (unsigned long long) bytes);
}

static void expect_sent (const char *op, uint64_t within, uint64_t between, bool known)
{
    gs_traffic_t t = traffic_of (op);

    CHECK (t.within == within && t.between == between,
           "%s: %llu to the node, %llu to others, not %llu and %llu", op,
           (unsigned long long) t.within, (unsigned long long) t.between,
           (unsigned long long) within, (unsigned long long) between);
    CHECK (t.within_known == (known || gs_comm_local_size (comm) == 1) &&
               t.between_known == (known || gs_comm_nodes (comm) == 1),
           "%s: known %d, %d", op, t.within_known, t.between_known);
}

/* The node of rank [r], by name. */
static bool is_near (int r)
{
    return !strcmp (gs_comm_host_of (comm, r), gs_comm_host_of (comm, rank));
}

/* Every pair its own length. What goes to this rank itself is handed, not sent. */
static void check_exchange (void)
{
    size_t *send = calloc ((size_t) size, sizeof (*send)), *recv;
    uint64_t within = 0, between = 0, handed = 0;
    float *in, *out;

    recv = calloc ((size_t) size, sizeof (*recv));
    in = calloc ((size_t) size * 40000, sizeof (*in));
    out = calloc ((size_t) size * 40000, sizeof (*out));
    for (int r = 0; r < size; r++) {
        send[r] = (size_t) (1000 * rank + 7 * r) % 40000 + (r % 2 ? 30000 : 0) % 9000;
        recv[r] = (size_t) (1000 * r + 7 * rank) % 40000 + (rank % 2 ? 30000 : 0) % 9000;
        handed += 4 * send[r];
        if (r != rank && is_near (r))
            within += 4 * send[r];
        else if (r != rank)
            between += 4 * send[r];
    }
    CHECK_OK (gs_comm_reset_traffic (comm));
    for (int n = 1; n <= 3; n++) {
        CHECK_OK (multi_wait (
            comm, gs_alltoallv (comm, in, send, NULL, out, recv, NULL, GS_F32, NULL)));
        expect ("alltoallv", (uint64_t) n, (uint64_t) n * handed);
        expect_sent ("alltoallv", (uint64_t) n * within, (uint64_t) n * between, true);
    }
    expect_sent (NULL, 3 * within, 3 * between, true);
    free (send);
    free (recv);
    free (in);
    free (out);
}

/* Too large to be gathered everywhere, as small ones are. */
static void check_gather (void)
{
    size_t count = 40000, bytes = count * sizeof (double);
    double *in = calloc (count, sizeof (*in)),
           *out = calloc ((size_t) size * count, sizeof (*out));
    bool sends = rank < size - 1;

    CHECK_OK (gs_comm_reset_traffic (comm));
    CHECK_OK (gs_gather (comm, in, out, count, GS_F64, size - 1, NULL));
    expect ("gather", 1, bytes);
    expect_sent ("gather", sends && is_near (size - 1) ? bytes : 0,
                 sends && !is_near (size - 1) ? bytes : 0, true);
    expect ("allgather", 0, 0);
    free (in);
    free (out);
}

/* Messages are what their sender hands over; to itself nothing is sent. */
static void check_messages (void)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    double in[5000] = {0}, out[5000];

    CHECK_OK (gs_comm_reset_traffic (comm));
    for (uint64_t n = 1; n <= 2; n++) {
        size_t count = n == 1 ? 5000 : 10; /* long, and with its ticket */
        uint64_t sent = to == rank ? 0 : n == 1 ? 40000 : 40080;
        CHECK_OK (gs_group_begin (comm));
        CHECK_OK (gs_send (comm, in, count, GS_F64, to, NULL));
        CHECK_OK (gs_recv (comm, out, count, GS_F64, from, NULL));
        CHECK_OK (multi_wait (comm, gs_group_end (comm)));
        expect ("group", n, sent);
        expect_sent ("group", is_near (to) ? sent : 0, is_near (to) ? 0 : sent, true);
    }
}

/* By messages to the rank 1, 2, 4, ... below, which then has all before it (Bruck). */
static void check_small (void)
{
    uint64_t within = 0, between = 0;
    int32_t in[25] = {0}, *out = calloc ((size_t) size * 25, sizeof (*out));

    for (int have = 1; have < size; have *= 2) {
        int more = have < size - have ? have : size - have;
        *(is_near ((rank - have + size) % size) ? &within : &between) += 100 * (uint64_t) more;
    }
    CHECK_OK (gs_comm_reset_traffic (comm));
    CHECK_OK (gs_allgather (comm, in, out, 25, GS_I32, NULL));
    CHECK_OK (gs_allreduce (comm, in, 25, GS_I32, GS_SUM, NULL));
    CHECK_OK (gs_allreduce (comm, in, 25, GS_I32, GS_MAX, NULL));
    expect ("allgather", 1, 100);
    expect ("allreduce", 2, 200);
    if (gpus && !multi_shares_gpus ())
        expect_sent ("allgather", 0, 0, size == 1);
    if (flat) {
        expect_sent ("allgather", within, between, true);
        expect_sent ("allreduce", 2 * within, 2 * between, true);
    }
    free (out);
}

/*
 * A large sum. Of two nodes each sends to the other half of the array twice, as a sum and as a
 * result; within a node of several ranks it goes through shared memory.
 */
static void check_large (void)
{
    size_t count = 1 << 18;
    float *x = calloc (count, sizeof (*x));
    uint64_t sent;

    CHECK_OK (gs_comm_reset_traffic (comm));
    for (int n = 0; n < 2; n++)
        CHECK_OK (gs_allreduce_avg (comm, x, count, GS_F32, NULL));
    expect ("allreduce_avg", 2, 2 * 4 * count);
    if (!gpus && !flat) {
        gs_traffic_t t = traffic_of ("allreduce_avg");
        sent = t.between;
        CHECK (t.between_known && t.within_known == (gs_comm_local_size (comm) == 1), "known");
        CHECK_OK (gs_allreduce (comm, &sent, 1, GS_U64, GS_SUM, NULL));
        if (gs_comm_nodes (comm) == 2)
            CHECK (sent == (uint64_t) 2 * 2 * 4 * count, "%llu bytes between two nodes",
                   (unsigned long long) sent);
        if (gs_comm_nodes (comm) == 1)
            CHECK (!sent, "%llu bytes between nodes, but there is one",
                   (unsigned long long) sent);
    }
    free (x);
}

static void check_root (void)
{
    char x[64] = {0};
    float y[12] = {0}, *z = calloc ((size_t) size * 12, sizeof (*z));

    CHECK_OK (gs_comm_reset_traffic (comm));
    CHECK_OK (gs_broadcast (comm, x, 64, GS_I8, size - 1, NULL));
    expect ("broadcast", 1, rank == size - 1 ? 64 : 0);
    CHECK_OK (gs_reduce_scatter (comm, z, y, 12, GS_F32, GS_SUM, NULL));
    expect ("reduce_scatter", 1, 48 * (uint64_t) size);
    CHECK_OK (gs_reduce (comm, y, z, 12, GS_F32, GS_SUM, 0, NULL));
    expect ("reduce", 1, 48);
    CHECK_OK (gs_allgatherv (comm, y, 12, z, 12 * (size_t) size, NULL, NULL, GS_F32, NULL));
    expect ("allgatherv", 1, 48);
    CHECK_OK (multi_barrier (comm));
    expect ("barrier", 1, 0);
    expect (NULL, 5, (rank == size - 1 ? 64 : 0) + 48 * (uint64_t) size + 3 * 48 - 48);
    free (z);
}

/* The same, however many samples there are. */
static void check_samples (void)
{
    double x[3000] = {0};
    gs_moments_t m[3];
    gs_traffic_t few, many;

    CHECK_OK (gs_comm_reset_traffic (comm));
    CHECK_OK (gs_moments_compute (comm, x, 1, 3, GS_F64, NULL, 0, m, NULL));
    few = traffic_of (NULL);
    CHECK_OK (gs_comm_reset_traffic (comm));
    CHECK_OK (gs_moments_compute (comm, x, 1000, 3, GS_F64, NULL, 0, m, NULL));
    many = traffic_of (NULL);
    CHECK (few.calls == 2 && !memcmp (&few, &many, sizeof (few)), "more samples, more traffic");
}

/* The last line of a report is what the buckets of all steps have sent. */
static void check_report (gs_reducer_t *reducer)
{
    gs_traffic_t t = traffic_of ("bucket");
    char path[300], line[600] = "", right[600];
    FILE *file;

    snprintf (path, sizeof (path), "%s/report", getenv ("GS_RECORD_DIR"));
    CHECK_OK (gs_reducer_report (reducer, path));
    if (rank)
        return;
    snprintf (right, sizeof (right),
              "{\"traffic\": \"bucket\", \"calls\": %llu, \"bytes\": %llu, \"within\": %llu, "
              "\"between\": %llu, \"within_known\": %s, \"between_known\": %s}\n",
              (unsigned long long) t.calls, (unsigned long long) t.bytes,
              (unsigned long long) t.within, (unsigned long long) t.between,
              t.within_known ? "true" : "false", t.between_known ? "true" : "false");
    file = fopen (path, "r");
    while (file && fgets (line, sizeof (line), file))
        ;
    if (file)
        fclose (file);
    CHECK (!strcmp (line, right), "the report ends with: %s, not: %s", line, right);
}

static void check_reducer (void)
{
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    size_t shape = 4000;
    gs_reducer_t *reducer;

    CHECK_OK (gs_reducer_create (comm, NULL, &reducer));
    for (int g = 0; g < 3; g++)
        CHECK_OK (gs_reducer_add (reducer,
                                  g == 0   ? "a"
                                  : g == 1 ? "b"
                                           : "c",
                                  1, &shape, GS_F32, NULL, NULL));
    CHECK_OK (gs_reducer_commit (reducer));
    CHECK_OK (gs_comm_reset_traffic (comm));
    for (int step = 0; step < 5; step++) {
        for (int g = 2; g >= 0; g--)
            CHECK_OK (gs_reducer_ready (reducer, g, NULL));
        CHECK_OK (multi_wait (comm, gs_reducer_finish (reducer, NULL)));
    }
    CHECK_OK (gs_reducer_get_stats (reducer, &stats));
    CHECK (traffic_of ("bucket").bytes == 5 * stats.wire_bytes, "%llu bytes in 5 steps of %zu",
           (unsigned long long) traffic_of ("bucket").bytes, stats.wire_bytes);
    check_report (reducer);
    CHECK_OK (gs_reducer_destroy (reducer));
}

static void check_refusals (void)
{
    gs_traffic_t t = {.size = sizeof (t)}, odd = {.size = 8};

    CHECK_FAILS (gs_comm_get_traffic (NULL, NULL, &t), GS_ERR_ARG, "comm is NULL");
    CHECK_FAILS (gs_comm_get_traffic (comm, NULL, NULL), GS_ERR_ARG, "traffic is NULL");
    CHECK_FAILS (gs_comm_get_traffic (comm, NULL, &odd), GS_ERR_ARG, "traffic->size");
    CHECK_FAILS (gs_comm_get_traffic (comm, "gs_barrier", &t), GS_ERR_ARG, "'gs_barrier'",
                 "without gs_");
    CHECK_FAILS (gs_comm_get_traffic (comm, "unknown", &t), GS_ERR_ARG, "'unknown'");
    CHECK_FAILS (gs_comm_get_traffic (comm, "none", &t), GS_ERR_ARG, "'none'");
    CHECK_FAILS (gs_comm_reset_traffic (NULL), GS_ERR_ARG, "comm is NULL");
    CHECK_FAILS (gs_broadcast (comm, NULL, 5, GS_I8, 0, NULL), GS_ERR_ARG, "NULL");
    CHECK_OK (gs_comm_reset_traffic (comm));
    expect (NULL, 0, 0);
    expect_sent (NULL, 0, 0, true);
}

static int told;

static void hear (gs_log_level_t level, const char *line, void *context)
{
    (void) context;
    told += level == GS_LOG_INFO && strstr (line, "2 of barrier, 0 bytes from rank 0") != NULL;
}

int main (void)
{
    const char *algorithm = getenv ("GS_HOST_ALGO");

    setenv ("GS_DEBUG", "info", 0);
    gs_log_set_sink (hear, NULL);
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    gpus = !strcmp (gs_comm_transport (comm), "nccl");
    flat = !gpus && algorithm && !strcmp (algorithm, "flat");
    for (int n = 0; n < 2; n++) /* the first two calls are compared */
        CHECK_OK (multi_barrier (comm));
    check_exchange ();
    check_gather ();
    check_messages ();
    check_small ();
    check_large ();
    check_root ();
    check_samples ();
    check_reducer ();
    check_refusals ();
    for (int n = 0; n < 2; n++)
        CHECK_OK (multi_barrier (comm));
    CHECK_OK (gs_comm_destroy (comm));
    CHECK (told == (rank == 0), "the log tells of barriers %d times", told);
    return multi_end ("what calls send, within nodes and between them");
}
