/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - a connection between rank 0 and another rank, whose ends prove to each other that they
 * know a key.
 *
 * Each end sends a nonce, the other rank first, then what it has to say. Every message, the
 * nonces too, carries a code over the nonces so far, the direction, its number and its bytes: it
 * is of who knows the key, and once the nonces are there none can be replayed, mirrored or left
 * out. Bytes travel in the clear.
 */
#ifndef GS_BOOT_WIRE_H
#define GS_BOOT_WIRE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GSI_KEY_BYTES   32
#define GSI_MAC_BYTES   32
#define GSI_NONCE_BYTES 32

enum gsi_passage {
    GSI_PASSED, /* all of it */
    GSI_MORE,   /* call again with the same arguments once the socket is ready */
    GSI_BROKEN, /* the connection has ended, or did not begin: errno, 0 at its regular end */
    GSI_FALSE   /* it does not come from who knows the key, or is of another length */
};

/* A message on its way. */
struct gsi_passing {
    uint64_t number; /* messages before it */
    size_t done;     /* bytes of head, data and code */
    uint32_t head;   /* bytes of data */
    unsigned char mac[GSI_MAC_BYTES];
};

struct gsi_wire {
    int fd;                                  /* non-blocking; -1: none */
    short events;                            /* what poll is to wait for */
    bool root;                               /* this end is rank 0's */
    int greeted;                             /* how many nonces have passed */
    const unsigned char *key;                /* [GSI_KEY_BYTES] */
    unsigned char nonce[2][GSI_NONCE_BYTES]; /* of the other rank, of rank 0 */
    struct gsi_passing in, out;
};

/* Begins with [fd], which may still be connecting and is the wire's from now on. */
void gsi_wire_begin (struct gsi_wire *wire, int fd, bool root, const unsigned char *key);

/* Closes it; one that is closed is fine. */
void gsi_wire_end (struct gsi_wire *wire);

/* Of these none waits. What was taken is to be used after GSI_PASSED only. */
enum gsi_passage gsi_wire_greet (struct gsi_wire *wire); /* comes first: the nonces */
enum gsi_passage gsi_wire_take (struct gsi_wire *wire, void *data, size_t bytes);
enum gsi_passage gsi_wire_give (struct gsi_wire *wire, const void *data, size_t bytes);

/*
 * Says no more and hears no more until the other end closes, which is when it has read all: bytes
 * left unread would make a close drop what was sent. Never GSI_PASSED.
 */
enum gsi_passage gsi_wire_leave (struct gsi_wire *wire);

/* Waits for any of [n], not beyond [until_ns] and 100 ms at most; whether one is ready. */
bool gsi_wire_wait (struct pollfd *fds, size_t n, int64_t until_ns);

#endif /* GS_BOOT_WIRE_H */
