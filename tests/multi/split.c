/* SPDX-License-Identifier: BSD-3-Clause */
/* split - groups: by color, list, node, rail and grid, against a reference; and all that fails.
 */
#include "data.h"
#include "multi.h"

#define ROUNDS  12
#define MOST    MULTI_MOST_RANKS
#define INVALID (-7)

static gs_comm_t *world;
static int rank, size;
static uint64_t state; /* of the random numbers, the same on all ranks */

static int pick (int below)
{
    state = state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (int) ((state >> 33) % (unsigned) below);
}

/* The numbers of all ranks are those of rank 0's clock, or of GS_TEST_SEED. */
static void choose_seed (void)
{
    uint64_t seed = (uint64_t) multi_number (0, "GS_TEST_SEED", NULL);

    if (!seed)
        seed = (uint64_t) (multi_seconds () * 1e6) % 1000000 + 1;
    CHECK_OK (gs_broadcast (world, &seed, 1, GS_U64, 0, NULL));
    state = seed;
    if (!rank)
        printf ("# GS_TEST_SEED=%llu\n", (unsigned long long) seed);
}

/* What the ranks of a group must be: [member] of world, in order. */
static void check_group (gs_comm_t *group, const int *member, int n, const char *name)
{
    int mine[2] = {rank, -1}, all[2 * MOST];
    double x = 1 + rank, sum = 0, root;

    CHECK (!group == !n, "a group where there is none, or none where there is one");
    if (!group || !n)
        return;
    CHECK (gs_comm_size (group) == n, "%s: size %d, not %d", name, gs_comm_size (group), n);
    CHECK (gs_comm_rank (group) >= 0 && gs_comm_rank (group) < n &&
               member[gs_comm_rank (group)] == rank,
           "%s: rank %d is not where it belongs", name, gs_comm_rank (group));
    CHECK (!name || !strcmp (gs_comm_name (group), name), "name %s, not %s", gs_comm_name (group),
           name);
    CHECK (!strcmp (gs_comm_host_of (group, gs_comm_rank (group)), gs_comm_host_of (world, rank)),
           "host %s", gs_comm_host_of (group, gs_comm_rank (group)));
    CHECK (gs_comm_device (group) == gs_comm_device (world), "device %d", gs_comm_device (group));
    CHECK_OK (gs_allgather (group, mine, all, 2, GS_I32, NULL));
    for (int i = 0; i < n; i++) {
        CHECK (all[2 * i] == member[i], "place %d has rank %d, not %d", i, all[2 * i], member[i]);
        sum += 1 + member[i];
    }
    CHECK_OK (gs_allreduce (group, &x, 1, GS_F64, GS_SUM, NULL));
    CHECK (x == sum, "sum %g, not %g", x, sum);
    x = rank;
    root = member[n - 1];
    CHECK_OK (gs_broadcast (group, &x, 1, GS_F64, n - 1, NULL));
    CHECK (x == root, "broadcast gives %g, not %g", x, root);
}

/* The ranks with this one's color, by key and rank, as a slow program would find them. */
static int reference (const int *color, const int *key, int *member)
{
    int n = 0;

    for (int r = 0; r < size && color[rank] >= 0; r++) {
        int i = n;
        if (color[r] != color[rank])
            continue;
        for (; i > 0 && key[member[i - 1]] > key[r]; i--)
            member[i] = member[i - 1];
        member[i] = r;
        n++;
    }
    return n;
}

static void random_colors (void)
{
    int color[MOST], key[MOST], member[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        gs_comm_t *group = (gs_comm_t *) &group;
        int colors = 1 + pick (size), keys = 1 + pick (2 * size), n;
        char name[64];
        for (int r = 0; r < size; r++) {
            color[r] = pick (colors + 1) - 1;
            key[r] = pick (keys) - keys / 2;
        }
        n = reference (color, key, member);
        CHECK_OK (gs_comm_split (world, color[rank], key[rank], &group));
        snprintf (name, sizeof (name), "world.split%d", color[rank]);
        check_group (group, member, n, name);
        CHECK_OK (gs_comm_destroy (group));
    }
}

