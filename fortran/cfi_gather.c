/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi_gather - gathers, scatters, exchanges and reductions to a part, on Fortran arrays of any
 * type and rank; fields of blocks.
 *
 * C trusts counts; here arrays know their sizes, and every count is held against them.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"
#include "fortran/cfi_gather.h"
#include "fortran/cfi_read.h"
#include "fortran/handle.h"

/* ---- Pieces of one length ---- */

gs_status_t gsi_fortran_gather (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root)
{
    struct gsi_fortran_argument from = {"gs_gather", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_gather", "recv", recv, recv_is_open};
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &from, &comm, &m);

    gsi_fortran_note (args, recv);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &to, gs_comm_size (comm), &from, &m, &all);
    if (st != GS_OK)
        return st;
    return gs_gather (comm, m.address, all.address, m.count, m.dtype, root, args->stream);
}

gs_status_t gsi_fortran_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root)
{
    struct gsi_fortran_argument from = {"gs_scatter", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_scatter", "recv", recv, recv_is_open};
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &to, &comm, &m);

    gsi_fortran_note (args, send);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &from, gs_comm_size (comm), &to, &m, &all);
    if (st != GS_OK)
        return st;
    return gs_scatter (comm, all.address, m.address, m.count, m.dtype, root, args->stream);
}

gs_status_t gsi_fortran_alltoall (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open)
{
    struct gsi_fortran_argument from = {"gs_alltoall", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_alltoall", "recv", recv, recv_is_open};
    struct gsi_fortran_args all = *args;
    struct gsi_fortran_memory m, other;
    gs_comm_t *comm;
    size_t size;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK)
        return st;
    size = (size_t) gs_comm_size (comm);
    if (args->count_given && args->count > INT64_MAX / (int64_t) size)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %zu times %" PRId64 " elements is more than memory can "
                         "hold",
                         from.call, size, args->count);
    all.count = args->count * (int64_t) size;
    if ((st = gsi_fortran_read (&all, &from, &m)) != GS_OK)
        return st;
    if (m.count % size)
        return gsi_fail (GS_ERR_ARG,
                         "%s: send has %zu elements, which are not as many for each of %zu ranks",
                         from.call, m.count, size);
    if ((st = gsi_fortran_read_times (&all, &to, 1, &from, &m, &other)) != GS_OK)
        return st;
    return gs_alltoall (comm, m.address, other.address, m.count / size, m.dtype, args->stream);
}

gs_status_t gsi_fortran_reduce (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int op,
                                int root)
{
    struct gsi_fortran_argument from = {"gs_reduce", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_reduce", "recv", recv, recv_is_open};
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &from, &comm, &m);

    gsi_fortran_note (args, recv);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &to, 1, &from, &m, &all);
    if (st != GS_OK)
        return st;
    return gs_reduce (comm, m.address, all.address, m.count, m.dtype, (gs_op_t) op, root,
                      args->stream);
}

gs_status_t gsi_fortran_reduce_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                        int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                        int op)
{
    struct gsi_fortran_argument from = {"gs_reduce_scatter", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_reduce_scatter", "recv", recv, recv_is_open};
    struct gsi_fortran_memory m, all;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &to, &comm, &m);

    gsi_fortran_note (args, send);
    if (st == GS_OK)
        st = gsi_fortran_read_times (args, &from, gs_comm_size (comm), &to, &m, &all);
    if (st != GS_OK)
        return st;
    return gs_reduce_scatter (comm, all.address, m.address, m.count, m.dtype, (gs_op_t) op,
                              args->stream);
}

/* ---- Pieces of any length ---- */

/* An array in slices, and its pieces, in elements; counts is NULL where it was not given. */
struct pieces {
    const struct gsi_fortran_argument *a;
    struct gsi_fortran_memory m;
    size_t slice; /* elements */
    size_t *counts, *displs;
};

