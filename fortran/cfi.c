/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cfi - Fortran arrays of any type and rank: address, count and dtype from the C descriptor.
 *
 * An array that is not plain memory of a known type is refused by name, never copied. Each
 * collective is called by procedures that calls.def names, and makes the call while the
 * descriptor is its argument: no address is kept.
 */
#include <ISO_Fortran_binding.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "fortran/cfi.h"
#include "fortran/cfi_read.h"
#include "fortran/handle.h"

enum family { REAL, COMPLEX, INTEGER, LOGICAL, CHARACTER, DERIVED, ADDRESS, OTHER };

struct kind {
    CFI_type_t type;
    size_t bytes; /* asked too: compilers give several kinds one type, or one kind several */
    gs_dtype_t dtype;
    const char *name;
    enum family family;
};

static const struct kind kinds[] = {
    {CFI_type_float, 4, GS_F32, "real32", REAL},
    {CFI_type_double, 8, GS_F64, "real64", REAL},
    {CFI_type_float_Complex, 8, GS_C64, "complex(real32)", COMPLEX},
    {CFI_type_double_Complex, 16, GS_C128, "complex(real64)", COMPLEX},
    {CFI_type_int8_t, 1, GS_I8, "integer(int8)", INTEGER},
    {CFI_type_int16_t, 2, GS_I16, "integer(int16)", INTEGER},
    {CFI_type_int32_t, 4, GS_I32, "integer(int32)", INTEGER},
    {CFI_type_int64_t, 8, GS_I64, "integer(int64)", INTEGER},
    {CFI_type_signed_char, 1, GS_I8, "integer(int8)", INTEGER},
    {CFI_type_short, 2, GS_I16, "integer(int16)", INTEGER},
    {CFI_type_int, 4, GS_I32, "integer(int32)", INTEGER},
    {CFI_type_long, 8, GS_I64, "integer(int64)", INTEGER},
    {CFI_type_long_long, 8, GS_I64, "integer(int64)", INTEGER},
};

static const struct kind *kind_of (const CFI_cdesc_t *array)
{
    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (kinds[i].type == array->type && kinds[i].bytes == array->elem_len)
            return &kinds[i];
    return NULL;
}

/* What a type is that kinds[] does not have. */
static enum family family_of (const CFI_cdesc_t *array)
{
    CFI_type_t type = array->type;

#ifdef CFI_type_mask /* gfortran: the family is in the low byte, the kind above it */
    switch (type & CFI_type_mask) {
    case CFI_type_Integer: return INTEGER;
    case CFI_type_Logical: return LOGICAL;
    case CFI_type_Real: return REAL;
    case CFI_type_Complex: return COMPLEX;
    case CFI_type_Character: return CHARACTER;
    default: break;
    }
#else
    static const CFI_type_t logicals[] = {CFI_type_Bool, CFI_type_int_least8_t,
                                          CFI_type_int_least16_t, CFI_type_int_least32_t,
                                          CFI_type_int_least64_t};

    /* N.B. flang 22 gives logicals of more than a byte, which C has not, these types. */
    for (size_t i = 0; i < sizeof (logicals) / sizeof (logicals[0]) && !kind_of (array); i++)
        if (type == logicals[i])
            return LOGICAL;
#ifdef CFI_type_float128 /* flang */
    if (type == CFI_type_int128_t)
        return INTEGER;
    if (type >= CFI_type_half_float && type <= CFI_type_float128)
        return REAL;
    if (type >= CFI_type_half_float_Complex && type <= CFI_type_float128_Complex)
        return COMPLEX;
#endif
    if (type == CFI_type_char)
        return CHARACTER;
    if (type == CFI_type_long_double)
        return REAL;
    if (type == CFI_type_long_double_Complex)
        return COMPLEX;
#endif
    /* N.B. flang 22 takes type(c_ptr) for any derived type of its size. */
    if (type == CFI_type_struct)
        return array->elem_len == sizeof (void *) ? ADDRESS : DERIVED;
    return type == CFI_type_cptr ? ADDRESS : OTHER;
}

bool gsi_fortran_is_logical (const CFI_cdesc_t *array)
{
    return family_of (array) == LOGICAL;
}

bool gsi_fortran_has_no_kind (int dtype)
{
    return gsi_dtype_is_reduced ((gs_dtype_t) dtype) || (dtype >= GS_U8 && dtype <= GS_U64);
}

