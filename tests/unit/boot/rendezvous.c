/* SPDX-License-Identifier: BSD-3-Clause */
/* host - strangers at a rendezvous by id, and those who know the protocol, but not the key. */
#include "boot/rendezvous.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"
#include "unit/boot/ranks.h"

static struct gsi_id read_id (const gs_unique_id_t *bytes)
{
    struct gsi_id id;

    unit_ok (gsi_id_read (bytes, &id));
    return id;
}

/* A connection to the first address in an id, as others than gradsync would find it, which waits
 * as sockets do; -1: it is refused. */
static int try_to_connect (const gs_unique_id_t *bytes)
{
    struct gsi_id id = read_id (bytes);
    union gsi_address *to = &id.address[0];
    int fd = socket (to->any.sa_family, SOCK_STREAM, 0);

    if (!connect (fd, &to->any, sizeof (*to)))
        return fd;
    close (fd);
    return -1;
}

static int connect_to (const gs_unique_id_t *id)
{
    int fd = try_to_connect (id);

    ck_assert_int_ge (fd, 0);
    return fd;
}

/* What the log said of strangers: how many there were, in how many lines. */
struct heard {
    int strangers, lines, false_roots;
};

static void listen_to_log (gs_log_level_t level, const char *line, void *context)
{
    struct heard *heard = context;
    const char *dropped = strstr (line, "dropped ");

    (void) level;
    heard->false_roots += strstr (line, "what answers for rank 0 does not know the id") != NULL;
    if (!dropped || !strstr (line, "not know the id, the last from "))
        return;
    heard->strangers += atoi (dropped + 8);
    heard->lines++;
}

static void hear (struct heard *heard)
{
    memset (heard, 0, sizeof (*heard));
    gsi_log_configure ();
    gs_log_set_sink (listen_to_log, heard);
}

