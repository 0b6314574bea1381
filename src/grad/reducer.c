/* SPDX-License-Identifier: BSD-3-Clause */
/* reducer - life of a reducer, what was added to it, and where that is. */
#include "grad/scheduler.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/env.h"
#include "base/process.h"
#include "base/sized.h"

static gs_status_t check_handle (const gs_reducer_t *reducer, const char *caller)
{
    return gsi_handle_check (caller, "reducer", "reducer", reducer,
                             reducer && reducer->magic == GSI_REDUCER_MAGIC);
}

gs_status_t gsi_reducer_valid (const gs_reducer_t *reducer, const char *caller)
{
    gs_status_t st = check_handle (reducer, caller);

    if (st || reducer->committed)
        return st;
    return gsi_fail (GS_ERR_STATE, "%s: %s is not committed: gs_reducer_commit comes first",
                     caller, reducer->client.name);
}

gs_status_t gsi_reducer_is_open (const gs_reducer_t *reducer, const char *caller)
{
    gs_status_t st = check_handle (reducer, caller);

    if (st || !reducer->committed)
        return st;
    return gsi_fail (GS_ERR_STATE, "%s: %s is committed already: nothing is added any more",
                     caller, reducer->client.name);
}

gs_status_t gsi_reducer_idle (const gs_reducer_t *reducer, const char *caller)
{
    gs_status_t st = gsi_reducer_valid (reducer, caller);

    if (st || !reducer->in_step)
        return st;
    return gsi_fail (GS_ERR_STATE, "%s: %s is inside step %lld: gs_reducer_finish comes first",
                     caller, reducer->client.name, (long long) reducer->step);
}

gs_status_t gsi_reducer_enter (const gs_reducer_t *r, int *previous)
{
    return r->queue ? r->queue->enter (r->device, previous) : GS_OK;
}

void gsi_reducer_leave (const gs_reducer_t *r, int previous)
{
    if (r->queue)
        r->queue->leave (r->device, previous);
}

/* ---- Life ---- */

static gs_status_t check_opts (const gs_reducer_opts_t *opts)
{
    if ((int) opts->overlap < GS_OVERLAP_AUTO || (int) opts->overlap > GS_OVERLAP_THREAD)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_create: unknown overlap %d; see gs_overlap_t",
                         (int) opts->overlap);
    if (opts->wire && !gsi_dtype_is_reduced (opts->wire))
        return gsi_fail (
            GS_ERR_ARG,
            "gs_reducer_create: wire is %s: GS_F16, GS_BF16, GS_F8_E4M3, GS_F8_E5M2 or 0",
            gsi_dtype_name (opts->wire));
    if (opts->error_feedback && !opts->wire)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_create: error_feedback is for a wire type, and "
                                     "none is set");
    if (!isfinite (opts->max_norm) || opts->max_norm < 0)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_create: max_norm %g: finite and not negative; 0 for none",
                         opts->max_norm);
    return GS_OK;
}

static void take_opts (gs_reducer_t *r, const gs_reducer_opts_t *opts)
{
    r->opts = *opts;
    r->opts.name = NULL;
    snprintf (r->name, sizeof (r->name), "%s", opts->name ? opts->name : "gradients");
    snprintf (r->client.name, sizeof (r->client.name), "reducer '%s'", r->name);
    r->keeps_order = gsi_env_int (GSI_ENV_DETERMINISTIC);
}

/* For messages: "bucket 3 of 7, conv1_w to conv2_w". */
static void describe_bucket (void *context, int argument, char *text, size_t room)
{
    const gs_reducer_t *r = context;
    const struct gsi_bucket_plan *plan;

    if (argument < 0 || argument >= r->buckets)
        return;
    plan = &r->bucket[argument].plan;
    snprintf (text, room, "%s, bucket %d of %d, %s to %s", r->client.name, argument + 1,
              r->buckets, r->gradient[r->number[plan->first]].name,
              r->gradient[r->number[plan->first + plan->tensors - 1]].name);
}

