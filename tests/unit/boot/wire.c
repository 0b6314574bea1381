/* SPDX-License-Identifier: BSD-3-Clause */
/* wire - an end that leaves. */
#include "boot/wire.h"

#include <errno.h>
#include <sys/socket.h>

#include "unit/unit.h"

/* One that goes on talking keeps nobody: each call takes a bit. */
START_TEST (leaving_takes_turns)
{
    static const char much[32768];
    enum gsi_passage passage;
    struct gsi_wire wire;
    int pair[2];
    char byte;

    ck_assert_int_eq (socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    gsi_wire_begin (&wire, pair[0], true, (const unsigned char *) much);
    ck_assert_int_eq (send (pair[1], much, sizeof (much), 0), sizeof (much));
    ck_assert_int_eq (gsi_wire_leave (&wire), GSI_MORE);
    ck_assert_int_eq (recv (pair[1], &byte, 1, 0), 0); /* it says no more */
    ck_assert_int_eq (recv (pair[0], &byte, 1, 0), 1);
    close (pair[1]);
    while ((passage = gsi_wire_leave (&wire)) == GSI_MORE)
        ;
    ck_assert_int_eq (passage, GSI_BROKEN);
    ck_assert_int_eq (errno, 0);
    gsi_wire_end (&wire);
}
END_TEST

UNIT_SUITE ("wire", 10, leaving_takes_turns)
