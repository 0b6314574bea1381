/* SPDX-License-Identifier: BSD-3-Clause */
/* test_nccl_memory - memory of NCCL's own, and what is registered. */
#include <stdlib.h>
#include <unistd.h>

#include "test_nccl.h"

#pragma weak ncclMemAlloc
#pragma weak ncclMemFree
#pragma weak ncclCommRegister
#pragma weak ncclCommDeregister

#define COUNT ((size_t) 1000000)
#define BYTES (COUNT * sizeof (float))

static ncclComm_t comm;
static cudaStream_t stream;
static float *data;

static void begin (void)
{
    float *host = malloc (BYTES);

    comm = make_comm (true);
    stream = make_stream ();
    for (size_t i = 0; i < COUNT; i++)
        host[i] = (float) (i % 1000 + (size_t) rank);
    NCCL (ncclMemAlloc ((void **) &data, BYTES));
    write_device (data, host, BYTES);
    free (host);
}

static void end (void)
{
    NCCL (ncclMemFree (data));
    end_comm (comm);
}

static void check_sum (void)
{
    float *host = malloc (BYTES);
    size_t others = (size_t) (ranks * (ranks - 1) / 2);

    NCCL (ncclAllReduce (data, data, COUNT, ncclFloat32, ncclSum, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    read_device (host, data, BYTES);
    for (size_t i = 0; i < COUNT; i++)
        if (host[i] != (float) (i % 1000 * (size_t) ranks + others))
            FAIL ("element %zu is %g", i, (double) host[i]);
    free (host);
}

static void registered (void)
{
    void *handle, *part;

    begin ();
    NCCL (ncclCommRegister (comm, data, BYTES, &handle));
    NCCL (ncclCommRegister (comm, data + 10, 1000, &part));
    check_sum ();
    NCCL (ncclCommDeregister (comm, part));
    NCCL (ncclCommDeregister (comm, handle));
    end ();
}

static void not_registered (void)
{
    begin ();
    GIVES (ncclInvalidUsage, ncclCommDeregister (comm, data));
    end ();
}

static void nap (void *unused)
{
    (void) unused;
    usleep (200000);
}

static void deregistered_with_work (void)
{
    void *handle;

    begin ();
    check_sum (); /* so that the next one does not wait in its call */
    NCCL (ncclCommRegister (comm, data, BYTES, &handle));
    CUDA (cudaLaunchHostFunc (stream, nap, NULL));
    NCCL (ncclAllReduce (data, data, COUNT, ncclFloat32, ncclSum, comm, stream));
    NCCL (ncclCommDeregister (comm, handle));
    CUDA (cudaStreamSynchronize (stream));
    end ();
}

static void freed_too_early (void)
{
    void *handle;

    begin ();
    NCCL (ncclCommRegister (comm, data, BYTES, &handle));
    end ();
}

static void freed_by_cuda (void)
{
    begin ();
    CHECK (cudaFree (data) == cudaErrorInvalidValue);
    end ();
}

/* Each rank's operations work on memory that the next one allocated, of another process. */
static void opened_memory (void)
{
    cudaIpcMemHandle_t own, next;
    float *mine, *theirs, host[100];
    void *opened;

    if (!is_simulated ())
        return;
    comm = make_comm (true);
    stream = make_stream ();
    for (int i = 0; i < 100; i++)
        host[i] = (float) (i + rank);
    mine = make_device (host, sizeof (host));
    CUDA (cudaIpcGetMemHandle (&own, mine));
    for (int i = 0; i < ranks; i++) {
        cudaIpcMemHandle_t told = own;
        tell (i, &told, sizeof (told));
        if (i == (rank + 1) % ranks)
            next = told;
    }
    CUDA (cudaIpcOpenMemHandle (&opened, next, cudaIpcMemLazyEnablePeerAccess));
    theirs = opened;
    NCCL (ncclAllReduce (theirs, theirs, 100, ncclFloat32, ncclSum, comm, stream));
    CUDA (cudaStreamSynchronize (stream));
    CUDA (cudaIpcCloseMemHandle (opened));
    meet ();
    read_device (host, mine, sizeof (host));
    for (int i = 0; i < 100; i++)
        CHECK (host[i] == (float) (i * ranks + ranks * (ranks - 1) / 2));
    end_comm (comm);
}

const struct test memory_tests[] = {
    {"opened-memory", opened_memory, 8, 2, 0, NULL, NULL},
    {"registered", registered, 8, 1, 0, NULL, NULL},
    {"not-registered", not_registered, 2, 1, MISUSE, "is not registered with communicator", NULL},
    {"deregistered-with-work", deregistered_with_work, 2, 1, MISUSE, "are not complete", NULL},
    {"freed-too-early", freed_too_early, 2, 1, MISUSE, "is still registered", NULL},
    {"freed-by-cuda", freed_by_cuda, 2, 1, MISUSE, "is memory of another kind", NULL},
    {0},
};
