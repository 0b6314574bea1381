/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous - rank 0 of a rendezvous by id. */
#include "boot/rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/missing.h"

#define STRANGER_NS (5 * GSI_NS_PER_S)   /* how long one may take to show that it knows the id */
#define COMPLAIN_NS (10 * GSI_NS_PER_S)  /* between two lines in the log about strangers */
#define ANSWER_NS   (2 * GSI_NS_PER_S)   /* for the answer, also where the deadline has passed */
#define PAUSE_NS    (50 * GSI_NS_PER_MS) /* after a connection that could not be taken */

/* Let in at an address before those who are in are served: time to show that they know the id. */
#define AT_ONCE (GSI_STRANGERS / GSI_ID_ADDRESSES / 4)

struct gsi_rendezvous *gsi_rendezvous_open (const unsigned char *key, int size)
{
    size_t clients = (size_t) size + GSI_STRANGERS;
    struct gsi_rendezvous *host = calloc (1, sizeof (*host) + clients * sizeof (host->client[0]));

    if (!host || !(host->poll = calloc (GSI_ID_ADDRESSES + clients, sizeof (*host->poll)))) {
        free (host);
        return NULL;
    }
    host->size = size;
    host->clients = (int) clients;
    host->key = key;
    host->first = true;
    memset (host->listener, -1, sizeof (host->listener));
    for (int g = 0; g < host->clients; g++)
        host->client[g].wire.fd = -1;
    return host;
}

static void end (struct gsi_connection *client)
{
    gsi_wire_end (&client->wire);
    client->stage = GSI_ABSENT;
}

/* The rendezvous is over for those who are not in yet. */
static void shut (struct gsi_rendezvous *host)
{
    for (int i = 0; i < GSI_ID_ADDRESSES; i++) {
        if (host->listener[i] >= 0)
            close (host->listener[i]);
        host->listener[i] = -1;
    }
    for (int g = host->size; g < host->clients; g++)
        end (&host->client[g]);
}

void gsi_rendezvous_close (struct gsi_rendezvous *host)
{
    if (!host)
        return;
    shut (host);
    for (int r = 1; r < host->size; r++)
        end (&host->client[r]);
    free (host->poll);
    free (host);
}

/* ---- Strangers ---- */

/* One line for many: at once, then after a while. */
static void log_strangers (struct gsi_rendezvous *host, bool now)
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

static void drop_stranger (struct gsi_rendezvous *host, struct gsi_connection *client)
{
    struct sockaddr_in6 from;
    socklen_t length = sizeof (from);

    host->dropped++;
    if (getpeername (client->wire.fd, (struct sockaddr *) &from, &length) ||
        getnameinfo ((struct sockaddr *) &from, length, host->last, sizeof (host->last), NULL, 0,
                     NI_NUMERICHOST))
        strcpy (host->last, "nowhere");
    end (client);
    log_strangers (host, false);
}

/* Whether it has shown that it knows the id, unless it repeats what it has heard from one. */
static bool is_proven (const struct gsi_connection *client)
{
    return client->wire.in.number > 0;
}

static bool goes_before (const struct gsi_connection *a, const struct gsi_connection *b)
{
    return is_proven (a) != is_proven (b) ? is_proven (b) : a->since_ns < b->since_ns;
}

/*
 * Drops the one that has been here longest of those that came before [before_ns], ranks on their
 * way in only where there are no others; else NULL.
 */
static struct gsi_connection *drop_oldest (struct gsi_rendezvous *host, int64_t before_ns)
{
    struct gsi_connection *oldest = NULL;

    for (int g = host->size; g < host->clients; g++) {
        struct gsi_connection *client = &host->client[g];
        if (client->stage == GSI_SAYS_HELLO && client->since_ns < before_ns &&
            (!oldest || goes_before (client, oldest)))
            oldest = client;
    }
    if (oldest && is_proven (oldest))
        end (oldest); /* it comes again */
    else if (oldest)
        drop_stranger (host, oldest);
    return oldest;
}

