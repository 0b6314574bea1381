/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared - sums of arrays that the ranks of a node see where they are: on all ranks, on some, at
 * any address within the array, of any size, with weights; and what a failure leaves of them.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "data.h"

#define MOST  ((size_t) 2 << 20) /* bytes of an array */
#define TIMES 25

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* What [count] elements of this rank have, averaged in memory of malloc. */
static void average_private (gs_dtype_t dtype, size_t count, double weight, void *out)
{
    data_fill (dtype, out, seed, rank, count);
    if (weight < 0)
        CHECK_OK (gs_allreduce_avg (comm, out, count, dtype, NULL));
    else
        CHECK_OK (gs_allreduce_wavg (comm, out, count, dtype, weight, NULL));
}

/* The same in [array], which must give the same bits. */
static void compare (gs_dtype_t dtype, char *array, size_t count, double weight, const char *what)
{
    size_t bytes = count * gs_dtype_size (dtype);
    void *right = data_allocate (bytes);

    seed++;
    average_private (dtype, count, weight, right);
    average_private (dtype, count, weight, array);
    CHECK (!memcmp (array, right, bytes), "%s: %zu %s have other bits", what, count,
           data_names[dtype]);
    data_free (right, bytes);
}

static char *allocate (size_t bytes)
{
    void *memory;

    CHECK_OK (gs_device_alloc (comm, bytes, &memory));
    if (!memory)
        exit (1);
    return memory;
}

/* All sizes around what goes in one way, arrays that begin anywhere in memory that is shared. */
static void check_sizes (void)
{
    char *memory = allocate (MOST + 256);

    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++) {
        size_t width = gs_dtype_size (dtype);
        if (gsi_dtype_is_integer (dtype))
            continue;
        for (const size_t *e = data_edges (size, width); *e; e++) {
            compare (dtype, memory, *e, -1, "from the beginning");
            compare (dtype, memory + 17 * width, *e, -1, "from within");
            compare (dtype, memory, *e, rank == size / 2 ? 0 : 1 + rank, "with weights");
        }
    }
    CHECK_OK (gs_device_free (comm, memory));
}

/* Each rank at random has its array in shared memory, in new memory or in none of these. */
static void check_mixtures (void)
{
    char *kept = allocate (MOST), *private = data_allocate (MOST);

    for (int t = 0; t < TIMES; t++) {
        uint64_t together = data_bits (4711, -1, (size_t) t),
                 alone = data_bits (4711, rank, (size_t) t);
        size_t count = 1 + together % (MOST / 4);
        char *fresh = allocate (count * 4);
        char *choice[] = {kept + (MOST - count * 4) / 64 * 64, private, fresh};
        compare (GS_F32, choice[t % 4 ? alone % 3 : 2], count, -1, "a mixture");
        CHECK_OK (gs_device_free (comm, fresh));
    }
    data_free (private, MOST);
    CHECK_OK (gs_device_free (comm, kept));
}

/* Arrays that come and go while another thread's calls go on, which are in none of them. */
static void *come_and_go (void *stop)
{
    void *memory[8];

    while (!atomic_load ((atomic_bool *) stop)) {
        for (size_t i = 0; i < 8; i++)
            CHECK_OK (gs_device_alloc (comm, ((size_t) 20 << 10) * (i + 1), &memory[i]));
        for (size_t i = 0; i < 8; i++) {
            memset (memory[i], 1, 20 << 10);
            CHECK_OK (gs_device_free (comm, memory[i]));
        }
        usleep (1000 * (unsigned) size); /* the others want the cores */
    }
    return NULL;
}

static void check_threads (void)
{
    char *memory = allocate (MOST);
    atomic_bool stop = false;
    pthread_t thread;

    CHECK (!pthread_create (&thread, NULL, come_and_go, &stop), "no thread");
    for (int t = 0; t < TIMES; t++)
        compare (GS_F32, memory, MOST / 4, -1, "beside another thread");
    atomic_store (&stop, true);
    pthread_join (thread, NULL);
    CHECK_OK (gs_device_free (comm, memory));
}

/* The last rank does not come: the others keep their arrays, and may use and free them. */
static void check_failure (void)
{
    size_t count = MOST / 4, wrong = 0;
    char *memory = allocate (MOST), *right = data_allocate (MOST);
    void *late;

    data_fill (GS_F32, memory, 1, rank, count);
    data_fill (GS_F32, right, 1, rank, count);
    if (rank < size - 1) {
        CHECK_FAILS (gs_allreduce_avg (comm, memory, count, GS_F32, NULL), GS_ERR_TIMEOUT,
                     "allreduce_avg");
        multi_signal ("failed", rank);
    } else {
        for (int r = 0; r < size - 1; r++)
            multi_await ("failed", r);
        CHECK (gs_allreduce_avg (comm, memory, count, GS_F32, NULL), "a late call goes well");
    }
    for (size_t i = 0; i < MOST; i++)
        wrong += memory[i] != right[i];
    CHECK (!wrong, "%zu bytes of an array are others after a call that did nothing", wrong);
    memset (memory, 5, MOST);
    CHECK_OK (gs_device_alloc (comm, MOST, &late));
    memset (late, 6, MOST);
    CHECK (memory[MOST - 1] == 5, "an array is not its own");
    CHECK_OK (gs_device_free (comm, late));
    CHECK_OK (gs_device_free (comm, memory));
    data_free (right, MOST);
}

int main (void)
{
    setenv ("GS_DEBUG", "error", 1);
    setenv ("GS_TRANSPORT", "mpi", 1); /* hosts, also where there are GPUs */
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    data_learn (comm);
    check_sizes ();
    check_mixtures ();
    check_threads ();
    CHECK_OK (gs_comm_destroy (comm));

    setenv ("GS_TIMEOUT_MS", "1000", 1);
    comm = multi_create (NULL);
    check_failure ();
    gs_comm_destroy (comm);
    return multi_end ("arrays that all ranks of a node see");
}
