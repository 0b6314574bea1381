/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo - gs_halo_exchange and its adjoint on random decompositions of one to three dimensions,
 * periodic or not, of all types: every cell against what the whole field says, and the two
 * against each other as linear maps; what is wrong is told on all ranks alike.
 *
 * An element depends on its place alone, so every rank knows the whole field, and what the arrays
 * of all ranks have.
 */
#include "array.h"

#define DIMS 3

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* A decomposition; dimensions beyond [dims] do not count. */
struct cut {
    int dims, grid[DIMS], periodic[DIMS];
    size_t width[DIMS], begin[DIMS][64]; /* where the blocks of a dimension begin, and its end */
    gs_dtype_t dtype;
};

/* A rank's array. */
struct part {
    int place[DIMS];
    size_t extents[DIMS], array[DIMS], count;
};

/* ---- What is where ---- */

static struct part part_of (const struct cut *c, int r)
{
    struct part p = {.count = 1};

    for (int d = c->dims - 1; d >= 0; d--) {
        p.place[d] = r % c->grid[d];
        r /= c->grid[d];
        p.extents[d] = c->begin[d][p.place[d] + 1] - c->begin[d][p.place[d]];
        p.array[d] = p.extents[d] + 2 * c->width[d];
        p.count *= p.array[d];
    }
    return p;
}

enum place { CELL, GHOST, BEYOND };

/* What element [i] of a part is: a cell of the field, a copy of one, or neither; which cell. */
static enum place look_up (const struct cut *c, const struct part *p, size_t i, size_t *cell)
{
    size_t stride = 1;
    enum place what = CELL;

    *cell = 0;
    for (int d = c->dims - 1; d >= 0; d--) {
        long extent = (long) c->begin[d][c->grid[d]], at = (long) (i % p->array[d]);
        bool own = at >= (long) c->width[d] && at < (long) (c->width[d] + p->extents[d]);
        i /= p->array[d];
        at += (long) c->begin[d][p->place[d]] - (long) c->width[d];
        if ((at < 0 || at >= extent) && !c->periodic[d])
            what = BEYOND;
        else if (!own && what == CELL)
            what = GHOST;
        *cell += (size_t) ((at + extent) % extent) * stride;
        stride *= (size_t) extent;
    }
    return what;
}

static size_t field_cells (const struct cut *c)
{
    size_t cells = 1;

    for (int d = 0; d < c->dims; d++)
        cells *= c->begin[d][c->grid[d]];
    return cells;
}

/* ---- Making it ---- */

static uint64_t next_random (void)
{
    return data_bits (++seed, 0, 0) >> 16;
}

/* Splits the ranks over the dimensions. */
static void random_grid (struct cut *c)
{
    int rest = size, first = (int) (next_random () % (uint64_t) c->dims);

    for (int i = 0; i < c->dims; i++) {
        int d = (first + i) % c->dims, divisor = rest;
        while (i + 1 < c->dims && (rest % divisor || (divisor > 1 && next_random () % 2)))
            divisor--;
        c->grid[d] = divisor;
        rest /= divisor;
    }
}

static struct cut random_cut (gs_dtype_t dtype)
{
    struct cut c = {.dims = 1 + (int) (next_random () % DIMS), .dtype = dtype};

    random_grid (&c);
    for (int d = 0; d < c.dims; d++) {
        c.width[d] = next_random () % 4;
        c.periodic[d] = next_random () % 2 ? 7 : 0;
        for (int i = 0; i < c.grid[d]; i++) {
            size_t least = c.width[d] ? c.width[d] : 1;
            c.begin[d][i + 1] = c.begin[d][i] + least + next_random () % 4;
        }
    }
    return c;
}

static gs_status_t make (const struct cut *c, gs_halo_t **halo)
{
    struct part p = part_of (c, rank);

    return gs_halo_create (comm, c->dims, c->grid, p.extents, c->width, c->periodic, c->dtype,
                           halo);
}

/* ---- The exchange ---- */

