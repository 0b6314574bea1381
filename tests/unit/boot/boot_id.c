/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_id - ranks that meet by an id, those that should not come, and those that do not. */
#include "config.h"

#ifdef HAVE_OPENSSL

#include <arpa/inet.h>
#include <sys/socket.h>

#include "boot/id.h"
#include "unit/boot/ranks.h"

START_TEST (all_come)
{
    for (int size = 1; size <= MOST; size++) {
        plan (size, 20000);
        run (size);
        check_met (size);
    }
}
END_TEST

START_TEST (all_come_again)
{
    for (int size = 1; size <= MOST; size++) {
        plan (size, 20000);
        for (int r = 0; r < size; r++) {
            ranks[r].again = 5;
            ranks[r].again_delay_ms = r * 5;
        }
        run (size);
        check_met (size);
    }
}
END_TEST

START_TEST (a_rank_does_not_come_again)
{
    plan (4, 3000); /* in which all come, also under valgrind */
    for (int r = 0; r < 4; r++)
        ranks[r].again = 2;
    ranks[2].again_delay_ms = 5000;
    run (4);
    for (int r = 0; r < 4; r += r == 1 ? 2 : 1)
        check_failed (r, GS_ERR_TIMEOUT,
                      "for all to come again; 1 of 4 ranks did not come: rank 2");
    ck_assert_int_ne (ranks[2].st, GS_OK); /* the others have gone */
}
END_TEST

START_TEST (a_rank_ends_in_between)
{
    plan (4, 20000);
    for (int r = 0; r < 4; r++)
        ranks[r].again = r != 2;
    run (4);
    ck_assert_int_eq (ranks[2].st, GS_OK);
    for (int r = 0; r < 4; r += r == 1 ? 2 : 1)
        check_failed (r, GS_ERR_BOOT, "rank 2 has ended");
}
END_TEST

START_TEST (cards_differ_later)
{
    plan (3, 20000);
    for (int r = 0; r < 3; r++)
        ranks[r].again = r == 1 ? 3 : 2; /* so its second card is longer */
    run (3);
    check_failed (0, GS_ERR_BOOT, "rank 1");
    check_failed (2, GS_ERR_BOOT, "rank 1");
    ck_assert_int_ne (ranks[1].st, GS_OK);
}
END_TEST

START_TEST (rank_0_ends_in_between)
{
    plan (3, 20000);
    ranks[1].again = ranks[2].again = 1;
    run (3);
    ck_assert_int_eq (ranks[0].st, GS_OK);
    check_failed (1, GS_ERR_TIMEOUT, "rank 0");
    check_failed (2, GS_ERR_TIMEOUT, "rank 0");
}
END_TEST

/* All return the failure of the first rank that has one, in its words. */
static void check_agreed (gs_status_t st, const char *part)
{
    for (int r = 0; r < 4; r++) {
        ranks[r].again = 1;
        ranks[r].agrees = true;
    }
    run (4);
    for (int r = 0; r < 4; r++)
        if (st)
            check_failed (r, st, part);
        else
            ck_assert_msg (!ranks[r].st, "rank %d: %s", r, ranks[r].text);
}

START_TEST (ranks_agree)
{
    plan (4, 20000);
    check_agreed (GS_OK, "");
    plan (4, 20000);
    ranks[2].own = GS_ERR_DEVICE;
    check_agreed (GS_ERR_DEVICE, "): rank 2 says so itself");
    plan (4, 20000);
    ranks[1].own = GS_ERR_NOMEM;
    ranks[3].own = GS_ERR_DEVICE;
    check_agreed (GS_ERR_NOMEM, "rank 1 (host ");
    plan (4, 20000);
    ranks[0].own = ranks[3].own = GS_ERR_TRANSPORT;
    check_agreed (GS_ERR_TRANSPORT, "): rank 0 says so itself");
    plan (4, 20000);
    ranks[0].own = GS_ERR_TIMEOUT; /* those who waited in vain come behind the cause */
    ranks[1].own = GS_ERR_STATE;
    ranks[3].own = GS_ERR_DEVICE;
    check_agreed (GS_ERR_DEVICE, "): rank 3 says so itself");
    plan (4, 20000);
    ranks[1].own = GS_ERR_TIMEOUT;
    ranks[2].own = GS_ERR_STATE;
    check_agreed (GS_ERR_TIMEOUT, "): rank 1 says so itself");
}
END_TEST

