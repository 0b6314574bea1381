/* SPDX-License-Identifier: BSD-3-Clause */
/* create - from ranks that have found each other to a working communicator. */
#ifndef GS_COMM_CREATE_H
#define GS_COMM_CREATE_H

#include "comm/comm.h"

/* The options in force. */
struct gsi_plan {
    const char *caller;
    char name[GSI_RECORD_NAME];
    gs_transport_t transport;
    int device;
    int64_t timeout_ns, boot_timeout_ns;
    char text[GSI_TEXT_MAX]; /* why it failed; opening the boot has texts of its own */
};

/*
 * Collective. Completes [comm], whose boot is open, as [plan] has it; [planned] is what making
 * the plan said. On failure, of the same status on every rank, [comm] is half built.
 */
gs_status_t gsi_create_join (gs_comm_t *comm, const struct gsi_plan *plan, gs_status_t planned,
                             int64_t deadline_ns);

#endif /* GS_COMM_CREATE_H */
