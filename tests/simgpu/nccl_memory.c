/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_memory - memory that NCCL makes, and what is registered with a communicator.
 * Nothing is faster here for it; what matters is when the real one refuses, waits or crashes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_sim.h"

#define PAGE ((uintptr_t) 4096)

/* A handle. */
struct nsim_registration {
    struct nsim_registration *next;
    const void *user;
    uintptr_t begin, end;
    int references;
};

static bool is_set (const char *name, bool unset)
{
    const char *text = getenv (name);

    return text && *text ? strcmp (text, "0") != 0 : unset;
}

/* Memory of the driver's parts; without it NCCL hands out that of cudaMalloc. */
static bool shares (void)
{
    return is_set ("NCCL_CUMEM_ENABLE", true);
}

ncclResult_t ncclMemAlloc (void **ptr, size_t size)
{
    ncclResult_t result = nsim_enter_plain ("ncclMemAlloc", 21900);
    cudaError_t error;

    if (result == ncclSuccess && (!ptr || size == 0))
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return result;
    error = shares () ? sim_memory_alloc (ptr, size) : cudaMalloc (ptr, size);
    return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/* ---- Registration ---- */

/* Of a handle that covers [user] there is one. */
static struct nsim_registration *add (ncclComm_t comm, const void *user, size_t size)
{
    uintptr_t begin = (uintptr_t) user & -PAGE,
              end = ((uintptr_t) user + size + PAGE - 1) & -PAGE;
    struct nsim_registration *r;

    pthread_mutex_lock (&comm->mutex);
    r = comm->registered;
    while (r && (r->begin > begin || r->end < end))
        r = r->next;
    if (!r) {
        r = calloc (1, sizeof (*r));
        *r = (struct nsim_registration){comm->registered, user, begin, end, 0};
        comm->registered = r;
    }
    r->references++;
    pthread_mutex_unlock (&comm->mutex);
    return r;
}

static ncclResult_t drop (ncclComm_t comm, const void *sought, const char *who)
{
    struct nsim_registration **at = &comm->registered, *found;

    pthread_mutex_lock (&comm->mutex);
    while (*at && *at != sought)
        at = &(*at)->next;
    if ((found = *at) && found->references == 1)
        *at = found->next;
    pthread_mutex_unlock (&comm->mutex);
    if (!found) {
        sim_misuse ("%s: %p is not registered with communicator %d", who, sought, comm->number);
        return ncclInvalidUsage;
    }
    sim_alias (found->user, 1, who); /* memory that is gone cannot be taken back */
    if (--found->references == 0)
        free (found);
    return ncclSuccess;
}

void nsim_forget_registered (ncclComm_t comm)
{
    while (comm->registered) {
        struct nsim_registration *next = comm->registered->next;

        free (comm->registered);
        comm->registered = next;
    }
}

/* NCCL's list of what is registered has no lock. */
static void check_alone (ncclComm_t comm, const char *who)
{
    if (comm->callers > 0)
        sim_misuse ("%s: another thread is in a call on communicator %d", who, comm->number);
}

ncclResult_t ncclCommRegister (const ncclComm_t comm, void *buff, size_t size, void **handle)
{
    static const char who[] = "ncclCommRegister";
    ncclResult_t result = nsim_enter_plain (who, 21900);

    if (result == ncclSuccess)
        result = nsim_check (comm, who);
    if (result == ncclSuccess && (!buff || size == 0 || !handle))
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return result;
    check_alone (comm, who);
    if (!sim_alias (buff, size, who))
        return ncclInvalidUsage;
    if (nsim_version () < 22000 && !sim_is_shareable (buff)) {
        nsim_warn ("register fails, buffer %p is not aligned", buff);
        return ncclInvalidArgument;
    }
    *handle = is_set ("NCCL_LOCAL_REGISTER", true) ? add (comm, buff, size) : NULL;
    return ncclSuccess;
}

/* What it undoes is what queued operations may use. */
ncclResult_t ncclCommDeregister (const ncclComm_t comm, void *handle)
{
    static const char who[] = "ncclCommDeregister";
    ncclResult_t result = nsim_enter_plain (who, 21900);

    if (result == ncclSuccess)
        result = nsim_check (comm, who);
    if (result != ncclSuccess || !handle)
        return result;
    check_alone (comm, who);
    if (comm->queued > 0)
        sim_misuse ("%s: communicator %d has operations that are not complete", who,
                    comm->number);
    return drop (comm, handle, who);
}

/* ---- The end of memory ---- */

static void check_free (ncclComm_t comm, void *memory)
{
    bool registered = false;

    pthread_mutex_lock (&comm->mutex);
    for (const struct nsim_registration *r = comm->registered; r && !comm->stop; r = r->next)
        registered = registered || r->user == memory;
    pthread_mutex_unlock (&comm->mutex);
    if (registered)
        sim_misuse ("ncclMemFree: %p is still registered with communicator %d", memory,
                    comm->number);
}

/* N.B. waits for no work, unless it is cudaFree. */
ncclResult_t ncclMemFree (void *ptr)
{
    ncclResult_t result = nsim_enter_plain ("ncclMemFree", 21900);

    if (result != ncclSuccess)
        return result;
    nsim_comm_each (check_free, ptr);
    if (!shares ())
        return cudaFree (ptr) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
    if (sim_memory_free (ptr) == cudaSuccess)
        return ncclSuccess;
    sim_misuse ("ncclMemFree: %p is not what ncclMemAlloc made, or was freed before", ptr);
    return ncclUnhandledCudaError;
}
