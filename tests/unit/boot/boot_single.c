/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_single - rank 0 of 1, on this host, in a job of its own. */
#include "boot/boot.h"

#include "base/process.h"
#include "unit/unit.h"

START_TEST (alone)
{
    struct gsi_boot *boot;
    char host[GSI_HOST_BYTES], card[] = "my card", cards[sizeof (card)];

    unit_ok (gsi_boot_single.open (INT64_MAX, &boot));
    ck_assert_str_eq (boot->ops->name, "single");
    ck_assert_int_eq (boot->rank, 0);
    ck_assert_int_eq (boot->size, 1);
    gsi_process_host (host, sizeof (host));
    ck_assert_str_eq (boot->host, host);
    ck_assert_uint_gt (strlen (boot->job), 3);
    for (int i = 0; i < 3; i++) {
        memset (cards, 0, sizeof (cards));
        unit_ok (boot->ops->exchange (boot, card, sizeof (card), cards, 0));
        ck_assert_str_eq (cards, card);
    }
    gsi_boot_close (boot);
    gsi_boot_close (NULL);
}
END_TEST

UNIT_SUITE ("boot_single", 10, alone)
