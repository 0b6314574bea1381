/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_pmix - the exchange of a bootstrap, by plain PMIx calls. */

#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tools/bench/raw.h"

bool bench_raw_pmix_answers (void)
{
    pmix_proc_t self;
    pmix_status_t rc = PMIx_Init (&self, NULL, 0);

    /* N.B. without a server PMIx_Init says UNREACH and counts all the same (4.2). */
    if (rc == PMIX_SUCCESS || rc == PMIX_ERR_UNREACH)
        PMIx_Finalize (NULL, 0);
    return rc == PMIX_SUCCESS;
}

static bool good (const struct bench *bench, const char *call, pmix_status_t rc)
{
    return rc == PMIX_SUCCESS || bench_fail (bench, "%s: %s", call, PMIx_Error_string (rc));
}

static bool put_card (const struct bench *bench, const char *key, size_t bytes)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    bool ok;

    if (!(value.data.bo.bytes = calloc (1, bytes)))
        return bench_fail (bench, "out of memory");
    value.data.bo.size = bytes;
    ok = good (bench, "PMIx_Put", PMIx_Put (PMIX_GLOBAL, key, &value)) &&
         good (bench, "PMIx_Commit", PMIx_Commit ());
    free (value.data.bo.bytes);
    return ok;
}

/* A fence of all ranks that brings every card to every node. */
static bool fence (const struct bench *bench, const pmix_proc_t *self)
{
    pmix_proc_t all = *self;
    pmix_info_t collect;
    bool yes = true;
    pmix_status_t rc;

    all.rank = PMIX_RANK_WILDCARD;
    PMIX_INFO_LOAD (&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    rc = PMIx_Fence (&all, 1, &collect, 1);
    PMIX_INFO_DESTRUCT (&collect);
    return good (bench, "PMIx_Fence", rc);
}

static bool get_cards (const struct bench *bench, const pmix_proc_t *self, const char *key)
{
    pmix_proc_t other = *self;
    pmix_value_t *value = NULL;
    uint32_t size;

    other.rank = PMIX_RANK_WILDCARD;
    if (!good (bench, "PMIx_Get", PMIx_Get (&other, PMIX_JOB_SIZE, NULL, 0, &value)))
        return false;
    size = value->data.uint32;
    PMIX_VALUE_RELEASE (value);
    for (uint32_t r = 0; r < size; r++) {
        other.rank = r;
        if (!good (bench, "PMIx_Get", PMIx_Get (&other, key, NULL, 0, &value)))
            return false;
        PMIX_VALUE_RELEASE (value);
    }
    return true;
}

bool bench_raw_pmix (const struct bench *bench, int round, size_t bytes, double *us)
{
    int64_t begin = gsi_now_ns ();
    char key[32];
    pmix_proc_t self;
    bool ok;

    if (!good (bench, "PMIx_Init", PMIx_Init (&self, NULL, 0)))
        return false;
    snprintf (key, sizeof (key), "gs-bench.%d", round);
    ok = put_card (bench, key, bytes) && fence (bench, &self) && get_cards (bench, &self, key);
    *us = (double) (gsi_now_ns () - begin) / 1e3;
    if (!ok)
        bench_raw_pmix_close ();
    return ok;
}

void bench_raw_pmix_close (void)
{
    PMIx_Finalize (NULL, 0);
}
