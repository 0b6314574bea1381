/* SPDX-License-Identifier: BSD-3-Clause */
/* alone.h - a communicator of one rank for the tests of src/comm/. */
#ifndef GS_TESTS_ALONE_H
#define GS_TESTS_ALONE_H

#include "core/comm.h"
#include "unit/unit.h"

/* A communicator of this process alone, with its record in memory. */
static inline gs_comm_t *alone_create (void)
{
    gs_comm_t *comm;

    setenv ("GS_BOOT", "single", 1);
    setenv ("GS_RECORD", "memory", 1);
    unit_ok (gs_comm_create (NULL, &comm));
    return comm;
}

/* What a destroyed communicator may look like: readable memory without the mark of a live one. */
static inline gs_comm_t *alone_stale (void)
{
    static union {
        struct gs_comm comm;
        char bytes[sizeof (struct gs_comm)];
    } stale;

    return &stale.comm;
}

#endif /* GS_TESTS_ALONE_H */
