/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle - what type(gs_comm), type(gs_reducer), type(gs_boundary), type(gs_halo), type(gs_ckpt)
 * and type(gs_pool) hold: a number that stays safe to use after the thing is gone, also through a
 * copy of the Fortran variable.
 *
 * Fortran copies derived types by assignment, so a pointer inside would dangle in every copy
 * once one of them is destroyed. A handle names a slot of a table and the slot's generation,
 * which moves on when the thing is destroyed. 0 is the handle of a variable that was never given
 * one. A slot knows the kind of what it has, so that no handle leads to a thing of another kind.
 *
 * Threads: all functions may be called by any thread.
 */
#ifndef GS_FORTRAN_HANDLE_H
#define GS_FORTRAN_HANDLE_H

#include <stdint.h>

#include "gradsync.h"

/* What a handle leads to; the same in gradsync_structs.f90. */
enum gsi_fortran_kind {
    GSI_FORTRAN_COMM = 0,     /* gs_comm_t */
    GSI_FORTRAN_REDUCER = 1,  /* gs_reducer_t, beside it struct gsi_fortran_gradients */
    GSI_FORTRAN_BOUNDARY = 2, /* gs_boundary_t, beside it struct gsi_fortran_crossing */
    GSI_FORTRAN_HALO = 3,     /* gs_halo_t, the same */
    GSI_FORTRAN_CKPT = 4,     /* gs_ckpt_t */
    GSI_FORTRAN_POOL = 5      /* gs_pool_t, beside it struct gsi_fortran_pool */
};

/* Reserves a slot before the thing is made, which may be collective and must not be lost. */
gs_status_t gsi_fortran_handle_open (enum gsi_fortran_kind kind, int64_t *handle);

/*
 * Fills a reserved slot with a thing of [comm]; thing NULL gives it back. [more], or NULL, is
 * what the binding keeps beside it. [name], or NULL, is for messages; copied.
 */
void gsi_fortran_handle_bind (int64_t handle, void *thing, void *more, const gs_comm_t *comm,
                              const char *name);

/* The handle of what is, or was, a communicator at this address; or 0. */
int64_t gsi_fortran_handle_of (const gs_comm_t *comm);

/*
 * Finds what [handle] leads to for [call], the public name of the procedure that asks.
 * GS_ERR_STATE, and *thing NULL, if it was never created or was destroyed; GS_ERR_ARG if it is
 * of another kind. From here to gsi_fortran_end texts count dimensions as Fortran does.
 */
gs_status_t gsi_fortran_handle_find (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                     void **thing);

/* What is kept beside a thing that was found, or taken and not yet closed. */
void *gsi_fortran_handle_more (int64_t handle);

/* The same as gsi_fortran_handle_find for a communicator. */
gs_status_t gsi_fortran_handle_comm (int64_t handle, const char *call, gs_comm_t **comm);

/*
 * Takes the thing out of its slot for the caller, who destroys it and tells how that went: until
 * then no copy of the handle leads to it. *thing is NULL with GS_OK for handle 0, and with
 * GS_ERR_STATE the second time.
 */
gs_status_t gsi_fortran_handle_take (int64_t handle, enum gsi_fortran_kind kind, const char *call,
                                     void **thing);

/*
 * What follows a take: [st] is that of the destroy. With GS_ERR_STATE [thing] is still there, and
 * all copies of the handle lead to it again; else they end. Returns [st].
 */
gs_status_t gsi_fortran_handle_close (int64_t handle, void *thing, gs_status_t st);

/*
 * The end of a call, in which a handle may have been found or taken: the rank in the communicator
 * that was meant, and its size; -1 if there was none.
 */
void gsi_fortran_end (int *rank, int *size);

/* Refuses an [amount] below 0, which [what] names: "count", "bytes". */
gs_status_t gsi_fortran_check_amount (const char *call, const char *what, int64_t amount);

/*
 * Refuses a list [what] of a call with addresses, such as counts by rank, that has not the
 * [wanted] length, or whose [least] element is below 0.
 */
gs_status_t gsi_fortran_check_list (const char *call, const char *what, int64_t length,
                                    int64_t wanted, int64_t least);

/*
 * Refuses an argument [what] that is not an integer of 32 or 64 bits or, where it is one, a
 * [value] that does not fit into the 32 bits that it has.
 */
gs_status_t gsi_fortran_integer_fits (const char *call, const char *what, int is_integer,
                                      int64_t value);

#endif /* GS_FORTRAN_HANDLE_H */
