/* SPDX-License-Identifier: BSD-3-Clause */
/* plan - what is added to a plan, and whether it is one. */
#include "ckpt/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dims.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "base/process.h"
#include "base/status.h"

#define TEXT_MAX 4096
#define SLICE_NS GSI_NS_PER_S

gs_status_t gsi_ckpt_check (const gs_ckpt_t *ckpt, const char *caller, enum gsi_ckpt_need need)
{
    gs_status_t st = gsi_h5_present (caller);

    if (st || (st = gsi_handle_check (caller, "ckpt", "checkpoint plan", ckpt,
                                      ckpt && ckpt->magic == GSI_CKPT_MAGIC)))
        return st;
    if (need == GSI_CKPT_OPEN && ckpt->committed)
        return gsi_fail (GS_ERR_STATE, "%s: %s is committed: make another plan", caller,
                         ckpt->client.name);
    if (need >= GSI_CKPT_COMMITTED && !ckpt->committed)
        return gsi_fail (GS_ERR_STATE, "%s: %s is not committed: call gs_ckpt_commit first",
                         caller, ckpt->client.name);
    if (need == GSI_CKPT_WRITABLE && ckpt->opts.read_only)
        return gsi_fail (GS_ERR_STATE, "%s: %s has the option read_only: it writes nothing",
                         caller, ckpt->client.name);
    return GS_OK;
}

int64_t gsi_ckpt_until_ns (const gs_ckpt_t *c)
{
    return gsi_now_ns () + c->timeout_ns / 4;
}

int64_t gsi_ckpt_slice_ns (const gs_ckpt_t *c)
{
    int64_t slice_ns = c->timeout_ns / 4;

    return slice_ns < SLICE_NS ? slice_ns : SLICE_NS;
}

/* ---- What is added ---- */

static int find_array (const gs_ckpt_t *c, const char *name)
{
    for (int i = 0; i < c->arrays; i++)
        if (!strcmp (c->array[i].name, name))
            return i;
    return -1;
}

/* "a/b", which is no part of another name, and has no part that HDF5 reads otherwise. */
static gs_status_t check_array_name (const gs_ckpt_t *c, const char *caller, const char *name)
{
    size_t length = name ? strlen (name) : 0;

    if (!length || length > GS_CKPT_NAME_MAX)
        return gsi_fail (GS_ERR_ARG, "%s: name %s: 1 to %d bytes", caller,
                         !name    ? "is NULL"
                         : length ? "is too long"
                                  : "is empty",
                         GS_CKPT_NAME_MAX);
    for (const char *part = name; part; part = strchr (part, '/')) {
        part += part > name; /* behind the slash */
        size_t bytes = strcspn (part, "/");
        if (!bytes || (bytes == 1 && *part == '.') || (bytes == 2 && !strncmp (part, "..", 2)))
            return gsi_fail (GS_ERR_ARG, "%s: name '%s': its parts are neither empty nor . or ..",
                             caller, name);
    }
    for (int i = 0; i < c->arrays; i++) {
        const char *other = c->array[i].name;
        size_t both = strlen (other) < length ? strlen (other) : length;
        const char *rest = strlen (other) < length ? name + both : other + both;
        if (!strncmp (name, other, both) && (!*rest || *rest == '/'))
            return gsi_fail (GS_ERR_ARG,
                             *rest ? "%s: name '%s': '%s' was added, and what is an array cannot "
                                     "be a group of arrays"
                                   : "%s: name '%s' was added already",
                             caller, name, other);
    }
    return GS_OK;
}

/* The number of elements of [dims] extents. */
static gs_status_t count_elements (const char *caller, const char *name, int dims,
                                   const size_t *extents, size_t *count)
{
    if (dims < 0 || dims > GS_CKPT_DIMS_MAX || (dims && !extents))
        return gsi_fail (GS_ERR_ARG, "%s: '%s' has %d dimensions%s: 0 to %d, and a shape", caller,
                         name, dims, extents || !dims ? "" : " and no shape", GS_CKPT_DIMS_MAX);
    if (gsi_dims_count (extents, dims, count))
        return GS_OK;
    return gsi_fail (GS_ERR_ARG, "%s: the shape of '%s' overflows", caller, name);
}

