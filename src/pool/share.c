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

/* Piece [which] of [total] in [pieces], of which the first ones have one more. */
static struct gsi_rows piece_of (size_t total, size_t pieces, size_t which)
{
    size_t each = total / pieces, more = total % pieces;

    return (struct gsi_rows){which * each + (which < more ? which : more), each + (which < more)};
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
        if (c->wish != GS_EVALUATOR_YES)
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
        if (c->wish != GS_EVALUATOR_AUTO || !c->able)
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
