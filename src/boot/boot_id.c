/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_id - a meeting of the ranks that know an id, for sites without a PMIx plugin.
 *
 * The process that makes the id listens (id.c) and becomes rank 0 (host.c). The others, here, try
 * its addresses side by side, until one proves that it knows the id too (wire.c), and give it
 * their card. Only cards travel so: the data goes over the transport.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/host.h"

#define ATTEMPT_NS (2 * GSI_NS_PER_S) /* for a connection; the proof takes until rank 0 calls */
#define STAGGER_NS (250 * GSI_NS_PER_MS) /* from one address to the next: RFC 8305 */
#define RETRY_NS   (50 * GSI_NS_PER_MS)  /* after a failure; each time twice as long */
#define SLOW_NS    GSI_NS_PER_S          /* the longest */
#define REFUSED_NS (3 * GSI_NS_PER_S)    /* rank 0 is gone when all have refused for so long */
#define GRACE_NS   (2 * GSI_NS_PER_S)    /* others wait longer than rank 0, which knows more */
#define TICK_MS    20

struct boot_id {
    struct gsi_boot base;
    struct gsi_id id;
    unsigned char process[16]; /* see struct gsi_hello */
    struct gsi_host *host;     /* on rank 0, else NULL */
    struct gsi_wire root;      /* to rank 0, elsewhere */
    bool met;                  /* the first exchange has succeeded */
    int warned;                /* of others in rank 0's place */
};

/* One address of rank 0. */
struct attempt {
    struct gsi_wire wire;
    bool proving;                      /* connected */
    int64_t next_ns, end_ns, delay_ns; /* when it begins, when it is given up; after a failure */
};

static void close_id (struct gsi_boot *base)
{
    struct boot_id *boot = (struct boot_id *) base;

    gsi_host_close (boot->host);
    gsi_wire_end (&boot->root);
    free (boot);
}

static gs_status_t open_host (struct boot_id *boot)
{
    int listener[GSI_ID_ADDRESSES];
    gs_status_t st = gsi_id_take (&boot->id, listener);

    if (st)
        return st;
    if ((boot->host = gsi_host_open (boot->id.key, boot->base.size, listener)))
        return GS_OK;
    for (int i = 0; i < GSI_ID_ADDRESSES; i++)
        if (listener[i] >= 0)
            close (listener[i]);
    return gsi_fail (GS_ERR_NOMEM, "gs_comm_create_from_id: out of memory");
}

gs_status_t gsi_boot_id_open (const gs_unique_id_t *bytes, int rank, int size,
                              struct gsi_boot **out)
{
    struct boot_id *boot;
    gs_status_t st = gsi_mac_there ("gs_comm_create_from_id");

    *out = NULL;
    if (st)
        return st;
    if (!(boot = calloc (1, sizeof (*boot))))
        return gsi_fail (GS_ERR_NOMEM, "gs_comm_create_from_id: out of memory");
    boot->base.ops = &gsi_boot_id;
    boot->base.rank = rank;
    boot->base.size = size;
    boot->root.fd = -1;
    gsi_boot_own_host (boot->base.host);
    if (!(st = gsi_id_read (bytes, &boot->id)) && !rank)
        st = open_host (boot);
    if (!st && getrandom (boot->process, sizeof (boot->process), 0) < 0)
        st = gsi_fail (GS_ERR_BOOT, "gs_comm_create_from_id: getrandom: %s", strerror (errno));
    snprintf (boot->base.job, sizeof (boot->base.job), "id-%016" PRIx64, boot->id.job);
    if (st)
        close_id (&boot->base);
    else
        *out = &boot->base;
    return st;
}

/* ---- The way to rank 0 ---- */

/* Gives an attempt up, until a while later. */
static void give_up (struct attempt *a)
{
    gsi_wire_end (&a->wire);
    a->next_ns = gsi_now_ns () + a->delay_ns;
    a->delay_ns = 2 * a->delay_ns < SLOW_NS ? 2 * a->delay_ns : SLOW_NS;
}

