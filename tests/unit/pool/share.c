/* SPDX-License-Identifier: BSD-3-Clause */
/* share - where rows lie, who evaluates them, in which batches; of numbers drawn at random. */
#include "pool/share.h"

#include "unit/unit.h"

#define MOST   40
#define ROUNDS 2000

/* Numbers of rows of [ranks], many of which have none; returns how many all are. */
static size_t draw_rows (size_t *rows, int ranks, unsigned *seed)
{
    size_t total = 0;

    for (int i = 0; i < ranks; i++) {
        rows[i] = rand_r (seed) % 3 ? (size_t) rand_r (seed) % 50 : 0;
        total += rows[i];
    }
    return total;
}

START_TEST (rows_lie_in_the_order_of_ranks)
{
    const size_t rows[] = {3, 0, 0, 5, 1};
    size_t place[6];

    gsi_share_place (rows, 5, place);
    ck_assert_uint_eq (place[0], 0);
    ck_assert_uint_eq (place[1], 3);
    ck_assert_uint_eq (place[2], 3);
    ck_assert_uint_eq (place[3], 3);
    ck_assert_uint_eq (place[4], 8);
    ck_assert_uint_eq (place[5], 9);
}
END_TEST

START_TEST (parts_cover_all_rows_once_and_are_even)
{
    unsigned seed = 1;

    for (int round = 0; round < ROUNDS; round++) {
        size_t total = (size_t) rand_r (&seed) % 100, next = 0;
        int evaluators = 1 + rand_r (&seed) % 9;
        for (int e = 0; e < evaluators; e++) {
            struct gsi_rows part = gsi_share_part (total, evaluators, e);
            unit_check (part.first == next, "part %d of %zu rows begins at %zu", e, total,
                        part.first);
            unit_check (part.number == total / (size_t) evaluators ||
                            part.number == total / (size_t) evaluators + 1,
                        "part %d of %zu rows has %zu", e, total, part.number);
            next += part.number;
        }
        unit_check (next == total, "%zu rows of %zu are in a part", next, total);
    }
}
END_TEST

START_TEST (batches_cover_a_part_and_are_bounded)
{
    unsigned seed = 2;

    for (int round = 0; round < ROUNDS; round++) {
        struct gsi_rows part = {(size_t) rand_r (&seed) % 50, (size_t) rand_r (&seed) % 300};
        size_t most = (size_t) rand_r (&seed) % 40, next = part.first;
        size_t batches = gsi_share_batches (part, most);
        for (size_t b = 0; b < batches; b++) {
            struct gsi_rows batch = gsi_share_batch (part, most, b);
            unit_check (batch.first == next, "batch %zu begins at %zu", b, batch.first);
            unit_check (batch.number && (!most || batch.number <= most),
                        "batch %zu has %zu rows, of %zu at most", b, batch.number, most);
            next += batch.number;
        }
        unit_check (next == part.first + part.number, "%zu rows of a part are in no batch",
                    part.first + part.number - next);
        unit_check (most || batches == (part.number > 0), "without a bound there is one batch");
    }
}
END_TEST

START_TEST (owners_are_those_with_a_row_there)
{
    unsigned seed = 3;
    size_t rows[MOST], place[MOST + 1];

    for (int round = 0; round < ROUNDS; round++) {
        int ranks = 1 + rand_r (&seed) % MOST, evaluators = 1 + rand_r (&seed) % 5, first, end;
        size_t total = draw_rows (rows, ranks, &seed);
        struct gsi_rows part = gsi_share_part (total, evaluators, (int) (round % evaluators));
        gsi_share_place (rows, ranks, place);
        gsi_share_owners (place, ranks, part, &first, &end);
        for (int i = 0; i < ranks; i++) {
            bool owns = rows[i] && place[i] < part.first + part.number &&
                        place[i] + rows[i] > part.first && part.number;
            unit_check (!owns || (i >= first && i < end), "rank %d is not awaited", i);
            unit_check (owns || i < first || i >= end || !rows[i],
                        "rank %d, whose rows are others', is awaited", i);
        }
    }
}
END_TEST

/* ---- Over nodes ---- */

static struct gsi_node_rows node[MOST];

/* Rows of [nodes]; [tight]: in memory that has room for few more than those that they have. */
static size_t draw_nodes (int nodes, bool tight, unsigned *seed)
{
    size_t total = 0;

    for (int n = 0; n < nodes; n++) {
        node[n].rows = rand_r (seed) % 3 ? (size_t) rand_r (seed) % 200 : 0;
        node[n].most = tight ? node[n].rows + (size_t) rand_r (seed) % 20 : 100000;
        node[n].evaluators = 1 + rand_r (seed) % 4;
        total += node[n].rows;
    }
    return total;
}

/* What node [n] gives goes, each row once, to places behind the rows of others. */
static void check_moves (int nodes, int n)
{
    size_t given = 0, taken = 0;

    for (int other = 0; other < nodes; other++) {
        struct gsi_moved_rows out = gsi_share_moved (&node[n], &node[other]);
        struct gsi_moved_rows in = gsi_share_moved (&node[other], &node[n]);
        unit_check (!out.number || out.from == node[n].kept + given, "node %d gives row %zu", n,
                    out.from);
        unit_check (!in.number || in.to == node[n].rows + taken, "node %d takes to place %zu", n,
                    in.to);
        given += out.number;
        taken += in.number;
    }
    unit_check (given == node[n].rows - node[n].kept, "node %d gives %zu", n, given);
    unit_check (taken == node[n].taken, "node %d takes %zu", n, taken);
    unit_check (!given || !taken, "node %d gives and takes", n);
    unit_check (node[n].rows + taken <= node[n].most, "node %d has no room", n);
}