int64_t gsi_fortran_integer_at (const CFI_cdesc_t *list, int i)
{
    const char *at = (const char *) list->base_addr + (ptrdiff_t) i * list->dim[0].sm;

    return list->elem_len == sizeof (int32_t) ? *(const int32_t *) at : *(const int64_t *) at;
}

/* Says what the array is, and what to pass instead. */
static gs_status_t refuse_type (const struct gsi_fortran_argument *a)
{
    size_t bytes = a->array->elem_len;

    switch (family_of (a->array)) {
    case REAL:
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: %s is of a real kind of %zu bytes: use real32 or real64", a->call,
                         a->name, bytes);
    case COMPLEX:
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: %s is of a complex kind of %zu bytes: use real32 or real64 parts",
                         a->call, a->name, bytes);
    case INTEGER:
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: %s is of an integer kind of %zu bytes: use int8 to int64", a->call,
                         a->name, bytes);
    case LOGICAL:
        return gsi_fail (GS_ERR_ARG, "%s: %s is logical: convert it with merge (1, 0, x)",
                         a->call, a->name);
    case CHARACTER:
        return gsi_fail (GS_ERR_ARG, "%s: %s is character: transfer it to an integer(int8) array",
                         a->call, a->name);
    case DERIVED:
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is of a derived type: pass its components one by one", a->call,
                         a->name);
    case ADDRESS: /* N.B. gfortran 12 says the same of class(*) */
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is type(c_ptr) or class(*): with an address give count and "
                         "dtype too, for boundaries and halos dtype; for class(*) use select "
                         "type",
                         a->call, a->name);
    case OTHER: break;
    }
    return gsi_fail (GS_ERR_ARG,
                     "%s: %s is of a type that is not known here (%d, %zu bytes): pass a real, "
                     "complex or integer array",
                     a->call, a->name, (int) a->array->type, bytes);
}

/* N.B. gfortran 12 gives empty sections extents below 0. */
static bool is_empty (const CFI_cdesc_t *array)
{
    for (int i = 0; i < array->rank; i++)
        if (array->dim[i].extent <= 0)
            return true;
    return false;
}

/*
 * N.B. gfortran 12 gives empty expressions, and arguments that are associated with them, a null
 * address, but the extents and steps of an array. What was of size 0 and is deallocated has the
 * same descriptor in every field ([attribute] is that of our dummy, not of the argument), so it
 * passes for one, but only where expressions may be: in arguments of intent(in).
 * Other compilers give only those a null address that are not there.
 */
bool gsi_fortran_is_absent (const CFI_cdesc_t *array, bool is_input)
{
#ifdef CFI_type_mask
    bool may_be_null = is_input;
#else
    bool may_be_null = false;
#endif
    size_t step = array->elem_len;

    if (array->base_addr || !may_be_null)
        return !array->base_addr;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent < 0 || (size_t) array->dim[i].sm != step)
            return true;
        step *= (size_t) array->dim[i].extent;
    }
    return !is_empty (array);
}

/* The first dimension, from 1, whose elements do not follow each other; 0 if all do. */
static int gap_dimension (const CFI_cdesc_t *array)
{
    size_t step = array->elem_len;

    if (is_empty (array))
        return 0;
    for (int i = 0; i < array->rank; i++) {
        if (array->dim[i].extent != 1 && (size_t) array->dim[i].sm != step)
            return i + 1;
        step *= (size_t) array->dim[i].extent; /* wraps only for what whole_count refuses */
    }
    return 0;
}

gs_status_t gsi_fortran_whole_count (const struct gsi_fortran_argument *a, size_t *count)
{
    const CFI_cdesc_t *array = a->array;
    int gap = gap_dimension (array);

    if (gap)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is a strided section (dimension %d steps by %td bytes): pass a "
                         "contiguous array, or copy the section to one",
                         a->call, a->name, gap, array->dim[gap - 1].sm);
    *count = is_empty (array) ? 0 : 1;
    for (int i = 0; i < array->rank && *count; i++) {
        size_t extent = (size_t) array->dim[i].extent;

        if (*count > SIZE_MAX / extent)
            return gsi_fail (GS_ERR_ARG, "%s: %s has more elements than memory can hold", a->call,
                             a->name);
        *count *= extent;
    }
    return GS_OK;
}

