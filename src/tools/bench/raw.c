/* SPDX-License-Identifier: BSD-3-Clause */
/* raw - finds the modules with the plain calls of MPI and NCCL. */
#include "tools/bench/raw.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/setting.h"

#define PATH_BYTES 1024
#define MPI_FILE   "gs-bench-mpi.so"
#define NCCL_FILE  "gs-bench-nccl.so"

/* The folder part of [path] into [folder]; "." when it has none. */
static void folder_of (const char *path, char *folder, size_t room)
{
    const char *slash = strrchr (path, '/');

    if (slash)
        snprintf (folder, room, "%.*s", (int) (slash - path), path);
    else
        snprintf (folder, room, ".");
}

/* [file] in gradsync/ beside libgradsync, else (before installation) beside it. */
static bool find_beside (const char *file, char *path, size_t room)
{
    char folder[PATH_BYTES - 64];
    Dl_info info;

    /* The string is in the library; the function's address may be a stub in this program. */
    if (!dladdr (gs_version (), &info) || !info.dli_fname)
        return false;
    folder_of (info.dli_fname, folder, sizeof (folder));
    snprintf (path, room, "%s/gradsync/%s", folder, file);
    if (!access (path, R_OK))
        return true;
    snprintf (path, room, "%s/%s", folder, file);
    return !access (path, R_OK);
}

/* MPI's module lies beside gradsync-mpi.so, so that both are for one MPI library. */
static bool find_mpi (char *path, size_t room)
{
    const char *module = setting_value ("GS_MPI_MODULE");
    char folder[PATH_BYTES - 64];

    if (!*module)
        return find_beside (MPI_FILE, path, room);
    folder_of (module, folder, sizeof (folder));
    snprintf (path, room, "%s/" MPI_FILE, folder);
    return !access (path, R_OK);
}

/* [symbol] of the module [path], or NULL and why not in [reason]. */
static const void *load_raw (const char *path, const char *symbol, char *reason, size_t room)
{
    void *module = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const void *found = module ? dlsym (module, symbol) : NULL;

    if (!found)
        snprintf (reason, room, "%s", dlerror ());
    return found;
}

/* Whether the communicator goes by [transport], or why there is nothing to compare with. */
static bool goes_by (const struct bench *bench, const char *transport, const char *library,
                     char *reason, size_t room)
{
    const char *ours = gs_comm_transport (bench->comm);

    if (!strcmp (ours, transport))
        return true;
    snprintf (reason, room, "transport %s does not use %s", ours, library);
    return false;
}

/* The module, or NULL and why not in [reason]. */
static const struct bench_raw_mpi *load_mpi (const struct bench *bench, char *reason, size_t room)
{
    char path[PATH_BYTES] = "";
    const struct bench_raw_mpi *raw;

    bool beside = !strcmp (gs_comm_transport (bench->comm), "ofi"); /* another way of hosts */

    if (!beside && !goes_by (bench, "mpi", "MPI", reason, room))
        return NULL;
    if (!find_mpi (path, sizeof (path))) {
        snprintf (reason, room, "there is no " MPI_FILE " beside gradsync-mpi.so");
        return NULL;
    }
    if (!(raw = load_raw (path, BENCH_RAW_MPI_SYMBOL, reason, room)))
        return NULL;
    if (beside)
        raw->start ();
    if (raw->world_size () != gs_comm_size (bench->comm)) {
        snprintf (reason, room, "MPI_COMM_WORLD has %d ranks, not %d", raw->world_size (),
                  gs_comm_size (bench->comm));
        return NULL;
    }
    return raw;
}

static const struct bench_raw_nccl *load_nccl (const struct bench *bench, char *reason,
                                               size_t room)
{
    char path[PATH_BYTES] = "";

    if (!goes_by (bench, "nccl", "NCCL", reason, room))
        return NULL;
    if (!find_beside (NCCL_FILE, path, sizeof (path))) {
        snprintf (reason, room, "there is no " NCCL_FILE " beside libgradsync");
        return NULL;
    }
    return load_raw (path, BENCH_RAW_NCCL_SYMBOL, reason, room);
}

/* Collective. Whether all ranks have [raw]; if not, rank 0 says [reason], which may be NULL. */
static bool all_have (const struct bench *bench, const void *raw, const char *reason)
{
    if (bench_agree (bench, raw != NULL))
        return true;
    if (gs_comm_size (bench->comm) > 1 && gs_comm_rank (bench->comm) == 0)
        fprintf (stderr, "gs-bench: no raw call to compare with: %s\n",
                 raw ? "another rank has none" : reason);
    return false;
}

const struct bench_raw_mpi *bench_raw_mpi_open (const struct bench *bench)
{
    char reason[2 * PATH_BYTES];
    const struct bench_raw_mpi *raw = load_mpi (bench, reason, sizeof (reason));

    return all_have (bench, raw, reason) ? raw : NULL;
}

/* Collective. Starts the communicator of [raw]. */
static bool start_nccl (const struct bench *bench, const struct bench_raw_nccl *raw,
                        const char **why)
{
    char id[BENCH_RAW_NCCL_ID_BYTES] = "";
    int rank = gs_comm_rank (bench->comm);

    *why = rank == 0 ? raw->make_id (id) : NULL;
    if (gs_broadcast (bench->comm, id, sizeof (id), GS_U8, 0, NULL))
        *why = gs_last_error ();
    else if (!*why)
        *why = raw->open (id, rank, gs_comm_size (bench->comm), gs_comm_device (bench->comm),
                          bench->options.max_bytes);
    return !*why;
}

const struct bench_raw_nccl *bench_raw_nccl_open (const struct bench *bench)
{
    char reason[2 * PATH_BYTES];
    const char *why = reason;
    const struct bench_raw_nccl *raw = load_nccl (bench, reason, sizeof (reason));
    bool open;

    if (!all_have (bench, raw, reason))
        return NULL;
    open = start_nccl (bench, raw, &why);
    if (all_have (bench, open ? raw : NULL, why))
        return raw;
    raw->close ();
    return NULL;
}
