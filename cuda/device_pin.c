/* SPDX-License-Identifier: BSD-3-Clause */
/* device_pin - memory of the host that is there already, made known to the GPU. */
#include <pthread.h>
#include <stdlib.h>

#include "base/status.h"
#include "cuda/device_cuda.h"

/* What is pinned and will not be, and who wants to know when it is not. */
static struct pinned {
    struct pinned *next;
    void *memory;
    void (*told) (void *context);
    void *context;
} * ending;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* ending */

static struct pinned *take (const void *memory)
{
    struct pinned **at, *p;

    pthread_mutex_lock (&guard);
    for (at = &ending; *at && (*at)->memory != memory;)
        at = &(*at)->next;
    if ((p = *at))
        *at = p->next;
    pthread_mutex_unlock (&guard);
    return p;
}

/* N.B. It waits for the work of the GPU, as cudaFreeHost does. */
static cudaError_t unregister (void *memory)
{
    struct pinned *p = take (memory);
    cudaError_t error = cudaHostUnregister (memory);

    if (p)
        p->told (p->context);
    free (p);
    return error;
}

gs_status_t gsi_cuda_pin (void *memory, size_t bytes)
{
    return gsi_cuda_check ("cudaHostRegister",
                           cudaHostRegister (memory, bytes, cudaHostRegisterPortable));
}

void gsi_cuda_unpin (const struct gsi_device *device, void *memory, void (*told) (void *context),
                     void *context)
{
    struct pinned *p = malloc (sizeof (*p));
    cudaError_t error;

    if (!p)
        return; /* it is kept */
    *p = (struct pinned){.memory = memory, .told = told, .context = context};
    pthread_mutex_lock (&guard);
    p->next = ending;
    ending = p;
    pthread_mutex_unlock (&guard);
    if (gsi_cuda_free (device, memory, unregister, &error))
        gsi_cuda_forget (error);
}
