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
#include "fortran/cfi.h"
#include "fortran/cfi_read.h"
#include "fortran/handle.h"

/* ---- Pieces of one length ---- */

gs_status_t gsi_fortran_gather (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_gather", "gs_scatter_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_gather", "gs_scatter_backward", recv, recv_is_open);
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &from, &comm, &m);

    gsi_fortran_note (args, recv);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &to, gs_comm_size (comm), &from, &m, &all);
    if (st != GS_OK)
        return st;
    return (args->is_backward ? gs_scatter_backward : gs_gather) (
        comm, m.address, all.address, m.count, m.dtype, root, args->stream);
}

gs_status_t gsi_fortran_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_scatter", "gs_gather_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_scatter", "gs_gather_backward", recv, recv_is_open);
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &to, &comm, &m);

    gsi_fortran_note (args, send);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &from, gs_comm_size (comm), &to, &m, &all);
    if (st != GS_OK)
        return st;
    return (args->is_backward ? gs_gather_backward : gs_scatter) (
        comm, all.address, m.address, m.count, m.dtype, root, args->stream);
}

gs_status_t gsi_fortran_alltoall (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_alltoall", "gs_alltoall_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_alltoall", "gs_alltoall_backward", recv, recv_is_open);
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
                         "%s: %s has %zu elements, which are not as many for each of %zu ranks",
                         from.call, from.name, m.count, size);
    if ((st = gsi_fortran_read_times (&all, &to, 1, &from, &m, &other)) != GS_OK)
        return st;
    return (args->is_backward ? gs_alltoall_backward : gs_alltoall) (
        comm, m.address, other.address, m.count / size, m.dtype, args->stream);
}

gs_status_t gsi_fortran_reduce (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int op,
                                int root)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_reduce", "gs_broadcast_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_reduce", "gs_broadcast_backward", recv, recv_is_open);
    struct gsi_fortran_memory m, all = {0};
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &from, &comm, &m);

    gsi_fortran_note (args, recv);
    if (st == GS_OK && gs_comm_rank (comm) == root)
        st = gsi_fortran_read_times (args, &to, 1, &from, &m, &all);
    if (st != GS_OK)
        return st;
    if (args->is_backward)
        return gs_broadcast_backward (comm, m.address, all.address, m.count, m.dtype, root,
                                      args->stream);
    return gs_reduce (comm, m.address, all.address, m.count, m.dtype, (gs_op_t) op, root,
                      args->stream);
}

