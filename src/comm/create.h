/* SPDX-License-Identifier: BSD-3-Clause */
/* create - from ranks that have found each other to a working communicator. */
#ifndef GS_COMM_CREATE_H
#define GS_COMM_CREATE_H

#include "core/comm.h"

/* The options in force. */
struct gsi_plan {
    const char *caller;
    char name[GSI_RECORD_NAME];
    gs_transport_t transport;
    int device;
    int64_t timeout_ns, boot_timeout_ns;
    char text[GSI_TEXT_MAX]; /* why it failed; opening the boot has texts of its own */
    enum gsi_check check;
    struct gsi_coll_origin *origin; /* of a group, else NULL */
    int serial;                     /* of a group: tells flight records of one name apart */
};

/*
 * Collective. Completes [comm], whose boot is open, as [plan] has it; [planned] is what making
 * the plan said. On failure, of the same status on every rank, [comm] is half built.
 */
gs_status_t gsi_create_join (gs_comm_t *comm, const struct gsi_plan *plan, gs_status_t planned,
                             int64_t deadline_ns);

/*
 * The part of a rank that has no memory for a create: it tells the others so, by its card.
 * Returns GS_ERR_NOMEM.
 */
gs_status_t gsi_create_decline (struct gsi_boot *boot, const struct gsi_plan *plan,
                                int64_t deadline_ns);

/*
 * comm.c: makes a communicator over [boot], which it takes over, also on failure; collective.
 * [open_us] is what the boot has taken.
 */
gs_status_t gsi_comm_build (struct gsi_boot *boot, const struct gsi_plan *plan,
                            gs_status_t planned, double open_us, int64_t deadline_ns,
                            gs_comm_t **out);

#endif /* GS_COMM_CREATE_H */
