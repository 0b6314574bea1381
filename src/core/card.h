/* SPDX-License-Identifier: BSD-3-Clause */
/* card - what each rank tells every other one during the create. */
#ifndef GS_CORE_CARD_H
#define GS_CORE_CARD_H

#include "boot/boot.h"
#include "transport/coll.h"
#include "device/device.h"
#include "gradsync.h"

#define GSI_CARD_PROTOCOL 4 /* raise when the struct changes */

/* One rank's card. Ranks of one job have one byte order; [protocol] tells a foreign one. */
struct gsi_card {
    uint32_t protocol;
    int32_t status;    /* gs_status_t of what this rank has done so far */
    int32_t transport; /* gs_transport_t asked for */
    int32_t provided;  /* gs_transport_t that this rank can take part in; hosts' if not nccl, auto
                        * if that cannot be had, which others may turn out not to need */
    int32_t check;     /* enum gsi_check: comparing calls takes all ranks */
    int32_t device;    /* the GPU asked for, or GS_DEVICE_AUTO or GS_DEVICE_HOST */
    int32_t allow_shared_gpu;
    int32_t sharing;      /* enum gsi_sharing */
    struct gsi_gpus gpus; /* that this rank sees; count 0 if it takes none */
    char version[16];     /* of the library */
    char host[GSI_HOST_BYTES];
    char text[192]; /* why, when status is not GS_OK or there is no GPU */
    unsigned char coll[GSI_COLL_CARD_BYTES];
};

/*
 * Reads all cards, the same on every rank, and fails with the first of these that is found:
 * another protocol or version, a status or text that is none, a rank's own failure (with its
 * rank, host and text), numbers out of their range, different transports or checks asked for. Of
 * cards that have passed, all but [coll], which is for the transport to check, can be used as
 * they are.
 */
gs_status_t gsi_cards_agree (const struct gsi_card *cards, int size);

#endif /* GS_CORE_CARD_H */
