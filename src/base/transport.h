/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transport - every transport and every module, once.
 *
 * To add a network of hosts: a row in each list here, with GS_<ID>_MODULE in env.def, and a
 * folder whose module gradsync-<name>.so has struct gsi_coll_ops gsi_coll_<name>
 * (src/host/net.h).
 */
#ifndef GS_BASE_TRANSPORT_H
#define GS_BASE_TRANSPORT_H

#include "gradsync.h"

/* What a transport joins. */
enum gsi_joins { GSI_JOINS_NOBODY, GSI_JOINS_HOSTS, GSI_JOINS_GPUS };

/* ID, name, what it joins. The order is that of gs_transport_t, which has no names for those that
 * GS_TRANSPORT alone chooses: which network there is is a matter of the site, not of programs. */
#define GSI_TRANSPORTS(ROW)              \
    ROW (SELF, "self", GSI_JOINS_NOBODY) \
    ROW (MPI, "mpi", GSI_JOINS_HOSTS)    \
    ROW (NCCL, "nccl", GSI_JOINS_GPUS)   \
    ROW (OFI, "ofi", GSI_JOINS_HOSTS)

/* ID, name (also of its log topic), what must be found for it. A network of hosts has the id and
 * name of its transport. */
#define GSI_MODULES(ROW)            \
    ROW (MPI, "mpi", "MPI library") \
    ROW (OFI, "ofi", "libfabric")   \
    ROW (CUDA, "cuda", "CUDA runtime")

#define GSI_TRANSPORT_ID(id, name, joins) GSI_TRANSPORT_##id,
enum gsi_transport { GSI_TRANSPORT_AUTO, GSI_TRANSPORTS (GSI_TRANSPORT_ID) GSI_TRANSPORT_COUNT };
#undef GSI_TRANSPORT_ID

_Static_assert((int) GSI_TRANSPORT_SELF == (int) GS_TRANSPORT_SELF &&
                   (int) GSI_TRANSPORT_MPI == (int) GS_TRANSPORT_MPI &&
                   (int) GSI_TRANSPORT_NCCL == (int) GS_TRANSPORT_NCCL,
               "the order of gs_transport_t");

/* "auto|self|...", for GS_TRANSPORT. */
#define GSI_TRANSPORT_WORD(id, name, joins) "|" name
#define GSI_TRANSPORT_WORDS                 "auto" GSI_TRANSPORTS (GSI_TRANSPORT_WORD)

/* Of a number that is none: NULL, GSI_JOINS_NOBODY. */
const char *gsi_transport_name (int transport);
enum gsi_joins gsi_transport_joins (int transport);

/* The transport [name]; GSI_TRANSPORT_AUTO if there is none. */
int gsi_transport_of (const char *name);

#endif /* GS_BASE_TRANSPORT_H */
