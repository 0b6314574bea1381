/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl_versions - the table of NCCL's versions, in builds without NCCL too. */
#ifndef GS_COLL_NCCL_VERSIONS_H
#define GS_COLL_NCCL_VERSIONS_H

#include <stddef.h>

#include "gradsync.h"

enum gsi_nccl_use {
    GSI_NCCL_SUPPORTED,
    GSI_NCCL_WORKAROUND,
    GSI_NCCL_REFUSED,
    GSI_NCCL_CONDITIONAL, /* refused where NCCL connects in calls */
    GSI_NCCL_UNTRIED,
};

struct gsi_nccl_versions {
    int from; /* 22809 is 2.28.9 */
    enum gsi_nccl_use use;
    const char *versions, *reason, *answer; /* the reason may be "" */
};

/* Row number [index], the oldest first; NULL at the end. */
const struct gsi_nccl_versions *gsi_nccl_versions_row (int index);

/* The row that has [version]. */
const struct gsi_nccl_versions *gsi_nccl_versions_of (int version);

const char *gsi_nccl_use_name (enum gsi_nccl_use use);

/* Writes [version] as text, such as 2.28.9. */
void gsi_nccl_version_print (int version, char *text, size_t size);

/* The version of the NCCL that would be used, also of one that is refused; loads it. */
gs_status_t gsi_nccl_version_find (int *version);

#endif /* GS_COLL_NCCL_VERSIONS_H */