void gsi_rendezvous_let_in (struct gsi_rendezvous *host, int fd)
{
    struct gsi_connection *client = NULL;

    for (int g = host->size; g < host->clients && !client; g++)
        if (host->client[g].stage == GSI_ABSENT)
            client = &host->client[g];
    if (!client && !(client = drop_oldest (host, INT64_MAX))) {
        close (fd); /* all are ranks that are turned away */
        return;
    }
    gsi_wire_begin (&client->wire, fd, true, host->key);
    client->stage = GSI_SAYS_HELLO;
    client->since_ns = gsi_now_ns ();
}

/* Makes the best of an accept that has failed; whether to go on with the same listener. */
static bool bear (struct gsi_rendezvous *host, int error)
{
    switch (error) {
    case EAGAIN: return false;
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN: /* from here on, what has become of the connection that was to be taken */
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EPROTO:
    case ENOPROTOOPT:
    case EOPNOTSUPP: return true;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: drop_oldest (host, INT64_MAX); break; /* which makes room */
    default: break;
    }
    host->accept_error = error;
    host->pause_ns = gsi_now_ns () + PAUSE_NS;
    return false;
}

static void let_in_from (struct gsi_rendezvous *host, int listener)
{
    bool goes_on = true;

    for (int i = 0; i < AT_ONCE && goes_on; i++) {
        int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            goes_on = bear (host, errno);
        } else {
            host->accept_error = 0;
            gsi_rendezvous_let_in (host, fd);
        }
    }
}

/* ---- Ranks ---- */

/*
 * The exchange ends with [st], of which gsi_last_text () tells if it is a failure. [tells_late]:
 * ranks that have not come are told, too.
 */
static void decide (struct gsi_rendezvous *host, gs_status_t st, bool tells_late)
{
    int64_t soon_ns = gsi_now_ns () + ANSWER_NS;

    host->decided = true;
    host->tells_late = tells_late;
    if (host->until_ns < soon_ns || (tells_late && host->first))
        host->until_ns = soon_ns;
    if (st)
        gsi_failure_note (&host->answer, st);
    for (int r = 1; r < host->size; r++)
        if (host->client[r].stage == GSI_WAITS) {
            host->client[r].stage = GSI_HEARS_ANSWER;
            gsi_rendezvous_serve (host, r);
        }
}

/* The connection of rank [r] has ended, as [passage] has it. A rank may come again at first. */
static void lose (struct gsi_rendezvous *host, int r, enum gsi_passage passage)
{
    end (&host->client[r]);
    if (!host->decided && !host->first)
        decide (
            host,
            gsi_fail (GS_ERR_BOOT, "bootstrap by id: rank %d %s", r,
                      passage == GSI_FALSE ? "sends something else than its card" : "has ended"),
            true);
}

static bool fits (const struct gsi_rendezvous *host, const struct gsi_hello *hello)
{
    return hello->rank >= 1 && hello->rank < host->size && hello->size == host->size;
}

/* Whether another process has come as this rank. */
static bool is_taken (const struct gsi_rendezvous *host, const struct gsi_hello *hello)
{
    const struct gsi_hello *first = &host->client[fits (host, hello) ? hello->rank : 0].hello;

    return first->rank && memcmp (first->process, hello->process, sizeof (hello->process)) != 0;
}