START_TEST (rank_0_comes_last)
{
    plan (3, 20000);
    ranks[0].delay_ms = 300;
    run (3);
    check_met (3);
}
END_TEST

START_TEST (two_meetings_at_once)
{
    plan (6, 20000);
    unit_ok (gs_unique_id_get (&ranks[3].id));
    ranks[4].id = ranks[5].id = ranks[3].id;
    for (int r = 0; r < 6; r++) {
        ranks[r].size = 3;
        ranks[r].rank = r % 3;
    }
    run (6);
    check_met (3);
    memmove (ranks, ranks + 3, 3 * sizeof (ranks[0]));
    check_met (3);
}
END_TEST

START_TEST (a_rank_is_taken_twice)
{
    plan (3, 20000);
    ranks[3] = ranks[2];
    ranks[3].delay_ms = 1000; /* it comes when the others know, and is told, too */
    ranks[2].rank = 1;
    ranks[2].delay_ms = 100;
    run (4);
    for (int r = 0; r < 4; r++)
        check_failed (r, GS_ERR_ARG, "rank 1 of 3, which is taken (rank 0");
}
END_TEST

START_TEST (sizes_differ)
{
    plan (3, 20000);
    ranks[2].size = 4;
    ranks[2].delay_ms = 100;
    run (3);
    for (int r = 0; r < 3; r++)
        check_failed (r, GS_ERR_ARG, "rank 2 of 4, which does not fit (rank 0 says size 3)");
}
END_TEST

START_TEST (cards_differ)
{
    plan (2, 20000);
    ranks[1].bytes = 48;
    run (2);
    check_failed (0, GS_ERR_MISMATCH, "another gradsync version");
    check_failed (1, GS_ERR_MISMATCH, "another gradsync version");
}
END_TEST

START_TEST (a_rank_is_missing)
{
    plan (3, 1500);
    start (0);
    start (1);
    finish (0);
    finish (1);
    check_failed (0, GS_ERR_TIMEOUT, "1 of 3 ranks did not come: rank 2");
    check_failed (1, GS_ERR_TIMEOUT, "1 of 3 ranks did not come: rank 2");
}
END_TEST

START_TEST (rank_0_is_missing)
{
    plan (2, 300); /* its socket listens, but nobody answers */
    start (1);
    finish (1);
    check_failed (1, GS_ERR_TIMEOUT, "rank 0");
}
END_TEST

START_TEST (ids_serve_once)
{
    plan (2, 20000);
    run (2);
    check_met (2);
    run (1);
    check_failed (0, GS_ERR_ARG, "an id serves once");
    ranks[1].wait_ms = 300;
    start (1);
    finish (1);
    check_failed (1, GS_ERR_TIMEOUT, "rank 0");
}
END_TEST

START_TEST (rank_0_must_have_made_the_id)
{
    plan (1, 1000);
    ranks[0].id.bytes[20] ^= 1; /* in the secret: an id of somebody else */
    run (1);
    check_failed (0, GS_ERR_ARG, "rank 0 must be the process that made the id");
}
END_TEST

START_TEST (damaged_ids)
{
    static const char other[] = "nonsense";
    struct gsi_boot *boot;
    gs_unique_id_t id;

    for (int kind = 0; kind < 5; kind++) {
        unit_ok (gs_unique_id_get (&id));
        switch (kind) {
        case 0: memset (&id, 0, sizeof (id)); break;
        case 1: memset (&id, 0xff, sizeof (id)); break;
        case 2: memcpy (&id, other, sizeof (other)); break;
        case 3: memmove (id.bytes, id.bytes + 1, sizeof (id) - 1); break;
        case 4: memset (id.bytes + 48, 0xff, 4); break; /* number of addresses */
        }
        for (int rank = 0; rank < 2; rank++) {
            unit_fails (gsi_boot_id_open (&id, rank, 2, &boot), GS_ERR_ARG, "the id is damaged",
                        "all 256 bytes");
            ck_assert_ptr_null (boot);
        }
    }
    unit_fails (gs_unique_id_get (NULL), GS_ERR_ARG, "id is NULL");
}
END_TEST

