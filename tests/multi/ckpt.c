/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt - checkpoints by groups of the ranks: what so many have written, so many others read,
 * every byte; what is wrong is refused, and nothing is lost or changed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "data.h"

#define ARRAYS    28
#define MOST_DIMS 4

static gs_comm_t *world;
static char folder[1100];
static gs_ckpt_layout_t layout;

/* ---- State ---- */

enum kind { REPLICATED, SHARDED, PER_RANK };

struct array {
    enum kind kind;
    gs_dtype_t dtype;
    int dims;
    size_t shape[MOST_DIMS], extents[MOST_DIMS], offsets[MOST_DIMS];
    size_t count, bytes;
    char name[32], *host;
    void *data;
};

struct state {
    gs_comm_t *comm;
    int number;
    struct array array[ARRAYS];
};

static size_t product (const size_t *extents, int dims)
{
    size_t count = 1;

    for (int d = 0; d < dims; d++)
        count *= extents[d];
    return count;
}

static struct array *add (struct state *s, enum kind kind, gs_dtype_t dtype, int dims,
                          const size_t *shape)
{
    struct array *a = &s->array[s->number];

    *a = (struct array){.kind = kind, .dtype = dtype, .dims = dims};
    snprintf (a->name, sizeof (a->name), "%s%d", s->number % 3 ? "x" : "group/deep/x", s->number);
    for (int d = 0; d < dims; d++)
        a->shape[d] = a->extents[d] = shape[d];
    s->number++;
    return a;
}

/* Cuts [shape] in dimension [d] in uneven slabs; with [holes] ranks 1, 4, ... have none. */
static void cut (const struct state *s, struct array *a, int d, bool holes)
{
    int size = gs_comm_size (s->comm), rank = gs_comm_rank (s->comm), parts = 0, mine = -1;

    for (int r = 0; r < size; r++) {
        bool has = !holes || r % 3 != 1;
        mine = r == rank && has ? parts : mine;
        parts += has;
    }
    a->extents[d] = 0;
    if (mine < 0)
        return;
    a->offsets[d] = a->shape[d] * (size_t) (mine * mine) / (size_t) (parts * parts);
    a->extents[d] = a->shape[d] * (size_t) ((mine + 1) * (mine + 1)) / (size_t) (parts * parts) -
                    a->offsets[d];
}

/* Cuts the last two dimensions in blocks, if there are four ranks, or six, ... */
static void cut_in_blocks (const struct state *s, struct array *a)
{
    size_t size = (size_t) gs_comm_size (s->comm), rank = (size_t) gs_comm_rank (s->comm);
    size_t across = size % 2 ? 1 : 2, down = size / across;
    size_t at[2] = {rank / across, rank % across}, of[2] = {down, across};

    for (int i = 0; i < 2; i++) {
        int d = a->dims - 2 + i;
        a->offsets[d] = a->shape[d] * at[i] / of[i];
        a->extents[d] = a->shape[d] * (at[i] + 1) / of[i] - a->offsets[d];
    }
}

static void allocate (struct state *s, bool on_device)
{
    for (int i = 0; i < s->number; i++) {
        struct array *a = &s->array[i];
        a->count = product (a->extents, a->dims);
        a->bytes = a->count * gs_dtype_size (a->dtype);
        a->host = data_allocate (a->bytes);
        memset (a->host, 0x11, a->bytes);
        a->data = a->host;
        if (on_device && a->bytes && i % 4 != 3)
            CHECK_OK (gs_device_alloc (s->comm, a->bytes, &a->data));
    }
}

static void make_state (struct state *s, gs_comm_t *comm)
{
    *s = (struct state){.comm = comm};
    for (int d = GS_F16; d < GSI_DTYPES; d++)
        add (s, REPLICATED, (gs_dtype_t) d, 2, (const size_t[]){3, (size_t) d});
    add (s, REPLICATED, GS_I64, 0, NULL);
    add (s, REPLICATED, GS_F32, 2, (const size_t[]){0, 7});
    add (s, REPLICATED, GS_F64, 1, (const size_t[]){(9 << 17) + 77}); /* blocks, and a bit */
    add (s, REPLICATED, GS_BF16, 1, (const size_t[]){200001});
    cut (s, add (s, SHARDED, GS_F64, 1, (const size_t[]){1000}), 0, false);
    cut (s, add (s, SHARDED, GS_F32, 2, (const size_t[]){61, 33}), 1, true);
    cut_in_blocks (s, add (s, SHARDED, GS_F64, 3, (const size_t[]){40, 150, 187}));
    cut_in_blocks (s, add (s, SHARDED, GS_C64, 4, (const size_t[]){3, 5, 12, 14}));
    cut (s, add (s, SHARDED, GS_I16, 4, (const size_t[]){4, 31, 2, 3}), 1, true);
    cut (s, add (s, SHARDED, GS_U8, 1, (const size_t[]){0}), 0, false);
    add (s, PER_RANK, GS_U64, 1, (const size_t[]){17});
    add (s, PER_RANK, GS_F32, 0, NULL);
    CHECK (s->number == ARRAYS, "%d arrays", s->number);
}

