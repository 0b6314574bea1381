/* SPDX-License-Identifier: BSD-3-Clause */
/* grid - which arrays of a plan are fields on a regular grid, for those who look at the file. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/status.h"
#include "ckpt/plan/plan.h"

static const char caller[] = "gs_ckpt_set_grid";

#define POINTS_MOST INT32_MAX /* VTK counts with int */

static gs_status_t check_field (const struct gsi_ckpt_array *a, int dims)
{
    if (a->kind != GSI_CKPT_SHARDED)
        return gsi_fail (GS_ERR_ARG, "%s: '%s' is not sharded: only sharded arrays are fields",
                         caller, a->name);
    if (gsi_dtype_is_complex (a->dtype))
        return gsi_fail (GS_ERR_ARG,
                         "%s: '%s' is of type %s, and VTK knows no complex numbers: add its "
                         "parts as arrays of their own",
                         caller, a->name, gsi_dtype_name (a->dtype));
    if (dims != 2 && dims != 3)
        return gsi_fail (GS_ERR_ARG, "%s: dims is %d: a grid has 2 or 3 dimensions", caller,
                         dims);
    if (a->dims == dims || (a->dims == dims + 1 && a->shape[dims] > 1))
        return GS_OK;
    return gsi_fail (GS_ERR_ARG,
                     "%s: '%s' has %d dimensions: on a grid of %d it has as many, or one more, "
                     "the %s, of 2 components or more",
                     caller, a->name, a->dims, dims, gsi_dims_are_turned () ? "first" : "last");
}

/* The grid that [a] lies on. */
static gs_status_t make_grid (const struct gsi_ckpt_array *a, gs_ckpt_place_t place,
                              const double *origin, const double *spacing,
                              struct gsi_h5_grid *grid)
{
    uint64_t cells = place == GS_CKPT_CELLS;
    char at[16];

    for (int d = 0; d < grid->dims; d++) {
        grid->origin[d] = origin ? origin[d] + 0.0 : 0; /* so that there is no -0 */
        grid->spacing[d] = spacing ? spacing[d] : 1;
        gsi_dims_subscript (gsi_dims_number (d, grid->dims) - 1, at);
        if (!isfinite (grid->origin[d]) || !isfinite (grid->spacing[d]) || grid->spacing[d] <= 0)
            return gsi_fail (GS_ERR_ARG,
                             "%s: origin%s is %g and spacing%s %g: both are finite, spacing "
                             "is above 0",
                             caller, at, grid->origin[d], at, grid->spacing[d]);
        if (a->shape[d] < 2 - cells || a->shape[d] > POINTS_MOST - cells)
            return gsi_fail (
                GS_ERR_ARG,
                "%s: dimension %d of '%s' has %" PRIu64 ": VTK shows grids of 2 to %d "
                "points, between which are cells, in each",
                caller, gsi_dims_number (d, grid->dims), a->name, a->shape[d], POINTS_MOST);
        grid->points[d] = a->shape[d] + cells;
    }
    return GS_OK;
}

/* [a] on [grid] beside [b], which is a field already. */
static gs_status_t check_pair (const struct gsi_ckpt_array *a, const struct gsi_h5_grid *grid,
                               const struct gsi_ckpt_array *b, const struct gsi_h5_grid *there)
{
    char ours[80], theirs[80];
    size_t bytes = (size_t) grid->dims * sizeof (double);

    if (grid->dims != there->dims ||
        memcmp (grid->points, there->points, (size_t) grid->dims * sizeof (*grid->points))) {
        gsi_dims_write (grid->points, grid->dims, " x ", ours, sizeof (ours));
        gsi_dims_write (there->points, there->dims, " x ", theirs, sizeof (theirs));
        return gsi_fail (GS_ERR_ARG,
                         "%s: '%s' is on %s points, '%s' on %s: all fields of a plan are on one "
                         "grid; gs-ckpt vtk shows others",
                         caller, a->name, ours, b->name, theirs);
    }
    if (memcmp (grid->origin, there->origin, bytes) ||
        memcmp (grid->spacing, there->spacing, bytes))
        return gsi_fail (GS_ERR_ARG,
                         "%s: '%s' has another origin or spacing than '%s': all fields of a plan "
                         "are on one grid",
                         caller, a->name, b->name);
    return GS_OK;
}

static gs_status_t check_others (const gs_ckpt_t *c, int own, const struct gsi_h5_grid *grid)
{
    char ours[GS_CKPT_NAME_MAX + 1], theirs[GS_CKPT_NAME_MAX + 1];
    gs_status_t st = GS_OK;

    gsi_h5_field_name (&c->set[own], ours, sizeof (ours));
    for (int i = 0; i < c->arrays && !st; i++) {
        if (i == own || !c->set[i].place)
            continue;
        gsi_h5_field_name (&c->set[i], theirs, sizeof (theirs));
        if (!strcmp (ours, theirs))
            st = gsi_fail (GS_ERR_ARG, "%s: '%s' and '%s' are both %s for VTK: rename one",
                           caller, c->array[own].name, c->array[i].name, ours);
        else
            st = check_pair (&c->array[own], grid, &c->array[i], &c->grid);
    }
    return st;
}

gs_status_t gs_ckpt_set_grid (gs_ckpt_t *ckpt, const char *name, gs_ckpt_place_t place, int dims,
                              const double *origin, const double *spacing)
{
    struct gsi_h5_grid grid = {.dims = dims};
    int i;
    gs_status_t st = gsi_ckpt_find (ckpt, caller, name, &i);

    if (st || (st = check_field (&ckpt->array[i], dims)))
        return gsi_result (st);
    if (place != GS_CKPT_POINTS && place != GS_CKPT_CELLS)
        return gsi_fail (GS_ERR_ARG, "%s: unknown place %d; see gs_ckpt_place_t", caller,
                         (int) place);
    if ((st = make_grid (&ckpt->array[i], place, origin, spacing, &grid)) ||
        (st = check_others (ckpt, i, &grid)))
        return gsi_result (st);
    ckpt->grid = grid;
    ckpt->set[i].place = place == GS_CKPT_CELLS ? GSI_H5_CELLS : GSI_H5_POINTS;
    return gsi_result (GS_OK);
}
