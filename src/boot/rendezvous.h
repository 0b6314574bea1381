/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous - rank 0 of a rendezvous by id: takes a card from each rank, and gives each all of
 * them or the reason why not. All connections are served at once, and a bounded number of
 * strangers.
 */
#ifndef GS_BOOT_RENDEZVOUS_H
#define GS_BOOT_RENDEZVOUS_H

#include "base/status.h"
#include "boot/id.h"
#include "boot/wire.h"

#define GSI_STRANGERS 128 /* connections that have not shown that they know the id */

/*
 * A rank says hello, when it comes for the first time, and gives its card; rank 0 answers with a
 * struct gsi_failure, and with the cards of all if that is none.
 */
struct gsi_hello {
    unsigned char process[16]; /* at random: a rank that comes again is the same one */
    uint64_t bytes;            /* of the card that follows */
    int32_t rank, size;
};

enum gsi_stage {
    GSI_ABSENT, /* no connection */
    GSI_SAYS_HELLO,
    GSI_GIVES_CARD,
    GSI_WAITS, /* for the answer */
    GSI_HEARS_ANSWER,
    GSI_HEARS_CARDS,
    GSI_SERVED,
    GSI_LEAVES /* a stranger that was turned away */
};

/* A connection. */
struct gsi_connection {
    struct gsi_wire wire;
    enum gsi_stage stage;
    const struct pollfd *slot; /* in the poll set, NULL: none */
    int64_t since_ns;
    struct gsi_hello hello; /* of a rank, which may have lost its connection; rank 0: of none */
};

struct gsi_rendezvous {
    int size, clients;              /* the ranks and GSI_STRANGERS */
    const unsigned char *key;       /* [GSI_KEY_BYTES] */
    int listener[GSI_ID_ADDRESSES]; /* -1: none; after the first exchange all */
    struct pollfd *poll;            /* [GSI_ID_ADDRESSES + clients] */

    /* Of one exchange: */
    bool first, decided;
    bool tells_late; /* after a failure: ranks that have not come yet are told, too */
    int turned_away; /* strangers that have been told, and may be ranks that are absent */
    size_t bytes;    /* of a card */
    char *cards;
    struct gsi_failure answer;
    int64_t until_ns;

    /* Of its troubles: */
    int accept_error;      /* errno, 0: none since a connection was taken */
    int64_t pause_ns;      /* after that nobody is let in until then */
    int64_t complained_ns; /* when strangers were last mentioned */
    int dropped;           /* since then */
    char last[64];         /* where the last one came from */

    struct gsi_connection
        client[]; /* a place for each rank, of which rank 0's is empty; strangers */
};

/* NULL without memory. [key] outlives the host, which has no listening sockets yet. */
struct gsi_rendezvous *gsi_rendezvous_open (const unsigned char *key, int size);

/* The operation exchange of a boot. */
gs_status_t gsi_rendezvous_exchange (struct gsi_rendezvous *host, const void *card, size_t bytes,
                                     void *cards, int64_t deadline_ns);

/* Lets a connection in; serves a client, who may be absent, as far as that goes now. */
void gsi_rendezvous_let_in (struct gsi_rendezvous *host, int fd);
void gsi_rendezvous_serve (struct gsi_rendezvous *host, int g);

/* NULL is allowed. */
void gsi_rendezvous_close (struct gsi_rendezvous *host);

#endif /* GS_BOOT_RENDEZVOUS_H */
