/* SPDX-License-Identifier: BSD-3-Clause */
/* cfi_p2p - messages on Fortran arrays of any type and rank, and arrays of a boundary or halo. */
#include "fortran/cfi_p2p.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "base/status.h"
#include "fortran/cfi_read.h"

gs_status_t gsi_fortran_send (struct gsi_fortran_args *args, const CFI_cdesc_t *buf, int is_open,
                              int peer)
{
    struct gsi_fortran_argument a = {"gs_send", "buf", buf, is_open, true};
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    return st != GS_OK ? st : gs_send (comm, m.address, m.count, m.dtype, peer, args->stream);
}

gs_status_t gsi_fortran_recv (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                              int peer)
{
    struct gsi_fortran_argument a = {"gs_recv", "buf", buf, is_open, false};
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    return st != GS_OK ? st : gs_recv (comm, m.address, m.count, m.dtype, peer, args->stream);
}

/* Types without a kind of Fortran are given in integers that stand for them. */
static int has_no_kind (int dtype)
{
    return gsi_dtype_is_reduced ((gs_dtype_t) dtype) || (dtype >= GS_U8 && dtype <= GS_U64);
}

gs_status_t gsi_fortran_match (struct gsi_fortran_args *args, const char *call, const char *name,
                               CFI_cdesc_t *buf, int is_open, int dtype, int dims,
                               const int64_t *shape, void **address)
{
    struct gsi_fortran_argument a = {call, name, buf, is_open, false};
    struct gsi_fortran_memory m;
    int64_t wanted = 1;
    gs_status_t st;

    *address = NULL;
    gsi_fortran_note (args, buf);
    args->as = dtype;
    args->as_given = has_no_kind (dtype);
    for (int d = 0; d < dims; d++)
        wanted *= shape[d];
    args->count = wanted; /* for an array that does not know its end */
    args->count_given = is_open;
    if ((st = gsi_fortran_read (args, &a, &m)) != GS_OK)
        return st;
    if ((int) m.dtype != dtype)
        return gsi_fail (GS_ERR_ARG, "%s: %s is not of the type that it was created with", call,
                         name);
    if (m.count != (size_t) wanted)
        return gsi_fail (GS_ERR_ARG, "%s: %s has %zu elements, but needs %" PRId64, call, name,
                         m.count, wanted);
    for (int d = 0; d < dims && buf->rank == dims && !is_open; d++)
        if (buf->dim[d].extent != shape[d])
            return gsi_fail (
                GS_ERR_ARG, "%s: %s has %" PRId64 " elements in dimension %d, but needs %" PRId64,
                call, name, (int64_t) buf->dim[d].extent, d + 1, shape[d]);
    *address = m.address;
    return GS_OK;
}
