/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feature - what features that are built on communicators have of them beside the public
 * interface. Of src/comm they include this, and what is made of the public interface alone:
 * agree.h, block.h, fetch.h and same.h.
 */
#ifndef GS_COMM_FEATURE_H
#define GS_COMM_FEATURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device/device.h"
#include "gradsync.h"

/* A feature that uses a communicator. Outlives gsi_feature_open to gsi_feature_close. */
struct gsi_tenant {
    char name[96]; /* "reducer 'gradients'" */

    /* (optional) What the call with [argument] is: "bucket 3 of 7, conv1_w to conv2_w". Any
     * thread. */
    void (*describe) (void *context, int argument, char *text, size_t room);
    void *context;

    /* Waits of calls on hosts leave the core to the application: a thread of the feature's has
     * made them, and nobody waits for it. */
    atomic_bool patient;
};

/* GS_OK if [comm] can have features. The communicator is not destroyed before the close. */
gs_status_t gsi_feature_open (gs_comm_t *comm, struct gsi_tenant *tenant, const char *caller);
void gsi_feature_close (gs_comm_t *comm, struct gsi_tenant *tenant);

/*
 * Lets the communicator to [tenant], for its step [step], until gsi_feature_return: calls of
 * others are refused with GS_ERR_STATE. Calls of the tenant are those of a thread between
 * gsi_feature_enter and gsi_feature_leave.
 */
gs_status_t gsi_feature_let (gs_comm_t *comm, struct gsi_tenant *tenant, int64_t step);
void gsi_feature_return (gs_comm_t *comm);
void gsi_feature_enter (const gs_comm_t *comm);
void gsi_feature_leave (void);

/* The deadline of one operation on it. */
int64_t gsi_feature_timeout_ns (const gs_comm_t *comm);

/* Its device; [queue] of the operations is NULL on hosts. */
const struct gsi_device *gsi_feature_device (const gs_comm_t *comm);

/*
 * Checks an array as every collective does: overflow, alignment, the device; and tells whether it
 * would be [staged], of the host while the communicator is on GPUs.
 */
gs_status_t gsi_feature_check (const gs_comm_t *comm, const char *caller, const void *buf,
                               size_t count, gs_dtype_t dtype, bool *staged);

/* Whether calls may be made by a thread of the feature's, beside the application's in MPI. */
bool gsi_feature_any_thread (const gs_comm_t *comm);

/* Combines [buf] over the ranks, in place, as call with [argument]; in memory of the device. */
gs_status_t gsi_feature_reduce (gs_comm_t *comm, void *buf, size_t count,
                                const struct gsi_reduction *how, int argument,
                                gs_stream_t stream);

/*
 * Turns the weights of all ranks into scales relative to the largest, which cannot overflow, and
 * gives their sum, 0 if all are. GS_ERR_ARG, on all ranks alike, if one is negative or not
 * finite.
 */
gs_status_t gsi_feature_weights (const gs_comm_t *comm, const char *caller, double *weights,
                                 double *sum);

/* Warns that the average is 0 because all weights are: rank 0, once for a communicator. */
void gsi_feature_weightless (gs_comm_t *comm, const char *caller);

#endif /* GS_COMM_FEATURE_H */