/* Disjoint lists in any order, made in one call; some ranks in none. */
static void random_lists (void)
{
    int order[MOST];

    for (int round = 0; round < ROUNDS; round++) {
        gs_comm_t *group;
        int begin = 0, n = 0;
        char name[64];
        for (int r = 0; r < size; r++) {
            int at = pick (r + 1);
            order[r] = order[at];
            order[at] = r;
        }
        for (int at = 0, length; at < size; at += length) {
            length = 1 + pick (size - at);
            if (!pick (4))
                continue; /* these are in none */
            for (int i = at; i < at + length; i++)
                if (order[i] == rank) {
                    begin = at;
                    n = length;
                }
        }
        CHECK_OK (gs_comm_split_list (world, n, n ? order + begin : NULL, &group));
        snprintf (name, sizeof (name), "world.list%d", order[begin]);
        check_group (group, order + begin, n, name);
        CHECK_OK (gs_comm_destroy (group));
    }
}

static void nodes_and_rails (void)
{
    int32_t place[2] = {gs_comm_node (world), gs_comm_local_rank (world)}, all[2 * MOST];
    int color[MOST], key[MOST] = {0}, member[MOST], n;
    gs_comm_t *node, *rail;
    char name[64];

    CHECK_OK (gs_allgather (world, place, all, 2, GS_I32, NULL));
    CHECK_OK (gs_comm_split_node (world, &node));
    CHECK_OK (gs_comm_split_rail (world, &rail));
    for (int r = 0; r < size; r++)
        color[r] = all[2 * r];
    n = reference (color, key, member);
    snprintf (name, sizeof (name), "world/node%d", place[0]);
    check_group (node, member, n, name);
    CHECK (gs_comm_nodes (node) == 1 && gs_comm_local_size (node) == n, "a node of %d nodes",
           gs_comm_nodes (node));
    for (int r = 0; r < size; r++) {
        color[r] = all[2 * r + 1];
        key[r] = all[2 * r];
    }
    n = reference (color, key, member);
    snprintf (name, sizeof (name), "world/rail%d", place[1]);
    check_group (rail, member, n, name);
    CHECK (gs_comm_nodes (rail) == n, "a rail of %d on %d nodes", n, gs_comm_nodes (rail));
    CHECK_OK (gs_comm_destroy (node));
    CHECK_OK (gs_comm_destroy (rail));
}

/* Averages in rows and columns, in turn: overlapping groups, all in one order. */
static void use_grid (gs_comm_t *row, gs_comm_t *column, int rows, int columns)
{
    static float x[40000];
    double wanted;

    for (int step = 0; step < 3; step++) {
        for (size_t i = 0; i < 40000; i++)
            x[i] = (float) rank;
        CHECK_OK (multi_wait (row, gs_allreduce_avg (row, x, 40000, GS_F32, NULL)));
        wanted = rank / columns * columns + (columns - 1) / 2.0;
        CHECK (x[0] == (float) wanted && x[39999] == (float) wanted, "row: %g, not %g", x[0],
               wanted);
        CHECK_OK (multi_wait (column, gs_allreduce_avg (column, x, 40000, GS_F32, NULL)));
        wanted = (rows * columns - 1) / 2.0;
        CHECK (x[0] == (float) wanted && x[39999] == (float) wanted, "grid: %g, not %g", x[0],
               wanted);
    }
}

static void grid (int rows, int columns, int wanted_rows)
{
    gs_comm_t *row = NULL, *column = NULL, *one;
    int member[MOST], wanted_columns = size / wanted_rows;
    char name[64];

    CHECK_OK (gs_comm_split_grid (world, rows, columns, &row, &column));
    for (int i = 0; i < wanted_columns; i++)
        member[i] = rank / wanted_columns * wanted_columns + i;
    snprintf (name, sizeof (name), "world/row%d", rank / wanted_columns);
    check_group (row, member, wanted_columns, name);
    for (int i = 0; i < wanted_rows; i++)
        member[i] = rank % wanted_columns + i * wanted_columns;
    snprintf (name, sizeof (name), "world/column%d", rank % wanted_columns);
    check_group (column, member, wanted_rows, name);
    if (row && column)
        use_grid (row, column, wanted_rows, wanted_columns);
    CHECK_OK (gs_comm_destroy (column));
    CHECK_OK (gs_comm_destroy (row));
    CHECK_OK (gs_comm_split_grid (world, rows, columns, NULL, &one));
    check_group (one, member, wanted_rows, name);
    CHECK_OK (gs_comm_destroy (one));
    CHECK_OK (gs_comm_split_grid (world, rows, columns, NULL, NULL));
}

