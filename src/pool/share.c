/* SPDX-License-Identifier: BSD-3-Clause */
/* share - which rows of a step lie where, who evaluates them, and in which batches: arithmetic.
 */
#include "pool/share.h"

void gsi_share_place (const size_t *rows, int ranks, size_t *place)
{
    place[0] = 0;
    for (int i = 0; i < ranks; i++)
        place[i + 1] = place[i] + rows[i];
}

/* Where piece [which] of [total] in [pieces] begins, of which the first ones have one more. */
static size_t begin_of (size_t total, size_t pieces, size_t which)
{
    size_t more = total % pieces;

    return which * (total / pieces) + (which < more ? which : more);
}

static struct gsi_rows piece_of (size_t total, size_t pieces, size_t which)
{
    size_t first = begin_of (total, pieces, which);

    return (struct gsi_rows){first, begin_of (total, pieces, which + 1) - first};
}

struct gsi_rows gsi_share_part (size_t total, int evaluators, int which)
{
    return piece_of (total, (size_t) evaluators, (size_t) which);
}

size_t gsi_share_batches (struct gsi_rows part, size_t most)
{
    if (!part.number)
        return 0;
    return most ? (part.number - 1) / most + 1 : 1;
}

struct gsi_rows gsi_share_batch (struct gsi_rows part, size_t most, size_t which)
{
    struct gsi_rows batch = piece_of (part.number, gsi_share_batches (part, most), which);

    batch.first += part.first;
    return batch;
}

void gsi_share_owners (const size_t *place, int ranks, struct gsi_rows part, int *first, int *end)
{
    *first = *end = 0;
    if (!part.number)
        return;
    while (*first < ranks && place[*first + 1] <= part.first)
        ++*first;
    *end = *first;
    while (*end < ranks && place[*end] < part.first + part.number)
        ++*end;
}

/* ---- Over nodes ---- */

static size_t least (size_t a, size_t b)
{
    return a < b ? a : b;
}

/* What each node would keep and could take; returns how many rows change nodes. */
static size_t find_shares (struct gsi_node_rows *node, int nodes)
{
    size_t total = 0, evaluators = 0, before = 0, spare = 0, room = 0;

    for (int n = 0; n < nodes; n++) {
        total += node[n].rows;
        evaluators += (size_t) node[n].evaluators;
    }
    for (int n = 0; n < nodes; n++) {
        size_t end = before + (size_t) node[n].evaluators;
        size_t share = begin_of (total, evaluators, end) - begin_of (total, evaluators, before);
        size_t most = least (share, node[n].most);
        node[n].kept = least (share, node[n].rows);
        node[n].taken = most > node[n].rows ? most - node[n].rows : 0;
        spare += node[n].rows - node[n].kept;
        room += node[n].taken;
        before = end;
    }
    return least (spare, room);
}

size_t gsi_share_spread (struct gsi_node_rows *node, int nodes)
{
    size_t moved = find_shares (node, nodes), given = 0, taken = 0;

    for (int n = 0; n < nodes; n++) {
        size_t gives = least (node[n].rows - node[n].kept, moved - given);
        node[n].taken = least (node[n].taken, moved - taken);
        node[n].kept = node[n].rows - gives;
        node[n].gives_at = given;
        node[n].takes_at = taken;
        given += gives;
        taken += node[n].taken;
    }
    return moved;
}

struct gsi_moved_rows gsi_share_moved (const struct gsi_node_rows *from,
                                       const struct gsi_node_rows *to)
{
    size_t begin = from->gives_at > to->takes_at ? from->gives_at : to->takes_at;
    size_t end = least (from->gives_at + from->rows - from->kept, to->takes_at + to->taken);

    if (end <= begin)
        return (struct gsi_moved_rows){0, 0, 0};
    return (struct gsi_moved_rows){end - begin, from->kept + begin - from->gives_at,
                                   to->rows + begin - to->takes_at};
}

/* ---- Who evaluates ---- */

/* Whether an evaluator before [own] has the GPU [id]. */
static bool is_taken (const struct gsi_candidate *candidate, int own, uint64_t id)
{
    for (int i = 0; i < own; i++)
        if (candidate[i].gpu >= 0 && candidate[i].gpus.id[candidate[i].gpu] == id)
            return true;
    return false;
}

/* The first GPU of [own] that none before it has, or -1. */
static int free_gpu (const struct gsi_candidate *candidate, int own)
{
    const struct gsi_gpus *gpus = &candidate[own].gpus;

    for (int g = 0; g < gpus->count; g++)
        if (!is_taken (candidate, own, gpus->id[g]))
            return g;
    return -1;
}

static int choose_willing (struct gsi_candidate *candidate, int ranks)
{
    int chosen = 0;

    for (int i = 0; i < ranks; i++) {
        struct gsi_candidate *c = &candidate[i];
        if (c->requested != GS_EVALUATOR_YES)
            continue;
        c->evaluates = true;
        c->gpu = free_gpu (candidate, i);
        if (c->gpu < 0 && c->gpus.count) /* more evaluators than GPUs: they share them */
            c->gpu = chosen % c->gpus.count;
        chosen++;
    }
    return chosen;
}

int gsi_share_choose (struct gsi_candidate *candidate, int ranks)
{
    int chosen, lowest = -1;

    for (int i = 0; i < ranks; i++) {
        candidate[i].evaluates = false;
        candidate[i].gpu = -1;
    }
    if ((chosen = choose_willing (candidate, ranks)))
        return chosen;
    for (int i = 0; i < ranks; i++) {
        struct gsi_candidate *c = &candidate[i];
        if (c->requested != GS_EVALUATOR_AUTO || !c->able)
            continue;
        lowest = lowest < 0 ? i : lowest;
        c->gpu = free_gpu (candidate, i);
        c->evaluates = c->gpu >= 0;
        chosen += c->evaluates;
    }
    if (!chosen && lowest >= 0)
        candidate[lowest].evaluates = true;
    return chosen ? chosen : lowest >= 0;
}
