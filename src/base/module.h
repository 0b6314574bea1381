/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module - parts of gradsync that are loaded on demand, so that the library itself depends on
 * nothing they depend on. There is one today: gradsync-mpi.so.
 */
#ifndef GS_BASE_MODULE_H
#define GS_BASE_MODULE_H

#include <stdbool.h>

#include "gradsync.h"

/*
 * Looks [symbol] up in the MPI module, loading it first if need be; it stays loaded.
 * Searched: GS_MPI_MODULE, else gradsync/gradsync-mpi.so and gradsync-mpi.so beside libgradsync.
 *
 * GS_ERR_UNSUPPORTED if there is none, with where it was sought; GS_ERR_TRANSPORT if it cannot
 * be loaded, with the loader's words. Thread-safe.
 */
gs_status_t gsi_module_mpi (const char *symbol, const void **address);

/* Whether an MPI library is in this process already, loaded by the application or by us. */
bool gsi_module_mpi_present (void);

#endif /* GS_BASE_MODULE_H */
