/* SPDX-License-Identifier: BSD-3-Clause */
/* staged_op - an operation on arrays that go in pieces through memory that a transport takes. */
#include "transport/staged_op.h"

#include "base/dtype.h"

static gs_status_t run_allreduce (const struct gsi_staged_op *op, struct gsi_coll *coll,
                                  char *memory, size_t bytes, const struct gsi_call *call)
{
    return coll->ops->allreduce (coll, memory, bytes / op->unit, op->how, call);
}

struct gsi_staged_op gsi_staged_allreduce (void *buf, size_t count,
                                           const struct gsi_reduction *how)
{
    size_t width = gs_dtype_size (how->dtype);

    return (struct gsi_staged_op){.in = buf,
                                  .out = buf,
                                  .bytes = count * width,
                                  .unit = width,
                                  .ins = 1,
                                  .outs = 1,
                                  .how = how,
                                  .run = run_allreduce};
}

static gs_status_t run_broadcast (const struct gsi_staged_op *op, struct gsi_coll *coll,
                                  char *memory, size_t bytes, const struct gsi_call *call)
{
    return coll->ops->broadcast (coll, memory, bytes, op->root, call);
}

struct gsi_staged_op gsi_staged_broadcast (void *buf, size_t bytes, int root, int rank)
{
    return (struct gsi_staged_op){.in = rank == root ? buf : NULL,
                                  .out = rank == root ? NULL : buf,
                                  .bytes = bytes,
                                  .unit = 1,
                                  .ins = 1,
                                  .outs = 1,
                                  .root = root,
                                  .run = run_broadcast};
}

static gs_status_t run_allgather (const struct gsi_staged_op *op, struct gsi_coll *coll,
                                  char *memory, size_t bytes, const struct gsi_call *call)
{
    return coll->ops->allgather (coll, memory + (size_t) op->place * bytes, memory, bytes, call);
}

struct gsi_staged_op gsi_staged_allgather (const void *send, void *recv, size_t bytes, int rank,
                                           int size)
{
    return (struct gsi_staged_op){.in = send,
                                  .out = recv,
                                  .bytes = bytes,
                                  .unit = 1,
                                  .ins = 1,
                                  .outs = size,
                                  .place = rank,
                                  .run = run_allgather};
}

static gs_status_t run_reduce_scatter (const struct gsi_staged_op *op, struct gsi_coll *coll,
                                       char *memory, size_t bytes, const struct gsi_call *call)
{
    return coll->ops->reduce_scatter (coll, memory, memory + (size_t) op->place * bytes,
                                      bytes / op->unit, op->how, call);
}

struct gsi_staged_op gsi_staged_reduce_scatter (const void *send, void *recv, size_t count,
                                                const struct gsi_reduction *how, int rank,
                                                int size)
{
    size_t width = gs_dtype_size (how->dtype);

    return (struct gsi_staged_op){.in = send,
                                  .out = recv,
                                  .bytes = count * width,
                                  .unit = width,
                                  .ins = size,
                                  .outs = 1,
                                  .place = rank,
                                  .how = how,
                                  .run = run_reduce_scatter};
}

static gs_status_t run_reduce (const struct gsi_staged_op *op, struct gsi_coll *coll,
                               char *memory, size_t bytes, const struct gsi_call *call)
{
    return coll->ops->reduce (coll, memory, memory, bytes / op->unit, op->how, op->root, call);
}

struct gsi_staged_op gsi_staged_reduce (const void *send, void *recv, size_t count,
                                        const struct gsi_reduction *how, int root, int rank)
{
    size_t width = gs_dtype_size (how->dtype);

    return (struct gsi_staged_op){.in = send,
                                  .out = rank == root ? recv : NULL,
                                  .bytes = count * width,
                                  .unit = width,
                                  .ins = 1,
                                  .outs = 1,
                                  .how = how,
                                  .root = root,
                                  .run = run_reduce};
}
