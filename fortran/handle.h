/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle - what type(gs_comm) holds: a number that stays safe to use after the communicator is
 * gone, also through a copy of the Fortran variable.
 *
 * Fortran copies derived types by assignment, so a pointer inside would dangle in every copy
 * once one of them is destroyed. A handle names a slot of a table and the slot's generation,
 * which moves on when the communicator is destroyed. 0 is the handle of a variable that was
 * never given a communicator.
 *
 * Threads: all functions may be called by any thread.
 */
#ifndef GS_FORTRAN_HANDLE_H
#define GS_FORTRAN_HANDLE_H

#include <stdint.h>

#include "gradsync.h"

/* Reserves a slot before the communicator is made, which is collective and must not be lost. */
gs_status_t gsi_fortran_handle_open (int64_t *handle);

/* Fills a reserved slot; comm NULL gives the slot back. */
void gsi_fortran_handle_bind (int64_t handle, gs_comm_t *comm);

/*
 * Finds the communicator of [handle] for [call], the public name of the procedure that asks.
 * GS_ERR_STATE, and *comm NULL, if it was never created or was destroyed.
 */
gs_status_t gsi_fortran_handle_comm (int64_t handle, const char *call, gs_comm_t **comm);

/*
 * Takes the communicator out of its slot, which ends all copies of the handle; the caller
 * destroys it. *comm is NULL with GS_OK for handle 0, and with GS_ERR_STATE the second time.
 */
gs_status_t gsi_fortran_handle_close (int64_t handle, gs_comm_t **comm);

/*
 * What each call with an address starts with: finds the communicator, and refuses an [amount]
 * below 0, which [what] names: "count", "bytes".
 */
gs_status_t gsi_fortran_begin (int64_t handle, const char *call, const char *what, int64_t amount,
                               gs_comm_t **comm);

#endif /* GS_FORTRAN_HANDLE_H */