static void check_exchange (const struct cut *c, gs_halo_t *halo, bool on_device)
{
    struct part p = part_of (c, rank);
    size_t width = gs_dtype_size (c->dtype), cell;
    struct array field = array_allocate (comm, p.count * width, on_device);
    char right[16];

    for (size_t i = 0; i < p.count; i++) {
        data_make (c->dtype, field.host, i, seed + 1, rank, i);
        if (look_up (c, &p, i, &cell) == CELL)
            data_make (c->dtype, field.host, i, seed, 0, cell);
    }
    array_bring (&field);
    CHECK_OK (gs_halo_exchange (halo, field.used, NULL));
    array_fetch (&field);
    for (size_t i = 0; i < p.count; i++) {
        if (look_up (c, &p, i, &cell) == BEYOND)
            data_make (c->dtype, right, 0, seed + 1, rank, i);
        else
            data_make (c->dtype, right, 0, seed, 0, cell);
        CHECK (!memcmp (field.host + i * width, right, width),
               "element %zu of %zu is wrong: %d dimensions of %s", i, p.count, c->dims,
               data_names[c->dtype]);
    }
    array_release (&field, "a field");
}

/* ---- The adjoint ---- */

/* What the cells of this rank must have: their own, and what all ghosts of all ranks give. */
static wide_t *expect (const struct cut *c)
{
    struct part own = part_of (c, rank);
    size_t cells = field_cells (c), cell;
    wide_t *sum = calloc (cells, sizeof (*sum)), *out = calloc (own.count, sizeof (*out));
    char one[16];

    for (int r = 0; r < size; r++) {
        struct part p = part_of (c, r);
        for (size_t i = 0; i < p.count; i++) {
            if (look_up (c, &p, i, &cell) == BEYOND)
                continue;
            data_make (c->dtype, one, 0, seed, r, i);
            sum[cell] += wide_load (c->dtype, one, 0);
        }
    }
    for (size_t i = 0; i < own.count; i++) {
        enum place what = look_up (c, &own, i, &cell);
        data_make (c->dtype, one, 0, seed, rank, i);
        out[i] = what == CELL ? sum[cell] : what == GHOST ? 0 : wide_load (c->dtype, one, 0);
    }
    free (sum);
    return out;
}

static void check_adjoint (const struct cut *c, gs_halo_t *halo, bool on_device)
{
    struct part p = part_of (c, rank);
    struct array grad = array_allocate (comm, p.count * gs_dtype_size (c->dtype), on_device);
    wide_t *right = expect (c);

    data_fill (c->dtype, grad.host, seed, rank, p.count);
    array_bring (&grad);
    CHECK_OK (gs_halo_adjoint (halo, grad.used, NULL));
    array_fetch (&grad);
    for (size_t i = 0; i < p.count; i++)
        /* up to 27 numbers of at most 1.5, two roundings in each of three dimensions */
        CHECK (cabsl (wide_load (c->dtype, grad.host, i) - right[i]) <=
                   8 * 27 * wide_epsilon (c->dtype),
               "element %zu of %zu is wrong: the adjoint in %d dimensions of %s", i, p.count,
               c->dims, data_names[c->dtype]);
    array_release (&grad, "a gradient");
    free (right);
}

/* <A x, y> = <x, A* y> with the two of the library. */
static void check_pair (const struct cut *c, gs_halo_t *halo, bool on_device)
{
    size_t count = part_of (c, rank).count;
    struct array x = array_allocate (comm, 8 * count, on_device);
    struct array y = array_allocate (comm, 8 * count, on_device);
    double *ax = (double *) x.host, *ay = (double *) y.host;
    double *from_x = calloc (count, 8), *from_y = calloc (count, 8);
    double sums[4] = {0}; /* <A x, y>, <x, A* y>, |A x|^2, |y|^2 */

    data_fill (GS_F64, from_x, seed + 5, rank, count);
    data_fill (GS_F64, from_y, seed + 6, rank, count);
    memcpy (ax, from_x, 8 * count);
    memcpy (ay, from_y, 8 * count);
    array_bring (&x);
    array_bring (&y);
    CHECK_OK (gs_halo_exchange (halo, x.used, NULL));
    CHECK_OK (gs_halo_adjoint (halo, y.used, NULL));
    array_fetch (&x);
    array_fetch (&y);
    for (size_t i = 0; i < count; i++) {
        sums[0] += ax[i] * from_y[i];
        sums[1] += from_x[i] * ay[i];
        sums[2] += ax[i] * ax[i];
        sums[3] += from_y[i] * from_y[i];
    }
    CHECK_OK (multi_wait (comm, gs_allreduce (comm, sums, 4, GS_F64, GS_SUM, NULL)));
    CHECK (fabs (sums[0] - sums[1]) <= 1e-13 * sqrt (sums[2]) * sqrt (sums[3]),
           "the adjoint is none: %.17g and %.17g", sums[0], sums[1]);
    array_release (&x, "x");
    array_release (&y, "y");
    free (from_x);
    free (from_y);
}

