/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net - the network of a communicator of hosts: all that the algorithms here need of one. They
 * send and receive messages, ask whether those have ended, and never wait inside the network.
 *
 * To add one: write a struct gsi_net_ops and a struct gsi_coll_ops by GSI_COLL_HOST (coll_host.h)
 * in a folder of its own, and give it a place in src/base/transport.h.
 *
 * What the network holds is memory of ours until the request has ended. After a failure that
 * memory is kept for good, since requests that did not end may still use it.
 */
#ifndef GS_HOST_NET_H
#define GS_HOST_NET_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "transport/coll.h"

#define GSI_NET_NAME_BYTES 8
#define GSI_NET_CARD_BYTES (GSI_COLL_CARD_BYTES - GSI_NET_NAME_BYTES - 2 * sizeof (int32_t))
#define GSI_NET_FAULT      (-1) /* codes that no network gives: a fault point, */
#define GSI_NET_SHORT      (-2) /* and what came is shorter than what it was asked for */

struct gsi_net_ops;

/* What every implementation's own struct begins with; zeros to begin with. */
struct gsi_net {
    const struct gsi_net_ops *ops;
    int rank, size;
    uint32_t tags;   /* (open) the largest tag, 15 at least */
    bool any_thread; /* (open) any thread may call, also at once for different communicators */
};

/* Calls of the network's library, in texts. */
enum gsi_net_call {
    GSI_NET_ISEND,
    GSI_NET_IRECV,
    GSI_NET_TEST_ALL,
    GSI_NET_TEST_SOME,
    GSI_NET_CALLS
};

/*
 * Requests stand in batches, places of which are used again once a request has ended. Functions
 * that return int give 0 or a code of the network's own, which fail puts into words. Messages of
 * a pair of ranks with one tag come in the order they were sent in; a receive may be for more
 * bytes than come. None of these functions waits, but those that have a deadline.
 */
struct gsi_net_ops {
    const char *name; /* the transport's */
    const char *words[GSI_NET_CALLS];
    size_t bytes;      /* of the struct of the network, and */
    size_t rank_bytes; /* for each rank behind it */

    /* (optional) Local: fills [card], GSI_NET_CARD_BYTES of zeros, before the cards are shown. */
    gs_status_t (*prepare) (struct gsi_net *net, const struct gsi_boot *boot, void *card);

    /*
     * Collective, until the setup's deadline: of the ranks whose cards are shown. [parent] is the
     * network, of the same kind, of the communicator that these ranks are a group of, or NULL.
     */
    gs_status_t (*open) (struct gsi_net *net, const struct gsi_coll_setup *setup,
                         const struct gsi_net *parent);

    /* After a barrier of all ranks, nothing under way. */
    void (*close) (struct gsi_net *net);

    /* Local, after close, or instead of it after a failure, of open too. Frees no [net]; whether
     * it is to be kept, because something is still under way. */
    bool (*discard) (struct gsi_net *net, bool unfinished);

    /* Before each operation: whether the network can be used. */
    gs_status_t (*enter) (const struct gsi_net *net);

    /* Whether it is so, for those who may not fail. */
    bool (*usable) (const struct gsi_net *net);

    /* The memory of a batch of [n] requests; makes one in [memory], of zeros. */
    size_t (*batch_bytes) (int n);
    void (*batch_init) (void *memory, int n);

    /* Begin request [i] of [batch], where none is under way. */
    int (*isend) (struct gsi_net *net, void *batch, int i, const void *data, size_t bytes,
                  int peer, int tag);
    int (*irecv) (struct gsi_net *net, void *batch, int i, void *data, size_t bytes, int peer,
                  int tag);

    /*
     * Lets messages go on, and asks whether the first [n] requests of [batch] have all ended, and
     * brought as many bytes as they had room for. Of a code that is of one request, that is
     * [*failed], else -1.
     */
    int (*test_all) (struct gsi_net *net, void *batch, int n, bool *done, int *failed);

    /*
     * The same, of any of them: [index] gets those that have ended since the last time, [*ended]
     * of them; -1 if none is under way. Places that were never used, or void, count as ended.
     */
    int (*test_some) (struct gsi_net *net, void *batch, int n, int *ended, int *index,
                      int *failed);
    void (*make_void) (void *batch, int i);

    /* Whether request [i] is under way, which this does not end. */
    bool (*pending) (struct gsi_net *net, void *batch, int i);

    /* Whether a message of [peer] is here that nobody receives; what its tag is. */
    bool (*probe) (struct gsi_net *net, int peer, int *tag);

    /*
     * A short message that needs no batch: it leaves as it can, and is not heard of again; [data]
     * is kept. hear takes one in, of whomever, if it has come; and lets messages go on.
     */
    void (*tell) (struct gsi_net *net, const void *data, size_t bytes, int peer, int tag);
    bool (*hear) (struct gsi_net *net, void *data, size_t bytes, int tag, int *from);

    /*
     * Collective: gathers [bytes] of each rank in [all]. GS_ERR_TIMEOUT behind [deadline_ns]; the
     * network has [own] and [all] then, also after other failures.
     */
    gs_status_t (*allgather) (struct gsi_net *net, const void *own, void *all, size_t bytes,
                              int64_t deadline_ns);

    /* (optional) The first rank that is known to have failed; -1: none, or not known. */
    int (*dead) (const struct gsi_net *net);

    /* "what: words for [code]"; GS_ERR_MISMATCH if more came than was asked for. */
    gs_status_t (*fail) (const char *what, int code);

    /* From now on the network owns [memory], or NULL, because of a request that did not end. */
    void (*keep) (void *memory);
};

#define GSI_SPINS 500u /* polls before the core is offered to others: about 50 us */

/* One round of waiting: spins, then yields the core. [spins] starts at 0. */
static inline void gsi_net_spin (unsigned *spins)
{
    if (++*spins > GSI_SPINS)
        sched_yield ();
}

/* For fail: more came than was asked for, in the network's words. GS_ERR_MISMATCH */
gs_status_t gsi_net_too_long (const char *what, const char *words);

/* What prepare of [rank] has put on its card, the first [bytes]. */
void gsi_net_card (const struct gsi_coll_setup *setup, int rank, void *card, size_t bytes);

/* For keep: never frees [memory], or NULL. Any thread. */
void gsi_keep (void *memory);

/* A batch of [n] requests; NULL: no memory. To be freed, or kept. */
static inline void *gsi_net_batch (const struct gsi_net *net, int n)
{
    void *memory = calloc (1, net->ops->batch_bytes (n));

    if (memory)
        net->ops->batch_init (memory, n);
    return memory;
}

#endif /* GS_HOST_NET_H */
