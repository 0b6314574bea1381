/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_nccl - the plain NCCL calls, in the module gs-bench-nccl.so. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <semaphore.h>
#include <string.h>

#include "tools/bench/raw.h"

extern const struct bench_raw_nccl bench_raw_nccl;
_Static_assert(sizeof (ncclUniqueId) == BENCH_RAW_NCCL_ID_BYTES, "an id is handed on as bytes");

/* (2.19) */
#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister

static ncclComm_t comm;
static void *array, *handle; /* of the array's registration */
static cudaStream_t beside;
static cudaEvent_t ready;
static sem_t gate;

static const char *text_of (cudaError_t error)
{
    return error ? cudaGetErrorString (error) : NULL;
}

static const char *nccl_text_of (ncclResult_t rc)
{
    return rc ? ncclGetErrorString (rc) : NULL;
}

static const char *make_id (char id[BENCH_RAW_NCCL_ID_BYTES])
{
    ncclUniqueId made;
    ncclResult_t rc = ncclGetUniqueId (&made);

    memcpy (id, &made, sizeof (made));
    return nccl_text_of (rc);
}

/* It need not be registered. */
static const char *make_array (size_t bytes)
{
    ncclResult_t rc;

    if (!ncclMemAlloc)
        return text_of (cudaMalloc (&array, bytes));
    if (!(rc = ncclMemAlloc (&array, bytes)) && ncclCommRegister (comm, array, bytes, &handle))
        handle = NULL;
    return nccl_text_of (rc);
}

static void free_array (void)
{
    cudaDeviceSynchronize ();
    if (!ncclMemAlloc)
        cudaFree (array);
    if (handle)
        ncclCommDeregister (comm, handle);
    if (ncclMemAlloc && array)
        ncclMemFree (array);
    array = handle = NULL;
}

static const char *open_comm (const char id[BENCH_RAW_NCCL_ID_BYTES], int rank, int size,
                              int device, size_t bytes)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId given;
    const char *why = text_of (cudaSetDevice (device));

    if (why)
        return why;
    sem_init (&gate, 0, 0);
    memcpy (&given, id, sizeof (given));
    config.blocking = 1; /* or each call would make a thread, from 2.23 on */
    why = nccl_text_of (ncclCommInitRankConfig (&comm, size, given, rank, &config));
    if (!why)
        why = make_array (bytes);
    if (!why)
        why = text_of (cudaStreamCreateWithFlags (&beside, cudaStreamNonBlocking));
    if (!why)
        why = text_of (cudaEventCreateWithFlags (&ready, cudaEventDisableTiming));
    return why ? why : text_of (cudaMemset (array, BENCH_FILL, bytes));
}

static void close_comm (void)
{
    if (!comm)
        return;
    free_array ();
    if (ready)
        cudaEventDestroy (ready);
    if (beside)
        cudaStreamDestroy (beside);
    ready = NULL;
    beside = NULL;
    if (ncclCommFinalize (comm))
        ncclCommAbort (comm);
    else
        ncclCommDestroy (comm);
    comm = NULL;
    sem_destroy (&gate);
}

static ncclDataType_t type_of (gs_dtype_t dtype)
{
    switch (dtype) {
    case GS_F16: return ncclFloat16;
    case GS_BF16: return ncclBfloat16;
    case GS_F32:
    case GS_C64: return ncclFloat32;
    default: return ncclFloat64;
    }
}

static const char *average (size_t count, gs_dtype_t dtype, cudaStream_t stream)
{
    size_t parts = dtype == GS_C64 || dtype == GS_C128 ? 2 : 1;

    return nccl_text_of (
        ncclAllReduce (array, array, parts * count, type_of (dtype), ncclAvg, comm, stream));
}

static const char *allreduce_avg (size_t count, gs_dtype_t dtype, int times)
{
    const char *why = NULL;

    for (int t = 0; t < times && !why; t++)
        why = average (count, dtype, NULL);
    return why;
}

static const char *bucket (size_t count, gs_dtype_t dtype, int times)
{
    const char *why = NULL;

    for (int t = 0; t < times && !why; t++) {
        why = text_of (cudaEventRecord (ready, NULL));
        if (!why)
            why = text_of (cudaStreamWaitEvent (beside, ready, 0));
        if (!why)
            why = average (count, dtype, beside);
    }
    return why;
}

static const char *wait (void)
{
    cudaError_t error = cudaStreamSynchronize (NULL);

    return text_of (error ? error : cudaStreamSynchronize (beside));
}

static void nothing (void *unused)
{
    (void) unused;
    while (sem_wait (&gate) != 0) {
    }
}

static const char *hold (void)
{
    return text_of (cudaLaunchHostFunc (NULL, nothing, NULL));
}

static void raw_nccl_release (void)
{
    sem_post (&gate);
}

const struct bench_raw_nccl bench_raw_nccl = {
    .make_id = make_id,
    .open = open_comm,
    .close = close_comm,
    .allreduce_avg = allreduce_avg,
    .bucket = bucket,
    .wait = wait,
    .hold = hold,
    .release = raw_nccl_release,
};
