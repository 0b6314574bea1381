/* SPDX-License-Identifier: BSD-3-Clause */
/* coll - which transport a wish gives, and what is said where there is none. */
#include "coll/coll.h"

#include "unit.h"

static const struct gsi_coll_ops *ops;
static const char *reason;

START_TEST (one_rank_takes_self)
{
    unit_ok (gsi_coll_choose (GS_TRANSPORT_AUTO, 1, &ops, &reason));
    ck_assert_str_eq (ops->name, "self");
    ck_assert_str_eq (reason, "one rank");
    unit_ok (gsi_coll_choose (GS_TRANSPORT_SELF, 1, &ops, &reason));
    ck_assert_str_eq (reason, "asked for");
}
END_TEST

START_TEST (self_is_for_one_rank)
{
    unit_fails (gsi_coll_choose (GS_TRANSPORT_SELF, 2, &ops, &reason), GS_ERR_ARG,
                "self serves one rank, not 2", "auto or mpi");
    ck_assert_ptr_null (ops);
}
END_TEST

START_TEST (without_the_module)
{
    unit_fails (gsi_coll_choose (GS_TRANSPORT_MPI, 1, &ops, &reason), GS_ERR_UNSUPPORTED,
                "gradsync-mpi.so");
    unit_fails (gsi_coll_choose (GS_TRANSPORT_AUTO, 2, &ops, &reason), GS_ERR_UNSUPPORTED,
                "gradsync-mpi.so");
}
END_TEST

START_TEST (unknown_and_absent)
{
    unit_fails (gsi_coll_choose (GS_TRANSPORT_NCCL, 2, &ops, &reason), GS_ERR_UNSUPPORTED, "nccl",
                "auto or mpi");
    unit_fails (gsi_coll_choose ((gs_transport_t) 4, 1, &ops, &reason), GS_ERR_ARG,
                "unknown transport 4");
    unit_fails (gsi_coll_choose ((gs_transport_t) -1, 1, &ops, &reason), GS_ERR_ARG,
                "unknown transport -1");
    unit_fails (gsi_coll_choose (GS_TRANSPORT_INT_SIZED, 1, &ops, &reason), GS_ERR_ARG,
                "unknown transport 2147483647");
}
END_TEST

UNIT_MAIN ("coll", 10, one_rank_takes_self, self_is_for_one_rank, without_the_module,
           unknown_and_absent)
