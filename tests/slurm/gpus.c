/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpus - a rank that tells which GPU it holds and which it sees, in one line of words:
 *
 *   RANK HOST LOCAL-RANK NUMBER VISIBLE HELD SEEN
 *
 * NUMBER is gs_comm_device, VISIBLE what CUDA_VISIBLE_DEVICES says, HELD the GPU that has the
 * memory of gs_device_alloc, and SEEN all GPUs that CUDA shows, separated by commas. CUDA names
 * GPUs by their UUID.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradsync.h"

#define MAX_GPUS   32
#define NAME_BYTES 33

static int failed (const char *call, const char *text)
{
    fprintf (stderr, "gpus: %s: %s\n", call, text);
    return EXIT_FAILURE;
}

static cudaError_t read_name (int device, char *name)
{
    struct cudaDeviceProp properties;
    cudaError_t error = cudaGetDeviceProperties (&properties, device);

    for (int i = 0; i < 16 && !error; i++)
        snprintf (name + (size_t) 2 * (size_t) i, 3, "%02x",
                  (unsigned char) properties.uuid.bytes[i]);
    return error;
}

static int tell (gs_comm_t *comm, const void *memory)
{
    struct cudaPointerAttributes attributes = {0};
    char name[MAX_GPUS][NAME_BYTES];
    const char *visible = getenv ("CUDA_VISIBLE_DEVICES");
    int rank = gs_comm_rank (comm), count = 0;
    cudaError_t error = cudaGetDeviceCount (&count);

    for (int i = 0; i < count && i < MAX_GPUS && !error; i++)
        error = read_name (i, name[i]);
    if (!error)
        error = cudaPointerGetAttributes (&attributes, memory);
    if (error)
        return failed ("CUDA", cudaGetErrorString (error));
    if (count > MAX_GPUS || attributes.device < 0 || attributes.device >= count)
        return failed ("CUDA", "more GPUs than expected, or memory of none of them");
    printf ("%d %s %d %d %s %s ", rank, gs_comm_host_of (comm, rank), gs_comm_local_rank (comm),
            gs_comm_device (comm), visible ? visible : "unset", name[attributes.device]);
    for (int i = 0; i < count; i++)
        printf ("%s%s", i ? "," : "", name[i]);
    printf ("\n");
    return EXIT_SUCCESS;
}

int main (void)
{
    gs_comm_t *comm;
    void *memory;
    int status;

    if (gs_comm_create (NULL, &comm))
        return failed ("gs_comm_create", gs_last_error ());
    if (gs_device_alloc (comm, 4, &memory))
        return failed ("gs_device_alloc", gs_last_error ());
    status = tell (comm, memory);
    if (gs_device_free (comm, memory))
        status = failed ("gs_device_free", gs_last_error ());
    if (gs_comm_destroy (comm))
        status = failed ("gs_comm_destroy", gs_last_error ());
    return status;
}
