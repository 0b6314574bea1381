/* SPDX-License-Identifier: BSD-3-Clause */
/* topo - who shares a node, for block, cyclic and random distributions, against plain search. */
#include "boot/topo.h"

#include "boot/boot.h"
#include "unit/unit.h"

#define MOST 300

static char hosts[MOST][GSI_HOST_BYTES];

static const char *host_of (const void *context, int rank)
{
    unit_check (context == hosts && rank >= 0 && rank < MOST, "asked for rank %d", rank);
    return hosts[rank];
}

/* Builds the topo as each rank sees it and compares it with the definition. */
static void check_team (int size)
{
    int nodes = 0, node_of[MOST];

    for (int r = 0; r < size; r++) {
        int other = 0;
        while (strcmp (hosts[other], hosts[r]))
            other++;
        node_of[r] = other == r ? nodes++ : node_of[other];
    }
    for (int me = 0; me < size; me++) {
        struct gsi_topo topo;
        int local_rank = 0, local_size = 0;
        gsi_topo_build (&topo, gsi_topo_room (size), me, size, host_of, hosts);
        for (int r = 0; r < size; r++) {
            unit_check (topo.node_of[r] == node_of[r], "rank %d is on node %d", r,
                        topo.node_of[r]);
            local_size += node_of[r] == node_of[me];
            local_rank += r < me && node_of[r] == node_of[me];
        }
        ck_assert_int_eq (topo.rank, me);
        ck_assert_int_eq (topo.size, size);
        ck_assert_int_eq (topo.nodes, nodes);
        ck_assert_int_eq (topo.node, node_of[me]);
        ck_assert_int_eq (topo.local_rank, local_rank);
        ck_assert_int_eq (topo.local_size, local_size);
        gsi_topo_clear (&topo);
        ck_assert_ptr_null (topo.node_of);
    }
}

START_TEST (one_node)
{
    for (int size = 1; size <= 9; size++) {
        for (int r = 0; r < size; r++)
            strcpy (hosts[r], "n0");
        check_team (size);
    }
}
END_TEST

START_TEST (blocks_and_cycles)
{
    for (int nodes = 1; nodes <= 8; nodes++)
        for (int per_node = 1; per_node <= 5; per_node++) {
            int size = nodes * per_node;
            for (int r = 0; r < size; r++)
                snprintf (hosts[r], GSI_HOST_BYTES, "node%d", r / per_node);
            check_team (size);
            for (int r = 0; r < size; r++)
                snprintf (hosts[r], GSI_HOST_BYTES, "node%d", r % nodes);
            check_team (size);
        }
}
END_TEST

START_TEST (random_distributions)
{
    uint64_t state = 3;

    for (int i = 0; i < 60; i++) {
        int size = 1 + (int) (unit_random (&state) % 60);
        unsigned nodes = 1 + (unsigned) (unit_random (&state) % 20);
        for (int r = 0; r < size; r++)
            snprintf (hosts[r], GSI_HOST_BYTES, "r%u", (unsigned) (unit_random (&state) % nodes));
        check_team (size);
    }
}
END_TEST

START_TEST (many_nodes)
{
    for (int r = 0; r < MOST; r++)
        snprintf (hosts[r], GSI_HOST_BYTES, "nid%06d.cluster.example", r);
    check_team (MOST);
}
END_TEST

START_TEST (names_that_nearly_agree)
{
    memset (hosts, 0, sizeof (hosts));
    memset (hosts[0], 'a', GSI_HOST_BYTES - 1);
    memset (hosts[1], 'a', GSI_HOST_BYTES - 2);
    memset (hosts[2], 'a', GSI_HOST_BYTES - 1);
    hosts[3][0] = 'A';
    hosts[4][0] = 'a'; /* hosts[5] has no name at all */
    check_team (6);
}
END_TEST

START_TEST (clearing_twice)
{
    struct gsi_topo topo = {0};

    gsi_topo_clear (&topo);
    gsi_topo_clear (&topo);
}
END_TEST

UNIT_SUITE ("topo", 30, one_node, blocks_and_cycles, random_distributions, many_nodes,
            names_that_nearly_agree, clearing_twice)
