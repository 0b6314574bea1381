/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic - what the calls on a communicator have sent.
 *
 * One thread is in a call at a time, so it adds by a load and a store; others may look meanwhile.
 */
#include "call/traffic.h"

#include <string.h>

#include "base/log.h"
#include "base/sized.h"

static void add_relaxed (atomic_uint_fast64_t *sum, uint64_t more)
{
    if (more)
        atomic_store_explicit (sum, atomic_load_explicit (sum, memory_order_relaxed) + more,
                               memory_order_relaxed);
}

static uint64_t load_relaxed (const atomic_uint_fast64_t *word)
{
    return atomic_load_explicit (word, memory_order_relaxed);
}

void gsi_traffic_begin (gs_comm_t *comm)
{
    comm->handed = 0;
    comm->coll->sent = (struct gsi_sent){0};
}

void gsi_traffic_end (gs_comm_t *comm, int op)
{
    struct gsi_traffic *t = &comm->traffic[op];
    const struct gsi_sent *sent;

    if (!comm->coll)
        return; /* it has been closed */
    sent = &comm->coll->sent;
    add_relaxed (&t->calls, 1);
    add_relaxed (&t->bytes, comm->handed);
    add_relaxed (&t->within, sent->within);
    add_relaxed (&t->between, sent->between);
    add_relaxed (&t->unknown_within, sent->unknown_within);
    add_relaxed (&t->unknown_between, sent->unknown_between);
}

void gsi_traffic_hand (gs_comm_t *comm, size_t bytes)
{
    comm->handed += bytes;
}

/* A piece that goes to several ranks is handed over once. */
void gsi_traffic_hand_pieces (gs_comm_t *comm, const struct gsi_alltoallv *x)
{
    size_t last = SIZE_MAX;

    for (int r = 0; r < comm->topo.size; r++) {
        if (!x->send_bytes[r] || x->send_at[r] == last)
            continue;
        last = x->send_at[r];
        comm->handed += x->send_bytes[r];
    }
}

/* Adds what is known of [op]. */
static void sum_traffic (const gs_comm_t *comm, int op, gs_traffic_t *sum)
{
    const struct gsi_traffic *t = &comm->traffic[op];

    sum->calls += load_relaxed (&t->calls);
    sum->bytes += load_relaxed (&t->bytes);
    sum->within += load_relaxed (&t->within);
    sum->between += load_relaxed (&t->between);
    sum->within_known = sum->within_known && !load_relaxed (&t->unknown_within);
    sum->between_known = sum->between_known && !load_relaxed (&t->unknown_between);
}

gs_status_t gs_comm_get_traffic (const gs_comm_t *comm, const char *op, gs_traffic_t *traffic)
{
    gs_traffic_t sum = {.size = sizeof (sum), .within_known = 1, .between_known = 1};
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_get_traffic");
    bool found = !op;

    if (st)
        return gsi_result (st);
    for (int i = GSI_OP_NONE + 1; i < GSI_OP_COUNT; i++)
        if (!op || !strcmp (gsi_record_op_name (i), op)) {
            found = true;
            sum_traffic (comm, i, &sum);
        }
    if (!found)
        return gsi_fail (
            GS_ERR_ARG,
            "gs_comm_get_traffic: no operation has the name '%s': give that of a "
            "collective without gs_, 'bucket' for those of reducers, or NULL for all",
            op);
    return gsi_result (
        gsi_sized_give (traffic, &sum, sizeof (sum), "gs_comm_get_traffic: traffic"));
}

gs_status_t gs_comm_reset_traffic (gs_comm_t *comm)
{
    gs_status_t st = gsi_comm_valid (comm, "gs_comm_reset_traffic");

    if (st)
        return gsi_result (st);
    for (int i = 0; i < GSI_OP_COUNT; i++) {
        struct gsi_traffic *t = &comm->traffic[i];
        atomic_uint_fast64_t *const words[] = {&t->calls,          &t->bytes,
                                               &t->within,         &t->between,
                                               &t->unknown_within, &t->unknown_between};
        for (size_t k = 0; k < sizeof (words) / sizeof (words[0]); k++)
            atomic_store_explicit (words[k], 0, memory_order_relaxed);
    }
    return gsi_result (GS_OK);
}

void gsi_traffic_report (const gs_comm_t *comm)
{
    if (comm->topo.rank || !gsi_log_on (GS_LOG_INFO))
        return;
    for (int op = GSI_OP_NONE + 1; op < GSI_OP_COUNT; op++) {
        gs_traffic_t t = {.within_known = 1, .between_known = 1};
        sum_traffic (comm, op, &t);
        if (t.calls)
            gsi_log (GS_LOG_INFO, "comm",
                     "'%s': %llu of %s, %llu bytes from rank 0; it sent %s%llu to its node, "
                     "%s%llu to others",
                     comm->name, (unsigned long long) t.calls, gsi_record_op_name (op),
                     (unsigned long long) t.bytes, t.within_known ? "" : "more than ",
                     (unsigned long long) t.within, t.between_known ? "" : "more than ",
                     (unsigned long long) t.between);
    }
}
