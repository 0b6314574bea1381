/* SPDX-License-Identifier: BSD-3-Clause */
/* alltoallv - every rank hands something to each; and what is summed of that. */
#ifndef GS_HOST_ALLTOALLV_H
#define GS_HOST_ALLTOALLV_H

#include "host/coll_host.h"

/*
 * By one gathering where it is little; else what is of the same node is pulled (cma.h), and the
 * rest goes in messages, as many as the longest piece takes.
 */
gs_status_t gsi_host_alltoallv (struct gsi_coll_host *c, const struct gsi_alltoallv *x,
                                const struct gsi_call *call);

/* reduce_scatter of struct gsi_coll_ops: parts of the cache's size are exchanged and summed. */
gs_status_t gsi_alltoallv_reduce (struct gsi_coll_host *c, const char *send, char *recv,
                                  size_t count, const struct gsi_reduction *how,
                                  const struct gsi_call *call);

/* The same of parts of [count[r]] elements, [at[r]] bytes from [send] on. */
gs_status_t gsi_alltoallv_reduce_ragged (struct gsi_coll_host *c, const char *send,
                                         const size_t *at, const size_t *count, char *recv,
                                         const struct gsi_reduction *how,
                                         const struct gsi_call *call);

/* reduce, likewise: the parts of a block are summed by one rank each, and gathered on [root]. */
gs_status_t gsi_alltoallv_reduce_to (struct gsi_coll_host *c, const char *send, char *recv,
                                     size_t count, const struct gsi_reduction *how, int root,
                                     const struct gsi_call *call);

#endif /* GS_HOST_ALLTOALLV_H */
