/* SPDX-License-Identifier: BSD-3-Clause */
/* place - which rank takes which GPU, over all ways in which ranks lie on nodes and see GPUs. */
#include "core/gpu_map.h"

#include "base/env.h"
#include "unit/unit.h"

#define MOST 64

static struct gsi_card cards[MOST];
static _Alignas(8) char room[MOST * GSI_PLACE_BYTES];

static const char *host_of (const void *context, int rank)
{
    return ((const struct gsi_card *) context)[rank].host;
}

/* Gives rank [r] a place on [node], and the GPUs [first] to [first] + [count] - 1 of it. */
static void set_rank (int r, int node, int first, int count)
{
    cards[r] = (struct gsi_card){
        .device = GS_DEVICE_AUTO, .sharing = GSI_SHARING_NEVER, .gpus.count = count};
    snprintf (cards[r].host, sizeof (cards[r].host), "n%d", node);
    for (int i = 0; i < count && i < GSI_MAX_GPUS; i++)
        cards[r].gpus.id[i] = (uint64_t) (first + i + 1) << 8;
}

/* As set_rank for [nodes] nodes of [per_node] ranks, which lie in blocks or take turns. */
static int set_ranks (int nodes, int per_node, int gpus, bool in_turn)
{
    for (int r = 0; r < nodes * per_node; r++)
        set_rank (r, in_turn ? r % nodes : r / per_node, 0, gpus);
    return nodes * per_node;
}

static enum gsi_gpu_use use; /* what [me] was told beside its GPU */

/* What rank [me] of [size] finds out. */
static gs_status_t place (int me, int size, int *ordinal)
{
    struct gsi_topo topo;
    gs_status_t st;

    *ordinal = -77;
    gsi_topo_build (&topo, gsi_topo_room (size), me, size, host_of, cards);
    st = gsi_gpu_map_make (cards, &topo, room, ordinal, &use);
    gsi_topo_clear (&topo);
    return st;
}

/* Every rank is placed; [wanted] has the ordinals. */
static void check_placed (int size, const int *wanted)
{
    int ordinal;

    for (int me = 0; me < size; me++) {
        unit_ok (place (me, size, &ordinal));
        ck_assert_msg (ordinal == wanted[me], "rank %d takes GPU %d, not %d", me, ordinal,
                       wanted[me]);
    }
}

/* All ranks refuse, with the same text, which has all the parts that follow. */
#define CHECK_REFUSED(size, ...)                                                 \
    do {                                                                         \
        char first[1024] = "";                                                   \
        int ordinal;                                                             \
        for (int me = 0; me < (size); me++) {                                    \
            unit_fails (place (me, size, &ordinal), GS_ERR_DEVICE, __VA_ARGS__); \
            if (!me)                                                             \
                snprintf (first, sizeof (first), "%s", gs_last_error ());        \
            ck_assert_str_eq (gs_last_error (), first);                          \
        }                                                                        \
    } while (0)

START_TEST (by_local_rank)
{
    static const int block[] = {0, 1, 2, 3, 0, 1, 2, 3}, in_turn[] = {0, 0, 1, 1, 2, 2, 3, 3};

    check_placed (set_ranks (2, 4, 4, false), block);
    check_placed (set_ranks (2, 4, 4, true), in_turn);
    check_placed (set_ranks (8, 1, 4, true), (const int[8]){0});
    check_placed (set_ranks (2, 3, 4, false), (const int[]){0, 1, 2, 0, 1, 2});
    check_placed (set_ranks (1, 1, 1, false), (const int[]){0});
}
END_TEST

START_TEST (on_nodes_in_any_order)
{
    static const int node[] = {2, 0, 2, 2, 1, 0, 1, 2}, wanted[] = {0, 0, 1, 2, 0, 1, 1, 3};

    for (int r = 0; r < 8; r++)
        set_rank (r, node[r], 0, 4);
    check_placed (8, wanted);
}
END_TEST

START_TEST (one_gpu_each_by_the_launcher)
{
    for (int r = 0; r < 8; r++)
        set_rank (r, r / 4, r % 4, 1); /* srun --gpus-per-task=1 */
    check_placed (8, (const int[8]){0});
}
END_TEST

START_TEST (as_asked_for)
{
    int size = set_ranks (2, 2, 4, false);

    cards[0].device = 3;
    cards[1].device = 1;
    cards[2].device = 3; /* the same number, and even the same id, on another node */
    cards[3].device = 0;
    check_placed (size, (const int[]){3, 1, 3, 0});
    cards[3].device = GS_DEVICE_AUTO; /* local rank 1, beside one that asked for 3 */
    check_placed (size, (const int[]){3, 1, 3, 1});
}
END_TEST

START_TEST (out_of_range)
{
    int size = set_ranks (2, 2, 4, false);

    cards[2].device = 4;
    CHECK_REFUSED (size, "rank 2 (host n1) asks for GPU 4, but sees 4, numbered from 0",
                   "GS_DEVICE", "CUDA_VISIBLE_DEVICES");
    cards[1].device = 1000;
    CHECK_REFUSED (size, "rank 1 (host n0) asks for GPU 1000");
}
END_TEST

