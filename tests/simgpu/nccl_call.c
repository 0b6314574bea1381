/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_call - the entries of the collectives, send and receive: what is wrong is said here, by
 * the call; what is right goes into a group.
 */
#include <stdio.h>
#include <string.h>

#include "nccl_sim.h"

/* Newer than some runtimes that CUDA 12 programs meet; without it the rule is not checked. */
#pragma weak cudaStreamGetDevice

static ncclResult_t wrong (const char *who, const char *what, long value)
{
    nsim_warn ("%s : invalid %s %ld", who, what, value);
    return ncclInvalidArgument;
}

/* A dynamic operator: its handle says whose it is. */
static ncclResult_t take_redop (const char *who, struct nsim_op *op)
{
    int index = (op->op - ncclNumOps) % NSIM_REDOPS, owner = (op->op - ncclNumOps) / NSIM_REDOPS;
    ncclComm_t comm = op->comm;

    if (owner != comm->number || index >= comm->redops || !comm->redop[index].live) {
        sim_misuse ("%s: the reduction operator %d is not one of communicator %d", who, op->op,
                    comm->number);
        return wrong (who, "reduction operation", op->op);
    }
    if (comm->redop[index].type != op->type) {
        nsim_warn ("%s : the operator is for %s, the data are %s", who,
                   nsim_type_name (comm->redop[index].type), nsim_type_name (op->type));
        return ncclInvalidArgument;
    }
    op->premul = comm->redop[index];
    op->op = ncclNumOps;
    return ncclSuccess;
}

static ncclResult_t check_arguments (const char *who, struct nsim_op *op)
{
    bool reduces =
        op->what == NSIM_ALLREDUCE || op->what == NSIM_REDUCE || op->what == NSIM_REDUCE_SCATTER;
    size_t bytes = nsim_type_bytes (op->type);

    if (bytes == 0)
        return wrong (who, "type", op->type);
    if (op->count > (size_t) PTRDIFF_MAX / bytes / (size_t) op->comm->ranks)
        return wrong (who, "count", (long) op->count);
    if (op->root < 0 || op->root >= op->comm->ranks)
        return wrong (who, op->what >= NSIM_SEND ? "peer" : "root", op->root);
    if (!reduces)
        return ncclSuccess;
    if (!nsim_can_reduce (op->type)) {
        nsim_warn ("%s : reductions of %s are not simulated", who, nsim_type_name (op->type));
        return ncclInvalidArgument;
    }
    if ((int) op->op < 0)
        return wrong (who, "reduction operation", op->op);
    return op->op >= ncclNumOps ? take_redop (who, op) : ncclSuccess;
}

