/* SPDX-License-Identifier: BSD-3-Clause */
/* host_box - boxes of arrays in host memory. */
#include "device/box.h"

#include <string.h>

#include "base/dtype.h"
#include "device/target_clones.h"
#include "device/element.h"

#define SAME(x) (x)

/* [how] has its lengths in elements of T. */
#define DEFINE_ADD(NAME, T, LOAD, STORE)                                           \
    GSI_TARGET_CLONES static void NAME (const struct gsi_box *how, void *array,    \
                                        const void *packed)                        \
    {                                                                              \
        const T *in = packed;                                                      \
        for (size_t p = 0; p < how->planes; p++)                                   \
            for (size_t r = 0; r < how->rows; r++, in += how->run) {               \
                T *out = (T *) array + how->begin + p * how->plane + r * how->row; \
                for (size_t i = 0; i < how->run; i++)                              \
                    out[i] = STORE (LOAD (out[i]) + LOAD (in[i]));                 \
            }                                                                      \
    }

#define GSI_REDUCED(NAME, name, value, type, ...) \
    DEFINE_ADD (add_##name, type, gsi_float_of_##name, gsi_##name##_of_float)
#define GSI_FLOATING(NAME, name, value, type, ...) DEFINE_ADD (add_##name, type, SAME, SAME)
#include "base/dtype.def"

static void (*const add[GSI_DTYPES]) (const struct gsi_box *, void *, const void *) = {
#define GSI_REDUCED(NAME, name, ...)  [GS_##NAME] = add_##name,
#define GSI_FLOATING(NAME, name, ...) [GS_##NAME] = add_##name,
#include "base/dtype.def"
};

/* [box] in parts of [size] instead of elements; runs that follow each other are one. */
static struct gsi_box in_parts (const struct gsi_box *box, size_t size)
{
    struct gsi_box b = *box;

    if (b.rows > 1 && b.run == b.row) {
        b.run *= b.rows;
        b.rows = 1;
    }
    if (b.rows == 1 && b.run == b.plane) {
        b.run *= b.planes;
        b.planes = 1;
    }
    b.run *= size;
    b.begin *= size;
    b.row *= size;
    b.plane *= size;
    return b;
}

static void move_run (enum gsi_box_way way, char *array, char *packed, size_t bytes)
{
    if (way == GSI_BOX_PUT) {
        memcpy (array, packed, bytes);
        return;
    }
    memcpy (packed, array, bytes);
    if (way == GSI_BOX_TAKE_AWAY)
        memset (array, 0, bytes);
}

void gsi_host_box (enum gsi_box_way way, gs_dtype_t dtype, const struct gsi_box *box, void *array,
                   void *packed)
{
    struct gsi_box b = in_parts (box, gsi_dtype_is_complex (dtype) ? 2 : 1);
    char *at = packed;

    if (way == GSI_BOX_ADD) {
        add[gsi_part_of (dtype)](&b, array, packed);
        return;
    }
    b = in_parts (box, gs_dtype_size (dtype));
    for (size_t p = 0; p < b.planes; p++)
        for (size_t r = 0; r < b.rows; r++, at += b.run)
            move_run (way, (char *) array + b.begin + p * b.plane + r * b.row, at, b.run);
}