gs_status_t gs_reducer_create (gs_comm_t *comm, const gs_reducer_opts_t *opts,
                               gs_reducer_t **reducer)
{
    gs_reducer_opts_t taken = GS_REDUCER_OPTS_INIT;
    gs_reducer_t *r;
    gs_status_t st;

    if (!reducer)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_create: reducer is NULL");
    *reducer = NULL;
    if ((opts &&
         (st = gsi_sized_take (&taken, sizeof (taken), offsetof (gs_reducer_opts_t, reserved),
                               opts, "gs_reducer_create: opts", "GS_REDUCER_OPTS_INIT"))) ||
        (st = check_opts (&taken)))
        return gsi_result (st);
    if (!(r = calloc (1, sizeof (*r))))
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_create: out of memory");
    take_opts (r, &taken);
    r->client.describe = describe_bucket;
    r->client.context = r;
    if ((st = gsi_feature_open (comm, &r->client, "gs_reducer_create"))) {
        free (r);
        return gsi_result (st);
    }
    r->magic = GSI_REDUCER_MAGIC;
    r->comm = comm;
    r->device = gsi_feature_device (comm);
    r->queue = r->device->ops->streams;
    r->large = r->queue && !gsi_feature_mixed (r->comm);
    r->rank = gs_comm_rank (comm);
    r->size = gs_comm_size (comm);
    *reducer = r;
    return gsi_result (GS_OK);
}

gs_status_t gs_reducer_destroy (gs_reducer_t *reducer)
{
    gs_reducer_t *r = reducer;
    gs_status_t st;
    int previous;

    if (!r)
        return gsi_result (GS_OK);
    if ((st = check_handle (r, "gs_reducer_destroy")) ||
        (st = gsi_bucket_check (r, "gs_reducer_destroy")))
        return gsi_result (st);
    if (r->in_step && !gs_comm_check (r->comm))
        return gsi_result (gsi_reducer_idle (r, "gs_reducer_destroy"));
    st = gsi_reducer_enter (r, &previous);
    gsi_scheduler_close (r);
    if (r->in_step)
        gsi_lease_end (r->comm);
    gsi_commit_undo (r);
    if (!st)
        gsi_reducer_leave (r, previous);
    for (int i = 0; i < r->gradients; i++)
        free (r->gradient[i].name);
    for (int i = 0; i < r->scalars; i++)
        free (r->scalar[i].name);
    free (r->gradient);
    free (r->scalar);
    gsi_feature_close (r->comm, &r->client);
    r->magic = 0;
    free (r);
    return gsi_result (GS_OK);
}

/* ---- What is added ---- */

/* Makes room for one more element of [bytes] in *array. */
static gs_status_t grow_array (void *array, int number, int *room, size_t bytes,
                               const char *caller)
{
    int more = *room ? 2 * *room : 64;
    void **pointer = array, *larger;

    if (number < *room)
        return GS_OK;
    if (!(larger = realloc (*pointer, (size_t) more * bytes)))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    *pointer = larger;
    *room = more;
    return GS_OK;
}

/* Bytes of a gradient; dtype, dims and shape are those of gs_reducer_add. */
static gs_status_t gradient_bytes (struct gsi_gradient *g, int dims, const size_t *shape)
{
    if (dims < 0 || dims > GS_REDUCER_DIMS_MAX || (dims && !shape))
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_add: '%s' has %d dimensions%s: 0 to %d, and a "
                         "shape",
                         g->name, dims, shape ? "" : " and no shape", GS_REDUCER_DIMS_MAX);
    g->dims = dims;
    g->count = 1;
    for (int d = 0; d < dims; d++) {
        g->shape[d] = shape[d];
        if (shape[d] && g->count > SIZE_MAX / shape[d])
            return gsi_fail (GS_ERR_ARG, "gs_reducer_add: the shape of '%s' overflows", g->name);
        g->count *= shape[d];
    }
    return gsi_dtype_bytes ("gs_reducer_add", g->count, g->dtype, &g->bytes);
}

/* Memory of the caller's must be such that the communicator averages it without staging. */
static gs_status_t check_given (const gs_reducer_t *r, const struct gsi_gradient *g)
{
    char caller[160];
    bool staged = false;
    gs_status_t st;

    if (!g->given)
        return GS_OK;
    snprintf (caller, sizeof (caller), "gs_reducer_add ('%.100s')", g->name);
    if ((st = gsi_feature_check (r->comm, caller, g->given, g->count, g->dtype, &staged)))
        return st;
    if (staged)
        return gsi_fail (GS_ERR_DEVICE,
                         "%s: the memory is of the host, but communicator '%s' is one of GPUs: "
                         "give memory of its GPU, or NULL; or, for a backward pass on the CPU, "
                         "make the communicator with the device GS_DEVICE_HOST (GS_DEVICE=host)",
                         caller, gs_comm_name (r->comm));
    return GS_OK;
}

