/* SPDX-License-Identifier: BSD-3-Clause */
/* id - what is in a gs_unique_id_t: where rank 0 listens, and the key of the meeting. */
#ifndef GS_BOOT_ID_H
#define GS_BOOT_ID_H

#include <netinet/in.h>
#include <stdint.h>

#include "boot/mac.h"

#define GSI_ID_ADDRESSES 8

/* In the sender's byte order, checked by [order]. */
struct gsi_id {
    char magic[8];
    uint32_t order; /* 0x01020304 */
    uint16_t port;  /* host order */
    uint16_t addresses;
    unsigned char key[GSI_KEY_BYTES];
    uint64_t network; /* tells one network namespace of one boot from another; 0: not known */
    struct {
        uint16_t family; /* 4 or 6 */
        unsigned char bytes[16];
    } address[GSI_ID_ADDRESSES];
};

/* Reads an id; GS_ERR_ARG if it is none. */
gs_status_t gsi_id_read (const gs_unique_id_t *bytes, struct gsi_id *id);

/*
 * Takes the listening sockets of an id that was made here and not taken yet; -1 where there is
 * none. GS_ERR_ARG: there are none at all.
 */
gs_status_t gsi_id_take (const struct gsi_id *id, int listener[GSI_ID_ADDRESSES]);

/* The address number [i] as connect and bind want it, with its length. */
socklen_t gsi_id_address (const struct gsi_id *id, int i, struct sockaddr_in6 *address);

/* The addresses to try from here, what is nearest first; returns how many. */
int gsi_id_order (const struct gsi_id *id, int order[GSI_ID_ADDRESSES]);

#endif /* GS_BOOT_ID_H */
