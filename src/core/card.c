/* SPDX-License-Identifier: BSD-3-Clause */
/* card - what each rank tells every other one during the create. */
#include "core/card.h"

#include <string.h>

#include "base/env.h"
#include "base/status.h"

static gs_status_t same_library (const struct gsi_card *cards, int r)
{
    if (cards[r].protocol != cards[0].protocol)
        return gsi_fail (GS_ERR_MISMATCH,
                         "rank 0 speaks card protocol %u, rank %d %u: do all "
                         "ranks load the same libgradsync?",
                         cards[0].protocol, r, cards[r].protocol);
    if (strncmp (cards[r].version, cards[0].version, sizeof (cards[r].version)))
        return gsi_fail (GS_ERR_MISMATCH,
                         "rank 0 (host %.71s) runs gradsync %.15s, rank %d (host "
                         "%.71s) %.15s: do all ranks load the same libgradsync?",
                         cards[0].host, cards[0].version, r, cards[r].host, cards[r].version);
    return GS_OK;
}

static gs_status_t same_wishes (const struct gsi_card *cards, int r)
{
    if (cards[r].transport != cards[0].transport)
        return gsi_fail (GS_ERR_MISMATCH,
                         "rank 0 asks for transport %d, rank %d (host %.71s) for "
                         "%d (gs_transport_t): give all ranks the same option or GS_TRANSPORT",
                         cards[0].transport, r, cards[r].host, cards[r].transport);
    if (cards[r].check != cards[0].check)
        return gsi_fail (GS_ERR_MISMATCH,
                         "rank 0 and rank %d (host %.71s) have different GS_CHECK: "
                         "set it alike on all ranks",
                         r, cards[r].host);
    if (cards[r].sharing != cards[0].sharing)
        return gsi_fail (GS_ERR_MISMATCH,
                         "rank 0 and rank %d (host %.71s) have different GS_GPU_SHARING: "
                         "set it alike on all ranks",
                         r, cards[r].host);
    return GS_OK;
}

/* A card that no gradsync has written: what is in it would lead astray who reads on. */
static gs_status_t card_damaged (const struct gsi_card *card, int r, const char *what,
                                 int32_t value)
{
    return gsi_fail (GS_ERR_BOOT,
                     "the card of rank %d (host %.71s) is damaged: its %s is %d: has something "
                     "else than gradsync sent it?",
                     r, card->host, what, value);
}

/* What is read of a card in any case: its status and its texts. */
static gs_status_t readable (const struct gsi_card *card, int r)
{
    if (card->status < GS_OK || card->status > GS_ERR_STATE)
        return card_damaged (card, r, "status", card->status);
    if (!memchr (card->host, 0, sizeof (card->host)))
        return card_damaged (card, r, "host without an end, its length",
                             (int) sizeof (card->host));
    if (!memchr (card->text, 0, sizeof (card->text)))
        return card_damaged (card, r, "text without an end, its length",
                             (int) sizeof (card->text));
    return GS_OK;
}

/* The rest, which a rank that failed may not have filled in. */
static gs_status_t in_range (const struct gsi_card *card, int r)
{
    const struct {
        const char *name;
        int32_t value, least, most;
    } fields[] = {
        {"transport", card->transport, GSI_TRANSPORT_AUTO, GSI_TRANSPORT_COUNT - 1},
        {"provided transport", card->provided, GSI_TRANSPORT_AUTO, GSI_TRANSPORT_COUNT - 1},
        {"check", card->check, GSI_CHECK_OFF, GSI_CHECK_COLLECTIVE},
        {"device", card->device, GS_DEVICE_HOST, INT32_MAX},
        {"leave to share GPUs", card->allow_shared_gpu, 0, 1},
        {"way to share GPUs", card->sharing, 0, GSI_SHARING_ALWAYS},
        {"number of GPUs", card->gpus.count, 0, INT32_MAX},
        {"reserved word", card->gpus.reserved, 0, 0},
    };

    for (size_t i = 0; i < sizeof (fields) / sizeof (fields[0]); i++)
        if (fields[i].value < fields[i].least || fields[i].value > fields[i].most)
            return card_damaged (card, r, fields[i].name, fields[i].value);
    return GS_OK;
}

gs_status_t gsi_cards_agree (const struct gsi_card *cards, int size)
{
    gs_status_t st = GS_OK;

    for (int r = 0; r < size && !st; r++)
        st = same_library (cards, r);
    for (int r = 0; r < size && !st; r++)
        st = readable (&cards[r], r);
    for (int r = 0; r < size && !st; r++)
        if (cards[r].status)
            st = gsi_fail ((gs_status_t) cards[r].status, "rank %d (host %.71s): %.191s", r,
                           cards[r].host, cards[r].text);
    for (int r = 0; r < size && !st; r++)
        st = in_range (&cards[r], r);
    for (int r = 0; r < size && !st; r++)
        st = same_wishes (cards, r);
    return st;
}
