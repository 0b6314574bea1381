/* SPDX-License-Identifier: BSD-3-Clause */
/* consensus - ranks find out whether they can go on, and whether they were given the same. */
#ifndef GS_FEATURE_CONSENSUS_H
#define GS_FEATURE_CONSENSUS_H

#include <stdint.h>

#include "gradsync.h"

#define GSI_AGREE_WORDS 3

/* What ranks were given, and how that differs. */
struct gsi_agreement {
    int words;                      /* 1 to GSI_AGREE_WORDS */
    uint64_t word[GSI_AGREE_WORDS]; /* of this rank */
    int differs;                    /* out: the first word that does, or -1; then */
    uint64_t least, most;           /* what it is, */
    int least_rank, most_rank;      /* on the lowest rank that has it */
};

/*
 * Collective. [st] is how it went on this rank so far; if any rank has failed, all return the
 * status of one that has: those that failed so keep their text, the others have the text of that
 * one. Needs no memory, so that every rank comes. [a] may be NULL: nothing is compared.
 */
gs_status_t gsi_consensus (gs_comm_t *comm, const char *caller, gs_status_t st,
                           struct gsi_agreement *a, gs_stream_t stream);

/* The same, but instead of a comparison each of 1 to GSI_AGREE_WORDS words becomes the largest
 * that a rank has; they stay as they were on failure. */
gs_status_t gsi_consensus_most (gs_comm_t *comm, const char *caller, gs_status_t st,
                                uint64_t *word, int words, gs_stream_t stream);

#endif /* GS_FEATURE_CONSENSUS_H */
