/* SPDX-License-Identifier: BSD-3-Clause */
/* transport - the table of transports and modules. */
#include "base/transport.h"

#include "base/module.h"
#include "unit/unit.h"

START_TEST (names_lead_back)
{
    for (int i = GSI_TRANSPORT_AUTO + 1; i < GSI_TRANSPORT_COUNT; i++)
        ck_assert_int_eq (gsi_transport_of (gsi_transport_name (i)), i);
    ck_assert_int_eq (gsi_transport_of ("planted"), GSI_TRANSPORT_AUTO);
}
END_TEST

START_TEST (no_transport_has_no_name)
{
    static const int none[] = {GSI_TRANSPORT_AUTO, GSI_TRANSPORT_COUNT, -1,
                               GS_TRANSPORT_INT_SIZED};

    for (size_t i = 0; i < sizeof (none) / sizeof (none[0]); i++) {
        ck_assert (!gsi_transport_name (none[i]));
        ck_assert_int_eq (gsi_transport_joins (none[i]), GSI_JOINS_NOBODY);
    }
}
END_TEST

START_TEST (a_network_of_hosts_has_a_module)
{
    ck_assert_int_eq (gsi_module_of (GSI_TRANSPORT_MPI), GSI_MODULE_MPI);
    ck_assert_int_eq (gsi_module_of (GSI_TRANSPORT_OFI), GSI_MODULE_OFI);
    ck_assert_int_eq (gsi_transport_joins (GSI_TRANSPORT_NCCL), GSI_JOINS_GPUS);
}
END_TEST

UNIT_SUITE ("transport", 10, names_lead_back, no_transport_has_no_name,
            a_network_of_hosts_has_a_module)