/* Begins to connect to the address number [i]. Clears [refused] unless that is refused at once.
 */
static void begin (struct boot_id *boot, int i, struct attempt *a, bool *refused)
{
    int fd = gsi_id_socket (&boot->id.address[i], false);

    a->proving = false;
    a->end_ns = gsi_now_ns () + ATTEMPT_NS;
    if (fd >= 0) {
        gsi_wire_begin (&a->wire, fd, false, boot->id.key);
        return;
    }
    *refused = *refused && errno == ECONNREFUSED;
    give_up (a);
}

/* Goes on with an attempt whose socket is ready. [refused] is cleared unless that was the case.
 */
static enum gsi_passage go_on (struct attempt *a, bool *refused)
{
    socklen_t length = sizeof (int);
    int error = 0;

    if (!a->proving) {
        if (getsockopt (a->wire.fd, SOL_SOCKET, SO_ERROR, &error, &length) || error) {
            *refused = *refused && error == ECONNREFUSED;
            return GSI_BROKEN;
        }
        a->proving = true;
        if (gsi_wire_greet (&a->wire) != GSI_PASSED)
            return GSI_BROKEN;
    }
    *refused = false;
    return gsi_wire_take_proof (&a->wire);
}

/* Begins, goes on with and ends attempts; true: one has led to rank 0. */
static bool try_all (struct boot_id *boot, int n, struct attempt *attempts, bool *refused)
{
    struct pollfd poll_fd[GSI_ID_ADDRESSES];
    int64_t now_ns = gsi_now_ns ();

    for (int k = 0; k < n; k++) {
        struct attempt *a = &attempts[k];
        if (a->wire.fd < 0 && now_ns >= a->next_ns)
            begin (boot, k, a, refused);
        poll_fd[k] = (struct pollfd){.fd = a->wire.fd, .events = a->proving ? POLLIN : POLLOUT};
    }
    if (poll (poll_fd, (nfds_t) n, TICK_MS) < 0)
        return false;
    for (int k = 0; k < n; k++) {
        struct attempt *a = &attempts[k];
        enum gsi_passage passage = GSI_MORE;
        if (a->wire.fd >= 0 && poll_fd[k].revents)
            passage = go_on (a, refused);
        else if (a->wire.fd >= 0)
            *refused = false; /* an answer may come */
        if (passage == GSI_PASSED) {
            boot->root = a->wire;
            a->wire.fd = -1;
            return true;
        }
        if (passage == GSI_FALSE && !boot->warned++)
            gsi_log (GS_LOG_WARN, "boot", "what answers for rank 0 does not know the id");
        if (passage != GSI_MORE || (a->wire.fd >= 0 && !a->proving && gsi_now_ns () >= a->end_ns))
            give_up (a);
    }
    return false;
}

/*
 * Finds rank 0; false at the deadline, or when all its addresses have refused for a while: it
 * listens from the moment the id is made, so it has ended.
 */
static bool reach_root (struct boot_id *boot, int64_t deadline_ns)
{
    struct attempt attempts[GSI_ID_ADDRESSES];
    int n = (int) boot->id.addresses;
    int64_t begin_ns = gsi_now_ns (), hope_ns = begin_ns, now_ns = begin_ns;
    bool there = false;

    for (int k = 0; k < n; k++)
        attempts[k] = (struct attempt){
            .wire = {.fd = -1}, .next_ns = begin_ns + k * STAGGER_NS, .delay_ns = RETRY_NS};
    while (!there && now_ns < deadline_ns && now_ns - hope_ns < REFUSED_NS) {
        bool refused = true;
        there = try_all (boot, n, attempts, &refused);
        now_ns = gsi_now_ns ();
        if (!refused)
            hope_ns = now_ns;
    }
    for (int k = 0; k < n; k++)
        gsi_wire_end (&attempts[k].wire);
    return there;
}

