/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_host_ops - what the struct gsi_coll_ops of a transport between hosts is made of. */
#ifndef GS_HOST_COLL_HOST_OPS_H
#define GS_HOST_COLL_HOST_OPS_H

#include "host/tuning.h"
#include "host/coll_host.h"

/* The functions of struct gsi_coll_ops, where a transport adds [name], prepare and open. */
#define GSI_COLL_HOST                                                                          \
    .describe = gsi_tuning_describe, .alloc = gsi_coll_host_alloc, .free = gsi_coll_host_free, \
    .allreduce = gsi_coll_host_allreduce, .broadcast = gsi_coll_host_broadcast,                \
    .allgather = gsi_coll_host_allgather, .alltoallv = gsi_coll_host_alltoallv,                \
    .reduce_scatter = gsi_coll_host_reduce_scatter,                                            \
    .reduce_scatterv = gsi_coll_host_reduce_scatterv, .reduce = gsi_coll_host_reduce,          \
    .messages = gsi_coll_host_messages, .barrier = gsi_coll_host_barrier,                      \
    .roll_call = gsi_roll_call, .notify_abort = gsi_coll_host_notify_abort,                    \
    .heard = gsi_notice_told, .close = gsi_coll_host_close, .discard = gsi_coll_host_discard

/* Its prepare and open, with the network's ops, and its own. */
gs_status_t gsi_coll_host_prepare (const struct gsi_net_ops *net, const struct gsi_boot *boot,
                                   void *card, void **room);
gs_status_t gsi_coll_host_open (const struct gsi_coll_ops *ops,
                                const struct gsi_coll_setup *setup, struct gsi_coll **out);

bool gsi_coll_host_alloc (struct gsi_coll *coll, size_t bytes, void **out);
bool gsi_coll_host_free (struct gsi_coll *coll, void *memory);
gs_status_t gsi_coll_host_allreduce (struct gsi_coll *coll, void *buf, size_t count,
                                     const struct gsi_reduction *how,
                                     const struct gsi_call *call);
gs_status_t gsi_coll_host_broadcast (struct gsi_coll *coll, void *buf, size_t bytes, int root,
                                     const struct gsi_call *call);
gs_status_t gsi_coll_host_allgather (struct gsi_coll *coll, const void *send, void *recv,
                                     size_t bytes, const struct gsi_call *call);
gs_status_t gsi_coll_host_alltoallv (struct gsi_coll *coll, const struct gsi_alltoallv *x,
                                     const struct gsi_call *call);
gs_status_t gsi_coll_host_reduce_scatter (struct gsi_coll *coll, const void *send, void *recv,
                                          size_t count, const struct gsi_reduction *how,
                                          const struct gsi_call *call);
gs_status_t gsi_coll_host_reduce_scatterv (struct gsi_coll *coll, const void *send,
                                           const size_t *at, const size_t *count, void *recv,
                                           const struct gsi_reduction *how,
                                           const struct gsi_call *call);
gs_status_t gsi_coll_host_reduce (struct gsi_coll *coll, const void *send, void *recv,
                                  size_t count, const struct gsi_reduction *how, int root,
                                  const struct gsi_call *call);
gs_status_t gsi_coll_host_messages (struct gsi_coll *coll, struct gsi_message *list, int number,
                                    const struct gsi_call *call);
gs_status_t gsi_coll_host_barrier (struct gsi_coll *coll, const struct gsi_call *call);
void gsi_coll_host_notify_abort (struct gsi_coll *coll, const struct gsi_ending *how);
gs_status_t gsi_coll_host_close (struct gsi_coll *coll, const struct gsi_call *call);
void gsi_coll_host_discard (struct gsi_coll *coll);

#endif /* GS_HOST_COLL_HOST_OPS_H */
