/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * field - gs_gather_field on decompositions of one to five dimensions, with blocks of different
 * sizes, none and gaps, on one rank and on all; what is wrong is told on all ranks alike.
 *
 * An element depends on its index in the field alone, so every rank knows the whole field.
 */
#include "data.h"

#define MOST_DIMS 5

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* A field, and how it is cut. */
struct grid {
    int dims, parts[MOST_DIMS];
    size_t shape[MOST_DIMS];
};

struct block {
    size_t extents[MOST_DIMS], offsets[MOST_DIMS], count;
};

static size_t even_cut (size_t extent, int i, int parts)
{
    return extent * (size_t) i / (size_t) parts;
}

/* Where part [i] of [parts] of a dimension begins: the parts differ in size, some are empty. */
static size_t cut (size_t extent, int i, int parts)
{
    size_t even = even_cut (extent, i, parts);
    bool earlier = i < parts && i % 2 && even > even_cut (extent, i - 1, parts);

    return earlier ? even - 1 : even;
}

/* The block of rank [r]; ranks beyond the grid have none. */
static struct block block_of (const struct grid *g, int r)
{
    struct block b = {.count = 1};
    int rest = r;

    for (int d = g->dims - 1; d >= 0; d--) {
        int i = rest % g->parts[d];
        rest /= g->parts[d];
        b.offsets[d] = cut (g->shape[d], i, g->parts[d]);
        b.extents[d] = cut (g->shape[d], i + 1, g->parts[d]) - b.offsets[d];
        b.count *= b.extents[d];
    }
    if (rest) {
        memset (b.extents, 0, sizeof (b.extents));
        b.count = 0;
    }
    return b;
}

/* The index in the field of element [i] of a block. */
static size_t index_of (const struct grid *g, const struct block *b, size_t i)
{
    size_t at = 0, stride = 1;

    for (int d = g->dims - 1; d >= 0; d--) {
        at += (b->offsets[d] + i % b->extents[d]) * stride;
        i /= b->extents[d];
        stride *= g->shape[d];
    }
    return at;
}

/* What the field must be: the blocks of ranks other than [missing], 0x11 elsewhere. */
static void fill_field (const struct grid *g, gs_dtype_t dtype, char *field, size_t bytes,
                        int missing)
{
    memset (field, 0x11, bytes);
    for (int r = 0; r < size; r++) {
        struct block b = block_of (g, r);
        for (size_t i = 0; i < b.count && r != missing; i++)
            data_make (dtype, field, index_of (g, &b, i), seed, 0, index_of (g, &b, i));
    }
}

/* [missing] is a rank that gives nothing, so that there is a gap; -1: none. */
static void check_grid (const struct grid *g, gs_dtype_t dtype, int root, int missing,
                        bool on_device)
{
    struct block own = block_of (g, rank);
    size_t count = 1, bytes, block_bytes;
    bool receives = root == -1 || root == rank;
    char *block, *field, *right;
    void *there[2];

    seed++;
    if (rank == missing)
        own = (struct block){.count = 0};
    for (int d = 0; d < g->dims; d++)
        count *= g->shape[d];
    bytes = count * gs_dtype_size (dtype);
    block_bytes = own.count * gs_dtype_size (dtype);
    block = data_allocate (block_bytes);
    field = data_allocate (bytes);
    right = data_allocate (bytes);
    for (size_t i = 0; i < own.count; i++)
        data_make (dtype, block, i, seed, 0, index_of (g, &own, i));
    fill_field (g, dtype, right, bytes, missing);
    memset (field, 0x11, bytes);
    there[0] = block;
    there[1] = field;
    if (on_device) {
        CHECK_OK (gs_device_alloc (comm, block_bytes, &there[0]));
        CHECK_OK (gs_device_alloc (comm, bytes, &there[1]));
        CHECK_OK (gs_device_copy (comm, there[0], block, block_bytes, NULL));
        CHECK_OK (gs_device_copy (comm, there[1], field, bytes, NULL));
    }
    CHECK_OK (gs_gather_field (comm, there[0], g->dims, own.extents, own.offsets,
                               receives ? there[1] : NULL, receives ? g->shape : NULL, dtype,
                               root, NULL));
    if (on_device) {
        CHECK_OK (gs_device_copy (comm, field, there[1], bytes, NULL));
        CHECK_OK (gs_comm_wait (comm, NULL));
        CHECK_OK (gs_device_free (comm, there[0]));
        CHECK_OK (gs_device_free (comm, there[1]));
    }
    CHECK (!receives || !memcmp (field, right, bytes),
           "a field of %d dimensions, %s, root %d, without rank %d, is wrong", g->dims,
           data_names[dtype], root, missing);
    CHECK (data_free (block, block_bytes) && data_free (field, bytes), "written behind the end");
    data_free (right, bytes);
}

