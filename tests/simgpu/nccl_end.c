/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_end - what is looked at when the process ends: communicators and groups that were left,
 * and how much was sent.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