static void check_cuts (int rounds)
{
    for (int i = 0; i < rounds; i++) {
        gs_dtype_t dtype = i % 2 ? GS_F64 : (gs_dtype_t) (GS_F16 + (i / 2) % (GSI_DTYPES - 1));
        struct cut c = random_cut (dtype);
        gs_halo_t *halo;
        CHECK_OK (make (&c, &halo));
        if (!halo)
            return;
        for (int on_device = 0; on_device <= multi_any_gpus (); on_device++) {
            check_exchange (&c, halo, on_device);
            if (!gsi_dtype_is_integer (dtype))
                check_adjoint (&c, halo, on_device);
            if (dtype == GS_F64)
                check_pair (&c, halo, on_device);
        }
        CHECK_OK (gs_halo_destroy (halo));
    }
}

/* Two halos in turn, and faces of many messages' pieces. */
static void check_large (void)
{
    struct cut c = {.dims = 3, .grid = {1, size, 1}, .periodic = {1, 1, 1}, .dtype = GS_F64};
    gs_halo_t *halo[2];

    for (int turn = 0; turn < 2; turn++) {
        for (int d = 0; d < DIMS; d++) {
            c.width[d] = (size_t) (2 - turn);
            for (int i = 0; i < c.grid[d]; i++)
                c.begin[d][i + 1] = c.begin[d][i] + (size_t) (d == 1 ? 3 : 150);
        }
        CHECK_OK (make (&c, &halo[turn]));
    }
    for (int turn = 3; turn >= 0; turn--) {
        for (int d = 0; d < DIMS; d++)
            c.width[d] = (size_t) (2 - turn % 2);
        check_exchange (&c, halo[turn % 2], turn > 1 && multi_any_gpus ());
        check_pair (&c, halo[turn % 2], turn > 1 && multi_any_gpus ());
    }
    CHECK_FAILS (gs_comm_destroy (comm), GS_ERR_STATE, "still has 2", "gs_halo_destroy");
    CHECK_OK (gs_halo_destroy (halo[0]));
    CHECK_OK (gs_halo_destroy (halo[1]));
}

/* ---- What is wrong ---- */

static const int one_row[DIMS] = {1, 1, 1}, open_ends[DIMS];

static void check_handles (void)
{
    size_t cells[DIMS] = {4, 4, 4}, width[DIMS] = {1, 1, 1};
    int grid[1] = {size};
    int32_t field[6] = {0};
    gs_halo_t *halo = (gs_halo_t *) field;

    CHECK_OK (gs_halo_destroy (NULL));
    CHECK_FAILS (gs_halo_exchange (NULL, field, NULL), GS_ERR_ARG,
                 "gs_halo_exchange: halo is NULL");
    CHECK_FAILS (gs_halo_adjoint (NULL, field, NULL), GS_ERR_ARG,
                 "gs_halo_adjoint: halo is NULL");
    CHECK_FAILS (gs_halo_create (NULL, 1, grid, cells, width, open_ends, GS_I32, &halo),
                 GS_ERR_ARG, "gs_halo_create: comm is NULL");
    CHECK (!halo, "a halo after a failure");
    CHECK_FAILS (gs_halo_create (comm, 1, grid, cells, width, open_ends, GS_I32, NULL),
                 GS_ERR_ARG, "halo is NULL");
    CHECK_OK (gs_halo_create (comm, 1, grid, cells, width, open_ends, GS_I32, &halo));
    CHECK_FAILS (gs_halo_exchange (halo, NULL, NULL), GS_ERR_ARG, "NULL");
    CHECK_FAILS (gs_halo_exchange (halo, (char *) field + 1, NULL), GS_ERR_ARG, "aligned");
    CHECK_FAILS (gs_halo_adjoint (halo, field, NULL), GS_ERR_UNSUPPORTED, "of GS_I32",
                 "floating or complex");
    CHECK_OK (gs_halo_destroy (halo));
}

