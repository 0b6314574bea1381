/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_launch - what nvcc's code calls: the registration of kernels, and launches, which run the
 * kernel's twin on the stream's thread.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt.h"
#include "twins.h"

#define NESTED        8 /* configurations that wait for their launch */
#define MOST_THREADS  1024
#define MOST_SHARED   49152
#define MOST_ARGUMENT 32764

/* The hooks, which no header of CUDA declares for C. */
void **__cudaRegisterFatBinary (void *binary);
void __cudaRegisterFatBinaryEnd (void **handle);
void __cudaUnregisterFatBinary (void **handle);
char __cudaInitModule (void **handle);
void __cudaRegisterFunction (void **handle, const char *host, char *device, const char *name,
                             int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                             int *warp);
void __cudaRegisterVar (void **handle, char *host, char *device, const char *name, int ext,
                        size_t bytes, int constant, int global);
unsigned __cudaPushCallConfiguration (dim3 grid, dim3 block, size_t shared,
                                      struct CUstream_st *stream);
cudaError_t __cudaPopCallConfiguration (dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel (void **kernel, const void *host);
cudaError_t __cudaLaunchKernel (void *kernel, dim3 grid, dim3 block, void **arguments,
                                size_t shared, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz (void *kernel, dim3 grid, dim3 block, void **arguments,
                                     size_t shared, cudaStream_t stream);

struct kernel {
    struct kernel *next;
    const void *host; /* the address that the program knows it by */
    const char *name;
    const struct sim_twin *twin; /* NULL: not looked for yet, or not there */
    bool loaded[RT_DEVICES];     /* its code is on the device */
};

static struct kernel *kernels;

static const struct sim_twin *(*find_twin) (const char *name);
static char twins_missing[512]; /* why there are no twins */
static pthread_once_t once = PTHREAD_ONCE_INIT;

void **__cudaRegisterFatBinary (void *binary)
{
    void **handle = malloc (sizeof (*handle));

    if (handle)
        *handle = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd (void **handle)
{
    (void) handle;
}

void __cudaUnregisterFatBinary (void **handle)
{
    free (handle);
}

char __cudaInitModule (void **handle)
{
    (void) handle;
    return 1;
}

void __cudaRegisterFunction (void **handle, const char *host, char *device, const char *name,
                             int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                             int *warp)
{
    struct kernel *kernel = calloc (1, sizeof (*kernel));

    (void) handle, (void) device, (void) limit, (void) tid, (void) bid;
    (void) block, (void) grid, (void) warp;
    if (!kernel)
        abort (); /* before main; nothing can be told */
    kernel->host = host;
    kernel->name = name;
    rt_lock ();
    kernel->next = kernels;
    kernels = kernel;
    rt_unlock ();
}

/* Variables of devices are not simulated; what uses them fails by name. */
void __cudaRegisterVar (void **handle, char *host, char *device, const char *name, int ext,
                        size_t bytes, int constant, int global)
{
    (void) handle, (void) host, (void) device, (void) name;
    (void) ext, (void) bytes, (void) constant, (void) global;
}

struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

static _Thread_local struct configuration waiting[NESTED];
static _Thread_local int waiting_count;

unsigned __cudaPushCallConfiguration (dim3 grid, dim3 block, size_t shared,
                                      struct CUstream_st *stream)
{
    if (waiting_count == NESTED)
        return 1;
    waiting[waiting_count++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration (dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    const struct configuration *c;

    if (!waiting_count)
        return rt_leave (cudaErrorMissingConfiguration);
    c = &waiting[--waiting_count];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(cudaStream_t *) stream = c->stream;
    return cudaSuccess;
}

static struct kernel *find_kernel (const void *host)
{
    struct kernel *kernel;

    rt_lock ();
    kernel = kernels;
    while (kernel && kernel->host != host)
        kernel = kernel->next;
    rt_unlock ();
    return kernel;
}

cudaError_t __cudaGetKernel (void **kernel, const void *host)
{
    *kernel = find_kernel (host);
    return rt_leave (*kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* Twins call sim_alias, which they would not find where one library alone has loaded this one. */
static void *own_names (const char *own_file)
{
    return dlopen (own_file, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
}

/* A file that lies beside this library. */
static void name_beside (const char *name, char *path, size_t room)
{
    const char *slash;
    Dl_info info;

    if (!dladdr ((void *) (uintptr_t) name_beside, &info))
        info.dli_fname = "";
    if (!(slash = strrchr (info.dli_fname, '/')))
        info.dli_fname = slash = "";
    snprintf (path, room, "%.*s%s", (int) (slash - info.dli_fname + (*slash == '/')),
              info.dli_fname, name);
}

/* As the real runtime does, which is not linked to the driver either. */
void rt_driver_open (void)
{
    char path[4096];

    if (rt_no_device == cudaErrorInsufficientDriver)
        return;
    name_beside ("libcuda.so.1", path, sizeof (path));
    dlopen (path, RTLD_NOW | RTLD_LOCAL);
}

/* Beside this library, unless SIM_TWINS names another file. */
static void load_twins (void)
{
    const char *path = getenv ("SIM_TWINS");
    char beside[4096];
    Dl_info info;
    void *library;

    if (dladdr ((void *) (uintptr_t) load_twins, &info))
        own_names (info.dli_fname);
    if (!path || !*path) {
        name_beside ("libsimtwins.so", beside, sizeof (beside));
        path = beside;
    }
    library = dlopen (path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **) &find_twin = dlsym (library, "sim_twin_find");
    if (!find_twin)
        snprintf (twins_missing, sizeof (twins_missing), ": %s", dlerror ());
}

static const struct sim_twin *twin_of (struct kernel *kernel)
{
    pthread_once (&once, load_twins);
    if (!kernel->twin && find_twin)
        kernel->twin = find_twin (kernel->name);
    if (!kernel->twin)
        sim_misuse ("cudaLaunchKernel: kernel %s has no twin%s", kernel->name, twins_missing);
    return kernel->twin;
}

struct call { /* followed by the arguments, each aligned as memory of malloc */
    const struct sim_twin *twin;
    unsigned grid, block;
};

static size_t padded (size_t bytes)
{
    return (bytes + alignof (max_align_t) - 1) / alignof (max_align_t) * alignof (max_align_t);
}

static void run_twin (void *arg)
{
    const struct call *call = arg;
    int parameters = call->twin->parameters;
    char *at = (char *) arg + padded (sizeof (*call));
    void **arguments = malloc (((size_t) parameters + 1) * sizeof (*arguments));

    if (!arguments)
        abort ();
    for (int i = 0; i < parameters; i++) {
        arguments[i] = at;
        at += padded (call->twin->bytes[i]);
    }
    call->twin->run (call->grid, call->block, arguments);
    free (arguments);
}

/* Queues the call with a copy of its arguments: the program's are free again at once. */
static cudaError_t push_call (struct rt_stream *stream, const struct call *call,
                              void *const *arguments)
{
    size_t bytes = padded (sizeof (*call)), sum = 0;
    cudaError_t error;
    char *copy;

    for (int i = 0; i < call->twin->parameters; i++) {
        bytes += padded (call->twin->bytes[i]);
        sum += call->twin->bytes[i];
    }
    if (sum > MOST_ARGUMENT)
        return cudaErrorInvalidValue;
    copy = calloc (1, bytes);
    if (!copy)
        return cudaErrorMemoryAllocation;
    *(struct call *) (void *) copy = *call;
    bytes = padded (sizeof (*call));
    for (int i = 0; i < call->twin->parameters; i++) {
        memcpy (copy + bytes, arguments[i], call->twin->bytes[i]);
        bytes += padded (call->twin->bytes[i]);
    }
    error = rt_push (stream, run_twin, copy, bytes);
    free (copy);
    return error;
}

static cudaError_t check_shape (const struct configuration *c)
{
    size_t threads = (size_t) c->block.x * c->block.y * c->block.z;

    if (!c->grid.x || !c->grid.y || !c->grid.z || !threads)
        return cudaErrorInvalidValue;
    if (c->grid.x > 2147483647u || c->grid.y > 65535 || c->grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (threads > MOST_THREADS || c->block.z > 64)
        return cudaErrorInvalidValue;
    if (c->shared > MOST_SHARED)
        return cudaErrorInvalidValue;
    if (c->grid.y == 1 && c->grid.z == 1 && c->block.y == 1 && c->block.z == 1)
        return cudaSuccess;
    sim_misuse ("cudaLaunchKernel: only launches of one dimension are simulated");
    return cudaErrorNotSupported;
}

/*
 * Code is loaded when it is first asked for (CUDA_MODULE_LOADING=LAZY, the default). To load is
 * to wait for what runs on the device, which may itself wait for what would be launched here.
 */
static cudaError_t load (struct kernel *kernel)
{
    cudaError_t error = cudaSuccess;

    if (!kernel->loaded[rt_current])
        error = rt_await_device (rt_current);
    kernel->loaded[rt_current] = true;
    return error;
}

cudaError_t cudaFuncGetAttributes (struct cudaFuncAttributes *attributes, const void *host)
{
    cudaError_t error = rt_enter ("cudaFuncGetAttributes", RT_NO_STREAM);
    struct kernel *kernel = find_kernel (host);

    if (!error && !attributes)
        error = cudaErrorInvalidValue;
    if (!error && !kernel)
        error = cudaErrorInvalidDeviceFunction;
    if (error)
        return rt_leave (error);
    memset (attributes, 0, sizeof (*attributes));
    attributes->maxThreadsPerBlock = MOST_THREADS;
    attributes->binaryVersion = attributes->ptxVersion = 90;
    rt_lock ();
    error = load (kernel);
    rt_unlock ();
    return rt_leave (error);
}

static cudaError_t launch (struct kernel *kernel, const struct configuration *c,
                           void *const *arguments)
{
    struct call call = {NULL, c->grid.x, c->block.x};
    cudaError_t error = check_shape (c);
    struct rt_stream *stream;

    if (error)
        return error;
    call.twin = kernel ? twin_of (kernel) : NULL;
    if (!call.twin)
        return cudaErrorInvalidDeviceFunction;
    rt_lock ();
    stream = rt_stream_find (c->stream, "cudaLaunchKernel");
    if (!stream) {
        error = cudaErrorInvalidResourceHandle;
    } else if (stream->device != rt_current) {
        sim_misuse ("cudaLaunchKernel: the stream is of device %d, the current one is %d",
                    stream->device, rt_current);
        error = cudaErrorInvalidResourceHandle;
    } else if (!(error = load (kernel))) {
        error = push_call (stream, &call, arguments);
    }
    rt_unlock ();
    return error;
}

cudaError_t __cudaLaunchKernel (void *kernel, dim3 grid, dim3 block, void **arguments,
                                size_t shared, cudaStream_t stream)
{
    cudaError_t error = rt_enter ("cudaLaunchKernel", stream);
    struct configuration c = {grid, block, shared, stream};

    return rt_leave (error ? error : launch (kernel, &c, arguments));
}

cudaError_t __cudaLaunchKernel_ptsz (void *kernel, dim3 grid, dim3 block, void **arguments,
                                     size_t shared, cudaStream_t stream)
{
    return __cudaLaunchKernel (kernel, grid, block, arguments, shared,
                               stream ? stream : cudaStreamPerThread);
}

cudaError_t cudaLaunchKernel (const void *host, dim3 grid, dim3 block, void **arguments,
                              size_t shared, cudaStream_t stream)
{
    return __cudaLaunchKernel (find_kernel (host), grid, block, arguments, shared, stream);
}