static gs_status_t count_elements (const struct gsi_fortran_args *args,
                                   const struct gsi_fortran_argument *a, size_t *count)
{
    gs_status_t st;

    if (args->count_given && args->count < 0)
        return gsi_fail (GS_ERR_ARG,
                         "%s: count is %" PRId64 ": give the number of elements, 0 or more",
                         a->call, args->count);
    /* N.B. gfortran 12 calls empty expressions, which have no address, assumed-size too; in 14
     * they have one and cannot be told from x(0:*). */
    if (a->is_open && a->array->base_addr) {
        if (!args->count_given)
            return gsi_fail (GS_ERR_ARG,
                             "%s: %s is an assumed-size array: give count=, or pass a section "
                             "with an end such as x(1:n)",
                             a->call, a->name);
        *count = (size_t) args->count;
        return GS_OK;
    }
    if ((st = gsi_fortran_whole_count (a, count)) != GS_OK || !args->count_given)
        return st;
    if ((size_t) args->count > *count)
        return gsi_fail (GS_ERR_ARG, "%s: %s needs %" PRId64 " elements by count=, but has %zu",
                         a->call, a->name, args->count, *count);
    *count = (size_t) args->count;
    return GS_OK;
}

/* as= gives the bits of an integer array another meaning of the same size. */
static gs_status_t reinterpret (const struct gsi_fortran_args *args,
                                const struct gsi_fortran_argument *a, const struct kind *kind,
                                gs_dtype_t *dtype)
{
    gs_dtype_t as = (gs_dtype_t) args->as;
    size_t bytes = gs_dtype_size (as);

    *dtype = kind->dtype;
    if (!args->as_given || as == kind->dtype)
        return GS_OK;
    if (!bytes)
        return gsi_fail (GS_ERR_ARG, "%s: as=%d is no element type: use GS_F16, GS_BF16, ...",
                         a->call, args->as);
    if (bytes != kind->bytes)
        return gsi_fail (GS_ERR_ARG,
                         "%s: as= names a type of %zu bytes, but %s is %s with %zu: use an "
                         "integer array of the same size",
                         a->call, bytes, a->name, kind->name, kind->bytes);
    if (kind->family != INTEGER)
        return gsi_fail (GS_ERR_ARG,
                         "%s: as= is for integer arrays that hold another type, but %s is %s: "
                         "leave it out",
                         a->call, a->name, kind->name);
    *dtype = as;
    return GS_OK;
}

gs_status_t gsi_fortran_read (const struct gsi_fortran_args *args,
                              const struct gsi_fortran_argument *a,
                              struct gsi_fortran_memory *memory)
{
    const struct kind *kind = kind_of (a->array);
    gs_status_t st;

    /* First, as gfortran 12 passes the value of a scalar type(c_ptr) as the array's address. */
    if (!kind)
        return refuse_type (a);
    if (gsi_fortran_is_absent (a->array, a->is_input))
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is not allocated, or a pointer that is not associated", a->call,
                         a->name);
    if ((st = count_elements (args, a, &memory->count)) != GS_OK)
        return st;
    if ((st = reinterpret (args, a, kind, &memory->dtype)) != GS_OK)
        return st;
    memory->address = a->array->base_addr;
    return GS_OK;
}

void gsi_fortran_note (struct gsi_fortran_args *args, const CFI_cdesc_t *array)
{
    args->is_character |= family_of (array) == CHARACTER;
}

gs_status_t gsi_fortran_start (struct gsi_fortran_args *args,
                               const struct gsi_fortran_argument *a, gs_comm_t **comm,
                               struct gsi_fortran_memory *memory)
{
    gs_status_t st = gsi_fortran_handle_comm (args->handle, a->call, comm);

    args->is_character |= family_of (a->array) == CHARACTER;
    return st == GS_OK ? gsi_fortran_read (args, a, memory) : st;
}

struct gsi_fortran_argument gsi_fortran_from (const struct gsi_fortran_args *args,
                                              const char *call, const char *backward,
                                              const CFI_cdesc_t *array, int is_open)
{
    if (args->is_backward)
        return (struct gsi_fortran_argument){backward, "grad_y", array, is_open, true};
    return (struct gsi_fortran_argument){call, "send", array, is_open, true};
}

struct gsi_fortran_argument gsi_fortran_to (const struct gsi_fortran_args *args, const char *call,
                                            const char *backward, const CFI_cdesc_t *array,
                                            int is_open)
{
    if (args->is_backward)
        return (struct gsi_fortran_argument){backward, "grad_x", array, is_open, false};
    return (struct gsi_fortran_argument){call, "recv", array, is_open, false};
}

