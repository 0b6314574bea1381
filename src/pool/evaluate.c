/* SPDX-License-Identifier: BSD-3-Clause */
/* evaluate - an evaluator has the program's functions take its part of the rows, by batches. */
#include <stdio.h>

#include "pool/pool.h"

struct gsi_rows gsi_pool_part (const gs_pool_t *p, uint64_t number)
{
    size_t total = gsi_spread_evaluated (p, number);

    return p->own < 0 ? (struct gsi_rows){0, 0} : gsi_share_part (total, p->evaluators, p->own);
}

static gs_status_t call_program (gs_pool_t *p, uint64_t number, enum gsi_pool_way way,
                                 struct gsi_rows batch)
{
    const gs_pool_opts_t *o = &p->opts;
    const void *in = gsi_pool_row (p, number, GSI_POOL_IN, batch.first);

    gsi_callback_begin ();
    if (way == GSI_POOL_FORWARD)
        return o->on_batch (batch.number, in, gsi_pool_row (p, number, GSI_POOL_OUT, batch.first),
                            o->stream, o->context);
    return o->on_gradient (
        batch.number, in, gsi_pool_row (p, number, GSI_POOL_GRAD_OUT, batch.first),
        gsi_pool_row (p, number, GSI_POOL_GRAD_IN, batch.first), o->stream, o->context);
}

void gsi_pool_evaluate_part (gs_pool_t *p, uint64_t number, enum gsi_pool_way way,
                             struct gsi_pool_verdict *verdict)
{
    struct gsi_rows part = gsi_pool_part (p, number);
    size_t batches = gsi_share_batches (part, p->opts.max_batch);

    *verdict = (struct gsi_pool_verdict){.st = GS_OK};
    if (!batches)
        return;
    if ((verdict->st = gsi_lease_begin (p->comm, &p->client, 0))) {
        snprintf (verdict->text, sizeof (verdict->text), "%s", gsi_last_text ());
        return;
    }
    p->calling = true;
    for (size_t b = 0; b < batches && !verdict->st; b++) {
        struct gsi_rows batch = gsi_share_batch (part, p->opts.max_batch, b);
        verdict->st = call_program (p, number, way, batch);
        p->info.batches += way == GSI_POOL_FORWARD;
        p->info.taken += way == GSI_POOL_FORWARD ? batch.number : 0;
    }
    p->calling = false;
    gsi_lease_end (p->comm);
    if (verdict->st)
        snprintf (verdict->text, sizeof (verdict->text), "%s", gsi_callback_text ());
}
