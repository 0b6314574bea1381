/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state - a small state of all types, the same in each version: writes it, reads it and judges
 * every value, and compares two files of it. check.py knows it, too.
 *
 *   state.mt write DIR STEP
 *   state.mt write-node DIR STEP    with a file for each node
 *   state.mt read DIR STEP RANKS    what so many ranks wrote
 *   state.mt compare FILE FILE      without gradsync
 *   state.mt write-blocks DIR STEP  an array of two blocks of checksums, and nothing else
 *   state.mt write-field DIR STEP   a field in blocks of more than that
 *   state.mt write-field-node DIR STEP
 */
#include "../multi/data.h"

#define ARRAYS        40
#define MOST_DIMS     3
#define TRAILER_WORDS 512

enum kind { REPLICATED, SHARDED, PER_RANK };

struct array {
    enum kind kind;
    const char *name;
    gs_dtype_t dtype;
    int dims;
    size_t shape[MOST_DIMS], extents[MOST_DIMS], offsets[MOST_DIMS];
    size_t count, bytes;
    char *data;
};

static gs_comm_t *world;
static struct array array[ARRAYS];
static int arrays;

/* ---- The state ---- */

static struct array *add (enum kind kind, const char *name, gs_dtype_t dtype, int dims,
                          const size_t *shape)
{
    struct array *a = &array[arrays++];

    *a = (struct array){.kind = kind, .name = name, .dtype = dtype, .dims = dims};
    for (int d = 0; d < dims; d++)
        a->shape[d] = a->extents[d] = shape[d];
    return a;
}

static void cut (struct array *a, int d, size_t part, size_t parts)
{
    a->offsets[d] = a->shape[d] * part / parts;
    a->extents[d] = a->shape[d] * (part + 1) / parts - a->offsets[d];
}

static void add_sharded (const char *name, gs_dtype_t dtype, int dims, const size_t *shape)
{
    struct array *a = add (SHARDED, name, dtype, dims, shape);
    size_t rank = (size_t) gs_comm_rank (world), size = (size_t) gs_comm_size (world);

    if (dims == 2 && size % 2 == 0) {
        cut (a, 0, rank / 2, size / 2);
        cut (a, 1, rank % 2, 2);
    } else {
        cut (a, 0, rank, size);
    }
}

static void make_state (void)
{
    static const char *const types[] = {NULL,        "types/f16", "types/bf16", "types/f32",
                                        "types/f64", "types/i8",  "types/i16",  "types/i32",
                                        "types/i64", "types/u8",  "types/u16",  "types/u32",
                                        "types/u64", "types/c64", "types/c128"};

    for (int d = GS_F16; d <= GS_C128; d++)
        add (REPLICATED, types[d], (gs_dtype_t) d, 2, (const size_t[]){3, 5});
    add (REPLICATED, "bits/f16", GS_F16, 1, (const size_t[]){9});
    add (REPLICATED, "bits/bf16", GS_BF16, 1, (const size_t[]){9});
    add (REPLICATED, "model/conv1/weight", GS_F32, 2, (const size_t[]){33, 32});
    add (REPLICATED, "step", GS_I64, 0, NULL);
    add (REPLICATED, "empty", GS_F32, 2, (const size_t[]){0, 7});
    add_sharded ("u", GS_F64, 2, (const size_t[]){6, 10});
    add_sharded ("ocean/temp", GS_C64, 3, (const size_t[]){4, 3, 5});
    add_sharded ("flags", GS_U8, 1, (const size_t[]){13});
    add (PER_RANK, "rng", GS_U64, 1, (const size_t[]){4});
    add (PER_RANK, "seed", GS_I32, 0, NULL);
    for (int i = 0; i < arrays; i++) {
        struct array *a = &array[i];
        a->count = 1;
        for (int d = 0; d < a->dims; d++)
            a->count *= a->extents[d];
        a->bytes = a->count * gs_dtype_size (a->dtype);
        a->data = data_allocate (a->bytes);
    }
}

/* Zeros, one, largest, smallest and smallest normal one, infinities and one that is no number. */
static const uint16_t bits_f16[] = {0,      0x8000, 0x3c00, 0x7bff, 0x0001,
                                    0x0400, 0x7c00, 0xfc00, 0x7e00};
static const uint16_t bits_bf16[] = {0,      0x8000, 0x3f80, 0x7f7f, 0x0001,
                                     0x0080, 0x7f80, 0xff80, 0x7fc0};

