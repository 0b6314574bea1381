/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce - reductions that end in parts, for the functions that are one under another name. */
#ifndef GS_COLLECTIVES_REDUCE_H
#define GS_COLLECTIVES_REDUCE_H

#include "call/call.h"

/* gs_reduce_scatter. */
gs_status_t gsi_reduce_scatter (const struct gsi_request *r, const void *send, void *recv,
                                gs_op_t op);

/* allreduce.c: what [op] on the ranks' elements is to the transports; GS_ERR_ARG, _UNSUPPORTED.
 */
gs_status_t gsi_reduction_of (const struct gsi_request *r, gs_op_t op, struct gsi_reduction *how);

/* vcollectives.c: gs_reduce_scatterv; the request's count is 0. */
gs_status_t gsi_reduce_scatterv (const struct gsi_request *r, const void *send,
                                 const size_t *counts, const size_t *displs, void *recv,
                                 size_t recv_count, gs_op_t op);

#endif /* GS_COLLECTIVES_REDUCE_H */
