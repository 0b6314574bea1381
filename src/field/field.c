/* SPDX-License-Identifier: BSD-3-Clause */
/* field - assembles a field of which every rank has a block; and takes it apart again. */
#include <stdlib.h>
#include <string.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "call/call.h"
#include "collectives/adjoint.h"
#include "collectives/pieces.h"
#include "device/device.h"
#include "feature/consensus.h"
#include "field/block.h"

enum kind { NOWHERE, ON_HOST, ON_DEVICE };

/* What a rank tells about its call; all in words of one size. */
struct block_word {
    uint64_t dims, dtype, receivers; /* receivers: root + 1 */
    uint64_t kind;                   /* enum kind, of the memory of block, else of field */
    uint64_t status;                 /* not GS_OK: this rank cannot go on */
    uint64_t has_shape;
    struct gsi_block block;
    uint64_t shape[GS_FIELD_DIMS_MAX];
};
#define WORD_COUNT (sizeof (struct block_word) / sizeof (uint64_t))

/*
 * A call. Of [words], one for each rank, the own one is known first. Back, which is the gradient,
 * goes from the field to blocks; who receives there has a field to give.
 */
struct field_work {
    gs_comm_t *comm;
    const char *caller;
    bool back;
    char *block, *field; /* read or written */
    int dims, root;
    gs_dtype_t dtype;
    gs_stream_t stream;
    bool receives;
    struct gsi_extent in, out;
    size_t room;    /* elements of the field, where it is received */
    char *gathered; /* where blocks come together before they are placed */
    struct block_word own, *words;
    const uint64_t *shape;
    size_t *counts, *displs; /* [size] of the blocks, in [gathered], or in the field itself */
};

/* ---- Before ranks talk ---- */

static gs_status_t multiply (const struct field_work *w, const char *what, const size_t *extents,
                             size_t *count)
{
    if (gsi_dims_count (extents, w->dims, count))
        return GS_OK;
    return gsi_fail (GS_ERR_ARG, "%s: %s has more elements than memory can hold", w->caller,
                     what);
}

static gs_status_t check_scalars (const struct field_work *w, const size_t *extents,
                                  const size_t *offsets, const size_t *shape)
{
    gs_status_t st;

    if (w->root != -1 && (st = gsi_comm_has_rank (w->comm, w->caller, "root", w->root)))
        return st;
    if (w->dims < 1 || w->dims > GS_FIELD_DIMS_MAX)
        return gsi_fail (GS_ERR_ARG, "%s: dims is %d: 1 to %d can be had", w->caller, w->dims,
                         GS_FIELD_DIMS_MAX);
    if (!extents || !offsets)
        return gsi_fail (GS_ERR_ARG, "%s: %s is NULL", w->caller,
                         extents ? "offsets" : "extents");
    if (!shape && (w->root == -1 || w->root == w->comm->topo.rank))
        return gsi_fail (GS_ERR_ARG, "%s: shape is NULL on rank %d, which receives the field",
                         w->caller, w->comm->topo.rank);
    return GS_OK;
}

/* Checks what this rank gives, and makes its word. */
static gs_status_t look_at_block (struct field_work *w, const size_t *extents,
                                  const size_t *offsets, const size_t *shape)
{
    struct gsi_request r = {.comm = w->comm, .caller = w->caller, .dtype = w->dtype};
    size_t count;
    gs_status_t st = multiply (w, "block", extents, &count);

    if (st || (st = gsi_call_check (&r, w->block, count, &w->in)))
        return st;
    if (w->receives && ((st = multiply (w, "field", shape, &w->room)) ||
                        (st = gsi_call_check (&r, w->field, w->room, &w->out)) ||
                        (st = gsi_pieces_pair (&r, w->block, &w->in, w->field, &w->out, false))))
        return st;
    w->own = (struct block_word){.dims = (uint64_t) w->dims,
                                 .dtype = w->dtype,
                                 .receivers = (uint64_t) (w->root + 1),
                                 .has_shape = w->receives};
    if (w->in.bytes || w->out.bytes)
        w->own.kind = !w->comm->inflight || (w->in.bytes ? w->in.staged : w->out.staged)
                          ? ON_HOST
                          : ON_DEVICE;
    for (int d = 0; d < w->dims; d++) {
        w->own.block.extents[d] = count ? extents[d] : 0;
        w->own.block.offsets[d] = offsets[d];
        w->own.shape[d] = w->receives ? shape[d] : 0;
    }
    return GS_OK;
}