/* Makes a stranger that has said a true hello the rank that it says, or turns it away. */
static void admit (struct gsi_rendezvous *host, struct gsi_connection *client)
{
    const struct gsi_hello *hello = &client->hello;
    int r = hello->rank;
    bool taken = is_taken (host, hello);
    bool late = host->decided && !host->answer.st; /* its card is on the way to the others */

    if (fits (host, hello) && !taken && !late && hello->bytes == host->bytes) {
        end (&host->client[r]); /* it has come again */
        host->client[r] = *client;
        host->client[r].stage = GSI_GIVES_CARD;
        client->wire.fd = -1;
        client->stage = GSI_ABSENT;
        return;
    }
    if (!host->decided)
        decide (host,
                gsi_fail (hello->bytes != host->bytes ? GS_ERR_MISMATCH : GS_ERR_ARG,
                          "gs_comm_create_from_id: a process came as rank %d of %d, %s (rank 0 "
                          "says size %d)",
                          r, hello->size,
                          taken && host->client[r].stage == GSI_ABSENT
                              ? "which is taken by a process that has left"
                          : taken                       ? "which is taken"
                          : hello->bytes != host->bytes ? "with another gradsync version"
                                                        : "which does not fit",
                          host->size),
                true);
    if (host->answer.st)
        client->stage = GSI_HEARS_ANSWER;
    else
        end (client); /* too late to make the others fail */
}

/* One step of client [g]; after GSI_PASSED it may go on. */
static enum gsi_passage take_step (struct gsi_rendezvous *host, int g)
{
    struct gsi_connection *client = &host->client[g];
    struct gsi_wire *wire = &client->wire;
    enum gsi_passage passage = GSI_MORE;
    enum gsi_stage next = client->stage;

    switch (client->stage) {
    case GSI_SAYS_HELLO:
        if ((passage = gsi_wire_greet (wire)) == GSI_PASSED)
            passage = gsi_wire_take (wire, &client->hello, sizeof (client->hello));
        if (passage == GSI_PASSED)
            admit (host, client);
        return passage;
    case GSI_GIVES_CARD:
        passage = gsi_wire_take (wire, host->cards + (size_t) g * host->bytes, host->bytes);
        next = host->decided ? GSI_HEARS_ANSWER : GSI_WAITS;
        break;
    case GSI_WAITS: /* it has nothing to say: this sees it end */
        passage = gsi_wire_take (wire, NULL, 0);
        break;
    case GSI_HEARS_ANSWER:
        passage = gsi_wire_give (wire, &host->answer, sizeof (host->answer));
        next = g >= host->size ? GSI_LEAVES : host->answer.st ? GSI_SERVED : GSI_HEARS_CARDS;
        break;
    case GSI_HEARS_CARDS:
        passage = gsi_wire_give (wire, host->cards, host->bytes * (size_t) host->size);
        next = GSI_SERVED;
        break;
    case GSI_LEAVES: passage = gsi_wire_leave (wire); break;
    case GSI_SERVED:
    case GSI_ABSENT: break;
    }
    if (passage == GSI_PASSED)
        client->stage = next;
    return passage;
}

void gsi_rendezvous_serve (struct gsi_rendezvous *host, int g)
{
    struct gsi_connection *client = &host->client[g];
    enum gsi_passage passage;

    do
        passage = take_step (host, g);
    while (passage == GSI_PASSED);
    if (passage == GSI_MORE)
        return;
    if (g < host->size) {
        lose (host, g, passage);
    } else if (passage == GSI_FALSE || (!client->wire.in.number && client->wire.in.done)) {
        drop_stranger (host, client);
    } else { /* a rank that was told, or has reached us at another address, too */
        host->turned_away += client->stage == GSI_LEAVES && !is_taken (host, &client->hello);
        end (client);
    }
}

/* ---- The exchange ---- */

static bool pauses (const struct gsi_rendezvous *host)
{
    return gsi_now_ns () < host->pause_ns;
}

/*
 * Waits until something can be done, [until_ns] at the latest, and does it. N.B. poll takes no
 * more places than a process may have files, used or not.
 */