/* Cuts dimension [first] in as many parts as may be, then the next, ... */
static struct grid make_grid (int dims, int first)
{
    struct grid g = {.dims = dims};
    int rest = size;

    for (int i = 0; i < dims; i++) {
        int d = (first + i) % dims;
        g.shape[d] = (size_t) (5 + 3 * d);
        g.parts[d] = 1;
        for (int p = 2; i + 1 < dims && p <= rest && g.parts[d] == 1; p++)
            if (rest % p == 0)
                g.parts[d] = p;
        if (i + 1 == dims)
            g.parts[d] = rest;
        rest /= g.parts[d];
    }
    return g;
}

static void check_grids (bool on_device)
{
    for (int dims = 1; dims <= MOST_DIMS; dims++)
        for (int first = 0; first < dims; first++) {
            struct grid g = make_grid (dims, first);
            gs_dtype_t dtype = (gs_dtype_t) (GS_F16 + (dims * 3 + first) % (GSI_DTYPES - 1));
            check_grid (&g, dtype, -1, -1, on_device);
            check_grid (&g, dtype, first % size, -1, on_device);
            check_grid (&g, GS_I32, (first + 1) % size, size > 1 ? first % size : -1, on_device);
        }
}

/* Only the first dimension is cut: blocks go where they belong, in any memory. */
static void check_slabs (void)
{
    struct grid pairs = {2, {1, size}, {2, (size_t) (2 * size)}}; /* two runs each */

    check_grid (&pairs, GS_I16, -1, -1, false);
    for (int dims = 1; dims <= 3; dims++) {
        struct grid g = {dims, {size, 1, 1}, {(size_t) (2 * size + 3), 7, 3}};
        struct grid some = {dims, {size > 1 ? size - 1 : 1, 1, 1}, {(size_t) size + 1, 4, 5}};
        for (int root = -1; root < size; root++) {
            check_grid (&g, GS_F64, root, -1, true);
            check_grid (&some, GS_F32, root, -1, true); /* the last rank has nothing */
        }
        check_grid (&g, GS_U8, -1, size > 1 ? size / 2 : -1, true);
    }
}