/* The extents of an array: a scalar is one slice of one element. */
static size_t extent_of (const CFI_cdesc_t *array, int dimension)
{
    if (!array->rank)
        return 1;
    return array->dim[dimension].extent > 0 ? (size_t) array->dim[dimension].extent : 0;
}

static gs_status_t read_slices (const struct gsi_fortran_args *args,
                                const struct gsi_fortran_argument *a, struct pieces *p)
{
    *p = (struct pieces){.a = a, .slice = 1};
    if (a->is_open && a->array->base_addr)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is an assumed-size array: pass a section with an end such as "
                         "x(1:n)",
                         a->call, a->name);
    for (int d = 0; d < a->array->rank - 1; d++)
        p->slice *= extent_of (a->array, d); /* wraps only for what is refused next */
    return gsi_fortran_read (args, a, &p->m);
}

/* Two arrays between which slices go: alike in all dimensions but the last. */
static gs_status_t check_alike (struct pieces *one, struct pieces *other)
{
    const struct gsi_fortran_argument *a = one->a, *b = other->a;
    int rank = a->array->rank ? a->array->rank : 1;

    if (one->m.dtype != other->m.dtype)
        return gsi_fail (GS_ERR_ARG, "%s: send and recv differ in type: declare them alike",
                         a->call);
    if (!one->m.count || !other->m.count) { /* of no elements: the other one counts */
        one->slice = one->m.count ? one->slice : other->slice;
        other->slice = one->slice;
        return GS_OK;
    }
    if (rank != (b->array->rank ? b->array->rank : 1))
        return gsi_fail (GS_ERR_ARG,
                         "%s: send has %d dimensions, recv %d: slices of the last one go between "
                         "them, so declare them alike",
                         a->call, a->array->rank, b->array->rank);
    for (int d = 0; d < rank - 1; d++)
        if (extent_of (a->array, d) != extent_of (b->array, d))
            return gsi_fail (GS_ERR_ARG,
                             "%s: %s has %zu in dimension %d, %s has %zu: they may differ in the "
                             "last only",
                             a->call, a->name, extent_of (a->array, d), d + 1, b->name,
                             extent_of (b->array, d));
    return GS_OK;
}

/* A list for [length] ranks or dimensions, times [slice]; NULL stays NULL. To be freed. */
static gs_status_t read_list (const char *call, const char *name, const CFI_cdesc_t *list,
                              int length, size_t slice, size_t **scaled)
{
    *scaled = NULL;
    if (!list)
        return GS_OK;
    if (list->dim[0].extent != length)
        return gsi_fail (GS_ERR_ARG, "%s: %s has %td elements, but needs %d", call, name,
                         list->dim[0].extent > 0 ? list->dim[0].extent : 0, length);
    if (!(*scaled = calloc ((size_t) length, sizeof (**scaled))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", call);
    for (int i = 0; i < length; i++) {
        int64_t value =
            *(const int64_t *) ((const char *) list->base_addr + (ptrdiff_t) i * list->dim[0].sm);
        if (value < 0 || __builtin_mul_overflow ((size_t) value, slice, &(*scaled)[i]))
            return gsi_fail (GS_ERR_ARG, "%s: %s(%d) is %" PRId64 ": %s", call, name, i + 1,
                             value,
                             value < 0 ? "give 0 or more" : "that is more than memory can hold");
    }
    return GS_OK;
}

static gs_status_t read_lists (struct pieces *p, const char *counts_name,
                               const CFI_cdesc_t *counts, const char *displs_name,
                               const CFI_cdesc_t *displs, int ranks)
{
    gs_status_t st = read_list (p->a->call, counts_name, counts, ranks, p->slice, &p->counts);

    if (st != GS_OK)
        return st;
    if (displs && !counts)
        return gsi_fail (GS_ERR_ARG, "%s: %s without %s: give both, or none", p->a->call,
                         displs_name, counts_name);
    return read_list (p->a->call, displs_name, displs, ranks, p->slice, &p->displs);
}

/* Whether the pieces that were given are inside the array. */
static gs_status_t check_room (const struct pieces *p, int ranks)
{
    size_t next = 0;

    for (int r = 0; r < ranks && p->counts; r++) {
        size_t at = p->displs ? p->displs[r] : next;
        if (p->counts[r] && (at > p->m.count || p->counts[r] > p->m.count - at))
            return gsi_fail (GS_ERR_ARG,
                             "%s: the piece of rank %d, %zu slices behind the first %zu, does "
                             "not fit into %s, which has %zu",
                             p->a->call, r, p->counts[r] / p->slice, at / p->slice, p->a->name,
                             p->m.count / p->slice);
        next = at + p->counts[r];
    }
    return GS_OK;
}

static void release (struct pieces *p)
{
    free (p->counts);
    free (p->displs);
}

gs_status_t gsi_fortran_allgatherv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                    int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                    const CFI_cdesc_t *counts, const CFI_cdesc_t *displs)
{
    struct gsi_fortran_argument from = {"gs_allgatherv", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_allgatherv", "recv", recv, recv_is_open};
    struct pieces in, out = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &from, &in)) != GS_OK ||
        (st = read_slices (args, &to, &out)) != GS_OK || (st = check_alike (&in, &out)) != GS_OK)
        return st;
    st = read_lists (&out, "counts", counts, "displs", displs, gs_comm_size (comm));
    if (st == GS_OK)
        st = check_room (&out, gs_comm_size (comm));
    if (st == GS_OK)
        st = gs_allgatherv (comm, in.m.address, in.m.count, out.m.address, out.m.count,
                            out.counts, out.displs, in.m.dtype, args->stream);
    release (&out);
    return st;
}