/* The same for the one array of a collective that works in place. */
static struct gsi_fortran_argument in_place (const struct gsi_fortran_args *args,
                                             const char *call, const char *backward,
                                             const CFI_cdesc_t *array, int is_open)
{
    if (args->is_backward)
        return (struct gsi_fortran_argument){backward, "grad", array, is_open, false};
    return (struct gsi_fortran_argument){call, "buf", array, is_open, false};
}

gs_status_t gsi_fortran_allreduce_avg (struct gsi_fortran_args *args, CFI_cdesc_t *buf,
                                       int is_open)
{
    struct gsi_fortran_argument a = {"gs_allreduce_avg", "buf", buf, is_open, false};
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    if (st != GS_OK)
        return st;
    return gs_allreduce_avg (comm, m.address, m.count, m.dtype, args->stream);
}

gs_status_t gsi_fortran_allreduce_wavg (struct gsi_fortran_args *args, CFI_cdesc_t *buf,
                                        int is_open, double weight)
{
    struct gsi_fortran_argument a = {"gs_allreduce_wavg", "buf", buf, is_open, false};
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    if (st != GS_OK)
        return st;
    return gs_allreduce_wavg (comm, m.address, m.count, m.dtype, weight, args->stream);
}

gs_status_t gsi_fortran_allreduce (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                                   int op)
{
    struct gsi_fortran_argument a =
        in_place (args, "gs_allreduce", "gs_allreduce_backward", buf, is_open);
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    if (st != GS_OK)
        return st;
    return (args->is_backward ? gs_allreduce_backward : gs_allreduce) (
        comm, m.address, m.count, m.dtype, (gs_op_t) op, args->stream);
}

gs_status_t gsi_fortran_broadcast (struct gsi_fortran_args *args, CFI_cdesc_t *buf, int is_open,
                                   int root)
{
    struct gsi_fortran_argument a =
        in_place (args, "gs_broadcast", "gs_reduce_backward", buf, is_open);
    struct gsi_fortran_memory m;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &a, &comm, &m);

    if (st != GS_OK)
        return st;
    return (args->is_backward ? gs_reduce_backward : gs_broadcast) (comm, m.address, m.count,
                                                                    m.dtype, root, args->stream);
}

gs_status_t gsi_fortran_read_times (const struct gsi_fortran_args *args,
                                    const struct gsi_fortran_argument *a, int ranks,
                                    const struct gsi_fortran_argument *part_name,
                                    const struct gsi_fortran_memory *part,
                                    struct gsi_fortran_memory *whole)
{
    struct gsi_fortran_args all = *args;
    gs_status_t st;

    if (part->count > (size_t) INT64_MAX / (size_t) ranks)
        return gsi_fail (GS_ERR_ARG, "%s: %d times %zu elements is more than memory can hold",
                         a->call, ranks, part->count);
    all.count = (int64_t) part->count * ranks;
    if ((st = gsi_fortran_read (&all, a, whole)) != GS_OK)
        return st;
    if (whole->dtype != part->dtype)
        return gsi_fail (GS_ERR_ARG, "%s: %s and %s differ in type: declare them alike", a->call,
                         part_name->name, a->name);
    if (whole->count != (size_t) all.count)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s has %zu elements, but %d %s times the %zu of %s are "
                         "%" PRId64,
                         a->call, a->name, whole->count, ranks, ranks > 1 ? "ranks" : "rank",
                         part->count, part_name->name, all.count);
    return GS_OK;
}

gs_status_t gsi_fortran_allgather (struct gsi_fortran_args *args, const CFI_cdesc_t *send,
                                   int send_is_open, CFI_cdesc_t *recv, int recv_is_open)
{
    struct gsi_fortran_argument from =
        gsi_fortran_from (args, "gs_allgather", "gs_reduce_scatter_backward", send, send_is_open);
    struct gsi_fortran_argument to =
        gsi_fortran_to (args, "gs_allgather", "gs_reduce_scatter_backward", recv, recv_is_open);
    struct gsi_fortran_memory m, all;
    gs_comm_t *comm;
    gs_status_t st = gsi_fortran_start (args, &from, &comm, &m);

    gsi_fortran_note (args, recv);
    if (st != GS_OK)
        return st;
    if ((st = gsi_fortran_read_times (args, &to, gs_comm_size (comm), &from, &m, &all)) != GS_OK)
        return st;
    return (args->is_backward ? gs_reduce_scatter_backward : gs_allgather) (
        comm, m.address, all.address, m.count, m.dtype, args->stream);
}

