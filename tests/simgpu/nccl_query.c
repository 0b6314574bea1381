/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_query - entries that start no work: versions, errors, ids, queries, operators.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl_sim.h"

ncclResult_t nsim_enter_plain (const char *who, int since)
{
    struct nsim_fate fate;
    ncclResult_t result = nsim_enter (who, since, &fate);

    while (fate.stall)
        pause ();
    return result;
}

ncclResult_t ncclGetVersion (int *version)
{
    if (!version)
        return ncclInvalidArgument;
    *version = nsim_version ();
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId (ncclUniqueId *uniqueId)
{
    ncclResult_t result = nsim_enter_plain ("ncclGetUniqueId", 0);

    if (result == ncclSuccess && !uniqueId) {
        nsim_warn ("GetUniqueId : uniqueId argument is NULL");
        result = ncclInvalidArgument;
    }
    return result == ncclSuccess ? nsim_id_make (uniqueId) : result;
}

const char *ncclGetErrorString (ncclResult_t result)
{
    switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError:
        return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
        return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
    }
}

const char *ncclGetLastError (ncclComm_t comm)
{
    (void) comm;
    return nsim_last_warning ();
}

/* Asking is what ends "in progress" for a program. */
ncclResult_t ncclCommGetAsyncError (ncclComm_t comm, ncclResult_t *asyncError)
{
    static const char who[] = "ncclCommGetAsyncError";
    ncclResult_t result = nsim_enter_plain (who, 0);

    if (result != ncclSuccess)
        return result;
    if (!comm || !asyncError) {
        nsim_warn ("%s : an argument is NULL", who);
        return ncclInvalidArgument;
    }
    result = nsim_check_end (comm, who);
    if (result != ncclSuccess)
        return result;
    pthread_mutex_lock (&comm->mutex);
    if (comm->jobs > 0) {
        *asyncError = ncclInProgress;
    } else {
        *asyncError = comm->error;
        comm->unpolled = false;
    }
    pthread_mutex_unlock (&comm->mutex);
    return ncclSuccess;
}

static ncclResult_t get (const char *who, ncclComm_t comm, const int *value, int *out)
{
    ncclResult_t result = nsim_enter_plain (who, 0);

    if (result == ncclSuccess)
        result = nsim_check (comm, who);
    if (result == ncclSuccess && !out)
        result = ncclInvalidArgument;
    if (result == ncclSuccess)
        *out = *value;
    return result;
}

ncclResult_t ncclCommCount (const ncclComm_t comm, int *count)
{
    return get ("ncclCommCount", comm, comm ? &comm->ranks : NULL, count);
}

ncclResult_t ncclCommCuDevice (const ncclComm_t comm, int *device)
{
    return get ("ncclCommCuDevice", comm, comm ? &comm->device : NULL, device);
}

ncclResult_t ncclCommUserRank (const ncclComm_t comm, int *rank)
{
    return get ("ncclCommUserRank", comm, comm ? &comm->rank : NULL, rank);
}

/* The scalar is as wide as the type: a float for bf16 would be read as two of them. */
ncclResult_t ncclRedOpCreatePreMulSum (ncclRedOp_t *op, void *scalar, ncclDataType_t datatype,
                                       ncclScalarResidence_t residence, ncclComm_t comm)
{
    static const char who[] = "ncclRedOpCreatePreMulSum";
    ncclResult_t result = nsim_enter_plain (who, 21100);
    struct nsim_redop *redop;

    if (result == ncclSuccess)
        result = nsim_check (comm, who);
    if (result == ncclSuccess &&
        (!op || !scalar || !nsim_can_reduce (datatype) ||
         (residence != ncclScalarDevice && residence != ncclScalarHostImmediate))) {
        nsim_warn ("%s : an argument is NULL or invalid", who);
        result = ncclInvalidArgument;
    }
    if (result != ncclSuccess)
        return result;
    if (comm->redops == NSIM_REDOPS) {
        nsim_warn ("%s : more than %d operators are not simulated", who, NSIM_REDOPS);
        return ncclInternalError;
    }
    comm->redop = realloc (comm->redop, ((size_t) comm->redops + 1) * sizeof (*redop));
    redop = &comm->redop[comm->redops];
    *redop = (struct nsim_redop){.live = true, .type = datatype};
    if (residence == ncclScalarDevice)
        redop->on_device = scalar;
    else
        memcpy (redop->scalar, scalar, nsim_type_bytes (datatype));
    *op = (ncclRedOp_t) (ncclNumOps + comm->number * NSIM_REDOPS + comm->redops++);
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy (ncclRedOp_t op, ncclComm_t comm)
{
    static const char who[] = "ncclRedOpDestroy";
    ncclResult_t result = nsim_enter_plain (who, 21100);
    int index = (int) (op - ncclNumOps) % NSIM_REDOPS;

    if (result == ncclSuccess)
        result = nsim_check (comm, who);
    if (result != ncclSuccess)
        return result;
    if ((int) op < ncclNumOps || (int) (op - ncclNumOps) / NSIM_REDOPS != comm->number ||
        index >= comm->redops || !comm->redop[index].live) {
        sim_misuse ("%s: the reduction operator %d is not one of communicator %d", who, (int) op,
                    comm->number);
        return ncclInvalidArgument;
    }
    comm->redop[index].live = false;
    while (comm->redops > 0 && !comm->redop[comm->redops - 1].live)
        comm->redops--;
    return ncclSuccess;
}