/* Element [i] of the whole of array [n], made at [out]: small numbers that every type has. */
static void make_element (int n, size_t i, char *out)
{
    gs_dtype_t dtype = array[n].dtype;
    int small = (int) (((size_t) n * 37 + i * 11) % 101), next = (small + 11) % 101;
    uint64_t bits = (uint64_t) (small + 1) * UINT64_C (0x0102030405060708);
    double fine = dtype == GS_F32 || dtype == GS_C64    ? 0x1p-18
                  : dtype == GS_F64 || dtype == GS_C128 ? 0x1p-40
                                                        : 0;

    if (!strncmp (array[n].name, "bits/", 5))
        memcpy (out, dtype == GS_F16 ? &bits_f16[i] : &bits_bf16[i], 2);
    else if (gsi_dtype_is_integer (dtype))
        memcpy (out, &bits, gs_dtype_size (dtype));
    else
        wide_store (dtype, out, 0, (small - 50) / 4.0 + fine, (next - 50) / 4.0 - fine);
}

/* The number, in the whole array, of element [i] of this rank's, or of those of rank [owner]. */
static size_t number_of (const struct array *a, int owner, size_t i)
{
    size_t index[MOST_DIMS], at = 0;

    if (a->kind == PER_RANK)
        return (size_t) owner * a->count + i;
    for (int d = a->dims - 1; d >= 0; d--) {
        index[d] = i % a->extents[d] + a->offsets[d];
        i /= a->extents[d];
    }
    for (int d = 0; d < a->dims; d++)
        at = at * a->shape[d] + index[d];
    return at;
}

static void fill (void)
{
    for (int n = 0; n < arrays; n++)
        for (size_t i = 0; i < array[n].count; i++)
            make_element (n, number_of (&array[n], gs_comm_rank (world), i),
                          array[n].data + i * gs_dtype_size (array[n].dtype));
}

static void check_values (int saved)
{
    int rank = gs_comm_rank (world), owner = rank < saved ? rank : 0;
    char right[16];

    for (int n = 0; n < arrays; n++)
        for (size_t i = 0; i < array[n].count; i++) {
            size_t bytes = gs_dtype_size (array[n].dtype);
            make_element (n, number_of (&array[n], owner, i), right);
            CHECK (!memcmp (array[n].data + i * bytes, right, bytes), "%s: element %zu is wrong",
                   array[n].name, i);
        }
}

static gs_ckpt_t *plan (const char *dir, gs_ckpt_layout_t layout)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *ckpt;

    opts.ranks = GS_CKPT_RANKS_FIRST;
    opts.layout = layout;
    CHECK_OK (gs_ckpt_create (world, dir, &opts, &ckpt));
    for (int n = 0; n < arrays; n++) {
        const struct array *a = &array[n];
        if (a->kind == REPLICATED)
            CHECK_OK (
                gs_ckpt_add_replicated (ckpt, a->name, a->dims, a->shape, a->dtype, a->data));
        else if (a->kind == PER_RANK)
            CHECK_OK (gs_ckpt_add_per_rank (ckpt, a->name, a->dims, a->shape, a->dtype, a->data));
        else
            CHECK_OK (gs_ckpt_add_sharded (ckpt, a->name, a->dims, a->extents, a->offsets,
                                           a->shape, a->dtype, a->data));
    }
    CHECK_OK (gs_ckpt_set_attribute (ckpt, "u", "units", "m s-1"));
    CHECK_OK (gs_ckpt_set_attribute (ckpt, "u", "long_name", "Str\xc3\xb6mung"));
    CHECK_OK (gs_ckpt_set_bounds (ckpt, "u", (const int64_t[]){0, -2}));
    CHECK_OK (gs_ckpt_set_bounds (ckpt, "seed", NULL));
    CHECK_OK (gs_ckpt_commit (ckpt));
    return ckpt;
}

static void free_state (void)
{
    for (int n = 0; n < arrays; n++)
        CHECK (data_free (array[n].data, array[n].bytes), "%s: written behind its end",
               array[n].name);
}

static void save_state (const char *dir, int64_t step, gs_ckpt_layout_t layout)
{
    gs_ckpt_t *ckpt;

    make_state ();
    fill ();
    ckpt = plan (dir, layout);
    CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    CHECK_OK (gs_ckpt_destroy (ckpt));
    free_state ();
}