START_TEST (without_a_gpu)
{
    int size = set_ranks (2, 2, 4, false);

    cards[3].gpus.count = 0;
    snprintf (cards[3].text, sizeof (cards[3].text), "no GPU: no NVIDIA driver on this host");
    CHECK_REFUSED (size, "rank 3 (host n1) has no GPU: no GPU: no NVIDIA driver on this host");
    cards[0].gpus.count = 0;
    CHECK_REFUSED (size, "rank 0 (host n0) has no GPU");
    cards[0].device = GS_DEVICE_HOST;
    CHECK_REFUSED (size, "rank 0 (host n0) wants no GPU", "GS_DEVICE");
}
END_TEST

START_TEST (more_ranks_than_gpus)
{
    int size = set_ranks (2, 3, 2, false);

    CHECK_REFUSED (size, "ranks 0 and 2 (host n0) would share the GPU 0000:01:00",
                   "srun --gpus-per-node=4 --ntasks-per-node=4", "GS_DEVICE");
    size = set_ranks (2, 3, 2, true);
    CHECK_REFUSED (size, "ranks 0 and 4 (host n0)");
}
END_TEST

START_TEST (ranks_that_share)
{
    int size = set_ranks (2, 3, 2, false), own;

    for (int r = 0; r < size; r++)
        cards[r].sharing = GSI_SHARING_AUTO;
    check_placed (size, (const int[]){0, 1, 0, 0, 1, 0});
    ck_assert (use == GSI_GPUS_SHARED);
    unit_ok (place (0, 2, &own));
    ck_assert (use == GSI_GPUS_OWN); /* two ranks have a GPU each */
}
END_TEST

/* Those that have or want none take the host; the others share only what there are too few of. */
START_TEST (some_have_none)
{
    int size = set_ranks (2, 4, 2, false), own;

    for (int r = 0; r < size; r++)
        cards[r].sharing = GSI_SHARING_AUTO;
    for (int r = 1; r < size; r += 2)
        cards[r].gpus.count = 0;
    cards[2].device = GS_DEVICE_HOST;
    check_placed (size, (const int[]){0, GS_DEVICE_HOST, GS_DEVICE_HOST, GS_DEVICE_HOST, 0,
                                      GS_DEVICE_HOST, 1, GS_DEVICE_HOST});
    unit_ok (place (3, size, &own));
    ck_assert (use == GSI_GPUS_MIXED);
    ck_assert_ptr_nonnull (strstr (gs_last_error (), "rank 1 (host n0) has no GPU"));
    cards[6].device = 0; /* as rank 4 has */
    unit_ok (place (6, size, &own));
    ck_assert (use == GSI_GPUS_MIXED && own == 0);
    cards[6].device = 2;
    CHECK_REFUSED (size, "rank 6 (host n1) asks for GPU 2, but sees 2");
    cards[6].device = GS_DEVICE_AUTO;
    for (int r = 0; r < size; r++)
        cards[r].sharing = GSI_SHARING_NEVER;
    CHECK_REFUSED (size, "rank 1 (host n0) has no GPU");
}
END_TEST

START_TEST (the_same_gpu_asked_for)
{
    int size = set_ranks (2, 4, 4, true); /* ranks 1, 3, 5, 7 are on n1 */

    cards[7].device = 0;
    cards[1].device = 3;
    check_placed (size, (const int[]){0, 3, 1, 1, 2, 2, 3, 0});
    cards[7].device = 3;
    cards[1].gpus.id[3] = cards[7].gpus.id[3] = UINT64_C (0x1a2bc300); /* 1a2b:c3:00 */
    CHECK_REFUSED (size, "ranks 1 and 7 (host n1) would share the GPU 1a2b:c3:00");
    cards[7].gpus.id[3]++; /* another device there */
    check_placed (size, (const int[]){0, 3, 1, 1, 2, 2, 3, 3});
}
END_TEST

/* A GPU is known by where it is, not by its number: CUDA_VISIBLE_DEVICES may differ. */
START_TEST (the_same_gpu_by_other_numbers)
{
    set_rank (0, 0, 0, 2);
    set_rank (1, 0, 1, 2); /* its GPU 0 is the first rank's GPU 1 */
    check_placed (2, (const int[]){0, 1});
    cards[1].device = 0;
    check_placed (2, (const int[]){0, 0});
    cards[0].device = 1;
    CHECK_REFUSED (2, "ranks 0 and 1 (host n0) would share the GPU 0000:02:00");
}
END_TEST

