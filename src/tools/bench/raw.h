/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * raw - the plain calls that gradsync's are compared with.
 *
 * Those of MPI and of NCCL are in modules, gs-bench-mpi.so (raw_mpi.c) and gs-bench-nccl.so
 * (raw_nccl.c), so that gs-bench starts where there is neither. Those of PMIx are linked in
 * (raw_pmix.c, or raw_nopmix.c in a build without it).
 */
#ifndef GS_TOOLS_BENCH_RAW_H
#define GS_TOOLS_BENCH_RAW_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/bench/bench.h"

/* What op_move.c measures, with rank 0 as the root. */
enum bench_move {
    BENCH_ALLGATHER,
    BENCH_ALLGATHERV,
    BENCH_ALLTOALL,
    BENCH_BROADCAST,
    BENCH_GATHER,
    BENCH_REDUCE,
    BENCH_REDUCE_SCATTER,
    BENCH_SCATTER,
    BENCH_SENDRECV
};

/* Rows of this rank, and of all of its node where its lowest rank evaluates them. */
struct bench_raw_pool {
    void *in, *out;
    int node;                /* its number */
    int rows;                /* any number, which the others do not know */
    int in_bytes, out_bytes; /* of a row, and of its result */
    void *all_in, *all_out;  /* (lowest rank) room for all rows of the node */
};

/* What the module offers, found by BENCH_RAW_MPI_SYMBOL. MPI's own error handler ends the job. */
struct bench_raw_mpi {
    /* Ranks of MPI_COMM_WORLD; 0 when MPI is not up. */
    int (*world_size) (void);

    /* Collective: makes MPI up where nobody has, until the process ends. */
    void (*start) (void);

    /* Whether MPI has this type; f16 and bf16 it has not. */
    bool (*has_type) (gs_dtype_t dtype);

    /* [times] times MPI_Allreduce in place and a loop that divides by the number of ranks. */
    void (*allreduce_avg) (void *buf, int count, gs_dtype_t dtype, int times);

    /* Whether MPI can do this with [dtype]: it moves any, and combines those of has_type. */
    bool (*can_move) (enum bench_move what, gs_dtype_t dtype);

    /* [times] times, with pieces of [count] elements, [bytes]; a broadcast is of [send], which it
     * writes to. */
    void (*move) (enum bench_move what, void *send, void *recv, int count, int bytes,
                  gs_dtype_t dtype, int times);

    /* [times] times, rows 1 and 2 of [field], of [bytes] each, to the rank before and the next
     * one, and from them into rows 0 and 3. */
    void (*neighbours) (void *field, int bytes, int times);

    /* [times] times, among the ranks of a node: MPI_Gather of how many rows there are,
     * MPI_Gatherv of them to the lowest rank, MPI_Scatterv of the results. */
    void (*pool) (const struct bench_raw_pool *pool, int times);
};
#define BENCH_RAW_MPI_SYMBOL    "bench_raw_mpi"
#define BENCH_RAW_MPI_MAX_COUNT (1 << 27) /* a count and 16 bytes times it fit in an int */

/*
 * Collective. The module, if every rank of bench->comm has it and MPI_COMM_WORLD are the same
 * ranks; else NULL, after rank 0 said on stderr why there is nothing to compare with.
 */
const struct bench_raw_mpi *bench_raw_mpi_open (const struct bench *bench);

#define BENCH_RAW_NCCL_ID_BYTES 128

/*
 * What the module with NCCL offers, found by BENCH_RAW_NCCL_SYMBOL. Functions that return text
 * return NULL after success. All but buckets goes to the default stream.
 */
struct bench_raw_nccl {
    /* An id for open, made by one rank and given to all. */
    const char *(*make_id) (char id[BENCH_RAW_NCCL_ID_BYTES]);

    /* Collective. A communicator of its own on GPU [device], and an array of [bytes] that NCCL
     * has made and registered, where it can: as its best users have them. */
    const char *(*open) (const char id[BENCH_RAW_NCCL_ID_BYTES], int rank, int size, int device,
                         size_t bytes);
    void (*close) (void);

    /* [times] times ncclAllReduce with ncclAvg in place, of the first [count] elements of that
     * array, queued one after the other. */
    const char *(*allreduce_avg) (size_t count, gs_dtype_t dtype, int times);

    /* The same, each on a stream beside, behind what the default stream has until then. */
    const char *(*bucket) (size_t count, gs_dtype_t dtype, int times);

    /* Waits for what is queued. */
    const char *(*wait) (void);

    /* What is queued from hold on does not begin before release. */
    const char *(*hold) (void);
    void (*release) (void);
};
#define BENCH_RAW_NCCL_SYMBOL "bench_raw_nccl"

/*
 * Collective. The module, opened on the ranks of bench->comm, if every rank has it; else NULL,
 * after rank 0 said on stderr why there is nothing to compare with. To be closed.
 */
const struct bench_raw_nccl *bench_raw_nccl_open (const struct bench *bench);

/* Whether a PMIx server answers this process. */
bool bench_raw_pmix_answers (void);

/*
 * Collective over the job. What a create does to find all ranks, by hand: PMIx_Init, a card of
 * [bytes] put, a fence that collects, all cards got. [round] is a new number each time, the same
 * on all ranks. Blocks as long as PMIx does; [us] is how long. Success leaves PMIx open, until
 * the close.
 */
bool bench_raw_pmix (const struct bench *bench, int round, size_t bytes, double *us);
void bench_raw_pmix_close (void);

#endif /* GS_TOOLS_BENCH_RAW_H */
