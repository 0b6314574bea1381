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

#define PATH_BYTES 1024

struct module {
    const char *name, *file, *library;
    enum gsi_env variable; /* says where it is */
    void *handle;
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of the handles */
static struct module modules[] = {
#define GSI_MODULE_ROW(id, name, library) \
    [GSI_MODULE_##id] = {name, "gradsync-" name ".so", library, GSI_ENV_##id##_MODULE, NULL},
    GSI_MODULES (GSI_MODULE_ROW)};

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

static gs_status_t find_module (const struct module *module, char *path, size_t room)
{
    const char *setting = gsi_env_text (module->variable),
               *variable = gsi_env_name (module->variable);
    char folder[PATH_BYTES - 64];

    if (*setting) {
        snprintf (path, room, "%s", setting);
        if (!access (path, R_OK))
            return GS_OK;
        return gsi_fail (GS_ERR_UNSUPPORTED, "%s='%s' cannot be read", variable, setting);
    }
    own_folder (folder, sizeof (folder));
    snprintf (path, room, "%s/gradsync/%s", folder, module->file);
    if (!access (path, R_OK))
        return GS_OK;
    snprintf (path, room, "%s/%s", folder, module->file);
    if (!access (path, R_OK))
        return GS_OK;
    return gsi_fail (GS_ERR_UNSUPPORTED,
                     "no %s in %s or %s/gradsync: build gradsync --with-%s, or set %s to the "
                     "module for your %s",
                     module->file, folder, folder, module->name, variable, module->library);
}

/* The file an address is in, for messages. */
static const char *file_of (void *address)
{
    Dl_info info;

    return dladdr (address, &info) && info.dli_fname ? info.dli_fname : "an unknown file";
}

/* Two MPI libraries in one process cannot talk to each other: the module must use that there. */
static gs_status_t same_mpi (void *handle, const char *path)
{
    void *theirs = dlsym (RTLD_DEFAULT, "MPI_Initialized");
    void *ours = dlsym (handle, "MPI_Initialized");

    if (!theirs || !ours || theirs == ours)
        return GS_OK;
    return gsi_fail (GS_ERR_TRANSPORT,
                     "the program uses the MPI library %s, but %s was built for %s: set "
                     "GS_MPI_MODULE to a gradsync-mpi.so built for the program's MPI",
                     file_of (theirs), path, file_of (ours));
}

static const int handled[GSI_HANDLERS] = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS,
                                          SIGFPE, SIGUSR1, SIGSEGV, SIGUSR2, SIGTERM};

void gsi_handlers_keep (struct gsi_handlers *h)
{
    for (int i = 0; i < GSI_HANDLERS; i++)
        h->known[i] = !sigaction (handled[i], NULL, &h->was[i]);
}

void gsi_handlers_restore (const struct gsi_handlers *h)
{
    for (int i = 0; i < GSI_HANDLERS; i++)
        if (h->known[i])
            sigaction (handled[i], &h->was[i], NULL);
}

/*
 * N.B. libpsm2, which libfabric needs, handles some signals as soon as it is loaded, SIGTERM and
 * SIGINT among them.
 * NODELETE: what modules start, MPI and CUDA, cannot be started again once it was unloaded.
 */
static void *load_beside_signals (const char *path)
{
    struct gsi_handlers handlers;
    void *handle;

    gsi_handlers_keep (&handlers);
    handle = dlopen (path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    gsi_handlers_restore (&handlers);
    return handle;
}

static gs_status_t load_module (struct module *module)
{
    void *handle;
    char path[PATH_BYTES];
    gs_status_t st = find_module (module, path, sizeof (path));

    if (st)
        return st;
    if (!(handle = load_beside_signals (path)))
        return gsi_fail (GS_ERR_TRANSPORT,
                         "cannot load %s: %s. Its %s must be found (load its module, or set "
                         "LD_LIBRARY_PATH), and it must be of this gradsync version",
                         path, dlerror (), module->library);
    if (module == &modules[GSI_MODULE_MPI] && (st = same_mpi (handle, path)))
        return st;
    module->handle = handle;
    gsi_log (GS_LOG_TRACE, module->name, "loaded %s", path);
    return GS_OK;
}

gs_status_t gsi_module_find (enum gsi_module which, const char *symbol, const void **address)
{
    struct module *module = &modules[which];
    gs_status_t st = GS_OK;

    *address = NULL;
    pthread_mutex_lock (&guard);
    if (!module->handle)
        st = load_module (module);
    if (!st && !(*address = dlsym (module->handle, symbol)))
        st = gsi_fail (GS_ERR_TRANSPORT, "%s has no %s: %s", module->file, symbol, dlerror ());
    pthread_mutex_unlock (&guard);
    return st;
}

enum gsi_module gsi_module_of (int transport)
{
    const char *name = gsi_transport_name (transport);
    int i = 0;

    while (i < GSI_MODULE_COUNT - 1 && strcmp (modules[i].name, name))
        i++;
    return (enum gsi_module) i;
}

bool gsi_module_mpi_present (void)
{
    bool present;

    pthread_mutex_lock (&guard);
    present = modules[GSI_MODULE_MPI].handle || dlsym (RTLD_DEFAULT, "MPI_Initialized");
    pthread_mutex_unlock (&guard);
    return present;
}