/* What is in the memory of two would be averaged twice, and scaled. */
static gs_status_t check_apart (const gs_reducer_t *r, const struct gsi_gradient *g)
{
    uintptr_t begin = (uintptr_t) g->given;

    for (int i = 0; g->given && g->bytes && i < r->gradients; i++) {
        const struct gsi_gradient *other = &r->gradient[i];
        uintptr_t there = (uintptr_t) other->given;
        if (there && other->bytes && begin < there + other->bytes && there < begin + g->bytes)
            return gsi_fail (GS_ERR_ARG,
                             "gs_reducer_add: the memory of '%s' overlaps that of '%s': add "
                             "weights that two layers share once",
                             g->name, other->name);
    }
    return GS_OK;
}

static gs_status_t check_name (const char *name, const char *caller)
{
    if (!name || !*name)
        return gsi_fail (GS_ERR_ARG, "%s: a name is needed for messages", caller);
    if (strchr (name, '\n'))
        return gsi_fail (GS_ERR_ARG, "%s: a name is one line", caller);
    return GS_OK;
}

gs_status_t gs_reducer_add (gs_reducer_t *reducer, const char *name, int dims,
                            const size_t *shape, gs_dtype_t dtype, void *grad, int *index)
{
    struct gsi_gradient g = {.dtype = dtype, .given = grad};
    gs_reducer_t *r = reducer;
    gs_status_t st = gsi_reducer_is_open (r, "gs_reducer_add");

    if (st || (st = check_name (name, "gs_reducer_add")))
        return gsi_result (st);
    for (int i = 0; i < r->gradients; i++)
        if (!strcmp (r->gradient[i].name, name))
            return gsi_fail (GS_ERR_ARG, "gs_reducer_add: there is a gradient '%s' already",
                             name);
    g.name = (char *) (uintptr_t) name;
    if ((st = gradient_bytes (&g, dims, shape)))
        return gsi_result (st);
    if (gsi_dtype_is_integer (dtype))
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "gs_reducer_add: '%s' is of %s, whose average would have to round", name,
                         gsi_dtype_name (dtype));
    if ((st = check_given (r, &g)) || (st = check_apart (r, &g)) ||
        (st = grow_array (&r->gradient, r->gradients, &r->gradient_room, sizeof (g),
                          "gs_reducer_add")))
        return gsi_result (st);
    if (!(g.name = strdup (name)))
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_add: out of memory");
    if (index)
        *index = r->gradients;
    r->gradient[r->gradients++] = g;
    return gsi_result (GS_OK);
}

gs_status_t gs_reducer_add_scalar (gs_reducer_t *reducer, const char *name, gs_op_t op,
                                   int *index)
{
    struct gsi_scalar s = {.op = op};
    gs_reducer_t *r = reducer;
    gs_status_t st = gsi_reducer_is_open (r, "gs_reducer_add_scalar");

    if (st || (st = check_name (name, "gs_reducer_add_scalar")))
        return gsi_result (st);
    if (op != GS_SUM && op != GS_AVG && op != GS_MIN && op != GS_MAX)
        return gsi_fail (GS_ERR_ARG,
                         "gs_reducer_add_scalar: op %d of '%s' is none for scalars: GS_SUM, "
                         "GS_AVG, GS_MIN or GS_MAX",
                         (int) op, name);
    for (int i = 0; i < r->scalars; i++)
        if (!strcmp (r->scalar[i].name, name))
            return gsi_fail (GS_ERR_ARG, "gs_reducer_add_scalar: there is a scalar '%s' already",
                             name);
    if ((st = grow_array (&r->scalar, r->scalars, &r->scalar_room, sizeof (s),
                          "gs_reducer_add_scalar")))
        return gsi_result (st);
    if (!(s.name = strdup (name)))
        return gsi_fail (GS_ERR_NOMEM, "gs_reducer_add_scalar: out of memory");
    if (index)
        *index = r->scalars;
    r->scalar[r->scalars++] = s;
    return gsi_result (GS_OK);
}

gs_status_t gs_reducer_get_grad (gs_reducer_t *reducer, int index, void **grad)
{
    gs_status_t st = gsi_reducer_valid (reducer, "gs_reducer_get_grad");

    if (st)
        return gsi_result (st);
    if (!grad)
        return gsi_fail (GS_ERR_ARG, "gs_reducer_get_grad: grad is NULL");
    if ((st = gsi_reducer_index (reducer, index, "gs_reducer_get_grad")))
        return gsi_result (st);
    *grad = reducer->gradient[index].count ? reducer->at[reducer->gradient[index].place] : NULL;
    return gsi_result (GS_OK);
}

gs_status_t gsi_reducer_index (const gs_reducer_t *reducer, int index, const char *caller)
{
    if (index >= 0 && index < reducer->gradients)
        return GS_OK;
    return gsi_fail (GS_ERR_ARG, "%s: index %d is not one of the %d gradients of %s", caller,
                     index, reducer->gradients, reducer->client.name);
}
