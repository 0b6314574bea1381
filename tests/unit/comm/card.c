/* SPDX-License-Identifier: BSD-3-Clause */
/* card - what ranks that disagree are told, in the order of what explains most. */
#include "comm/card.h"

#include "unit/unit.h"

#define SIZE 4

static struct gsi_card cards[SIZE];

static void fill_cards (void)
{
    memset (cards, 0, sizeof (cards));
    for (int r = 0; r < SIZE; r++) {
        cards[r].protocol = GSI_CARD_PROTOCOL;
        snprintf (cards[r].version, sizeof (cards[r].version), "%s", gs_version ());
        snprintf (cards[r].host, sizeof (cards[r].host), "node%d", r);
    }
}

START_TEST (equal_cards_agree)
{
    fill_cards ();
    unit_ok (gsi_cards_agree (cards, SIZE));
    unit_ok (gsi_cards_agree (cards, 1));
}
END_TEST

START_TEST (other_libraries)
{
    fill_cards ();
    strcpy (cards[2].version, "9.9.9");
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_MISMATCH, "rank 0 (host node0)",
                gs_version (), "rank 2 (host node2) 9.9.9", "libgradsync");
    fill_cards ();
    cards[1].protocol = 77;
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_MISMATCH, "rank 1 77");
    memset (cards[3].version, 'x', sizeof (cards[3].version)); /* without an end */
    memset (cards[3].host, 'y', sizeof (cards[3].host));
    cards[1].protocol = GSI_CARD_PROTOCOL;
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_MISMATCH, "rank 3 (host yyyy", "xxxxx");
}
END_TEST

START_TEST (failed_ranks)
{
    fill_cards ();
    cards[3].transport = GS_TRANSPORT_MPI; /* a rank's own failure explains more */
    cards[2].status = GS_ERR_NOMEM;
    strcpy (cards[2].text, "no memory for x");
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_NOMEM,
                "rank 2 (host node2): no memory for x");
    memset (cards[2].text, 't', sizeof (cards[2].text)); /* without an end */
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_NOMEM, "rank 2 (host node2): ttttt");
}
END_TEST

START_TEST (other_wishes)
{
    fill_cards ();
    cards[3].transport = GS_TRANSPORT_MPI;
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_MISMATCH, "rank 3 (host node3)",
                "transport", "GS_TRANSPORT");
    fill_cards ();
    cards[1].check = 2;
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_MISMATCH, "rank 1 (host node1)",
                "GS_CHECK");
}
END_TEST

UNIT_SUITE ("card", 10, equal_cards_agree, other_libraries, failed_ranks, other_wishes)
