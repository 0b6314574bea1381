/* SPDX-License-Identifier: BSD-3-Clause */
/* missing - who is not there, as ranks find out that can ask for what each of the others has put.
 */
#ifndef GS_BOOT_MISSING_H
#define GS_BOOT_MISSING_H

#include "base/clock.h"
#include "boot/boot.h"

/* How a boot asks. */
struct gsi_asking {
    void (*local) (struct gsi_boot *boot, unsigned char *marks); /* ranks of this node */

    /* Asks for [key] of each rank with wanted[rank]; clears missing[rank] where it is there. */
    void (*ask) (struct gsi_boot *boot, const char *key, const unsigned char *wanted,
                 unsigned char *missing);
    const char *(*host) (void *boot, int rank); /* or NULL */
    int64_t ask_ns;                             /* grace period that ask takes at most */
    bool early; /* ranks may be waiting still, and ask later or not at all */
};

/*
 * Writes the names of the ranks that have not put [key], which all that are there ask for now, or
 * have died since; returns how many, and suspects a firewall where those are all of the other
 * nodes. Early names no rank of this node that goes on, as far as that is known, and says of the
 * others that they may. Of many ranks each asks those of its own node, and one of each node the
 * others, so that servers are not flooded.
 */
int gsi_missing_name (struct gsi_boot *boot, const struct gsi_asking *how, const char *key,
                      char *names, size_t room);

/*
 * The sentence "3 of 8 ranks did not come: rank 2 (host n1), ..." with at most 16 of them, from
 * missing[rank] and host_of (context, rank), which may return NULL for an unknown host.
 */
void gsi_missing_list (const unsigned char *missing, int size,
                       const char *(*host_of) (void *context, int rank), void *context,
                       char *text, size_t room);

/*
 * Takes out of missing[rank] those that are merely slow, as slow (context, rank) tells, where
 * others are missing that it is not true of.
 */
void gsi_missing_leave_out_slow (unsigned char *missing, int size,
                                 bool (*slow) (const void *context, int rank),
                                 const void *context);

/* How late ranks may ask, and answer, behind a deadline of [timeout_ns]. */
int64_t gsi_missing_grace_ns (int64_t timeout_ns);

/* Returns at [until_ns]. */
void gsi_missing_stay (int64_t until_ns);

/* Returns after [ns], or at the end of [grace]: whether that is over. */
bool gsi_missing_rest (struct gsi_grace *grace, int64_t ns);

#endif /* GS_BOOT_MISSING_H */
