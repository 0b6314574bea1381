/* SPDX-License-Identifier: BSD-3-Clause */
/* rt_device - the devices that a process sees, and what they tell of themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"

struct rt_device rt_devices[RT_DEVICES];
int rt_device_count;
cudaError_t rt_no_device = cudaErrorNoDevice;
_Thread_local int rt_current;
_Thread_local bool rt_bound;

static long memory_mb = 1024;
static long most_contexts = RT_DEVICES; /* of this process */
static int contexts;

size_t rt_device_bytes (void)
{
    return (size_t) memory_mb << 20;
}

void rt_devices_open (void)
{
    memory_mb = rt_setting ("SIM_GPU_MEMORY_MB", 1024, 1, 1 << 20);
    most_contexts = rt_setting ("SIM_CONTEXTS", RT_DEVICES, 0, RT_DEVICES);
    rt_visible_open ();
    rt_share_open ();
}

void rt_device_fail (int device, cudaError_t error)
{
    if (!rt_devices[device].failed)
        rt_devices[device].failed = error;
    rt_progress ();
}

/*
 * A context takes some 500 MiB of a GPU, and in the mode EXCLUSIVE_PROCESS one process alone has
 * it. Since CUDA 12 cudaSetDevice makes it, else whatever is called first; only questions about
 * devices do not.
 */
cudaError_t rt_context_need (int device, const char *who)
{
    struct rt_device *d = &rt_devices[device];

    if (!d->context && !rt_share_context (device))
        return cudaErrorDevicesUnavailable;
    rt_bound = true;
    if (d->context)
        return cudaSuccess;
    d->context = true;
    if (++contexts > most_contexts)
        sim_misuse ("%s makes a context on GPU %d, number %d of this process, which may have %ld",
                    who, device, contexts, most_contexts);
    return cudaSuccess;
}

bool sim_has_context (int device)
{
    bool has;

    rt_lock ();
    has = device >= 0 && device < rt_device_count && rt_devices[device].context;
    rt_unlock ();
    return has;
}

int sim_physical_device (void)
{
    return rt_devices[rt_current].physical;
}

int rt_device_of (int physical)
{
    for (int i = 0; i < rt_device_count; i++)
        if (rt_devices[i].physical == physical)
            return i;
    return rt_current;
}

/* Instances of a GPU have that of the GPU. */
static int pci_bus (int device)
{
    return 0x07 + 7 * rt_devices[device].gpu;
}

const char *sim_bus_id (void)
{
    static _Thread_local char id[16];

    snprintf (id, sizeof (id), "0000:%02X:00.0", pci_bus (rt_current));
    return id;
}

static cudaError_t check_device (int device)
{
    return device >= 0 && device < rt_device_count ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaGetDeviceCount (int *count)
{
    cudaError_t error = rt_enter_for_devices ("cudaGetDeviceCount");

    if (!count)
        return rt_leave (cudaErrorInvalidValue);
    if (!error)
        *count = rt_device_count;
    return rt_leave (error);
}

cudaError_t cudaSetDevice (int device)
{
    cudaError_t error = rt_enter_for_devices ("cudaSetDevice");

    if (error && (!rt_device_count || !rt_devices[rt_current].failed))
        return rt_leave (error);
    error = check_device (device);
    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_context_need (device, "cudaSetDevice");
    if (!error) {
        rt_current = device;
        error = rt_devices[device].failed;
    }
    rt_unlock ();
    return rt_leave (error);
}

cudaError_t cudaGetDevice (int *device)
{
    cudaError_t error = rt_enter_for_devices ("cudaGetDevice");

    if (!error && !device)
        error = cudaErrorInvalidValue;
    if (!error)
        *device = rt_current;
    return rt_leave (error);
}

cudaError_t cudaDeviceGetPCIBusId (char *id, int room, int device)
{
    cudaError_t error = rt_enter_for_devices ("cudaDeviceGetPCIBusId");

    if (!error)
        error = check_device (device);
    if (!error && (!id || room < 13))
        error = cudaErrorInvalidValue;
    if (!error)
        snprintf (id, (size_t) room, "0000:%02X:00.0", pci_bus (device));
    return rt_leave (error);
}

cudaError_t cudaDeviceGetByPCIBusId (int *device, const char *id)
{
    cudaError_t error = rt_enter_for_devices ("cudaDeviceGetByPCIBusId");
    unsigned domain, bus, number;

    if (error)
        return rt_leave (error);
    if (!device || !id || sscanf (id, "%x:%x:%x", &domain, &bus, &number) != 3)
        return rt_leave (cudaErrorInvalidValue);
    for (int i = 0; i < rt_device_count; i++)
        if (!domain && (int) bus == pci_bus (i) && !number) {
            *device = i;
            return rt_leave (cudaSuccess);
        }
    return rt_leave (cudaErrorInvalidDevice);
}

/* What the attributes and the properties have in common. */
static const struct {
    enum cudaDeviceAttr attribute;
    int value;
} attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrMultiProcessorCount, 16},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 0},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrAsyncEngineCount, 2},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 0},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 232448},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrIpcEventSupport, 1},
};

static bool attribute_of (int device, enum cudaDeviceAttr attribute, int *value)
{
    if (attribute == cudaDevAttrPciBusId) {
        *value = pci_bus (device);
        return true;
    }
    if (attribute == cudaDevAttrComputeMode) {
        *value = rt_share_exclusive () ? cudaComputeModeExclusiveProcess : cudaComputeModeDefault;
        return true;
    }
    for (size_t i = 0; i < sizeof (attributes) / sizeof (attributes[0]); i++)
        if (attributes[i].attribute == attribute) {
            *value = attributes[i].value;
            return true;
        }
    return false;
}