START_TEST (addresses_announced)
{
    static const char *const bad[] = {"localhost", "256.1.1.1", "1.2.3", "nonsense", "-1", "::g"};
    static const char *const vain[] = {"0.0.0.0", "::", "fe80::1", "224.0.0.1", "ff02::1"};
    gs_unique_id_t id;

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        setenv ("GS_ID_HOST", bad[i], 1);
        unit_fails (gs_unique_id_get (&id), GS_ERR_ARG, "GS_ID_HOST", bad[i], "numeric IP");
    }
    for (size_t i = 0; i < sizeof (vain) / sizeof (vain[0]); i++) {
        setenv ("GS_ID_HOST", vain[i], 1);
        unit_fails (gs_unique_id_get (&id), GS_ERR_ARG, "GS_ID_HOST", vain[i],
                    "cannot be reached from other hosts");
    }
    setenv ("GS_ID_HOST", "127.0.0.1", 1);
    plan (2, 20000);
    run (2);
    check_met (2);
}
END_TEST

START_TEST (only_what_is_announced_listens)
{
    int fd = socket (AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to;
    struct gsi_id id;

    setenv ("GS_ID_HOST", "127.0.0.1", 1);
    plan (2, 20000);
    unit_ok (gsi_id_read (&ranks[0].id, &id));
    to = id.address[0].four;
    inet_pton (AF_INET, "127.0.0.2", &to.sin_addr);
    ck_assert_int_ne (connect (fd, (struct sockaddr *) &to, sizeof (to)), 0);
    close (fd);
    run (2);
    check_met (2);
    setenv ("GS_ID_HOST", "192.0.2.1", 1); /* of documentation, RFC 5737 */
    unit_fails (gs_unique_id_get (&ranks[0].id), GS_ERR_BOOT, "GS_ID_HOST", "one of this host");
}
END_TEST

/* A job of one host needs no network: 127.0.0.1 is the last, unless many others leave no room. */
START_TEST (loopback_comes_last)
{
    bool found = false;
    gs_unique_id_t bytes;
    struct gsi_id id;

    unit_ok (gs_unique_id_get (&bytes));
    unit_ok (gsi_id_read (&bytes, &id));
    for (uint32_t i = 0; i < id.addresses; i++)
        found |= id.address[i].any.sa_family == AF_INET &&
                 id.address[i].four.sin_addr.s_addr == htonl (INADDR_LOOPBACK);
    ck_assert (found || id.addresses == GSI_ID_ADDRESSES);
}
END_TEST

/* The process with rank 0 ends while others are on their way to it. */
START_TEST (rank_0_dies)
{
    int64_t begin_ns = gsi_now_ns ();
    int pipes[2], status;
    gs_unique_id_t id;
    pid_t pid;

    ck_assert_int_eq (pipe (pipes), 0);
    if (!(pid = fork ())) {
        if (gs_unique_id_get (&id) || write (pipes[1], &id, sizeof (id)) != sizeof (id))
            _exit (1);
        _exit (0);
    }
    plan (2, 100000);
    ck_assert_int_eq (read (pipes[0], &ranks[1].id, sizeof (id)), sizeof (id));
    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    start (1);
    finish (1);
    check_failed (1, GS_ERR_TIMEOUT, "cannot reach rank 0");
    ck_assert_int_lt (gsi_now_ns () - begin_ns, 50 * GSI_NS_PER_S);
    close (pipes[0]);
    close (pipes[1]);
}
END_TEST

UNIT_SUITE ("boot_id", 60, all_come, all_come_again, a_rank_does_not_come_again,
            a_rank_ends_in_between, cards_differ_later, rank_0_ends_in_between, ranks_agree,
            rank_0_comes_last, two_meetings_at_once, a_rank_is_taken_twice, sizes_differ,
            cards_differ, a_rank_is_missing, rank_0_is_missing, ids_serve_once,
            rank_0_must_have_made_the_id, damaged_ids, addresses_announced,
            only_what_is_announced_listens, loopback_comes_last, rank_0_dies)

#else

#include "boot/boot.h"
#include "unit/unit.h"

START_TEST (refused_without_openssl)
{
    struct gsi_boot *boot = (struct gsi_boot *) &boot;
    gs_unique_id_t id = {{0}};

    unit_fails (gs_unique_id_get (&id), GS_ERR_UNSUPPORTED, "gs_unique_id_get", "--with-openssl");
    unit_fails (gsi_boot_id_open (&id, 0, 1, &boot), GS_ERR_UNSUPPORTED, "gs_comm_create_from_id",
                "--with-openssl");
    ck_assert_ptr_null (boot);
}
END_TEST

UNIT_SUITE ("boot_id", 10, refused_without_openssl)

#endif
