/* SPDX-License-Identifier: BSD-3-Clause */
/* kept_pool - pools, and how many rows their steps have, which arrays and addresses must fit. */
#include "fortran/kept.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"

gs_status_t gsi_fortran_pool_create (int64_t comm, const gs_pool_opts_t *opts, int64_t *pool)
{
    struct gsi_fortran_pool *p;
    gs_pool_t *thing = NULL;
    gs_comm_t *found;
    void *more;
    gs_status_t st = gsi_fortran_kept_prepare (comm, GSI_FORTRAN_POOL, "gs_pool_create",
                                               sizeof (*p), &found, pool, &more);

    if (st != GS_OK)
        return st;
    p = more;
    p->inputs = (int64_t) opts->inputs;
    p->outputs = (int64_t) opts->outputs;
    p->dtype = (int) opts->dtype;
    p->box = opts->context;
    st = gs_pool_create (found, opts, &thing);
    return gsi_fortran_kept_bind (st, pool, thing, p, found, opts->name ? opts->name : "rows");
}

gs_status_t gsi_fortran_pool_destroy (int64_t pool, void **box)
{
    void *more;
    gs_status_t st = gsi_fortran_kept_end (pool, GSI_FORTRAN_POOL, "gs_pool_destroy", &more);
    struct gsi_fortran_pool *p = more;

    *box = p ? p->box : NULL;
    free (p);
    return st;
}

static gs_pool_info_t info_of (const gs_pool_t *pool)
{
    gs_pool_info_t info = {.size = sizeof (info)};

    gs_pool_get_info (pool, &info);
    return info;
}

/* Where the rows of the step that ends next are noted; *in_flight: how many steps are. */
static int place_of_next (const gs_pool_t *pool, int *in_flight)
{
    gs_pool_info_t info = info_of (pool);

    *in_flight = info.in_flight;
    return (int) (info.steps % 2);
}

int64_t gsi_fortran_pool_next (const gs_pool_t *pool, const struct gsi_fortran_pool *p)
{
    int in_flight, next = place_of_next (pool, &in_flight);

    return in_flight ? p->rows[next] : -1;
}

int64_t gsi_fortran_pool_last (const gs_pool_t *pool, const struct gsi_fortran_pool *p)
{
    gs_pool_info_t info = info_of (pool);

    return info.steps && info.in_flight < 2 ? p->rows[1 - info.steps % 2] : -1;
}

/* The pool of an address, which must come with its dtype, and what is kept beside it. */
static gs_status_t find_pool (int64_t handle, const char *call, int dtype, int64_t rows,
                              void **thing, struct gsi_fortran_pool **p)
{
    gs_status_t st = gsi_fortran_handle_find (handle, GSI_FORTRAN_POOL, call, thing);

    if (st != GS_OK || (st = gsi_fortran_check_amount (call, "rows", rows)) != GS_OK)
        return st;
    *p = gsi_fortran_handle_more (handle);
    if (dtype == (*p)->dtype)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "%s: dtype is %d, but the pool was created with %d: give the same", call,
                     dtype, (*p)->dtype);
}

static gs_status_t check_rows (const char *call, int64_t rows, int64_t there)
{
    if (rows == there || there < 0) /* without such a step gradsync refuses the call */
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "%s: rows is %" PRId64 ", but this rank has %" PRId64 " in that step", call,
                     rows, there);
}

gs_status_t gsi_fortran_pool_begin_at (int64_t pool, const void *in, int64_t rows, int dtype)
{
    struct gsi_fortran_pool *p;
    void *thing;
    int in_flight, next;
    gs_status_t st = find_pool (pool, "gs_pool_begin", dtype, rows, &thing, &p);

    if (st != GS_OK)
        return st;
    next = place_of_next (thing, &in_flight);
    if ((st = gs_pool_begin (thing, in, (size_t) rows)) == GS_OK)
        p->rows[(next + in_flight) % 2] = rows;
    return st;
}

gs_status_t gsi_fortran_pool_end_at (int64_t pool, void *out, int64_t rows, int dtype)
{
    static const char call[] = "gs_pool_end";
    struct gsi_fortran_pool *p;
    void *thing;
    gs_status_t st = find_pool (pool, call, dtype, rows, &thing, &p);

    if (st == GS_OK)
        st = check_rows (call, rows, gsi_fortran_pool_next (thing, p));
    return st != GS_OK ? st : gs_pool_end (thing, out);
}

gs_status_t gsi_fortran_pool_evaluate_at (int64_t pool, const void *in, int64_t rows, void *out,
                                          int dtype)
{
    struct gsi_fortran_pool *p;
    void *thing;
    int in_flight, next;
    gs_status_t st = find_pool (pool, "gs_pool_evaluate", dtype, rows, &thing, &p);

    if (st != GS_OK)
        return st;
    next = place_of_next (thing, &in_flight);
    if (!in_flight) /* else it is refused */
        p->rows[next] = rows;
    return gs_pool_evaluate (thing, in, (size_t) rows, out);
}

gs_status_t gsi_fortran_pool_backward_at (int64_t pool, const void *grad_out, int64_t rows,
                                          void *grad_in, int dtype)
{
    static const char call[] = "gs_pool_backward";
    struct gsi_fortran_pool *p;
    void *thing;
    gs_status_t st = find_pool (pool, call, dtype, rows, &thing, &p);

    if (st == GS_OK)
        st = check_rows (call, rows, gsi_fortran_pool_last (thing, p));
    return st != GS_OK ? st : gs_pool_backward (thing, grad_out, grad_in);
}
