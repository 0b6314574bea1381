/* SPDX-License-Identifier: BSD-3-Clause */
/* choice - which way data goes between hosts. */
#include "mpi/choice.h"

#include "base/env.h"

#define SMALL_BYTES   ((size_t) 16 << 10)  /* above it less is sent by shards: measured */
#define MOVED_BYTES   ((size_t) 256 << 10) /* of a block that is moved by messages */
#define BLOCK_BYTES   ((size_t) 256 << 10) /* of a block on one node: stays in the cache */
#define WIRE_BYTES    ((size_t) 60 << 10)  /* of a part that travels: MPI sends 64 KiB at once */
#define STAGING_BYTES ((size_t) 16 << 20)  /* for all parts that travel, about */
#define NODE_BYTES    ((size_t) 128 << 20) /* that all ranks of a node share, about */
#define LEAST_BYTES   ((size_t) 4 << 10)   /* of any part */
#define LINE_BYTES    ((size_t) 128)       /* parts are whole lines of elements of any type */
#define ALONE_SLOTS   4                    /* areas on one node; move.c needs so many */

bool gsi_choice_is_small (const struct gsi_coll_mpi *c, size_t bytes)
{
    return bytes <= SMALL_BYTES && bytes * (size_t) c->size <= GSI_SMALL_BYTES &&
           (!c->levels.shares || bytes <= c->node.area_bytes);
}

/* Sums within several nodes would not be in rank order. */
bool gsi_choice_is_flat (const struct gsi_team *team)
{
    return gsi_env_choice (GSI_ENV_HOST_ALGO) == GSI_HOST_FLAT || team->nodes == team->size ||
           (team->nodes > 1 && gsi_env_int (GSI_ENV_DETERMINISTIC));
}

static size_t whole_lines (size_t bytes)
{
    bytes = bytes / LINE_BYTES * LINE_BYTES;
    return bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
}

static size_t smaller (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Between nodes every owner costs every rank of the node a piece of memory for each rail. */
int gsi_choice_owners (const struct gsi_team *team)
{
    size_t local = (size_t) (team->size / team->nodes), nodes = (size_t) team->nodes;
    size_t most = NODE_BYTES / (GSI_NODE_SLOTS * local * nodes * LEAST_BYTES);

    return team->nodes == 1 || most > (size_t) team->size ? team->size : most ? (int) most : 1;
}

size_t gsi_choice_part (const struct gsi_levels *levels, const struct gsi_team *team)
{
    size_t rails = (size_t) levels->rails, owners = (size_t) levels->owners;
    size_t local = (size_t) (team->size / team->nodes), part;

    if (rails == 1)
        return whole_lines (smaller (BLOCK_BYTES, NODE_BYTES / ALONE_SLOTS / owners) / owners);
    part = smaller (WIRE_BYTES, STAGING_BYTES / (4 * GSI_STAGING_SLOTS * rails));
    if (levels->shares)
        part = smaller (part, NODE_BYTES / (GSI_NODE_SLOTS * local * owners * rails));
    return whole_lines (part);
}

int gsi_choice_slots (const struct gsi_levels *levels)
{
    return levels->rails == 1 ? ALONE_SLOTS : GSI_NODE_SLOTS;
}

size_t gsi_choice_piece (int size)
{
    return whole_lines (MOVED_BYTES / (size_t) size);
}
