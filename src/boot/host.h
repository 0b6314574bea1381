/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host - rank 0 of a meeting by id: takes a card from each rank, and gives each all of them or
 * the reason why not. All connections are served at once, and a bounded number of strangers.
 */
#ifndef GS_BOOT_HOST_H
#define GS_BOOT_HOST_H

#include "boot/id.h"
#include "boot/wire.h"

#define GSI_STRANGERS 128 /* connections that have not shown that they know the id */

/* What a rank says first. */
struct gsi_hello {
    unsigned char process[16]; /* at random: a rank that comes again is the same one */
    uint64_t bytes;            /* of the card that follows */
    int32_t rank, size;
};

/* What rank 0 answers before the cards; they follow only when status is GS_OK. */
struct gsi_answer {
    int32_t status;
    char text[500];
};

enum gsi_stage {
    GSI_ABSENT, /* no connection */
    GSI_GREETS,
    GSI_SAYS_HELLO,
    GSI_GIVES_CARD,
    GSI_WAITS, /* for the answer */
    GSI_HEARS_ANSWER,
    GSI_HEARS_CARDS,
    GSI_LEAVES, /* it was turned away; what it still says is not heard */
    GSI_SERVED
};

/* A connection, of a stranger or of a rank. */
struct gsi_guest {
    struct gsi_wire wire;
    enum gsi_stage stage;
    bool came; /* [hello] is of a rank, which may have lost its connection */
    int64_t since_ns;
    struct gsi_hello hello;
};

struct gsi_host {
    int size;
    const unsigned char *key;       /* [GSI_KEY_BYTES] */
    int listener[GSI_ID_ADDRESSES]; /* -1: none; after the first exchange all */
    struct gsi_guest *member;       /* [size], the first is not used */
    struct gsi_guest stranger[GSI_STRANGERS];
    struct pollfd *poll; /* room for all of them */
    struct gsi_guest **polled;

    /* Of one exchange: */
    bool first, decided;
    bool patient; /* after a failure: ranks that have not come yet are told, too */
    int turned_away;
    size_t bytes; /* of a card */
    char *cards;
    struct gsi_answer answer;
    int64_t until_ns;

    /* Of its troubles: */
    int accept_error;      /* errno, 0: none */
    int64_t pause_ns;      /* until then nobody is let in */
    int64_t complained_ns; /* when strangers were last mentioned */
    int dropped;           /* since then */
    char last[64];         /* where the last one came from */
};

/* Takes the listening sockets; NULL without memory. [key] outlives the host. */
struct gsi_host *gsi_host_open (const unsigned char *key, int size,
                                const int listener[GSI_ID_ADDRESSES]);

/* The operation exchange of a boot. */
gs_status_t gsi_host_exchange (struct gsi_host *host, const void *card, size_t bytes, void *cards,
                               int64_t deadline_ns);

/* Serves a connection that was let in, as far as that goes now. */
void gsi_host_let_in (struct gsi_host *host, int fd);
void gsi_host_serve (struct gsi_host *host, struct gsi_guest *guest);

/* NULL is allowed. */
void gsi_host_close (struct gsi_host *host);

#endif /* GS_BOOT_HOST_H */