/* The number, in the whole array, of element [i] of this rank's. */
static size_t global_of (const struct array *a, size_t i)
{
    size_t index[MOST_DIMS], at = 0;

    for (int d = a->dims - 1; d >= 0; d--) {
        index[d] = i % a->extents[d] + a->offsets[d];
        i /= a->extents[d];
    }
    for (int d = 0; d < a->dims; d++)
        at = at * a->shape[d] + index[d];
    return at;
}

/* What [a] holds at [seed], made at [out]; of one per rank as [owner]. At 0 it is wiped. */
static void make_array (const struct array *a, int number, uint64_t seed, int owner, char *out)
{
    size_t run = a->kind == SHARDED ? a->extents[a->dims - 1] : a->count;
    int of = a->kind == PER_RANK ? owner : 0;

    if (!seed) {
        memset (out, 0x22, a->bytes);
        return;
    }
    seed += 100 * (uint64_t) number;
    for (size_t i = 0; i < a->count; i += run)
        data_make_run (a->dtype, out, i, seed, of, a->kind == SHARDED ? global_of (a, i) : i,
                       run);
}

static void fill (struct state *s, uint64_t seed)
{
    for (int i = 0; i < s->number; i++) {
        struct array *a = &s->array[i];
        make_array (a, i, seed, gs_comm_rank (s->comm), a->host);
        if (a->data != a->host)
            CHECK_OK (gs_device_copy (s->comm, a->data, a->host, a->bytes, NULL));
    }
}

static void wipe (struct state *s)
{
    fill (s, 0);
}

/* Brings array [i] to the host; whether it is as made at [seed], or wiped for 0. */
static bool is (struct state *s, int i, uint64_t seed, int owner)
{
    struct array *a = &s->array[i];
    char *right = data_allocate (a->bytes);
    bool equal;

    if (a->data != a->host)
        CHECK_OK (gs_device_copy (s->comm, a->host, a->data, a->bytes, NULL));
    CHECK_OK (gs_comm_wait (s->comm, NULL));
    make_array (a, i, seed, owner, right);
    equal = !memcmp (a->host, right, a->bytes);
    data_free (right, a->bytes);
    return equal;
}

static void check (struct state *s, uint64_t seed, const char *when)
{
    for (int i = 0; i < s->number; i++)
        CHECK (is (s, i, seed, gs_comm_rank (s->comm)),
               "%s, array %d of %d dimensions, %s: wrong", when, i, s->array[i].dims,
               data_names[s->array[i].dtype]);
}

static void release (struct state *s)
{
    for (int i = 0; i < s->number; i++) {
        struct array *a = &s->array[i];
        if (a->data != a->host)
            CHECK_OK (gs_device_free (s->comm, a->data));
        CHECK (data_free (a->host, a->bytes), "array %d: written behind the end", i);
    }
}

static void add_array (gs_ckpt_t *ckpt, const struct array *a)
{
    if (a->kind == REPLICATED)
        CHECK_OK (gs_ckpt_add_replicated (ckpt, a->name, a->dims, a->shape, a->dtype, a->data));
    else if (a->kind == PER_RANK)
        CHECK_OK (gs_ckpt_add_per_rank (ckpt, a->name, a->dims, a->shape, a->dtype, a->data));
    else
        CHECK_OK (gs_ckpt_add_sharded (ckpt, a->name, a->dims, a->extents, a->offsets, a->shape,
                                       a->dtype, a->data));
}