gs_status_t gsi_fortran_reduce_scatter (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                        int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                        int op)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_reduce_scatter", "gs_allgather_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_reduce_scatter", "gs_allgather_backward", recv, recv_is_open);
    struct gsi_fortran_memory m, all;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &to, &comm, &m);

    gsi_fortran_note (args, send);
    if (st == GS_OK)
        st = gsi_fortran_read_times (args, &from, gs_comm_size (comm), &to, &m, &all);
    if (st != GS_OK)
        return st;
    if (args->is_backward)
        return gs_allgather_backward (comm, all.address, m.address, m.count, m.dtype,
                                      (gs_grad_contract_t) op, args->stream);
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
        return gsi_fail (GS_ERR_ARG, "%s: %s and %s differ in type: declare them alike", a->call,
                         a->name, b->name);
    if (!one->m.count || !other->m.count) { /* of no elements: the other one counts */
        one->slice = one->m.count ? one->slice : other->slice;
        other->slice = one->slice;
        return GS_OK;
    }
    if (rank != (b->array->rank ? b->array->rank : 1))
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s has %d dimensions, %s %d: slices of the last one go between "
                         "them, so declare them alike",
                         a->call, a->name, a->array->rank, b->name, b->array->rank);
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
    if (length && !list->base_addr)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is not allocated, or a pointer that is not associated", call,
                         name);
    if (!(*scaled = calloc ((size_t) length, sizeof (**scaled))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", call);
    for (int i = 0; i < length; i++) {
        int64_t value = gsi_fortran_integer_at (list, i);
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
    struct gsi_fortran_argument from = gsi_fortran_from (
        args, "gs_allgatherv", "gs_reduce_scatterv_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_allgatherv", "gs_reduce_scatterv_backward", recv, recv_is_open);
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
        st = (args->is_backward ? gs_reduce_scatterv_backward : gs_allgatherv) (
            comm, in.m.address, in.m.count, out.m.address, out.m.count, out.counts, out.displs,
            in.m.dtype, args->stream);
    release (&out);
    return st;
}

gs_status_t gsi_fortran_reduce_scatterv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                         int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                         int op, const CFI_cdesc_t *counts,
                                         const CFI_cdesc_t *displs)
{
    static const char call[] = "gs_reduce_scatterv", backward[] = "gs_allgatherv_backward";
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, call, backward, send, send_is_open);
    struct gsi_fortran_argument to = gsi_fortran_to (args, call, backward, recv, recv_is_open);
    struct pieces in = {0}, out;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &from, &in)) != GS_OK ||
        (st = read_slices (args, &to, &out)) != GS_OK || (st = check_alike (&in, &out)) != GS_OK)
        return st;
    st = read_lists (&in, "counts", counts, "displs", displs, gs_comm_size (comm));
    if (st == GS_OK)
        st = check_room (&in, gs_comm_size (comm));
    if (st == GS_OK && args->is_backward)
        st = gs_allgatherv_backward (comm, in.m.address, in.counts, in.displs, out.m.address,
                                     out.m.count, in.m.dtype, (gs_grad_contract_t) op,
                                     args->stream);
    else if (st == GS_OK)
        st = gs_reduce_scatterv (comm, in.m.address, in.counts, in.displs, out.m.address,
                                 out.m.count, in.m.dtype, (gs_op_t) op, args->stream);
    release (&in);
    return st;
}

gs_status_t gsi_fortran_gatherv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                 int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                 const CFI_cdesc_t *counts, const CFI_cdesc_t *displs)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_gatherv", "gs_scatterv_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_gatherv", "gs_scatterv_backward", recv, recv_is_open);
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
        st = (args->is_backward ? gs_scatterv_backward : gs_gatherv) (
            comm, in.m.address, in.m.count, out.m.address, out.m.count, out.counts, out.displs,
            in.m.dtype, root, args->stream);
    release (&out);
    return st;
}

gs_status_t gsi_fortran_scatterv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                  int send_is_open, CFI_cdesc_t *recv, int recv_is_open, int root,
                                  const CFI_cdesc_t *counts, const CFI_cdesc_t *displs)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_scatterv", "gs_gatherv_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_scatterv", "gs_gatherv_backward", recv, recv_is_open);
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
        st = (args->is_backward ? gs_gatherv_backward : gs_scatterv) (
            comm, in.m.address, in.counts, in.displs, out.m.address, out.m.count, out.m.dtype,
            root, args->stream);
    release (&in);
    return st;
}

gs_status_t gsi_fortran_alltoallv (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                   int send_is_open, CFI_cdesc_t *recv, int recv_is_open,
                                   const CFI_cdesc_t *send_counts, const CFI_cdesc_t *recv_counts,
                                   const CFI_cdesc_t *send_displs, const CFI_cdesc_t *recv_displs)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_alltoallv", "gs_alltoallv_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_alltoallv", "gs_alltoallv_backward", recv, recv_is_open);
    struct pieces in, out;
    gs_comm_t *comm;
    bool back = args->is_backward;
    int size;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, from.call, &comm);

    gsi_fortran_note (args, send);
    gsi_fortran_note (args, recv);
    if (st != GS_OK || (st = read_slices (args, &from, &in)) != GS_OK ||
        (st = read_slices (args, &to, &out)) != GS_OK || (st = check_alike (&in, &out)) != GS_OK)
        return st;
    size = gs_comm_size (comm);
    st = read_lists (&in, back ? "recv_counts" : "send_counts", send_counts,
                     back ? "recv_displs" : "send_displs", send_displs, size);
    if (st == GS_OK)
        st = read_lists (&out, back ? "send_counts" : "recv_counts", recv_counts,
                         back ? "send_displs" : "recv_displs", recv_displs, size);
    if (st == GS_OK && (st = check_room (&in, size)) == GS_OK)
        st = check_room (&out, size);
    if (st == GS_OK)
        st = (args->is_backward ? gs_alltoallv_backward : gs_alltoallv) (
            comm, in.m.address, in.counts, in.displs, out.m.address, out.counts, out.displs,
            in.m.dtype, args->stream);
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
                         "%s: %s has %d dimensions, but offsets is for %d: declare it with as "
                         "many as offsets has elements",
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