static void grids (void)
{
    int square = 1;

    while (square * square < size || size % square)
        square++;
    grid (0, 0, square);
    for (int rows = 1; rows <= size; rows++)
        if (size % rows == 0 && (rows == 1 || rows == size || pick (2)))
            grid (pick (2) ? rows : 0, size / rows, rows);
}

/* A gradient in a group's reducer: everything else in the library takes groups, too. */
static void reducer_in (gs_comm_t *group)
{
    gs_reducer_t *reducer;
    float x[100], wanted = (float) (gs_comm_size (group) - 1) / 2;
    size_t shape[] = {100};
    void *gradient;
    int index;

    for (int i = 0; i < 100; i++)
        x[i] = (float) gs_comm_rank (group);
    CHECK_OK (gs_reducer_create (group, NULL, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "w", 1, shape, GS_F32, NULL, &index));
    CHECK_OK (gs_reducer_commit (reducer));
    CHECK_OK (gs_reducer_get_grad (reducer, index, &gradient));
    CHECK_OK (gs_device_copy (group, gradient, x, sizeof (x), NULL));
    CHECK_OK (gs_reducer_ready (reducer, index, NULL));
    CHECK_OK (gs_reducer_finish (reducer, NULL));
    CHECK_OK (gs_device_copy (group, x, gradient, sizeof (x), NULL));
    CHECK (x[99] == wanted, "average %g, not %g", x[99], wanted);
    CHECK_OK (gs_reducer_destroy (reducer));
}

/* Groups of groups, which outlive their parents; each is used by its ranks alone. */
static void outlive (void)
{
    gs_comm_t *parent = multi_create (NULL), *half, *quarter;
    int member[MOST], n = 0, color = rank % 2, key[MOST], colors[MOST];

    CHECK_OK (gs_comm_split (parent, color, -rank, &half));
    CHECK_OK (gs_comm_destroy (parent));
    for (int r = 0; r < size; r++) {
        colors[r] = r % 2;
        key[r] = -r;
    }
    n = reference (colors, key, member);
    check_group (half, member, n, color ? "world.split1" : "world.split0");
    CHECK_OK (gs_comm_split (half, gs_comm_rank (half) % 2, 0, &quarter));
    CHECK_OK (gs_comm_destroy (half));
    CHECK (quarter && strstr (gs_comm_name (quarter), ".split"), "no group of a group");
    if (quarter) {
        CHECK_OK (gs_barrier (quarter, NULL));
        reducer_in (quarter);
    }
    CHECK_OK (gs_comm_destroy (quarter));
}

/* The parent works after each failure, and no rank has a group. */
static void check_refused (gs_comm_t *group)
{
    double x = 1;

    CHECK (!group, "a group all the same");
    CHECK_OK (gs_allreduce (world, &x, 1, GS_F64, GS_SUM, NULL));
    CHECK (x == size, "afterwards the sum is %g, not %d", x, size);
}

static void bad_colors (void)
{
    gs_comm_t *group = (gs_comm_t *) &group;
    int last = size - 1;

    CHECK_FAILS (gs_comm_split (NULL, 0, 0, &group), GS_ERR_ARG, "gs_comm_split: comm is NULL");
    CHECK_FAILS (gs_comm_split (world, rank == last ? INVALID : 0, 0, &group), GS_ERR_ARG,
                 "gs_comm_split: rank", "color -7 is negative", "GS_COLOR_NONE");
    check_refused (group);
    CHECK_FAILS (gs_comm_split (world, 0, 0, rank ? &group : NULL), GS_ERR_ARG, "rank 0 (host",
                 "group is NULL");
    check_refused (group);
    CHECK_OK (gs_comm_split (world, GS_COLOR_NONE, 0, &group));
    check_refused (group);
    if (size > 1) {
        CHECK_FAILS (rank == last ? gs_comm_split_node (world, &group)
                                  : gs_comm_split_rail (world, &group),
                     GS_ERR_MISMATCH, "gs_comm_split_rail", "gs_comm_split_node", "same split");
        check_refused (group);
    }
}

