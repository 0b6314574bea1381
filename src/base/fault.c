/* SPDX-License-Identifier: BSD-3-Clause */
/* fault - named places that can be made to fail on purpose, in builds made for tests. */
#include "base/fault.h"

#include "config.h"

#ifdef GS_FAULT_INJECTION

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

static atomic_int passages;
static atomic_int self_rank = -1;

void gsi_fault_identity (int rank)
{
    atomic_store (&self_rank, rank);
}

bool gsi_fault (const char *point)
{
    const char *setting = gsi_env_text (GSI_ENV_FAULT);
    size_t name = strcspn (setting, ":@");
    const char *number = strchr (setting, ':'), *rank = strchr (setting, '@');

    if (!*setting || (strncmp (setting, "*", name) && strncmp (setting, point, name)) ||
        (setting[0] != '*' && strlen (point) != name))
        return false;
    if (rank && atoi (rank + 1) != atomic_load (&self_rank))
        return false;
    if (atomic_fetch_add (&passages, 1) + 1 != (number ? atoi (number + 1) : 1))
        return false;
    gsi_log (GS_LOG_WARN, "fault", "GS_FAULT fails %s here", point);
    return true;
}

#else

bool gsi_fault (const char *point)
{
    (void) point;
    return false;
}

void gsi_fault_identity (int rank)
{
    (void) rank;
}

#endif