static gs_ckpt_t *plan (const struct state *s, const gs_ckpt_opts_t *opts, int except)
{
    gs_ckpt_opts_t with = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;

    if (opts)
        with = *opts;
    with.layout = layout;
    CHECK_OK (gs_ckpt_create (s->comm, folder, &with, &ckpt));
    for (int i = 0; i < s->number; i++)
        if (i != except)
            add_array (ckpt, &s->array[i]);
    CHECK_OK (gs_ckpt_set_attribute (ckpt, s->array[1].name, "units", "K"));
    CHECK_OK (
        gs_ckpt_set_attribute (ckpt, s->array[1].name, "long_name", "temperature in \xc2\xb0"));
    CHECK_OK (gs_ckpt_set_attribute (ckpt, s->array[1].name, "units", "m s-1"));
    CHECK_OK (gs_ckpt_set_bounds (ckpt, s->array[1].name, (const int64_t[]){-2, 0}));
    CHECK_OK (gs_ckpt_commit (ckpt));
    return ckpt;
}

/* ---- Files ---- */

static const char *path_of (int64_t step, const char *end)
{
    static char path[1200];

    snprintf (path, sizeof (path), "%s/ck-%012lld.h5%s", folder, (long long) step, end);
    return path;
}

/* How many files the folder has. The lock, which is there while a plan is, is hidden. */
static int files (void)
{
    DIR *dir = opendir (folder);
    struct dirent *entry;
    int number = 0;

    while (dir && (entry = readdir (dir)))
        number += entry->d_name[0] != '.';
    if (dir)
        closedir (dir);
    return number;
}

/* Rank 0 of the world changes a file, between two barriers. */
static void damage (int64_t step, off_t at, size_t cut_to)
{
    unsigned char byte = 0;
    int fd;

    CHECK_OK (gs_barrier (world, NULL));
    if (!multi_rank ()) {
        fd = open (path_of (step, ""), O_RDWR);
        if (cut_to) {
            CHECK (!ftruncate (fd, (off_t) cut_to), "cannot cut");
        } else {
            CHECK (pread (fd, &byte, 1, at) == 1, "cannot read");
            byte ^= 0x10;
            CHECK (pwrite (fd, &byte, 1, at) == 1, "cannot write");
        }
        close (fd);
    }
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
}

/* ---- What is asserted ---- */

/* A group of the first [n] ranks; NULL on the others. */
static gs_comm_t *first_ranks (int n)
{
    gs_comm_t *comm;

    CHECK_OK (gs_comm_split (world, gs_comm_rank (world) < n ? 0 : GS_COLOR_NONE, 0, &comm));
    return comm;
}

static void save_on (int n, int64_t step)
{
    gs_comm_t *comm = first_ranks (n);
    struct state s;
    gs_ckpt_t *ckpt;

    if (!comm)
        return;
    make_state (&s, comm);
    allocate (&s, multi_any_gpus ());
    fill (&s, (uint64_t) step);
    ckpt = plan (&s, NULL, -1);
    CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    check (&s, (uint64_t) step, "after a write");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    release (&s);
    CHECK_OK (gs_comm_destroy (comm));
}

/* What [saved] ranks have written, on [n]. */
static void load_on (int n, int saved, int64_t step)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_comm_t *comm = first_ranks (n);
    int64_t found = -7;
    struct state s;
    gs_ckpt_t *ckpt;
    int rank;

    if (!comm)
        return;
    rank = gs_comm_rank (comm);
    make_state (&s, comm);
    allocate (&s, multi_any_gpus ());
    wipe (&s);
    if (n != saved) {
        ckpt = plan (&s, &opts, -1);
        CHECK_FAILS (gs_ckpt_read (ckpt, step, &found, NULL), GS_ERR_MISMATCH, "/rank/",
                     "option ranks");
        check (&s, 0, "after a refusal");
        CHECK_OK (gs_ckpt_destroy (ckpt));
    }
    opts.ranks = step % 2 ? GS_CKPT_RANKS_KEEP : GS_CKPT_RANKS_FIRST;
    ckpt = plan (&s, &opts, -1);
    CHECK_OK (gs_ckpt_read (ckpt, step, &found, NULL));
    CHECK (found == step, "found %lld", (long long) found);
    for (int i = 0; i < s.number; i++) {
        bool kept = s.array[i].kind == PER_RANK && n != saved && opts.ranks == GS_CKPT_RANKS_KEEP;
        CHECK (is (&s, i, kept ? 0 : (uint64_t) step, rank < saved ? rank : 0),
               "%d ranks read of %d: array %d is wrong", n, saved, i);
    }
    CHECK_OK (gs_ckpt_destroy (ckpt));
    release (&s);
    CHECK_OK (gs_comm_destroy (comm));
}

