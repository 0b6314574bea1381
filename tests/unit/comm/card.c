/* SPDX-License-Identifier: BSD-3-Clause */
/* card - what ranks that disagree are told, in the order of what explains most. */
#include "core/card.h"

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
}
END_TEST

/* [field] of rank 2's card has [value]: all ranks say that it is damaged, and name [what]. */
static void check_forged (int32_t *field, int32_t value, const char *what)
{
    fill_cards ();
    *field = value;
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_BOOT, "the card of rank 2 (host node2)",
                "damaged", what);
}

START_TEST (forged_cards)
{
    struct gsi_card *card = &cards[2];
    int32_t *fields[] = {&card->status, &card->transport,  &card->provided,     &card->check,
                         &card->device, &card->gpus.count, &card->gpus.reserved};
    static const char *const names[] = {
        "status", "transport", "provided transport", "check", "device", "number", "reserved"};

    for (size_t i = 0; i < sizeof (fields) / sizeof (fields[0]); i++)
        check_forged (fields[i], INT32_MIN, names[i]);
    for (size_t i = 0; i < 4; i++)
        check_forged (fields[i], 77, names[i]);
    check_forged (&card->device, GS_DEVICE_HOST - 1, "device is -3");
    check_forged (&card->allow_shared_gpu, 2, "leave to share GPUs is 2");
    check_forged (&card->sharing, 3, "way to share GPUs is 3");
    check_forged (&card->status, GS_ERR_STATE + 1, "status is 12");
    fill_cards ();
    memset (card->text, 't', sizeof (card->text));
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_BOOT, "rank 2", "text without an end");
    fill_cards ();
    memset (card->host, 'h', sizeof (card->host));
    unit_fails (gsi_cards_agree (cards, SIZE), GS_ERR_BOOT, "rank 2", "host without an end");
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

UNIT_SUITE ("card", 10, equal_cards_agree, other_libraries, failed_ranks, forged_cards,
            other_wishes)