static gs_status_t grow_arrays (gs_ckpt_t *c, const char *caller)
{
    int more = c->room ? 2 * c->room : 32;
    void *larger;

    if (c->arrays < c->room)
        return GS_OK;
    if (gsi_fault ("ckpt.memory"))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    if ((larger = realloc (c->array, (size_t) more * sizeof (*c->array)))) {
        c->array = larger;
        if ((larger = realloc (c->set, (size_t) (more + GSI_METADATA_SETS) * sizeof (*c->set)))) {
            c->set = larger;
            c->room = more;
            return GS_OK;
        }
    }
    return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
}

/* The data set of [a], of [shape] behind [before], if that is not 0. */
static gs_status_t make_array_set (gs_ckpt_t *c, const char *caller, struct gsi_ckpt_array *a,
                                   const char *folder, uint64_t before)
{
    struct gsi_h5_set *set = &c->set[c->arrays];
    size_t room = strlen (folder) + strlen (a->name) + 1;
    gs_status_t st;

    *set = (struct gsi_h5_set){.path = malloc (room), .dtype = a->dtype, .dims = a->dims};
    if (!set->path)
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    snprintf (set->path, room, "%s%s", folder, a->name);
    memcpy (set->shape, a->shape, sizeof (a->shape));
    if (before) {
        set->dims++;
        memmove (set->shape + 1, a->shape, sizeof (a->shape));
        set->shape[0] = before;
    }
    if ((st = gsi_h5_set_text (set, "gs_order", "C"))) {
        gsi_h5_set_clear (set);
        return st;
    }
    a->name = set->path + strlen (folder);
    c->array[c->arrays++] = *a;
    return GS_OK;
}

/* Checks what the three functions share; [extents] are those of the memory at a->data. */
static gs_status_t check_added (gs_ckpt_t *c, const char *caller, struct gsi_ckpt_array *a,
                                const size_t *extents)
{
    const struct gsi_device *device;
    bool staged;
    char text[64 + GS_CKPT_NAME_MAX];
    gs_status_t st = gsi_ckpt_check (c, caller, GSI_CKPT_OPEN);

    if (st || (st = check_array_name (c, caller, a->name)) ||
        (st = count_elements (caller, a->name, a->dims, extents, &a->count)))
        return st;
    snprintf (text, sizeof (text), "%s: '%s'", caller, a->name);
    if ((st = gsi_feature_check (c->comm, text, a->data, a->count, a->dtype, &staged)))
        return st;
    device = gsi_feature_device (c->comm);
    a->on_gpu = device->ops->streams && !staged && a->count;
    return grow_arrays (c, caller);
}

static struct gsi_ckpt_array array_of (const char *name, enum gsi_ckpt_kind kind, int dims,
                                       gs_dtype_t dtype, void *data)
{
    return (struct gsi_ckpt_array){
        .name = name, .kind = kind, .dtype = dtype, .dims = dims, .data = data};
}

/* An array of which each rank has all that its shape says. */
static gs_status_t add_whole (gs_ckpt_t *c, const char *caller, struct gsi_ckpt_array a,
                              const size_t *shape)
{
    bool per_rank = a.kind == GSI_CKPT_PER_RANK;
    gs_status_t st = check_added (c, caller, &a, shape);

    if (st)
        return st;
    for (int d = 0; d < a.dims; d++)
        a.shape[d] = shape[d];
    return make_array_set (c, caller, &a, per_rank ? "/rank/" : "/replicated/",
                           per_rank ? (uint64_t) c->size : 0);
}

