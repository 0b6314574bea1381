/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice - which way data goes between hosts, by where the ranks are and how much it is: the
 * table in choice.c, which gs-info --hosts prints. The same on all ranks: it depends on nothing
 * that they do not share.
 *
 * Ranks count as APART, each a node of its own, where no two share a node, without memory that
 * the ranks of a node share, with GS_HOST_ALGO=flat or halving, and with GS_DETERMINISTIC on
 * several nodes.
 */
#ifndef GS_HOST_CHOICE_H
#define GS_HOST_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "boot/team.h"
#include "host/levels.h"

enum gsi_task { GSI_TASK_SUM, GSI_TASK_GATHER, GSI_TASK_BROADCAST, GSI_TASK_PIECES };

enum gsi_way {
    GSI_WAY_EXCHANGE, /* small.c: everybody gets all, and does the rest by itself */
    GSI_WAY_HALVING,  /* halving.c */
    GSI_WAY_LEVELS,   /* levels.c */
    GSI_WAY_MEMORY,   /* move.c, in the memory of the node */
    GSI_WAY_RELAY,    /* relay.c: in the memory of nodes, and by messages between them */
    GSI_WAY_PULL,     /* pull.c, and exchange.c between nodes */
    GSI_WAY_MESSAGES, /* move.c and exchange.c, by messages */
};

/* How a task with [bytes] of each of [size] ranks goes; of a broadcast, with [bytes] of one. */
enum gsi_way gsi_choice_way (const struct gsi_levels *levels, int size, enum gsi_task task,
                             size_t bytes);

/*
 * Writes line [line], from 0, of the table for these ranks into [text]; false behind the last.
 * [levels] is as it is used, with its part_bytes.
 */
bool gsi_choice_line (const struct gsi_levels *levels, int size, int line, char *text,
                      size_t room);

/* The same for a job that does not run, with memory that the ranks of each node share. */
bool gsi_choice_describe (const struct gsi_team *team, int line, char *text, size_t room);

/* Whether each rank counts as a node of its own in large sums. */
bool gsi_choice_is_flat (const struct gsi_team *team);

/* Which sums of ranks that are apart may go by halves. */
enum gsi_halving gsi_choice_halving (void);

/* How many ranks of a node may sum, at most. */
int gsi_choice_owners (const struct gsi_team *team);

/* The part of a block of a large sum that one rank has; how many areas a rank needs for it. */
size_t gsi_choice_part (const struct gsi_levels *levels, const struct gsi_team *team);
int gsi_choice_slots (const struct gsi_levels *levels);

/* What a rank has of a block that is gathered by way of the nodes' owners. */
size_t gsi_choice_relayed (const struct gsi_levels *levels);

/* What one of [size] ranks has of a block that is moved by messages. */
size_t gsi_choice_piece (int size);

#endif /* GS_HOST_CHOICE_H */
