/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info_layout - which way a job of so many nodes, ranks and GPUs would take, and what to type.
 *
 * Ranks that there are not put made-up cards, with the settings of this environment, and the
 * library's own functions choose by them. All nodes are alike, so what is told of one is so on
 * each.
 */
#include "tools/info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/status.h"
#include "base/transport.h"
#include "core/choice.h"
#include "tools/info_layout.h"
#include "transport/gpu_grouping.h"
#include "transport/nccl_versions.h"

#define MOST_RANKS 65536

/* What the choice is made of. */
struct cards {
    struct gsi_card *cards;   /* [size] */
    struct gsi_rank_gpu *gpu; /* [size] */
    struct gsi_gpu_grouping grouping;
    struct gsi_topo topo, leaders;
    struct gsi_choice choice;
    void *room; /* of the map of GPUs */
};

static bool read_layout (const char *text, struct info_plan *p)
{
    long nodes, ranks, gpus;

    nodes = info_number (&text, 1);
    if (!nodes || *text++ != 'x')
        return false;
    ranks = info_number (&text, 1);
    if (!ranks || *text++ != 'x')
        return false;
    gpus = info_number (&text, 0);
    if (gpus < 0 || *text || gpus > GSI_MAX_GPUS || ranks > INFO_NODE_RANKS ||
        nodes * ranks > MOST_RANKS)
        return false;
    *p = (struct info_plan){.nodes = (int) nodes, .ranks = (int) ranks, .gpus = (int) gpus};
    return true;
}

bool info_layout_is_layout (const char *layout)
{
    struct info_plan p;

    return read_layout (layout, &p);
}

static const char *host_of_card (const void *cards, int rank)
{
    return ((const struct gsi_card *) cards)[rank].host;
}

static void free_cards (struct cards *c)
{
    free (c->cards);
    free (c->gpu);
    free (c->grouping.leaders);
    free (c->grouping.members);
    free (c->leaders.node_of);
    free (c->topo.node_of);
    free (c->room);
}

/* What has been made is to be freed in any case. */
static bool make_cards (struct cards *c, size_t size)
{
    *c = (struct cards){.cards = calloc (size, sizeof (*c->cards)),
                        .gpu = calloc (size, sizeof (*c->gpu)),
                        .room = calloc (size, GSI_PLACE_BYTES)};
    c->grouping.gpus = c->gpu;
    c->grouping.leaders = calloc (size, sizeof (*c->grouping.leaders));
    c->grouping.members = calloc (size, sizeof (*c->grouping.members));
    c->leaders.node_of = calloc (size, sizeof (*c->leaders.node_of));
    c->topo.node_of = gsi_topo_room ((int) size);
    return c->cards && c->gpu && c->room && c->grouping.leaders && c->grouping.members &&
           c->leaders.node_of && c->topo.node_of;
}

/* The card of a rank of [node], by the settings of this environment. */
static gs_status_t write_card (const struct info_plan *p, int node, struct gsi_card *card)
{
    struct gsi_gpus gpus = {.count = p->gpus};
    bool looks;
    gs_status_t st;

    card->transport = (int32_t) gsi_env_choice (GSI_ENV_TRANSPORT);
    card->device = (int32_t) gsi_env_int (GSI_ENV_DEVICE);
    card->allow_shared_gpu = (int32_t) gsi_env_int (GSI_ENV_ALLOW_SHARED_GPU);
    card->sharing = (int32_t) gsi_env_choice (GSI_ENV_GPU_SHARING);
    snprintf (card->host, sizeof (card->host), "n%d", node);
    if ((st = gsi_choice_begin ("--layout", p->nodes * p->ranks, card, &looks)) || !looks)
        return st;
    for (int i = 0; i < p->gpus; i++)
        gpus.id[i] = ((uint64_t) i + 1) << 8; /* as on a bus of its own */
    st = p->gpus ? GS_OK : gsi_fail (GS_ERR_DEVICE, "the nodes have no GPUs");
    return gsi_choice_found ("--layout", st, &gpus, card);
}