/* What one rank gives is told to all, and the communicator goes on. */
static void check_lists (void)
{
    size_t cells[DIMS] = {4, 4, 4}, none[DIMS] = {4, 0, 4}, width[DIMS] = {1, 1, 1};
    size_t huge[DIMS] = {SIZE_MAX / 4, 8, 1};
    int grid[DIMS] = {size, 1, 1}, zero[DIMS] = {size, 0, 1}, other[DIMS] = {size, 2, 1};
    gs_halo_t *halo;

    CHECK_FAILS (gs_halo_create (comm, 0, grid, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "dims is 0: 1 to 3");
    CHECK_FAILS (gs_halo_create (comm, 4, grid, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "dims is 4");
    CHECK_FAILS (gs_halo_create (comm, 2, NULL, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "grid is NULL");
    CHECK_FAILS (gs_halo_create (comm, 2, grid, NULL, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "extents is NULL");
    CHECK_FAILS (gs_halo_create (comm, 2, grid, cells, NULL, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "width is NULL");
    CHECK_FAILS (gs_halo_create (comm, 2, grid, cells, width, NULL, GS_F32, &halo), GS_ERR_ARG,
                 "periodic is NULL");
    CHECK_FAILS (gs_halo_create (comm, 3, zero, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "grid has 0 ranks in dimension 2 of 3");
    CHECK_FAILS (gs_halo_create (comm, 3, grid, none, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "no cells in dimension 2 of 3");
    CHECK_FAILS (gs_halo_create (comm, 2, grid, huge, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "more elements than memory can hold");
    CHECK_FAILS (gs_halo_create (comm, 2, grid, cells, width, open_ends, (gs_dtype_t) 99, &halo),
                 GS_ERR_ARG, "gs_halo_create");
    CHECK_FAILS (gs_halo_create (comm, 2, other, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_ARG, "is not one of", "product");
    if (size == 1)
        return;
    CHECK_FAILS (
        gs_halo_create (comm, 3, grid, rank == 1 ? none : cells, width, open_ends, GS_F32, &halo),
        GS_ERR_ARG, rank == 1 ? "no cells" : "rank 1 (host", rank == 1 ? "2 of 3" : "own");
}

static void check_disagreement (void)
{
    size_t cells[DIMS] = {4, 4, 4}, wide[DIMS] = {4, 5, 4}, width[DIMS] = {1, 1, 1};
    size_t more[DIMS] = {2, 1, 1};
    int grid[DIMS] = {size, 1, 1}, turned[DIMS] = {1, size, 1};
    int last = size - 1;
    bool me = rank == last;
    char name[40];
    gs_halo_t *halo;

    if (size == 1)
        return;
    snprintf (name, sizeof (name), "rank %d (host", last);
    CHECK_FAILS (gs_halo_create (comm, me ? 2 : 3, grid, cells, width, open_ends, GS_F32, &halo),
                 GS_ERR_MISMATCH, name, "number of dimensions");
    CHECK_FAILS (
        gs_halo_create (comm, 2, grid, cells, width, open_ends, me ? GS_F64 : GS_F32, &halo),
        GS_ERR_MISMATCH, name, "dtype");
    CHECK_FAILS (
        gs_halo_create (comm, 2, me ? turned : grid, cells, width, open_ends, GS_F32, &halo),
        GS_ERR_MISMATCH, name, "grid");
    CHECK_FAILS (
        gs_halo_create (comm, 2, grid, cells, me ? more : width, open_ends, GS_F32, &halo),
        GS_ERR_MISMATCH, name, "width");
    CHECK_FAILS (
        gs_halo_create (comm, 2, grid, cells, width, me ? one_row : open_ends, GS_F32, &halo),
        GS_ERR_MISMATCH, name, "periodic");
    CHECK_FAILS (
        gs_halo_create (comm, 2, grid, me ? wide : cells, width, open_ends, GS_F32, &halo),
        GS_ERR_ARG, name, "has 5 cells in dimension 2 of 2", "that of rank 0", "has 4");
}

/* A block that is thinner than the layers that its neighbour has of it; without one it may be. */
static void check_thin (void)
{
    size_t cells[2] = {3, (size_t) (rank == size - 1 ? 2 : 3)}, width[2] = {4, 3};
    int grid[2] = {1, size}, wrapped[2] = {0, 1};
    float field[11 * 9] = {0};
    char name[40];
    gs_halo_t *halo;

    snprintf (name, sizeof (name), "rank %d (host", size - 1);
    CHECK_FAILS (gs_halo_create (comm, 2, grid, cells, width, wrapped, GS_F32, &halo), GS_ERR_ARG,
                 name, "has 2 cells in dimension 2 of 2", "want 3");
    cells[1] = 3;
    CHECK_OK (gs_halo_create (comm, 2, grid, cells, width, wrapped, GS_F32, &halo));
    CHECK_OK (multi_wait (comm, gs_halo_exchange (halo, field, NULL)));
    CHECK_OK (gs_halo_destroy (halo));
}

int main (void)
{
    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    check_cuts (60);
    check_large ();
    check_handles ();
    check_lists ();
    check_disagreement ();
    check_thin ();
    check_cuts (20);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("halos of one to three dimensions, and their adjoint");
}