gs_status_t gs_ckpt_add_replicated (gs_ckpt_t *ckpt, const char *name, int dims,
                                    const size_t *shape, gs_dtype_t dtype, void *data)
{
    return gsi_result (add_whole (ckpt, "gs_ckpt_add_replicated",
                                  array_of (name, GSI_CKPT_REPLICATED, dims, dtype, data),
                                  shape));
}

gs_status_t gs_ckpt_add_per_rank (gs_ckpt_t *ckpt, const char *name, int dims,
                                  const size_t *shape, gs_dtype_t dtype, void *data)
{
    return gsi_result (add_whole (ckpt, "gs_ckpt_add_per_rank",
                                  array_of (name, GSI_CKPT_PER_RANK, dims, dtype, data), shape));
}

gs_status_t gs_ckpt_add_sharded (gs_ckpt_t *ckpt, const char *name, int dims,
                                 const size_t *extents, const size_t *offsets,
                                 const size_t *shape, gs_dtype_t dtype, void *data)
{
    static const char caller[] = "gs_ckpt_add_sharded";
    struct gsi_ckpt_array a = array_of (name, GSI_CKPT_SHARDED, dims, dtype, data);
    size_t whole, bytes;
    gs_status_t st = check_added (ckpt, caller, &a, extents);

    if (st)
        return gsi_result (st);
    if (!dims || !offsets || !shape)
        return gsi_fail (GS_ERR_ARG, "%s: '%s' %s", caller, name,
                         !dims ? "is a scalar: that has no blocks"
                               : "has no offsets or no shape");
    if ((st = count_elements (caller, name, dims, shape, &whole)) ||
        (st = gsi_dtype_bytes (caller, whole, dtype, &bytes)))
        return gsi_result (st);
    for (int d = 0; d < dims; d++) {
        a.shape[d] = shape[d];
        a.block.extents[d] = a.count ? extents[d] : 0;
        a.block.offsets[d] = offsets[d];
    }
    return gsi_result (make_array_set (ckpt, caller, &a, "/sharded/", 0));
}

static gs_status_t check_text (const char *attribute, const char *text)
{
    if (!attribute || !*attribute || strlen (attribute) > GS_CKPT_NAME_MAX)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_set_attribute: attribute is %s: 1 to %d bytes",
                         attribute ? "empty or too long" : "NULL", GS_CKPT_NAME_MAX);
    if (!strncmp (attribute, "gs_", 3))
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_set_attribute: '%s': names that begin with gs_ are "
                         "gradsync's own",
                         attribute);
    if (!text || !*text || strlen (text) > TEXT_MAX)
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_set_attribute: the text of '%s' is %s: 1 to %d bytes",
                         attribute, text ? "empty or too long" : "NULL", TEXT_MAX);
    return GS_OK;
}

gs_status_t gsi_ckpt_find (const gs_ckpt_t *c, const char *caller, const char *name, int *i)
{
    gs_status_t st = gsi_ckpt_check (c, caller, GSI_CKPT_OPEN);

    if (st || (name && (*i = find_array (c, name)) >= 0))
        return st;
    return gsi_fail (GS_ERR_ARG, "%s: no array '%s' was added", caller, name ? name : "NULL");
}

gs_status_t gs_ckpt_set_attribute (gs_ckpt_t *ckpt, const char *name, const char *attribute,
                                   const char *text)
{
    int i;
    gs_status_t st = gsi_ckpt_find (ckpt, "gs_ckpt_set_attribute", name, &i);

    if (st || (st = check_text (attribute, text)))
        return gsi_result (st);
    return gsi_result (gsi_h5_set_text (&ckpt->set[i], attribute, text));
}

