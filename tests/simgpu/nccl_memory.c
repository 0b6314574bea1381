/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_memory - memory that NCCL makes, what is registered with a communicator, and windows.
 * Nothing is faster here for it; what matters is when the real one refuses, waits or crashes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nccl_sim.h"

#define PAGE ((uintptr_t) 4096)

/* A handle, or a window. */
struct nsim_registration {
    struct nsim_registration *next;
    const void *user;
    uintptr_t begin, end;
    int references;
    bool window;
    struct nsim_registration *local; /* (window) */
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
static struct nsim_registration *add (ncclComm_t comm, const void *user, size_t size, bool window)
{
    uintptr_t begin = (uintptr_t) user & -PAGE,
              end = ((uintptr_t) user + size + PAGE - 1) & -PAGE;
    struct nsim_registration *r;

    pthread_mutex_lock (&comm->mutex);
    r = window ? NULL : comm->registered;
    while (r && (r->window || r->begin > begin || r->end < end))
        r = r->next;
    if (!r) {
        r = calloc (1, sizeof (*r));
        *r = (struct nsim_registration){comm->registered, user, begin, end, 0, window, NULL};
        comm->registered = r;
    }
    r->references++;
    pthread_mutex_unlock (&comm->mutex);
    return r;
}

static ncclResult_t drop (ncclComm_t comm, const void *sought, bool window, const char *who)
{
    struct nsim_registration **at = &comm->registered, *found;

    pthread_mutex_lock (&comm->mutex);
    while (*at && (*at != sought || (*at)->window != window))
        at = &(*at)->next;
    if ((found = *at) && found->references == 1)
        *at = found->next;
    pthread_mutex_unlock (&comm->mutex);
    if (!found) {
        sim_misuse ("%s: %p is not registered with communicator %d", who, sought, comm->number);
        return ncclInvalidUsage;
    }
    sim_alias (found->user, 1, who); /* memory that is gone cannot be taken back */
    if (found->local)
        drop (comm, found->local, false, who);
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

static ncclResult_t enlist (ncclComm_t comm, void *buff, size_t size, void **handle,
                            const char *who)
{
    if (!sim_alias (buff, size, who))
        return ncclInvalidUsage;
    if (nsim_version () < 22000 && !sim_is_shareable (buff)) {
        nsim_warn ("register fails, buffer %p is not aligned", buff);
        return ncclInvalidArgument;
    }
    *handle = NULL;
    if (is_set ("NCCL_LOCAL_REGISTER", true))
        *handle = add (comm, buff, size, false);
    return ncclSuccess;
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
    return enlist (comm, buff, size, handle, who);
}

/* What it undoes is what queued operations may use. */
static ncclResult_t check_idle (ncclComm_t comm, const char *who)
{
    ncclResult_t result = nsim_check (comm, who);

    if (result != ncclSuccess)
        return result;
    check_alone (comm, who);
    if (comm->queued > 0)
        sim_misuse ("%s: communicator %d has operations that are not complete", who,
                    comm->number);
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister (const ncclComm_t comm, void *handle)
{
    static const char who[] = "ncclCommDeregister";
    ncclResult_t result = nsim_enter_plain (who, 21900);

    if (result == ncclSuccess)
        result = check_idle (comm, who);
    if (result != ncclSuccess || !handle)
        return result;
    return drop (comm, handle, false, who);
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

/* ---- Windows ---- */

/* Whether they are more than a registration of this rank's. */
static bool symmetric (void)
{
    return shares () && is_set ("NCCL_WIN_ENABLE", true);
}

struct window_job {
    struct nsim_job base;
    void *buff;
    size_t size;
    ncclWindow_t *out;
    bool stall;
    ncclResult_t injected;
};

/*
 * What the ranks tell each other goes the way of their operations here, which must have ended.
 * N.B. 2.27 says success where the memory is none that it can use, and later ones fail before
 * they wait for the others, who then wait for ever; what SIM_FAULT asks for comes after that.
 */
static ncclResult_t open_window (struct window_job *job)
{
    static const char who[] = "ncclCommWindowRegister";
    ncclComm_t comm = job->base.comm;
    struct nsim_registration *window;
    void *handle;
    ncclResult_t result;
    enum nsim_end end;

    if (!sim_is_shareable (job->buff) && nsim_version () < 22800)
        return ncclSuccess;
    if (!sim_is_shareable (job->buff)) {
        nsim_warn ("%s: %p is not of cuMemCreate", who, job->buff);
        return ncclUnhandledCudaError;
    }
    result = enlist (comm, job->buff, job->size, &handle, who);
    if (result != ncclSuccess)
        return result;
    end = nsim_barrier (comm, NSIM_WINDOW, job->size);
    if (end != NSIM_OK)
        return end == NSIM_LOST ? ncclRemoteError : ncclInternalError;
    if (job->injected != ncclSuccess) {
        drop (comm, handle, false, who);
        return job->injected;
    }
    window = add (comm, job->buff, job->size, true);
    window->local = handle;
    *job->out = (ncclWindow_t) (void *) window;
    return ncclSuccess;
}

static ncclResult_t run_window (struct nsim_job *base)
{
    struct window_job *job = (struct window_job *) (void *) base;
    ncclComm_t comm = base->comm;
    ncclResult_t result = ncclInternalError;

    pthread_mutex_lock (&comm->mutex);
    while (comm->queued > 0 && !comm->stop)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    comm->running++;
    pthread_mutex_unlock (&comm->mutex);
    if (job->stall)
        nsim_await_stop (comm);
    else
        result = open_window (job);
    pthread_mutex_lock (&comm->mutex);
    comm->running--;
    pthread_cond_broadcast (&comm->cond);
    pthread_mutex_unlock (&comm->mutex);
    return result;
}

ncclResult_t ncclCommWindowRegister (ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win,
                                     int winFlags)
{
    static const char who[] = "ncclCommWindowRegister";
    struct window_job job = {
        .base = {.comm = comm, .run = run_window}, .buff = buff, .size = size, .out = win};
    struct nsim_fate fate;
    ncclResult_t result;
    void *handle;

    (void) winFlags;
    job.injected = nsim_enter (who, 22700, &fate);
    job.stall = fate.stall;
    result = nsim_check (comm, who);
    if (result == ncclSuccess && !win)
        result = ncclInvalidArgument;
    if (result != ncclSuccess)
        return nsim_group_fail (result);
    if (nsim_version () < 22800)
        *win = NULL;
    if (!buff || size == 0)
        return ncclSuccess;
    check_alone (comm, who);
    if (symmetric ())
        return nsim_group_fail (nsim_group_job (&job.base, sizeof (job)));
    if (nsim_version () < 22800)
        return ncclSuccess;
    result = enlist (comm, buff, size, &handle, who);
    if (result == ncclSuccess)
        *win = (ncclWindow_t) handle;
    return result;
}

/* N.B. the real one reads through [comm] without a look. */
ncclResult_t ncclCommWindowDeregister (ncclComm_t comm, ncclWindow_t win)
{
    static const char who[] = "ncclCommWindowDeregister";
    ncclResult_t result = nsim_enter_plain (who, 22700);

    if (result != ncclSuccess || !win)
        return result;
    if (!comm) {
        sim_misuse ("%s: NCCL crashes here: the communicator is NULL", who);
        return ncclInvalidArgument;
    }
    result = check_idle (comm, who);
    if (result != ncclSuccess)
        return result;
    return drop (comm, (void *) win, symmetric (), who);
}
