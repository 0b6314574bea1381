/* SPDX-License-Identifier: BSD-3-Clause */
/* lease - a communicator let to one feature for a step. */
#ifndef GS_CALL_LEASE_H
#define GS_CALL_LEASE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

/* A feature that uses a communicator. Outlives gsi_feature_open to gsi_feature_close. */
struct gsi_client {
    char name[96]; /* "reducer 'gradients'" */

    /* (optional) What the call with [argument] is: "bucket 3 of 7, conv1_w to conv2_w". Any
     * thread. */
    void (*describe) (void *context, int argument, char *text, size_t room);
    void *context;

    /* Waits of calls on hosts leave the core to the application: a thread of the feature's has
     * made them, and nobody waits for it. */
    atomic_bool yielding;
};

/* Of the client of every communicator, which any thread may ask for a description. */
extern pthread_mutex_t gsi_lease_guard;

/* GS_OK if [comm] can have features. The communicator is not destroyed before the close. */
gs_status_t gsi_feature_open (gs_comm_t *comm, struct gsi_client *client, const char *caller);
void gsi_feature_close (gs_comm_t *comm, struct gsi_client *client);

/*
 * Lets the communicator to [client], for its step [step], until gsi_lease_end: calls of
 * others are refused with GS_ERR_STATE. Calls of the client are those of a thread from
 * gsi_lease_enter on until it enters what that has returned: a callback may step another client.
 */
gs_status_t gsi_lease_begin (gs_comm_t *comm, struct gsi_client *client, int64_t step);
void gsi_lease_end (gs_comm_t *comm);
const gs_comm_t *gsi_lease_enter (const gs_comm_t *comm);

/* GS_OK unless [comm] is let to a client, and this thread does not call for it. */
gs_status_t gsi_lease_admit (const gs_comm_t *comm, const char *call);

#endif /* GS_CALL_LEASE_H */
