/* SPDX-License-Identifier: BSD-3-Clause */
/* id - what is in a gs_unique_id_t: where rank 0 listens, and the key of the rendezvous. */
#ifndef GS_BOOT_ID_H
#define GS_BOOT_ID_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/wire.h"
#include "gradsync.h"

#define GSI_ID_ADDRESSES 7 /* as many as fit */

union gsi_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
};

struct gsi_id {
    uint64_t magic; /* in the sender's byte order */
    unsigned char key[GSI_KEY_BYTES];
    uint64_t job; /* a name, at random: no secret */
    uint32_t addresses;
    union gsi_address address[GSI_ID_ADDRESSES];
};

/* Reads an id; GS_ERR_ARG if it is none. */
gs_status_t gsi_id_read (const gs_unique_id_t *bytes, struct gsi_id *id);

/*
 * Takes the listening sockets, one for each address, -1 for the rest, of an id that was made here
 * and not taken yet. GS_ERR_ARG: there are none.
 */
gs_status_t gsi_id_take (const struct gsi_id *id, int listener[GSI_ID_ADDRESSES]);

/*
 * A non-blocking socket that begins to connect to [at], or listens there, where a port of 0
 * becomes one that is free. -1: errno says why.
 */
int gsi_id_socket (union gsi_address *at, bool listens);

#endif /* GS_BOOT_ID_H */
