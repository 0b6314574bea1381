/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parent_boot - how the ranks of a communicator tell each other things while they make groups:
 * over its transport, in rounds in which every rank takes part, whether it has something to say
 * or not.
 */
#ifndef GS_COMM_PARENT_BOOT_H
#define GS_COMM_PARENT_BOOT_H

#include "core/comm.h"

struct gsi_parent_boot {
    gs_comm_t *parent;
    const struct gsi_call *call;  /* the call on [parent] within which they meet */
    char *said;                   /* what all ranks said in the last round */
    gs_status_t broken;           /* the transport has failed, and the parent with it */
    struct gsi_coll_parent *coll; /* while groups are made, else NULL */
    int rounds;                   /* since then */
};

/* GS_ERR_NOMEM; close takes a zeroed one, too. */
gs_status_t gsi_parent_boot_open (struct gsi_parent_boot *parent_boot, gs_comm_t *parent,
                                  const struct gsi_call *call);
void gsi_parent_boot_close (struct gsi_parent_boot *parent_boot);

/*
 * A boot of the ranks [member] of the parent, [size] of them, of which this one is number [rank];
 * [member] NULL: of all ranks, whose exchanges are then open to all. [job] names it. The
 * rendezvous outlives its exchanges.
 */
gs_status_t gsi_parent_boot_boot (struct gsi_parent_boot *parent_boot, const int *member,
                                  int size, int rank, const char *job, struct gsi_boot **out);

/* Begins the rounds in which groups are made by way of [coll]. */
void gsi_parent_boot_begin (struct gsi_parent_boot *parent_boot, struct gsi_coll_parent *coll);

/*
 * Takes part in what is left of them: for a rank in no group, or whose create has failed. All
 * ranks have then done the same, and may meet for something else.
 */
void gsi_parent_boot_end (struct gsi_parent_boot *parent_boot, int64_t deadline_ns);

#endif /* GS_COMM_PARENT_BOOT_H */
