/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choice - GPUs, GPUs that ranks share, or hosts: what each rank looks for, and what all take by
 * the cards alone, the same on every rank.
 */
#ifndef GS_CORE_CHOICE_H
#define GS_CORE_CHOICE_H

#include <stdbool.h>

#include "base/status.h"
#include "core/gpu_map.h"

enum gsi_gpu_mode {
    GSI_MODE_HOSTS,
    GSI_MODE_GPUS,        /* each rank has one */
    GSI_MODE_SHARED_GPUS, /* several ranks have the same */
    GSI_MODE_MIXED,       /* some ranks have one, others none */
};

struct gsi_choice {
    enum gsi_gpu_mode mode;
    int ordinal;    /* this rank's GPU, or GS_DEVICE_HOST */
    bool fell_back; /* ranks have found GPUs, but all go by way of the hosts */
    char reason[GSI_TEXT_MAX];
};

/*
 * Begins a rank's part, by what its [card] asks for: which transport it could take part in
 * without a GPU, as the card's [provided], of [size] ranks, and whether it [looks] for GPUs.
 * Fails if what is asked for cannot be had together.
 */
gs_status_t gsi_choice_begin (const char *caller, int size, struct gsi_card *card, bool *looks);

/*
 * Puts what the rank has found on its [card]: [gpus], or with [st] that it can take none, for
 * gsi_last_text (), which is a failure only if a GPU was asked for.
 */
gs_status_t gsi_choice_found (const char *caller, gs_status_t st, const struct gsi_gpus *gpus,
                              struct gsi_card *card);

/*
 * Chooses for all, by cards that gsi_cards_agree has accepted. Fails, with the text in
 * [choice]->reason too, where a rank can have no GPU and one has asked for one. [room] as for
 * gsi_gpu_map_make.
 */
gs_status_t gsi_choice_make (const struct gsi_card *cards, const struct gsi_topo *topo,
                             void *room, struct gsi_choice *choice);

#endif /* GS_CORE_CHOICE_H */
