/* SPDX-License-Identifier: BSD-3-Clause */
/* late_boot - a rank that never calls gs_comm_create: the others are told who and where, in time.
 */
#include "multi.h"

int main (void)
{
    int rank = multi_rank ();
    int lazy = multi_number (0, "GS_TEST_LAZY", NULL);
    char host[128] = "", wanted[200];
    double begin;
    gs_comm_t *comm;
    FILE *file;

    setenv ("GS_BOOT_TIMEOUT_MS", "2000", 1);
    if (rank == lazy) {
        gethostname (host, sizeof (host) - 1);
        if ((file = fopen (multi_signal_path ("host", lazy), "w"))) {
            fputs (host, file);
            fclose (file);
        }
        multi_signal ("named", lazy);
        multi_await_others ("told", lazy);
        return multi_end ("a rank that never calls");
    }
    multi_await ("named", lazy);
    if ((file = fopen (multi_signal_path ("host", lazy), "r"))) {
        CHECK (fgets (host, sizeof (host), file), "no host name");
        fclose (file);
    }
    multi_signal ("ready", rank); /* so that nobody else is late */
    multi_await_others ("ready", lazy);
    begin = multi_seconds ();
    CHECK_FAILS (gs_comm_create (NULL, &comm), GS_ERR_TIMEOUT, "GS_BOOT_TIMEOUT_MS");
    CHECK (!comm, "a communicator all the same");
    CHECK (multi_seconds () - begin < 90, "told after %g s", multi_seconds () - begin);
    snprintf (wanted, sizeof (wanted), "did not come: rank %d (host %s)", lazy, host);
    CHECK (strstr (gs_last_error (), wanted), "no '%s' in '%s'", wanted, gs_last_error ());
    multi_signal ("told", rank);
    return multi_end ("a rank that never calls");
}