/* ---- The exchange ---- */

/* Waits for the socket; false at the deadline. */
static bool await (int fd, short events, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left_ms;

    do {
        left_ms = (deadline_ns - gsi_now_ns () + GSI_NS_PER_MS - 1) / GSI_NS_PER_MS;
        if (left_ms <= 0)
            return false;
    } while (poll (&p, 1, left_ms > 1000 ? 1000 : (int) left_ms) <= 0);
    return true;
}

static bool give (struct gsi_wire *wire, const void *data, size_t bytes, int64_t deadline_ns)
{
    enum gsi_passage passage;

    while ((passage = gsi_wire_give (wire, data, bytes)) == GSI_MORE)
        if (!await (wire->fd, POLLOUT, deadline_ns))
            return false;
    return passage == GSI_PASSED;
}

static bool take (struct gsi_wire *wire, void *data, size_t bytes, int64_t deadline_ns)
{
    enum gsi_passage passage;

    while ((passage = gsi_wire_take (wire, data, bytes)) == GSI_MORE)
        if (!await (wire->fd, POLLIN, deadline_ns))
            return false;
    return passage == GSI_PASSED;
}

/* Says who we are, when that is not known yet. */
static bool say_hello (struct boot_id *boot, size_t bytes, int64_t deadline_ns)
{
    struct gsi_hello hello = {.bytes = bytes, .rank = boot->base.rank, .size = boot->base.size};

    memcpy (hello.process, boot->process, sizeof (hello.process));
    if (!boot->met && !give (&boot->root, &hello, sizeof (hello), deadline_ns))
        return false;
    boot->root.rank = boot->base.rank;
    return true;
}

static gs_status_t exchange_other (struct boot_id *boot, const void *card, size_t bytes,
                                   void *cards, int64_t deadline_ns)
{
    size_t all = bytes * (size_t) boot->base.size;
    struct gsi_answer answer;
    bool done = false;

    deadline_ns += GRACE_NS;
    while (!done) {
        if (boot->root.fd < 0 && !boot->met && !reach_root (boot, deadline_ns))
            return gsi_fail (
                GS_ERR_TIMEOUT,
                "bootstrap: rank %d cannot reach rank 0, the process "
                "that made the id: has it ended or failed, or is the network between "
                "the hosts closed? GS_ID_HOST on rank 0 chooses the address",
                boot->base.rank);
        done = boot->root.fd >= 0 && say_hello (boot, bytes, deadline_ns) &&
               give (&boot->root, card, bytes, deadline_ns) &&
               take (&boot->root, &answer, sizeof (answer), deadline_ns) &&
               (answer.status || take (&boot->root, cards, all, deadline_ns));
        if (done)
            break;
        gsi_wire_end (&boot->root);
        if (boot->met || gsi_now_ns () >= deadline_ns)
            return gsi_fail (GS_ERR_TIMEOUT, "bootstrap: rank 0 ended or did not answer rank %d",
                             boot->base.rank);
        usleep ((useconds_t) (RETRY_NS / 1000)); /* it lost us, and takes us again */
    }
    answer.text[sizeof (answer.text) - 1] = 0;
    boot->met = !answer.status;
    return answer.status ? gsi_fail ((gs_status_t) answer.status, "%s", answer.text) : GS_OK;
}

static gs_status_t exchange (struct gsi_boot *base, const void *card, size_t bytes, void *cards,
                             int64_t deadline_ns)
{
    struct boot_id *boot = (struct boot_id *) base;

    if (!cards)
        return GS_OK; /* the others see that this rank has not come */
    return base->rank ? exchange_other (boot, card, bytes, cards, deadline_ns)
                      : gsi_host_exchange (boot->host, card, bytes, cards, deadline_ns);
}

const struct gsi_boot_ops gsi_boot_id = {
    .name = "id",
    .exchange = exchange,
    .close = close_id,
};
