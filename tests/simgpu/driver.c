/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * driver - libcuda.so.1, as far as somebody asks it behind the runtime's back: whether this
 * process has a context on a device, and operations on values in memory. No header of it is
 * needed: its types are integers and the runtime's, and so are the numbers of its errors.
 */
#include <stddef.h>

#include "engine.h"

int cuDevicePrimaryCtxGetState (int device, unsigned *flags, int *active);

int cuDevicePrimaryCtxGetState (int device, unsigned *flags, int *active)
{
    if (!flags || !active)
        return cudaErrorInvalidValue;
    *flags = 0;
    *active = sim_has_context (device);
    return cudaSuccess;
}

int cuDeviceGetUuid_v2 (cudaUUID_t *uuid, int device);

/* Instances of a GPU have one of their own. */
int cuDeviceGetUuid_v2 (cudaUUID_t *uuid, int device)
{
    struct cudaDeviceProp properties;
    int error =
        uuid ? (int) cudaGetDeviceProperties (&properties, device) : cudaErrorInvalidValue;

    if (!error)
        *uuid = properties.uuid;
    return error;
}

/*
 * N.B. the names without _v2 are an older interface, which the driver has only where a parameter
 * of its kernel module says so; programs that include cuda.h call _v2 by those names, but who
 * looks for a function by its name must ask for _v2.
 */
#define VALUE_CALL(name, call)                                                                  \
    int name (cudaStream_t stream, unsigned long long address, uint32_t value, unsigned flags); \
    int name (cudaStream_t stream, unsigned long long address, uint32_t value, unsigned flags)  \
    {                                                                                           \
        return call;                                                                            \
    }
#define WITH(stream) stream, (const void *) (uintptr_t) address, value, flags

static cudaStream_t own (cudaStream_t stream)
{
    return stream ? stream : cudaStreamPerThread;
}

static int old_call (cudaStream_t stream, unsigned long long address, uint32_t value,
                     unsigned flags)
{
    (void) stream, (void) address, (void) value, (void) flags;
    return cudaErrorNotSupported;
}

VALUE_CALL (cuStreamWaitValue32_v2, sim_wait_value (WITH (stream)))
VALUE_CALL (cuStreamWaitValue32_v2_ptsz, sim_wait_value (WITH (own (stream))))
VALUE_CALL (cuStreamWaitValue32, old_call (stream, address, value, flags))
VALUE_CALL (cuStreamWaitValue32_ptsz, old_call (stream, address, value, flags))
VALUE_CALL (cuStreamWriteValue32_v2, sim_write_value (WITH (stream)))
VALUE_CALL (cuStreamWriteValue32_v2_ptsz, sim_write_value (WITH (own (stream))))
VALUE_CALL (cuStreamWriteValue32, old_call (stream, address, value, flags))
VALUE_CALL (cuStreamWriteValue32_ptsz, old_call (stream, address, value, flags))