START_TEST (rows_change_nodes_once_and_where_there_is_room)
{
    unsigned seed = 4;

    for (int round = 0; round < ROUNDS; round++) {
        int nodes = 1 + rand_r (&seed) % MOST;
        size_t total = draw_nodes (nodes, round % 2, &seed), moved, given = 0, evaluated = 0;
        moved = gsi_share_spread (node, nodes);
        for (int n = 0; n < nodes; n++) {
            check_moves (nodes, n);
            given += node[n].rows - node[n].kept;
            evaluated += node[n].kept + node[n].taken;
        }
        unit_check (given == moved, "%zu rows are given, of %zu", given, moved);
        unit_check (evaluated == total, "%zu rows are evaluated, of %zu", evaluated, total);
    }
}
END_TEST

START_TEST (evaluators_of_all_nodes_have_even_parts)
{
    unsigned seed = 5;

    for (int round = 0; round < ROUNDS; round++) {
        int nodes = 1 + rand_r (&seed) % MOST;
        size_t total = draw_nodes (nodes, false, &seed), evaluators = 0, each;
        for (int n = 0; n < nodes; n++)
            evaluators += (size_t) node[n].evaluators;
        each = total / evaluators;
        gsi_share_spread (node, nodes);
        for (int n = 0; n < nodes; n++)
            for (int e = 0; e < node[n].evaluators; e++) {
                struct gsi_rows part =
                    gsi_share_part (node[n].kept + node[n].taken, node[n].evaluators, e);
                unit_check (part.number == each || part.number == each + 1,
                            "an evaluator has %zu rows, not %zu", part.number, each);
            }
    }
}
END_TEST

START_TEST (nothing_changes_nodes_that_are_even)
{
    for (int n = 0; n < 4; n++)
        node[n] = (struct gsi_node_rows){.rows = 8, .most = 8, .evaluators = 2};
    ck_assert_uint_eq (gsi_share_spread (node, 4), 0);
    node[2].rows = 0;
    ck_assert_uint_eq (gsi_share_spread (node, 4), 6);
    ck_assert_uint_eq (node[2].taken, 6);
}
END_TEST

/* ---- Who evaluates ---- */

static struct gsi_candidate candidate[MOST];

/* All [ranks] can, and see [gpus] GPUs of the node. */
static void fill_candidates (int ranks, int gpus)
{
    memset (candidate, 0, sizeof (candidate));
    for (int i = 0; i < ranks; i++) {
        candidate[i].able = true;
        candidate[i].gpus.count = gpus;
        for (int g = 0; g < gpus; g++)
            candidate[i].gpus.id[g] = (uint64_t) (1000 + g);
    }
}

START_TEST (without_gpus_the_lowest_that_can)
{
    fill_candidates (5, 0);
    candidate[0].able = false;
    candidate[1].requested = GS_EVALUATOR_NO;
    ck_assert_int_eq (gsi_share_choose (candidate, 5), 1);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq (candidate[i].evaluates, i == 2);
        ck_assert_int_eq (candidate[i].gpu, -1);
    }
}
END_TEST

START_TEST (one_for_each_gpu)
{
    fill_candidates (16, 4);
    candidate[1].requested = GS_EVALUATOR_NO;
    ck_assert_int_eq (gsi_share_choose (candidate, 16), 4);
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq (candidate[i].evaluates, i < 5 && i != 1);
    ck_assert_int_eq (candidate[0].gpu, 0);
    ck_assert_int_eq (candidate[2].gpu, 1);
    ck_assert_int_eq (candidate[4].gpu, 3);
}
END_TEST

START_TEST (ranks_that_see_one_gpu_each)
{
    fill_candidates (6, 1);
    for (int i = 0; i < 6; i++)
        candidate[i].gpus.id[0] = (uint64_t) (i / 3);
    candidate[0].gpus.count = 0;
    ck_assert_int_eq (gsi_share_choose (candidate, 6), 2);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq (candidate[i].evaluates, i == 1 || i == 3);
}
END_TEST

START_TEST (who_wants_to_does_and_no_other)
{
    fill_candidates (6, 2);
    for (int i = 3; i < 6; i++)
        candidate[i].requested = GS_EVALUATOR_YES;
    ck_assert_int_eq (gsi_share_choose (candidate, 6), 3);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq (candidate[i].evaluates, i > 2);
    ck_assert_int_eq (candidate[3].gpu, 0);
    ck_assert_int_eq (candidate[4].gpu, 1);
    ck_assert_int_eq (candidate[5].gpu, 0);
}
END_TEST

START_TEST (nobody_who_can)
{
    fill_candidates (3, 2);
    for (int i = 0; i < 3; i++)
        candidate[i].requested = GS_EVALUATOR_NO;
    ck_assert_int_eq (gsi_share_choose (candidate, 3), 0);
    fill_candidates (3, 0);
    for (int i = 0; i < 3; i++)
        candidate[i].able = false;
    ck_assert_int_eq (gsi_share_choose (candidate, 3), 0);
}
END_TEST

UNIT_SUITE ("share", 10, rows_lie_in_the_order_of_ranks, parts_cover_all_rows_once_and_are_even,
            batches_cover_a_part_and_are_bounded, owners_are_those_with_a_row_there,
            rows_change_nodes_once_and_where_there_is_room,
            evaluators_of_all_nodes_have_even_parts, nothing_changes_nodes_that_are_even,
            without_gpus_the_lowest_that_can, one_for_each_gpu, ranks_that_see_one_gpu_each,
            who_wants_to_does_and_no_other, nobody_who_can)
