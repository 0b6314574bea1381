/* SPDX-License-Identifier: BSD-3-Clause */
/* ranks - ranks that meet by an id, one thread each; what the suites of the rendezvous share. */
#ifndef GS_TESTS_RANKS_H
#define GS_TESTS_RANKS_H

#include <pthread.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/boot.h"
#include "unit/unit.h"

#define MOST 8

/* One rank: what it does and what comes of it. */
struct rank {
    pthread_t thread;
    gs_unique_id_t id;
    int rank, size, wait_ms, delay_ms;
    int again;          /* how many exchanges follow the first */
    int again_delay_ms; /* before the second */
    gs_status_t own;    /* its own status, if it is to agree with the others */
    bool agrees;
    size_t bytes;
    gs_status_t st;
    char text[1024], cards[MOST * 64];
};

static struct rank ranks[MOST];

static inline void fill_card (char *card, int rank, size_t bytes)
{
    memset (card, 'a' + rank, bytes);
}

static inline gs_status_t exchange (struct rank *r, struct gsi_boot *boot, size_t bytes)
{
    char card[64];

    fill_card (card, r->rank, bytes);
    return boot->ops->exchange (boot, card, bytes, r->cards,
                                gsi_now_ns () + unit_patience () * r->wait_ms * GSI_NS_PER_MS);
}

/* Exchanges cards of another size each time; the last ones are those of the first. */
static inline gs_status_t meet_again (struct rank *r, struct gsi_boot *boot)
{
    gs_status_t st = GS_OK;

    usleep ((useconds_t) (unit_patience () * r->again_delay_ms) * 1000);
    for (int left = r->again; left > 0 && !st; left--) {
        memset (r->cards, 0, sizeof (r->cards));
        st = exchange (r, boot, left > 1 ? (size_t) left : r->bytes);
    }
    if (st || !r->agrees)
        return st;
    if (r->own)
        gsi_fail (r->own, "rank %d says so itself", r->rank);
    return gsi_boot_agree (boot, r->own,
                           gsi_now_ns () + unit_patience () * r->wait_ms * GSI_NS_PER_MS);
}

static inline void *meet (void *argument)
{
    struct rank *r = argument;
    struct gsi_boot *boot;

    usleep ((useconds_t) r->delay_ms * 1000);
    r->st = gsi_boot_id_open (&r->id, r->rank, r->size, &boot);
    if (!r->st)
        r->st = exchange (r, boot, r->bytes);
    if (!r->st)
        r->st = meet_again (r, boot);
    if (r->st)
        snprintf (r->text, sizeof (r->text), "%s", gs_last_error ());
    gsi_boot_close (boot);
    return NULL;
}

/* Prepares [count] ranks with one new id. */
static inline void plan (int count, int wait_ms)
{
    memset (ranks, 0, sizeof (ranks));
    unit_ok (gs_unique_id_get (&ranks[0].id));
    for (int r = 0; r < count; r++) {
        ranks[r].id = ranks[0].id;
        ranks[r].rank = r;
        ranks[r].size = count;
        ranks[r].wait_ms = wait_ms;
        ranks[r].bytes = 40;
    }
}

static inline void start (int rank)
{
    ck_assert_int_eq (pthread_create (&ranks[rank].thread, NULL, meet, &ranks[rank]), 0);
}

static inline void finish (int rank)
{
    ck_assert_int_eq (pthread_join (ranks[rank].thread, NULL), 0);
}

static inline void run (int count)
{
    for (int r = 0; r < count; r++)
        start (r);
    for (int r = 0; r < count; r++)
        finish (r);
}

static inline void check_met (int count)
{
    for (int r = 0; r < count; r++) {
        ck_assert_msg (!ranks[r].st, "rank %d: %s", r, ranks[r].text);
        for (int other = 0; other < count; other++) {
            char card[64];
            fill_card (card, other, 40);
            ck_assert_int_eq (memcmp (ranks[r].cards + other * 40, card, 40), 0);
        }
    }
}

/* The rank failed with [st] and a text that has [part]. */
static inline void check_failed (int rank, gs_status_t st, const char *part)
{
    ck_assert_msg (ranks[rank].st == st && strstr (ranks[rank].text, part),
                   "rank %d: %s, '%s'; wanted %s, '%s'", rank, gs_status_string (ranks[rank].st),
                   ranks[rank].text, gs_status_string (st), part);
}

#endif /* GS_TESTS_RANKS_H */
