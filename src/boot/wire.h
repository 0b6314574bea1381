/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - a connection between rank 0 and another rank, whose ends prove to each other that they
 * know a key, and then know each other's messages.
 *
 *   the other -> rank 0   greeting: a nonce
 *   rank 0 -> the other   proof: a nonce, with a code over both
 *   both ways             messages, each with a code over both nonces, the direction, the rank,
 *                         its number and its bytes: none can be replayed, mirrored or left out
 *
 * Bytes travel in the clear. Nothing here waits.
 */
#ifndef GS_BOOT_WIRE_H
#define GS_BOOT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "boot/mac.h"

#define GSI_NONCE_BYTES 32

enum gsi_passage {
    GSI_PASSED, /* all of it */
    GSI_MORE,   /* call again with the same arguments once the socket is ready */
    GSI_BROKEN, /* the connection has ended */
    GSI_FALSE   /* it does not come from who knows the key, or is of another length */
};

/* A message on its way. */
struct gsi_passing {
    uint64_t number; /* messages before it */
    size_t done;     /* bytes of head, data and code */
    uint32_t head;   /* bytes of data */
    unsigned char mac[GSI_MAC_BYTES];
};

struct gsi_greeting {
    char magic[8];
    unsigned char nonce[GSI_NONCE_BYTES];
};

struct gsi_wire {
    int fd; /* non-blocking; -1: none */
    bool root;
    int32_t rank;             /* of the end that is not rank 0; -1 until both know it */
    const unsigned char *key; /* [GSI_KEY_BYTES] */
    struct gsi_greeting greeting;
    unsigned char nonce[GSI_NONCE_BYTES]; /* of rank 0 */
    struct gsi_passing in, out;
};

/* Begins with [fd], which is the wire's from now on; [root]: this end is rank 0's. */
void gsi_wire_begin (struct gsi_wire *wire, int fd, bool root, const unsigned char *key);

/* Closes it; one that is closed is fine. */
void gsi_wire_end (struct gsi_wire *wire);

/*
 * The other rank's end: sends the greeting, then takes the proof. Rank 0's: takes the greeting
 * and sends the proof.
 */
enum gsi_passage gsi_wire_greet (struct gsi_wire *wire);
enum gsi_passage gsi_wire_take_proof (struct gsi_wire *wire);
enum gsi_passage gsi_wire_prove (struct gsi_wire *wire);

/* Takes or gives a message of [bytes]. What was taken is to be used after GSI_PASSED only. */
enum gsi_passage gsi_wire_take (struct gsi_wire *wire, void *data, size_t bytes);
enum gsi_passage gsi_wire_give (struct gsi_wire *wire, const void *data, size_t bytes);

#endif /* GS_BOOT_WIRE_H */
