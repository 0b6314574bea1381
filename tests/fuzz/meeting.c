/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting - any bytes on connections to rank 0 of a meeting by id, and from it: of strangers, and
 * of ranks that know the key but say what they like.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "boot/rendezvous.h"
#include "fuzz/fuzz.h"

#define SIZE  4
#define BYTES 40 /* of a card */

/* What the first byte of an input says. */
enum kind { STRANGER, RANK, ROOT, KINDS };

static const unsigned char key[GSI_KEY_BYTES] = "the key that both ends know";

size_t fuzz_seed (unsigned number, uint8_t *data, size_t room)
{
    struct gsi_hello hello = {.bytes = BYTES, .rank = 1 + (int) (number % 3), .size = SIZE};
    size_t bytes = 1;

    data[0] = (uint8_t) (number % KINDS);
    if (number % KINDS == RANK) {
        memcpy (data + 1, &hello, sizeof (hello));
        bytes += sizeof (hello) + 4 + BYTES;
        memset (data + 1 + sizeof (hello), 0, 4 + BYTES);
        data[1 + sizeof (hello)] = BYTES;
    } else {
        memset (data + 1, 0, 2 * (4 + GSI_NONCE_BYTES + GSI_MAC_BYTES));
        data[1] = GSI_NONCE_BYTES;
        bytes += 2 * (4 + GSI_NONCE_BYTES + GSI_MAC_BYTES);
    }
    return bytes < room ? bytes : room;
}

static void serve (struct gsi_rendezvous *host)
{
    gsi_rendezvous_serve (host, SIZE); /* where strangers begin */
    for (int r = 1; r < SIZE; r++)
        gsi_rendezvous_serve (host, r);
}

/* Says hello with the first bytes, then messages of the lengths that come, each behind its own.
 */
static void be_rank (struct gsi_rendezvous *host, int fd, const uint8_t *data, size_t size)
{
    struct gsi_wire wire;
    struct gsi_hello hello;
    uint32_t bytes;

    gsi_wire_begin (&wire, fd, false, key);
    gsi_wire_greet (&wire);
    serve (host);
    if (size < sizeof (hello) || gsi_wire_greet (&wire) != GSI_PASSED)
        abort ();
    memcpy (&hello, data, sizeof (hello));
    gsi_wire_give (&wire, &hello, sizeof (hello));
    serve (host);
    for (size_t at = sizeof (hello); at + 4 <= size; at += 4 + bytes) {
        memcpy (&bytes, data + at, 4);
        if (bytes > size - at - 4)
            break;
        if (gsi_wire_give (&wire, data + at + 4, bytes) != GSI_PASSED)
            break;
        serve (host);
    }
}

static void be_root (int fd, int other, const uint8_t *data, size_t size)
{
    struct gsi_wire wire;
    char cards[SIZE * BYTES];

    (void) !send (other, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    gsi_wire_begin (&wire, fd, false, key);
    if (gsi_wire_greet (&wire) == GSI_PASSED)
        abort (); /* nobody can prove what he does not know */
    wire.in.done = 0;
    if (gsi_wire_take (&wire, cards, sizeof (cards)) == GSI_PASSED)
        abort ();
}

/* In two pieces, so that each state is left in the middle, too. */
static void be_stranger (struct gsi_rendezvous *host, int fd, const uint8_t *data, size_t size)
{
    size_t half = size ? data[0] % size : 0;

    (void) !send (fd, data, half, MSG_NOSIGNAL | MSG_DONTWAIT);
    serve (host);
    (void) !send (fd, data + half, size - half, MSG_NOSIGNAL | MSG_DONTWAIT);
    serve (host);
    for (int r = 1; r < SIZE; r++)
        if (host->client[r].hello.rank)
            abort (); /* a stranger has taken a rank */
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    struct gsi_rendezvous *host;
    int pair[2];

    setenv ("GS_DEBUG", "error", 1);
    if (size < 1 + sizeof (struct gsi_hello) ||
        socketpair (AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
        return 0;
    if (!(host = gsi_rendezvous_open (key, SIZE)))
        abort ();
    host->bytes = BYTES;
    host->cards = calloc (SIZE, BYTES);
    host->until_ns = gsi_now_ns ();
    if (data[0] % KINDS == ROOT) {
        be_root (pair[0], pair[1], data + 1, size - 1);
        close (pair[0]);
    } else {
        gsi_rendezvous_let_in (host, pair[0]);
        if (data[0] % KINDS == RANK)
            be_rank (host, pair[1], data + 1, size - 1);
        else
            be_stranger (host, pair[1], data + 1, size - 1);
    }
    close (pair[1]);
    serve (host);
    free (host->cards);
    gsi_rendezvous_close (host);
    return 0;
}
