/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notices - short messages between the ranks of a communicator, beside what carries its data:
 * NCCL tells nobody of other nodes that a rank gives up. A network of hosts has them in its
 * module. Calls on one struct gsi_notices are made by one thread at a time; none of them waits.
 */
#ifndef GS_COLL_NOTICES_H
#define GS_COLL_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

/* Where a rank can be told; what others get. */
struct gsi_notice_card {
    uint32_t number, bytes; /* of the address; 0: nowhere */
    char provider[16], address[128];
};

enum { GSI_MSG_ABORT = 1, GSI_MSG_ACK = 2, GSI_MSG_PING = 3, GSI_MSG_PONG = 4, GSI_MSG_KINDS };
struct gsi_notice_msg {
    int32_t what;            /* of each kind a rank tells another one only */
    int32_t status, culprit; /* (ABORT) why, and because of whom */
};

struct gsi_notices;

struct gsi_notice_ops {
    /* Local: fills [card]. */
    gs_status_t (*prepare) (int size, struct gsi_notice_card *card);

    /* Local: of [size] ranks, whose cards are [stride] bytes from each other. */
    gs_status_t (*open) (int rank, int size, const void *cards, size_t stride,
                         struct gsi_notices **out);

    /* Whether [rank] can be told. */
    bool (*reaches) (const struct gsi_notices *n, int rank);

    /* Sends to [rank], as it can. */
    void (*send) (struct gsi_notices *n, const struct gsi_notice_msg *msg, int rank);

    /* Takes one in, if it has come, and lets messages go on. */
    bool (*recv) (struct gsi_notices *n, struct gsi_notice_msg *msg, int *from);

    /* What has not left may be lost. [well]: no rank has said that it gives up. */
    void (*close) (struct gsi_notices *n, bool well);
};

#define GSI_NOTICES_SYMBOL "gsi_notices_ofi"

#endif /* GS_COLL_NOTICES_H */
