/* SPDX-License-Identifier: BSD-3-Clause */
/* halo_create - life of a halo: what ranks tell each other of their blocks, and who is next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/fault.h"
#include "base/process.h"
#include "call/inflight.h"
#include "feature/consensus.h"
#include "field/halo.h"
#include "p2p/p2p.h"

#define DIMS GS_HALO_DIMS_MAX

static const char caller[] = "gs_halo_create";

/* What a rank tells; all in words of one size. Dimensions are as in gs_halo_t. */
struct halo_word {
    uint64_t status; /* not GS_OK: this rank cannot go on */
    uint64_t extents[DIMS];
    uint64_t dims, dtype, grid[DIMS], width[DIMS], periodic[DIMS]; /* the same on all ranks */
};
#define WORD_COUNT (sizeof (struct halo_word) / sizeof (uint64_t))

/* ---- What this rank gives ---- */

static gs_status_t check_lists (const int *grid, const size_t *extents, const size_t *width,
                                const int *periodic, int dims)
{
    if (dims < 1 || dims > DIMS)
        return gsi_fail (GS_ERR_ARG, "%s: dims is %d: 1 to %d can be had", caller, dims, DIMS);
    if (!grid || !extents || !width || !periodic)
        return gsi_fail (GS_ERR_ARG, "%s: %s is NULL", caller,
                         !grid      ? "grid"
                         : !extents ? "extents"
                         : !width   ? "width"
                                    : "periodic");
    for (int d = 0; d < dims; d++) {
        if (grid[d] < 1)
            return gsi_fail (GS_ERR_ARG,
                             "%s: grid has %d ranks in dimension %d of %d: give 1 or more",
                             caller, grid[d], gsi_dims_number (d, dims), dims);
        if (!extents[d])
            return gsi_fail (GS_ERR_ARG, "%s: the block has no cells in dimension %d of %d",
                             caller, gsi_dims_number (d, dims), dims);
    }
    return GS_OK;
}

static void make_word (struct halo_word *word, int dims, const int *grid, const size_t *extents,
                       const size_t *width, const int *periodic)
{
    for (int d = 0; d < DIMS; d++) {
        int i = d - (DIMS - dims);
        word->grid[d] = i < 0 ? 1 : (uint64_t) grid[i];
        word->extents[d] = i < 0 ? 1 : extents[i];
        word->width[d] = i < 0 ? 0 : width[i];
        word->periodic[d] = i < 0 ? 0 : periodic[i] != 0;
    }
}

/* Sizes of the array; *room: bytes of the largest box that leaves or comes in. */
static gs_status_t measure_halo (gs_halo_t *h, const struct halo_word *word, size_t *room)
{
    size_t bytes, most = 0;
    gs_status_t st;

    h->count = 1;
    for (int d = 0; d < DIMS; d++) {
        h->extents[d] = word->extents[d];
        h->width[d] = word->width[d];
        if (__builtin_mul_overflow (h->width[d], 2, &h->array[d]) ||
            __builtin_add_overflow (h->array[d], h->extents[d], &h->array[d]) ||
            __builtin_mul_overflow (h->count, h->array[d], &h->count))
            return gsi_fail (GS_ERR_ARG,
                             "%s: the array, with its ghosts, has more elements than memory can "
                             "hold",
                             caller);
    }
    if ((st = gsi_dtype_bytes (caller, h->count, h->dtype, &bytes)))
        return st;
    h->element = gs_dtype_size (h->dtype);
    for (int d = 0; d < DIMS; d++) {
        size_t slab = bytes / h->array[d] * h->width[d];
        most = slab > most ? slab : most;
    }
    *room = (most + 255) / 256 * 256; /* at most half the array: four of them cannot overflow */
    return GS_OK;
}

static void divide_room (struct gsi_halo_rooms *rooms, size_t room)
{
    for (int side = 0; side < GSI_SIDES; side++) {
        rooms->out[side] = rooms->memory + (size_t) side * room;
        rooms->in[side] = rooms->memory + (size_t) (GSI_SIDES + side) * room;
    }
}

/* The same on the GPU, for arrays there. */
static gs_status_t make_rooms_there (gs_halo_t *h, size_t room)
{
    const struct gsi_device *device = h->comm->device;
    void *memory;
    int previous;
    gs_status_t st = device->ops->alloc (device, 4 * room + 256, &memory);

    if (st)
        return st;
    h->there.memory = memory;
    divide_room (&h->there, room);
    if ((st = device->ops->streams->enter (device, &previous)))
        return st;
    st = device->ops->streams->event_open (&h->free);
    device->ops->streams->leave (device, previous);
    return st;
}

