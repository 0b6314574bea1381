/* SPDX-License-Identifier: BSD-3-Clause */
/* module - parts of gradsync that are loaded on demand. */
#include "base/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/status.h"

#define PATH_BYTES  1024
#define MODULE_FILE "gradsync-mpi.so"

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *mpi_module;

/* The folder of the shared object this code is in; "." when the linker does not know. */
static void own_folder (char *folder, size_t room)
{
    Dl_info info;
    const char *slash;

    snprintf (folder, room, ".");
    if (!dladdr ((void *) gs_version, &info) || !info.dli_fname)
        return;
    slash = strrchr (info.dli_fname, '/');
    if (slash)
        snprintf (folder, room, "%.*s", (int) (slash - info.dli_fname), info.dli_fname);
}

static gs_status_t find (char *path, size_t room)
{
    const char *wish = gsi_env_text (GSI_ENV_MPI_MODULE);
    char folder[PATH_BYTES - 64];

    if (*wish) {
        snprintf (path, room, "%s", wish);
        if (!access (path, R_OK))
            return GS_OK;
        return gsi_fail (GS_ERR_UNSUPPORTED, "GS_MPI_MODULE='%s' cannot be read", wish);
    }
    own_folder (folder, sizeof (folder));
    snprintf (path, room, "%s/gradsync/" MODULE_FILE, folder);
    if (!access (path, R_OK))
        return GS_OK;
    snprintf (path, room, "%s/" MODULE_FILE, folder);
    if (!access (path, R_OK))
        return GS_OK;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "no " MODULE_FILE " in %s or %s/gradsync: build gradsync --with-mpi, or set "
                     "GS_MPI_MODULE to the module for your MPI library",
                     folder, folder);
}

/* The file an address is in, for messages. */
static const char *file_of (void *address)
{
    Dl_info info;

    return dladdr (address, &info) && info.dli_fname ? info.dli_fname : "an unknown file";
}

/* Two MPI libraries in one process cannot talk to each other: the module must use that there. */
static gs_status_t same_mpi (void *module, const char *path)
{
    void *theirs = dlsym (RTLD_DEFAULT, "MPI_Initialized");
    void *ours = dlsym (module, "MPI_Initialized");

    if (!theirs || !ours || theirs == ours)
        return GS_OK;
    return gsi_fail (GS_ERR_TRANSPORT,
                     "the program uses the MPI library %s, but %s was built for %s: set "
                     "GS_MPI_MODULE to a gradsync-mpi.so built for the program's MPI",
                     file_of (theirs), path, file_of (ours));
}

static gs_status_t load (void)
{
    void *module;
    char path[PATH_BYTES];
    gs_status_t st = find (path, sizeof (path));

    if (st)
        return st;
    /* NODELETE: MPI cannot be started again once it was unloaded. */
    module = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!module)
        return gsi_fail (GS_ERR_TRANSPORT,
                         "cannot load %s: %s. It must be of this gradsync version, and its MPI "
                         "library must be found by the loader",
                         path, dlerror ());
    if ((st = same_mpi (module, path)))
        return st;
    mpi_module = module;
    gsi_log (GS_LOG_TRACE, "mpi", "loaded %s", path);
    return GS_OK;
}

gs_status_t gsi_module_mpi (const char *symbol, const void **address)
{
    gs_status_t st = GS_OK;

    *address = NULL;
    pthread_mutex_lock (&guard);
    if (!mpi_module)
        st = load ();
    if (!st && !(*address = dlsym (mpi_module, symbol)))
        st = gsi_fail (GS_ERR_TRANSPORT, "the MPI module has no %s: %s", symbol, dlerror ());
    pthread_mutex_unlock (&guard);
    return st;
}

bool gsi_module_mpi_present (void)
{
    bool present;

    pthread_mutex_lock (&guard);
    present = mpi_module || dlsym (RTLD_DEFAULT, "MPI_Initialized");
    pthread_mutex_unlock (&guard);
    return present;
}
