/* SPDX-License-Identifier: BSD-3-Clause */
/* card - what each rank tells every other one during the create. */
#include "comm/card.h"

#include <string.h>

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
    return GS_OK;
}

gs_status_t gsi_cards_agree (const struct gsi_card *cards, int size)
{
    gs_status_t st = GS_OK;

    for (int r = 0; r < size && !st; r++)
        st = same_library (cards, r);
    for (int r = 0; r < size && !st; r++)
        if (cards[r].status)
            st = gsi_fail ((gs_status_t) cards[r].status, "rank %d (host %.71s): %.191s", r,
                           cards[r].host, cards[r].text);
    for (int r = 0; r < size && !st; r++)
        st = same_wishes (cards, r);
    return st;
}