static void check_counts (void)
{
    static const int savers[] = {1, 4, 8}, loaders[] = {1, 2, 3, 5, 7, 8};
    int size = gs_comm_size (world);

    for (size_t i = 0; i < sizeof (savers) / sizeof (*savers); i++) {
        int saved = savers[i] < size ? savers[i] : size;
        if ((i && saved <= savers[i - 1]) || /* as many as before */
            (layout == GS_CKPT_LAYOUT_NODE && i != 1 && size >= savers[1])) /* one is enough */
            continue;
        save_on (saved, 10 + saved);
        for (size_t k = 0; k < sizeof (loaders) / sizeof (*loaders) && loaders[k] <= size; k++)
            load_on (loaders[k], saved, 10 + saved);
    }
}

/* What is newest is read; damaged ones are passed over, together. */
static void check_latest (struct state *s, gs_ckpt_t *ckpt)
{
    int64_t found = -7, steps[3] = {0};
    size_t number = 0;
    struct stat facts;

    CHECK_OK (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == -1, "an empty folder has step %lld", (long long) found);
    for (int64_t step = 100; step <= 500; step += 100) {
        fill (s, (uint64_t) step);
        CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    }
    CHECK_OK (gs_ckpt_list (ckpt, steps, 3, &number));
    CHECK (number == 5 && steps[0] == 300 && steps[2] == 500, "%zu steps, %lld to %lld", number,
           (long long) steps[0], (long long) steps[2]);
    wipe (s);
    CHECK_OK (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL));
    check (s, 500, "the newest");
    CHECK (!stat (path_of (500, ""), &facts), "no file");
    damage (500, facts.st_size / 2, 0);
    damage (400, 0, (size_t) facts.st_size - 1);
    damage (300, 200, 0);
    wipe (s);
    CHECK_FAILS (gs_ckpt_read (ckpt, 500, &found, NULL), GS_ERR_FORMAT, "000500.h5", "damaged");
    CHECK_FAILS (gs_ckpt_read (ckpt, 400, &found, NULL), GS_ERR_FORMAT, "000400.h5");
    CHECK_FAILS (gs_ckpt_read (ckpt, 300, &found, NULL), GS_ERR_FORMAT, "000300.h5");
    CHECK_FAILS (gs_ckpt_read (ckpt, 450, &found, NULL), GS_ERR_IO, "000450.h5", "No such file");
    check (s, 0, "after damaged files");
    CHECK_OK (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == 200, "found %lld", (long long) found);
    check (s, 200, "the last whole one");
    CHECK_FAILS (gs_ckpt_write (ckpt, 200, NULL), GS_ERR_STATE, "000200.h5");
    fill (s, 300);
    CHECK_OK (gs_ckpt_write (ckpt, 300, NULL)); /* a damaged one is replaced */
    wipe (s);
    CHECK_OK (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL));
    check (s, 300, "the one that was replaced");
    damage (300, 200, 0);
    CHECK_OK (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL));
    damage (200, facts.st_size - 1, 0);
    damage (100, facts.st_size - 4000, 0);
    CHECK_FAILS (gs_ckpt_read (ckpt, GS_CKPT_LATEST, &found, NULL), GS_ERR_FORMAT,
                 "no checkpoint", folder);
    check (s, 200, "after there is none");
}

static void remove_all (void)
{
    char command[1200];

    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
    if (!multi_rank ()) {
        snprintf (command, sizeof (command), "rm -rf '%s'/*", folder);
        CHECK (!system (command), "cannot remove files");
    }
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
}