gs_status_t gsi_fortran_gatherv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                 const CFI_cdesc_t *counts, const CFI_cdesc_t *displs)
{
    struct gsi_fortran_argument from = {"gs_gatherv", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_gatherv", "recv", recv, recv_is_open};
    struct pieces in, out = {.a = &to};
    gs_comm_t *comm;
    bool is_root;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &from, &in)) != GS_OK)
        return st;
    is_root = gs_comm_rank (comm) == root;
    out.slice = in.slice;
    if (is_root && ((st = read_slices (args, &to, &out)) != GS_OK ||
                    (st = check_alike (&in, &out)) != GS_OK))
        return st;
    st = read_lists (&out, "counts", counts, "displs", displs, gs_comm_size (comm));
    if (st == GS_OK && is_root)
        st = check_room (&out, gs_comm_size (comm));
    if (st == GS_OK)
        st = gs_gatherv (comm, in.m.address, in.m.count, out.m.address, out.m.count, out.counts,
                         out.displs, in.m.dtype, root, args->stream);
    release (&out);
    return st;
}

gs_status_t gsi_fortran_scatterv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                  const CFI_cdesc_t *counts, const CFI_cdesc_t *displs)
{
    struct gsi_fortran_argument from = {"gs_scatterv", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_scatterv", "recv", recv, recv_is_open};
    struct pieces in = {.a = &from}, out;
    gs_comm_t *comm;
    bool is_root;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &to, &out)) != GS_OK)
        return st;
    is_root = gs_comm_rank (comm) == root;
    in.slice = out.slice;
    if (is_root && ((st = read_slices (args, &from, &in)) != GS_OK ||
                    (st = check_alike (&in, &out)) != GS_OK))
        return st;
    if (is_root && !counts)
        return gsi_fail (GS_ERR_ARG, "%s: counts is not given on rank %d, the root", from.call,
                         root);
    st = read_lists (&in, "counts", counts, "displs", displs, gs_comm_size (comm));
    if (st == GS_OK && is_root)
        st = check_room (&in, gs_comm_size (comm));
    if (st == GS_OK)
        st = gs_scatterv (comm, in.m.address, in.counts, in.displs, out.m.address, out.m.count,
                          out.m.dtype, root, args->stream);
    release (&in);
    return st;
}

