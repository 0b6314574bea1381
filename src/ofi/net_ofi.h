/* SPDX-License-Identifier: BSD-3-Clause */
/* net_ofi - the network of a communicator, on the endpoint. Private to src/ofi/. */
#ifndef GS_OFI_NET_OFI_H
#define GS_OFI_NET_OFI_H

#include "host/net.h"
#include "ofi/endpoint.h"

#define GSI_OFI_HEARD 128 /* of a notice */

/* A receive of notices, from the first look for one on. */
struct ear {
    struct gsi_ofi_request request;
    char data[GSI_OFI_HEARD];
};

struct net_ofi {
    struct gsi_net base;
    struct gsi_ofi_endpoint *endpoint;
    uint32_t number;
    bool joined;
    bool well;                        /* it has ended so on all ranks */
    atomic_int telling;               /* notices that have not left */
    struct ear *ear;                  /* NULL: not yet */
    struct gsi_ofi_request *peek;     /* likewise */
    struct gsi_ofi_request gather[2]; /* of allgather */
    struct gsi_ofi_peer peer[];       /* [size] */
};

/* Begins with its own card, on [endpoint]; and reaches [rank], which has [card]. */
void gsi_ofi_begin (struct net_ofi *net, struct gsi_ofi_endpoint *endpoint,
                    const struct gsi_notice_card *own);
gs_status_t gsi_ofi_reach (struct net_ofi *net, int rank, const struct gsi_notice_card *card);

/* Those of struct gsi_net_ops. */
bool gsi_ofi_discard (struct gsi_net *base, bool unfinished);
void gsi_ofi_tell (struct gsi_net *base, const void *data, size_t bytes, int peer, int tag);
bool gsi_ofi_hear (struct gsi_net *base, void *data, size_t bytes, int tag, int *from);

#endif /* GS_OFI_NET_OFI_H */
