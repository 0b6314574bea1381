/* SPDX-License-Identifier: BSD-3-Clause */
/* parent_boot - how the ranks of a communicator tell each other things while they make groups. */
#include "comm/parent_boot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "call/failure.h"
#include "call/staging.h"
#include "core/card.h"

/*
 * Exchanges of a create (create.c): the cards; where there are GPUs also the agreement that all
 * have theirs, and the end of the transport's start. All ranks of the parent join in the start.
 */
#define ROUNDS_OF_HOSTS 1
#define ROUNDS_OF_GPUS  3
#define START_BEFORE    2 /* rounds that come before the transport is started */

#define ROUND_BYTES 848 /* of a rank in a round: the same on all, whatever they say */

struct round_word {
    int32_t bytes; /* that this rank says; 0: it takes part for the others */
    char content[ROUND_BYTES - 4];
};
_Static_assert(sizeof (struct gsi_card) <= ROUND_BYTES - 4, "a card fits in a round");

struct boot_meeting {
    struct gsi_boot base;
    struct gsi_parent_boot *parent_boot;
    int *member; /* [size] ranks of the parent, or NULL */
};

gs_status_t gsi_parent_boot_open (struct gsi_parent_boot *m, gs_comm_t *parent,
                                  const struct gsi_call *call)
{
    *m = (struct gsi_parent_boot){.parent = parent, .call = call};
    m->said = malloc ((size_t) parent->topo.size * sizeof (struct round_word));
    return m->said ? GS_OK : gsi_fail (GS_ERR_NOMEM, "out of memory");
}

void gsi_parent_boot_close (struct gsi_parent_boot *m)
{
    free (m->said);
    m->said = NULL;
}

/*
 * The transport of the parent failed. On GPUs it ends at once: what it has queued would keep the
 * memory of a half-made group, whose free waits for the device, until the others are heard of.
 * They see its end, so the record that says whose failure it is comes first.
 */
static gs_status_t break_up (void *parent_boot, gs_status_t st)
{
    struct gsi_parent_boot *m = parent_boot;
    gs_comm_t *parent = m->parent;

    m->broken = gsi_failure_blame (parent, st);
    if (parent->inflight) {
        gsi_failure_record (parent, m->broken, m->call->seq);
        gsi_failure_tell_others (parent, m->broken, m->call->seq);
    }
    return m->broken;
}

/* Tells all ranks of the parent [bytes] of [data]; none, for the others' sake. */
static gs_status_t take_part (struct gsi_parent_boot *m, const void *data, size_t bytes,
                              int64_t deadline_ns)
{
    struct gsi_call call = *m->call;
    const struct gsi_coll_ops *ops = m->parent->coll->ops;
    struct round_word mine = {.bytes = (int32_t) bytes};
    gs_status_t st = GS_OK;

    if (m->broken)
        return m->broken;
    if (bytes)
        memcpy (mine.content, data, bytes);
    call.deadline_ns = deadline_ns;
    if (m->coll && m->rounds++ == START_BEFORE && ops->pass && !m->coll->entered)
        st = ops->pass (m->parent->coll, deadline_ns);
    if (!st)
        st = gsi_staging_control (m->parent, &mine, m->said, sizeof (mine), &call);
    return st ? break_up (m, st) : GS_OK;
}

static gs_status_t parent_exchange (struct gsi_boot *base, const void *card, size_t bytes,
                                    void *cards, int64_t deadline_ns)
{
    struct boot_meeting *boot = (struct boot_meeting *) base;
    const struct round_word *said =
        (const struct round_word *) (const void *) boot->parent_boot->said;
    gs_status_t st = take_part (boot->parent_boot, card, bytes, deadline_ns);

    for (int i = 0; i < base->size && cards && !st; i++) {
        int r = boot->member ? boot->member[i] : i;
        if (said[r].bytes != (int32_t) bytes)
            st = gsi_fail (GS_ERR_STATE, "rank %d (host %s) gave up; its own text says why", i,
                           boot->parent_boot->parent->hosts[r]);
        else
            memcpy ((char *) cards + (size_t) i * bytes, said[r].content, bytes);
    }
    return st;
}

static void close_meeting (struct gsi_boot *base)
{
    free (((struct boot_meeting *) base)->member);
    free (base);
}

static const struct gsi_boot_ops ops_of_meeting = {
    .name = "group", .exchange = parent_exchange, .close = close_meeting};

gs_status_t gsi_parent_boot_boot (struct gsi_parent_boot *m, const int *member, int size,
                                  int rank, const char *job, struct gsi_boot **out)
{
    struct boot_meeting *boot = calloc (1, sizeof (*boot));
    size_t bytes = (size_t) size * sizeof (*member);

    if (boot && member && !gsi_fault ("split.memory"))
        boot->member = malloc (bytes);
    if (!boot || (member && !boot->member)) {
        free (boot);
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    }
    if (member)
        memcpy (boot->member, member, bytes);
    boot->base.ops = &ops_of_meeting;
    boot->base.rank = rank;
    boot->base.size = size;
    boot->base.is_group = boot->base.own_job = true;
    boot->base.one_node = m->parent->topo.nodes == 1;
    boot->parent_boot = m;
    memcpy (boot->base.host, m->parent->hosts[m->parent->topo.rank], sizeof (boot->base.host));
    snprintf (boot->base.job, sizeof (boot->base.job), "%s", job);
    *out = &boot->base;
    return GS_OK;
}

void gsi_parent_boot_begin (struct gsi_parent_boot *m, struct gsi_coll_parent *coll)
{
    coll->broken = break_up;
    coll->context = m;
    m->coll = coll;
    m->rounds = 0;
}

void gsi_parent_boot_end (struct gsi_parent_boot *m, int64_t deadline_ns)
{
    bool gpus = m->parent->inflight || gsi_coll_is_shared (m->parent->coll->ops);
    int rounds = gpus ? ROUNDS_OF_GPUS : ROUNDS_OF_HOSTS;

    while (!m->broken && m->rounds < rounds)
        take_part (m, NULL, 0, deadline_ns);
    m->coll = NULL;
}