/* Retention; a step again; replicas that are none; other plans. */
static void check_refusals (struct state *s)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt = plan (s, &opts, -1), *other;
    int rank = gs_comm_rank (s->comm), last = gs_comm_size (s->comm) - 1;
    struct array *odd = &s->array[3];

    fill (s, 7);
    CHECK_OK (gs_ckpt_write (ckpt, 7, NULL));
    CHECK_FAILS (gs_ckpt_write (ckpt, 7, NULL), GS_ERR_STATE, "000007.h5", "overwrite");
    CHECK_FAILS (gs_ckpt_write (ckpt, -1, NULL), GS_ERR_ARG, "step is -1");
    if (last) {
        CHECK_FAILS (gs_ckpt_write (ckpt, rank == last ? 9 : 8, NULL), GS_ERR_MISMATCH, "step 8",
                     "step 9");
        if (rank == last && odd->data == odd->host)
            odd->host[0] ^= 1;
        CHECK_FAILS (gs_ckpt_write (ckpt, 8, NULL), GS_ERR_MISMATCH,
                     "gs_ckpt_write: ", odd->name);
        if (rank == last)
            odd->host[0] ^= 1;
    }
    CHECK_OK (multi_wait (s->comm, gs_barrier (s->comm, NULL)));
    CHECK (files () == 1, "%d files", files ());
    CHECK_OK (gs_ckpt_destroy (ckpt));
    opts.overwrite = 1;
    other = plan (s, &opts, 5);
    fill (s, 8);
    CHECK_FAILS (gs_ckpt_read (other, 7, NULL, NULL), GS_ERR_MISMATCH, s->array[5].name,
                 "allow_extra");
    CHECK_OK (gs_ckpt_write (other, 7, NULL));
    CHECK_OK (gs_ckpt_destroy (other));
    ckpt = plan (s, &opts, -1);
    CHECK_FAILS (gs_ckpt_read (ckpt, 7, NULL, NULL), GS_ERR_MISMATCH, s->array[5].name,
                 "allow_missing");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    opts.allow_missing = 1;
    ckpt = plan (s, &opts, -1);
    wipe (s);
    CHECK_OK (gs_ckpt_read (ckpt, 7, NULL, NULL));
    for (int i = 0; i < s->number; i++)
        CHECK (is (s, i, i == 5 ? 0 : 8, rank), "array %d of what is there", i);
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

static void check_shapes (gs_comm_t *comm)
{
    size_t shape[] = {4, 6};
    double data[24] = {0};
    gs_ckpt_t *ckpt;

    for (int turn = 0; turn < 3; turn++) {
        CHECK_OK (gs_ckpt_create (comm, folder, NULL, &ckpt));
        shape[0] = turn == 1 ? 3 : 4;
        CHECK_OK (
            gs_ckpt_add_replicated (ckpt, "u", 2, shape, turn == 2 ? GS_I64 : GS_F64, data));
        CHECK_OK (gs_ckpt_commit (ckpt));
        if (!turn)
            CHECK_OK (gs_ckpt_write (ckpt, 1, NULL));
        else
            CHECK_FAILS (gs_ckpt_read (ckpt, 1, NULL, NULL), GS_ERR_MISMATCH, "/replicated/u",
                         turn == 1 ? "[4, 6]" : "GS_I64");
        CHECK_OK (gs_ckpt_destroy (ckpt));
    }
}

static void check_retention (gs_comm_t *comm)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t steps[8];
    size_t number;
    double data = 1;
    gs_ckpt_t *ckpt;

    opts.keep_last = 2;
    opts.keep_every = 40;
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &ckpt));
    CHECK_OK (gs_ckpt_add_replicated (ckpt, "x", 0, NULL, GS_F64, &data));
    CHECK_OK (gs_ckpt_commit (ckpt));
    for (int64_t step = 10; step <= 100; step += 10)
        CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    CHECK_OK (gs_ckpt_list (ckpt, steps, 8, &number));
    CHECK (number == 4 && steps[0] == 40 && steps[1] == 80 && steps[2] == 90 && steps[3] == 100,
           "%zu steps stay", number);
    CHECK_OK (gs_ckpt_write (ckpt, 50, NULL)); /* gone back to 40: what was later is left alone */
    CHECK_OK (gs_ckpt_write (ckpt, 51, NULL));
    CHECK_OK (gs_ckpt_write (ckpt, 52, NULL));
    CHECK_OK (gs_ckpt_list (ckpt, steps, 8, &number));
    CHECK (number == 6 && steps[0] == 40 && steps[1] == 51 && steps[2] == 52 && steps[3] == 80,
           "%zu steps stay", number);
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