gs_status_t gs_ckpt_set_bounds (gs_ckpt_t *ckpt, const char *name, const int64_t *lower)
{
    static const char caller[] = "gs_ckpt_set_bounds";
    char text[48 * GS_CKPT_DIMS_MAX] = "()";
    const char *const attributes[2][2] = {{"gs_bounds", text}, {"gs_order", "Fortran"}};
    const struct gsi_ckpt_array *a;
    size_t used = 0;
    int i;
    gs_status_t st = gsi_ckpt_find (ckpt, caller, name, &i);

    if (st)
        return gsi_result (st);
    a = &ckpt->array[i];
    if (a->dims && !lower)
        return gsi_fail (GS_ERR_ARG, "%s: lower is NULL, but '%s' has %d dimensions", caller,
                         name, a->dims);
    for (int d = 0; d < a->dims; d++) {
        int64_t upper;
        uint64_t extent = a->shape[a->dims - 1 - d];
        if (extent > INT64_MAX || __builtin_add_overflow (lower[d], (int64_t) extent - 1, &upper))
            return gsi_fail (GS_ERR_ARG, "%s: lower bound %lld of '%s' overflows", caller,
                             (long long) lower[d], name);
        used += (size_t) snprintf (text + used, sizeof (text) - used, "%s%lld:%lld",
                                   d ? ", " : "(", (long long) lower[d], (long long) upper);
    }
    if (a->dims)
        snprintf (text + used, sizeof (text) - used, ")");
    return gsi_result (gsi_h5_set_texts (&ckpt->set[i], attributes, 2));
}

#define UNIT_BYTES ((size_t) 64 << 10) /* of replicated arrays that one rank writes at least */

void gsi_array_view_share (const gs_ckpt_t *c, int i, int index, int number, size_t *begin,
                           size_t *count)
{
    const struct gsi_ckpt_array *a = &c->array[i];
    size_t unit = UNIT_BYTES / gs_dtype_size (a->dtype), n = (size_t) number;
    size_t units = (a->count + unit - 1) / unit;
    size_t turn = ((size_t) index + (size_t) i) % n; /* small arrays go round */
    size_t end = (units / n * (turn + 1) + units % n * (turn + 1) / n) * unit;

    *begin = (units / n * turn + units % n * turn / n) * unit;
    *begin = *begin < a->count ? *begin : a->count;
    *count = (end < a->count ? end : a->count) - *begin;
}

void gsi_array_view_open (const gs_ckpt_t *c, int i, uint64_t ranks, struct gsi_array_view *view)
{
    const struct gsi_ckpt_array *a = &c->array[i];

    *view = (struct gsi_array_view){
        .dims = 1, .element = gs_dtype_size (a->dtype), .shape = {a->count}};
    if (a->kind == GSI_CKPT_PER_RANK) {
        view->dims = 2;
        view->shape[0] = ranks;
        view->shape[1] = a->count;
    } else if (a->kind == GSI_CKPT_SHARDED) {
        view->dims = a->dims;
        for (int d = 0; d < a->dims; d++)
            view->shape[d] = a->shape[d];
    }
}

/* Fills in [mine]: of a replicated array the share of [index] of [number]. */
static void take_share (const gs_ckpt_t *c, int i, int slot, int index, int number,
                        struct gsi_array_view *view)
{
    const struct gsi_ckpt_array *a = &c->array[i];
    size_t begin = 0, count = 0;

    if (a->kind == GSI_CKPT_SHARDED) {
        view->mine = a->block;
    } else if (a->kind == GSI_CKPT_PER_RANK) {
        view->mine = (struct gsi_block){{a->count ? 1 : 0, a->count}, {(uint64_t) slot}};
    } else {
        if (index >= 0)
            gsi_array_view_share (c, i, index, number, &begin, &count);
        view->mine = (struct gsi_block){{count}, {begin}};
        view->base = begin * view->element;
    }
}

void gsi_array_view_to_write (const gs_ckpt_t *c, int i, struct gsi_array_view *view)
{
    gsi_array_view_open (c, i, (uint64_t) c->size, view);
    take_share (c, i, c->rank, c->writer, c->writers, view);
}

void gsi_array_view_to_read (const gs_ckpt_t *c, int i, uint64_t ranks, int slot,
                             struct gsi_array_view *view)
{
    gsi_array_view_open (c, i, ranks, view);
    take_share (c, i, slot, c->rank, c->size, view);
}
