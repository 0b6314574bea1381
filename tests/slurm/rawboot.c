/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rawboot - what finding all ranks costs a process by plain PMIx calls, the first time: the other
 * side of bootstrap-table. gs-bench cannot tell, as it has a communicator by then.
 *
 * MPI, if it is preloaded, is started afterwards, as gs_comm_create does: where ranks share
 * cores, those that are ahead take them from those that still look for the others.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/card.h"
#include "tools/bench/raw.h"

bool bench_fail (const struct bench *bench, const char *format, ...)
{
    va_list ap;

    (void) bench;
    va_start (ap, format);
    vfprintf (stderr, format, ap);
    va_end (ap);
    fputc ('\n', stderr);
    return false;
}

static bool run_mpi (void)
{
    int (*init) (int *argc, char ***argv);
    int (*finalize) (void);

    *(void **) &init = dlsym (RTLD_DEFAULT, "MPI_Init");
    *(void **) &finalize = dlsym (RTLD_DEFAULT, "MPI_Finalize");
    return !init || !finalize || (!init (NULL, NULL) && !finalize ());
}

int main (void)
{
    double us;
    struct bench bench = {0};
    bool ok;

    if (!bench_raw_pmix (&bench, 0, sizeof (struct gsi_card), &us))
        return EXIT_FAILURE;
    printf ("open and exchange: %.0f us\n", us);
    fflush (stdout);
    ok = run_mpi ();
    bench_raw_pmix_close (); /* after MPI, which could not open it again */
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
