/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_stats.h - part of gradsync.h, which includes it: statistics of samples that are spread
 * over the ranks, logical reductions, and a comparison of arrays across ranks.
 */
#ifndef GRADSYNC_STATS_H
#define GRADSYNC_STATS_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 5. Collectives, continued ---------------------------------------------------------- */
/*
 * What section 5 says holds, but that all functions here return when they are done, also on GPUs,
 * where they first wait for what the stream has to do; a stream that is captured is refused. A
 * failure that a rank meets on the way, no memory for instance, is returned on all ranks and
 * names it.
 */

/*
 * What is known of the values of one feature. All but bad is 0 where count is 0; so memory of
 * zeros is the beginning to merge into.
 */
typedef struct gs_moments {
    uint64_t count;  /* values taken */
    uint64_t bad;    /* values left out, though the mask has them: NaN or infinite */
    double mean;     /* sum of x over count */
    double variance; /* m2 over count, of the population; of a sample it is m2 / (count - 1) */
    double m2;       /* sum of (x - mean)^2 */
    double min, max; /* of the values taken */
} gs_moments_t;

/*
 * Mean, variance, minimum and maximum of each feature over the samples of all ranks, for the
 * normalisation of inputs for instance.
 *
 *   comm        in   every rank calls
 *   x           in   samples * features elements: those of sample s begin at s * features; in
 *                    memory of the device or of the host, on each rank as it likes
 *   samples     in   of this rank, 0 or more
 *   features    in   the same on all ranks
 *   dtype       in   any but complex; on each rank as it likes
 *   mask        in   NULL, or bytes, in any memory too: values where it is 0 do not count
 *   mask_width  in   of mask, 1: it has a byte for each sample; features: one for each value
 *   moments     out  [features] in host memory, of the values of all ranks
 *   stream      in   see section 5
 *
 * NaN         Values that are NaN or infinite are left out and counted in bad; a rank that has
 *             them logs a warning with the first one. Masked ones are not looked at.
 * Collective  yes.
 * Precision   computed in double on the host, which arrays of a GPU are copied to in pieces: in
 *             two passes over up to 1024 samples, merged by the formula of Chan, Golub, LeVeque
 *             (The American Statistician 37 (1983) 242), then over ranks, in rank order. The
 *             mean is off by a few units in the last place of the largest |x|, the variance by
 *             about 1e-14 + 1e-15 * |mean| / deviation of itself. Where values exceed 1e150 m2
 *             may be infinite, and where their sum exceeds DBL_MAX the mean is not finite. Every
 *             rank receives the same bits.
 * Waits       for stream, and for all ranks.
 * Returns     see above; GS_ERR_MISMATCH on all ranks if features differ; GS_ERR_UNSUPPORTED for
 *             complex numbers.
 * Since       0.2, experimental
 */
gs_status_t gs_moments_compute (gs_comm_t *comm, const void *x, size_t samples, size_t features,
                                gs_dtype_t dtype, const unsigned char *mask, size_t mask_width,
                                gs_moments_t *moments, gs_stream_t stream);

/*
 * Adds what is known of some values to what is known of others, for statistics over time. Local.
 *
 *   into      in,out  [features]; zeros to begin with
 *   from      in      [features] of values that are not in [into] yet
 *   features  in      how many
 *
 * Returns     GS_OK; GS_ERR_ARG if an array is NULL though features is not 0.
 * Since       0.1, experimental
 */
gs_status_t gs_moments_merge (gs_moments_t *into, const gs_moments_t *from, size_t features);

/*
 * Whether [flag] is true on all ranks, or on any.
 *
 *   comm    in   every rank calls
 *   flag    in   0 is false, any other number true
 *   result  out  1 or 0, the same on all ranks; not changed on failure
 *   stream  in   see section 5
 *
 * Collective  yes.
 * Returns     see above.
 * Since       0.2
 */
gs_status_t gs_flag_all (gs_comm_t *comm, int flag, int *result, gs_stream_t stream);
gs_status_t gs_flag_any (gs_comm_t *comm, int flag, int *result, gs_stream_t stream);

/* An array to be compared. */
typedef struct gs_array {
    const char *name; /* shown in messages, not NULL */
    const void *data; /* in memory of the device or of the host, on each rank as it likes */
    size_t count;     /* elements */
    gs_dtype_t dtype;
} gs_array_t;

/*
 * Compares arrays across ranks: parameters that must be replicas, for instance. It costs little
 * where all are equal: digests of 64 bits travel, no arrays.
 *
 *   comm       in  every rank calls
 *   arrays     in  [number]: the same names, counts and types in the same order on all ranks
 *   number     in  how many
 *   tolerance  in  0: all bits are equal; else elements a and b of floating and complex types,
 *                  or their parts, are equal if |a - b| <= tolerance * max (|a|, |b|), or if both
 *                  are NaN. From 0 to 1, the same on all ranks
 *   stream     in  see section 5
 *
 * What most ranks have, or of equally many the lowest, is what the others are held to.
 *
 * Collective  yes.
 * Precision   arrays that differ pass for equal with probability 2^-64; it finds accidents.
 * Waits       for stream, and for all ranks.
 * Returns     see above; GS_ERR_MISMATCH on all ranks, with the same text, if a name, a type, a
 *             count or a value differs: it tells the first array that does, on which ranks, the
 *             first element that differs on the lowest of them, and both values. The communicator
 *             goes on.
 * Since       0.2
 */
gs_status_t gs_arrays_compare (gs_comm_t *comm, const gs_array_t *arrays, size_t number,
                               double tolerance, gs_stream_t stream);

/* What this rank has sent by calls on a communicator, but for words by which ranks agree. */
typedef struct gs_traffic {
    size_t size;       /* sizeof (gs_traffic_t) */
    uint64_t calls;    /* that went well */
    uint64_t bytes;    /* of arrays that this rank handed to them */
    uint64_t within;   /* bytes that it sent to other ranks of its node, as far as is known, */
    uint64_t between;  /* and to ranks of other nodes */
    int within_known;  /* 0: it sent more than that within its node, */
    int between_known; /* or to other nodes, that nobody counts */
} gs_traffic_t;

/*
 * Tells how much this rank has sent, by operation. Local.
 *
 *   comm     in      a communicator
 *   op       in      "allreduce_avg", "alltoallv", ...: a collective's name without gs_; "bucket"
 *                    for those of reducers, "split" for making groups; NULL: all together
 *   traffic  in,out  size is sizeof (gs_traffic_t); the rest is filled in
 *
 * Functions made of other collectives (gs_gather_field, gs_moments_compute, reducers) count as
 * these; "split" has calls alone. Messages between hosts are known, and what ranks of a node read
 * from each other's memory in exchanges (gs_gather, gs_alltoall and their like); not who reads
 * what in memory that they share. Of GPUs exchanges are known, not what NCCL's collectives send.
 * A call that is captured into a graph counts once.
 *
 * Threads     any, also while another one is in a call.
 * Returns     GS_OK; GS_ERR_ARG if comm or traffic is NULL, traffic->size is another one, or no
 *             operation has that name.
 * Since       0.1
 */
gs_status_t gs_comm_get_traffic (const gs_comm_t *comm, const char *op, gs_traffic_t *traffic);

/*
 * Begins to count anew. Local.
 *
 *   comm  in  a communicator, in no call
 *
 * Returns     GS_OK; GS_ERR_ARG if comm is NULL.
 * Since       0.1
 */
gs_status_t gs_comm_reset_traffic (gs_comm_t *comm);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_STATS_H */
