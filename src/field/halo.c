/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo - fills ghost layers from the neighbours, and the adjoint of that.
 *
 * What is one run of memory leaves from where it lies, and comes to where it belongs; only other
 * boxes are packed.
 */
#include "field/halo.h"

#include <string.h>

#include "base/dtype.h"
#include "call/staging.h"
#include "p2p/p2p.h"

/* ---- Which part of the array goes where ---- */

/* A section of the array in its own dimensions. */
struct section {
    size_t at[GS_HALO_DIMS_MAX], extents[GS_HALO_DIMS_MAX];
};

/*
 * In the dimensions before [d] a section spans the ghosts that have been filled, behind it the
 * cells alone. Neighbours in [d] have the same place in the others, and so the same section.
 */
static struct section cross_section (const gs_halo_t *h, int d)
{
    struct section section;

    for (int e = 0; e < GS_HALO_DIMS_MAX; e++) {
        size_t low = e < d && h->neighbour[e][GSI_LOW] >= 0 ? h->width[e] : 0;
        size_t high = e < d && h->neighbour[e][GSI_HIGH] >= 0 ? h->width[e] : 0;
        section.at[e] = h->width[e] - low;
        section.extents[e] = low + h->extents[e] + high;
    }
    section.extents[d] = h->width[d];
    return section;
}

static struct gsi_box box_of (const gs_halo_t *h, const struct section *section)
{
    struct gsi_box box = {.planes = section->extents[0],
                          .rows = section->extents[1],
                          .run = section->extents[2],
                          .row = h->array[2],
                          .plane = h->array[1] * h->array[2]};

    box.begin = section->at[0] * box.plane + section->at[1] * box.row + section->at[2];
    return box;
}

/* The ghosts on one side. */
static struct gsi_box ghosts (const gs_halo_t *halo, int d, enum gsi_halo_side side)
{
    struct section section = cross_section (halo, d);

    section.at[d] = side == GSI_LOW ? 0 : halo->width[d] + halo->extents[d];
    return box_of (halo, &section);
}

/* The cells of this rank next to them. */
static struct gsi_box cells (const gs_halo_t *halo, int d, enum gsi_halo_side side)
{
    struct section section = cross_section (halo, d);

    section.at[d] = side == GSI_LOW ? halo->width[d] : halo->extents[d];
    return box_of (halo, &section);
}

/* ---- A face ---- */

/* A call: which box leaves on each side, what becomes of it, and the same of what comes in. */
struct halo_call {
    gs_halo_t *halo;
    char *field;
    struct gsi_call call;
    struct gsi_halo_rooms *rooms;
    struct gsi_box (*leaving) (const gs_halo_t *halo, int d, enum gsi_halo_side side);
    struct gsi_box (*coming) (const gs_halo_t *halo, int d, enum gsi_halo_side side);
    enum gsi_box_way leave, come;
};

static bool on_gpu (const struct halo_call *w)
{
    return w->rooms == &w->halo->there;
}

/* What goes over one side: each is packed, or [in_place]. */
struct part {
    struct gsi_box box;
    char *memory;
    bool in_place;
};
struct face {
    struct part out, in;
};

static struct part make_part (const struct halo_call *w, struct gsi_box box, enum gsi_box_way way,
                              char *room)
{
    bool in_place = way != GSI_BOX_ADD && gsi_box_is_run (&box);

    return (struct part){.box = box,
                         .memory = in_place ? w->field + box.begin * w->halo->element : room,
                         .in_place = in_place};
}

static gs_status_t move_box (const struct halo_call *w, enum gsi_box_way way,
                             const struct part *part)
{
    const gs_halo_t *h = w->halo;

    if (on_gpu (w))
        return h->comm->device->ops->streams->box (way, h->dtype, &part->box, w->field,
                                                   part->memory, w->call.stream);
    gsi_host_box (way, h->dtype, &part->box, w->field, part->memory);
    return GS_OK;
}

/* What has left from where it lies is gone from there. */
static gs_status_t take_away (const struct halo_call *w, const struct part *part)
{
    const gs_halo_t *h = w->halo;
    size_t bytes = gsi_box_count (&part->box) * h->element;

    if (on_gpu (w))
        return h->comm->device->ops->streams->zero (part->memory, bytes, w->call.stream);
    memset (part->memory, 0, bytes);
    return GS_OK;
}

/* What goes to the lower neighbour comes there from the higher one. */
static enum gsi_halo_side other (enum gsi_halo_side side)
{
    return side == GSI_LOW ? GSI_HIGH : GSI_LOW;
}

/*
 * Two ranks may be neighbours on both sides: what each sends first, from its low side, the other
 * one takes in first, on its high side.
 */
static int list_messages (const struct halo_call *w, int d, const struct face *face,
                          struct gsi_message *list)
{
    const gs_halo_t *h = w->halo;
    int n = 0;

    for (int i = 0; i < 2 * GSI_SIDES; i++) {
        bool send = i < GSI_SIDES;
        enum gsi_halo_side side = (enum gsi_halo_side) (i % GSI_SIDES);
        const struct part *part;
        side = send ? side : other (side);
        if (h->neighbour[d][side] < 0)
            continue;
        part = send ? &face[side].out : &face[side].in;
        list[n++] = (struct gsi_message){.buf = part->memory,
                                         .bytes = gsi_box_count (&part->box) * h->element,
                                         .peer = h->neighbour[d][side],
                                         .dtype = h->dtype,
                                         .send = send,
                                         .staged = w->call.staged};
    }
    return n;
}

