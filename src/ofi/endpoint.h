/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint - the process's endpoints of libfabric, which all communicators share: one carries
 * data, one notices. Private to src/ofi/.
 *
 * A tag has the number that the receiver gave the communicator, the sender's rank in it, and the
 * tag of the message: 48 bits, what all providers match (cxi no more). So no rank needs to agree
 * with others on a number, and a receive is of one rank without FI_DIRECTED_RECV.
 *
 * One lock is around all calls of libfabric: providers are asked for FI_THREAD_DOMAIN, and take
 * none of their own. Posts that the provider has no room for, or no connection yet, wait in a
 * queue here, in order, those of other peers passing them.
 */
#ifndef GS_OFI_ENDPOINT_H
#define GS_OFI_ENDPOINT_H

#include <rdma/fabric.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"
#include "transport/notices.h"

#define GSI_OFI_TAG_BITS    18
#define GSI_OFI_RANK_BITS   18
#define GSI_OFI_NUMBER_BITS 12

static inline uint64_t gsi_ofi_bits (uint32_t number, int rank, int tag)
{
    return (uint64_t) number << (GSI_OFI_RANK_BITS + GSI_OFI_TAG_BITS) |
           (uint64_t) rank << GSI_OFI_TAG_BITS | (uint64_t) tag;
}

static inline int gsi_ofi_tag_of (uint64_t bits)
{
    return (int) (bits & ((1u << GSI_OFI_TAG_BITS) - 1));
}

static inline int gsi_ofi_rank_of (uint64_t bits)
{
    return (int) (bits >> GSI_OFI_TAG_BITS & ((1u << GSI_OFI_RANK_BITS) - 1));
}

enum gsi_ofi_state { GSI_OFI_VOID, GSI_OFI_PENDING, GSI_OFI_ENDED, GSI_OFI_FAILED };
enum gsi_ofi_kind { GSI_OFI_RECV, GSI_OFI_SEND, GSI_OFI_PEEK };

/* Another rank of a communicator. */
struct gsi_ofi_peer {
    fi_addr_t address;
    uint32_t number;     /* that it gave the communicator */
    uint32_t waiting[2]; /* posts in the queue, by kind, */
    uint32_t stuck[2];   /* and the last look that got none of them posted */
};

struct gsi_ofi_endpoint;

struct gsi_ofi_request {
    struct fi_context2 context; /* the provider's, and first: how a completion finds it */
    atomic_int state;           /* enum gsi_ofi_state; written with the lock, but for VOID */
    int code;                   /* FAILED: of fi_errno.h */
    bool orphan;                /* to be freed when it ends: nobody asks for it */
    atomic_int *count;          /* (orphan, or NULL) is one less then */
    enum gsi_ofi_kind kind;
    const void *out; /* of a send; */
    void *in;        /* of a receive */
    size_t bytes;
    uint64_t bits, ignore; /* of its tag; (ENDED, received) those that came, */
    size_t came;           /* and how many bytes */
    struct gsi_ofi_peer *peer;
    struct gsi_ofi_endpoint *endpoint;
    const void *owner;            /* the network that it is of */
    struct gsi_ofi_request *next; /* in the queue */
};

/* Where data go, and where notices: by a provider each, the first there is and one of TCP, or by
 * the one of GS_OFI_PROVIDER. So all ranks choose alike, whatever else a process does. */
struct gsi_ofi_endpoint *gsi_ofi_endpoint (bool for_notices);

/* Opens it if it is not. Gives what others need to reach a communicator of [size] ranks by it. */
gs_status_t gsi_ofi_open (struct gsi_ofi_endpoint *e, int size, struct gsi_notice_card *card);

/*
 * A communicator begins to use it, under its number, or has ended; [unfinished]: with requests
 * that have not. If it has not ended [well], on all ranks, it keeps the number: messages of its
 * may still come, and would be taken for those of the next one.
 */
void gsi_ofi_join (struct gsi_ofi_endpoint *e, uint32_t number);
void gsi_ofi_leave (struct gsi_ofi_endpoint *e, const void *owner, uint32_t number,
                    bool unfinished, bool well);

/* Where the endpoint with [address] is; the same for each communicator. */
gs_status_t gsi_ofi_find (struct gsi_ofi_endpoint *e, const char *address, uint32_t bytes,
                          fi_addr_t *out);

/* Posts what [request] says, or queues it; a code of fi_errno.h. */
int gsi_ofi_post (struct gsi_ofi_request *request);

/* Asks that [request] ends without its message; it may have one. */
void gsi_ofi_cancel (struct gsi_ofi_request *request);

/* Lets messages go on, once; a code if the endpoint is broken. */
int gsi_ofi_progress (struct gsi_ofi_endpoint *e);

#endif /* GS_OFI_ENDPOINT_H */
