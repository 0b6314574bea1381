/* SPDX-License-Identifier: BSD-3-Clause */
/* wire - a connection whose ends prove to each other that they know a key. */
#include "boot/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAGIC "gswire1"

/* What a code is over, beside the bytes of the message. */
struct context {
    char magic[8];
    uint32_t from_root, bytes;
    int32_t rank;
    uint32_t reserved;
    uint64_t number;
    unsigned char nonce[2][GSI_NONCE_BYTES]; /* of rank 0, of the other */
};

void gsi_wire_begin (struct gsi_wire *wire, int fd, bool root, const unsigned char *key)
{
    int on = 1;

    *wire = (struct gsi_wire){.fd = fd, .root = root, .rank = -1, .key = key};
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
}

void gsi_wire_end (struct gsi_wire *wire)
{
    if (wire->fd >= 0)
        close (wire->fd);
    wire->fd = -1;
}

/* Which parts of a message are still to move. */
static size_t rest_of (struct gsi_passing *p, void *data, size_t bytes, struct iovec rest[3])
{
    const struct iovec all[3] = {
        {&p->head, sizeof (p->head)}, {data, bytes}, {p->mac, sizeof (p->mac)}};
    size_t skip = p->done, n = 0;

    for (int i = 0; i < 3; i++) {
        size_t there = skip < all[i].iov_len ? skip : all[i].iov_len;
        skip -= there;
        if (there < all[i].iov_len)
            rest[n++] = (struct iovec){(char *) all[i].iov_base + there, all[i].iov_len - there};
    }
    return n;
}

/* What the end of a call of the socket means that moved nothing. */
static enum gsi_passage end_of (ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? GSI_MORE
                                                                                : GSI_BROKEN;
}

static bool make_mac (const struct gsi_wire *wire, bool from_root, const struct gsi_passing *p,
                      const void *data, unsigned char mac[GSI_MAC_BYTES])
{
    struct context context = {.magic = MAGIC,
                              .from_root = from_root,
                              .bytes = p->head,
                              .rank = wire->rank,
                              .number = p->number};

    memcpy (context.nonce[0], wire->nonce, GSI_NONCE_BYTES);
    memcpy (context.nonce[1], wire->greeting.nonce, GSI_NONCE_BYTES);
    return gsi_mac_make (wire->key, &context, sizeof (context), data, p->head, mac);
}

enum gsi_passage gsi_wire_take (struct gsi_wire *wire, void *data, size_t bytes)
{
    struct gsi_passing *p = &wire->in;
    unsigned char mac[GSI_MAC_BYTES];
    struct iovec rest[3];
    struct msghdr message = {.msg_iov = rest};

    while ((message.msg_iovlen = rest_of (p, data, bytes, rest))) {
        ssize_t n = recvmsg (wire->fd, &message, 0);
        if (n <= 0)
            return end_of (n);
        p->done += (size_t) n;
        if (p->done >= sizeof (p->head) && p->head != bytes)
            return GSI_FALSE;
    }
    if (!make_mac (wire, !wire->root, p, data, mac) || !gsi_mac_equal (mac, p->mac))
        return GSI_FALSE;
    p->done = 0;
    p->number++;
    return GSI_PASSED;
}

enum gsi_passage gsi_wire_give (struct gsi_wire *wire, const void *data, size_t bytes)
{
    struct gsi_passing *p = &wire->out;
    struct iovec rest[3];
    struct msghdr message = {.msg_iov = rest};

    if (!p->done) {
        p->head = (uint32_t) bytes;
        if (p->head != bytes || !make_mac (wire, wire->root, p, data, p->mac))
            return GSI_BROKEN;
    }
    while ((message.msg_iovlen = rest_of (p, (void *) (uintptr_t) data, bytes, rest))) {
        ssize_t n = sendmsg (wire->fd, &message, MSG_NOSIGNAL);
        if (n <= 0)
            return end_of (n);
        p->done += (size_t) n;
    }
    p->done = 0;
    p->number++;
    return GSI_PASSED;
}

static bool make_nonce (unsigned char nonce[GSI_NONCE_BYTES])
{
    return getrandom (nonce, GSI_NONCE_BYTES, 0) == GSI_NONCE_BYTES;
}

enum gsi_passage gsi_wire_greet (struct gsi_wire *wire)
{
    struct gsi_greeting *greeting = &wire->greeting;

    memcpy (greeting->magic, MAGIC, sizeof (greeting->magic));
    /* a new socket has room for so little */
    return make_nonce (greeting->nonce) && send (wire->fd, greeting, sizeof (*greeting),
                                                 MSG_NOSIGNAL) == sizeof (*greeting)
               ? GSI_PASSED
               : GSI_BROKEN;
}

enum gsi_passage gsi_wire_take_proof (struct gsi_wire *wire)
{
    return gsi_wire_take (wire, wire->nonce, GSI_NONCE_BYTES);
}

enum gsi_passage gsi_wire_prove (struct gsi_wire *wire)
{
    struct gsi_greeting *greeting = &wire->greeting;
    size_t *done = &wire->in.done;
    unsigned char nonce[GSI_NONCE_BYTES];

    while (*done < sizeof (*greeting)) {
        ssize_t n = recv (wire->fd, (char *) greeting + *done, sizeof (*greeting) - *done, 0);
        if (n > 0)
            *done += (size_t) n;
        if (memcmp (greeting->magic, MAGIC, *done < 8 ? *done : 8))
            return GSI_FALSE;
        if (n <= 0)
            return end_of (n);
    }
    *done = 0;
    if (!make_nonce (nonce))
        return GSI_BROKEN;
    memcpy (wire->nonce, nonce, sizeof (nonce));
    return gsi_wire_give (wire, nonce, sizeof (nonce)) == GSI_PASSED ? GSI_PASSED : GSI_BROKEN;
}
