/* SPDX-License-Identifier: BSD-3-Clause */
/* host - rank 0 of a meeting by id. */
#include "boot/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "boot/boot.h"

#define STRANGER_NS (5 * GSI_NS_PER_S)   /* how long one may take to show that it knows the id */
#define COMPLAIN_NS (10 * GSI_NS_PER_S)  /* between two lines in the log about strangers */
#define PAUSE_NS    (50 * GSI_NS_PER_MS) /* after accept has failed */
#define ANSWER_NS   (2 * GSI_NS_PER_S)   /* for the answer, also where the deadline has passed */
#define TICK_MS     100
#define AT_ONCE     32 /* let in before those who are in are served */

struct gsi_host *gsi_host_open (const unsigned char *key, int size,
                                const int listener[GSI_ID_ADDRESSES])
{
    struct gsi_host *host = calloc (1, sizeof (*host));
    size_t most = GSI_ID_ADDRESSES + GSI_STRANGERS + (size_t) size;

    if (!host)
        return NULL;
    host->size = size;
    host->key = key;
    host->member = calloc ((size_t) size, sizeof (*host->member));
    host->poll = calloc (most, sizeof (*host->poll));
    host->polled = calloc (most, sizeof (*host->polled));
    if (!host->member || !host->poll || !host->polled) {
        free (host->member);
        free (host->poll);
        free (host->polled);
        free (host);
        return NULL;
    }
    for (int r = 0; r < size; r++)
        host->member[r].wire.fd = -1;
    for (int s = 0; s < GSI_STRANGERS; s++)
        host->stranger[s].wire.fd = -1;
    memcpy (host->listener, listener, sizeof (host->listener));
    host->first = true;
    return host;
}

/* The meeting is over for those who are not in yet. */
static void shut (struct gsi_host *host)
{
    for (int i = 0; i < GSI_ID_ADDRESSES; i++) {
        if (host->listener[i] >= 0)
            close (host->listener[i]);
        host->listener[i] = -1;
    }
    for (int s = 0; s < GSI_STRANGERS; s++)
        gsi_wire_end (&host->stranger[s].wire);
}

void gsi_host_close (struct gsi_host *host)
{
    if (!host)
        return;
    shut (host);
    for (int r = 0; r < host->size; r++)
        gsi_wire_end (&host->member[r].wire);
    free (host->member);
    free (host->poll);
    free (host->polled);
    free (host);
}

/* ---- Strangers ---- */

static bool is_stranger (const struct gsi_host *host, const struct gsi_guest *guest)
{
    return guest >= host->stranger && guest < host->stranger + GSI_STRANGERS;
}

/* Whether it has not shown yet that it knows the id. */
static bool is_unknown (const struct gsi_guest *guest)
{
    return guest->wire.fd >= 0 && guest->stage <= GSI_SAYS_HELLO;
}

/* One line for many: at once, then after a while. */
static void complain (struct gsi_host *host, bool now)
{
    if (!host->dropped ||
        (!now && host->complained_ns && gsi_now_ns () - host->complained_ns < COMPLAIN_NS))
        return;
    gsi_log (GS_LOG_WARN, "boot",
             "dropped %d connection%s that %s not know the id, the last from %s", host->dropped,
             host->dropped > 1 ? "s" : "", host->dropped > 1 ? "do" : "does", host->last);
    host->dropped = 0;
    host->complained_ns = gsi_now_ns ();
}

static void drop_stranger (struct gsi_host *host, struct gsi_guest *guest)
{
    struct sockaddr_in6 from = {0};
    socklen_t length = sizeof (from);
    const struct sockaddr_in *four = (const void *) &from;

    host->dropped++;
    snprintf (host->last, sizeof (host->last), "nowhere");
    if (!getpeername (guest->wire.fd, (struct sockaddr *) &from, &length))
        inet_ntop (from.sin6_family,
                   from.sin6_family == AF_INET ? (const void *) &four->sin_addr
                                               : (const void *) &from.sin6_addr,
                   host->last, sizeof (host->last));
    gsi_wire_end (&guest->wire);
    guest->stage = GSI_ABSENT;
    complain (host, false);
}

/* Drops the one who has waited longest. */
static struct gsi_guest *drop_oldest (struct gsi_host *host)
{
    struct gsi_guest *oldest = NULL;

