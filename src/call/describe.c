/* SPDX-License-Identifier: BSD-3-Clause */
/* describe - calls in words, for errors and comparisons. */
#include "call/describe.h"

#include <stdio.h>

#include "base/dtype.h"
#include "call/lease.h"

static const char *name_of_argument (int op)
{
    switch (op) {
    case GSI_OP_ALLREDUCE:
    case GSI_OP_REDUCE_SCATTER:
    case GSI_OP_REDUCE_SCATTERV: return "op";
    case GSI_OP_BUCKET: return "bucket";
    case GSI_OP_HALO:
    case GSI_OP_HALO_ADJOINT: return "halo";
    case GSI_OP_POOL: return "pool and stage";
    case GSI_OP_ALLGATHER_BACKWARD:
    case GSI_OP_ALLGATHERV_BACKWARD: return "contract";
    default: return "root or op";
    }
}

/* That of gs_reduce is of two. */
static void describe_argument (int op, int argument, char *text, size_t room)
{
    if (op == GSI_OP_REDUCE)
        snprintf (text, room, "root %d, op %d", argument >> 3, argument & 7);
    else
        snprintf (text, room, "%s %d", name_of_argument (op), argument);
}

void gsi_describe_told (const gs_comm_t *comm, const struct gsi_told *c, char *text, size_t room)
{
    const struct gsi_client *client;
    long long step = (long long) (c->step < 0 ? -c->step : c->step);
    char what[256] = "", argument[64];
    size_t used;

    if (c->op == GSI_OP_DESTROY) {
        snprintf (text, room, "gs_comm_destroy, which ends the communicator");
        return;
    }
    describe_argument (c->op, c->argument, argument, sizeof (argument));
    used = (size_t) snprintf (text, room, "%s, %s, count %llu, %s%s", gsi_record_op_name (c->op),
                              c->dtype ? gsi_dtype_name ((gs_dtype_t) c->dtype) : "no type",
                              (unsigned long long) c->count, argument,
                              c->memory == GSI_TOLD_HOST ? ", in host memory" : "");
    if (!step || used >= room)
        return;
    pthread_mutex_lock (&gsi_lease_guard);
    client = comm->client;
    if (c->op == GSI_OP_BUCKET && client && client->describe)
        client->describe (client->context, c->argument, what, sizeof (what));
    snprintf (text + used, room - used, ", %s step %lld of %s", c->step < 0 ? "after" : "in",
              step,
              *what    ? what
              : client ? client->name
                       : "a reducer");
    pthread_mutex_unlock (&gsi_lease_guard);
}

bool gsi_told_differs (const struct gsi_told *a, const struct gsi_told *b)
{
    return a->count != b->count || a->op != b->op || a->dtype != b->dtype ||
           a->argument != b->argument ||
           (a->memory != b->memory && a->memory != GSI_TOLD_NOTHING &&
            b->memory != GSI_TOLD_NOTHING);
}

void gsi_describe_call (const gs_comm_t *comm, const struct gsi_call *call, char *text,
                        size_t room)
{
    const struct gsi_client *client;
    char what[256] = "";
    size_t used = 0;

    if (call->message) {
        snprintf (text, room, "%s of ", gsi_record_op_name (call->op));
        return;
    }
    pthread_mutex_lock (&gsi_lease_guard);
    client = comm->client;
    if (call->op == GSI_OP_BUCKET && client && client->describe) {
        if (!comm->inflight && comm->record.file->step > 0) /* else the step may be a later one */
            used = (size_t) snprintf (what, sizeof (what), "step %lld of ",
                                      (long long) comm->record.file->step);
        client->describe (client->context, call->argument, what + used, sizeof (what) - used);
    }
    pthread_mutex_unlock (&gsi_lease_guard);
    snprintf (text, room, "%s #%llu %s%s%sof ", gsi_record_op_name (call->op),
              (unsigned long long) call->seq, *what ? "(" : "", what, *what ? ") " : "");
}