static gs_status_t make_rooms (gs_halo_t *h, const struct halo_word *word)
{
    size_t room = 0;
    gs_status_t st = measure_halo (h, word, &room);

    if (st)
        return st;
    if (gsi_fault ("halo.memory") ||
        posix_memalign ((void **) &h->host.memory, 64, 4 * room + 64))
        return gsi_fail (GS_ERR_NOMEM, "%s: no memory for ghosts on their way (%zu bytes)",
                         caller, 4 * room);
    divide_room (&h->host, room);
    return h->comm->inflight ? make_rooms_there (h, room) : GS_OK;
}

/* ---- What all ranks give ---- */

static gs_status_t disagree (const gs_comm_t *comm, const char *what, int rank)
{
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d (host %s) gives another %s than rank 0: all ranks must give "
                     "the same",
                     caller, rank, comm->hosts[rank], what);
}

/* The same verdict on all ranks; a failure of this one has its text already. */
static gs_status_t compare_halos (const gs_comm_t *comm, const struct halo_word *words)
{
    const struct halo_word *first = words;

    for (int r = 0; r < comm->topo.size; r++)
        if (words[r].status && r == comm->topo.rank)
            return (gs_status_t) words[r].status;
    for (int r = 0; r < comm->topo.size; r++)
        if (words[r].status)
            return gsi_fail ((gs_status_t) words[r].status,
                             "%s: rank %d (host %s) could not; its own text says why", caller, r,
                             comm->hosts[r]);
    for (int r = 1; r < comm->topo.size; r++) {
        const struct halo_word *word = &words[r];
        if (word->dims != first->dims)
            return disagree (comm, "number of dimensions", r);
        if (word->dtype != first->dtype)
            return disagree (comm, "dtype", r);
        if (memcmp (word->grid, first->grid, sizeof (word->grid)) != 0)
            return disagree (comm, "grid", r);
        if (memcmp (word->width, first->width, sizeof (word->width)) != 0)
            return disagree (comm, "width", r);
        if (memcmp (word->periodic, first->periodic, sizeof (word->periodic)) != 0)
            return disagree (comm, "periodic", r);
    }
    return GS_OK;
}

static gs_status_t check_grid (const gs_comm_t *comm, const struct halo_word *word)
{
    uint64_t product = 1;
    int front = DIMS - (int) word->dims;
    char text[64];

    for (int d = front; d < DIMS; d++)
        product = product > INT32_MAX ? product : product * word->grid[d]; /* each is an int */
    if (product == (uint64_t) comm->topo.size)
        return GS_OK;
    gsi_dims_write (word->grid + front, DIMS - front, " x ", text, sizeof (text));
    return gsi_fail (GS_ERR_ARG,
                     "%s: a grid of %s is not one of %d ranks: give numbers whose product that "
                     "is",
                     caller, text, comm->topo.size);
}

static void grid_place (const struct halo_word *word, int rank, int *place)
{
    for (int d = DIMS - 1; d >= 0; d--) {
        place[d] = rank % (int) word->grid[d];
        rank /= (int) word->grid[d];
    }
}

static int rank_at (const struct halo_word *word, const int *place)
{
    int rank = 0;

    for (int d = 0; d < DIMS; d++)
        rank = rank * (int) word->grid[d] + place[d];
    return rank;
}

/* The rank next to [place] in dimension [d]; -1: none. */
static int next_to (const struct halo_word *word, const int *place, int d,
                    enum gsi_halo_side side)
{
    int count = (int) word->grid[d], there[DIMS];

    memcpy (there, place, sizeof (there));
    there[d] += side == GSI_LOW ? -1 : 1;
    if (there[d] >= 0 && there[d] < count)
        return rank_at (word, there);
    there[d] = (there[d] + count) % count;
    return word->periodic[d] ? rank_at (word, there) : -1;
}

/* Blocks fit beside each other, and are as thick as the layers that others have of them. */
static gs_status_t check_blocks (const gs_comm_t *comm, const struct halo_word *words)
{
    int dims = (int) words->dims, front = DIMS - dims, place[DIMS], first[DIMS];

    for (int r = 0; r < comm->topo.size; r++) {
        grid_place (words, r, place);
        for (int d = front; d < DIMS; d++) {
            bool alone =
                next_to (words, place, d, GSI_LOW) < 0 && next_to (words, place, d, GSI_HIGH) < 0;
            int reference;
            memset (first, 0, sizeof (first));
            first[d] = place[d];
            reference = rank_at (words, first);
            if (words[r].extents[d] < words[r].width[d] && !alone)
                return gsi_fail (GS_ERR_ARG,
                                 "%s: the block of rank %d (host %s) has %llu cells in dimension "
                                 "%d of %d, its neighbours want %llu of them as ghosts: use "
                                 "fewer ranks there, or a smaller width",
                                 caller, r, comm->hosts[r],
                                 (unsigned long long) words[r].extents[d],
                                 gsi_dims_number (d - front, dims), dims,
                                 (unsigned long long) words[r].width[d]);
            if (words[r].extents[d] != words[reference].extents[d])
                return gsi_fail (GS_ERR_ARG,
                                 "%s: the block of rank %d (host %s) has %llu cells in dimension "
                                 "%d of %d, but that of rank %d, in the same place of it, has "
                                 "%llu",
                                 caller, r, comm->hosts[r],
                                 (unsigned long long) words[r].extents[d],
                                 gsi_dims_number (d - front, dims), dims, reference,
                                 (unsigned long long) words[reference].extents[d]);
        }
    }
    return GS_OK;
}

