/* SPDX-License-Identifier: BSD-3-Clause */
/* raw - finds the module with the plain MPI calls. */
#include "tools/bench/raw.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/setting.h"

#define PATH_BYTES  1024
#define MODULE_FILE "gs-bench-mpi.so"

/* The folder part of [path] into [folder]; "." when it has none. */
static void folder_of (const char *path, char *folder, size_t room)
{
    const char *slash = strrchr (path, '/');

    if (slash)
        snprintf (folder, room, "%.*s", (int) (slash - path), path);
    else
        snprintf (folder, room, ".");
}

/*
 * The module lies beside gradsync-mpi.so, so that both are for one MPI library: in the folder of
 * GS_MPI_MODULE, else gradsync/ beside libgradsync, else (before installation) beside it.
 */
static bool find_module (char *path, size_t room)
{
    const char *module = setting_value ("GS_MPI_MODULE");
    char folder[PATH_BYTES - 64];
    Dl_info info;

    if (*module) {
        folder_of (module, folder, sizeof (folder));
        snprintf (path, room, "%s/" MODULE_FILE, folder);
        return !access (path, R_OK);
    }
    /* The string is in the library; the function's address may be a stub in this program. */
    if (!dladdr (gs_version (), &info) || !info.dli_fname)
        return false;
    folder_of (info.dli_fname, folder, sizeof (folder));
    snprintf (path, room, "%s/gradsync/" MODULE_FILE, folder);
    if (!access (path, R_OK))
        return true;
    snprintf (path, room, "%s/" MODULE_FILE, folder);
    return !access (path, R_OK);
}

/* The module, or NULL and why not in [reason]. */
static const struct bench_raw_mpi *load (const struct bench *bench, char *reason, size_t room)
{
    char path[PATH_BYTES] = "";
    const struct bench_raw_mpi *raw;
    void *module;

    if (strcmp (gs_comm_transport (bench->comm), "mpi") != 0) {
        snprintf (reason, room, "transport %s does not use MPI", gs_comm_transport (bench->comm));
        return NULL;
    }
    if (!find_module (path, sizeof (path))) {
        snprintf (reason, room, "there is no " MODULE_FILE " beside gradsync-mpi.so");
        return NULL;
    }
    module = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    raw = module ? dlsym (module, BENCH_RAW_MPI_SYMBOL) : NULL;
    if (!raw) {
        snprintf (reason, room, "%s", dlerror ());
        return NULL;
    }
    if (raw->world_size () != gs_comm_size (bench->comm)) {
        snprintf (reason, room, "MPI_COMM_WORLD has %d ranks, not %d", raw->world_size (),
                  gs_comm_size (bench->comm));
        return NULL;
    }
    return raw;
}

const struct bench_raw_mpi *bench_raw_mpi_open (const struct bench *bench)
{
    char reason[2 * PATH_BYTES] = "another rank has none";
    const struct bench_raw_mpi *raw = load (bench, reason, sizeof (reason));

    if (bench_agree (bench, raw != NULL))
        return raw;
    if (gs_comm_size (bench->comm) > 1 && gs_comm_rank (bench->comm) == 0)
        fprintf (stderr, "gs-bench: no raw call to compare with: %s\n", reason);
    return NULL;
}