static gs_status_t pack_face (const struct halo_call *w, int d, struct face *face)
{
    const gs_halo_t *h = w->halo;
    gs_status_t st = GS_OK;

    for (int i = GSI_LOW; i < GSI_SIDES && !st; i++) {
        enum gsi_halo_side side = (enum gsi_halo_side) i;
        if (h->neighbour[d][side] < 0)
            continue;
        face[side].out = make_part (w, w->leaving (h, d, side), w->leave, w->rooms->out[side]);
        face[side].in = make_part (w, w->coming (h, d, side), w->come, w->rooms->in[side]);
        if (!face[side].out.in_place)
            st = move_box (w, w->leave, &face[side].out);
    }
    return st;
}

static gs_status_t unpack (const struct halo_call *w, int d, const struct face *face)
{
    gs_status_t st = GS_OK;

    for (int side = GSI_LOW; side < GSI_SIDES && !st; side++)
        if (w->halo->neighbour[d][side] >= 0 && !face[side].in.in_place)
            st = move_box (w, w->come, &face[side].in);
    for (int side = GSI_LOW; side < GSI_SIDES && !st && w->leave == GSI_BOX_TAKE_AWAY; side++)
        if (w->halo->neighbour[d][side] >= 0 && face[side].out.in_place)
            st = take_away (w, &face[side].out);
    return st;
}

/* A block that is its own neighbour, on both sides: what leaves on one comes in on the other. */
static void exchange_with_itself (struct face *face)
{
    for (int side = GSI_LOW; side < GSI_SIDES; side++) {
        face[side].in.memory = face[other ((enum gsi_halo_side) side)].out.memory;
        face[side].in.in_place = false;
    }
}

static gs_status_t step (const struct halo_call *w, int d)
{
    gs_halo_t *h = w->halo;
    struct gsi_message list[2 * GSI_SIDES];
    struct face face[GSI_SIDES];
    gs_status_t st = pack_face (w, d, face);
    int n;

    if (st)
        return st;
    if (h->neighbour[d][GSI_LOW] == h->comm->topo.rank) {
        exchange_with_itself (face);
    } else {
        n = list_messages (w, d, face, list);
        if ((st = gsi_p2p_transfer (h->comm, list, n, NULL, 0, &w->call)) == GS_ERR_MISMATCH)
            return gsi_p2p_disagree (h->comm, list, n);
    }
    return st ? st : unpack (w, d, face);
}

static bool takes_part (const gs_halo_t *h, int d)
{
    return h->width[d] && (h->neighbour[d][GSI_LOW] >= 0 || h->neighbour[d][GSI_HIGH] >= 0);
}

/* Exchanges go one dimension after the other, adjoints the same way back. */
static gs_status_t all_steps (const struct halo_call *w, bool back)
{
    gs_status_t st = GS_OK;

    for (int i = 0; i < GS_HALO_DIMS_MAX && !st; i++) {
        int d = back ? GS_HALO_DIMS_MAX - 1 - i : i;
        if (takes_part (w->halo, d))
            st = step (w, d);
    }
    return st;
}

/* In a stream. The rooms serve one at a time; a graph cannot wait for what is outside of it. */
static gs_status_t queue_steps (const struct halo_call *w, bool back)
{
    const gs_halo_t *h = w->halo;
    const struct gsi_stream_ops *ops = h->comm->device->ops->streams;
    gs_status_t st;

    if (w->call.capturing)
        return all_steps (w, back);
    if ((st = ops->stream_wait (w->call.stream, h->free)) || (st = all_steps (w, back)))
        return st;
    return ops->event_record (h->free, w->call.stream);
}

static gs_status_t exchange_faces (const struct halo_call *w, bool back)
{
    gs_status_t st;

    if (on_gpu (w))
        return queue_steps (w, back);
    if (w->call.staged && (st = gsi_staging_catch_up (w->halo->comm, &w->call)))
        return st;
    return all_steps (w, back);
}

static gs_status_t run_halo (struct halo_call *w, const char *caller, enum gsi_record_op op,
                             gs_stream_t stream)
{
    gs_halo_t *h = w->halo;
    struct gsi_request r;
    struct gsi_extent extent;
    gs_status_t st = gsi_halo_valid (h, caller);

    if (st)
        return st;
    r = (struct gsi_request){h->comm, caller, op, h->cells, h->dtype, h->argument, stream};
    if ((st = gsi_call_check (&r, w->field, h->count, &extent)))
        return st;
    if (op == GSI_OP_HALO_ADJOINT && gsi_dtype_is_integer (h->dtype))
        return gsi_fail (GS_ERR_UNSUPPORTED,
                         "%s: the halo is of %s: gradients are floating or complex", caller,
                         gsi_dtype_name (h->dtype));
    w->rooms = h->comm->inflight && !extent.staged ? &h->there : &h->host;
    if ((st = gsi_call_begin (&r, &extent, &w->call)))
        return st;
    return gsi_call_end (h->comm, &w->call, exchange_faces (w, op == GSI_OP_HALO_ADJOINT));
}

gs_status_t gs_halo_exchange (gs_halo_t *halo, void *field, gs_stream_t stream)
{
    struct halo_call w = {.halo = halo,
                          .field = field,
                          .leaving = cells,
                          .coming = ghosts,
                          .leave = GSI_BOX_TAKE,
                          .come = GSI_BOX_PUT};

    return gsi_result (run_halo (&w, "gs_halo_exchange", GSI_OP_HALO, stream));
}

gs_status_t gs_halo_adjoint (gs_halo_t *halo, void *grad, gs_stream_t stream)
{
    struct halo_call w = {.halo = halo,
                          .field = grad,
                          .leaving = ghosts,
                          .coming = cells,
                          .leave = GSI_BOX_TAKE_AWAY,
                          .come = GSI_BOX_ADD};

    return gsi_result (run_halo (&w, "gs_halo_adjoint", GSI_OP_HALO_ADJOINT, stream));
}