static void serve_all (struct gsi_rendezvous *host, int64_t until_ns)
{
    size_t n = 0, doors;

    for (int i = 0; i < GSI_ID_ADDRESSES && !pauses (host); i++)
        if (host->listener[i] >= 0)
            host->poll[n++] = (struct pollfd){.fd = host->listener[i], .events = POLLIN};
    doors = n;
    if (pauses (host) && host->pause_ns < until_ns)
        until_ns = host->pause_ns;
    for (int g = 0; g < host->clients; g++) {
        struct gsi_connection *client = &host->client[g];
        bool here = client->wire.fd >= 0 && client->stage != GSI_SERVED;
        client->slot = here ? &host->poll[n] : NULL;
        if (here)
            host->poll[n++] = (struct pollfd){client->wire.fd, client->wire.events, 0};
    }
    if (gsi_wire_wait (host->poll, n, until_ns)) {
        for (int g = 0; g < host->clients; g++) /* before the doors, which may give a slot away */
            if (host->client[g].slot && host->client[g].slot->revents)
                gsi_rendezvous_serve (host, g);
        for (size_t i = 0; i < doors && !pauses (host); i++)
            if (host->poll[i].revents)
                let_in_from (host, host->poll[i].fd);
    }
    while (drop_oldest (host, gsi_now_ns () - STRANGER_NS))
        ;
}

/* Whether ranks, or those that were turned away, are still to be told. */
static bool is_open (const struct gsi_rendezvous *host)
{
    int absent = 0;

    for (int g = 1; g < host->clients; g++) {
        enum gsi_stage stage = host->client[g].stage;
        if (stage == GSI_HEARS_ANSWER || stage == GSI_HEARS_CARDS || stage == GSI_LEAVES ||
            (stage == GSI_GIVES_CARD && host->tells_late))
            return true;
        absent += g < host->size && stage == GSI_ABSENT && host->first;
    }
    return host->tells_late && absent > host->turned_away; /* who stand for some of the absent */
}

static bool all_wait (const struct gsi_rendezvous *host)
{
    for (int r = 1; r < host->size; r++)
        if (host->client[r].stage != GSI_WAITS)
            return false;
    return true;
}

/* The deadline has passed. */
static gs_status_t name_absent (struct gsi_rendezvous *host)
{
    unsigned char *missing = (unsigned char *) host->poll; /* which has room, and rests now */
    char names[GSI_TEXT_MAX / 2];

    for (int r = 0; r < host->size; r++)
        missing[r] = r && host->client[r].stage != GSI_WAITS;
    gsi_missing_list (missing, host->size, NULL, NULL, names, sizeof (names));
    return gsi_fail (GS_ERR_TIMEOUT, "bootstrap by id: " GSI_LATE_BOOT "%s; %s%s%s",
                     host->first ? "" : " for all to come again", names,
                     host->accept_error ? "; rank 0 could not take connections: " : "",
                     host->accept_error ? strerror (host->accept_error) : "");
}

gs_status_t gsi_rendezvous_exchange (struct gsi_rendezvous *host, const void *card, size_t bytes,
                                     void *cards, int64_t deadline_ns)
{
    host->decided = host->tells_late = false;
    host->turned_away = 0;
    host->bytes = bytes;
    host->cards = cards;
    host->until_ns = deadline_ns;
    memset (&host->answer, 0, sizeof (host->answer));
    memcpy (cards, card, bytes);
    for (int r = 1; r < host->size && !host->first; r++) {
        host->client[r].stage = GSI_GIVES_CARD;
        gsi_rendezvous_serve (host, r);
    }
    while (!host->decided)
        if (all_wait (host))
            decide (host, GS_OK, false);
        else if (gsi_now_ns () >= deadline_ns)
            decide (host, name_absent (host), false);
        else
            serve_all (host, deadline_ns);
    while (is_open (host) && gsi_now_ns () < host->until_ns)
        serve_all (host, host->until_ns);
    log_strangers (host, true);
    shut (host); /* the id is used up */
    host->first = false;
    for (int r = 1; r < host->size && !host->answer.st; r++)
        if (host->client[r].stage != GSI_SERVED)
            return gsi_fail (GS_ERR_BOOT, "bootstrap: the connection to rank %d broke", r);
    return gsi_failure_repeat (&host->answer);
}
