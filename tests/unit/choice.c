/* SPDX-License-Identifier: BSD-3-Clause */
/* choice - memory and layout of sums between hosts, for jobs larger than any that runs here. */
#include "mpi/choice.h"

#include "boot/boot.h"
#include "boot/team.h"
#include "unit.h"

#define MOST ((size_t) 1 << 16) /* ranks */

static char hosts[MOST][16];

static const char *host_of (const void *context, int rank)
{
    (void) context;
    return hosts[rank];
}

/* The team of [rank] in a job of [nodes] times [local], where every [odd]th node has one less. */
static struct gsi_team make_team (int nodes, int local, int odd, int rank)
{
    struct gsi_team team;
    int size = 0;

    for (int n = 0; n < nodes; n++)
        for (int i = 0; i < local - (odd && n % odd == 0); i++)
            snprintf (hosts[size++], sizeof (hosts[0]), "n%d", n);
    unit_ok (gsi_team_build (&team, rank, size, host_of, NULL));
    return team;
}

static void check_memory (int nodes, int local)
{
    struct gsi_team team = make_team (nodes, local, 0, 0);
    struct gsi_levels l;
    size_t part, areas, staging;

    unit_ok (gsi_levels_nodes (&l, &team, gsi_choice_owners (&team)));
    part = gsi_choice_part (&l, &team);
    areas = (size_t) local * (size_t) gsi_choice_slots (&l) * part * (size_t) l.rails *
            (size_t) (l.owners + 1);
    staging = 4 * GSI_STAGING_SLOTS * part * (size_t) l.rails;
    unit_check (part % 128 == 0 && part >= 4096, "parts of %zu bytes", part);
    unit_check (nodes == 1 || part < 65536, "parts of %zu bytes are not sent at once", part);
    unit_check (l.owners >= 1 && l.owners <= local, "%d owners of %d", l.owners, local);
    if (part > 4096 || l.owners > 1)
        unit_check (areas <= (size_t) 272 << 20, "%d nodes of %d: %zu bytes on each", nodes,
                    local, areas);
    if (part > 4096)
        unit_check (staging <= (size_t) 20 << 20, "%d nodes of %d: %zu bytes to stage", nodes,
                    local, staging);
    free (l.peer);
    gsi_team_clear (&team);
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
        struct gsi_team team = make_team (nodes, local, odd, rank);
        struct gsi_levels l;
        int size = team.size;

        unit_ok (gsi_levels_nodes (&l, &team, most));
        ck_assert_int_eq (l.rails, nodes);
        ck_assert_int_eq (l.rail, team.node);
        ck_assert_int_eq (l.owners, local - (odd != 0) < most ? local - (odd != 0) : most);
        ck_assert_int_eq (l.shard, team.local_rank < l.owners ? team.local_rank : -1);
        for (int n = 0; n < nodes && l.shard >= 0; n++)
            ck_assert_int_eq (team.node_of[l.peer[n]], n);
        if (l.shard >= 0) {
            ck_assert_int_eq (l.peer[l.rail], rank);
            owner[l.shard]++;
        }
        for (int s = 0; rank == size - 1 && s < l.owners; s++)
            ck_assert_int_eq (owner[s], nodes);
        free (l.peer);
        gsi_team_clear (&team);
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

UNIT_MAIN ("choice", 60, memory_stays_bounded, a_shard_has_one_rank_on_each_node)