static void load_state (const char *dir, int64_t step, int saved)
{
    int64_t found = -7;
    gs_ckpt_t *ckpt;

    make_state ();
    for (int n = 0; n < arrays; n++)
        memset (array[n].data, 0x22, array[n].bytes);
    ckpt = plan (dir, GS_CKPT_LAYOUT_AUTO);
    CHECK_OK (gs_ckpt_read (ckpt, step, &found, NULL));
    CHECK (found == step, "found step %lld", (long long) found);
    check_values (saved);
    CHECK_OK (gs_ckpt_destroy (ckpt));
    free_state ();
}

static void save_blocks (const char *dir, int64_t step)
{
    size_t bytes = ((size_t) 8 << 20) + 24;
    unsigned char *data = data_allocate (bytes);
    gs_ckpt_t *ckpt;

    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char) (i % 251);
    CHECK_OK (gs_ckpt_create (world, dir, NULL, &ckpt));
    CHECK_OK (gs_ckpt_add_replicated (ckpt, "long", 1, &bytes, GS_U8, data));
    CHECK_OK (gs_ckpt_commit (ckpt));
    CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    CHECK_OK (gs_ckpt_destroy (ckpt));
    CHECK (data_free (data, bytes), "written behind the end");
}

/* Each quarter of it has more than 8 MiB; on 4 ranks they alternate in its rows. */
static void save_field (const char *dir, int64_t step, gs_ckpt_layout_t layout)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    struct array *u;
    gs_ckpt_t *ckpt;

    add_sharded ("u", GS_F32, 2, (const size_t[]){3001, 3003});
    u = &array[0];
    u->count = u->extents[0] * u->extents[1];
    u->bytes = u->count * sizeof (float);
    u->data = data_allocate (u->bytes);
    for (size_t i = 0; i < u->count; i++)
        ((float *) (void *) u->data)[i] = (float) number_of (u, 0, i);
    opts.layout = layout;
    CHECK_OK (gs_ckpt_create (world, dir, &opts, &ckpt));
    CHECK_OK (gs_ckpt_add_sharded (ckpt, u->name, u->dims, u->extents, u->offsets, u->shape,
                                   u->dtype, u->data));
    CHECK_OK (gs_ckpt_commit (ckpt));
    CHECK_OK (gs_ckpt_write (ckpt, step, NULL));
    CHECK_OK (gs_ckpt_destroy (ckpt));
    free_state ();
}

/* ---- Two files ---- */

/* The words of a trailer, as doc/checkpoint-format.md numbers them. */
enum word {
    FILE_BYTES = 2,
    IMAGE_BYTES,
    IMAGE_CRC,
    TABLE_OFFSET,
    BLOCKS,
    TABLE_CRC,
    INDEX_OFFSET = 17,
    INDEX_BYTES,
    INDEX_CRC
};

struct file {
    const char *path;
    unsigned char *data;
    size_t bytes;
    uint64_t trailer[TRAILER_WORDS];
    uint64_t (*table)[3]; /* [BLOCKS] offset, bytes, checksum */
};

static _Noreturn void give_up (const char *path, const char *why)
{
    fprintf (stderr, "%s: %s\n", path, why);
    exit (EXIT_FAILURE);
}

static void read_whole (struct file *f, const char *path)
{
    FILE *stream = fopen (path, "rb");
    size_t table_bytes;

    *f = (struct file){.path = path, .data = malloc (1 << 20)};
    if (!stream || !f->data)
        give_up (path, "cannot be read");
    f->bytes = fread (f->data, 1, 1 << 20, stream);
    fclose (stream);
    if (f->bytes > sizeof (f->trailer))
        memcpy (f->trailer, f->data + f->bytes - sizeof (f->trailer), sizeof (f->trailer));
    table_bytes = f->trailer[BLOCKS] * sizeof (*f->table);
    if (f->trailer[FILE_BYTES] != f->bytes || f->trailer[BLOCKS] < 3 ||
        f->trailer[TABLE_OFFSET] + table_bytes > f->bytes || !(f->table = malloc (table_bytes)))
        give_up (path, "no trailer at its end");
    memcpy (f->table, f->data + f->trailer[TABLE_OFFSET], table_bytes);
}

