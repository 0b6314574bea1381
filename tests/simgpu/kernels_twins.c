/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_twins - what the kernels of kernels.cu do. */
#include <string.h>

#include "engine.h"
#include "kernels.h"
#include "twins.h"

static void scale (unsigned grid, unsigned block, void *const *arguments)
{
    float *user = *(float *const *) arguments[0];
    double factor = *(const double *) arguments[1];
    const struct test_table *table = arguments[2];
    float *x = sim_alias (user, table->count * sizeof (*x), "scale");

    (void) grid, (void) block;
    for (unsigned i = 0; x && i < table->count; i++)
        x[i] = (float) (x[i] * factor) + table->at[i % 4];
}

const struct sim_twin *sim_twin_find (const char *name)
{
    static const size_t bytes[] = {sizeof (float *), sizeof (double), sizeof (struct test_table)};
    static const struct sim_twin twin = {"scale", 3, bytes, scale};

    return strcmp (name, twin.name) ? NULL : &twin;
}
