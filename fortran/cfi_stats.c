/* SPDX-License-Identifier: BSD-3-Clause */
/* cfi_stats - statistics and comparisons on Fortran arrays of any type and rank. */
#include "fortran/cfi.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"
#include "fortran/cfi_read.h"
#include "fortran/handle.h"

/* A mask as C has it. */
struct mask {
    unsigned char *bytes; /* of malloc */
    size_t width;
};

static size_t extent_of (const CFI_cdesc_t *array, int d)
{
    return array->dim[d].extent > 0 ? (size_t) array->dim[d].extent : 0;
}

/* Whether [mask] has an element for each value of [x]. */
static bool has_shape_of (const CFI_cdesc_t *mask, const CFI_cdesc_t *x)
{
    if (mask->rank != x->rank)
        return false;
    for (int d = 0; d < x->rank; d++)
        if (extent_of (mask, d) != extent_of (x, d))
            return false;
    return true;
}

/* A logical of any kind: its bytes are 0, or it is true. */
static bool is_true (const char *element, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (element[i])
            return true;
    return false;
}

static gs_status_t read_mask (const CFI_cdesc_t *from, const CFI_cdesc_t *x, size_t samples,
                              size_t features, struct mask *mask)
{
    bool of_values = has_shape_of (from, x);
    const struct gsi_fortran_argument a = {"gs_moments_compute", "mask", from, false, true};
    gs_status_t st;
    size_t count;

    if (!gsi_fortran_is_logical (from))
        return gsi_fail (GS_ERR_ARG, "gs_moments_compute: mask is not logical");
    if (gsi_fortran_is_absent (from, true))
        return gsi_fail (GS_ERR_ARG,
                         "gs_moments_compute: mask is not allocated, or a pointer that is not "
                         "associated");
    if (!of_values && !(from->rank == 1 && extent_of (from, 0) == samples))
        return gsi_fail (
            GS_ERR_ARG,
            "gs_moments_compute: mask has neither the shape of x nor %zu elements in one "
            "dimension, one for each sample",
            samples);
    if ((st = gsi_fortran_whole_count (&a, &count)))
        return st;
    if (!(mask->bytes = malloc (count + 1)))
        return gsi_fail (GS_ERR_NOMEM, "gs_moments_compute: out of memory");
    for (size_t i = 0; i < count; i++)
        mask->bytes[i] =
            is_true ((const char *) from->base_addr + i * from->elem_len, from->elem_len);
    mask->width = of_values ? features : 1;
    return GS_OK;
}

gs_status_t gsi_fortran_moments_compute (struct gsi_fortran_args *args, const CFI_cdesc_t *x,
                                         int is_open, const CFI_cdesc_t *mask,
                                         gs_moments_t *moments, int64_t features)
{
    struct gsi_fortran_argument a = {"gs_moments_compute", "x", x, is_open, true};
    struct gsi_fortran_memory m;
    struct mask masks = {0};
    size_t samples = x->rank ? extent_of (x, x->rank - 1) : 1, wanted = 1;
    gs_comm_t *comm;
    gs_status_t st;

    gsi_fortran_note (args, x);
    if (mask)
        gsi_fortran_note (args, mask);
    if (is_open && x->base_addr)
        return gsi_fail (
            GS_ERR_ARG,
            "gs_moments_compute: x is an assumed-size array: pass a section with an end such "
            "as x(1:n)");
    if ((st = gsi_fortran_start (args, &a, &comm, &m)) != GS_OK)
        return st;
    for (int d = 0; d < x->rank - 1; d++)
        wanted *= extent_of (x, d);
    if ((size_t) features != wanted)
        return gsi_fail (GS_ERR_ARG,
                         "gs_moments_compute: moments has %" PRId64
                         " elements, but x has %zu features, "
                         "all dimensions but the last",
                         features, wanted);
    if (mask && (st = read_mask (mask, x, samples, wanted, &masks)) != GS_OK)
        return st;
    st = gs_moments_compute (comm, m.address, samples, wanted, m.dtype, masks.bytes, masks.width,
                             moments, args->stream);
    free (masks.bytes);
    return st;
}

gs_status_t gsi_fortran_arrays_compare (struct gsi_fortran_args *args, const char *name,
                                        const CFI_cdesc_t *x, int is_open, double tolerance)
{
    struct gsi_fortran_argument a = {"gs_arrays_compare", "x", x, is_open, true};
    struct gsi_fortran_memory m;
    gs_array_t array;
    gs_comm_t *comm;
    gs_status_t st;

    gsi_fortran_note (args, x);
    if (is_open && x->base_addr)
        return gsi_fail (
            GS_ERR_ARG,
            "gs_arrays_compare: x is an assumed-size array: pass a section with an end such "
            "as x(1:n)");
    if ((st = gsi_fortran_start (args, &a, &comm, &m)) != GS_OK)
        return st;
    array = (gs_array_t){name, m.address, m.count, m.dtype};
    return gs_arrays_compare (comm, &array, 1, tolerance, args->stream);
}
