/* SPDX-License-Identifier: BSD-3-Clause */
/* clock - grace periods: what counts of the time between two looks. */
#include "base/clock.h"

#include "unit/unit.h"

/* As if this process had last looked [ms] ago. */
static bool is_over_after (struct gsi_grace *grace, int64_t ms)
{
    grace->looked_ns = gsi_now_ns () - ms * GSI_NS_PER_MS;
    return gsi_grace_is_over (grace);
}

START_TEST (lasts_longer_for_who_rarely_looks)
{
    struct gsi_grace grace;

    gsi_grace_begin (&grace, GSI_NS_PER_S);
    for (int64_t looks = 0; looks < GSI_NS_PER_S / GSI_GRACE_LOOK_NS; looks++) /* and a rest */
        ck_assert (!is_over_after (&grace, 2000));
    ck_assert (is_over_after (&grace, 2000));
}
END_TEST

START_TEST (ends_in_any_case)
{
    struct gsi_grace grace;

    gsi_grace_begin (&grace, GSI_NS_PER_S);
    ck_assert_int_ge (grace.until_ns, gsi_now_ns ());
    grace.until_ns -= GSI_GRACE_MOST * GSI_NS_PER_S;
    ck_assert (gsi_grace_is_over (&grace));
    gsi_grace_begin (&grace, 0);
    ck_assert (gsi_grace_is_over (&grace));
}
END_TEST

START_TEST (is_part_of_a_deadline)
{
    ck_assert_int_eq (gsi_grace_of (80, 1, 20), 10);
    ck_assert_int_eq (gsi_grace_of (80, 11, 20), 11);
    ck_assert_int_eq (gsi_grace_of (800, 1, 20), 20);
}
END_TEST

UNIT_SUITE ("clock", 20, lasts_longer_for_who_rarely_looks, ends_in_any_case,
            is_part_of_a_deadline)
