/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_id - the rendezvous of the ranks that know an id, for sites without a PMIx plugin.
 *
 * The process that makes the id listens (id.c) and becomes rank 0 (rendezvous.c). The others,
 * here, try its addresses side by side, until one proves that it knows the id too (wire.c), and
 * give it their card. Only cards travel so: the data goes over the transport.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/rendezvous.h"

#define ATTEMPT_NS     (2 * GSI_NS_PER_S)    /* to connect; the proof takes until rank 0 calls */
#define STAGGER_NS     (250 * GSI_NS_PER_MS) /* from one address to the next: RFC 8305 */
#define RETRY_NS       (100 * GSI_NS_PER_MS) /* after a failure; each time twice as long */
#define SLOW_NS        GSI_NS_PER_S          /* the longest */
#define ALL_REFUSED_NS (3 * GSI_NS_PER_S) /* rank 0 is gone when all have refused for so long */
#define GRACE_NS       (2 * GSI_NS_PER_S) /* others wait longer than rank 0, which knows more */

struct boot_id {
    struct gsi_boot base;
    struct gsi_id id;
    unsigned char process[16];   /* see struct gsi_hello */
    struct gsi_rendezvous *host; /* on rank 0, else NULL */
    struct gsi_wire root;        /* to rank 0, elsewhere */
    int64_t hope_ns;             /* when an address did something else than to refuse */
    bool warned;                 /* of others in rank 0's place */
    bool met;                    /* the first exchange has succeeded */
};

/* One address of rank 0. */
struct attempt {
    struct gsi_wire wire;
    int64_t next_ns;  /* when it begins; then, when it is given up unless it is connected */
    int64_t delay_ns; /* after a failure */
};

static void close_id (struct gsi_boot *base)
{
    struct boot_id *boot = (struct boot_id *) base;

    gsi_rendezvous_close (boot->host);
    gsi_wire_end (&boot->root);
    free (boot);
}

gs_status_t gsi_boot_id_open (const gs_unique_id_t *bytes, int rank, int size,
                              struct gsi_boot **out)
{
    struct boot_id *boot = calloc (1, sizeof (*boot));
    gs_status_t st;

    *out = NULL;
    if (!boot)
        return gsi_fail (GS_ERR_NOMEM, "gs_comm_create_from_id: out of memory");
    boot->base = (struct gsi_boot){
        .ops = &gsi_boot_id, .rank = rank, .size = size, .own_job = true, .any_thread = true};
    boot->root.fd = -1;
    gsi_process_host (boot->base.host, sizeof (boot->base.host));
    if (!(st = gsi_id_read (bytes, &boot->id)) &&
        getrandom (boot->process, sizeof (boot->process), 0) != sizeof (boot->process))
        st = gsi_fail (GS_ERR_BOOT, "gs_comm_create_from_id: getrandom: %s", strerror (errno));
    if (!st && !rank)
        st = (boot->host = gsi_rendezvous_open (boot->id.key, size))
                 ? gsi_id_take (&boot->id, boot->host->listener)
                 : gsi_fail (GS_ERR_NOMEM, "gs_comm_create_from_id: out of memory");
    snprintf (boot->base.job, sizeof (boot->base.job), "id-%016" PRIx64, boot->id.job);
    if (st)
        close_id (&boot->base);
    else
        *out = &boot->base;
    return st;
}

/* ---- The way to rank 0 ---- */

/* Begins an attempt or goes on with it; gives one up that has failed, until a while later. */
static void try (struct boot_id *boot, int i, struct attempt *a)
{
    enum gsi_passage passage = GSI_BROKEN;
    int64_t now_ns = gsi_now_ns ();
    int fd;

    if (a->wire.fd < 0 && now_ns < a->next_ns)
        return;
    if (a->wire.fd < 0 && (fd = gsi_id_socket (&boot->id.address[i], false)) >= 0) {
        gsi_wire_begin (&a->wire, fd, false, boot->id.key);
        a->next_ns = now_ns + ATTEMPT_NS;
    }
    if (a->wire.fd >= 0)
        passage = gsi_wire_greet (&a->wire);
    if (passage == GSI_BROKEN ? errno != ECONNREFUSED
                              : a->wire.greeted || now_ns - (a->next_ns - ATTEMPT_NS) >= RETRY_NS)
        boot->hope_ns = now_ns; /* nor does one that has only begun tell anything */
    if (passage == GSI_PASSED) {
        boot->root = a->wire;
        a->wire.fd = -1;
        return;
    }
    if (passage != GSI_MORE && a->wire.greeted && !boot->warned) {
        gsi_log (GS_LOG_WARN, "boot",
                 "what answers for rank 0 does not know the id, or hangs up");
        boot->warned = true;
    }
    if (passage != GSI_MORE || (!a->wire.greeted && now_ns >= a->next_ns)) {
        gsi_wire_end (&a->wire);
        a->next_ns = now_ns + a->delay_ns;
        a->delay_ns = 2 * a->delay_ns < SLOW_NS ? 2 * a->delay_ns : SLOW_NS;
    }
}