/* A field and this rank's block of it, in the order of C. */
struct field {
    struct gsi_fortran_argument block, whole;
    gs_comm_t *comm;
    int dims;
    size_t extents[CFI_MAX_RANK], places[CFI_MAX_RANK], extents_of_whole[CFI_MAX_RANK];
    const size_t *shape; /* NULL where the field is not looked at */
    struct gsi_fortran_memory part, all;
};

/* Reads what [block] and [whole] of the field are; those of one dtype. */
static gs_status_t read_field (struct gsi_fortran_args *args, struct field *f,
                               const CFI_cdesc_t *offsets, int root)
{
    size_t *list = NULL;
    gs_status_t st = gsi_fortran_handle_comm (args->handle, f->block.call, &f->comm);

    gsi_fortran_note (args, f->block.array);
    gsi_fortran_note (args, f->whole.array);
    f->dims = offsets->dim[0].extent > 0 ? (int) offsets->dim[0].extent : 0;
    if (st != GS_OK ||
        (st = read_whole (args, &f->block, f->dims, &f->part, f->extents)) != GS_OK)
        return st;
    if (root == -1 || gs_comm_rank (f->comm) == root) {
        f->shape = f->extents_of_whole;
        st = read_whole (args, &f->whole, f->dims, &f->all, f->extents_of_whole);
        if (st == GS_OK && f->all.dtype != f->part.dtype)
            st = gsi_fail (GS_ERR_ARG, "%s: %s and %s differ in type: declare them alike",
                           f->block.call, f->block.name, f->whole.name);
    }
    if (st == GS_OK)
        st = read_list (f->block.call, "offsets", offsets, f->dims, 1, &list);
    for (int d = 0; d < f->dims && st == GS_OK; d++)
        f->places[f->dims - 1 - d] = list[d];
    free (list);
    return st;
}

gs_status_t gsi_fortran_gather_field (struct gsi_fortran_args *args, const CFI_cdesc_t *block,
                                      int block_is_open, const CFI_cdesc_t *offsets,
                                      CFI_cdesc_t *field, int field_is_open, int root)
{
    struct field f = {.block = {"gs_gather_field", "block", block, block_is_open, true},
                      .whole = {"gs_gather_field", "field", field, field_is_open, false}};
    gs_status_t st = read_field (args, &f, offsets, root);

    if (st != GS_OK)
        return st;
    return gs_gather_field (f.comm, f.part.address, f.dims, f.extents, f.places, f.all.address,
                            f.shape, f.part.dtype, root, args->stream);
}

gs_status_t gsi_fortran_gather_field_backward (struct gsi_fortran_args *args,
                                               const CFI_cdesc_t *grad_y, int grad_y_is_open,
                                               CFI_cdesc_t *grad_x, int grad_x_is_open,
                                               const CFI_cdesc_t *offsets, int root)
{
    static const char call[] = "gs_gather_field_backward";
    struct field f = {.block = {call, "grad_x", grad_x, grad_x_is_open, false},
                      .whole = {call, "grad_y", grad_y, grad_y_is_open, true}};
    gs_status_t st = read_field (args, &f, offsets, root);

    if (st != GS_OK)
        return st;
    return gs_gather_field_backward (f.comm, f.all.address, f.dims, f.shape, f.part.address,
                                     f.extents, f.places, f.part.dtype, root, args->stream);
}
