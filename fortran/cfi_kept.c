/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi_kept - messages on Fortran arrays of any type and rank; arrays of a boundary or halo, and
 * what is added to a reducer or a plan of checkpoints.
 */
#include "fortran/cfi.h"

#include <inttypes.h>

#include "base/status.h"
#include "fortran/cfi_read.h"
#include "fortran/kept.h"

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

/*
 * The [address] of an array of what [handle] leads to: of its type and shape, or of another rank
 * and as many elements.
 */
static gs_status_t match (struct gsi_fortran_args *args, enum gsi_fortran_kind kind,
                          const struct gsi_fortran_argument *a, void **thing, void **address)
{
    const struct gsi_fortran_crossing *c;
    struct gsi_fortran_memory m;
    int64_t wanted = 1;
    gs_status_t st;

    gsi_fortran_note (args, a->array);
    if ((st = gsi_fortran_handle_find (args->handle, kind, a->call, thing)) != GS_OK)
        return st;
    c = gsi_fortran_handle_more (args->handle);
    args->as = c->dtype;
    args->as_given = gsi_fortran_has_no_kind (c->dtype);
    for (int d = 0; d < c->dims; d++)
        wanted *= c->shape[d];
    args->count = wanted; /* for an array that does not know its end */
    args->count_given = a->is_open;
    if ((st = gsi_fortran_read (args, a, &m)) != GS_OK)
        return st;
    if ((int) m.dtype != c->dtype)
        return gsi_fail (GS_ERR_ARG, "%s: %s is not of the type that it was created with",
                         a->call, a->name);
    if (m.count != (size_t) wanted)
        return gsi_fail (GS_ERR_ARG, "%s: %s has %zu elements, but needs %" PRId64, a->call,
                         a->name, m.count, wanted);
    for (int d = 0; d < c->dims && a->array->rank == c->dims && !a->is_open; d++)
        if (a->array->dim[d].extent != c->shape[d])
            return gsi_fail (GS_ERR_ARG,
                             "%s: %s has %td elements in dimension %d, but needs %" PRId64,
                             a->call, a->name, a->array->dim[d].extent, d + 1, c->shape[d]);
    *address = m.address;
    return GS_OK;
}

gs_status_t gsi_fortran_boundary_forward (struct gsi_fortran_args *args, CFI_cdesc_t *activations,
                                          int is_open)
{
    struct gsi_fortran_argument a = {"gs_boundary_forward", "activations", activations, is_open,
                                     false};
    void *thing, *address;
    gs_status_t st = match (args, GSI_FORTRAN_BOUNDARY, &a, &thing, &address);

    return st != GS_OK ? st : gs_boundary_forward (thing, address, args->stream);
}

gs_status_t gsi_fortran_boundary_backward (struct gsi_fortran_args *args, CFI_cdesc_t *gradients,
                                           int is_open)
{
    struct gsi_fortran_argument a = {"gs_boundary_backward", "gradients", gradients, is_open,
                                     false};
    void *thing, *address;
    gs_status_t st = match (args, GSI_FORTRAN_BOUNDARY, &a, &thing, &address);

    return st != GS_OK ? st : gs_boundary_backward (thing, address, args->stream);
}

gs_status_t gsi_fortran_halo_exchange (struct gsi_fortran_args *args, CFI_cdesc_t *field,
                                       int is_open)
{
    struct gsi_fortran_argument a = {"gs_halo_exchange", "field", field, is_open, false};
    void *thing, *address;
    gs_status_t st = match (args, GSI_FORTRAN_HALO, &a, &thing, &address);

    return st != GS_OK ? st : gs_halo_exchange (thing, address, args->stream);
}

gs_status_t gsi_fortran_halo_adjoint (struct gsi_fortran_args *args, CFI_cdesc_t *grad,
                                      int is_open)
{
    struct gsi_fortran_argument a = {"gs_halo_adjoint", "grad", grad, is_open, false};
    void *thing, *address;
    gs_status_t st = match (args, GSI_FORTRAN_HALO, &a, &thing, &address);

    return st != GS_OK ? st : gs_halo_adjoint (thing, address, args->stream);
}

/* ---- What is added ---- */

/* A list of integers of 32 or 64 bits; NULL stays NULL. */
struct list {
    int64_t values[GS_FIELD_DIMS_MAX], *list;
    int size; /* more than values has: refused by who gets it */
};

static void read_list (const CFI_cdesc_t *array, struct list *l)
{
    l->list = array ? l->values : NULL;
    l->size = array && array->dim[0].extent > 0 ? (int) array->dim[0].extent : 0;
    for (int i = 0; i < l->size && i < GS_FIELD_DIMS_MAX; i++)
        l->values[i] = gsi_fortran_integer_at (array, i);
}

gs_status_t gsi_fortran_reducer_add_array (struct gsi_fortran_args *args, const char *name,
                                           CFI_cdesc_t *array, int is_open,
                                           const CFI_cdesc_t *lower, int *index)
{
    struct gsi_fortran_gradient g;
    struct list l;
    gs_status_t st = gsi_fortran_describe (args, "gs_reducer_add", array, is_open, &g);

    read_list (lower, &l);
    if (st != GS_OK)
        return st;
    return gsi_fortran_reducer_add (args->handle, name, g.dims, g.shape, g.dtype, g.address,
                                    l.size, l.list, index);
}

gs_status_t gsi_fortran_ckpt_add_replicated_array (struct gsi_fortran_args *args,
                                                   const char *name, CFI_cdesc_t *array,
                                                   int is_open, const CFI_cdesc_t *lower)
{
    struct gsi_fortran_gradient g;
    struct list l;
    gs_status_t st = gsi_fortran_describe (args, "gs_ckpt_add_replicated", array, is_open, &g);

    read_list (lower, &l);
    if (st != GS_OK)
        return st;
    return gsi_fortran_ckpt_add_replicated (args->handle, name, g.dims, g.shape, g.dtype,
                                            g.address, l.size, l.list);
}

gs_status_t gsi_fortran_ckpt_add_per_rank_array (struct gsi_fortran_args *args, const char *name,
                                                 CFI_cdesc_t *array, int is_open,
                                                 const CFI_cdesc_t *lower)
{
    struct gsi_fortran_gradient g;
    struct list l;
    gs_status_t st = gsi_fortran_describe (args, "gs_ckpt_add_per_rank", array, is_open, &g);

    read_list (lower, &l);
    if (st != GS_OK)
        return st;
    return gsi_fortran_ckpt_add_per_rank (args->handle, name, g.dims, g.shape, g.dtype, g.address,
                                          l.size, l.list);
}

gs_status_t gsi_fortran_ckpt_add_sharded_array (struct gsi_fortran_args *args, const char *name,
                                                CFI_cdesc_t *array, int is_open,
                                                const CFI_cdesc_t *offsets,
                                                const CFI_cdesc_t *shape,
                                                const CFI_cdesc_t *lower)
{
    struct gsi_fortran_gradient g;
    struct list o, s, l;
    gs_status_t st = gsi_fortran_describe (args, "gs_ckpt_add_sharded", array, is_open, &g);

    read_list (offsets, &o);
    read_list (shape, &s);
    read_list (lower, &l);
    if (st != GS_OK)
        return st;
    return gsi_fortran_ckpt_add_sharded (args->handle, name, g.dims, g.shape, o.size, o.list,
                                         s.size, s.list, g.dtype, g.address, l.size, l.list);
}