/* Where blocks are no whole; what differs between ranks. */
static void check_commits (gs_comm_t *comm)
{
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm);
    size_t shape = 10 * (size_t) size, ten = 10, at = 10 * (size_t) rank, wrong;
    double data[11] = {0};
    gs_ckpt_t *ckpt;

    for (int turn = 0; turn < 3; turn++) {
        bool odd = rank == size - 1;
        CHECK_OK (gs_ckpt_create (comm, folder, NULL, &ckpt));
        wrong = odd && turn == 0 ? 9 : odd && turn == 2 ? 11 : 10;
        CHECK_OK (gs_ckpt_add_sharded (ckpt, "u", 1, &wrong,
                                       turn == 1 && odd && size > 1 ? &(size_t){at - 1} : &at,
                                       &shape, GS_F64, data));
        if (turn == 1 && size == 1)
            CHECK_OK (gs_ckpt_commit (ckpt));
        else
            CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_ARG, "array 'u'",
                         turn == 0   ? "elements"
                         : turn == 1 ? "overlap"
                                     : "outside");
        CHECK_OK (gs_ckpt_destroy (ckpt));
    }
    CHECK_OK (gs_ckpt_create (comm, folder, NULL, &ckpt));
    CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_ARG, "nothing was added");
    CHECK_OK (gs_ckpt_add_per_rank (ckpt, rank ? "b" : "a", 1, &ten, GS_F64, data));
    if (size > 1)
        CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_MISMATCH, "'a'", "'b'");
    CHECK_FAILS (gs_ckpt_write (ckpt, 1, NULL), GS_ERR_STATE, "gs_ckpt_commit");
    CHECK_FAILS (gs_ckpt_add_per_rank (ckpt, "../x", 1, &ten, GS_F64, data), GS_ERR_ARG, "../x");
    CHECK_FAILS (gs_ckpt_add_per_rank (ckpt, "a//b", 1, &ten, GS_F64, data), GS_ERR_ARG, "a//b");
    CHECK_FAILS (gs_ckpt_add_per_rank (ckpt, "/a", 1, &ten, GS_F64, data), GS_ERR_ARG, "'/a'");
    CHECK_FAILS (gs_ckpt_add_per_rank (ckpt, rank ? "b" : "a", 1, &ten, GS_F64, data), GS_ERR_ARG,
                 "already");
    CHECK_FAILS (gs_ckpt_add_per_rank (ckpt, rank ? "b/c" : "a/c", 1, &ten, GS_F64, data),
                 GS_ERR_ARG, "group");
    CHECK_FAILS (gs_ckpt_set_attribute (ckpt, "z", "units", "m"), GS_ERR_ARG, "'z'");
    CHECK_FAILS (gs_ckpt_set_attribute (ckpt, rank ? "b" : "a", "gs_x", "m"), GS_ERR_ARG, "gs_");
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK_OK (gs_ckpt_create (comm, "/nowhere/at all", NULL, &ckpt));
    CHECK_OK (gs_ckpt_add_per_rank (ckpt, "a", 1, &ten, GS_F64, data));
    CHECK_FAILS (gs_ckpt_commit (ckpt), GS_ERR_IO, "/nowhere/at all", "No such file");
    CHECK_OK (gs_ckpt_destroy (ckpt));
}

int main (void)
{
    const char *tmp = getenv ("TMPDIR");
    struct state s;
    gs_ckpt_t *ckpt;

    if (gs_ckpt_create (NULL, "x", NULL, &ckpt) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    world = multi_create (NULL);
    snprintf (folder, sizeof (folder), "%s/checkpoints", tmp ? tmp : "/tmp");
    CHECK (multi_rank () || !mkdir (folder, 0777) || errno == EEXIST, "cannot make %s", folder);
    CHECK_OK (multi_wait (world, gs_barrier (world, NULL)));
    for (layout = GS_CKPT_LAYOUT_SINGLE; layout <= GS_CKPT_LAYOUT_NODE; layout++) {
        check_counts ();
        remove_all ();
    }
    layout = GS_CKPT_LAYOUT_AUTO;
    make_state (&s, world);
    allocate (&s, multi_any_gpus ());
    ckpt = plan (&s, NULL, -1);
    check_latest (&s, ckpt);
    CHECK_OK (gs_ckpt_destroy (ckpt));
    remove_all ();
    check_refusals (&s);
    release (&s);
    check_shapes (world);
    remove_all ();
    check_retention (world);
    remove_all ();
    check_commits (world);
    CHECK (multi_rank () || !rmdir (folder), "%s is not empty: %s", folder, strerror (errno));
    CHECK_OK (gs_comm_destroy (world));
    return multi_end ("checkpoints: any number of ranks reads what any other wrote");
}
