/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed - sums, broadcasts and allgathers in any order and of any size, on ranks that are early
 * or late: none of them touches what a slower rank still reads.
 */
#include <time.h>

#include "data.h"

#define MOST  ((size_t) 3 << 18) /* bytes of a rank: several blocks of every way */
#define CALLS 400

static gs_comm_t *comm;
static int rank, size;
static uint32_t *x, *all;

static uint32_t number (uint64_t seed, int r, size_t i)
{
    return (uint32_t) (data_bits (seed, r, i) >> 32);
}

static void fill (uint64_t seed, size_t count)
{
    for (size_t i = 0; i < count; i++)
        x[i] = number (seed, rank, i);
}

static void check_sum (uint64_t seed, size_t count)
{
    size_t wrong = 0;

    CHECK_OK (gs_allreduce (comm, x, count, GS_U32, GS_SUM, NULL));
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (int r = 0; r < size; r++)
            sum += number (seed, r, i);
        wrong += x[i] != sum;
    }
    CHECK (!wrong, "call %d: %zu of %zu sums are wrong", (int) seed, wrong, count);
}

static void check_broadcast (uint64_t seed, size_t count, int root)
{
    size_t wrong = 0;

    CHECK_OK (gs_broadcast (comm, x, count, GS_U32, root, NULL));
    for (size_t i = 0; i < count; i++)
        wrong += x[i] != number (seed, root, i);
    CHECK (!wrong, "call %d: %zu of %zu from %d are wrong", (int) seed, wrong, count, root);
}

static void check_allgather (uint64_t seed, size_t count)
{
    size_t wrong = 0;

    CHECK_OK (gs_allgather (comm, x, all, count, GS_U32, NULL));
    for (int r = 0; r < size; r++)
        for (size_t i = 0; i < count; i++)
            wrong += all[(size_t) r * count + i] != number (seed, r, i);
    CHECK (!wrong, "call %d: %zu of %zu gathered are wrong", (int) seed, wrong, count);
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    x = malloc (MOST);
    all = malloc (MOST * (size_t) size);
    for (uint64_t seed = 1; seed <= CALLS; seed++) {
        uint64_t dice = data_bits (seed, -1, 0), own = data_bits (seed, rank, MOST);
        size_t count = (size_t) (dice % MOST) / sizeof (*x);
        count = (dice >> 32) % 4 ? count >> (dice >> 34) % 16 : count; /* more of the small */
        fill (seed, count);
        if (own % 8 == 0)
            nanosleep (&(struct timespec){.tv_nsec = (long) (own >> 8) % 2000000}, NULL);
        switch ((dice >> 40) % 3) {
        case 0: check_sum (seed, count); break;
        case 1: check_broadcast (seed, count, (int) ((dice >> 44) % (uint64_t) size)); break;
        default: check_allgather (seed, count); break;
        }
    }
    free (x);
    free (all);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("calls of three kinds in any order");
}