static void settle (gs_halo_t *h, const struct halo_word *words)
{
    const gs_comm_t *comm = h->comm;
    int place[DIMS];

    grid_place (words, comm->topo.rank, place);
    for (int d = 0; d < DIMS; d++)
        for (int side = 0; side < GSI_SIDES; side++)
            h->neighbour[d][side] = next_to (words, place, d, (enum gsi_halo_side) side);
    for (int r = 0; r < comm->topo.size; r++)
        h->cells += words[r].extents[0] * words[r].extents[1] * words[r].extents[2];
    h->argument = (int) (comm->number & INT32_MAX); /* of the call in which ranks told */
}

/* ---- Life ---- */

static void discard_halo (gs_halo_t *h)
{
    const struct gsi_device *device = h->comm->device;
    bool idle = !gsi_inflight_finish (h->comm);
    int previous;

    if (h->free && !device->ops->streams->enter (device, &previous)) {
        device->ops->streams->event_close (h->free);
        device->ops->streams->leave (device, previous);
    }
    if (h->there.memory && idle)
        device->ops->free (device, h->there.memory);
    free (h->host.memory);
    h->magic = 0;
    free (h);
}

/* All ranks tell, whatever their own checks said; the text of this one's failure stays. */
static gs_status_t tell_halo (gs_halo_t *h, const struct halo_word *own, struct halo_word *words)
{
    char text[GSI_TEXT_MAX];
    gs_status_t st;

    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    if ((st = gs_allgather (h->comm, own, words, WORD_COUNT, GS_U64, NULL)))
        return st;
    if (own->status)
        gsi_fail ((gs_status_t) own->status, "%s", text);
    if ((st = compare_halos (h->comm, words)) || (st = check_grid (h->comm, words)) ||
        (st = check_blocks (h->comm, words)))
        return st;
    settle (h, words);
    return GS_OK;
}

gs_status_t gs_halo_create (gs_comm_t *comm, int dims, const int *grid, const size_t *extents,
                            const size_t *width, const int *periodic, gs_dtype_t dtype,
                            gs_halo_t **halo)
{
    struct halo_word own = {.dims = (uint64_t) dims, .dtype = dtype}, *words;
    gs_halo_t *h;
    gs_status_t st;

    if (!halo)
        return gsi_fail (GS_ERR_ARG, "%s: halo is NULL", caller);
    *halo = NULL;
    if ((st = gsi_comm_valid (comm, caller)))
        return gsi_result (st);
    h = calloc (1, sizeof (*h));
    words = calloc ((size_t) comm->topo.size, sizeof (*words));
    st = h && words ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    if ((st = gsi_consensus (comm, caller, st, NULL, NULL))) {
        free (h);
        free (words);
        return gsi_result (st);
    }
    *h = (gs_halo_t){.magic = GSI_HALO_MAGIC, .comm = comm, .dtype = dtype};
    if (!(st = check_lists (grid, extents, width, periodic, dims))) {
        make_word (&own, dims, grid, extents, width, periodic);
        st = make_rooms (h, &own);
    }
    own.status = st;
    st = tell_halo (h, &own, words);
    free (words);
    if (st) {
        discard_halo (h);
        return gsi_result (st);
    }
    atomic_fetch_add (&comm->features, 1);
    *halo = h;
    return gsi_result (GS_OK);
}

gs_status_t gsi_halo_valid (const gs_halo_t *halo, const char *call)
{
    return gsi_handle_check (call, "halo", "halo", halo, halo && halo->magic == GSI_HALO_MAGIC);
}

gs_status_t gs_halo_destroy (gs_halo_t *halo)
{
    gs_status_t st = halo ? gsi_halo_valid (halo, "gs_halo_destroy") : GS_OK;

    if (!halo || st)
        return gsi_result (st);
    atomic_fetch_sub (&halo->comm->features, 1);
    discard_halo (halo);
    return gsi_result (GS_OK);
}
