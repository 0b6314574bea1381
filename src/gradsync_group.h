/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_group.h - groups: communicators of some of the ranks of another. A part of gradsync.h,
 * which includes it; the rules and labels of that header hold.
 *
 * A group is a communicator like any other: it has its own ranks, from 0, takes all calls,
 * reducers included, and is destroyed by its members. It outlives the communicator that it was
 * made from, its parent, of which it has the device, the deadlines, GS_CHECK unless that is set
 * in the environment, and the transport: the ranks of a GPU communicator stay on their GPUs.
 *
 * What holds for all functions here:
 *   - They are collective over [comm], and return the same status on all its ranks. On failure
 *     no rank has a group, and [comm] goes on, unless a rank did not come or the transport
 *     failed: then [comm] is dead, as after any other call.
 *   - The calling thread waits for the other ranks, on GPUs for the work queued on [comm] too,
 *     and they cannot be captured into a CUDA graph.
 *   - A rank may be in several groups at once. The ranks must make the calls on communicators
 *     that share ranks in orders without a cycle: if some rank calls on A before it calls on B,
 *     no other calls on B before A. The simplest rule: all ranks go through the kinds of
 *     groups in one order, for example rows first.
 *
 * All of them return, beside what is listed with each:
 *   GS_ERR_ARG        comm or an out pointer is NULL, or what is said with each
 *   GS_ERR_MISMATCH   ranks make different splits, or have different GS_* variables
 *   GS_ERR_STATE      comm was aborted, or is inside another call or a step of a reducer
 *   GS_ERR_TIMEOUT    a rank did not come
 *   GS_ERR_NOMEM, GS_ERR_DEVICE, GS_ERR_TRANSPORT  as gs_comm_create, on any rank
 */
#ifndef GRADSYNC_GROUP_H
#define GRADSYNC_GROUP_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which includes this file"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GS_COLOR_NONE (-1) /* this rank is in no group */

/*
 * Makes a group of the ranks with each color, as MPI_Comm_split does.
 *
 *   comm   in   every rank calls
 *   color  in   0 or more: ranks with the same one are a group; GS_COLOR_NONE: in none
 *   key    in   any number: ranks of a group are ordered by it, and by their rank in comm
 *   group  out  the rank's group, "world.split2" for color 2; NULL on failure, and for
 *               GS_COLOR_NONE
 *
 * Collective  yes, over comm.
 * Owner       the caller, until gs_comm_destroy, which is collective over the group.
 * Returns     see above; GS_ERR_ARG on all ranks, naming the rank, if a color is negative and not
 *             GS_COLOR_NONE.
 * Since       0.1
 */
gs_status_t gs_comm_split (gs_comm_t *comm, int color, int key, gs_comm_t **group);

/*
 * Makes a group of the ranks of each node, in the order of comm.
 *
 *   comm   in   every rank calls
 *   group  out  "world/node0" on node 0; NULL on failure
 *
 * Collective  yes, over comm.
 * Owner       the caller, until gs_comm_destroy.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_comm_split_node (gs_comm_t *comm, gs_comm_t **group);

/*
 * Makes a group of the ranks with the same local rank, one of each node, in the order of the
 * nodes. Where nodes have different numbers of ranks, of those nodes that have it.
 *
 *   comm   in   every rank calls
 *   group  out  "world/rail0" for local rank 0; NULL on failure
 *
 * Collective  yes, over comm.
 * Owner       the caller, until gs_comm_destroy.
 * Returns     see above.
 * Since       0.1
 */
gs_status_t gs_comm_split_rail (gs_comm_t *comm, gs_comm_t **group);

/*
 * Places the ranks in a grid, row by row: rank r is in row r / columns and column r % columns.
 * Makes a group of each row and one of each column.
 *
 *   comm     in   every rank calls
 *   rows     in   how many there are; 0: as many as fit, with columns 0 too as square as can be,
 *                 rows at least as many as columns
 *   columns  in   how many there are; 0: as many as fit
 *   row      out  the ranks of this rank's row, by column: "world/row0"; NULL on failure. NULL
 *                 here, on all ranks alike: not wanted
 *   column   out  the ranks of this rank's column, by row: "world/column0"; the same
 *
 * Collective  yes, over comm.
 * Owner       the caller, until gs_comm_destroy of each.
 * Returns     see above; GS_ERR_ARG if rows times columns is not the size of comm;
 *             GS_ERR_MISMATCH if ranks give different numbers, or want different groups.
 * Since       0.1
 */
gs_status_t gs_comm_split_grid (gs_comm_t *comm, int rows, int columns, gs_comm_t **row,
                                gs_comm_t **column);

/*
 * Makes groups of explicit lists of ranks. Each rank gives the list of its own group, so that
 * several groups without a common rank can be made in one call.
 *
 *   comm   in   every rank calls
 *   n      in   how many ranks the list has; 0: this rank is in no group
 *   ranks  in   [n] ranks of comm, each once, this one among them: the same list, in the same
 *               order, on all of them. That is the order of the group. NULL if n is 0
 *   group  out  "world.list4", where 4 is the first of the list; NULL on failure, and if n is 0
 *
 * Collective  yes, over comm: ranks in no group call, too.
 * Owner       the caller keeps [ranks], and has the group until gs_comm_destroy.
 * Returns     see above; GS_ERR_ARG on all ranks, naming the rank, if a list is without the rank
 *             that gives it, has a rank twice or one that is out of range; GS_ERR_MISMATCH,
 *             naming two ranks, if members of a group give different lists.
 * Since       0.1
 */
gs_status_t gs_comm_split_list (gs_comm_t *comm, int n, const int *ranks, gs_comm_t **group);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_GROUP_H */
