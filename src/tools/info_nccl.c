/* SPDX-License-Identifier: BSD-3-Clause */
/* info_nccl - which NCCL is found, and what becomes of it and of other versions. */
#include "tools/info.h"

#include <stdio.h>

#include "base/status.h"
#include "transport/nccl_versions.h"

static void print_row (const struct gsi_nccl_versions *row, const char *versions)
{
    printf ("%-18s %-12s %s%s%s\n", versions, gsi_nccl_use_name (row->use), row->reason,
            *row->reason ? ": " : "", row->answer);
}

void info_nccl_found (void)
{
    int version;
    char text[32];

    if (gsi_nccl_version_find (&version)) {
        printf ("  not found          %s\n", gsi_last_text ());
        return;
    }
    gsi_nccl_version_print (version, text, sizeof (text));
    fputs ("  ", stdout);
    print_row (gsi_nccl_versions_of (version), text);
}

void info_nccl_table (void)
{
    const struct gsi_nccl_versions *row, *found = NULL;
    int version;

    if (!gsi_nccl_version_find (&version))
        found = gsi_nccl_versions_of (version);
    for (int i = 0; (row = gsi_nccl_versions_row (i)); i++) {
        fputs (row == found ? "* " : "  ", stdout);
        print_row (row, row->versions);
    }
}