gs_status_t gsi_fortran_describe (struct gsi_fortran_args *args, const char *call,
                                  const CFI_cdesc_t *array, int is_open,
                                  struct gsi_fortran_gradient *gradient)
{
    struct gsi_fortran_argument a = {call, "array", array, false, false};
    struct gsi_fortran_memory m;
    gs_status_t st;

    args->is_character |= family_of (array) == CHARACTER;
    if (family_of (array) == ADDRESS)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is type(c_ptr) or class(*): with an address give shape and "
                         "dtype before it; for class(*) use select type",
                         a.call, a.name);
    if (is_open && array->base_addr && kind_of (array))
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is an assumed-size array: pass a section with an end such as "
                         "x(1:n), or give shape, dtype and address",
                         a.call, a.name);
    if ((st = gsi_fortran_read (args, &a, &m)) != GS_OK)
        return st;
    gradient->dims = array->rank;
    for (int i = 0; i < array->rank; i++)
        gradient->shape[i] = array->dim[i].extent > 0 ? array->dim[i].extent : 0;
    gradient->dtype = (int) m.dtype;
    gradient->address = m.address;
    return GS_OK;
}

/* The kind of a pointer to elements of [dtype]; NULL if there is none. */
static const struct kind *kind_for (int dtype)
{
    gs_dtype_t as = !gsi_dtype_is_reduced ((gs_dtype_t) dtype) ? (gs_dtype_t) dtype
                    : gs_dtype_size ((gs_dtype_t) dtype) == 1  ? GS_I8
                                                               : GS_I16;

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++)
        if (kinds[i].dtype == as)
            return &kinds[i];
    return NULL;
}

static gs_status_t check_pointer (int index, const struct gsi_fortran_gradient *gradient,
                                  const CFI_cdesc_t *p)
{
    const struct kind *is = kind_of (p), *needed = kind_for (gradient->dtype);

    if (is && needed && is->dtype == needed->dtype && p->rank == gradient->dims)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "gs_reducer_get_grad: p is %s of rank %d, but gradient %d is %s of rank %d: "
                     "declare p like that",
                     is ? is->name : "of another kind", (int) p->rank, index,
                     needed ? needed->name : "of no kind", gradient->dims);
}

static const struct gsi_fortran_gradient *find_gradient (const struct gsi_fortran_gradients *all,
                                                         int number)
{
    for (int i = 0; i < all->count; i++)
        if (all->list[i].number == number)
            return &all->list[i];
    return NULL;
}

gs_status_t gsi_fortran_reducer_grad (int64_t reducer, int index, CFI_cdesc_t *p)
{
    static double nothing[2]; /* where gradients without elements are */
    const struct gsi_fortran_gradient *gradient;
    CFI_CDESC_T (GS_REDUCER_DIMS_MAX) space;
    CFI_cdesc_t *target = (CFI_cdesc_t *) &space;
    CFI_index_t extents[GS_REDUCER_DIMS_MAX], lower[GS_REDUCER_DIMS_MAX];
    void *thing, *address;
    gs_status_t st;
    int rc;

    CFI_setpointer (p, NULL, NULL);
    st = gsi_fortran_handle_find (reducer, GSI_FORTRAN_REDUCER, "gs_reducer_get_grad", &thing);
    if (st != GS_OK || (st = gs_reducer_get_grad (thing, index, &address)) != GS_OK)
        return st;
    if (!(gradient = find_gradient (gsi_fortran_handle_more (reducer), index)))
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_get_grad: gradient %d was added in C: its shape is known "
                         "there",
                         index);
    if ((st = check_pointer (index, gradient, p)) != GS_OK)
        return st;
    for (int i = 0; i < gradient->dims; i++) {
        extents[i] = (CFI_index_t) gradient->shape[i];
        lower[i] = (CFI_index_t) gradient->lower[i];
    }
    rc = CFI_establish (target, address ? address : nothing, CFI_attribute_other, p->type,
                        p->elem_len, p->rank, extents);
    if (rc == CFI_SUCCESS)
        rc = CFI_setpointer (p, target, p->rank ? lower : NULL);
    if (rc != CFI_SUCCESS)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_get_grad: p cannot become gradient %d (CFI code %d)", index,
                         rc);
    return GS_OK;
}
