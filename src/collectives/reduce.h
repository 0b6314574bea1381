/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - reductions that end in parts, for the functions that are one under another name. */
#ifndef GS_COLLECTIVES_REDUCE_H
#define GS_COLLECTIVES_REDUCE_H

#include "call/call.h"

/* As what a call is recorded and compared, and what its texts begin with. */
struct gsi_face {
    const char *caller;
    enum gsi_record_op op;
    int argument;
};

/* gs_reduce_scatter. */
gs_status_t gsi_reduce_scatter (gs_comm_t *comm, const struct gsi_face *as, const void *send,
                                void *recv, size_t count, gs_dtype_t dtype, gs_op_t op,
                                gs_stream_t stream);

/* allreduce.c: what [op] on [dtype] of [size] ranks is to the transports; GS_ERR_ARG,
 * _UNSUPPORTED. */
gs_status_t gsi_reduction_of (const char *caller, gs_op_t op, gs_dtype_t dtype, int size,
                              struct gsi_reduction *how);

/* vcollectives.c: gs_reduce_scatterv. */
gs_status_t gsi_reduce_scatterv (gs_comm_t *comm, const struct gsi_face *as, const void *send,
                                 const size_t *counts, const size_t *displs, void *recv,
                                 size_t recv_count, gs_dtype_t dtype, gs_op_t op,
                                 gs_stream_t stream);

#endif /* GS_COLLECTIVES_REDUCE_H */
