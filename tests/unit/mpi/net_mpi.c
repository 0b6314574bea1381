/* SPDX-License-Identifier: BSD-3-Clause */
/* net_mpi - what MPI's network takes from cards. */
#include "mpi/net_mpi.h"

#include "unit/unit.h"

/* What a card says of MPI's world becomes an index only if it is one. */
START_TEST (forged_places_do_not_fit)
{
    ck_assert (gsi_net_mpi_fits (0, 4, 4) && gsi_net_mpi_fits (3, 4, 4));
    ck_assert (!gsi_net_mpi_fits (4, 4, 4) && !gsi_net_mpi_fits (INT32_MAX, 4, 4));
    ck_assert (!gsi_net_mpi_fits (-1, 4, 4) && !gsi_net_mpi_fits (INT32_MIN, 4, 4));
    ck_assert (!gsi_net_mpi_fits (1, 5, 4) && !gsi_net_mpi_fits (1, -1, 4));
}
END_TEST

UNIT_SUITE ("net_mpi", 60, forged_places_do_not_fit)
