/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module - parts of gradsync that are loaded on demand, so that the library itself depends on
 * nothing they depend on: MPI, and the CUDA runtime, which a cluster's nodes without GPUs lack.
 */
#ifndef GS_BASE_MODULE_H
#define GS_BASE_MODULE_H

#include <stdbool.h>

#include "gradsync.h"

enum gsi_module { GSI_MODULE_MPI = 0, GSI_MODULE_CUDA = 1 };

/*
 * Looks [symbol] up in a module, loading it first if need be; it stays loaded.
 * Searched: GS_MPI_MODULE or GS_CUDA_MODULE, else gradsync/FILE and FILE beside libgradsync, FILE
 * being gradsync-mpi.so or gradsync-cuda.so.
 *
 * GS_ERR_UNSUPPORTED if there is none, with where it was sought; GS_ERR_TRANSPORT if it cannot
 * be loaded, with the loader's words. Thread-safe.
 */
gs_status_t gsi_module_find (enum gsi_module which, const char *symbol, const void **address);

/* Whether an MPI library is in this process already, loaded by the application or by us. */
bool gsi_module_mpi_present (void);

#endif /* GS_BASE_MODULE_H */