    for (int s = 0; s < GSI_STRANGERS; s++) {
        struct gsi_guest *guest = &host->stranger[s];
        if (is_unknown (guest) && (!oldest || guest->since_ns < oldest->since_ns))
            oldest = guest;
    }
    if (oldest)
        drop_stranger (host, oldest);
    return oldest;
}

void gsi_host_let_in (struct gsi_host *host, int fd)
{
    struct gsi_guest *guest = NULL;

    for (int s = 0; s < GSI_STRANGERS && !guest; s++)
        if (host->stranger[s].wire.fd < 0)
            guest = &host->stranger[s];
    if (!guest && !(guest = drop_oldest (host))) { /* all are ranks that are turned away */
        close (fd);
        return;
    }
    gsi_wire_begin (&guest->wire, fd, true, host->key);
    guest->stage = GSI_GREETS;
    guest->since_ns = gsi_now_ns ();
    gsi_host_serve (host, guest);
}

static void let_in_from (struct gsi_host *host, int listener)
{
    for (int i = 0; i < AT_ONCE; i++) {
        int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            gsi_host_let_in (host, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            host->accept_error = errno;
            host->pause_ns = gsi_now_ns () + PAUSE_NS;
            drop_oldest (host); /* there may be too many files */
        }
        return;
    }
}

/* ---- Ranks ---- */

/*
 * The exchange ends with [st], of which gs_last_error () tells if it is a failure. [patient]:
 * ranks that have not come are told, too.
 */
static void decide (struct gsi_host *host, gs_status_t st, bool patient)
{
    int64_t soon_ns = gsi_now_ns () + ANSWER_NS;
    struct gsi_answer *answer = &host->answer;

    host->decided = true;
    host->patient = patient;
    if (host->until_ns < soon_ns || (patient && host->first))
        host->until_ns = soon_ns;
    answer->status = (int32_t) st;
    if (st)
        snprintf (answer->text, sizeof (answer->text), "%.*s", (int) sizeof (answer->text) - 1,
                  gsi_last_text ());
    for (int r = 1; r < host->size; r++)
        if (host->member[r].stage == GSI_WAITS)
            host->member[r].stage = GSI_HEARS_ANSWER;
}

/* The connection of rank [r] has ended, as [passage] has it. A rank may come again at first. */
static void lose (struct gsi_host *host, int r, enum gsi_passage passage)
{
    gsi_wire_end (&host->member[r].wire);
    host->member[r].stage = GSI_ABSENT;
    if (!host->decided && !host->first)
        decide (
            host,
            gsi_fail (GS_ERR_BOOT, "bootstrap by id: rank %d %s", r,
                      passage == GSI_FALSE ? "sends something else than its card" : "has ended"),
            true);
}

/* Makes a stranger that has said a true hello the rank that it says, or turns it away. */
static void admit (struct gsi_host *host, struct gsi_guest *guest)
{
    const struct gsi_hello *hello = &guest->hello;
    int r = hello->rank;
    struct gsi_guest *member = r >= 1 && r < host->size ? &host->member[r] : NULL;
    bool taken = member && member->came &&
                 memcmp (member->hello.process, hello->process, sizeof (hello->process));

    guest->wire.rank = r;
    if (member && !taken && hello->size == host->size && hello->bytes == host->bytes) {
        gsi_wire_end (&member->wire); /* it has come again */
        *member = *guest;
        member->came = true;
        member->stage = GSI_GIVES_CARD;
        guest->wire.fd = -1;
        guest->stage = GSI_ABSENT;
        gsi_host_serve (host, member);
        return;
    }
    if (!host->decided)
        decide (
            host,
            gsi_fail (hello->bytes != host->bytes ? GS_ERR_MISMATCH : GS_ERR_ARG,
                      "gs_comm_create_from_id: a process came as rank %d of %d, %s (rank 0 says "
                      "size %d)",
                      r, hello->size,
                      taken                         ? "which is taken"
                      : hello->bytes != host->bytes ? "with another gradsync version"
                                                    : "which does not fit",
                      host->size),
            true);
    guest->stage = GSI_HEARS_ANSWER;
    if (!host->answer.status) { /* too late to make the others fail */
        gsi_wire_end (&guest->wire);
        guest->stage = GSI_ABSENT;
    }
}