static ncclResult_t check_stream (const char *who, const struct nsim_op *op)
{
    int device = op->comm->device;

    if (!op->comm->blocking && op->stream == cudaStreamPerThread) {
        sim_misuse ("%s: a communicator that does not block launches from a thread of its own, "
                    "whose cudaStreamPerThread is another",
                    who);
        return ncclInvalidUsage;
    }
    if (cudaStreamGetDevice && op->stream != NULL && op->stream != cudaStreamLegacy &&
        op->stream != cudaStreamPerThread &&
        cudaStreamGetDevice (op->stream, &device) == cudaSuccess && device != op->comm->device) {
        nsim_warn ("%s : the stream is of device %d, communicator %d of device %d", who, device,
                   op->comm->number, op->comm->device);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

static ncclResult_t check_phase (const char *who, ncclComm_t comm)
{
    if (comm->phase == NSIM_FINALIZED) /* NCCL does not look, and queues it */
        sim_misuse ("%s: communicator %d was finalized before", who, comm->number);
    if (comm->phase == NSIM_REVOKED) {
        nsim_warn ("%s: communicator %d was revoked", who, comm->number);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

static ncclResult_t refused (const char *who, struct nsim_op *op)
{
    ncclResult_t result = check_arguments (who, op);

    if (result == ncclSuccess)
        result = check_stream (who, op);
    if (result == ncclSuccess)
        result = nsim_group_check (op);
    nsim_refuse (op->comm, result);
    return result;
}

static ncclResult_t submit (const char *who, struct nsim_op *op)
{
    struct nsim_fate fate;
    ncclResult_t injected = nsim_enter (who, 0, &fate), result = nsim_check (op->comm, who);

    if (result == ncclSuccess)
        result = check_phase (who, op->comm);
    if (result == ncclSuccess && injected != ncclSuccess) {
        nsim_refuse (op->comm, injected);
        result = injected;
    }
    if (result == ncclSuccess)
        result = refused (who, op);
    if (result != ncclSuccess)
        return nsim_group_fail (result);
    if (op->count == 0 && op->what < NSIM_SEND) /* dropped, whoever else calls */
        return ncclSuccess;
    op->stall = fate.stall;
    op->late = fate.late;
    return nsim_group_op (op);
}

ncclResult_t ncclAllReduce (const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                            cudaStream_t stream)
{
    return submit ("ncclAllReduce", &(struct nsim_op){.what = NSIM_ALLREDUCE,
                                                      .send = sendbuff,
                                                      .recv = recvbuff,
                                                      .count = count,
                                                      .type = datatype,
                                                      .op = op,
                                                      .comm = comm,
                                                      .stream = stream});
}

ncclResult_t ncclBroadcast (const void *sendbuff, void *recvbuff, size_t count,
                            ncclDataType_t datatype, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    return submit ("ncclBroadcast", &(struct nsim_op){.what = NSIM_BROADCAST,
                                                      .send = sendbuff,
                                                      .recv = recvbuff,
                                                      .count = count,
                                                      .type = datatype,
                                                      .root = root,
                                                      .comm = comm,
                                                      .stream = stream});
}

ncclResult_t ncclBcast (void *buff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return submit ("ncclBcast", &(struct nsim_op){.what = NSIM_BROADCAST,
                                                  .send = buff,
                                                  .recv = buff,
                                                  .count = count,
                                                  .type = datatype,
                                                  .root = root,
                                                  .comm = comm,
                                                  .stream = stream});
}

ncclResult_t ncclReduce (const void *sendbuff, void *recvbuff, size_t count,
                         ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                         cudaStream_t stream)
{
    return submit ("ncclReduce", &(struct nsim_op){.what = NSIM_REDUCE,
                                                   .send = sendbuff,
                                                   .recv = recvbuff,
                                                   .count = count,
                                                   .type = datatype,
                                                   .op = op,
                                                   .root = root,
                                                   .comm = comm,
                                                   .stream = stream});
}

ncclResult_t ncclAllGather (const void *sendbuff, void *recvbuff, size_t sendcount,
                            ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
    return submit ("ncclAllGather", &(struct nsim_op){.what = NSIM_ALLGATHER,
                                                      .send = sendbuff,
                                                      .recv = recvbuff,
                                                      .count = sendcount,
                                                      .type = datatype,
                                                      .comm = comm,
                                                      .stream = stream});
}

ncclResult_t ncclReduceScatter (const void *sendbuff, void *recvbuff, size_t recvcount,
                                ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream)
{
    return submit ("ncclReduceScatter", &(struct nsim_op){.what = NSIM_REDUCE_SCATTER,
                                                          .send = sendbuff,
                                                          .recv = recvbuff,
                                                          .count = recvcount,
                                                          .type = datatype,
                                                          .op = op,
                                                          .comm = comm,
                                                          .stream = stream});
}

ncclResult_t ncclSend (const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    return submit ("ncclSend", &(struct nsim_op){.what = NSIM_SEND,
                                                 .send = sendbuff,
                                                 .count = count,
                                                 .type = datatype,
                                                 .root = peer,
                                                 .comm = comm,
                                                 .stream = stream});
}

ncclResult_t ncclRecv (void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                       ncclComm_t comm, cudaStream_t stream)
{
    return submit ("ncclRecv", &(struct nsim_op){.what = NSIM_RECV,
                                                 .recv = recvbuff,
                                                 .count = count,
                                                 .type = datatype,
                                                 .root = peer,
                                                 .comm = comm,
                                                 .stream = stream});
}