/* On each rank for itself. */
static void check_arguments (void)
{
    double x[4] = {0}, y[64];
    size_t one[GS_FIELD_DIMS_MAX] = {1, 1}, huge[3] = {SIZE_MAX / 2, 4, 1};

    CHECK_FAILS (gs_gather_field (NULL, x, 1, one, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "gs_gather_field: comm is NULL");
    CHECK_FAILS (gs_gather_field (comm, x, 0, one, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "dims is 0: 1 to 15");
    CHECK_FAILS (gs_gather_field (comm, x, 16, one, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "dims is 16");
    CHECK_FAILS (gs_gather_field (comm, x, 1, one, one, y, one, GS_F64, size, NULL), GS_ERR_ARG,
                 "root");
    CHECK_FAILS (gs_gather_field (comm, x, 1, one, one, y, one, GS_F64, -2, NULL), GS_ERR_ARG,
                 "root -2");
    CHECK_FAILS (gs_gather_field (comm, x, 1, NULL, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "extents is NULL");
    CHECK_FAILS (gs_gather_field (comm, x, 1, one, NULL, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "offsets is NULL");
    CHECK_FAILS (gs_gather_field (comm, x, 1, one, one, y, NULL, GS_F64, -1, NULL), GS_ERR_ARG,
                 "shape is NULL on rank");
    CHECK_FAILS (gs_gather_field (comm, NULL, 1, one, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "NULL");
    CHECK_FAILS (gs_gather_field (comm, x, 2, huge, one, y, one, GS_F64, -1, NULL), GS_ERR_ARG,
                 "block has more elements");
    CHECK_FAILS (gs_gather_field (comm, x, 2, one, one, y, huge, GS_F64, -1, NULL), GS_ERR_ARG,
                 "field has more elements");
    CHECK_FAILS (gs_gather_field (comm, y + 1, 1, one, one, y, (size_t[]){64}, GS_F64, -1, NULL),
                 GS_ERR_ARG, "overlap");
    CHECK_FAILS (gs_gather_field (comm, x, 1, one, one, y, one, (gs_dtype_t) 77, -1, NULL),
                 GS_ERR_ARG, "gs_gather_field");
}

/* On all ranks alike, and the communicator goes on. */
static void check_places (void)
{
    int32_t x[6] = {0}, *y = calloc ((size_t) size * 6, sizeof (*y));
    size_t extents[2] = {2, 3}, offsets[2] = {2 * (size_t) rank, 0};
    size_t shape[2] = {2 * (size_t) size, 3}, wrong[2] = {2 * (size_t) size, 2};
    char text[100];

    CHECK_FAILS (gs_gather_field (comm, x, 2, extents, offsets, y, wrong, GS_I32, -1, NULL),
                 GS_ERR_ARG, "the block of rank 0", "dimension 2 of 2", "has 3 from 0 on",
                 "the field has 2");
    if (rank == size - 1)
        offsets[0]++;
    snprintf (text, sizeof (text), "the block of rank %d", size - 1);
    CHECK_FAILS (gs_gather_field (comm, x, 2, extents, offsets, y, shape, GS_I32, 0, NULL),
                 GS_ERR_ARG, text, "dimension 1 of 2");
    offsets[0] = 2 * (size_t) rank;
    if (size == 1) {
        free (y);
        return;
    }
    if (rank == size - 1)
        offsets[0]--;
    snprintf (text, sizeof (text), "the blocks of ranks %d and %d overlap", size - 2, size - 1);
    CHECK_FAILS (gs_gather_field (comm, x, 2, extents, offsets, y, shape, GS_I32, -1, NULL),
                 GS_ERR_ARG, text);
    CHECK_FAILS (gs_gather_field (comm, x, 2, extents, offsets, y, shape, GS_I32, 0, NULL),
                 GS_ERR_ARG, text);
    CHECK_FAILS (
        gs_gather_field (comm, x, rank ? 2 : 1, extents, offsets, y, shape, GS_I32, 0, NULL),
        GS_ERR_MISMATCH, "rank 1", "number of dimensions");
    CHECK_FAILS (
        gs_gather_field (comm, x, 2, extents, offsets, y, shape, rank ? GS_U32 : GS_I32, 0, NULL),
        GS_ERR_MISMATCH, "rank 1", "another dtype");
    CHECK_FAILS (
        gs_gather_field (comm, x, 2, extents, offsets, y, shape, GS_I32, rank ? 1 : -1, NULL),
        GS_ERR_MISMATCH, "rank 1", "another root");
    shape[0] += rank == size - 1;
    CHECK_FAILS (gs_gather_field (comm, x, 2, extents, offsets, y, shape, GS_I32, -1, NULL),
                 GS_ERR_MISMATCH, "another shape");
    for (int i = 0; i < 6 * size; i++)
        CHECK (!y[i], "a refused call wrote to the field");
    free (y);
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    check_grids (false);
    check_grids (true);
    check_slabs ();
    check_arguments ();
    check_places ();
    check_grids (multi_any_gpus ());
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("fields of one to five dimensions, on one rank and on all");
}