/*
 * Finds rank 0; false at the deadline, or when all its addresses have refused for a while: it
 * listens from the moment the id is made, so it has ended.
 */
static bool reach_root (struct boot_id *boot, int64_t deadline_ns)
{
    struct attempt attempts[GSI_ID_ADDRESSES];
    struct pollfd fds[GSI_ID_ADDRESSES];
    int64_t now_ns = gsi_now_ns ();
    int n = (int) boot->id.addresses;

    boot->hope_ns = now_ns;
    for (int i = 0; i < n; i++)
        attempts[i] = (struct attempt){
            .wire = {.fd = -1}, .next_ns = now_ns + i * STAGGER_NS, .delay_ns = RETRY_NS};
    while (boot->root.fd < 0 && now_ns < deadline_ns && now_ns - boot->hope_ns < ALL_REFUSED_NS) {
        for (int i = 0; i < n && boot->root.fd < 0; i++) {
            const struct gsi_wire *wire = &attempts[i].wire;
            try (boot, i, &attempts[i]);
            fds[i] = (struct pollfd){.fd = wire->fd, .events = wire->events};
        }
        now_ns = gsi_now_ns (); /* of this look: a wait may last longer than it was to */
        if (boot->root.fd < 0)
            gsi_wire_wait (fds, (size_t) n, deadline_ns);
    }
    for (int i = 0; i < n; i++)
        gsi_wire_end (&attempts[i].wire);
    return boot->root.fd >= 0;
}

/* ---- The exchange ---- */

/* The way of a card and the answer; false at the deadline or the end of the connection. */
static bool talk (struct boot_id *boot, const void *card, size_t bytes,
                  struct gsi_failure *answer, void *cards, int64_t deadline_ns)
{
    enum { HELLO, CARD, ANSWER, CARDS, END } step = boot->met ? CARD : HELLO;
    struct gsi_hello hello = {.bytes = bytes, .rank = boot->base.rank, .size = boot->base.size};
    struct gsi_wire *root = &boot->root;
    enum gsi_passage passage = GSI_PASSED;

    memcpy (hello.process, boot->process, sizeof (hello.process));
    while (step != END) {
        switch (step) {
        case HELLO: passage = gsi_wire_give (root, &hello, sizeof (hello)); break;
        case CARD: passage = gsi_wire_give (root, card, bytes); break;
        case ANSWER: passage = gsi_wire_take (root, answer, sizeof (*answer)); break;
        case CARDS: passage = gsi_wire_take (root, cards, bytes * (size_t) hello.size); break;
        case END: break;
        }
        if (passage == GSI_PASSED)
            step = step == ANSWER && answer->st ? END : step + 1;
        else if (passage != GSI_MORE || gsi_now_ns () >= deadline_ns)
            return false;
        else
            gsi_wire_wait (&(struct pollfd){.fd = root->fd, .events = root->events}, 1,
                           deadline_ns);
    }
    answer->text[sizeof (answer->text) - 1] = 0;
    return true;
}

static gs_status_t exchange_other (struct boot_id *boot, const void *card, size_t bytes,
                                   void *cards, int64_t deadline_ns)
{
    bool reached = boot->met;
    struct gsi_failure answer;

    deadline_ns += GRACE_NS;
    while (boot->root.fd >= 0 || (!boot->met && reach_root (boot, deadline_ns))) {
        reached = true;
        if (talk (boot, card, bytes, &answer, cards, deadline_ns)) {
            boot->met = !answer.st;
            return gsi_failure_repeat (&answer);
        }
        gsi_wire_end (&boot->root);
        usleep ((useconds_t) (RETRY_NS / 1000)); /* it lost us, and takes us again */
    }
    return reached
               ? gsi_fail (GS_ERR_TIMEOUT, "bootstrap: rank 0 ended or did not answer rank %d",
                           boot->base.rank)
               : gsi_fail (GS_ERR_TIMEOUT,
                           "bootstrap: rank %d cannot reach rank 0, the process that made the "
                           "id: has it ended or failed, or is the network between the hosts "
                           "closed? GS_ID_HOST on rank 0 chooses the address",
                           boot->base.rank);
}

static gs_status_t id_exchange (struct gsi_boot *base, const void *card, size_t bytes,
                                void *cards, int64_t deadline_ns)
{
    struct boot_id *boot = (struct boot_id *) base;

    if (!cards)
        return GS_OK; /* the others see that this rank has not come */
    return base->rank ? exchange_other (boot, card, bytes, cards, deadline_ns)
                      : gsi_rendezvous_exchange (boot->host, card, bytes, cards, deadline_ns);
}

const struct gsi_boot_ops gsi_boot_id = {
    .name = "id",
    .exchange = id_exchange,
    .close = close_id,
};
