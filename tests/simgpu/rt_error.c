/* SPDX-License-Identifier: BSD-3-Clause */
/* rt_error - the last error of each thread, and the names and texts of errors. */
#include "rt.h"

/*
 * N.B. cudaErrorNotReady is kept like the others: who asks for the last error after a launch must
 * not have left one there.
 */
static _Thread_local cudaError_t last;

cudaError_t rt_leave (cudaError_t error)
{
    if (error)
        last = error;
    return error;
}

/* N.B. where there is no driver, its absence is the last error from the beginning on. */
cudaError_t cudaPeekAtLastError (void)
{
    cudaError_t error = rt_open ();

    return error ? error : last;
}

/* The error of work that failed stays: every later call gives it again. */
cudaError_t cudaGetLastError (void)
{
    cudaError_t error = cudaPeekAtLastError ();

    rt_lock ();
    if (error != rt_devices[rt_current].failed)
        last = cudaSuccess;
    rt_unlock ();
    return error;
}

#define ERRORS(X)                                                                               \
    X (cudaSuccess, "no error")                                                                 \
    X (cudaErrorInvalidValue, "invalid argument")                                               \
    X (cudaErrorMemoryAllocation, "out of memory")                                              \
    X (cudaErrorInitializationError, "initialization error")                                    \
    X (cudaErrorInvalidConfiguration, "invalid configuration argument")                         \
    X (cudaErrorInvalidDevicePointer, "invalid device pointer")                                 \
    X (cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                    \
    X (cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime "     \
                                    "version")                                                  \
    X (cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")        \
    X (cudaErrorMissingConfiguration, "__global__ function call is not configured")             \
    X (cudaErrorInvalidDeviceFunction, "invalid device function")                               \
    X (cudaErrorNoDevice, "no CUDA-capable device is detected")                                 \
    X (cudaErrorInvalidDevice, "invalid device ordinal")                                        \
    X (cudaErrorDeviceUninitialized, "invalid device context")                                  \
    X (cudaErrorMapBufferObjectFailed, "mapping of buffer object failed")                       \
    X (cudaErrorPeerAccessUnsupported, "peer access is not supported between these two "        \
                                       "devices")                                               \
    X (cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                        \
    X (cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")        \
    X (cudaErrorInvalidResourceHandle, "invalid resource handle")                               \
    X (cudaErrorIllegalState, "the operation cannot be performed in the present state")         \
    X (cudaErrorNotReady, "device not ready")                                                   \
    X (cudaErrorIllegalAddress, "an illegal memory access was encountered")                     \
    X (cudaErrorLaunchOutOfResources, "too many resources requested for launch")                \
    X (cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                     \
    X (cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is "    \
                                             "already mapped")                                  \
    X (cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory "  \
                                         "region")                                              \
    X (cudaErrorLaunchFailure, "unspecified launch failure")                                    \
    X (cudaErrorNotPermitted, "operation not permitted")                                        \
    X (cudaErrorNotSupported, "operation not supported")                                        \
    X (cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver "    \
                                      "combination")                                            \
    X (cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")   \
    X (cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during "    \
                                          "capture")                                            \
    X (cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture "    \
                                    "sequences")                                                \
    X (cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began") \
    X (cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                    \
    X (cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another "     \
                                        "stream")                                               \
    X (cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a "    \
                                       "capturing blocking stream")                             \
    X (cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a "        \
                               "capturing stream")                                              \
    X (cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture "        \
                                          "sequence from another thread")                       \
    X (cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName (cudaError_t error)
{
    switch (error) {
#define NAME(code, text) \
    case code: return #code;
        ERRORS (NAME)
    default: return "unrecognized error code";
    }
}

const char *cudaGetErrorString (cudaError_t error)
{
    switch (error) {
#define TEXT(code, text) \
    case code: return text;
        ERRORS (TEXT)
    default: return "unrecognized error code";
    }
}