/* Reads on until the other end closes: bytes left unread would make the close drop our answer. */
static enum gsi_passage see_off (struct gsi_guest *guest)
{
    char rest[512];
    ssize_t n;

    while ((n = recv (guest->wire.fd, rest, sizeof (rest), 0)) > 0)
        ;
    return n < 0 && errno == EAGAIN ? GSI_MORE : GSI_BROKEN;
}

/* One step of [guest]; after GSI_PASSED it may go on. */
static enum gsi_passage take_step (struct gsi_host *host, struct gsi_guest *guest)
{
    struct gsi_wire *wire = &guest->wire;
    enum gsi_passage passage = GSI_MORE;
    char byte;

    switch (guest->stage) {
    case GSI_GREETS:
        if ((passage = gsi_wire_prove (wire)) == GSI_PASSED)
            guest->stage = GSI_SAYS_HELLO;
        break;
    case GSI_SAYS_HELLO:
        if ((passage = gsi_wire_take (wire, &guest->hello, sizeof (guest->hello))) == GSI_PASSED)
            admit (host, guest);
        break;
    case GSI_GIVES_CARD:
        if ((passage = gsi_wire_take (wire, host->cards + (size_t) wire->rank * host->bytes,
                                      host->bytes)) == GSI_PASSED)
            guest->stage = host->decided ? GSI_HEARS_ANSWER : GSI_WAITS;
        break;
    case GSI_WAITS: /* it has nothing to say: this sees it end */
        passage = recv (wire->fd, &byte, 1, 0) < 0 && errno == EAGAIN ? GSI_MORE : GSI_BROKEN;
        break;
    case GSI_HEARS_ANSWER:
        passage = gsi_wire_give (wire, &host->answer, sizeof (host->answer));
        if (passage == GSI_PASSED && is_stranger (host, guest)) {
            host->turned_away++;
            shutdown (wire->fd, SHUT_WR);
            guest->stage = GSI_LEAVES;
        } else if (passage == GSI_PASSED) {
            guest->stage = host->answer.status ? GSI_SERVED : GSI_HEARS_CARDS;
        }
        break;
    case GSI_HEARS_CARDS:
        passage = gsi_wire_give (wire, host->cards, host->bytes * (size_t) host->size);
        if (passage == GSI_PASSED)
            guest->stage = GSI_SERVED;
        break;
    case GSI_LEAVES: passage = see_off (guest); break;
    case GSI_SERVED:
    case GSI_ABSENT: break;
    }
    return passage;
}

void gsi_host_serve (struct gsi_host *host, struct gsi_guest *guest)
{
    enum gsi_passage passage;

    do
        passage = take_step (host, guest);
    while (passage == GSI_PASSED && guest->wire.fd >= 0);
    if (guest->wire.fd < 0 || passage == GSI_MORE)
        return;
    if (!is_stranger (host, guest)) {
        lose (host, guest->wire.rank, passage);
    } else if (passage == GSI_FALSE || (guest->stage == GSI_GREETS && guest->wire.in.done)) {
        drop_stranger (host, guest);
    } else {
        gsi_wire_end (&guest->wire); /* a rank that has reached us at another address, too */
        guest->stage = GSI_ABSENT;
    }
}

/* ---- The exchange ---- */

static size_t add_guest (struct gsi_host *host, size_t n, struct gsi_guest *guest)
{
    bool hears = guest->stage == GSI_HEARS_ANSWER || guest->stage == GSI_HEARS_CARDS;

    if (guest->wire.fd < 0 || guest->stage == GSI_SERVED)
        return n;
    host->poll[n] = (struct pollfd){.fd = guest->wire.fd, .events = hears ? POLLOUT : POLLIN};
    host->polled[n] = guest;
    return n + 1;
}

