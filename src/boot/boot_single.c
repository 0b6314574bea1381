/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_single - rank 0 of 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/status.h"
#include "boot/boot.h"

static gs_status_t open_single (int64_t deadline_ns, struct gsi_boot **out)
{
    struct gsi_boot *boot = calloc (1, sizeof (*boot));

    (void) deadline_ns;
    if (!boot)
        return gsi_fail (GS_ERR_NOMEM, "boot single: out of memory");
    boot->ops = &gsi_boot_single;
    boot->size = 1;
    gsi_process_host (boot->host, sizeof (boot->host));
    snprintf (boot->job, sizeof (boot->job), "pid%ld", (long) getpid ());
    *out = boot;
    return GS_OK;
}

static gs_status_t single_exchange (struct gsi_boot *boot, const void *card, size_t bytes,
                                    void *cards, int64_t deadline_ns)
{
    (void) boot;
    (void) deadline_ns;
    if (cards)
        memcpy (cards, card, bytes);
    return GS_OK;
}

static void close_single (struct gsi_boot *boot)
{
    free (boot);
}

const struct gsi_boot_ops gsi_boot_single = {
    .name = "single",
    .open = open_single,
    .exchange = single_exchange,
    .close = close_single,
};
