/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * huge - more than 2^31 elements in a piece, and displacements beyond them. The memory is sparse:
 * its pages are those of one small file, again and again, but for the last one.
 */
#include <sys/mman.h>

#include "multi.h"

#define PERIOD ((size_t) 4 << 20)
#define HUGE   (((size_t) 1 << 31) + 12345) /* elements of a byte: not a multiple of anything */
#define TAIL   ((size_t) 1000)              /* of the other ranks, behind that */
#define FEW    4
#define ROOM   ((HUGE / PERIOD + 2) * PERIOD)
#ifdef __SANITIZE_THREAD__
#define AFFORDABLE false /* it has five bytes for each of the program's, which are not sparse */
#else
#define AFFORDABLE true
#endif

static gs_comm_t *comm;
static int rank, size;

/* [ROOM] bytes in which every PERIOD of them is the same, up to HUGE and its page. */
static unsigned char *map_sparse (void)
{
    size_t page = (size_t) sysconf (_SC_PAGESIZE), last = HUGE / PERIOD * PERIOD;
    int fd = memfd_create ("huge", MFD_CLOEXEC);
    unsigned char *at = mmap (NULL, ROOM, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (fd < 0 || at == MAP_FAILED || ftruncate (fd, (off_t) PERIOD) || PERIOD % page) {
        fprintf (stderr, "rank %d: no memory to map\n", rank);
        exit (1);
    }
    for (size_t i = 0; i < last; i += PERIOD)
        if (mmap (at + i, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            MAP_FAILED) {
            perror ("mmap");
            exit (1);
        }
    close (fd);
    return at;
}

static unsigned char pattern (int of, size_t i)
{
    return (unsigned char) ((i % PERIOD) * 2654435761u >> 24 ^ (size_t) of * 37);
}

/* The first wrong element of [count] from [first] on of rank [of]; [count] if none is. */
static size_t first_wrong (const unsigned char *at, int of, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (at[i] != pattern (of, first + i))
            return i;
    return count;
}

/* What was received: the huge piece, of which the pages shared are looked at once; and the rest.
 */
static void check_whole (const unsigned char *all, const size_t *displs, const char *what)
{
    size_t last = HUGE / PERIOD * PERIOD;

    CHECK (first_wrong (all, 0, 0, PERIOD) == PERIOD, "%s: element %zu is wrong", what,
           first_wrong (all, 0, 0, PERIOD));
    CHECK (first_wrong (all + last, 0, last, HUGE - last) == HUGE - last,
           "%s: element %zu is wrong", what,
           last + first_wrong (all + last, 0, last, HUGE - last));
    for (int r = 1; r < size; r++)
        CHECK (first_wrong (all + displs[r], r, 0, TAIL) == TAIL,
               "%s: element %zu of rank %d is wrong", what,
               first_wrong (all + displs[r], r, 0, TAIL), r);
}

int main (void)
{
    size_t counts[64], displs[64], own;
    unsigned char *send, *all;
    gs_status_t st;

    if (!AFFORDABLE) {
        puts ("skip: ThreadSanitizer would take 11 GB for each rank");
        return 77;
    }
    all = map_sparse ();
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    for (int r = 0; r < size; r++) {
        counts[r] = r ? TAIL : HUGE;
        displs[r] = r ? HUGE + (size_t) (r - 1) * (TAIL + 3) + 3 : 0;
    }
    own = counts[rank];
    send = rank ? malloc (TAIL) : map_sparse ();
    for (size_t i = 0; i < own && (rank || i < PERIOD); i++)
        send[i] = pattern (rank, i);
    for (size_t i = HUGE / PERIOD * PERIOD; i < HUGE && !rank; i++)
        send[i] = pattern (0, i);

    if (size <= FEW) { /* each rank receives all of it */
        st = gs_allgatherv (comm, send, own, all, ROOM, counts, displs, GS_U8, NULL);
        CHECK_OK (multi_wait (comm, st));
        check_whole (all, displs, "allgatherv");
        memset (all, 0, PERIOD);
        memset (all + HUGE / PERIOD * PERIOD, 0, ROOM - HUGE / PERIOD * PERIOD);
    }
    st = gs_gatherv (comm, send, own, all, ROOM, NULL, NULL, GS_U8, size - 1, NULL);
    CHECK_OK (multi_wait (comm, st));
    for (int r = 1; r < size; r++)
        displs[r] = HUGE + (size_t) (r - 1) * TAIL;
    if (rank == size - 1)
        check_whole (all, displs, "gatherv");

    counts[0] = SIZE_MAX - 4;
    CHECK_FAILS (gs_allgatherv (comm, send, own, all, ROOM, counts, NULL, GS_U8, NULL),
                 GS_ERR_ARG, "ends beyond what memory can hold");
    CHECK_OK (gs_comm_destroy (comm));
    if (rank)
        free (send);
    return multi_end ("pieces of more than 2^31 elements");
}
