/* SPDX-License-Identifier: BSD-3-Clause */
/* consensus - ranks find out whether they can go on; logical reductions. */
#include "feature/consensus.h"

#include <string.h>

#include "base/process.h"
#include "base/status.h"
#include "boot/boot.h"

/* The status of the rank that failed with the largest one, and the lowest such rank. */
static uint64_t failure_of (const gs_comm_t *comm, gs_status_t st)
{
    return st ? (uint64_t) st << 32 | (UINT32_MAX - (uint32_t) gs_comm_rank (comm)) : 0;
}

/* What the rank that failed has to say. */
static gs_status_t name_failed (gs_comm_t *comm, const char *caller, gs_status_t own,
                                uint64_t failure, gs_stream_t stream)
{
    gs_status_t st = (gs_status_t) (failure >> 32), told;
    int rank = (int) (UINT32_MAX - (uint32_t) failure);
    char text[GSI_TEXT_MAX] = "";

    if (gs_comm_rank (comm) == rank)
        memcpy (text, gsi_last_text (), strlen (gsi_last_text ()));
    gsi_process_told ();
    told = gs_broadcast (comm, text, sizeof (text), GS_U8, rank, stream);
    if (told || st == own)
        return told ? told : st; /* whose text is there */
    return gsi_fail (st, "%s: rank %d (host %s) has failed: %s", caller, rank,
                     gs_comm_host_of (comm, rank), text);
}

/* Finds ranks with the least and the most of a word. */
static gs_status_t find_ranks (gs_comm_t *comm, struct gsi_agreement *a, gs_stream_t stream)
{
    uint64_t own = a->word[a->differs], rank = (uint64_t) gs_comm_rank (comm);
    uint64_t lowest[2] = {own == a->least ? rank : UINT32_MAX,
                          own == a->most ? rank : UINT32_MAX};
    gs_status_t st = gs_allreduce (comm, lowest, 2, GS_U64, GS_MIN, stream);

    a->least_rank = (int) lowest[0];
    a->most_rank = (int) lowest[1];
    return st;
}

/* One exchange: the largest of [words] words behind the first, which is for failures. */
static gs_status_t exchange_words (gs_comm_t *comm, const char *caller, gs_status_t own,
                                   uint64_t *most, int words, gs_stream_t stream)
{
    gs_status_t st;

    most[0] = failure_of (comm, own);
    if ((st = gs_allreduce (comm, most, 1 + (size_t) words, GS_U64, GS_MAX, stream)))
        return st;
    return most[0] ? name_failed (comm, caller, own, most[0], stream) : GS_OK;
}

gs_status_t gsi_consensus_most (gs_comm_t *comm, const char *caller, gs_status_t st,
                                uint64_t *word, int words, gs_stream_t stream)
{
    uint64_t most[1 + GSI_AGREE_WORDS];

    for (int i = 0; i < words; i++)
        most[1 + i] = word[i];
    if (!(st = exchange_words (comm, caller, st, most, words, stream)))
        for (int i = 0; i < words; i++)
            word[i] = most[1 + i];
    return st;
}

gs_status_t gsi_consensus (gs_comm_t *comm, const char *caller, gs_status_t st,
                           struct gsi_agreement *a, gs_stream_t stream)
{
    uint64_t most[1 + 2 * GSI_AGREE_WORDS];
    int words = a ? a->words : 0;

    if (a)
        a->differs = -1;
    for (int i = 0; i < words; i++) {
        most[1 + 2 * i] = a->word[i];
        most[2 + 2 * i] = ~a->word[i];
    }
    if ((st = exchange_words (comm, caller, st, most, 2 * words, stream)))
        return st;
    for (int i = 0; i < words; i++) {
        a->most = most[1 + 2 * i];
        a->least = ~most[2 + 2 * i];
        if (a->least == a->most)
            continue;
        a->differs = i;
        return find_ranks (comm, a, stream);
    }
    return GS_OK;
}

static gs_status_t combine (gs_comm_t *comm, const char *caller, int flag, gs_op_t op,
                            int *result, gs_stream_t stream)
{
    uint8_t byte = flag != 0;
    gs_status_t st;

    if (!result)
        return gsi_fail (GS_ERR_ARG, "%s: result is NULL", caller);
    if (!(st = gs_allreduce (comm, &byte, 1, GS_U8, op, stream)))
        *result = byte;
    return st;
}

gs_status_t gs_flag_all (gs_comm_t *comm, int flag, int *result, gs_stream_t stream)
{
    return gsi_result (combine (comm, "gs_flag_all", flag, GS_MIN, result, stream));
}

gs_status_t gs_flag_any (gs_comm_t *comm, int flag, int *result, gs_stream_t stream)
{
    return gsi_result (combine (comm, "gs_flag_any", flag, GS_MAX, result, stream));
}
