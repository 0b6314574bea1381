/* SPDX-License-Identifier: BSD-3-Clause */
/* choice - GPUs, GPUs that ranks share, or hosts, by what ranks ask for and have found. */
#include "core/choice.h"

#include "base/env.h"
#include "base/transport.h"
#include "unit/unit.h"

#define SIZE 4

static struct gsi_card cards[SIZE];
static _Alignas(8) char room[SIZE * GSI_PLACE_BYTES];
static struct gsi_choice choice;
static bool looks;

static const char *host_of (const void *context, int rank)
{
    return ((const struct gsi_card *) context)[rank].host;
}

/* Four ranks of a node, each of which has found [gpus] GPUs and asks for nothing. */
static void find (int gpus)
{
    struct gsi_gpus found = {.count = gpus};

    for (int i = 0; i < gpus; i++)
        found.id[i] = (uint64_t) (i + 1) << 8;
    for (int r = 0; r < SIZE; r++) {
        cards[r] = (struct gsi_card){.device = GS_DEVICE_AUTO, .host = "n0"};
        unit_ok (gsi_choice_begin ("test", SIZE, &cards[r], &looks));
        ck_assert (looks);
        unit_ok (gsi_choice_found ("test",
                                   gpus ? GS_OK : gsi_fail (GS_ERR_DEVICE, "no driver here"),
                                   &found, &cards[r]));
    }
}

static gs_status_t choose (int me)
{
    struct gsi_topo topo;
    gs_status_t st;

    gsi_topo_build (&topo, gsi_topo_room (SIZE), me, SIZE, host_of, cards);
    st = gsi_choice_make (cards, &topo, room, &choice);
    gsi_topo_clear (&topo);
    return st;
}

START_TEST (what_a_rank_looks_for)
{
    struct gsi_card card = {.device = GS_DEVICE_HOST};

    unit_ok (gsi_choice_begin ("test", 2, &card, &looks));
    ck_assert (!looks);
    ck_assert_int_eq (card.provided, GS_TRANSPORT_MPI);
    unit_ok (gsi_choice_begin ("test", 1, &card, &looks));
    ck_assert_int_eq (card.provided, GS_TRANSPORT_SELF);
    card = (struct gsi_card){.transport = GSI_TRANSPORT_OFI, .device = GS_DEVICE_AUTO};
    unit_ok (gsi_choice_begin ("test", 2, &card, &looks));
    ck_assert (!looks);
    ck_assert_int_eq (card.provided, GSI_TRANSPORT_OFI);
    card.device = 1;
    unit_fails (gsi_choice_begin ("test", 2, &card, &looks), GS_ERR_ARG,
                "test: GPU 1 is asked for with transport ofi", "use transport nccl or auto");
    card = (struct gsi_card){.transport = GS_TRANSPORT_NCCL, .device = GS_DEVICE_HOST};
    unit_fails (gsi_choice_begin ("test", 2, &card, &looks), GS_ERR_ARG,
                "transport nccl needs a GPU");
}
END_TEST

START_TEST (each_has_one)
{
    find (4);
    unit_ok (choose (2));
    ck_assert_int_eq (choice.mode, GSI_MODE_GPUS);
    ck_assert_int_eq (choice.ordinal, 2);
    ck_assert_str_eq (choice.reason, "each rank has a GPU");
    for (int r = 0; r < SIZE; r++)
        cards[r].sharing = GSI_SHARING_ALWAYS;
    unit_ok (choose (2));
    ck_assert_int_eq (choice.mode, GSI_MODE_SHARED_GPUS);
}
END_TEST

START_TEST (some_share_one)
{
    find (3);
    unit_ok (choose (3));
    ck_assert_int_eq (choice.mode, GSI_MODE_SHARED_GPUS);
    ck_assert_int_eq (choice.ordinal, 0);
    ck_assert_str_eq (choice.reason, "several ranks share a GPU");
}
END_TEST

START_TEST (nobody_has_one)
{
    find (0);
    unit_ok (choose (0));
    ck_assert_int_eq (choice.mode, GSI_MODE_HOSTS);
    ck_assert_int_eq (choice.ordinal, GS_DEVICE_HOST);
    ck_assert (!choice.fell_back);
    ck_assert_str_eq (choice.reason, "several ranks, no driver here");
}
END_TEST

/* Sharing is not allowed: all go by way of the hosts, or fail where one has asked for a GPU. */
START_TEST (some_may_not_share)
{
    find (2);
    for (int r = 0; r < SIZE; r++)
        cards[r].sharing = GSI_SHARING_NEVER;
    unit_ok (choose (1));
    ck_assert_int_eq (choice.mode, GSI_MODE_HOSTS);
    ck_assert_int_eq (choice.ordinal, GS_DEVICE_HOST);
    ck_assert (choice.fell_back);
    ck_assert_ptr_nonnull (strstr (choice.reason, "ranks 0 and 2 (host n0) would share"));
    cards[3].transport = GS_TRANSPORT_NCCL;
    unit_fails (choose (1), GS_ERR_DEVICE, "ranks 0 and 2 (host n0) would share");
    cards[3].transport = GS_TRANSPORT_AUTO;
    cards[3].device = 1;
    unit_fails (choose (1), GS_ERR_DEVICE, "ranks 0 and 2 (host n0) would share");
}
END_TEST

START_TEST (one_is_asked_for_where_there_is_none)
{
    struct gsi_card card = {.transport = GS_TRANSPORT_NCCL, .device = GS_DEVICE_AUTO};

    unit_fails (
        gsi_choice_found ("test", gsi_fail (GS_ERR_DEVICE, "no driver here"), NULL, &card),
        GS_ERR_DEVICE, "test: transport nccl was asked for, but no driver here");
    ck_assert_str_eq (card.text, "no driver here");
    card = (struct gsi_card){.device = 0};
    unit_fails (
        gsi_choice_found ("test", gsi_fail (GS_ERR_DEVICE, "no driver here"), NULL, &card),
        GS_ERR_DEVICE, "test: a GPU was asked for, but no driver here");
}
END_TEST

UNIT_SUITE ("choice", 30, what_a_rank_looks_for, each_has_one, some_share_one, nobody_has_one,
            some_may_not_share, one_is_asked_for_where_there_is_none)
