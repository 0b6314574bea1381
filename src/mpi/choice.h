/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice - which way data goes between hosts, by where the ranks are and how much it is. The same
 * on all ranks: it depends on nothing that they do not share.
 *
 *   of each rank        all on one node         several nodes
 *   up to 16 KiB        small, shared memory    small, messages (Bruck)
 *   more, to sum        levels, one rail        levels; flat with GS_DETERMINISTIC, or one rank
 * each more, to move       move, shared memory     move, messages
 *
 * Where ranks of a node cannot share memory, or with GS_HOST_ALGO=flat, the right column holds,
 * with flat.
 */
#ifndef GS_MPI_CHOICE_H
#define GS_MPI_CHOICE_H

#include "mpi/coll_mpi.h"

/* Whether [bytes] of each rank go in one go. */
bool gsi_choice_is_small (const struct gsi_coll_mpi *c, size_t bytes);

/* Whether each rank counts as a node of its own in large sums. */
bool gsi_choice_is_flat (const struct gsi_team *team);

/* The part of a block of a large sum that one rank has; how many areas a rank needs for it. */
size_t gsi_choice_part (const struct gsi_levels *levels, const struct gsi_team *team);
int gsi_choice_slots (const struct gsi_levels *levels);

/* What one of [size] ranks has of a block that is moved by messages. */
size_t gsi_choice_piece (int size);

#endif /* GS_MPI_CHOICE_H */
