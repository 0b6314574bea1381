/* SPDX-License-Identifier: BSD-3-Clause */
/* absent - whom a rank asks for, and what it then says. */
#include "boot/missing.h"

#include "unit/unit.h"

#define PER_NODE 50 /* ranks */

static unsigned char asked[200];       /* how often */
static int gone, slow = -1, dead = -1; /* ranks */
static bool early;

static void local (struct gsi_boot *boot, unsigned char *marks)
{
    for (int r = 0; r < boot->size; r++)
        marks[r] = r / PER_NODE == boot->rank / PER_NODE;
}

static void ask (struct gsi_boot *boot, const char *key, const unsigned char *wanted,
                 unsigned char *missing)
{
    ck_assert_str_eq (key, "key");
    for (int r = 0; r < boot->size; r++) {
        asked[r] += wanted[r];
        if (wanted[r] && r != gone && r != slow)
            missing[r] = 0;
    }
}

static const char *host (void *boot, int rank)
{
    (void) boot;
    return rank / PER_NODE ? "n2" : "n1";
}

static bool goes_on (const void *context, int rank)
{
    (void) context;
    return rank == slow;
}

static bool halted (const void *context, int rank)
{
    (void) context;
    return rank == dead;
}

/* What rank [rank] of [size] says; it asks for ranks [first] to [last]. */
static void check (int rank, int size, int first, int last, int absent, const char *text)
{
    const struct gsi_asking how = {.local = local, .ask = ask, .host = host, .early = early};
    struct gsi_boot boot = {
        .rank = rank, .size = size, .host = "n", .goes_on = goes_on, .halted = halted};
    char names[400];

    memset (asked, 0, sizeof (asked));
    ck_assert_int_eq (gsi_missing_name (&boot, &how, "key", names, sizeof (names)), absent);
    ck_assert_str_eq (names, text);
    for (int r = 0; r < size; r++)
        ck_assert_int_eq (asked[r], r >= first && r <= last);
}

START_TEST (few_ranks_ask_for_all)
{
    gone = 2;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 2 (host n1)");
    gone = -1;
    check (1, 3, 0, 2, 0, "all ranks came");
    gone = PER_NODE; /* the only one of the other node */
    check (1, PER_NODE + 1, 0, PER_NODE, 1,
           "1 of 51 ranks did not come: rank 50 (host n2); nobody of other hosts was heard of: a "
           "firewall may drop what the PMIx servers send each other, to ports of any number");
}
END_TEST

START_TEST (one_rank_of_a_node_asks_the_others)
{
    gone = 0;
    check (1, 100, 0, 99, 1, "1 of 100 ranks did not come: rank 0 (host n1)");
    check (50, 100, 0, 99, 1, "1 of 100 ranks did not come: rank 0 (host n1)");
    check (51, 100, 50, 99, 0,
           "rank 50 has asked the other nodes; on this one (host n) all ranks came");
    check (2, 100, 0, 49, 1,
           "rank 1 has asked the other nodes; on this one (host n) 1 of 100 ranks did not come: "
           "rank 0 (host n1)");
}
END_TEST

START_TEST (a_slow_rank_is_named_if_nobody_else_is_missing)
{
    gone = 2;
    slow = 0;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 2 (host n1)");
    gone = -1;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 0 (host n1)");
}
END_TEST

START_TEST (a_rank_that_has_died_is_named_though_it_came)
{
    gone = -1;
    dead = 2;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 2 (host n1)");
    slow = 0;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 2 (host n1)");
    slow = -1;
    gone = 0;
    check (1, 3, 0, 2, 2, "2 of 3 ranks did not come: rank 0 (host n1), rank 2 (host n1)");
}
END_TEST

START_TEST (early_a_rank_that_goes_on_is_not_named)
{
    gone = -1;
    slow = 0;
    dead = -1;
    early = true;
    check (1, 3, 0, 2, 0, "all ranks came");
    gone = 2;
    check (1, 3, 0, 2, 1,
           "1 of 3 ranks did not come: rank 2 (host n1); those of them that have not ended "
           "may be waiting still");
    dead = 2;
    check (1, 3, 0, 2, 1, "1 of 3 ranks did not come: rank 2 (host n1)");
    dead = -1;
    gone = PER_NODE; /* the only one of the other node */
    check (1, PER_NODE + 1, 0, PER_NODE, 1,
           "1 of 51 ranks did not come: rank 50 (host n2); those of them that have not ended may "
           "be waiting still");
    check (1, PER_NODE + 2, 0, PER_NODE + 1, 1,
           "1 of 52 ranks did not come: rank 50 (host n2); those of them that have not ended may "
           "be waiting still");
}
END_TEST

UNIT_SUITE ("absent", 20, early_a_rank_that_goes_on_is_not_named, few_ranks_ask_for_all,
            a_rank_that_has_died_is_named_though_it_came,
            a_slow_rank_is_named_if_nobody_else_is_missing, one_rank_of_a_node_asks_the_others)
