/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * names - what CUDA_VISIBLE_DEVICES calls the simulated devices of this host, one a line: GPUs,
 * or with SIM_MIG their instances, those of GPU 0 first. For scripts.
 */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int number_of (const char *variable, int otherwise)
{
    const char *text = getenv (variable);

    return text && *text ? atoi (text) : otherwise;
}

int main (void)
{
    void (*uuid_of) (int, cudaUUID_t *);
    int gpus = number_of ("SIM_GPUS", 4), instances = number_of ("SIM_MIG", 0);

    /* The call makes this program need the runtime; linkers leave out what is not called. */
    *(void **) &uuid_of = dlsym (RTLD_DEFAULT, "sim_uuid");
    if (cudaRuntimeGetVersion (&(int){0}) || !uuid_of) {
        fputs ("names: the CUDA runtime is not the simulated one: see LD_LIBRARY_PATH\n", stderr);
        return 1;
    }
    for (int i = 0; i < gpus * (instances ? instances : 1); i++) {
        cudaUUID_t uuid;
        uuid_of (i, &uuid);
        fputs (instances ? "MIG-" : "GPU-", stdout);
        for (int b = 0; b < 16; b++)
            printf ("%s%02x", b == 4 || b == 6 || b == 8 || b == 10 ? "-" : "",
                    (unsigned char) uuid.bytes[b]);
        putchar ('\n');
    }
    return 0;
}
