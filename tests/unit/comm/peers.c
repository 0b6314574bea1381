/* SPDX-License-Identifier: BSD-3-Clause */
/* peers - who is named for a deadline, from the transport's roll call and from flight records. */
#include "call/peers.h"

#include "../base/records.h"

#define RANKS 4
#define LOCAL 2 /* ranks of this node, the first ones */

static struct gsi_record records[LOCAL];

/* A roll call to which no other rank answers. */
static bool silence (struct gsi_coll *coll, const struct gsi_call *call, int64_t listen_ns,
                     unsigned char *came)
{
    (void) coll, (void) call, (void) listen_ns;
    memset (came, 0, RANKS);
    came[1] = 1;
    return true;
}

/* Who is missing, a letter for each rank, where rank 1 has waited for the deadline. */
static const char *missing (void)
{
    static const struct gsi_coll_ops ops = {.roll_call = silence};
    static char text[RANKS + 1];
    struct gsi_coll coll = {.ops = &ops};
    int node_of[RANKS] = {0, 0, 1, 1};
    gs_comm_t comm = {.coll = &coll, .timeout_ns = GSI_NS_PER_S, .record = records[1]};
    unsigned char marks[RANKS];

    comm.topo = (struct gsi_topo){.rank = 1, .size = RANKS, .nodes = 2, .node_of = node_of};
    ck_assert_int_eq (gsi_peers_mark_missing (&comm, &(struct gsi_call){.seq = 7}, marks), 0);
    for (int r = 0; r < RANKS; r++)
        text[r] = marks[r] ? 'm' : '.';
    return text;
}

static void open_records (void)
{
    enter_room ();
    for (int r = 0; r < LOCAL; r++)
        unit_ok (gsi_record_open (&records[r], "job", "world", 0, r, RANKS, "here"));
}

static void close_records (void)
{
    for (int r = 0; r < LOCAL; r++)
        gsi_record_close (&records[r], false);
    clear_room ();
}

/* Whether rank 1 is to wait for rank 0. */
static bool goes_on (void)
{
    int node_of[RANKS] = {0, 0, 1, 1};
    gs_comm_t comm = {.record = records[1]};

    comm.topo = (struct gsi_topo){.rank = 1, .size = RANKS, .nodes = 2, .node_of = node_of};
    return gsi_peers_go_on (&comm);
}

/* Until it has given up, or its record is gone. */
START_TEST (neighbour_goes_on)
{
    open_records ();
    ck_assert (goes_on ());
    gsi_record_give_up (&records[0], GS_ERR_STATE, 3, 8);
    ck_assert (!goes_on ());
    close_records ();
    open_records ();
    gsi_record_close (&records[0], false);
    ck_assert (!goes_on ());
    close_records ();
}
END_TEST

/* Nobody knows more: all that did not answer. */
START_TEST (not_told)
{
    open_records ();
    ck_assert_str_eq (missing (), "m.mm");
    close_records ();
}
END_TEST

/* Rank 0 was told by rank 2 that it gave up because of rank 3, and then could not answer. */
START_TEST (neighbour_told)
{
    open_records ();
    gsi_record_give_up (&records[0], GS_ERR_STATE, 3, 8);
    ck_assert_str_eq (missing (), "...m");
    close_records ();
}
END_TEST

/* It gave up because of this rank, of itself or of nobody that it knows: that tells no more. */
START_TEST (neighbour_knows_nothing)
{
    for (int culprit = -1; culprit <= 1; culprit++) {
        open_records ();
        gsi_record_give_up (&records[0], GS_ERR_TIMEOUT, culprit, 7);
        ck_assert_str_eq (missing (), "m.mm");
        close_records ();
    }
}
END_TEST

UNIT_SUITE ("peers", 10, neighbour_goes_on, not_told, neighbour_told, neighbour_knows_nothing)
