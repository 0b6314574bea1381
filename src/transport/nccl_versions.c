/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_versions - looks the table of NCCL's versions up. */
#include "transport/nccl_versions.h"

#include <stdio.h>

#include "base/status.h"
#include "config.h"

#define NCCL_CODE(major, minor) ((major) *10000 + (minor) *100)

static const struct gsi_nccl_versions table[] = {
#define GSI_NCCL_VERSIONS(from, use, versions, reason, answer) \
    {from, GSI_NCCL_##use, versions, reason, answer},
#include "transport/nccl_versions.def"
};

#define ROWS ((int) (sizeof (table) / sizeof (*table)))

const struct gsi_nccl_versions *gsi_nccl_versions_row (int index)
{
    return index >= 0 && index < ROWS ? &table[index] : NULL;
}

const struct gsi_nccl_versions *gsi_nccl_versions_of (int version)
{
    int i = ROWS - 1;

    while (i > 0 && version < table[i].from)
        i--;
    return &table[i];
}

const char *gsi_nccl_use_name (enum gsi_nccl_use use)
{
    static const char *const names[] = {[GSI_NCCL_SUPPORTED] = "supported",
                                        [GSI_NCCL_WORKAROUND] = "workaround",
                                        [GSI_NCCL_REFUSED] = "refused",
                                        [GSI_NCCL_CONDITIONAL] = "conditional",
                                        [GSI_NCCL_UNTRIED] = "untried"};

    return names[use];
}

/* N.B. Up to 2.8 the code had one digit less: 2708 is 2.7.8. */
void gsi_nccl_version_print (int version, char *text, size_t size)
{
    int unit = version < 10000 ? 1000 : 10000;

    snprintf (text, size, "%d.%d.%d", version / unit, version % unit / 100, version % 100);
}

#ifndef HAVE_NCCL
gs_status_t gsi_nccl_version_find (int *version)
{
    *version = 0;
    return gsi_fail (GS_ERR_UNSUPPORTED, "not in this build");
}
#endif
