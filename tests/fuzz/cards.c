/* SPDX-License-Identifier: BSD-3-Clause */
/* cards - any bytes as the cards of ranks: the verdict on them, and where GPUs go by them. */
#include <stdlib.h>
#include <string.h>

#include "boot/topo.h"
#include "core/card.h"
#include "core/gpu_map.h"
#include "fuzz/fuzz.h"

#define MOST 8

static const char *host_of (const void *cards, int rank)
{
    return ((const struct gsi_card *) cards)[rank].host;
}

size_t fuzz_seed (unsigned number, uint8_t *data, size_t room)
{
    static struct gsi_card cards[MOST];
    size_t size = 1 + number % MOST;

    memset (cards, 0, sizeof (cards));
    for (size_t r = 0; r < size; r++) {
        cards[r].protocol = GSI_CARD_PROTOCOL;
        cards[r].provided = number % 3 ? GS_TRANSPORT_NCCL : GS_TRANSPORT_MPI;
        cards[r].device = GS_DEVICE_AUTO;
        cards[r].gpus.count = number % 5 ? 2 : 0;
        cards[r].gpus.id[0] = 1;
        cards[r].gpus.id[1] = 2;
        strcpy (cards[r].version, gs_version ());
        strcpy (cards[r].host, r % 2 ? "one" : "two");
    }
    size *= sizeof (cards[0]);
    size = size < room ? size : room;
    memcpy (data, cards, size);
    return size;
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t bytes)
{
    struct gsi_topo topo = {0};
    int size = (int) (bytes / sizeof (struct gsi_card)), ordinal, pair[2];
    struct gsi_card *cards = size ? malloc ((size_t) size * sizeof (*cards)) : NULL;
    enum gsi_gpu_use use;
    void *room = cards ? calloc ((size_t) size, GSI_PLACE_BYTES) : NULL;
    void *nodes = room ? gsi_topo_room (size) : NULL;

    if (nodes)
        memcpy (cards, data, (size_t) size * sizeof (*cards));
    if (nodes && !gsi_cards_agree (cards, size)) {
        gsi_topo_build (&topo, nodes, 0, size, host_of, cards);
        nodes = NULL;
        if (!gsi_gpu_map_make (cards, &topo, room, &ordinal, &use))
            gsi_gpu_map_hidden (cards, &topo, room, pair);
    }
    gsi_topo_clear (&topo);
    free (nodes);
    free (room);
    free (cards);
    return 0;
}
