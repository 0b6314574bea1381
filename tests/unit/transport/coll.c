/* SPDX-License-Identifier: BSD-3-Clause */
/* coll - finding transports, and what is said where there is none. */
#include "transport/coll.h"

#include "base/transport.h"

#include "config.h"
#include "unit/unit.h"

static const struct gsi_coll_ops *ops;

START_TEST (hosts_take_self_or_mpi)
{
    ck_assert_int_eq (gsi_coll_of_hosts (1), GS_TRANSPORT_SELF);
    ck_assert_int_eq (gsi_coll_of_hosts (2), GS_TRANSPORT_MPI);
    unit_ok (gsi_coll_find (GS_TRANSPORT_SELF, 1, &ops));
    ck_assert_str_eq (ops->name, "self");
}
END_TEST

START_TEST (self_is_for_one_rank)
{
    unit_fails (gsi_coll_find (GS_TRANSPORT_SELF, 2, &ops), GS_ERR_ARG,
                "self serves one rank, not 2", "auto or mpi");
    ck_assert_ptr_null (ops);
}
END_TEST

START_TEST (without_the_module)
{
    unit_fails (gsi_coll_find (GS_TRANSPORT_MPI, 1, &ops), GS_ERR_UNSUPPORTED, "gradsync-mpi.so");
    unit_fails (gsi_coll_find ((gs_transport_t) GSI_TRANSPORT_OFI, 1, &ops), GS_ERR_UNSUPPORTED,
                "gradsync-ofi.so", "--with-ofi", "GS_OFI_MODULE");
}
END_TEST

START_TEST (unknown_and_absent)
{
#ifndef HAVE_NCCL
    unit_fails (gsi_coll_find (GS_TRANSPORT_NCCL, 2, &ops), GS_ERR_UNSUPPORTED, "nccl",
                "--with-nccl");
#endif
    unit_fails (gsi_coll_find (GS_TRANSPORT_AUTO, 2, &ops), GS_ERR_ARG, "unknown transport 0");
    unit_fails (gsi_coll_find ((gs_transport_t) GSI_TRANSPORT_COUNT, 1, &ops), GS_ERR_ARG,
                "unknown transport 5");
    unit_fails (gsi_coll_find ((gs_transport_t) -1, 1, &ops), GS_ERR_ARG, "unknown transport -1");
    unit_fails (gsi_coll_find (GS_TRANSPORT_INT_SIZED, 1, &ops), GS_ERR_ARG,
                "unknown transport 2147483647");
}
END_TEST

UNIT_SUITE ("coll", 10, hosts_take_self_or_mpi, self_is_for_one_rank, without_the_module,
            unknown_and_absent)
