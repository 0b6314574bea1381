/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap - the cores that each rank of a node has, by the masks of all. */
#include "grad/overlap.h"

#include "unit/unit.h"

static struct gsi_view all[4];

/* Rank [rank] may run on [cores] from [first] on. */
static void bind_to (int rank, int first, int cores)
{
    for (int core = first; core < first + cores; core++)
        all[rank].cores[core / 64] |= UINT64_C (1) << (core % 64);
}

START_TEST (cores_of_one_rank_are_its_own)
{
    for (int rank = 0; rank < 4; rank++)
        bind_to (rank, 62 + 3 * rank, 3);
    for (int rank = 0; rank < 4; rank++) {
        struct gsi_share share = gsi_overlap_share (all, 4, rank);
        ck_assert_double_eq_tol (share.whole, 3, 1e-12);
        ck_assert_int_eq (share.cores, 3);
        ck_assert_int_eq (share.sharers, 1);
    }
}
END_TEST

/* Four ranks that are bound to the same four cores have one each, not four. */
START_TEST (ranks_bound_together_share)
{
    for (int rank = 0; rank < 4; rank++)
        bind_to (rank, 8, 4);
    for (int rank = 0; rank < 4; rank++) {
        struct gsi_share share = gsi_overlap_share (all, 4, rank);
        ck_assert_double_eq_tol (share.whole, 1, 1e-12);
        ck_assert_int_eq (share.cores, 4);
        ck_assert_int_eq (share.sharers, 4);
    }
}
END_TEST

/* Masks that share some cores. */
START_TEST (what_is_shared_counts_by_parts)
{
    bind_to (0, 0, 4);
    bind_to (1, 2, 4);
    ck_assert_double_eq_tol (gsi_overlap_share (all, 2, 0).whole, 3, 1e-12);
    ck_assert_double_eq_tol (gsi_overlap_share (all, 2, 1).whole, 3, 1e-12);
    ck_assert_int_eq (gsi_overlap_share (all, 2, 1).sharers, 2);
}
END_TEST

UNIT_SUITE ("overlap", 60, cores_of_one_rank_are_its_own, ranks_bound_together_share,
            what_is_shared_counts_by_parts)