cudaError_t cudaDeviceGetAttribute (int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t error = rt_enter_for_devices ("cudaDeviceGetAttribute");

    if (error)
        return rt_leave (error);
    if (!value)
        return rt_leave (cudaErrorInvalidValue);
    error = check_device (device);
    if (!error && !attribute_of (device, attribute, value)) {
        fprintf (stderr, "simgpu: cudaDeviceGetAttribute: %d is not simulated\n", attribute);
        error = cudaErrorNotSupported;
    }
    return rt_leave (error);
}

static int fixed (enum cudaDeviceAttr attribute)
{
    int value = 0;

    attribute_of (0, attribute, &value);
    return value;
}

cudaError_t cudaGetDeviceProperties (struct cudaDeviceProp *p, int device)
{
    cudaError_t error = rt_enter_for_devices ("cudaGetDeviceProperties");

    if (error)
        return rt_leave (error);
    if (!p)
        return rt_leave (cudaErrorInvalidValue);
    error = check_device (device);
    if (error)
        return rt_leave (error);
    memset (p, 0, sizeof (*p));
    snprintf (p->name, sizeof (p->name), "Simulated GPU%s", rt_is_instance () ? " MIG 1g" : "");
    sim_uuid (rt_devices[device].physical, &p->uuid);
    p->totalGlobalMem = rt_device_bytes ();
    p->major = fixed (cudaDevAttrComputeCapabilityMajor);
    p->minor = fixed (cudaDevAttrComputeCapabilityMinor);
    p->pciBusID = pci_bus (device);
    p->warpSize = fixed (cudaDevAttrWarpSize);
    p->multiProcessorCount = fixed (cudaDevAttrMultiProcessorCount);
    p->maxThreadsPerBlock = fixed (cudaDevAttrMaxThreadsPerBlock);
    p->maxThreadsDim[0] = fixed (cudaDevAttrMaxBlockDimX);
    p->maxThreadsDim[1] = fixed (cudaDevAttrMaxBlockDimY);
    p->maxThreadsDim[2] = fixed (cudaDevAttrMaxBlockDimZ);
    p->maxGridSize[0] = fixed (cudaDevAttrMaxGridDimX);
    p->maxGridSize[1] = fixed (cudaDevAttrMaxGridDimY);
    p->maxGridSize[2] = fixed (cudaDevAttrMaxGridDimZ);
    p->maxThreadsPerMultiProcessor = fixed (cudaDevAttrMaxThreadsPerMultiProcessor);
    p->sharedMemPerBlock = (size_t) fixed (cudaDevAttrMaxSharedMemoryPerBlock);
    p->regsPerBlock = fixed (cudaDevAttrMaxRegistersPerBlock);
#if CUDART_VERSION < 13000
    p->computeMode = fixed (cudaDevAttrComputeMode);
#endif
    p->asyncEngineCount = fixed (cudaDevAttrAsyncEngineCount);
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
    p->canMapHostMemory = p->concurrentManagedAccess = p->streamPrioritiesSupported = 1;
    p->canUseHostPointerForRegisteredMem = 1;
    return rt_leave (cudaSuccess);
}

/* Both succeed without a device, and without a driver, whose version is then 0. */
cudaError_t cudaRuntimeGetVersion (int *version)
{
    if (!version)
        return rt_leave (cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion (int *version)
{
    if (!version)
        return rt_leave (cudaErrorInvalidValue);
    *version = rt_setting ("SIM_GPUS", 4, -1, RT_DEVICES) < 0 ? 0 : CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange (int *least, int *greatest)
{
    cudaError_t error = rt_enter ("cudaDeviceGetStreamPriorityRange", RT_NO_STREAM);

    if (!error && least)
        *least = 0;
    if (!error && greatest)
        *greatest = -5;
    return rt_leave (error);
}

cudaError_t cudaDeviceCanAccessPeer (int *can, int device, int peer)
{
    cudaError_t error = rt_enter_for_devices ("cudaDeviceCanAccessPeer");

    if (!error)
        error = check_device (device) ? check_device (device) : check_device (peer);
    if (!error && !can)
        error = cudaErrorInvalidValue;
    if (!error)
        *can = device != peer;
    return rt_leave (error);
}

cudaError_t cudaDeviceEnablePeerAccess (int peer, unsigned flags)
{
    cudaError_t error = rt_enter ("cudaDeviceEnablePeerAccess", RT_NO_STREAM);

    if (!error)
        error = check_device (peer);
    if (!error && (flags || peer == rt_current))
        error = flags ? cudaErrorInvalidValue : cudaErrorInvalidDevice;
    if (!error && rt_devices[rt_current].peers[peer])
        error = cudaErrorPeerAccessAlreadyEnabled;
    if (!error)
        rt_devices[rt_current].peers[peer] = true;
    return rt_leave (error);
}

cudaError_t cudaMemGetInfo (size_t *free_bytes, size_t *total)
{
    cudaError_t error = rt_enter ("cudaMemGetInfo", RT_NO_STREAM);
    size_t used;

    if (!error && (!free_bytes || !total))
        error = cudaErrorInvalidValue;
    if (!error) {
        rt_lock ();
        *total = rt_device_bytes ();
        used = rt_devices[rt_current].used_bytes + rt_share_others (rt_current);
        *free_bytes = *total - (used < *total ? used : *total);
        rt_unlock ();
    }
    return rt_leave (error);
}

cudaError_t cudaDeviceSynchronize (void)
{
    cudaError_t error = rt_enter ("cudaDeviceSynchronize", RT_NO_STREAM);

    if (error)
        return rt_leave (error);
    rt_lock ();
    error = rt_capture_device (rt_current);
    if (!error)
        error = rt_await_device (rt_current);
    rt_unlock ();
    return rt_leave (error);
}