static void bad_grids (void)
{
    gs_comm_t *group = (gs_comm_t *) &group;

    CHECK_FAILS (gs_comm_split_grid (world, size + 1, 1, &group, NULL), GS_ERR_ARG, "rank 0",
                 "no grid of");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_grid (world, 0, size + 1, &group, NULL), GS_ERR_ARG, "rank 0");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_grid (world, INT32_MAX, INT32_MAX, &group, NULL), GS_ERR_ARG,
                 "no grid of");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_grid (world, -1, 0, &group, NULL), GS_ERR_ARG, "0 or more");
    check_refused (group);
    if (size < 2)
        return;
    CHECK_FAILS (gs_comm_split_grid (world, rank ? 1 : size, 0, &group, NULL), GS_ERR_MISMATCH,
                 "rows", "rank 1", "same numbers");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_grid (world, 1, size, &group, rank ? &group : NULL),
                 GS_ERR_MISMATCH, "but not both groups");
    check_refused (group);
}

static void bad_lists (void)
{
    gs_comm_t *group = (gs_comm_t *) &group;
    int list[MOST + 1], other = rank ? 0 : 1;
    char text[80];

    for (int r = 0; r < size; r++)
        list[r] = r;
    list[size] = 0;
    CHECK_FAILS (gs_comm_split_list (world, -1, list, &group), GS_ERR_ARG, "n is -1");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_list (world, size + 1, list, &group), GS_ERR_ARG, "the list has");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_list (world, 1, NULL, &group), GS_ERR_ARG, "ranks is NULL");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_list (world, 1, &size, &group), GS_ERR_ARG, "ranks[0] is",
                 "are 0");
    check_refused (group);
    list[0] = INVALID;
    CHECK_FAILS (gs_comm_split_list (world, 1, list, &group), GS_ERR_ARG, "ranks[0] is -7");
    check_refused (group);
    list[0] = 0;
    if (size < 2)
        return;
    list[1] = 0;
    CHECK_FAILS (gs_comm_split_list (world, 2, list, &group), GS_ERR_ARG, "ranks[1] is 0",
                 "twice");
    check_refused (group);
    list[1] = 1;
    CHECK_FAILS (gs_comm_split_list (world, 1, &other, &group), GS_ERR_ARG,
                 "without the rank that gives it");
    check_refused (group);
    CHECK_FAILS (gs_comm_split_list (world, size, list, rank == 1 ? NULL : &group), GS_ERR_ARG,
                 "rank 1 (host", "group is NULL");
    check_refused (group);
    /* Members that disagree: a rank that gives none, one with another order. */
    snprintf (text, sizeof (text), "my list has rank %d", size - 1);
    CHECK_FAILS (gs_comm_split_list (world, rank < size - 1 ? size : 0, list, &group),
                 GS_ERR_MISMATCH, "rank 0", text, "gives none", "same list");
    check_refused (group);
    if (rank == size - 1) {
        list[0] = 1;
        list[1] = 0;
    }
    CHECK_FAILS (gs_comm_split_list (world, size, list, &group), GS_ERR_MISMATCH, text,
                 "gives another list");
    check_refused (group);
}

/* What only some ranks have makes the split fail on all of them, and is told by name. */
static void bad_environment (void)
{
    gs_comm_t *group = (gs_comm_t *) &group;

    if (rank == size - 1)
        setenv ("GS_DETERMINISTIC", "perhaps", 1);
    CHECK_FAILS (gs_comm_split (world, rank == size - 1, 0, &group), GS_ERR_ARG,
                 "GS_DETERMINISTIC");
    check_refused (group);
    unsetenv ("GS_DETERMINISTIC");
    if (size < 2)
        return;
    if (rank == size - 1)
        setenv ("GS_CHECK", "collective", 1);
    CHECK_FAILS (gs_comm_split (world, 0, 0, &group), GS_ERR_MISMATCH, "GS_CHECK");
    check_refused (group);
    unsetenv ("GS_CHECK");
}

int main (void)
{
    world = multi_create (NULL);
    rank = gs_comm_rank (world);
    size = gs_comm_size (world);
    choose_seed ();
    random_colors ();
    random_lists ();
    nodes_and_rails ();
    grids ();
    outlive ();
    bad_colors ();
    bad_grids ();
    bad_lists ();
    bad_environment ();
    CHECK_OK (gs_comm_destroy (world));
    setenv ("GS_CHECK", "collective", 1);
    world = multi_create (NULL);
    random_colors ();
    bad_colors ();
    CHECK_OK (gs_comm_destroy (world));
    return multi_end ("groups by color, list, node, rail and grid");
}