gs_status_t gsi_fortran_alltoallv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                   int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                   const CFI_cdesc_t *send_counts, const CFI_cdesc_t *recv_counts,
                                   const CFI_cdesc_t *send_displs, const CFI_cdesc_t *recv_displs)
{
    struct gsi_fortran_argument from = {"gs_alltoallv", "send", send, send_is_open};
    struct gsi_fortran_argument to = {"gs_alltoallv", "recv", recv, recv_is_open};
    struct pieces in, out;
    gs_comm_t *comm;
    int size;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &from, &in)) != GS_OK ||
        (st = read_slices (args, &to, &out)) != GS_OK || (st = check_alike (&in, &out)) != GS_OK)
        return st;
    size = gs_comm_size (comm);
    st = read_lists (&in, "send_counts", send_counts, "send_displs", send_displs, size);
    if (st == GS_OK)
        st = read_lists (&out, "recv_counts", recv_counts, "recv_displs", recv_displs, size);
    if (st == GS_OK && (st = check_room (&in, size)) == GS_OK)
        st = check_room (&out, size);
    if (st == GS_OK)
        st = gs_alltoallv (comm, in.m.address, in.counts, in.displs, out.m.address, out.counts,
                           out.displs, in.m.dtype, args->stream);
    release (&in);
    release (&out);
    return st;
}

/* ---- Fields ---- */

/* The extents of an array in the order of C; GS_ERR_ARG if it has not [dims]. */
static gs_status_t turn_extents (const struct gsi_fortran_argument *a, int dims, size_t *extents)
{
    if (a->array->rank != dims)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s has %d dimensions, but offsets is for %d: declare block and "
                         "field with as many as offsets has elements",
                         a->call, a->name, (int) a->array->rank, dims);
    for (int d = 0; d < dims; d++)
        extents[dims - 1 - d] = extent_of (a->array, d);
    return GS_OK;
}

/* Reads an array that must know its end. */
static gs_status_t read_whole (const struct gsi_fortran_args *args,
                               const struct gsi_fortran_argument *a, int dims,
                               struct gsi_fortran_memory *m, size_t *extents)
{
    struct pieces p;
    gs_status_t st = read_slices (args, a, &p);

    if (st != GS_OK)
        return st;
    *m = p.m;
    return turn_extents (a, dims, extents);
}

gs_status_t gsi_fortran_gather_field (struct gsi_fortran_args *args, const CFI_cdesc_t *block,
                                      int block_is_open, const CFI_cdesc_t *offsets,
                                      CFI_cdesc_t *field, int field_is_open, int root)
{
    struct gsi_fortran_argument from = {"gs_gather_field", "block", block, block_is_open};
    struct gsi_fortran_argument to = {"gs_gather_field", "field", field, field_is_open};
    int dims = offsets->dim[0].extent > 0 ? (int) offsets->dim[0].extent : 0;
    size_t extents[CFI_MAX_RANK], shape[CFI_MAX_RANK], places[CFI_MAX_RANK], *list = NULL;
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    bool receives;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, block);
    gsi_fortran_note (args, field);
    if (st != GS_OK || (st = read_whole (args, &from, dims, &m, extents)) != GS_OK)
        return st;
    receives = root == -1 || gs_comm_rank (comm) == root;
    if (receives && (st = read_whole (args, &to, dims, &all, shape)) != GS_OK)
        return st;
    if (receives && all.dtype != m.dtype)
        return gsi_fail (GS_ERR_ARG, "%s: block and field differ in type: declare them alike",
                         from.call);
    st = read_list (from.call, "offsets", offsets, dims, 1, &list);
    for (int d = 0; d < dims && st == GS_OK; d++)
        places[dims - 1 - d] = list[d];
    free (list);
    if (st != GS_OK)
        return st;
    return gs_gather_field (comm, m.address, extents, places, all.address,
                            receives ? shape : NULL, dims, m.dtype, root, args->stream);
}
