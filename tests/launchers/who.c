/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * who - makes a communicator, counts its ranks by a sum, and says how many there are. With
 * GS_TEST_TRAPS floating-point exceptions end the program, as with -ffpe-trap.
 */
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "gradsync.h"

int main (void)
{
    gs_comm_t *comm;
    gs_status_t st;
    int32_t n = 1;

    if (getenv ("GS_TEST_TRAPS"))
        feenableexcept (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    if ((st = gs_comm_create (NULL, &comm)) ||
        (st = gs_allreduce (comm, &n, 1, GS_I32, GS_SUM, NULL))) {
        fprintf (stderr, "%s: %s\n", gs_status_string (st), gs_last_error ());
        return 1;
    }
    if (getenv ("GS_TEST_TRAPS") && fegetexcept () != (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)) {
        fprintf (stderr, "the traps are gone\n");
        return 1;
    }
    printf ("found %d\n", (int) n);
    return gs_comm_destroy (comm) ? 1 : 0;
}
