/* SPDX-License-Identifier: BSD-3-Clause */
/* notices_ofi - notices of other transports, by messages of libfabric. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ofi/net_ofi.h"
#include "transport/notices.h"

#define TAG_NOTICE 1

struct gsi_notices {
    struct net_ofi *net;
    struct gsi_notice_msg (*out)[GSI_MSG_KINDS]; /* [size] as they leave */
    bool reached[];                              /* [size] */
};

static gs_status_t notices_prepare (int size, struct gsi_notice_card *card)
{
    gs_status_t st = gsi_ofi_open (gsi_ofi_endpoint (true), size, card);

    if (st)
        card->bytes = 0;
    return st;
}

static void notices_close (struct gsi_notices *n, bool well)
{
    bool keep;

    n->net->well = well;
    keep = gsi_ofi_discard (&n->net->base, false);

    (keep ? gsi_keep : free) (n->out);
    (keep ? gsi_keep : free) (n->net);
    free (n);
}

static struct gsi_notices *make_notices (int rank, int size)
{
    size_t ranks = (size_t) size;
    struct gsi_notices *n = calloc (1, sizeof (*n) + ranks);

    if (!n)
        return NULL;
    n->out = calloc (ranks, sizeof (*n->out));
    n->net = calloc (1, sizeof (*n->net) + ranks * sizeof (*n->net->peer));
    if (!n->out || !n->net) {
        free (n->out);
        free (n->net);
        free (n);
        return NULL;
    }
    n->net->base.rank = rank;
    n->net->base.size = size;
    return n;
}

static gs_status_t notices_open (int rank, int size, const void *cards, size_t stride,
                                 struct gsi_notices **out)
{
    struct gsi_notices *n = make_notices (rank, size);
    struct gsi_notice_card own, card;
    gs_status_t st = GS_OK;

    if (!n)
        return gsi_fail (GS_ERR_NOMEM, "notices: out of memory");
    memcpy (&own, (const char *) cards + (size_t) rank * stride, sizeof (own));
    gsi_ofi_begin (n->net, gsi_ofi_endpoint (true), &own);
    for (int r = 0; r < size && !st; r++) {
        memcpy (&card, (const char *) cards + (size_t) r * stride, sizeof (card));
        n->reached[r] = r != rank && card.bytes && card.bytes <= sizeof (card.address) &&
                        !strncmp (card.provider, own.provider, sizeof (own.provider));
        if (n->reached[r])
            st = gsi_ofi_reach (n->net, r, &card);
    }
    if (st)
        notices_close (n, false);
    else
        *out = n;
    return st;
}

static bool notices_reaches (const struct gsi_notices *n, int rank)
{
    return n->reached[rank];
}

static void notices_send (struct gsi_notices *n, const struct gsi_notice_msg *msg, int rank)
{
    struct gsi_notice_msg *out = &n->out[rank][msg->what];

    if (!out->what)
        *out = *msg;
    gsi_ofi_tell (&n->net->base, out, sizeof (*out), rank, TAG_NOTICE);
}

static bool notices_recv (struct gsi_notices *n, struct gsi_notice_msg *msg, int *from)
{
    return gsi_ofi_hear (&n->net->base, msg, sizeof (*msg), TAG_NOTICE, from);
}

extern const struct gsi_notice_ops gsi_notices_ofi;

const struct gsi_notice_ops gsi_notices_ofi = {.prepare = notices_prepare,
                                               .open = notices_open,
                                               .reaches = notices_reaches,
                                               .send = notices_send,
                                               .recv = notices_recv,
                                               .close = notices_close};
