/* SPDX-License-Identifier: BSD-3-Clause */
/* create - from ranks that have found each other to a working communicator. */
#ifndef GS_COMM_CREATE_H
#define GS_COMM_CREATE_H

#include "core/comm.h"

/* The options in force, and until when. */
struct gsi_plan {
    const char *caller;
    char name[GSI_RECORD_NAME];
    gs_transport_t transport;
    int device;
    int64_t timeout_ns, boot_timeout_ns;
    int64_t begin_ns, deadline_ns; /* of the create */
    gs_status_t st;                /* how making the plan went, */
    char text[GSI_TEXT_MAX];       /* and why it failed; opening the boot has texts of its own */
    enum gsi_check check;
    struct gsi_coll_parent *parent; /* of a group, else NULL */
    int serial;                     /* of a group: tells flight records of one name apart */
};

/*
 * Collective. Completes [comm], whose boot is open, as [plan] has it, which may have failed. On
 * failure, of the same status on every rank, [comm] is half built.
 */
gs_status_t gsi_create_join (gs_comm_t *comm, const struct gsi_plan *plan);

/*
 * The part of a rank that has no memory for a create: it tells the others so, by its card.
 * Returns GS_ERR_NOMEM.
 */
gs_status_t gsi_create_decline (struct gsi_boot *boot, const struct gsi_plan *plan);

/*
 * comm.c: makes a communicator over [boot], just open, which it takes over, also on failure;
 * collective.
 */
gs_status_t gsi_comm_build (struct gsi_boot *boot, const struct gsi_plan *plan, gs_comm_t **out);

#endif /* GS_COMM_CREATE_H */
