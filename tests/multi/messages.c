/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * messages - gs_send, gs_recv and groups of them: random sets of messages between all pairs, in
 * any memory, in order; beside collectives; what is wrong is told to both ends.
 */
#include "data.h"

#define MOST 40

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

struct message {
    int from, to;
    size_t count;
    gs_dtype_t dtype;
    char *memory; /* of this rank's end, on the host, */
    void *buf;    /* and as it is given */
    char *second; /* of a rank that is both ends: where it receives */
    void *second_buf;
};

/* ---- Sets of messages ---- */

/* A length of every kind: none, with a ticket, a piece, several. */
static size_t random_count (uint64_t bits)
{
    static const size_t most[] = {1, 20, 300, 2100, 40000, 150000};

    return (size_t) (bits >> 8) % most[bits % (sizeof (most) / sizeof (*most))];
}

static void make_set (struct message *list, int number)
{
    for (int i = 0; i < number; i++) {
        uint64_t bits = data_bits (seed, 1, (size_t) i);
        list[i] =
            (struct message){.from = (int) (bits % (uint64_t) size),
                             .to = (int) ((bits >> 20) % (uint64_t) size),
                             .count = random_count (bits >> 30),
                             .dtype = (gs_dtype_t) (GS_F16 + (bits >> 50) % (GSI_DTYPES - 1))};
    }
}

/* What message [i] carries. */
static void fill (const struct message *m, int i, char *out)
{
    data_fill (m->dtype, out, seed + 1000 * (uint64_t) i, m->from, m->count);
}

static void *place (char *memory, size_t bytes, bool on_device)
{
    void *there = memory;

    if (!on_device)
        return memory;
    CHECK_OK (gs_device_alloc (comm, bytes, &there));
    CHECK_OK (gs_device_copy (comm, there, memory, bytes, NULL));
    return there;
}

