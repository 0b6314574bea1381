/* SPDX-License-Identifier: BSD-3-Clause */
/* call - what every collective does before and after its work. */
#ifndef GS_CALL_CALL_H
#define GS_CALL_CALL_H

#include "core/comm.h"

/* A call as a program makes it. */
struct gsi_request {
    gs_comm_t *comm;
    const char *caller; /* the function */
    enum gsi_record_op op;
    size_t count; /* of [dtype]; with [op] and [argument] what is recorded and compared */
    gs_dtype_t dtype;
    int argument;
    gs_stream_t stream;
};

/* An array of a call. */
struct gsi_extent {
    size_t bytes;
    bool staged; /* in host memory, while the communicator is on GPUs */
};

/*
 * Begins a call on [array], or on none: checks the communicator, takes it for this thread,
 * records the operation, sets the deadline, and compares (op, dtype, count, argument, in which
 * memory) across ranks where that is due. On failure the call has ended already. Else
 * gsi_call_end must follow.
 */
gs_status_t gsi_call_begin (const struct gsi_request *r, const struct gsi_extent *array,
                            struct gsi_call *call);

/*
 * The same for [count] elements in messages, GSI_OP_SEND, _RECV or _MESSAGES, of which the ranks
 * that are no end of one know nothing.
 */
gs_status_t gsi_call_begin_messages (const struct gsi_request *r, bool staged,
                                     struct gsi_call *call);

/* Ends it with [st]; a failure of the transport kills the communicator. Returns [st]. */
gs_status_t gsi_call_end (gs_comm_t *comm, const struct gsi_call *call, gs_status_t st);

/*
 * Instead of the call [op] of all ranks, for which this one has no memory: it gives the
 * communicator up, so that none of the others waits in it. Returns GS_ERR_NOMEM.
 */
gs_status_t gsi_call_no_memory (gs_comm_t *comm, enum gsi_record_op op, const char *caller);

/* As gsi_call_end, for a failure after which the communicator goes on: all ranks saw it. */
gs_status_t gsi_call_refuse (gs_comm_t *comm, gs_status_t st);

/*
 * Checks [count] elements at [buf], an argument of [r]: comm, dtype, overflow, NULL, alignment,
 * the device. The size and whether it is staged are found out with GS_CHECK=off, too.
 */
gs_status_t gsi_call_check (const struct gsi_request *r, const void *buf, size_t count,
                            struct gsi_extent *extent);

#endif /* GS_CALL_CALL_H */
