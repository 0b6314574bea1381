/* SPDX-License-Identifier: BSD-3-Clause */
/* dims - texts count dimensions and elements as who calls does. */
#include "base/dims.h"

#include "unit/unit.h"

static const uint64_t extents[] = {4, 3, 25};

START_TEST (of_c)
{
    char text[40], small[7];

    ck_assert (!gsi_dims_are_turned ());
    ck_assert_int_eq (gsi_dims_number (0, 3), 1);
    ck_assert_int_eq (gsi_dims_number (2, 3), 3);
    ck_assert_str_eq (gsi_dims_subscript (2, text), "[2]");
    gsi_dims_write (extents, 3, " x ", text, sizeof (text));
    ck_assert_str_eq (text, "4 x 3 x 25");
    gsi_dims_write (extents, 3, " x ", small, sizeof (small));
    ck_assert_str_eq (small, "4 x 3 ");
    gsi_dims_write (extents, 0, " x ", text, sizeof (text));
    ck_assert_str_eq (text, "");
}
END_TEST

START_TEST (of_fortran)
{
    char text[40];

    gsi_dims_turn (true);
    ck_assert_int_eq (gsi_dims_number (0, 3), 3);
    ck_assert_int_eq (gsi_dims_number (2, 3), 1);
    ck_assert_str_eq (gsi_dims_subscript (2, text), "(3)");
    gsi_dims_write (extents, 3, ", ", text, sizeof (text));
    ck_assert_str_eq (text, "25, 3, 4");
    gsi_dims_turn (false);
    gsi_dims_write (extents, 3, ", ", text, sizeof (text));
    ck_assert_str_eq (text, "4, 3, 25");
}
END_TEST

UNIT_SUITE ("dims", 10, of_c, of_fortran)