static void fetch (char *memory, void *there, size_t bytes)
{
    if (there == memory)
        return;
    CHECK_OK (gs_device_copy (comm, memory, there, bytes, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK_OK (gs_device_free (comm, there));
}

static void prepare (struct message *m, int i, bool on_device)
{
    size_t bytes = m->count * gs_dtype_size (m->dtype);

    m->memory = data_allocate (bytes);
    memset (m->memory, 0x11, bytes);
    if (m->from == rank)
        fill (m, i, m->memory);
    m->buf = place (m->memory, bytes, on_device);
    if (m->from != rank || m->to != rank)
        return;
    m->second = data_allocate (bytes);
    memset (m->second, 0x11, bytes);
    m->second_buf = place (m->second, bytes, on_device);
}

static void check (struct message *m, int i)
{
    size_t bytes = m->count * gs_dtype_size (m->dtype);
    char *right = data_allocate (bytes), *got = m->second ? m->second : m->memory;

    fetch (m->memory, m->buf, bytes);
    if (m->second)
        fetch (m->second, m->second_buf, bytes);
    fill (m, i, right);
    CHECK (!memcmp (got, right, bytes), "message %d, %zu of %s from %d to %d, is wrong", i,
           m->count, data_names[m->dtype], m->from, m->to);
    CHECK (data_free (m->memory, bytes), "message %d: written behind the end", i);
    CHECK (!m->second || data_free (m->second, bytes), "message %d: written behind the end", i);
    data_free (right, bytes);
}

/* Receives come last or first: in a group that makes no difference. */
static void carry_set (struct message *list, int number, bool receives_first)
{
    CHECK_OK (gs_group_begin (comm));
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < number; i++) {
            struct message *m = &list[i];
            bool send = (turn == 1) == receives_first;
            if (send && m->from == rank)
                CHECK_OK (gs_send (comm, m->buf, m->count, m->dtype, m->to, NULL));
            if (!send && m->to == rank)
                CHECK_OK (gs_recv (comm, m->second ? m->second_buf : m->buf, m->count, m->dtype,
                                   m->from, NULL));
        }
    CHECK_OK (multi_wait (comm, gs_group_end (comm)));
}

static void check_set (int number, int devices)
{
    struct message list[MOST];

    seed++;
    make_set (list, number);
    for (int i = 0; i < number; i++)
        if (list[i].from == rank || list[i].to == rank)
            prepare (&list[i], i, devices >> (rank + i) % 2 & 1);
    carry_set (list, number, (rank + number) % 2);
    for (int i = 0; i < number; i++)
        if (list[i].from == rank || list[i].to == rank)
            check (&list[i], i);
}

/* ---- Order ---- */

/* One end has calls of their own, the other one a group. */
static void check_order (bool group_sends)
{
    int to = size - 1, value[50], got[50] = {0};
    bool group = (rank == 0) == group_sends;

    if (size == 1 || (rank != 0 && rank != to))
        return;
    if (group)
        CHECK_OK (gs_group_begin (comm));
    for (int i = 0; i < 50; i++) {
        value[i] = 3 * i;
        if (rank == 0)
            CHECK_OK (gs_send (comm, &value[i], 1, GS_I32, to, NULL));
        else
            CHECK_OK (gs_recv (comm, &got[i], 1, GS_I32, 0, NULL));
    }
    if (group)
        CHECK_OK (multi_wait (comm, gs_group_end (comm)));
    for (int i = 0; i < 50 && rank == to; i++)
        CHECK (got[i] == 3 * i, "message %d has what is %d", i, got[i]);
}

/* Some ranks have messages between collectives, others none: numbers must not go apart. */
static void check_beside_collectives (void)
{
    double sum, token = rank + 1;

    for (int turn = 0; turn < 5; turn++) {
        int to = (turn + 1) % size;
        if (size > 1 && rank == 0 && to)
            CHECK_OK (gs_send (comm, &token, 1, GS_F64, to, NULL));
        if (size > 1 && to && rank == to) {
            CHECK_OK (gs_recv (comm, &token, 1, GS_F64, 0, NULL));
            CHECK (token == 1, "rank %d receives %g, not 1", rank, token);
        }
        sum = rank;
        CHECK_OK (gs_allreduce (comm, &sum, 1, GS_F64, GS_SUM, NULL));
        CHECK (sum == size * (size - 1) / 2.0, "the sum is %g", sum);
    }
}

/* A ring, in groups that are inside others. */
static void check_ring (void)
{
    int32_t mine = 7 * rank, got = -1;

    CHECK_OK (gs_group_begin (comm));
    CHECK_OK (gs_group_begin (comm));
    CHECK_OK (gs_send (comm, &mine, 1, GS_I32, (rank + 1) % size, NULL));
    CHECK_OK (gs_group_end (comm));
    CHECK (got == -1, "a message went before the end of its group");
    CHECK_OK (gs_recv (comm, &got, 1, GS_I32, (rank + size - 1) % size, NULL));
    CHECK_OK (multi_wait (comm, gs_group_end (comm)));
    CHECK (got == 7 * ((rank + size - 1) % size), "rank %d receives %d", rank, got);
    CHECK_OK (gs_group_begin (comm)); /* one without messages */
    CHECK_OK (gs_group_end (comm));
}

/* ---- What is wrong ---- */

static void check_arguments (void)
{
    double x[4] = {1, 2, 3, 4}, y[4] = {0};

    CHECK_FAILS (gs_send (NULL, x, 1, GS_F64, 0, NULL), GS_ERR_ARG, "gs_send: comm is NULL");
    CHECK_FAILS (gs_recv (NULL, x, 1, GS_F64, 0, NULL), GS_ERR_ARG, "gs_recv: comm is NULL");
    CHECK_FAILS (gs_group_begin (NULL), GS_ERR_ARG, "gs_group_begin: comm is NULL");
    CHECK_FAILS (gs_group_end (NULL), GS_ERR_ARG, "gs_group_end: comm is NULL");
    CHECK_FAILS (gs_group_end (comm), GS_ERR_STATE, "no group", "gs_group_begin first");
    CHECK_FAILS (gs_send (comm, x, 1, GS_F64, size, NULL), GS_ERR_ARG, "gs_send: peer",
                 "is not a rank of 'world' (0 to ");
    CHECK_FAILS (gs_recv (comm, x, 1, GS_F64, -1, NULL), GS_ERR_ARG, "gs_recv: peer -1");
    CHECK_FAILS (gs_send (comm, x, 1, GS_F64, rank, NULL), GS_ERR_ARG,
                 "itself outside of a group");
    CHECK_OK (gs_group_begin (comm));
    CHECK_FAILS (gs_send (comm, NULL, 1, GS_F64, rank, NULL), GS_ERR_ARG, "buffer is NULL");
    CHECK_FAILS (gs_send (comm, (char *) x + 1, 1, GS_F64, rank, NULL), GS_ERR_ARG, "aligned");
    CHECK_FAILS (gs_send (comm, x, SIZE_MAX / 4, GS_F64, rank, NULL), GS_ERR_ARG, "gs_send");
    CHECK_FAILS (gs_send (comm, x, 1, (gs_dtype_t) 99, rank, NULL), GS_ERR_ARG, "gs_send");
    CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "a group of 'world' is open", "0 messages",
                 "gs_group_end first");
    CHECK_OK (gs_send (comm, x, 1, GS_F64, rank, NULL));
    CHECK_FAILS (gs_group_end (comm), GS_ERR_ARG, "sends 1 messages to itself, but receives 0");
    CHECK_OK (gs_group_begin (comm));
    CHECK_OK (gs_send (comm, x, 2, GS_F64, rank, NULL));
    CHECK_OK (gs_recv (comm, y, 1, GS_F64, rank, NULL));
    CHECK_FAILS (gs_group_end (comm), GS_ERR_MISMATCH, "sends 16 bytes of GS_F64 to itself",
                 "receives 8 bytes");
    CHECK (y[0] == 0, "a refused group wrote");
}

