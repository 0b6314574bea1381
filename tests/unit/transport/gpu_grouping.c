/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_grouping - which ranks have one GPU and who leads them, however ranks lie on nodes. */
#include "transport/gpu_grouping.h"

#include "unit/unit.h"

#define MOST 24

static struct gsi_rank_gpu of_rank[MOST];
static int node_of[MOST], leaders[MOST], members[MOST], node_of_leader[MOST];
static struct gsi_gpu_grouping s;
static struct gsi_topo topo;

/* Puts each of [size] ranks on [node][r], where it has GPU [gpu][r]; this one is [me]. */
static void place (int me, int size, const int *node, const int *gpu)
{
    memset (of_rank, 0, sizeof (of_rank));
    memset (members, 0, sizeof (members));
    topo = (struct gsi_topo){.rank = me, .size = size, .node = node[me], .node_of = node_of};
    for (int r = 0; r < size; r++) {
        node_of[r] = node[r];
        topo.nodes = node[r] >= topo.nodes ? node[r] + 1 : topo.nodes;
        of_rank[r] = (struct gsi_rank_gpu){.known = 1, .gpu = (uint64_t) gpu[r] + 1};
        of_rank[r].id.bytes[15] = (unsigned char) gpu[r];
    }
    s = (struct gsi_gpu_grouping){.gpus = of_rank, .leaders = leaders, .members = members};
    gsi_gpu_grouping_find (&s, &topo);
}

static void check_leaders (int groups, const int *wanted, const int *sizes)
{
    ck_assert_int_eq (s.groups, groups);
    for (int i = 0; i < groups; i++) {
        ck_assert_int_eq (leaders[i], wanted[i]);
        ck_assert_int_eq (members[wanted[i]], sizes[i]);
    }
}

static const int block[] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1},
                 gpus[] = {0, 1, 0, 1, 0, 0, 1, 0, 1, 0};

START_TEST (ranks_of_a_gpu_are_a_group)
{
    place (0, 10, block, gpus);
    check_leaders (4, (const int[]){0, 1, 5, 6}, (const int[]){3, 2, 3, 2});
    ck_assert_int_eq (s.largest, 3);
    for (int r = 0; r < 10; r++)
        ck_assert_int_eq (gsi_gpu_grouping_leader (&s, &topo, r), 5 * (r / 5) + gpus[r]);
    ck_assert_int_eq (members[2], 0); /* it does not lead */
}
END_TEST

START_TEST (nodes_in_turn)
{
    static const int turn[] = {0, 1, 0, 1, 0, 1}, gpu[] = {1, 1, 0, 0, 1, 1};

    place (0, 6, turn, gpu);
    check_leaders (4, (const int[]){0, 1, 2, 3}, (const int[]){2, 2, 1, 1});
    ck_assert_int_eq (gsi_gpu_grouping_leader (&s, &topo, 5), 1);
}
END_TEST

START_TEST (a_gpu_of_each_ones_own)
{
    static const int alone[] = {0, 0, 0}, gpu[] = {2, 0, 1};

    place (0, 3, alone, gpu);
    check_leaders (3, (const int[]){0, 1, 2}, (const int[]){1, 1, 1});
    ck_assert_int_eq (s.largest, 1);
}
END_TEST

START_TEST (leaders_as_ranks)
{
    struct gsi_topo own = {.node_of = node_of_leader};

    place (6, 10, block, gpus); /* it leads */
    gsi_gpu_grouping_topo (&s, &topo, &own);
    ck_assert_int_eq (own.size, 4);
    ck_assert_int_eq (own.rank, 3);
    ck_assert_int_eq (own.nodes, 2);
    ck_assert_int_eq (own.node, 1);
    ck_assert_int_eq (own.local_size, 2);
    ck_assert_int_eq (own.local_rank, 1);
    ck_assert_int_eq (own.node_of[1], 0);
    ck_assert_int_eq (own.node_of[2], 1);
}
END_TEST

START_TEST (why_sums_are_not_made_in_groups)
{
    char why[256] = "";

    place (0, 10, block, gpus);
    ck_assert (gsi_gpu_grouping_may_sum (&s, &topo, why, sizeof (why)));
    of_rank[7].known = 0;
    strcpy (of_rank[7].text, "no name");
    ck_assert (!gsi_gpu_grouping_may_sum (&s, &topo, why, sizeof (why)));
    ck_assert_str_eq (why, "rank 7: no name");
    for (int r = 0; r < 10; r++)
        of_rank[r].deterministic = 1;
    ck_assert (!gsi_gpu_grouping_may_sum (&s, &topo, why, sizeof (why)));
    ck_assert_str_eq (why, "GS_DETERMINISTIC is set");
}
END_TEST

START_TEST (instances_of_a_gpu)
{
    char why[256] = "";

    place (0, 10, block, gpus);
    for (int r = 0; r < 5; r++)
        of_rank[r].gpu = 9; /* two instances of it on this node */
    ck_assert (!gsi_gpu_grouping_may_sum (&s, &topo, why, sizeof (why)));
    ck_assert_ptr_nonnull (strstr (why, "ranks 0 and 1 have two instances (MIG) of one GPU"));
    for (int r = 0; r < 5; r++)
        of_rank[r].gpu = of_rank[r + 5].gpu; /* the same bus on another node is another GPU */
    ck_assert (gsi_gpu_grouping_may_sum (&s, &topo, why, sizeof (why)));
}
END_TEST

START_TEST (old_nccl)
{
    unit_ok (gsi_gpu_grouping_check_nccl (2, 22200));
    unit_fails (gsi_gpu_grouping_check_nccl (2, 22199), GS_ERR_UNSUPPORTED, "NCCL before 2.22");
    unit_ok (gsi_gpu_grouping_check_nccl (1, 21800)); /* one leader needs none */
}
END_TEST

UNIT_SUITE ("grouping", 30, ranks_of_a_gpu_are_a_group, nodes_in_turn, a_gpu_of_each_ones_own,
            leaders_as_ranks, why_sums_are_not_made_in_groups, instances_of_a_gpu, old_nccl)