/* ---- What the ranks told ---- */

static gs_status_t disagree (const struct field_work *w, const char *what, int rank)
{
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) gives another %s than the ranks before it: all ranks "
                     "must give the same",
                     w->caller, rank, w->comm->hosts[rank], what);
}

/* Whether all give the same where they must; finds the shape. On all ranks alike. */
static gs_status_t compare_blocks (struct field_work *w)
{
    const struct block_word *first = w->words;
    int of_kind[] = {-1, -1, -1}; /* a rank whose memory is so */

    for (int r = 0; r < w->comm->topo.size; r++) {
        const struct block_word *word = &w->words[r];
        if (word->dims != first->dims)
            return disagree (w, "number of dimensions", r);
        if (word->dtype != first->dtype)
            return disagree (w, "dtype", r);
        if (word->receivers != first->receivers)
            return disagree (w, "root", r);
        if (word->has_shape && w->shape &&
            memcmp (w->shape, word->shape, sizeof (word->shape)) != 0)
            return disagree (w, "shape of the field", r);
        if (word->has_shape && !w->shape)
            w->shape = word->shape;
        of_kind[word->kind] = r;
    }
    if (of_kind[ON_HOST] >= 0 && of_kind[ON_DEVICE] >= 0 && !w->comm->coll->mixed)
        return gsi_fail (GS_ERR_DEVICE,
                         "%s: rank %d gives host memory, rank %d device memory: all ranks give "
                         "the same kind",
                         w->caller, of_kind[ON_HOST], of_kind[ON_DEVICE]);
    return GS_OK;
}

/* ---- Where blocks go ---- */

/* Whether the whole block is a run of the field's memory. */
static bool is_run (const struct field_work *w, const struct block_word *word)
{
    for (int d = gsi_block_first_whole (&word->block, w->dims, w->shape) - 1; d >= 0; d--)
        if (word->block.extents[d] != 1)
            return gsi_block_is_empty (&word->block);
    return true;
}

/* Sets counts and displs; returns whether blocks go to the field itself. */
static bool lay_out_blocks (struct field_work *w)
{
    static const size_t start[GS_FIELD_DIMS_MAX];
    bool direct = true;
    size_t next = 0;

    for (int r = 0; r < w->comm->topo.size; r++)
        direct = direct && is_run (w, &w->words[r]);
    for (int r = 0; r < w->comm->topo.size; r++) {
        const struct block_word *word = &w->words[r];
        w->counts[r] = gsi_block_count (&word->block, w->dims);
        w->displs[r] = next;
        if (direct)
            w->displs[r] = gsi_block_is_empty (&word->block)
                               ? 0
                               : gsi_block_place (&word->block, w->dims, w->shape, start, 0);
        next += w->counts[r];
    }
    return direct;
}

/* A block in dimension [last], from which on its elements follow each other, and two before. */
static struct gsi_box box_of (const struct field_work *w, const struct block_word *word, int last)
{
    struct gsi_box box = {.planes = last > 1 ? word->block.extents[last - 2] : 1,
                          .rows = last > 0 ? word->block.extents[last - 1] : 1,
                          .run = 1,
                          .row = 1};

    for (int d = last; d < w->dims; d++) {
        box.run *= word->block.extents[d];
        box.row *= w->shape[d];
    }
    box.plane = last > 0 ? box.row * w->shape[last - 1] : box.row;
    return box;
}

/* Copies [box] of the field from [at], or to it. */
static gs_status_t move_block (const struct field_work *w, const struct gsi_box *box, char *at)
{
    enum gsi_box_way way = w->back ? GSI_BOX_TAKE : GSI_BOX_PUT;

    if (w->own.kind == ON_DEVICE)
        return w->comm->device->ops->streams->box (way, w->dtype, box, w->field, at, w->stream);
    gsi_host_box (way, w->dtype, box, w->field, at);
    return GS_OK;
}