/* What a place in the file is called, if it depends on the time of the write. */
static const char *timed (const struct file *f, size_t at)
{
    uint64_t row = f->trailer[BLOCKS] - 2; /* of /gs/time: /gs/ranks is the last */
    size_t end = f->bytes - sizeof (f->trailer);
    struct {
        const char *name;
        size_t at;
    } places[] = {{"/gs/time", f->table[row][0]},
                  {"its checksum", f->trailer[TABLE_OFFSET] + 24 * row + 16},
                  {"that of the table", end + TABLE_CRC * sizeof (uint64_t)},
                  {"that of the trailer", f->bytes - 8}};

    for (int i = 0; i < 4; i++)
        if (at >= places[i].at && at < places[i].at + 8)
            return places[i].name;
    return NULL;
}

/* Row [i] of those that are not of the index, which has its own before the last three. */
static uint64_t (*row_of (const struct file *f, uint64_t i))[3]
{
    uint64_t index = (f->trailer[INDEX_BYTES] + (8 << 20) - 1) / (8 << 20);

    return &f->table[i + 3 + index < f->trailer[BLOCKS] ? i : i + index];
}

static uint64_t rows_of (const struct file *f)
{
    return f->trailer[BLOCKS] - (f->trailer[INDEX_BYTES] + (8 << 20) - 1) / (8 << 20);
}

/* What any layout has in common: the trailer, and in the same order the same data. */
static void compare_meaning (const struct file *a, const struct file *b)
{
    uint64_t rows = rows_of (a);

    for (int w = 0; w < TRAILER_WORDS - 1; w++)
        if (w < FILE_BYTES || (w > TABLE_CRC && w < INDEX_OFFSET) || w > INDEX_CRC)
            CHECK (a->trailer[w] == b->trailer[w],
                   "word %d of the trailers differs: %llx and %llx", w,
                   (unsigned long long) a->trailer[w], (unsigned long long) b->trailer[w]);
    CHECK (rows == rows_of (b), "%d and %d blocks", (int) rows, (int) rows_of (b));
    for (uint64_t i = 0; i < rows && rows == rows_of (b); i++) {
        const uint64_t *x = *row_of (a, i), *y = *row_of (b, i);
        CHECK (x[1] == y[1], "block %d has another length", (int) i);
        CHECK (x[2] == y[2] || i == rows - 2, "block %d has another checksum", (int) i);
    }
}

/*
 * HDF5 may lay out the beginning otherwise in another version, and then the data lie elsewhere.
 * Where it is the same, all of the file is the same, but for the time.
 */
static void compare (const char *path, const char *other)
{
    struct file a, b;

    read_whole (&a, path);
    read_whole (&b, other);
    compare_meaning (&a, &b);
    if (a.trailer[IMAGE_BYTES] != b.trailer[IMAGE_BYTES] ||
        a.trailer[IMAGE_CRC] != b.trailer[IMAGE_CRC]) {
        printf ("same data and trailer; the beginning is laid out otherwise\n");
    } else {
        CHECK (a.bytes == b.bytes, "%zu and %zu bytes", a.bytes, b.bytes);
        for (size_t i = 0; i < a.bytes && i < b.bytes; i++)
            CHECK (a.data[i] == b.data[i] || timed (&a, i), "byte %zu differs", i);
        if (!multi_failures)
            printf ("same bytes, but for the time\n");
    }
    for (int i = 0; i < 2; i++) {
        free (i ? b.data : a.data);
        free (i ? b.table : a.table);
    }
}

static int usage (void)
{
    fprintf (stderr, "state.mt write[-node] DIR STEP | read DIR STEP RANKS | compare FILE FILE | "
                     "write-blocks DIR STEP | write-field[-node] DIR STEP\n");
    return 99;
}

int main (int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    int64_t step = argc > 3 ? atoll (argv[3]) : 0;

    if (!strcmp (what, "compare")) {
        compare (argv[2], argv[3]);
        return multi_failures ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    if (strncmp (what, "write", 5) && (strcmp (what, "read") || argc < 5))
        return usage ();
    world = multi_create (NULL);
    if (!strcmp (what, "read"))
        load_state (argv[2], step, atoi (argv[4]));
    else if (!strcmp (what, "write"))
        save_state (argv[2], step, GS_CKPT_LAYOUT_SINGLE);
    else if (!strcmp (what, "write-node"))
        save_state (argv[2], step, GS_CKPT_LAYOUT_NODE);
    else if (!strcmp (what, "write-field"))
        save_field (argv[2], step, GS_CKPT_LAYOUT_SINGLE);
    else if (!strcmp (what, "write-field-node"))
        save_field (argv[2], step, GS_CKPT_LAYOUT_NODE);
    else
        save_blocks (argv[2], step);
    CHECK_OK (gs_comm_destroy (world));
    return multi_end ("done");
}
