/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_nccl_load - finds NCCL when a rank first meets a GPU. Programs that run without GPUs need
 * none, and functions newer than 2.18 are used where they are.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "transport/coll_nccl.h"
#include "transport/nccl_versions.h"

#define LIBRARY "libnccl.so.2"

struct gsi_nccl gsi_nccl;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of what follows and the above */
static void *library;

/* Looks all functions up; the name of the first that is not there, or NULL. */
static const char *look_up (void *from, struct gsi_nccl *found)
{
#define LOOK_UP(name)                                       \
    *(void **) (&found->name) = dlsym (from, "nccl" #name); \
    if (!found->name)                                       \
        return "nccl" #name;
    GSI_NCCL_FUNCTIONS (LOOK_UP)
#undef LOOK_UP
    *(void **) (&found->CommInitRankScalable) = dlsym (from, "ncclCommInitRankScalable");
    return NULL;
}

/* Opens NCCL and asks for its version: an old one may lack functions. */
static gs_status_t open_library (void **handle, int *version)
{
    ncclResult_t (*get_version) (int *);

    if (!(*handle = dlopen (LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)))
        return gsi_fail (GS_ERR_TRANSPORT,
                         "cannot load NCCL: %s. Load the module of NCCL, or set LD_LIBRARY_PATH",
                         dlerror ());
    *(void **) (&get_version) = dlsym (*handle, "ncclGetVersion");
    if (!get_version || get_version (version))
        return gsi_fail (GS_ERR_TRANSPORT, LIBRARY " does not tell its version: is it NCCL?");
    return GS_OK;
}

/* Whether NCCL connects when a communicator is made, by the user's wish, and not in calls. */
static bool connects_early (void)
{
    const char *late = getenv ("NCCL_RUNTIME_CONNECT");

    return late && !strcmp (late, "0");
}

/* Acts on the table of versions. */
static gs_status_t judge_version (int version)
{
    const struct gsi_nccl_versions *row = gsi_nccl_versions_of (version);
    char text[32];

    gsi_nccl_version_print (version, text, sizeof (text));
    if (row->use == GSI_NCCL_CONDITIONAL && connects_early ())
        return GS_OK;
    if (row->use == GSI_NCCL_REFUSED || row->use == GSI_NCCL_CONDITIONAL)
        return gsi_fail (GS_ERR_TRANSPORT,
                         LIBRARY " is NCCL %s, which gradsync refuses, as it %s: %s", text,
                         row->reason, row->answer);
    if (*row->reason)
        gsi_log (GS_LOG_INFO, "nccl", "NCCL %s %s: gradsync %s", text, row->reason, row->answer);
    return GS_OK;
}

static gs_status_t load_nccl (void)
{
    struct gsi_nccl found = {0};
    const char *missing;
    void *handle;
    gs_status_t st = open_library (&handle, &found.version);

    if (st || (st = judge_version (found.version)))
        return st;
    if ((missing = look_up (handle, &found)))
        return gsi_fail (GS_ERR_TRANSPORT,
                         LIBRARY " has no %s: gradsync needs NCCL 2.18 or later", missing);
    if (found.version < NCCL_VERSION (2, 23, 0))
        found.CommInitRankScalable = NULL;
    if (found.version / 100 != NCCL_VERSION_CODE / 100)
        gsi_log (GS_LOG_INFO, "nccl", "built with NCCL %d.%d, running with %d.%d", NCCL_MAJOR,
                 NCCL_MINOR, found.version / 10000, found.version / 100 % 100);
    gsi_nccl = found;
    library = handle;
    return GS_OK;
}

gs_status_t gsi_nccl_version_find (int *version)
{
    void *handle;

    return open_library (&handle, version);
}

gs_status_t gsi_coll_nccl_load (void)
{
    gs_status_t st = GS_OK;

    pthread_mutex_lock (&guard);
    if (!library)
        st = load_nccl ();
    pthread_mutex_unlock (&guard);
    return st;
}