/* Copies a block from [at] to its place, or back. */
static gs_status_t place_block (const struct field_work *w, const struct block_word *word,
                                char *at)
{
    size_t index[GS_FIELD_DIMS_MAX] = {0};
    int last = gsi_block_first_whole (&word->block, w->dims, w->shape),
        outer = last > 2 ? last - 2 : 0, d;
    struct gsi_box box = box_of (w, word, last);
    gs_status_t st = GS_OK;

    do {
        box.begin = gsi_block_place (&word->block, w->dims, w->shape, index, outer);
        st = move_block (w, &box, at);
        at += gsi_box_count (&box) * gs_dtype_size (w->dtype);
        for (d = outer - 1; d >= 0 && ++index[d] == word->block.extents[d]; d--)
            index[d] = 0;
    } while (d >= 0 && !st);
    return st;
}

/* ---- The call ---- */

static gs_status_t gather_blocks (struct field_work *w, char *to, size_t room)
{
    size_t count = w->counts[w->comm->topo.rank];

    if (w->root == -1)
        return gs_allgatherv (w->comm, w->block, count, to, room, w->counts, w->displs, w->dtype,
                              w->stream);
    return gs_gatherv (w->comm, w->block, count, to, room, w->counts, w->displs, w->dtype,
                       w->root, w->stream);
}

/* The gradient: blocks from [from], where they lie as gather would put them. */
static gs_status_t scatter (struct field_work *w, const char *from)
{
    size_t count = w->counts[w->comm->topo.rank];

    if (w->root == -1)
        return gs_reduce_scatterv (w->comm, from, w->counts, w->displs, w->block, count, w->dtype,
                                   GS_SUM, w->stream);
    return gs_scatterv (w->comm, from, w->counts, w->displs, w->block, count, w->dtype, w->root,
                        w->stream);
}

static gs_status_t place_all (const struct field_work *w)
{
    gs_status_t st = GS_OK;

    for (int r = 0; r < w->comm->topo.size && w->receives && !st; r++)
        if (w->counts[r])
            st = place_block (w, &w->words[r],
                              w->gathered + w->displs[r] * gs_dtype_size (w->dtype));
    return st;
}

static gs_status_t exchange_blocks (struct field_work *w)
{
    gs_status_t st;

    if (w->back)
        return (st = place_all (w)) ? st : scatter (w, w->gathered);
    return (st = gather_blocks (w, w->gathered, w->room)) ? st : place_all (w);
}

/* Whether this rank's are on its GPU, where others' are; one without anything has a GPU, or not.
 */
static bool is_on_gpu (const struct field_work *w)
{
    return w->own.kind != ON_HOST && w->comm->inflight;
}

/* Memory where blocks meet, of the GPU too; all ranks know whether all have it. */
static gs_status_t get_meeting (struct field_work *w)
{
    const struct gsi_device *device = w->comm->device;
    void *memory = NULL;
    gs_status_t st = (gs_status_t) w->own.status;

    if (is_on_gpu (w)) {
        st = w->out.bytes ? device->ops->alloc (device, w->out.bytes, &memory) : GS_OK;
        w->gathered = memory;
    }
    return gsi_consensus (w->comm, w->caller, st, NULL, w->stream);
}

/* The same on GPUs. What meets there is waited for before its memory is freed. */
static gs_status_t meet_on_gpu (struct field_work *w)
{
    const struct gsi_device *device = w->comm->device;
    int previous;
    gs_status_t st = get_meeting (w), waited;

    if (!is_on_gpu (w)) /* beside ranks whose are */
        return st ? st : exchange_blocks (w);
    if (!st && !(st = device->ops->streams->enter (device, &previous))) {
        st = exchange_blocks (w);
        device->ops->streams->leave (device, previous);
        waited = gs_comm_wait (w->comm, w->stream);
        st = st ? st : waited;
    }
    if (w->gathered && st != GS_ERR_TIMEOUT) /* after that a free might wait for ever */
        device->ops->free (device, w->gathered);
    w->gathered = NULL;
    return st;
}

