/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice - which way data goes between hosts, by where the ranks are and how much it is. The same
 * on all ranks: it depends on nothing that they do not share.
 *
 * All ranks on one node, with memory that they share:
 *   up to 16 KiB of each   small.c, in that memory
 *   more, to sum           levels.c, with one rail; in place if all see all arrays
 *   more, to move          move.c, in that memory
 * Several nodes, with such memory on each:
 *   up to 16 KiB of each   small.c, by messages
 *   more, to sum           levels.c, with a rail between nodes for each owner
 *   more, to move          move.c, by messages
 * One rank on each node, no such memory, GS_HOST_ALGO=flat, or GS_DETERMINISTIC and several
 * nodes: as between nodes, and levels.c with one rail of all ranks
 */
#ifndef GS_MPI_CHOICE_H
#define GS_MPI_CHOICE_H

#include "mpi/coll_mpi.h"

/* Whether [bytes] of each rank go in one go. */
bool gsi_choice_is_small (const struct gsi_coll_mpi *c, size_t bytes);

/* Whether each rank counts as a node of its own in large sums. */
bool gsi_choice_is_flat (const struct gsi_team *team);

/* How many ranks of a node may sum, at most. */
int gsi_choice_owners (const struct gsi_team *team);

/* The part of a block of a large sum that one rank has; how many areas a rank needs for it. */
size_t gsi_choice_part (const struct gsi_levels *levels, const struct gsi_team *team);
int gsi_choice_slots (const struct gsi_levels *levels);

/* What one of [size] ranks has of a block that is moved by messages. */
size_t gsi_choice_piece (int size);

#endif /* GS_MPI_CHOICE_H */
