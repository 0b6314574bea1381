/* SPDX-License-Identifier: BSD-3-Clause */
/* choice - memory and layout of sums between hosts, for jobs larger than any that runs here. */
#include "host/tuning.h"

#include "boot/boot.h"
#include "boot/topo.h"
#include "host/coll_host.h"
#include "unit/unit.h"

#define MOST ((size_t) 1 << 16) /* ranks */

static char hosts[MOST][16];

static const char *host_of (const void *context, int rank)
{
    (void) context;
    return hosts[rank];
}

/* The topo of [rank] in a job of [nodes] times [local], where every [odd]th node has one less. */
static struct gsi_topo make_team (int nodes, int local, int odd, int rank)
{
    struct gsi_topo topo;
    int size = 0;

    for (int n = 0; n < nodes; n++)
        for (int i = 0; i < local - (odd && n % odd == 0); i++)
            snprintf (hosts[size++], sizeof (hosts[0]), "n%d", n);
    gsi_topo_build (&topo, gsi_topo_room (size), rank, size, host_of, NULL);
    return topo;
}

static void check_memory (int nodes, int local)
{
    struct gsi_topo topo = make_team (nodes, local, 0, 0);
    struct gsi_hier l;
    size_t part, areas, staging;

    unit_ok (gsi_hier_nodes (&l, &topo, gsi_tuning_owners (&topo)));
    part = gsi_tuning_part (&l, &topo);
    areas = (size_t) local * (size_t) gsi_tuning_slots (&l) * part * (size_t) l.rail_size *
            (size_t) (l.owners + 1);
    staging = 4 * GSI_STAGING_SLOTS * part * (size_t) l.rail_size;
    unit_check (part % 256 == 0 && part >= 4096, "parts of %zu bytes", part);
    unit_check (nodes == 1 || part < 65536, "parts of %zu bytes are not sent at once", part);
    unit_check (l.owners >= 1 && l.owners <= local, "%d owners of %d", l.owners, local);
    if (part > 4096 || l.owners > 1)
        unit_check (areas <= (size_t) 272 << 20, "%d nodes of %d: %zu bytes on each", nodes,
                    local, areas);
    if (part > 4096)
        unit_check (staging <= (size_t) 20 << 20, "%d nodes of %d: %zu bytes to stage", nodes,
                    local, staging);
    free (l.peer);
    gsi_topo_clear (&topo);
}

START_TEST (memory_stays_bounded)
{
    for (int nodes = 1; nodes <= 1024; nodes *= 2)
        for (int local = 1; local <= 128 && (size_t) (nodes * local) <= MOST; local *= 2)
            if (nodes * local > 1)
                check_memory (nodes, local);
    check_memory (3, 7);
    check_memory (100, 36);
}
END_TEST

/* Ranks that own one shard are one on each node, and know each other. */
static void check_rails (int nodes, int local, int odd, int most)
{
    int owner[128] = {0};

    for (int rank = 0;; rank++) {
        struct gsi_topo topo = make_team (nodes, local, odd, rank);
        struct gsi_hier l;
        int size = topo.size;

        unit_ok (gsi_hier_nodes (&l, &topo, most));
        ck_assert_int_eq (l.rail_size, nodes);
        ck_assert_int_eq (l.rail, topo.node);
        ck_assert_int_eq (l.owners, local - (odd != 0) < most ? local - (odd != 0) : most);
        ck_assert_int_eq (l.shard, topo.local_rank < l.owners ? topo.local_rank : -1);
        for (int n = 0; n < nodes && l.shard >= 0; n++)
            ck_assert_int_eq (topo.node_of[l.peer[n]], n);
        if (l.shard >= 0) {
            ck_assert_int_eq (l.peer[l.rail], rank);
            owner[l.shard]++;
        }
        for (int s = 0; rank == size - 1 && s < l.owners; s++)
            ck_assert_int_eq (owner[s], nodes);
        free (l.peer);
        gsi_topo_clear (&topo);
        if (rank == size - 1)
            return;
    }
}

START_TEST (a_shard_has_one_rank_on_each_node)
{
    check_rails (1, 5, 0, 5);
    check_rails (4, 4, 0, 16);
    check_rails (4, 4, 2, 16);
    check_rails (7, 6, 3, 2);
    check_rails (12, 2, 5, 1);
}
END_TEST