START_TEST (strangers_are_dropped)
{
    char junk[1000];
    struct heard heard;
    int fd[3];

    hear (&heard);
    plan (3, 20000);
    memset (junk, 'j', sizeof (junk));
    for (int i = 0; i < 3; i++)
        fd[i] = connect_to (&ranks[0].id);
    ck_assert_int_eq (send (fd[0], junk, sizeof (junk), MSG_NOSIGNAL), sizeof (junk));
    ck_assert_int_eq (send (fd[1], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    close (fd[1]);
    run (3); /* fd[2] says nothing at all */
    gs_log_set_sink (NULL, NULL);
    check_met (3);
    ck_assert_int_eq (heard.strangers, 2);
    ck_assert_int_eq (heard.lines, 2); /* at once, and those after it in the end */
    close (fd[0]);
    close (fd[2]);
}
END_TEST

START_TEST (silent_strangers_block_nobody)
{
    int fd[20];

    plan (3, 20000);
    for (int i = 0; i < 20; i++)
        fd[i] = connect_to (&ranks[0].id);
    run (3);
    check_met (3);
    for (int i = 0; i < 20; i++)
        close (fd[i]);
}
END_TEST

/* A connection to rank 0, both of whose ends know that the other has the key. */
static struct gsi_wire greet (const gs_unique_id_t *bytes, struct gsi_id *id)
{
    struct gsi_wire wire;

    *id = read_id (bytes);
    gsi_wire_begin (&wire, connect_to (bytes), false, id->key);
    ck_assert_int_eq (gsi_wire_greet (&wire), GSI_PASSED);
    return wire;
}

/* One more than there are places come behind a rank on its way in: it keeps its own. */
START_TEST (a_crowd_pushes_no_rank_out)
{
    struct gsi_hello hello = {.bytes = 40, .rank = 1, .size = 2};
    int fd[GSI_STRANGERS + 1];
    struct gsi_failure answer;
    struct gsi_wire wire;
    char card[40], byte;
    struct gsi_id id;

    plan (2, 20000);
    start (0);
    wire = greet (&ranks[1].id, &id);
    for (int i = 0; i <= GSI_STRANGERS; i++)
        fd[i] = connect_to (&ranks[1].id);
    ck_assert_int_le (recv (fd[0], &byte, 1, 0), 0); /* the last has pushed this one out */
    ck_assert_int_eq (gsi_wire_give (&wire, &hello, sizeof (hello)), GSI_PASSED);
    fill_card (card, 1, sizeof (card));
    ck_assert_int_eq (gsi_wire_give (&wire, card, sizeof (card)), GSI_PASSED);
    ck_assert_int_eq (gsi_wire_take (&wire, &answer, sizeof (answer)), GSI_PASSED);
    finish (0);
    ck_assert_msg (!ranks[0].st, "rank 0: %s", ranks[0].text);
    gsi_wire_end (&wire);
    for (int i = 0; i <= GSI_STRANGERS; i++)
        close (fd[i]);
}
END_TEST

static const char head[4] = {32}; /* of a greeting, in the byte order of most */

/* 10 000 connections, of which every second sends a bit; 400 are held at a time. The last rank
 * comes when most of them have. */
static atomic_int flooded;

static void *flood (void *id)
{
    int fd[400];

    for (int i = 0; i < 400; i++)
        fd[i] = -1;
    for (int i = 0; i < 10000; i++) {
        int *slot = &fd[i % 400];
        atomic_store (&flooded, i + 1);
        if (*slot >= 0)
            close (*slot);
        if ((*slot = try_to_connect (id)) < 0)
            break; /* the rendezvous is over */
        if (i % 2)
            (void) !send (*slot, &head[i % 3], (size_t) (i % 2), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 400; i++)
        if (fd[i] >= 0)
            close (fd[i]);
    return NULL;
}

START_TEST (a_flood_of_strangers)
{
    struct heard heard;
    pthread_t thread;

    hear (&heard);
    plan (4, 60000);
    start (0);
    ck_assert_int_eq (pthread_create (&thread, NULL, flood, &ranks[0].id), 0);
    for (int r = 1; r < 4; r++) {
        while (atomic_load (&flooded) < 3000 * r)
            usleep (1000);
        start (r);
    }
    for (int r = 0; r < 4; r++)
        finish (r);
    gs_log_set_sink (NULL, NULL);
    ck_assert_int_eq (pthread_join (thread, NULL), 0);
    check_met (4);
    ck_assert_int_gt (heard.strangers, 0);
    ck_assert_int_le (heard.lines, 8); /* one in 10 s, and one in the end */
}
END_TEST

/* A greeting, byte by byte. */
static void *dawdle (void *id)
{
    int fd = try_to_connect (id);

    for (int i = 0; fd >= 0 && i < 4 && send (fd, &head[i], 1, MSG_NOSIGNAL) == 1; i++)
        usleep (200000);
    if (fd >= 0)
        close (fd);
    return NULL;
}

START_TEST (slow_strangers_block_nobody)
{
    pthread_t thread[10];

    plan (3, 20000);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq (pthread_create (&thread[i], NULL, dawdle, &ranks[0].id), 0);
    ranks[2].delay_ms = 300; /* when they are there */
    run (3);
    check_met (3);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq (pthread_join (thread[i], NULL), 0);
}
END_TEST

/* ---- Those who know the protocol ---- */

/* What [wire] sends when it gives [data], as a listener on the network has it. */
static size_t overhear (const struct gsi_wire *wire, const void *data, size_t bytes, char *heard,
                        size_t room)
{
    struct gsi_wire copy = *wire;
    int pair[2];
    ssize_t n;

    ck_assert_int_eq (socketpair (AF_UNIX, SOCK_STREAM, 0, pair), 0);
    copy.fd = pair[0];
    ck_assert_int_eq (gsi_wire_give (&copy, data, bytes), GSI_PASSED);
    n = recv (pair[1], heard, room, 0);
    ck_assert_int_eq (n, (ssize_t) (4 + bytes + GSI_MAC_BYTES));
    close (pair[0]);
    close (pair[1]);
    return (size_t) n;
}

/* Rank 1's greeting and hello are replayed on another connection: they take no rank. */
START_TEST (replays_take_no_rank)
{
    struct gsi_hello hello = {.bytes = 40, .rank = 1, .size = 2};
    struct gsi_wire wire, begin;
    char bytes[512], proof[512];
    struct heard heard;
    struct gsi_id id;
    size_t length;
    int fd;

    hear (&heard);
    plan (2, 20000);
    start (0);
    wire = greet (&ranks[1].id, &id);
    gsi_wire_begin (&begin, -1, false, id.key);
    memcpy (begin.nonce[0], wire.nonce[0], GSI_NONCE_BYTES);
    fd = connect_to (&ranks[1].id);
    length = overhear (&begin, begin.nonce[0], GSI_NONCE_BYTES, bytes, sizeof (bytes));
    ck_assert_int_gt (send (fd, bytes, length, 0), 0);
    ck_assert_int_eq (recv (fd, proof, length, MSG_WAITALL), length); /* rank 0 cannot tell yet */
    length = overhear (&wire, &hello, sizeof (hello), bytes, sizeof (bytes));
    ck_assert_int_gt (send (fd, bytes, length, 0), 0);
    ck_assert_int_le (recv (fd, proof, sizeof (proof), 0), 0); /* it hangs up */
    start (1);
    finish (0);
    finish (1);
    gs_log_set_sink (NULL, NULL);
    check_met (2);
    ck_assert_int_eq (heard.strangers, 1);
    close (fd);
    gsi_wire_end (&wire);
}
END_TEST

/* Every byte of a hello and of a card is proved: one that is changed on the way leads nowhere. */
START_TEST (changed_messages_are_dropped)
{
    struct gsi_hello hello = {.bytes = 40, .rank = 1, .size = 2};
    struct heard heard;

    hear (&heard);
    plan (2, 20000);
    start (0);
    for (size_t at = 0; at < sizeof (hello) + 36; at += 7) {
        char bytes[512];
        struct gsi_id id;
        struct gsi_wire wire = greet (&ranks[1].id, &id);
        size_t length;
        length = overhear (&wire, &hello, sizeof (hello), bytes, sizeof (bytes));
        bytes[at] ^= 4;
        ck_assert_int_gt (send (wire.fd, bytes, length, MSG_NOSIGNAL), 0);
        ck_assert_int_le (recv (wire.fd, bytes, sizeof (bytes), 0), 0);
        gsi_wire_end (&wire);
    }
    start (1);
    finish (0);
    finish (1);
    gs_log_set_sink (NULL, NULL);
    check_met (2);
    ck_assert_int_ge (heard.strangers, 10);
    ck_assert_int_le (heard.lines, 4);
}
END_TEST

/* A rank that loses its connection comes again, and takes its own place. */
START_TEST (a_rank_tries_again)
{
    struct gsi_hello hello = {.process = "the same", .bytes = 40, .rank = 1, .size = 2};
    char card[40], cards[80];
    struct gsi_failure answer;
    struct gsi_wire wire;
    struct gsi_id id;

    plan (2, 20000);
    start (0);
    fill_card (card, 1, sizeof (card));
    for (int turn = 0; turn < 3; turn++) {
        wire = greet (&ranks[1].id, &id);
        ck_assert_int_eq (gsi_wire_give (&wire, &hello, sizeof (hello)), GSI_PASSED);
        if (turn < 2) {
            (void) !send (wire.fd, "\50\0\0\0half", 8, MSG_NOSIGNAL);
            gsi_wire_end (&wire);
        }
    }
    ck_assert_int_eq (gsi_wire_give (&wire, card, sizeof (card)), GSI_PASSED);
    ck_assert_int_eq (gsi_wire_take (&wire, &answer, sizeof (answer)), GSI_PASSED);
    ck_assert_int_eq (answer.st, GS_OK);
    ck_assert_int_eq (gsi_wire_take (&wire, cards, sizeof (cards)), GSI_PASSED);
    ck_assert_int_eq (memcmp (cards + 40, card, 40), 0);
    finish (0);
    ck_assert_msg (!ranks[0].st, "rank 0: %s", ranks[0].text);
    gsi_wire_end (&wire);
}
END_TEST

/* A rank that has left and is started again is another process. */
START_TEST (a_rank_is_started_again)
{
    struct gsi_hello hello = {.process = "the first", .bytes = 40, .rank = 1, .size = 2};
    struct gsi_wire wire;
    struct gsi_id id;

    plan (2, 20000);
    start (0);
    wire = greet (&ranks[1].id, &id);
    ck_assert_int_eq (gsi_wire_give (&wire, &hello, sizeof (hello)), GSI_PASSED);
    gsi_wire_end (&wire);
    start (1);
    finish (0);
    finish (1);
    check_failed (0, GS_ERR_ARG, "rank 1 of 2, which is taken by a process that has left");
    check_failed (1, GS_ERR_ARG, "rank 1 of 2, which is taken by a process that has left");
}
END_TEST

/* ---- Answers that take long ---- */

#define MUCH \
    8000000 /* bytes of a card: two of them have no room in the buffers of a connection */

/* Rank 0 of a rendezvous of two, and rank 1, which has given its card and is told that all is
 * well.
 */
struct handing_out {
    pthread_t thread;
    char *cards;
    gs_status_t st;
    struct gsi_id id;
    struct gsi_wire wire;
};

static void *hand_out (void *argument)
{
    struct handing_out *h = argument;
    char *card = calloc (1, MUCH);
    struct gsi_boot *boot;

    if (!(h->st = gsi_boot_id_open (&ranks[0].id, 0, 2, &boot)))
        h->st =
            boot->ops->exchange (boot, card, MUCH, h->cards, gsi_now_ns () + 30 * GSI_NS_PER_S);
    gsi_boot_close (boot);
    free (card);
    return NULL;
}

/* Says hello as rank 1 of two. */
static struct gsi_wire come_with_much (const char *process, struct gsi_id *id)
{
    struct gsi_hello hello = {.bytes = MUCH, .rank = 1, .size = 2};
    struct gsi_wire wire = greet (&ranks[0].id, id);

    strcpy ((char *) hello.process, process);
    ck_assert_int_eq (gsi_wire_give (&wire, &hello, sizeof (hello)), GSI_PASSED);
    return wire;
}

static void begin_to_hand_out (struct handing_out *h)
{
    struct gsi_failure answer;
    char *card = calloc (1, MUCH);

    plan (2, 20000);
    h->cards = calloc (2, MUCH);
    ck_assert_int_eq (pthread_create (&h->thread, NULL, hand_out, h), 0);
    h->wire = come_with_much ("the first", &h->id);
    ck_assert_int_eq (gsi_wire_give (&h->wire, card, MUCH), GSI_PASSED);
    free (card);
    ck_assert_int_eq (gsi_wire_take (&h->wire, &answer, sizeof (answer)), GSI_PASSED);
    ck_assert_int_eq (answer.st, GS_OK);
}

static void end_to_hand_out (struct handing_out *h)
{
    char *cards = malloc (2 * MUCH);

    ck_assert_int_eq (gsi_wire_take (&h->wire, cards, 2 * MUCH), GSI_PASSED);
    ck_assert_int_eq (pthread_join (h->thread, NULL), 0);
    unit_ok (h->st);
    gsi_wire_end (&h->wire);
    free (cards);
    free (h->cards);
}

START_TEST (a_slow_rank_gets_its_cards)
{
    struct handing_out h;

    begin_to_hand_out (&h);
    usleep (3000000);
    end_to_hand_out (&h);
}
END_TEST

/* A process that is too many, or comes again, when the others are being answered ends nothing. */
START_TEST (one_too_many_comes_late)
{
    static const char *const process[] = {"another", "the first"};
    struct gsi_failure answer;
    struct handing_out h;
    struct gsi_wire late;
    struct gsi_id id;

    for (int p = 0; p < 2; p++) {
        begin_to_hand_out (&h);
        late = come_with_much (process[p], &id);
        ck_assert_int_eq (poll (&(struct pollfd){late.fd, POLLIN, 0}, 1, 5000), 1);
        ck_assert_int_eq (gsi_wire_take (&late, &answer, sizeof (answer)), GSI_BROKEN);
        gsi_wire_end (&late);
        end_to_hand_out (&h);
    }
}
END_TEST

/* A socket at 127.0.0.2, which [bytes] gets in the first place. */
static int stand_before (gs_unique_id_t *bytes, int backlog)
{
    struct gsi_id id = read_id (bytes);
    int fd = socket (AF_INET, SOCK_STREAM, 0);

    id.address[id.addresses++] = id.address[0];
    inet_pton (AF_INET, "127.0.0.2", &id.address[0].four.sin_addr);
    ck_assert_int_eq (bind (fd, &id.address[0].any, sizeof (id.address[0])), 0);
    ck_assert_int_eq (listen (fd, backlog), 0);
    memcpy (bytes, &id, sizeof (id));
    return fd;
}

/* Answers each connection with [kind]: what it has said itself, or bytes of its own. */
struct false_root {
    int fd, kind;
};

static void *answer_falsely (void *argument)
{
    const struct false_root *root = argument;
    char bytes[4096] = "";
    int fd;

    while ((fd = accept (root->fd, NULL, NULL)) >= 0) {
        ssize_t n = recv (fd, bytes, sizeof (bytes), 0);
        (void) !send (fd, bytes, root->kind && n > 0 ? (size_t) n : sizeof (bytes), MSG_NOSIGNAL);
        close (fd);
    }
    return NULL;
}

START_TEST (a_false_rank_0_is_found_out)
{
    for (int kind = 0; kind < 2; kind++) {
        struct false_root root = {.kind = kind};
        struct heard heard;
        pthread_t thread;

        hear (&heard);
        setenv ("GS_ID_HOST", "127.0.0.1", 1);
        plan (2, 20000);
        root.fd = stand_before (&ranks[1].id, 16);
        ck_assert_int_eq (pthread_create (&thread, NULL, answer_falsely, &root), 0);
        ranks[0].delay_ms = 1000; /* so the false one answers first */
        run (2);
        gs_log_set_sink (NULL, NULL);
        check_met (2);
        ck_assert_int_eq (heard.false_roots, 1);
        shutdown (root.fd, SHUT_RDWR);
        ck_assert_int_eq (pthread_join (thread, NULL), 0);
        close (root.fd);
    }
}
END_TEST

/* The first address drops what is sent to it, as a firewall does: its queue is full. */
START_TEST (a_dead_address_hides_no_other)
{
    struct sockaddr_in at;
    socklen_t length = sizeof (at);
    int door, fd[8];

    setenv ("GS_ID_HOST", "127.0.0.1", 1);
    plan (2, 20000);
    door = stand_before (&ranks[1].id, 0);
    ck_assert_int_eq (getsockname (door, (struct sockaddr *) &at, &length), 0);
    for (int i = 0; i < 8; i++) {
        fd[i] = socket (AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void) !connect (fd[i], (struct sockaddr *) &at, length);
    }
    run (2);
    check_met (2);
    for (int i = 0; i < 8; i++)
        close (fd[i]);
    close (door);
}
END_TEST

/*
 * Without room for a connection rank 0 says so, and does not spin; with room again it is fine,
 * but for valgrind, which takes a connection and closes it where the kernel would have let it
 * wait.
 */
START_TEST (no_more_files)
{
    const char *preloaded = getenv ("LD_PRELOAD");
    int times = preloaded && strstr (preloaded, "vgpreload") ? 1 : 2;
    struct rlimit limit, less;

    getrlimit (RLIMIT_NOFILE, &limit);
    for (int again = 0; again < times; again++) {
        int fd, last;
        plan (2, again ? 1500 : 500);
        fd = connect_to (&ranks[0].id);
        ck_assert_int_ge (last = dup (0), 0);
        close (last);
        less = limit;
        less.rlim_cur = (rlim_t) last;
        ck_assert_int_eq (setrlimit (RLIMIT_NOFILE, &less), 0);
        start (0);
        usleep (again ? 500000 : 0);
        ck_assert_int_eq (again ? setrlimit (RLIMIT_NOFILE, &limit) : 0, 0);
        finish (0);
        ck_assert_int_eq (setrlimit (RLIMIT_NOFILE, &limit), 0);
        check_failed (0, GS_ERR_TIMEOUT,
                      again ? "did not come: rank 1"
                            : "rank 0 could not take connections: Too many open files");
        ck_assert_int_eq (strstr (ranks[0].text, "connections") != NULL, !again);
        close (fd);
    }
}
END_TEST

START_TEST (a_wrong_secret_is_a_stranger)
{
    struct heard heard;

    hear (&heard);
    plan (3, 1500);
    ranks[2].id.bytes[20] ^= 1;
    run (3);
    gs_log_set_sink (NULL, NULL);
    check_failed (0, GS_ERR_TIMEOUT, "1 of 3 ranks did not come: rank 2");
    check_failed (1, GS_ERR_TIMEOUT, "1 of 3 ranks did not come: rank 2");
    check_failed (2, GS_ERR_TIMEOUT, "rank 0");
    ck_assert_int_eq (heard.false_roots, 1);
}
END_TEST

UNIT_SUITE ("host", 60, strangers_are_dropped, silent_strangers_block_nobody,
            a_crowd_pushes_no_rank_out, a_rank_is_started_again, a_flood_of_strangers,
            slow_strangers_block_nobody, replays_take_no_rank, changed_messages_are_dropped,
            a_rank_tries_again, a_slow_rank_gets_its_cards, one_too_many_comes_late,
            a_false_rank_0_is_found_out, a_dead_address_hides_no_other, no_more_files,
            a_wrong_secret_is_a_stranger)
