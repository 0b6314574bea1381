/* SPDX-License-Identifier: BSD-3-Clause */
/* choice - GPUs, GPUs that ranks share, or hosts: from the cards alone. */
#include "core/choice.h"

#include <stdio.h>

#include "base/env.h"
#include "base/transport.h"

/* Whether this rank insists on a GPU: without one the create fails. */
static bool insists (const struct gsi_card *card)
{
    return card->transport == GS_TRANSPORT_NCCL || card->device >= 0;
}

gs_status_t gsi_choice_begin (const char *caller, int size, struct gsi_card *card, bool *looks)
{
    int32_t requested = card->transport;

    *looks = false;
    card->provided =
        requested == GS_TRANSPORT_AUTO ? (int32_t) gsi_coll_of_hosts (size) : requested;
    if (requested == GS_TRANSPORT_NCCL && card->device == GS_DEVICE_HOST)
        return gsi_fail (GS_ERR_ARG,
                         "%s: transport nccl needs a GPU, but the device asked for "
                         "is the host",
                         caller);
    if (card->device >= 0 && requested != GS_TRANSPORT_AUTO &&
        gsi_transport_joins (requested) != GSI_JOINS_GPUS)
        return gsi_fail (GS_ERR_ARG,
                         "%s: GPU %d is asked for with transport %s, which carries arrays of "
                         "hosts: use transport nccl or auto",
                         caller, card->device, gsi_transport_name (requested));
    *looks = requested == GS_TRANSPORT_NCCL ||
             (requested == GS_TRANSPORT_AUTO && card->device != GS_DEVICE_HOST);
    return GS_OK;
}

gs_status_t gsi_choice_found (const char *caller, gs_status_t st, const struct gsi_gpus *gpus,
                              struct gsi_card *card)
{
    if (!st) {
        card->gpus = *gpus;
        card->provided = GS_TRANSPORT_NCCL;
        return GS_OK;
    }
    snprintf (card->text, sizeof (card->text), "%.*s", (int) sizeof (card->text) - 1,
              gsi_last_text ());
    if (!insists (card))
        return GS_OK;
    return gsi_fail (st, "%s: %s was asked for, but %s", caller,
                     card->device >= 0 ? "a GPU" : "transport nccl", gsi_last_text ());
}

/* Where some rank cannot have a GPU, for gsi_last_text (). */
static gs_status_t fall_back (const struct gsi_card *cards, int size, struct gsi_choice *choice)
{
    snprintf (choice->reason, sizeof (choice->reason), "%s", gsi_last_text ());
    choice->ordinal = GS_DEVICE_HOST;
    for (int r = 0; r < size; r++)
        if (insists (&cards[r]))
            return gsi_fail (GS_ERR_DEVICE, "%s", choice->reason);
    choice->fell_back = true;
    return GS_OK;
}

gs_status_t gsi_choice_make (const struct gsi_card *cards, const struct gsi_topo *topo,
                             void *room, struct gsi_choice *choice)
{
    const char *text = cards[topo->rank].text; /* why this one has no GPU */
    enum gsi_gpu_use use;
    int takers = 0;

    *choice = (struct gsi_choice){.mode = GSI_MODE_HOSTS, .ordinal = GS_DEVICE_HOST};
    for (int r = 0; r < topo->size; r++)
        takers += cards[r].provided == GS_TRANSPORT_NCCL;
    if (!takers) {
        snprintf (choice->reason, sizeof (choice->reason), "%s%s%s",
                  topo->size > 1 ? "several ranks" : "one rank", *text ? ", " : "", text);
        return GS_OK;
    }
    if (gsi_gpu_map_make (cards, topo, room, &choice->ordinal, &use))
        return fall_back (cards, topo->size, choice);
    if (use == GSI_GPUS_OWN && cards[0].sharing == GSI_SHARING_ALWAYS)
        use = GSI_GPUS_SHARED;
    choice->mode = use == GSI_GPUS_OWN      ? GSI_MODE_GPUS
                   : use == GSI_GPUS_SHARED ? GSI_MODE_SHARED_GPUS
                                            : GSI_MODE_MIXED;
    snprintf (choice->reason, sizeof (choice->reason), "%s",
              use == GSI_GPUS_OWN      ? "each rank has a GPU"
              : use == GSI_GPUS_SHARED ? "several ranks share a GPU"
                                       : gsi_last_text ());
    return GS_OK;
}