START_TEST (sharing_is_allowed_by_both)
{
    int size = set_ranks (2, 4, 2, false);

    for (int r = 0; r < size; r++)
        cards[r].allow_shared_gpu = 1;
    check_placed (size, (const int[]){0, 1, 0, 1, 0, 1, 0, 1});
    cards[6].allow_shared_gpu = 0;
    CHECK_REFUSED (size, "ranks 4 and 6 (host n1)");
    cards[6].allow_shared_gpu = 1;
    cards[0].allow_shared_gpu = 0;
    CHECK_REFUSED (size, "ranks 0 and 2 (host n0)");
    cards[0].device = 1; /* the two that share are not the first ones */
    CHECK_REFUSED (size, "ranks 0 and 1 (host n0)");
}
END_TEST

START_TEST (places_that_are_not_known)
{
    int size = set_ranks (1, 4, 2, false);

    for (int r = 0; r < size; r++)
        memset (cards[r].gpus.id, 0, sizeof (cards[r].gpus.id));
    check_placed (size, (const int[]){0, 1, 0, 1}); /* NCCL finds it out */
}
END_TEST

/* A card tells of 16 GPUs; the others are taken, but nobody can compare them. */
START_TEST (more_gpus_than_a_card_tells_of)
{
    int size = set_ranks (1, 20, 20, false), wanted[20];

    for (int r = 0; r < size; r++)
        wanted[r] = r;
    for (int r = 0; r < size; r++)
        memset (cards[r].version, 'v',
                sizeof (cards[r].version)); /* behind the list, not of it */
    check_placed (size, wanted);
    cards[3].device = wanted[3] = 17;
    check_placed (size, wanted);
    cards[3].device = 15;
    CHECK_REFUSED (size, "ranks 3 and 15 (host n0)");
}
END_TEST

START_TEST (many_ranks)
{
    int wanted[MOST];

    for (int r = 0; r < MOST; r++)
        wanted[r] = r / 16;
    check_placed (set_ranks (16, 4, 4, true), wanted);
}
END_TEST

/* The first of two ranks that hide from each other, -1 if none do; the second is [other]. */
static int hidden (int size, int other)
{
    int pair[2] = {-2, -2};
    struct gsi_topo topo;
    bool found;

    gsi_topo_build (&topo, gsi_topo_room (size), 0, size, host_of, cards);
    found = gsi_gpu_map_hidden (cards, &topo, room, pair);
    gsi_topo_clear (&topo);
    ck_assert_int_eq (found ? pair[1] : -1, other);
    return found ? pair[0] : -1;
}

START_TEST (hidden_peers)
{
    int size = set_ranks (2, 4, 4, false);

    ck_assert_int_eq (hidden (size, -1), -1); /* all see all */
    ck_assert_int_eq (hidden (1, -1), -1);
    for (int r = 0; r < size; r++)
        set_rank (r, r / 4, r % 4, 1);
    ck_assert_int_eq (hidden (size, 1), 0);
    for (int r = 0; r < 4; r++)
        set_rank (r, 0, 0, 4);
    ck_assert_int_eq (hidden (size, 5), 4); /* on the second node only */
    for (int r = 0; r < size; r++)
        set_rank (r, r % 2, r / 2, 1);
    ck_assert_int_eq (hidden (size, 2), 0); /* on nodes by turns */
    for (int r = 0; r < size; r++)
        set_rank (r, r, 0, 1);
    ck_assert_int_eq (hidden (size, -1), -1); /* one rank on each node has nobody to hide from */
    for (int r = 0; r < size; r++)
        set_rank (r, 0, 0, 1);
    ck_assert_int_eq (hidden (size, -1), -1); /* all see the same one */
}
END_TEST

START_TEST (partly_hidden_peers)
{
    set_rank (0, 0, 0, 2);
    set_rank (1, 0, 2, 2);
    ck_assert_int_eq (hidden (2, 1), 0); /* two of four each */
    set_rank (1, 0, 0, 4);
    ck_assert_int_eq (hidden (2, -1), -1); /* both see the GPUs that are taken, 0 and 1 */
    cards[1].device = 3;
    ck_assert_int_eq (hidden (2, 1), 0); /* rank 0 does not see GPU 3 */
    set_rank (0, 0, 0, 4);
    set_rank (1, 0, 0, 2);
    cards[0].device = 3;
    ck_assert_int_eq (hidden (2, 1), 0); /* rank 1 does not */
    memset (cards[0].gpus.id, 0, sizeof (cards[0].gpus.id));
    ck_assert_int_eq (hidden (2, -1), -1); /* nobody can tell */
    set_rank (0, 0, 0, 20);
    set_rank (1, 0, 20, 1);
    cards[0].device = 17;
    ck_assert_int_eq (hidden (2, -1), -1); /* beyond what a card tells */
}
END_TEST

UNIT_SUITE ("place", 30, by_local_rank, on_nodes_in_any_order, one_gpu_each_by_the_launcher,
            as_asked_for, out_of_range, without_a_gpu, more_ranks_than_gpus, ranks_that_share,
            some_have_none, the_same_gpu_asked_for, the_same_gpu_by_other_numbers,
            sharing_is_allowed_by_both, places_that_are_not_known, more_gpus_than_a_card_tells_of,
            many_ranks, hidden_peers, partly_hidden_peers)