/* Has all ranks choose, which they do alike but for their GPUs. */
static gs_status_t choose (struct cards *c, struct info_plan *p)
{
    int size = p->nodes * p->ranks;
    gs_status_t st = GS_OK;

    for (int r = 0; r < size && !st; r++)
        st = write_card (p, r / p->ranks, &c->cards[r]);
    if (st)
        return st;
    gsi_topo_build (&c->topo, c->topo.node_of, 0, size, host_of_card, c->cards);
    for (int r = 0; r < p->ranks && !st; r++) {
        c->topo.rank = r;
        st = gsi_choice_make (c->cards, &c->topo, c->room, &c->choice);
        p->gpu_of[r] = c->choice.ordinal;
    }
    c->topo.rank = 0;
    p->mode = c->choice.mode;
    p->hosts = gsi_transport_name ((int) gsi_coll_of_hosts (size));
    p->transport = p->mode != GSI_MODE_HOSTS ? gsi_transport_name (GS_TRANSPORT_NCCL)
                   : c->choice.fell_back     ? p->hosts
                                             : gsi_transport_name (c->cards[0].provided);
    snprintf (p->reason, sizeof (p->reason), "%s", c->choice.reason);
    return st;
}

/* Whether sums are made in groups; if not, [p]->by_hosts says why. */
static void group (struct cards *c, struct info_plan *p)
{
    int version;

    for (int r = 0; r < c->topo.size; r++) {
        int gpu = p->gpu_of[r % p->ranks];

        c->gpu[r].known = 1;
        c->gpu[r].gpu = c->cards[r].gpus.id[gpu];
        c->gpu[r].id.bytes[0] = (unsigned char) (gpu + 1);
        c->gpu[r].deterministic = (int32_t) gsi_env_int (GSI_ENV_DETERMINISTIC);
    }
    gsi_gpu_grouping_find (&c->grouping, &c->topo);
    gsi_gpu_grouping_topo (&c->grouping, &c->topo, &c->leaders);
    p->groups = c->leaders.size;
    p->node_groups = c->leaders.local_size;
    p->largest = c->grouping.largest;
    for (int r = 0; r < p->ranks; r++)
        p->leader_of[r] = gsi_gpu_grouping_leader (&c->grouping, &c->topo, r);
    if (!gsi_gpu_grouping_may_sum (&c->grouping, &c->topo, p->by_hosts, sizeof (p->by_hosts)))
        return;
    if (!gsi_nccl_version_find (&version) && gsi_gpu_grouping_check_nccl (p->groups, version))
        snprintf (p->by_hosts, sizeof (p->by_hosts), "%s", gsi_last_text ());
    else
        *p->by_hosts = 0;
}

/* Whether ranks that see their own GPU alone would be in NCCL's way. */
static bool binding_hides (struct cards *c, const struct info_plan *p)
{
    int pair[2];

    for (int r = 0; r < c->topo.size; r++) {
        struct gsi_gpus *gpus = &c->cards[r].gpus;

        gpus->id[0] = gpus->id[p->gpu_of[r % p->ranks]];
        gpus->count = 1;
        c->cards[r].device = GS_DEVICE_AUTO;
    }
    return gsi_gpu_map_hidden (c->cards, &c->topo, c->room, pair);
}

bool info_layout (const char *layout, bool json)
{
    struct info_plan p;
    struct cards c;
    gs_status_t st = GS_OK;

    read_layout (layout, &p);
    if (!make_cards (&c, (size_t) p.nodes * (size_t) p.ranks))
        st = gsi_fail (GS_ERR_NOMEM, "out of memory");
    if (!st)
        st = choose (&c, &p);
    if (!st && p.mode == GSI_MODE_SHARED_GPUS)
        group (&c, &p);
    if (!st) {
        p.binding_hides = p.mode != GSI_MODE_HOSTS && binding_hides (&c, &p);
        info_layout_print (&p, json);
    } else {
        fprintf (stderr, "gs-info: %s\n", gsi_last_text ());
    }
    free_cards (&c);
    return !st;
}