/* A line of the table that says what gsi_tuning_algo () does at its limit, and above it. */
static void check_line (const struct gsi_hier *l, int size, const char *text)
{
    static const char *const names[] = {[GSI_TUNED_SUM] = "sum",
                                        [GSI_TUNED_GATHER] = "allgather",
                                        [GSI_TUNED_BROADCAST] = "broadcast",
                                        [GSI_TUNED_ALLTOALLV] = "alltoallv"};
    const char *const algos[] = {[GSI_ALGO_SMALL_ALLGATHER] = "  small allgather",
                                 [GSI_ALGO_RABENSEIFNER] = "  rabenseifner",
                                 [GSI_ALGO_HIER_SUM] = l->shares ? "  hier" : "  flat",
                                 [GSI_ALGO_MEMORY] = "  memory",
                                 [GSI_ALGO_HIER] = "  hier",
                                 [GSI_ALGO_CMA] = "  cma",
                                 [GSI_ALGO_MESSAGES] = "  messages"};
    enum gsi_tuned op = GSI_TUNED_SUM;
    size_t bytes = SIZE_MAX;
    bool limited;

    while (op < GSI_TUNED_ALLTOALLV && strncmp (text, names[op], strlen (names[op])) != 0)
        op++;
    limited = sscanf (text, "%*s to %zu", &bytes) == 1;
    unit_check (strstr (text, algos[gsi_tuning_algo (l, size, op, bytes)]), "%zu bytes of %d: %s",
                bytes, size, text);
    if (limited)
        unit_check (!strstr (text, algos[gsi_tuning_algo (l, size, op, bytes + 1)]),
                    "%zu bytes of %d: %s", bytes + 1, size, text);
}

static void check_table (int nodes, int local)
{
    struct gsi_topo topo = make_team (nodes, local, 0, 0);
    struct gsi_hier l;
    char text[256];
    int line = 0;

    unit_ok (gsi_tuning_is_flat (&topo) ? gsi_hier_flat (&l, &topo)
                                        : gsi_hier_nodes (&l, &topo, gsi_tuning_owners (&topo)));
    l.rabenseifner = gsi_tuning_rabenseifner ();
    l.part_bytes = gsi_tuning_part (&l, &topo);
    unit_check (4 * GSI_STAGING_SLOTS * gsi_tuning_piece (topo.size) * (size_t) topo.size >=
                    2 * GSI_RABENSEIFNER_BYTES,
                "no room for halves with %d ranks", topo.size);
    while (gsi_tuning_describe (&topo, line++, text, sizeof (text)))
        check_line (&l, topo.size, text);
    unit_check (line >= 6, "%d nodes of %d ranks: %d lines", nodes, local, line - 1);
    free (l.peer);
    gsi_topo_clear (&topo);
}

START_TEST (the_table_tells_the_way)
{
    check_table (1, 2);
    check_table (1, 100);
    check_table (2, 1);
    check_table (16, 1);
    check_table (7, 1);
    check_table (50, 1);
    check_table (2, 2);
    check_table (300, 128);
    setenv ("GS_HOST_ALGO", "flat", 1);
    check_table (1, 2);
    check_table (4, 4);
    setenv ("GS_HOST_ALGO", "rabenseifner", 1);
    check_table (4, 4);
    setenv ("GS_DETERMINISTIC", "1", 1);
    check_table (16, 1);
    unsetenv ("GS_DETERMINISTIC");
    unsetenv ("GS_HOST_ALGO");
}
END_TEST

/* What is exchanged in the memory of a node has room there. */
START_TEST (what_is_small_fits)
{
    for (int size = 2; size <= 16384; size += size / 7 + 1) {
        struct gsi_topo topo = make_team (1, size, 0, 0);
        struct gsi_hier l;
        size_t area;
        unit_ok (gsi_hier_nodes (&l, &topo, gsi_tuning_owners (&topo)));
        area = gsi_tuning_part (&l, &topo) * (size_t) l.owners;
        for (size_t bytes = 1; bytes <= 65536; bytes *= 2)
            if (gsi_tuning_algo (&l, size, GSI_TUNED_SUM, bytes) == GSI_ALGO_SMALL_ALLGATHER)
                unit_check (bytes <= area, "%zu bytes of %d ranks, room %zu", bytes, size, area);
        free (l.peer);
        gsi_topo_clear (&topo);
    }
}
END_TEST

UNIT_SUITE ("tuning", 60, memory_stays_bounded, a_shard_has_one_rank_on_each_node,
            the_table_tells_the_way, what_is_small_fits)
