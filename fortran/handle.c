/* SPDX-License-Identifier: BSD-3-Clause */
/* handle - the table behind type(gs_comm) and its like: slots with generations. */
#include "fortran/handle.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/dims.h"
#include "base/status.h"

#define FIRST_SLOTS 16
#define NAME_BYTES  48 /* enough to recognise a communicator in a message */

struct slot {
    void *thing;                /* NULL: reserved, taken or free */
    void *more;                 /* what the binding keeps beside it; NULL if nothing */
    uint32_t generation;        /* of the handle that is, or will next be, given out */
    int next_free;              /* index of the next free slot, -1 at the end */
    char name[NAME_BYTES];      /* of the thing of this or of the last generation; may be empty */
    int rank, size;             /* of the communicator of that thing */
    enum gsi_fortran_kind kind; /* of that thing */
};

/* How messages speak of a kind. */
static const struct words {
    const char *type;
    const char *noun;
    const char *create;
} words[] = {
    [GSI_FORTRAN_COMM] = {"type(gs_comm)", "communicator", "gs_comm_create"},
    [GSI_FORTRAN_REDUCER] = {"type(gs_reducer)", "reducer", "gs_reducer_create"},
    [GSI_FORTRAN_BOUNDARY] = {"type(gs_boundary)", "boundary of communicator",
                              "gs_boundary_create"},
    [GSI_FORTRAN_HALO] = {"type(gs_halo)", "halo of communicator", "gs_halo_create"},
    [GSI_FORTRAN_CKPT] = {"type(gs_ckpt)", "checkpoint plan", "gs_ckpt_create"},
    [GSI_FORTRAN_POOL] = {"type(gs_pool)", "pool", "gs_pool_create"},
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct slot *slots;
static int slot_count, first_free = -1;

static _Thread_local int rank_of_call = -1, size_of_call = -1; /* in this thread's call */

/* A handle is the generation above the slot's index + 1, so that it is never 0. */
static int64_t handle_of (int index)
{
    return (int64_t) ((uint64_t) slots[index].generation << 32) | (index + 1);
}

/* The slot of a handle; NULL if no handle was ever made of this number. */
static struct slot *slot_of (int64_t handle)
{
    int64_t index = (handle & 0xffffffff) - 1;

    return index >= 0 && index < slot_count ? &slots[index] : NULL;
}

static uint32_t generation_of (int64_t handle)
{
    return (uint32_t) ((uint64_t) handle >> 32);
}

static gs_status_t grow (const char *call)
{
    int count = slot_count ? 2 * slot_count : FIRST_SLOTS;
    struct slot *more = realloc (slots, (size_t) count * sizeof (*more));

    if (!more)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory for %d handles", call, count);
    slots = more;
    for (int i = slot_count; i < count; i++)
        slots[i] = (struct slot){.next_free = i + 1 < count ? i + 1 : -1};
    first_free = slot_count;
    slot_count = count;
    return GS_OK;
}

/* Ends the handle and its copies. */
static void release (struct slot *slot)
{
    slot->thing = NULL;
    slot->generation++;
    slot->next_free = first_free;
    first_free = (int) (slot - slots);
}

gs_status_t gsi_fortran_handle_open (enum gsi_fortran_kind kind, int64_t *handle)
{
    gs_status_t st = GS_OK;

    *handle = 0;
    pthread_mutex_lock (&guard);
    if (first_free < 0)
        st = grow (words[kind].create);
    if (st == GS_OK) {
        *handle = handle_of (first_free);
        slots[first_free].kind = kind;
        first_free = slots[first_free].next_free;
    }
    pthread_mutex_unlock (&guard);
    return st;
}

void gsi_fortran_handle_bind (int64_t handle, void *thing, void *more, const gs_comm_t *comm,
                              const char *name)
{
    struct slot *slot;

    pthread_mutex_lock (&guard);
    slot = slot_of (handle);
    if (thing) {
        slot->thing = thing;
        slot->more = more;
        slot->rank = gs_comm_rank (comm);
        slot->size = gs_comm_size (comm);
        snprintf (slot->name, sizeof (slot->name), "%s", name ? name : "");
    } else {
        release (slot);
    }
    pthread_mutex_unlock (&guard);
}

int64_t gsi_fortran_handle_of (const gs_comm_t *comm)
{
    int64_t handle = 0;

    pthread_mutex_lock (&guard);
    for (int i = 0; i < slot_count && !handle; i++)
        if (slots[i].thing == comm && slots[i].kind == GSI_FORTRAN_COMM)
            handle = handle_of (i);
    pthread_mutex_unlock (&guard);
    return handle;
}

static void note (const struct slot *slot)
{
    rank_of_call = slot->rank;
    size_of_call = slot->size;
}

void gsi_fortran_end (int *rank, int *size)
{
    *rank = rank_of_call;
    *size = size_of_call;
    rank_of_call = size_of_call = -1;
    gsi_dims_turn (false);
}

/* With [guard] held. */
static gs_status_t find (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                         struct slot **found)
{
    const struct words *asked = &words[kind];
    struct slot *slot = *found = slot_of (handle);
    bool was_last; /* what was destroyed is what the slot had last */

    gsi_dims_turn (true);
    if (!slot)
        return gsi_fail (GS_ERR_STATE, "%s: this %s was never created: call %s first", call,
                         asked->type, asked->create);
    if (slot->generation == generation_of (handle) && slot->thing) {
        note (slot);
        if (slot->kind == kind)
            return GS_OK;
        return gsi_fail (GS_ERR_ARG, "%s: this is the handle of a %s: give a %s", call,
                         words[slot->kind].type, asked->type);
    }
    was_last =
        slot->generation == generation_of (handle) + 1 && !slot->thing && slot->kind == kind;
    if (was_last)
        note (slot);
    if (was_last && slot->name[0])
        return gsi_fail (GS_ERR_STATE,
                         "%s: %s '%s' was destroyed: create it again, and drop all copies of the "
                         "old variable",
                         call, asked->noun, slot->name);
    return gsi_fail (GS_ERR_STATE,
                     "%s: this %s was destroyed: create it again, and drop all copies of the old "
                     "variable",
                     call, asked->noun);
}

gs_status_t gsi_fortran_handle_find (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                     void **thing)
{
    struct slot *slot;
    gs_status_t st;

    pthread_mutex_lock (&guard);
    st = find (handle, kind, call, &slot);
    *thing = st == GS_OK ? slot->thing : NULL;
    pthread_mutex_unlock (&guard);
    return st;
}

void *gsi_fortran_handle_more (int64_t handle)
{
    struct slot *slot;
    void *more;

    pthread_mutex_lock (&guard);
    slot = slot_of (handle);
    more = slot && slot->generation == generation_of (handle) ? slot->more : NULL;
    pthread_mutex_unlock (&guard);
    return more;
}

gs_status_t gsi_fortran_handle_comm (int64_t handle, const char *call, gs_comm_t **comm)
{
    void *thing;
    gs_status_t st = gsi_fortran_handle_find (handle, GSI_FORTRAN_COMM, call, &thing);

    *comm = thing;
    return st;
}

gs_status_t gsi_fortran_handle_take (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                     void **thing)
{
    struct slot *slot;
    gs_status_t st;

    *thing = NULL;
    if (handle == 0)
        return GS_OK;
    pthread_mutex_lock (&guard);
    st = find (handle, kind, call, &slot);
    if (st == GS_OK) {
        *thing = slot->thing;
        slot->thing = NULL;
    }
    pthread_mutex_unlock (&guard);
    return st;
}

gs_status_t gsi_fortran_handle_close (int64_t handle, void *thing, gs_status_t st)
{
    struct slot *slot;

    pthread_mutex_lock (&guard);
    slot = slot_of (handle);
    if (st == GS_ERR_STATE)
        slot->thing = thing;
    else
        release (slot);
    pthread_mutex_unlock (&guard);
    return st;
}

gs_status_t gsi_fortran_check_amount (const char *call, const char *what, int64_t amount)
{
    if (amount >= 0)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG, "%s: %s is %" PRId64 ": give 0 or more", call, what, amount);
}

gs_status_t gsi_fortran_check_list (const char *call, const char *what, int64_t length,
                                    int64_t wanted, int64_t least)
{
    if (length != wanted)
        return gsi_fail (GS_ERR_ARG, "%s: %s has %" PRId64 " elements, but needs %" PRId64, call,
                         what, length, wanted);
    if (least < 0)
        return gsi_fail (GS_ERR_ARG, "%s: an element of %s is %" PRId64 ": give 0 or more", call,
                         what, least);
    return GS_OK;
}

gs_status_t gsi_fortran_integer_fits (const char *call, const char *what, int is_integer,
                                      int64_t value)
{
    if (!is_integer)
        return gsi_fail (GS_ERR_ARG, "%s: %s is not an integer of 32 or 64 bits", call, what);
    if (value >= INT32_MIN && value <= INT32_MAX)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "%s: %s would be %" PRId64 ": declare it as integer(int64), it has 32 bits",
                     call, what, value);
}
