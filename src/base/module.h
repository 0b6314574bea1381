/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module - parts of gradsync that are loaded on demand, so that the library itself depends on
 * nothing they depend on: MPI, libfabric, and the CUDA runtime, which nodes without GPUs lack.
 */
#ifndef GS_BASE_MODULE_H
#define GS_BASE_MODULE_H

#include <signal.h>
#include <stdbool.h>

#include "base/transport.h"
#include "gradsync.h"

#define GSI_MODULE_ID(id, name, library) GSI_MODULE_##id,
enum gsi_module { GSI_MODULES (GSI_MODULE_ID) GSI_MODULE_COUNT };
#undef GSI_MODULE_ID

/*
 * Looks [symbol] up in a module, loading it first if need be; it stays loaded.
 * Searched: GS_<NAME>_MODULE, else gradsync/FILE and FILE beside libgradsync, FILE being
 * gradsync-<name>.so.
 *
 * GS_ERR_UNSUPPORTED if there is none, with where it was sought; GS_ERR_TRANSPORT if it cannot
 * be loaded, with the loader's words. Thread-safe.
 */
gs_status_t gsi_module_find (enum gsi_module which, const char *symbol, const void **address);

/*
 * What the process does with signals, which stays the program's beside libraries that take some
 * as they are loaded, or started: kept before, restored afterwards.
 */
#define GSI_HANDLERS 11
struct gsi_handlers {
    struct sigaction was[GSI_HANDLERS];
    bool known[GSI_HANDLERS];
};
void gsi_handlers_keep (struct gsi_handlers *handlers);
void gsi_handlers_restore (const struct gsi_handlers *handlers);

/* The module of the transport [transport], which joins hosts. */
enum gsi_module gsi_module_of (int transport);

/* Whether an MPI library is in this process already, loaded by the application or by us. */
bool gsi_module_mpi_present (void);

#endif /* GS_BASE_MODULE_H */
