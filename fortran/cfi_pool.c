/* SPDX-License-Identifier: BSD-3-Clause */
/* cfi_pool - rows of a pool, and their results, as Fortran arrays: a row to each last index. */
#include "fortran/cfi.h"

#include <inttypes.h>

#include "base/status.h"
#include "fortran/cfi_read.h"
#include "fortran/kept.h"

static gs_status_t find (struct gsi_fortran_args *args, const char *call, const CFI_cdesc_t *a,
                         const CFI_cdesc_t *b, void **thing, struct gsi_fortran_pool **p)
{
    gs_status_t st;

    gsi_fortran_note (args, a);
    if (b)
        gsi_fortran_note (args, b);
    if ((st = gsi_fortran_handle_find (args->handle, GSI_FORTRAN_POOL, call, thing)) != GS_OK)
        return st;
    *p = gsi_fortran_handle_more (args->handle);
    args->as = (*p)->dtype;
    args->as_given = gsi_fortran_has_no_kind ((*p)->dtype);
    return GS_OK;
}

/* Whether leading extents make up a row of [wide], as those of x(inputs, ny, nz) do; not those of
 * an array (rows, inputs), whose rows are not contiguous. Of one extent all do. */
static bool has_rows (const CFI_cdesc_t *array, int64_t wide)
{
    int64_t product = 1;

    for (int d = 0; d < array->rank && product < wide; d++)
        product *= array->dim[d].extent;
    return product == wide || array->rank < 2;
}

/*
 * The [address] of an array of [*rows] rows that are [wide]; of as many as it has, if [*rows] is
 * below 0, and then they are told.
 */
static gs_status_t read_rows (struct gsi_fortran_args *args, const struct gsi_fortran_pool *p,
                              const struct gsi_fortran_argument *a, int64_t wide, int64_t *rows,
                              void **address)
{
    struct gsi_fortran_memory m;
    gs_status_t st;

    if (a->is_open && *rows < 0)
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s is assumed-size, which does not tell how many rows it has: give "
                         "a section of it, such as %s(:, 1:rows)",
                         a->call, a->name, a->name);
    args->count = *rows < 0 ? 0 : wide * *rows;
    args->count_given = a->is_open;
    if ((st = gsi_fortran_read (args, a, &m)) != GS_OK)
        return st;
    if ((int) m.dtype != p->dtype)
        return gsi_fail (GS_ERR_ARG, "%s: %s is not of the type that the pool was created with",
                         a->call, a->name);
    if (*rows < 0 && m.count % (size_t) wide)
        return gsi_fail (GS_ERR_ARG, "%s: %s has %zu elements, which are no rows of %" PRId64,
                         a->call, a->name, m.count, wide);
    *rows = *rows < 0 ? (int64_t) (m.count / (size_t) wide) : *rows;
    if (m.count != (size_t) (wide * *rows))
        return gsi_fail (GS_ERR_ARG,
                         "%s: %s has %zu elements, but this rank has %" PRId64
                         " rows in that step, of %" PRId64,
                         a->call, a->name, m.count, *rows, wide);
    if (m.count && !a->is_open && !has_rows (a->array, wide))
        return gsi_fail (GS_ERR_ARG,
                         "%s: a row of %s is not what its leading dimensions have: give "
                         "%s(%" PRId64 ", rows)",
                         a->call, a->name, a->name, wide);
    *address = m.address;
    return GS_OK;
}

gs_status_t gsi_fortran_pool_begin (struct gsi_fortran_args *args, const CFI_cdesc_t *in,
                                    int is_open)
{
    struct gsi_fortran_argument a = {"gs_pool_begin", "in", in, is_open, true};
    struct gsi_fortran_pool *p;
    void *thing, *address;
    int64_t rows = -1;
    gs_status_t st = find (args, a.call, in, NULL, &thing, &p);

    if (st != GS_OK || (st = read_rows (args, p, &a, p->inputs, &rows, &address)) != GS_OK)
        return st;
    return gsi_fortran_pool_begin_at (args->handle, address, rows, p->dtype);
}

gs_status_t gsi_fortran_pool_end (struct gsi_fortran_args *args, CFI_cdesc_t *out, int is_open)
{
    struct gsi_fortran_argument a = {"gs_pool_end", "out", out, is_open, false};
    struct gsi_fortran_pool *p;
    void *thing, *address;
    int64_t rows;
    gs_status_t st = find (args, a.call, out, NULL, &thing, &p);

    if (st != GS_OK)
        return st;
    rows = gsi_fortran_pool_next (thing, p);
    if ((st = read_rows (args, p, &a, p->outputs, &rows, &address)) != GS_OK)
        return st;
    return gs_pool_end (thing, address);
}

gs_status_t gsi_fortran_pool_evaluate (struct gsi_fortran_args *args, const CFI_cdesc_t *in,
                                       int in_is_open, CFI_cdesc_t *out, int out_is_open)
{
    struct gsi_fortran_argument from = {"gs_pool_evaluate", "in", in, in_is_open, true},
                                to = {"gs_pool_evaluate", "out", out, out_is_open, false};
    struct gsi_fortran_pool *p;
    void *thing, *source, *target;
    int64_t rows = -1;
    gs_status_t st = find (args, from.call, in, out, &thing, &p);

    if (st != GS_OK || (st = read_rows (args, p, &from, p->inputs, &rows, &source)) != GS_OK ||
        (st = read_rows (args, p, &to, p->outputs, &rows, &target)) != GS_OK)
        return st;
    return gsi_fortran_pool_evaluate_at (args->handle, source, rows, target, p->dtype);
}

gs_status_t gsi_fortran_pool_backward (struct gsi_fortran_args *args, const CFI_cdesc_t *grad_out,
                                       int grad_out_is_open, CFI_cdesc_t *grad_in,
                                       int grad_in_is_open)
{
    struct gsi_fortran_argument from = {"gs_pool_backward", "grad_out", grad_out,
                                        grad_out_is_open, true},
                                to = {"gs_pool_backward", "grad_in", grad_in, grad_in_is_open,
                                      false};
    struct gsi_fortran_pool *p;
    void *thing, *source, *target;
    int64_t rows;
    gs_status_t st = find (args, from.call, grad_out, grad_in, &thing, &p);

    if (st != GS_OK)
        return st;
    rows = gsi_fortran_pool_last (thing, p);
    if ((st = read_rows (args, p, &from, p->outputs, &rows, &source)) != GS_OK ||
        (st = read_rows (args, p, &to, p->inputs, &rows, &target)) != GS_OK)
        return st;
    return gs_pool_backward (thing, source, target);
}
