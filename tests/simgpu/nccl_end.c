/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_end - what is looked at when the process ends: communicators and groups that were left,
 * and how much was sent.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nccl_sim.h"

struct nsim_sent nsim_sent_collective, nsim_sent_direct;
_Atomic (int) nsim_partners;

static int rank = -1;
static pid_t owner;

static bool look_for_leaks (void)
{
    const char *text = getenv ("SIM_LEAKS");

    return !text || strcmp (text, "0") != 0;
}

static void look_at (ncclComm_t comm, void *arg)
{
    (void) arg;
    if (comm->phase < NSIM_DESTROYED && !comm->stop && look_for_leaks ())
        sim_misuse ("communicator %d (rank %d of %d) was neither destroyed nor aborted",
                    comm->number, comm->rank, comm->ranks);
    if (comm->number == 1)
        rank = comm->rank;
}

/* ---- Ranks of a host ---- */

struct nsim_neighbour {
    _Atomic (int) running; /* units on the GPU of a rank, */
    _Atomic (int) pid;     /* of this process */
};

static void neighbour_path (ncclComm_t comm, char *path, size_t bytes)
{
    snprintf (path, bytes, "/dev/shm/simnccl-%016" PRIx64 "-%016" PRIx64, comm->tag.secret,
              comm->tag.descent);
}

/* Memory of all ranks of the machine; the mutex is held. */
static struct nsim_neighbour *neighbours (ncclComm_t comm)
{
    size_t bytes = (size_t) comm->ranks * sizeof (*comm->neighbour);
    char path[100];
    int fd;

    if (comm->neighbour)
        return comm->neighbour;
    neighbour_path (comm, path, sizeof (path));
    fd = open (path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate (fd, (off_t) bytes) != 0)
        abort ();
    comm->neighbour = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close (fd);
    if (comm->neighbour == MAP_FAILED)
        abort ();
    comm->neighbour[comm->rank].pid = getpid ();
    return comm->neighbour;
}

/* NCCL leaves it to who aborts to look at the others, and most do not. */
static bool neighbours_matter (void)
{
    return getenv ("SIM_NEIGHBOURS") != NULL;
}

void nsim_runs (ncclComm_t comm, int more)
{
    if (neighbours_matter ())
        neighbours (comm)[comm->rank].running += more;
}

/* Kernels write to and read from memory of their peers' communicators. */
void nsim_check_neighbours (ncclComm_t comm, const char *who)
{
    struct nsim_neighbour *all;

    if (!neighbours_matter ())
        return;
    pthread_mutex_lock (&comm->mutex);
    all = neighbours (comm);
    pthread_mutex_unlock (&comm->mutex);
    for (int i = 0; i < comm->ranks; i++)
        if (i != comm->rank && comm->card[i].host == comm->card[comm->rank].host &&
            all[i].running > 0 && kill (all[i].pid, 0) == 0)
            sim_misuse ("%s: communicator %d frees memory that a kernel of rank %d still uses "
                        "(nccl issue 863)",
                        who, comm->number, i);
}

void nsim_part (ncclComm_t comm)
{
    char path[100];

    if (!comm->neighbour)
        return;
    neighbour_path (comm, path, sizeof (path));
    unlink (path);
}

/* ---- The end of the process ---- */

static _Atomic (int) freeing;
static atomic_bool ending;

/*
 * The CUDA runtime within libnccl.so is gone then, and a thread that frees by it crashes (seen
 * with 2.28.9 on an H100).
 */
void nsim_free_begin (void)
{
    freeing++;
    if (ending)
        sim_misuse ("a communicator is freed while the process ends");
}

void nsim_free_end (void)
{
    freeing--;
}

static void begin_end (void)
{
    ending = true;
    if (freeing > 0 && getpid () == owner)
        sim_misuse ("the process ends while a thread frees a communicator");
}

static void register_end (void)
{
    atexit (begin_end);
}

/* N.B. The runtime's own handler is there when the first communicator is: so is this one. */
void nsim_watch_exit (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, register_end);
}

void nsim_count_sent (struct nsim_sent *sent, ncclComm_t comm, int peer, size_t bytes)
{
    sent->bytes += bytes;
    if (comm->card[peer].host != comm->card[comm->rank].host)
        sent->far += bytes;
}

/* The rank is that in the process's first communicator. */
static void write_traffic (const char *path)
{
    char line[240];
    int fd = open (path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    int n = snprintf (line, sizeof (line),
                      "rank %d: sent %" PRIu64 " bytes in collectives, %" PRIu64
                      " in send/recv, of these %" PRIu64 " and %" PRIu64
                      " to other hosts; send/recv with %d ranks\n",
                      rank, nsim_sent_collective.bytes, nsim_sent_direct.bytes,
                      nsim_sent_collective.far, nsim_sent_direct.far, nsim_partners);

    if (fd < 0 || write (fd, line, (size_t) n) != n)
        fprintf (stderr, "simgpu: cannot write SIM_TRAFFIC=%s\n", path);
    if (fd >= 0)
        close (fd);
}

__attribute__ ((constructor)) static void remember (void)
{
    owner = getpid ();
}

/* After the program's own handlers, which may well destroy communicators. */
__attribute__ ((destructor)) static void look_back (void)
{
    const char *path = getenv ("SIM_TRAFFIC");

    if (getpid () != owner)
        return;
    if (nsim_open_groups > 0)
        sim_misuse ("ncclGroupStart without ncclGroupEnd");
    nsim_comm_each (look_at, NULL);
    if (path && *path)
        write_traffic (path);
}