/* The same on hosts, where all have told whether they have memory. */
static gs_status_t meet_on_host (struct field_work *w)
{
    for (int r = 0; r < w->comm->topo.size; r++)
        if (w->words[r].status)
            return gsi_fail ((gs_status_t) w->words[r].status,
                             "%s: no memory on rank %d (host %s) for blocks on their way",
                             w->caller, r, w->comm->hosts[r]);
    return exchange_blocks (w);
}

static gs_status_t assemble (struct field_work *w)
{
    struct gsi_blocks blocks = {w->comm, w->caller,          w->dims,
                                NULL,    &w->words[0].block, sizeof (*w->words)};
    gs_status_t st = compare_blocks (w);

    blocks.shape = w->shape; /* which is known now */
    if (st || (st = gsi_blocks_check (&blocks, (const struct gsi_block **) (void *) w->counts)))
        return st;
    if (lay_out_blocks (w))
        return w->back ? scatter (w, w->field) : gather_blocks (w, w->field, w->room);
    for (int r = 0; r < w->comm->topo.size; r++)
        if (w->words[r].kind == ON_DEVICE)
            return meet_on_gpu (w);
    return meet_on_host (w);
}

static gs_status_t work_on_field (struct field_work *w, const size_t *extents,
                                  const size_t *offsets, const size_t *shape)
{
    gs_comm_t *comm = w->comm;
    size_t size;
    gs_status_t st = check_scalars (w, extents, offsets, shape);

    if (st)
        return st;
    size = (size_t) comm->topo.size;
    w->receives = w->root == -1 || w->root == comm->topo.rank;
    if (!w->receives)
        w->field = NULL;
    if ((st = look_at_block (w, extents, offsets, shape)))
        return st;
    w->words = calloc (size, sizeof (*w->words));
    w->counts = calloc (size, 2 * sizeof (*w->counts));
    if (!w->words || !w->counts) {
        st = gsi_call_no_memory (comm, GSI_OP_ALLGATHER, w->caller);
    } else {
        w->displs = w->counts + size;
        if (w->out.bytes && w->own.kind == ON_HOST) {
            w->gathered = malloc (w->out.bytes); /* costs nothing until it is used */
            w->own.status = w->gathered ? GS_OK : GS_ERR_NOMEM;
        }
        st = gs_allgather (comm, &w->own, w->words, WORD_COUNT, GS_U64, w->stream);
    }
    if (!st)
        st = assemble (w);
    free (w->gathered);
    free (w->words);
    free (w->counts);
    return st;
}

/* Several calls, and work on what they bring. */
static gs_status_t run_field (struct field_work *w, const size_t *extents, const size_t *offsets,
                              const size_t *shape)
{
    gs_status_t st = gsi_comm_valid (w->comm, w->caller);

    if (st)
        return st;
    gsi_comm_hold (w->comm);
    st = work_on_field (w, extents, offsets, shape);
    gsi_comm_release (w->comm);
    return st;
}

gs_status_t gs_gather_field (gs_comm_t *comm, const void *block, int dims, const size_t *extents,
                             const size_t *offsets, void *field, const size_t *shape,
                             gs_dtype_t dtype, int root, gs_stream_t stream)
{
    struct field_work w = {.comm = comm,
                           .caller = "gs_gather_field",
                           .block = (char *) (uintptr_t) block, /* only read */
                           .field = field,
                           .dims = dims,
                           .root = root,
                           .dtype = dtype,
                           .stream = stream};

    return gsi_result (run_field (&w, extents, offsets, shape));
}

gs_status_t gs_gather_field_backward (gs_comm_t *comm, const void *grad_y, int dims,
                                      const size_t *shape, void *grad_x, const size_t *extents,
                                      const size_t *offsets, gs_dtype_t dtype, int root,
                                      gs_stream_t stream)
{
    struct field_work w = {.comm = comm,
                           .caller = "gs_gather_field_backward",
                           .back = true,
                           .block = grad_x,
                           .field = (char *) (uintptr_t) grad_y, /* only read */
                           .dims = dims,
                           .root = root,
                           .dtype = dtype,
                           .stream = stream};
    gs_status_t st = gsi_gradient_dtype (w.caller, dtype);

    return gsi_result (st ? st : run_field (&w, extents, offsets, shape));
}
