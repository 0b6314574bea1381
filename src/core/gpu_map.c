/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_map - which GPU each rank takes; pure arithmetic on the cards, the same on every rank. */
#include "core/gpu_map.h"

#include <inttypes.h>

#include "base/env.h"
#include "base/status.h"

/* A rank among those of its node. */
struct assignment {
    int before; /* the rank of this node before it, -1 for the first */
    int local;  /* how many ranks of this node that take a GPU are before it */
    int ordinal;
};

_Static_assert(sizeof (struct assignment) + sizeof (int) <= GSI_PLACE_BYTES, "there is room");

/* Whether a rank has a GPU, and does not ask to be without. */
static bool takes_gpu (const struct gsi_card *card)
{
    return card->device != GS_DEVICE_HOST && card->gpus.count > 0;
}

/* [size] assignments, in [room]; behind them is the last rank so far of each node. */
static struct assignment *begin_assignments (const struct gsi_card *cards,
                                             const struct gsi_topo *topo, void *room)
{
    struct assignment *assigned = room;
    int *last = (int *) (void *) (assigned + topo->size);

    for (int n = 0; n < topo->nodes; n++)
        last[n] = -1;
    for (int r = 0; r < topo->size; r++) {
        int *there = &last[topo->node_of[r]];
        assigned[r] = (struct assignment){
            .before = *there,
            .local = *there < 0 ? 0 : assigned[*there].local + takes_gpu (&cards[*there])};
        *there = r;
    }
    return assigned;
}

static gs_status_t choose_gpu (const struct gsi_card *card, int rank, struct assignment *one)
{
    int count = card->gpus.count;

    one->ordinal = GS_DEVICE_HOST;
    if (card->device == GS_DEVICE_HOST)
        return gsi_fail (GS_ERR_DEVICE,
                         "rank %d (host %.71s) wants no GPU: look at its option device and at "
                         "GS_DEVICE",
                         rank, card->host);
    if (count < 1)
        return gsi_fail (GS_ERR_DEVICE, "rank %d (host %.71s) has no GPU: %.191s", rank,
                         card->host, card->text);
    if (card->device >= count)
        return gsi_fail (GS_ERR_DEVICE,
                         "rank %d (host %.71s) asks for GPU %d, but sees %d, numbered from 0: "
                         "look at the option device, GS_DEVICE and CUDA_VISIBLE_DEVICES",
                         rank, card->host, card->device, count);
    one->ordinal = card->device >= 0 ? card->device : one->local % count;
    return GS_OK;
}

/* What tells a GPU from the others of its node; 0 if it is not known. */
static uint64_t id_of (const struct gsi_card *card, const struct assignment *one)
{
    return one->ordinal >= 0 && one->ordinal < GSI_MAX_GPUS ? card->gpus.id[one->ordinal] : 0;
}

static gs_status_t is_alone (const struct gsi_card *cards, const struct assignment *assigned,
                             int rank)
{
    uint64_t id = id_of (&cards[rank], &assigned[rank]);

    for (int r = assigned[rank].before; r >= 0 && id; r = assigned[r].before) {
        if (id_of (&cards[r], &assigned[r]) != id ||
            (cards[r].allow_shared_gpu && cards[rank].allow_shared_gpu))
            continue;
        return gsi_fail (GS_ERR_DEVICE,
                         "ranks %d and %d (host %.71s) would share the GPU %04" PRIx64
                         ":%02" PRIx64 ":%02" PRIx64
                         ", which NCCL does not allow: leave GS_GPU_SHARING at auto, start as "
                         "many ranks on a node as it has GPUs, with srun --gpus-per-node=4 "
                         "--ntasks-per-node=4 for instance, or look at GS_DEVICE",
                         r, rank, cards[rank].host, id >> 16, id >> 8 & 0xff, id & 0xff);
    }
    return GS_OK;
}

gs_status_t gsi_gpu_map_make (const struct gsi_card *cards, const struct gsi_topo *topo,
                              void *room, int *ordinal, enum gsi_gpu_use *use)
{
    struct assignment *assigned = begin_assignments (cards, topo, room);
    gs_status_t st = GS_OK;
    int none = -1; /* the first rank without a GPU */

    *use = GSI_GPUS_OWN;
    for (int r = 0; r < topo->size && !st; r++) {
        st = choose_gpu (&cards[r], r, &assigned[r]);
        if (!st || takes_gpu (&cards[r]) || cards[r].sharing == GSI_SHARING_NEVER)
            continue;
        none = none < 0 ? r : none;
        st = GS_OK;
    }
    for (int r = 0; r < topo->size && !st && *use == GSI_GPUS_OWN; r++)
        if ((st = is_alone (cards, assigned, r)) && cards[r].sharing != GSI_SHARING_NEVER) {
            *use = GSI_GPUS_SHARED;
            st = GS_OK;
        }
    *ordinal = assigned[topo->rank].ordinal;
    if (st || none < 0)
        return st;
    *use = GSI_GPUS_MIXED;
    choose_gpu (&cards[none], none, &assigned[none]); /* says why */
    return GS_OK;
}

/* Whether the rank of [card] sees the GPU [id], as far as anybody can tell. */
static bool sees (const struct gsi_card *card, uint64_t id)
{
    if (!id || card->gpus.count > GSI_MAX_GPUS)
        return true;
    for (int i = 0; i < card->gpus.count; i++)
        if (card->gpus.id[i] == id || !card->gpus.id[i])
            return true;
    return false;
}

bool gsi_gpu_map_hidden (const struct gsi_card *cards, const struct gsi_topo *topo, void *room,
                         int pair[2])
{
    struct assignment *assigned = begin_assignments (cards, topo, room);
    bool found = false;

    for (int r = 0; r < topo->size && !found; r++) {
        int before = assigned[r].before;

        if (choose_gpu (&cards[r], r, &assigned[r]))
            break;
        found = before >= 0 && (!sees (&cards[before], id_of (&cards[r], &assigned[r])) ||
                                !sees (&cards[r], id_of (&cards[before], &assigned[before])));
        pair[0] = before;
        pair[1] = r;
    }
    return found;
}
