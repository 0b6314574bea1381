/* SPDX-License-Identifier: BSD-3-Clause */
/* missing - who is not there, as ranks find out that can ask for what each of the others has put.
 */
#include "boot/missing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define NAMED_RANKS 16                  /* of a text, at most */
#define FEW_RANKS   64                  /* that all ask for all */
#define LEAST_NS    (3 * GSI_NS_PER_S)  /* bounds of a grace period: */
#define MOST_NS     (12 * GSI_NS_PER_S) /* Slurm gives a fence 300 s, a create has 240 */

static const struct timespec slice = {.tv_nsec = 10 * GSI_NS_PER_MS};

void gsi_missing_leave_out_slow (unsigned char *missing, int size,
                                 bool (*slow) (const void *context, int rank),
                                 const void *context)
{
    enum { SLOW = 2 };
    bool others = false;

    for (int r = 0; r < size; r++) {
        if (missing[r] && slow (context, r))
            missing[r] = SLOW;
        others = others || missing[r] == 1;
    }
    for (int r = 0; r < size; r++)
        if (missing[r] == SLOW)
            missing[r] = !others;
}

void gsi_missing_list (const unsigned char *missing, int size,
                       const char *(*host_of) (void *context, int rank), void *context,
                       char *text, size_t room)
{
    int count = 0, named = 0;
    size_t used;

    for (int r = 0; r < size; r++)
        count += missing[r] != 0;
    used = (size_t) snprintf (
        text, room, count ? "%d of %d ranks did not come:" : "all ranks came", count, size);
    for (int r = 0; r < size && named < NAMED_RANKS && used < room; r++) {
        const char *host;
        if (!missing[r])
            continue;
        host = host_of ? host_of (context, r) : NULL;
        used +=
            (size_t) snprintf (text + used, room - used, "%s rank %d%s%s%s", named++ ? "," : "",
                               r, host ? " (host " : "", host ? host : "", host ? ")" : "");
    }
    if (count > named && used < room)
        snprintf (text + used, room - used, ", and %d more", count - named);
}

int64_t gsi_missing_grace_ns (int64_t timeout_ns)
{
    return gsi_grace_of (timeout_ns, LEAST_NS, MOST_NS);
}

void gsi_missing_stay (int64_t until_ns)
{
    while (gsi_now_ns () < until_ns)
        nanosleep (&slice, NULL);
}

bool gsi_missing_rest (struct gsi_grace *grace, int64_t ns)
{
    int64_t until_ns = gsi_now_ns () + ns;
    bool over;

    while (!(over = gsi_grace_is_over (grace)) && gsi_now_ns () < until_ns)
        nanosleep (&slice, NULL);
    return over;
}

/* Asks; whether this rank knows of all. Else [*leader] does, of the ranks of this node. */
static bool ask (struct gsi_boot *boot, const struct gsi_asking *how, const char *key,
                 unsigned char *missing, unsigned char *wanted, int *leader)
{
    size_t size = (size_t) boot->size;

    if (boot->size <= FEW_RANKS)
        memset (wanted, 1, size);
    else
        how->local (boot, wanted);
    memcpy (missing, wanted, size);
    how->ask (boot, key, wanted, missing);
    if (boot->size <= FEW_RANKS)
        return true;
    for (*leader = 0; *leader < boot->rank && (!wanted[*leader] || missing[*leader]);)
        ++*leader;
    if (*leader != boot->rank)
        return false;
    for (size_t r = 0; r < size; r++)
        missing[r] |= wanted[r] = !wanted[r];
    how->ask (boot, key, wanted, missing);
    return true;
}

/* Takes out of missing[rank] those of this node that are waiting still, as far as it knows. */
static void leave_out_waiting (const struct gsi_boot *boot, unsigned char *missing)
{
    for (int r = 0; boot->goes_on && r < boot->size; r++)
        if (missing[r] && boot->goes_on (boot->context, r))
            missing[r] = 0;
}

/* Whether all of this node came, and nobody of others. */
static bool is_cut_off (int size, const unsigned char *missing, const unsigned char *local)
{
    bool others = false;

    for (int r = 0; r < size; r++) {
        if ((missing[r] != 0) == (local[r] != 0))
            return false;
        others = others || missing[r];
    }
    return others;
}

/* Writes what it may mean that these are missing. */
static void explain (const struct gsi_boot *boot, const struct gsi_asking *how,
                     const unsigned char *missing, const unsigned char *local, char *text,
                     size_t room)
{
    bool open = false; /* whether one has not ended, as far as is known */

    *text = 0;
    for (int r = 0; r < boot->size; r++)
        open = open || (missing[r] && !(boot->halted && boot->halted (boot->context, r)));
    if (how->early && open)
        snprintf (text, room, "; those of them that have not ended may be waiting still");
    else if (!how->early && is_cut_off (boot->size, missing, local))
        snprintf (text, room,
                  "; nobody of other hosts was heard of: a firewall may drop what the PMIx "
                  "servers send each other, to ports of any number");
}

int gsi_missing_name (struct gsi_boot *boot, const struct gsi_asking *how, const char *key,
                      char *names, size_t room)
{
    int64_t end_ns = gsi_now_ns () + 2 * how->ask_ns, left_ns; /* all have asked */
    struct gsi_grace stay;
    unsigned char *missing = calloc (2, (size_t) boot->size);
    unsigned char *local;
    int leader, used = 0, absent = 0;

    if (!missing) {
        snprintf (names, room, "who did not come is not known");
        return -1;
    }
    local = missing + boot->size;
    if (!ask (boot, how, key, missing, local, &leader))
        used = snprintf (names, room, "rank %d has asked the other nodes; on this one (host %s) ",
                         leader, boot->host);
    for (int r = 0; boot->halted && r < boot->size; r++)
        if (!missing[r] && boot->halted (boot->context, r))
            missing[r] = 1; /* since it has put the key */
    if (how->early)
        leave_out_waiting (boot, missing);
    else if (boot->goes_on)
        gsi_missing_leave_out_slow (missing, boot->size, boot->goes_on, boot->context);
    memset (local, 0, (size_t) boot->size);
    how->local (boot, local);
    for (int r = 0; r < boot->size; r++)
        absent += missing[r];
    gsi_missing_list (missing, boot->size, how->host, boot, names + used, room - (size_t) used);
    explain (boot, how, missing, local, names + strlen (names), room - strlen (names));
    free (missing);
    /* Others may still ask for what we have put, which a server forgets when its rank ends (PRRTE
     * 3). Who knows less speaks later: with --kill-on-bad-exit the first to end takes all with
     * it.
     */
    left_ns = end_ns - gsi_now_ns ();
    gsi_grace_begin (&stay,
                     (left_ns > how->ask_ns ? left_ns : how->ask_ns) + (used ? GSI_NS_PER_S : 0));
    gsi_missing_rest (&stay, INT64_MAX / 2);
    return absent;
}