static void check_many (void)
{
    char *x = calloc (GS_GROUP_MAX, 1);

    CHECK_OK (gs_group_begin (comm));
    for (int i = 0; i < GS_GROUP_MAX / 2; i++) {
        x[2 * i] = (char) i;
        CHECK_OK (gs_send (comm, &x[2 * i], 1, GS_I8, (rank + 1) % size, NULL));
        CHECK_OK (gs_recv (comm, &x[2 * i + 1], 1, GS_I8, (rank + size - 1) % size, NULL));
    }
    CHECK_FAILS (gs_send (comm, x, 1, GS_I8, 0, NULL), GS_ERR_ARG, "at most 2048 messages");
    CHECK_OK (multi_wait (comm, gs_group_end (comm)));
    for (int i = 0; i < GS_GROUP_MAX / 2; i++)
        CHECK (x[2 * i + 1] == (char) i, "message %d of many is wrong", i);
    free (x);
}

static const char *const type_names[] = {[GS_F32] = "F32", [GS_F64] = "F64", [GS_I32] = "I32"};

/* Both ends are told, other messages of the group go, and the communicator goes on. */
static void check_mismatch (size_t sent, gs_dtype_t sent_type, size_t wanted,
                            gs_dtype_t wanted_type)
{
    char *x = calloc (1 << 20, 1), *y = calloc (1 << 20, 1), a[64], b[64];
    int other = rank ? 0 : 1, good = 100 + other;

    if (rank < 2 && size > 1) {
        memset (x, 0x22, 1 << 20);
        snprintf (a, sizeof (a), "sends %zu bytes of GS_%s, but rank",
                  sent * gs_dtype_size (sent_type), type_names[sent_type]);
        snprintf (b, sizeof (b), "receives %zu bytes of GS_%s",
                  wanted * gs_dtype_size (wanted_type), type_names[wanted_type]);
        CHECK_OK (gs_group_begin (comm));
        if (rank)
            CHECK_OK (gs_recv (comm, y, wanted, wanted_type, 0, NULL));
        else
            CHECK_OK (gs_send (comm, x, sent, sent_type, 1, NULL));
        CHECK_OK (gs_send (comm, &(int){100 + rank}, 1, GS_I32, other, NULL));
        CHECK_OK (gs_recv (comm, &good, 1, GS_I32, other, NULL));
        CHECK_FAILS (gs_group_end (comm), GS_ERR_MISMATCH, "rank 0 (host", "rank 1 (host", a, b);
        CHECK (good == 100 + other, "a message beside one that does not fit is lost");
        CHECK (!y[0] && !memcmp (y, y + 1, (1 << 20) - 1), "a message that does not fit is here");
    }
    free (x);
    free (y);
    check_ring ();
}

static void check_mismatches (void)
{
    if (multi_on_gpus ()) /* NCCL does not see it */
        return;
    check_mismatch (3, GS_F32, 2, GS_F32);
    check_mismatch (2, GS_F32, 2, GS_I32);
    check_mismatch (0, GS_F32, 2, GS_F32);
    check_mismatch (100000, GS_F64, 2, GS_F64);
    check_mismatch (2, GS_F64, 100000, GS_F64);
    check_mismatch (99999, GS_F64, 100000, GS_F64);
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int i = 0; i < 24; i++)
        check_set (i < 8 ? i + 1 : MOST, i % 4); /* all on hosts, mixed, all on GPUs */
    check_order (false);
    check_order (true);
    check_ring ();
    check_beside_collectives ();
    check_arguments ();
    check_many ();
    check_mismatches ();
    check_set (MOST, 3);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("messages between all pairs, in groups and alone");
}
