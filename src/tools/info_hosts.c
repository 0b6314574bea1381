/* SPDX-License-Identifier: BSD-3-Clause */
/* info_hosts - which way data would go between hosts. */
#include "tools/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/transport.h"
#include "transport/coll.h"

#define MOST (1L << 20) /* ranks, and nodes */

long info_number (const char **text, long least)
{
    char *end;
    long n = least - 1;

    if (**text >= '1' && **text <= '9') {
        n = strtol (*text, &end, 10);
        *text = end;
    } else if (**text == '0') {
        n = 0;
        ++*text;
    }
    return n >= least && n <= MOST ? n : least - 1;
}

/*
 * Reads [layout], and writes the ranks of each node to [ranks] unless that is NULL.
 * Returns how many nodes, and in [*size] ranks, there are; 0 if it is no layout.
 */
static long read_layout (const char *layout, int *ranks, long *size)
{
    long nodes = 1, each = info_number (&layout, 1);

    *size = each;
    if (each && *layout == 'x') {
        layout++;
        nodes = each;
        each = info_number (&layout, 1);
        *size = nodes * each;
        for (long n = 0; ranks && n < nodes; n++)
            ranks[n] = (int) each;
    } else if (ranks) {
        ranks[0] = (int) each;
    }
    while (each && *layout == '+' && nodes < MOST) {
        layout++;
        each = info_number (&layout, 1);
        if (ranks)
            ranks[nodes] = (int) each;
        nodes++;
        *size += each;
    }
    return each && !*layout && *size <= MOST ? nodes : 0;
}

bool info_hosts_is_layout (const char *layout)
{
    long size;

    return read_layout (layout, NULL, &size) && size > 1;
}

/* What rank 0 knows of the ranks; false without memory. */
static bool make_team (const char *layout, struct gsi_topo *topo)
{
    long size, nodes = read_layout (layout, NULL, &size);
    int *ranks = calloc ((size_t) nodes, sizeof (*ranks)), rank = 0;

    *topo = (struct gsi_topo){.size = (int) size, .nodes = (int) nodes};
    topo->node_of = calloc ((size_t) size, sizeof (*topo->node_of));
    if (!ranks || !topo->node_of) {
        free (ranks);
        free (topo->node_of);
        return false;
    }
    read_layout (layout, ranks, &size);
    topo->local_size = ranks[0];
    for (int n = 0; n < topo->nodes; n++)
        for (int i = 0; i < ranks[n]; i++)
            topo->node_of[rank++] = n;
    free (ranks);
    return true;
}

/* That of GS_TRANSPORT, if it joins hosts, else MPI's; NULL: it is not there. */
static const struct gsi_coll_ops *find_hosts (void)
{
    int requested = gsi_env_choice (GSI_ENV_TRANSPORT);
    const struct gsi_coll_ops *ops;

    if (gsi_transport_joins (requested) != GSI_JOINS_HOSTS)
        requested = GSI_TRANSPORT_MPI;
    return gsi_coll_find ((gs_transport_t) requested, 2, &ops) ? NULL : ops;
}

bool info_hosts (const char *layout)
{
    const struct gsi_coll_ops *ops = find_hosts ();
    struct gsi_topo topo;
    char text[256];

    if (!ops) {
        fprintf (stderr, "gs-info: %s\n", gs_last_error ());
        return false;
    }
    if (!make_team (layout, &topo)) {
        fprintf (stderr, "gs-info: out of memory\n");
        return false;
    }
    printf ("%d ranks, %d node%s; ranks of a node share memory\n", topo.size, topo.nodes,
            topo.nodes > 1 ? "s" : "");
    for (int line = 0; ops->describe (&topo, line, text, sizeof (text)); line++)
        printf ("  %s\n", text);
    free (topo.node_of);
    return true;
}
