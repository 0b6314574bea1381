/* SPDX-License-Identifier: BSD-3-Clause */
/* wire - a connection whose ends prove to each other that they know a key. */
#include "boot/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

#define TICK_MS 100

void gsi_wire_begin (struct gsi_wire *wire, int fd, bool root, const unsigned char *key)
{
    int on = 1;

    *wire = (struct gsi_wire){.fd = fd, .events = POLLIN, .root = root, .key = key};
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
}

void gsi_wire_end (struct gsi_wire *wire)
{
    if (wire->fd >= 0)
        close (wire->fd);
    wire->fd = -1;
}

/* The code of a message: HMAC-SHA256 by a key that is itself one, of all that it depends on. */
static bool make_mac (const struct gsi_wire *wire, bool from_root, const struct gsi_passing *p,
                      const void *data, unsigned char mac[GSI_MAC_BYTES])
{
    struct {
        char magic[8];
        uint32_t from_root, bytes;
        uint64_t number;
        unsigned char nonce[2][GSI_NONCE_BYTES];
    } context = {"gswire2", from_root, p->head, p->number, {{0}}};
    unsigned char key[GSI_MAC_BYTES];

    memcpy (context.nonce, wire->nonce, sizeof (context.nonce));
    return HMAC (EVP_sha256 (), wire->key, GSI_KEY_BYTES, (const void *) &context,
                 sizeof (context), key, NULL) &&
           HMAC (EVP_sha256 (), key, sizeof (key), data, p->head, mac, NULL);
}

/* What a call of the socket means that moved nothing. */
static enum gsi_passage end_of (ssize_t n)
{
    if (!n)
        errno = 0;
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? GSI_MORE
                                                                                : GSI_BROKEN;
}

/* A message is its length, its data and its code, in pieces as the socket has it. */
static enum gsi_passage move_message (struct gsi_wire *wire, bool out, void *data, size_t bytes)
{
    struct gsi_passing *p = out ? &wire->out : &wire->in;
    const struct iovec part[3] = {
        {&p->head, sizeof (p->head)}, {data, bytes}, {p->mac, sizeof (p->mac)}};
    unsigned char mac[GSI_MAC_BYTES];
    size_t end = 0;

    wire->events = out ? POLLOUT : POLLIN;
    if (out && !p->done) {
        p->head = (uint32_t) bytes;
        if (p->head != bytes || !make_mac (wire, wire->root, p, data, p->mac))
            return GSI_BROKEN;
    }
    for (int i = 0; i < 3; i++) {
        end += part[i].iov_len;
        while (p->done < end) {
            char *at = (char *) part[i].iov_base + part[i].iov_len - (end - p->done);
            ssize_t n =
                out ? send (wire->fd, at, end - p->done, MSG_NOSIGNAL | (i < 2 ? MSG_MORE : 0))
                    : recv (wire->fd, at, end - p->done, 0);
            if (n <= 0)
                return end_of (n);
            p->done += (size_t) n;
        }
        if (p->head != bytes)
            return GSI_FALSE;
    }
    if (!out && (!make_mac (wire, !wire->root, p, data, mac) ||
                 CRYPTO_memcmp (mac, p->mac, sizeof (mac))))
        return GSI_FALSE;
    p->done = 0;
    p->number++;
    return GSI_PASSED;
}

enum gsi_passage gsi_wire_take (struct gsi_wire *wire, void *data, size_t bytes)
{
    return move_message (wire, false, data, bytes);
}

enum gsi_passage gsi_wire_give (struct gsi_wire *wire, const void *data, size_t bytes)
{
    return move_message (wire, true, (void *) (uintptr_t) data, bytes);
}

enum gsi_passage gsi_wire_greet (struct gsi_wire *wire)
{
    enum gsi_passage passage = GSI_PASSED;

    while (wire->greeted < 2 && passage == GSI_PASSED) {
        unsigned char *nonce = wire->nonce[wire->greeted];
        bool own = wire->greeted == wire->root;
        if (own && !wire->out.done && getrandom (nonce, GSI_NONCE_BYTES, 0) != GSI_NONCE_BYTES)
            return GSI_BROKEN;
        passage = own ? gsi_wire_give (wire, nonce, GSI_NONCE_BYTES)
                      : gsi_wire_take (wire, nonce, GSI_NONCE_BYTES);
        wire->greeted += passage == GSI_PASSED;
    }
    return passage;
}

enum gsi_passage gsi_wire_leave (struct gsi_wire *wire)
{
    char rest[512];
    ssize_t n;

    wire->events = POLLIN;
    shutdown (wire->fd, SHUT_WR);
    n = recv (wire->fd, rest, sizeof (rest), 0); /* once: others wait, too */
    return n > 0 ? GSI_MORE : end_of (n);
}

bool gsi_wire_wait (struct pollfd *fds, size_t n, int64_t until_ns)
{
    int64_t left_ms = (until_ns - gsi_now_ns () + GSI_NS_PER_MS - 1) / GSI_NS_PER_MS;

    return poll (fds, n, left_ms > TICK_MS ? TICK_MS : left_ms < 0 ? 0 : (int) left_ms) > 0;
}
