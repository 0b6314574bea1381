/* SPDX-License-Identifier: BSD-3-Clause */
/* badenv - what only one rank has wrong is told to all of them at once, by variable and rank. */
#include "multi.h"

static const struct {
    const char *name, *value;
    gs_status_t status;
    const char *part; /* of the text */
} cases[] = {
    {"GS_TIMEOUT_MS", "soon", GS_ERR_ARG, "GS_TIMEOUT_MS='soon'"},
    {"GS_TIMEOUT_MS", "-1", GS_ERR_ARG, "GS_TIMEOUT_MS='-1'"},
    {"GS_BOOT_TIMEOUT_MS", "1e99", GS_ERR_ARG, "GS_BOOT_TIMEOUT_MS='1e99'"},
    {"GS_CHECK", "everything", GS_ERR_ARG, "GS_CHECK='everything'"},
    {"GS_DEBUG", "loud", GS_ERR_ARG, "GS_DEBUG='loud'"},
    {"GS_RECORD_KEEP", "99999999999999999999", GS_ERR_ARG, "GS_RECORD_KEEP='9999"},
    {"GS_TRANSPORT", "pigeon", GS_ERR_ARG, "GS_TRANSPORT='pigeon'"},
    {"GS_DEVICE", "gpu", GS_ERR_ARG, "GS_DEVICE='gpu'"},
    {"GS_TRANSPORT", "self", GS_ERR_ARG, "self serves one rank"},
    {"GS_TRANSPORT", "mpi", GS_ERR_MISMATCH, "transport"},
    {"GS_CHECK", "off", GS_ERR_MISMATCH, "GS_CHECK"},
    {"GS_CHECK", "collective", GS_ERR_MISMATCH, "GS_CHECK"},
};

/* Open MPI 5 cannot be started once PMIx is open, as it is from the first communicator on. */
static void start_mpi (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;

    opts.device = GS_DEVICE_HOST;
    opts.transport = GS_TRANSPORT_MPI;
    CHECK_OK (gs_comm_destroy (multi_create (&opts)));
}

int main (void)
{
    int rank = multi_rank (), size = multi_size ();
    gs_comm_t *comm;

    setenv ("GS_BOOT_TIMEOUT_MS", "60000", 1);
    start_mpi ();
    for (size_t c = 0; c < sizeof (cases) / sizeof (cases[0]); c++) {
        int guilty = 1 + (int) c % (size - 1);
        const char *before = getenv (cases[c].name);
        char *kept = before ? strdup (before) : NULL, name[32];
        double begin = multi_seconds ();
        snprintf (name, sizeof (name), "rank %d", guilty);
        if (rank == guilty)
            setenv (cases[c].name, cases[c].value, 1);
        comm = (gs_comm_t *) &comm;
        CHECK_FAILS (gs_comm_create (NULL, &comm), cases[c].status, name, cases[c].part);
        CHECK (!comm, "a communicator in spite of %s", cases[c].name);
        CHECK (multi_seconds () - begin < 20, "%s: told after %g s", cases[c].name,
               multi_seconds () - begin);
        if (kept)
            setenv (cases[c].name, kept, 1);
        else
            unsetenv (cases[c].name);
        free (kept);
    }
    comm = multi_create (NULL); /* and then all is well */
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("twelve settings of one rank that do not do");
}
