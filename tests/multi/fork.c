/* SPDX-License-Identifier: BSD-3-Clause */
/* fork - a child of fork is told that its parent's handles are not its own, ends as a process
 * does, and changes nothing of the parent's. */
#include <math.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "multi.h"

static gs_comm_t *comm;
static gs_reducer_t *reducer;
static gs_ckpt_t *plan; /* NULL without HDF5 */
static double weights[4];

/* The call is refused in its own name, with the reason. */
#define REFUSED(name, ...) \
    CHECK_FAILS (name (__VA_ARGS__), GS_ERR_STATE, #name ": process", "is a fork of process")

static void use_of_the_parent (void)
{
    gs_comm_t *other = comm;
    double x = 1;

    REFUSED (gs_allreduce_avg, comm, &x, 1, GS_F64, NULL);
    REFUSED (gs_barrier, comm, NULL);
    REFUSED (gs_send, comm, &x, 1, GS_F64, 0, NULL);
    REFUSED (gs_comm_check, comm);
    REFUSED (gs_comm_split, comm, 0, 0, &other);
    REFUSED (gs_reducer_ready, reducer, 0, NULL);
    REFUSED (gs_reducer_finish, reducer, NULL);
    REFUSED (gs_reducer_destroy, reducer);
    if (plan) {
        REFUSED (gs_ckpt_write, plan, 1, NULL);
        REFUSED (gs_ckpt_destroy, plan);
    }
    CHECK (gs_comm_rank (comm) == -1, "a child has rank %d", gs_comm_rank (comm));
    gs_comm_abort (comm);
    REFUSED (gs_comm_destroy, comm);
    other = comm;
    REFUSED (gs_comm_create, NULL, &other);
    CHECK (!other && x == 1, "a refused call changed something");
}

static void creates_anew (void)
{
    gs_comm_t *other = comm;

    REFUSED (gs_comm_create, NULL, &other);
}

/* Nothing was used before the fork: the child is a process like any other. */
static void first_use (void)
{
    double x = multi_rank () + 1;
    gs_comm_t *alone;

    setenv ("GS_BOOT", "single", 1);
    setenv ("GS_TRANSPORT", "self", 1);
    alone = multi_create (NULL);
    CHECK_OK (gs_allreduce_avg (alone, &x, 1, GS_F64, NULL));
    CHECK (x == multi_rank () + 1, "the average of one rank is %g", x);
    CHECK_OK (gs_comm_destroy (alone));
}

/* Does [work] in a child, and sees it end; [raw]: by the system call, of which libc knows
 * nothing. */
static void in_child (void (*work) (void), bool raw)
{
    int status = -1;
    pid_t child = raw ? (pid_t) syscall (SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork ();

    if (!child) {
        multi_failures = 0;
        work ();
        exit (multi_failures ? EXIT_FAILURE : EXIT_SUCCESS);
    }
    CHECK (waitpid (child, &status, 0) == child && WIFEXITED (status) && !WEXITSTATUS (status),
           "a child ends with status %d", status);
}

static void open_all (void)
{
    static const size_t shape[] = {4};
    gs_status_t st;

    comm = multi_create (NULL);
    CHECK_OK (gs_reducer_create (comm, NULL, &reducer));
    CHECK_OK (gs_reducer_add (reducer, "w", 1, shape, GS_F64, NULL, NULL));
    CHECK_OK (gs_reducer_commit (reducer));
    if ((st = gs_ckpt_create (comm, getenv ("TMPDIR"), NULL, &plan)) == GS_ERR_UNSUPPORTED)
        return;
    CHECK (!st, "gs_ckpt_create: %s", gs_last_error ());
    CHECK_OK (gs_ckpt_add_replicated (plan, "w", 1, shape, GS_F64, weights));
    CHECK_OK (gs_ckpt_commit (plan));
}

static void check_parent (int64_t step)
{
    int size = gs_comm_size (comm);
    double x = gs_comm_rank (comm) + 1;

    CHECK_OK (gs_allreduce_avg (comm, &x, 1, GS_F64, NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
    CHECK (fabs (x - (size + 1) / 2.0) < 1e-12, "the average is %g, not %g", x, (size + 1) / 2.0);
    CHECK_OK (gs_reducer_ready (reducer, 0, NULL));
    CHECK_OK (gs_reducer_finish (reducer, NULL));
    if (plan)
        CHECK_OK (gs_ckpt_write (plan, step, NULL));
}

int main (void)
{
    in_child (first_use, false);
    open_all ();
    check_parent (1);
    in_child (use_of_the_parent, false);
    check_parent (2);
    in_child (use_of_the_parent, true);
    check_parent (3);
    if (plan)
        CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_reducer_destroy (reducer));
    CHECK_OK (gs_comm_destroy (comm));
    in_child (creates_anew, false);
    return multi_end ("children of fork");
}