/* Waits until something can be done, [until_ns] at the latest, and does it. */
static void serve_all (struct gsi_host *host, int64_t until_ns)
{
    int64_t now_ns = gsi_now_ns ();
    int64_t left_ms = (until_ns - now_ns + GSI_NS_PER_MS - 1) / GSI_NS_PER_MS;
    size_t n = 0, doors;

    for (int i = 0; i < GSI_ID_ADDRESSES && now_ns >= host->pause_ns; i++)
        if (host->listener[i] >= 0)
            host->poll[n++] = (struct pollfd){.fd = host->listener[i], .events = POLLIN};
    doors = n;
    for (int s = 0; s < GSI_STRANGERS; s++)
        n = add_guest (host, n, &host->stranger[s]);
    for (int r = 1; r < host->size; r++)
        n = add_guest (host, n, &host->member[r]);
    if (poll (host->poll, n, left_ms > TICK_MS ? TICK_MS : left_ms < 0 ? 0 : (int) left_ms) < 0)
        return;
    for (size_t i = doors; i < n; i++) /* before the doors, which may give a place away */
        if (host->poll[i].revents && host->polled[i]->wire.fd == host->poll[i].fd)
            gsi_host_serve (host, host->polled[i]);
    for (size_t i = 0; i < doors; i++)
        if (host->poll[i].revents)
            let_in_from (host, host->poll[i].fd);
    now_ns = gsi_now_ns ();
    for (int s = 0; s < GSI_STRANGERS; s++)
        if (is_unknown (&host->stranger[s]) && now_ns - host->stranger[s].since_ns > STRANGER_NS)
            drop_stranger (host, &host->stranger[s]);
}

/* How many ranks are still to be told. */
static int count_open (const struct gsi_host *host)
{
    int open = host->patient ? -host->turned_away : 0; /* they stand for some of those */

    for (int r = 1; r < host->size; r++)
        switch (host->member[r].stage) {
        case GSI_HEARS_ANSWER:
        case GSI_HEARS_CARDS: open++; break;
        case GSI_SERVED: break;
        case GSI_ABSENT: open += host->patient && host->first; break;
        default: open += host->patient; break;
        }
    return open;
}

/* The deadline has passed. */
static gs_status_t name_missing (const struct gsi_host *host)
{
    unsigned char *missing = calloc ((size_t) host->size, 1);
    char names[GSI_TEXT_MAX / 2], again[64] = "", trouble[128] = "";
    int one = 0;

    if (!missing)
        return gsi_fail (GS_ERR_NOMEM, "boot id: out of memory");
    for (int r = host->size - 1; r > 0; r--)
        if ((missing[r] = host->member[r].stage != GSI_WAITS))
            one = r;
    gsi_boot_name_missing (missing, host->size, NULL, NULL, names, sizeof (names));
    free (missing);
    if (!host->first)
        snprintf (again, sizeof (again), "rank %d did not come again; ", one);
    if (host->accept_error)
        snprintf (trouble, sizeof (trouble), "; rank 0 could not take connections: %.60s",
                  strerror (host->accept_error));
    return gsi_fail (GS_ERR_TIMEOUT,
                     "bootstrap by id: the deadline passed (GS_BOOT_TIMEOUT_MS); %s%s%s", again,
                     names, trouble);
}

static bool all_wait (const struct gsi_host *host)
{
    for (int r = 1; r < host->size; r++)
        if (host->member[r].stage != GSI_WAITS)
            return false;
    return true;
}

gs_status_t gsi_host_exchange (struct gsi_host *host, const void *card, size_t bytes, void *cards,
                               int64_t deadline_ns)
{
    host->decided = host->patient = false;
    host->turned_away = 0;
    host->bytes = bytes;
    host->cards = cards;
    host->until_ns = deadline_ns;
    memset (&host->answer, 0, sizeof (host->answer));
    memcpy (cards, card, bytes);
    for (int r = 1; r < host->size && !host->first; r++)
        host->member[r].stage = GSI_GIVES_CARD;
    while (!host->decided || (count_open (host) > 0 && gsi_now_ns () < host->until_ns)) {
        if (!host->decided && all_wait (host))
            decide (host, GS_OK, false);
        else if (!host->decided && gsi_now_ns () >= deadline_ns)
            decide (host, name_missing (host), false);
        else
            serve_all (host, host->until_ns);
    }
    complain (host, true);
    shut (host); /* the id is used up */
    host->first = false;
    for (int r = 1; r < host->size && !host->answer.status; r++)
        if (host->member[r].stage != GSI_SERVED)
            return gsi_fail (GS_ERR_BOOT, "bootstrap: the connection to rank %d broke", r);
    return host->answer.status
               ? gsi_fail ((gs_status_t) host->answer.status, "%s", host->answer.text)
               : GS_OK;
}
