/* SPDX-License-Identifier: BSD-3-Clause */
/* options - the command line of gs-bench. */
#include "tools/bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tools/bench/modes.h"

#define MIN_ROUNDS 11 /* fewer make a median that noise can move */
#define MAX_ROUNDS 10000
#define MAX_RANKS  256 /* that one process starts */
#define MAX_CALLS  1000000000
#define MAX_BYTES  (INT64_C (1) << 40)
#define MAX_US     1000000000

static const struct bench_op *const ops[] = {
    &bench_op_allreduce_avg, &bench_op_reduce,   &bench_op_reduce_scatter, &bench_op_broadcast,
    &bench_op_gather,        &bench_op_scatter,  &bench_op_allgather,      &bench_op_allgatherv,
    &bench_op_alltoall,      &bench_op_sendrecv, &bench_op_messages,       &bench_op_halo,
    &bench_op_bootstrap,     &bench_op_queue,    &bench_op_bucket,         &bench_op_copy,
    &bench_op_record,        &bench_op_reducer,  &bench_op_split,          &bench_op_ckpt,
    &bench_op_checksum,
};

static const struct {
    gs_dtype_t dtype;
    const char *name;
} dtypes[] = {
#define NAMED(NAME, name, ...) {GS_##NAME, #name},
#define GSI_REDUCED            NAMED
#define GSI_FLOATING           NAMED
#define GSI_INTEGER            NAMED
#define GSI_COMPLEX            NAMED
#include "base/dtype.def"
};

#define COUNT(array) (sizeof (array) / sizeof (*(array)))

static const char help_head[] =
    "Usage: LAUNCHER gs-bench OPERATION [OPTION]...\n"
    "Measures an operation of gradsync, in turn with the plain call that does the same.\n"
    "LAUNCHER is, for example, 'srun --mpi=pmix -n 8' or 'mpirun -n 8'; none for one rank.\n"
    "\n";

static const char help_tail[] =
    "\n"
    "  --min-bytes N    smallest message, default one element; K, M, G: times 1024\n"
    "  --max-bytes N    largest message, default 4M; sizes double in between\n"
    "  --dtype TYPE     f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 c64 c128\n"
    "                   f8_e4m3 f8_e5m2, default f32\n"
    "  --memory WHERE   of arrays: host (default), shared (of gs_device_alloc) or device\n"
    "  --ranks N        start N ranks on this host, without LAUNCHER; with --memory device\n"
    "  --iterations N   calls in a round, default: as many as take about 2 ms\n"
    "  --warmup N       calls before the first round of a size, default 10; of a model, 3; of\n"
    "                   checkpoints, 1\n"
    "  --rounds N       rounds of each side, default 21, at least 11\n"
    "  --json           an object a line: op, dtype, bytes, ranks, nodes, transport, time_us,\n"
    "                   raw_time_us, ratio (raw/ours: above 1 gradsync is the faster one)\n"
    "  --help           this text\n"
    "  --version        the version\n"
    "\n"
    "For reducer:\n"
    "  --model NAME     resnet50, transformer (GPT-2 small), mlp, or a file with a line for "
    "each\n"
    "                   parameter: name, type, extents\n"
    "  --mode LIST      per-tensor,flat,no-overlap,overlap,packed or all (default)\n"
    "  --compute-us N   work before the gradients are ready, in microseconds of an idle core\n"
    "  --bucket-bytes N, --first-bytes N, --last-bytes N   of buckets, default the reducer's\n"
    "  --wire TYPE      f16, bf16 or fp8: what gradients travel as, default as they are\n"
    "\n"
    "For ckpt:\n"
    "  --dir DIR        folder of the files, on the file system to be measured\n"
    "  --bytes N        of the arrays in a checkpoint, default 256M\n"
    "  --replicated N   per cent of them that all ranks have, default 50; the rest is sharded\n"
    "  --async          measure gs_ckpt_write_async, too\n"
    "  --direct         past the system's cache (O_DIRECT)\n"
    "  --keep           leave the last checkpoint\n"
    "\n"
    "A time is that of one call: the median over rounds of the slowest rank's mean in a round.\n"
    "bytes is what one rank gives. Times without a raw call to compare with have a raw time of\n"
    "'-' (null in JSON). Exit status: 0; 1 after a failure; 2 for a wrong option.\n";

static void print_help (void)
{
    fputs (help_head, stdout);
    for (size_t i = 0; i < COUNT (ops); i++)
        printf ("  %-16s %s\n", ops[i]->name, ops[i]->help);
    fputs (help_tail, stdout);
}

/* One voice is enough where all ranks read the same command line. */
static bool first_process (void)
{
    const char *rank = getenv ("PMIX_RANK");

    return !rank || !strcmp (rank, "0");
}

static bool wrong (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

static bool wrong (const char *format, ...)
{
    va_list ap;

    if (!first_process ())
        return false;
    fprintf (stderr, "gs-bench: ");
    va_start (ap, format);
    vfprintf (stderr, format, ap);
    va_end (ap);
    fprintf (stderr, "\nTry 'gs-bench --help'.\n");
    return false;
}

const char *bench_dtype_name (gs_dtype_t dtype)
{
    for (size_t i = 0; i < COUNT (dtypes); i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return "unknown";
}

bool bench_dtype_find (const char *name, gs_dtype_t *dtype)
{
    for (size_t i = 0; i < COUNT (dtypes); i++) {
        if (!strcmp (dtypes[i].name, name)) {
            *dtype = dtypes[i].dtype;
            return true;
        }
    }
    return false;
}

static bool parse_dtype (const char *text, gs_dtype_t *dtype)
{
    if (bench_dtype_find (text, dtype))
        return true;
    return wrong (
        "--dtype %s: not one of f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 c64 c128 "
        "f8_e4m3 f8_e5m2",
        text);
}

static bool parse_wire (const char *text, gs_dtype_t *wire)
{
    if (bench_dtype_find (text, wire) && gsi_dtype_is_reduced (*wire))
        return true;
    return wrong ("--wire %s: not f16, bf16, f8_e4m3 or f8_e5m2", text);
}

/* Names with commas between. */
static bool parse_modes (const char *text, unsigned *modes)
{
    *modes = 0;
    for (const char *at = text;; at++) {
        size_t length = strcspn (at, ",");
        char name[32];
        unsigned found;
        snprintf (name, sizeof (name), "%.*s", length < 32 ? (int) length : 0, at);
        found = strcmp (name, "all") != 0 ? bench_mode_find (name) : BENCH_CHOSEN_MODES;
        if (!found)
            return wrong ("--mode %s: '%.*s' is not one of per-tensor flat no-overlap overlap "
                          "packed all",
                          text, (int) length, at);
        *modes |= found;
        at += length;
        if (!*at)
            return true;
    }
}

static bool parse_number (const char *option, const char *text, int64_t low, int64_t high,
                          int64_t *value)
{
    char *end;

    errno = 0;
    *value = strtoimax (text, &end, 10);
    if (!errno && end != text && !*end && *value >= low && *value <= high)
        return true;
    return wrong ("--%s %s: not a whole number from %" PRId64 " to %" PRId64, option, text, low,
                  high);
}

static bool parse_int (const char *option, const char *text, int low, int high, int *value)
{
    int64_t wide;

    if (!parse_number (option, text, low, high, &wide))
        return false;
    *value = (int) wide;
    return true;
}

/* A number of bytes, with K, M or G. */
static bool parse_bytes (const char *option, const char *text, size_t *bytes)
{
    static const char units[] = "KMG";
    size_t length = strlen (text);
    const char *unit = length > 1 ? strchr (units, text[length - 1]) : NULL;
    int shift = unit ? 10 * (int) (unit - units + 1) : 0;
    char digits[32];
    int64_t value;

    snprintf (digits, sizeof (digits), "%.*s", (int) (length - (unit != NULL)), text);
    errno = 0;
    value = strspn (digits, "0123456789") == strlen (digits) ? strtoimax (digits, NULL, 10) : 0;
    if (errno || value < 1 || value > MAX_BYTES >> shift)
        return wrong ("--%s %s: not a number of bytes from 1 to 1024G, such as 4096 or 16M",
                      option, text);
    *bytes = (size_t) value << shift;
    return true;
}

static const char *const memories[] = {"host", "shared", "device"}; /* by enum bench_memory */

static bool parse_memory (const char *text, enum bench_memory *memory)
{
    for (size_t i = 0; i < COUNT (memories); i++) {
        if (!strcmp (memories[i], text)) {
            *memory = (enum bench_memory) i;
            return true;
        }
    }
    return wrong ("--memory %s: not host, shared or device", text);
}

/* Whether the operation can be measured with arrays there. */
static bool takes_memory (const struct bench_op *op, enum bench_memory memory)
{
    return memory == BENCH_DEVICE ? op->can_gpu || op->needs_gpu
                                  : memory == BENCH_HOST || (op->sized && !op->needs_gpu);
}

static bool parse_op (const char *text, const struct bench_op **op)
{
    for (size_t i = 0; i < COUNT (ops); i++) {
        if (!strcmp (ops[i]->name, text)) {
            *op = ops[i];
            return true;
        }
    }
    return wrong ("there is no operation '%s'", text);
}

/* The last option that was given of each kind that only some operations take, or NULL. */
struct given {
    const char *sized, *modelled, *stored, *warmup;
};

static bool takes_options (const struct bench_options *o, const struct given *given)
{
    bool warm = o->op->sized || o->op->modelled || o->op->stored;
    const char *needless = !o->op->sized && given->sized         ? given->sized
                           : !o->op->modelled && given->modelled ? given->modelled
                           : !o->op->stored && given->stored     ? given->stored
                           : !warm                               ? given->warmup
                                                                 : NULL;

    if (needless)
        return wrong ("%s takes no --%s", o->op->name, needless);
    if (o->op->modelled && !o->model.name)
        return wrong ("%s needs --model: resnet50, transformer, mlp or a file", o->op->name);
    if (o->op->stored && !o->ckpt.dir)
        return wrong ("%s needs --dir: a folder on the file system to be measured", o->op->name);
    return true;
}

/* Defaults that depend on others, and what goes together. */
static bool finish_options (struct bench_options *o, const struct given *given)
{
    size_t element = gs_dtype_size (o->dtype);

    if (!takes_options (o, given))
        return false;
    if (!given->warmup)
        o->warmup = o->op->stored ? 1 : o->op->modelled ? 3 : 10;
    if (!takes_memory (o->op, o->memory))
        return wrong ("%s is not measured with --memory %s", o->op->name, memories[o->memory]);
    if (o->op->needs_gpu)
        o->memory = BENCH_DEVICE;
    if (o->ranks && o->memory != BENCH_DEVICE)
        return wrong ("--ranks goes with --memory device: on hosts MPI carries the data, and its "
                      "launcher starts the ranks");
    if (o->op->takes && !o->op->takes (o->dtype))
        return wrong ("%s cannot be done with --dtype %s", o->op->name,
                      bench_dtype_name (o->dtype));
    if (o->max_bytes < element)
        return wrong ("--max-bytes %zu: less than one element of %s, %zu bytes", o->max_bytes,
                      bench_dtype_name (o->dtype), element);
    if (o->min_bytes > o->max_bytes)
        return wrong ("--min-bytes %zu: more than --max-bytes %zu", o->min_bytes, o->max_bytes);
    o->max_bytes -= o->max_bytes % element;
    if (o->min_bytes < element)
        o->min_bytes = element;
    o->min_bytes -= o->min_bytes % element;
    return true;
}

enum {
    MIN_BYTES_OPTION = 256,
    MAX_BYTES_OPTION,
    DTYPE,
    ITERATIONS,
    WARMUP,
    ROUNDS,
    MEMORY,
    RANKS,
    MODEL,
    MODE,
    COMPUTE_US,
    BUCKET_BYTES,
    FIRST_BYTES,
    LAST_BYTES,
    WIRE,
    DIR_OPTION,
    BYTES,
    REPLICATED,
    ASYNC,
    DIRECT,
    KEEP,
    JSON,
    HELP,
    VERSION
};

static const struct option options_known[] = {
    {"min-bytes", required_argument, NULL, MIN_BYTES_OPTION},
    {"max-bytes", required_argument, NULL, MAX_BYTES_OPTION},
    {"dtype", required_argument, NULL, DTYPE},
    {"iterations", required_argument, NULL, ITERATIONS},
    {"warmup", required_argument, NULL, WARMUP},
    {"rounds", required_argument, NULL, ROUNDS},
    {"memory", required_argument, NULL, MEMORY},
    {"ranks", required_argument, NULL, RANKS},
    {"model", required_argument, NULL, MODEL},
    {"mode", required_argument, NULL, MODE},
    {"compute-us", required_argument, NULL, COMPUTE_US},
    {"bucket-bytes", required_argument, NULL, BUCKET_BYTES},
    {"first-bytes", required_argument, NULL, FIRST_BYTES},
    {"last-bytes", required_argument, NULL, LAST_BYTES},
    {"wire", required_argument, NULL, WIRE},
    {"dir", required_argument, NULL, DIR_OPTION},
    {"bytes", required_argument, NULL, BYTES},
    {"replicated", required_argument, NULL, REPLICATED},
    {"async", no_argument, NULL, ASYNC},
    {"direct", no_argument, NULL, DIRECT},
    {"keep", no_argument, NULL, KEEP},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0}};

/* Takes one option with its value in, if it is of a model. */
static bool take_model (struct bench_model_options *o, int c, const char *name, const char *value)
{
    switch (c) {
    case MODE: return parse_modes (value, &o->modes);
    case COMPUTE_US: return parse_int (name, value, 0, MAX_US, &o->compute_us);
    case BUCKET_BYTES: return parse_bytes (name, value, &o->bucket_bytes);
    case FIRST_BYTES: return parse_bytes (name, value, &o->first_bytes);
    case LAST_BYTES: return parse_bytes (name, value, &o->last_bytes);
    case WIRE: return parse_wire (value, &o->wire);
    default: o->name = value; return true;
    }
}

/* The same, if it is of checkpoints. */
static bool take_ckpt (struct bench_ckpt_options *o, int c, const char *name, const char *value)
{
    switch (c) {
    case BYTES: return parse_bytes (name, value, &o->bytes);
    case REPLICATED: return parse_int (name, value, 0, 100, &o->replicated);
    case ASYNC: o->async = true; return true;
    case DIRECT: o->direct = true; return true;
    case KEEP: o->keep = true; return true;
    default: o->dir = value; return true;
    }
}

/* Takes one option with its value in. */
static bool take_option (struct bench_options *o, int c, const char *name, const char *value)
{
    switch (c) {
    case MIN_BYTES_OPTION: return parse_bytes (name, value, &o->min_bytes);
    case MAX_BYTES_OPTION: return parse_bytes (name, value, &o->max_bytes);
    case DTYPE: return parse_dtype (value, &o->dtype);
    case RANKS: return parse_int (name, value, 1, MAX_RANKS, &o->ranks);
    case MEMORY: return parse_memory (value, &o->memory);
    case ITERATIONS: return parse_int (name, value, 1, MAX_CALLS, &o->iterations);
    case WARMUP: return parse_int (name, value, 0, MAX_CALLS, &o->warmup);
    case ROUNDS: return parse_int (name, value, MIN_ROUNDS, MAX_ROUNDS, &o->rounds);
    case JSON: o->json = true; return true;
    default: break;
    }
    return c >= DIR_OPTION ? take_ckpt (&o->ckpt, c, name, value)
                           : take_model (&o->model, c, name, value);
}

static void note_option (struct given *given, int c, const char *name)
{
    if (c == WARMUP)
        given->warmup = name;
    else if (c >= MODEL && c <= WIRE)
        given->modelled = name;
    else if (c >= DIR_OPTION && c <= KEEP)
        given->stored = name;
    else if (c != ROUNDS && c != JSON && c != MEMORY && c != RANKS)
        given->sized = name;
}

/* --help and --version; one process is enough here too. */
static void say (int c)
{
    if (first_process () && c == HELP)
        print_help ();
    if (first_process () && c == VERSION)
        printf ("gs-bench (gradsync) %s\n", gs_version ());
}

/* Takes the options in; [said] is true after --help or --version, which end it. */
static bool take_all (int argc, char **argv, struct bench_options *o, bool *said)
{
    struct given given = {0};
    int c, index;

    opterr = 0;
    while ((c = getopt_long (argc, argv, ":", options_known, &index)) != -1) {
        *said = c == HELP || c == VERSION;
        if (*said) {
            say (c);
            return true;
        }
        if (c == ':')
            return wrong ("%s needs a value", argv[optind - 1]);
        if (c == '?')
            return wrong ("%s is not an option, or has a value and takes none", argv[optind - 1]);
        if (!take_option (o, c, options_known[index].name, optarg))
            return false;
        note_option (&given, c, options_known[index].name);
    }
    if (optind == argc)
        return wrong ("an operation is missing");
    if (optind + 1 < argc)
        return wrong ("one operation at a time: what is '%s'?", argv[optind + 1]);
    return parse_op (argv[optind], &o->op) && finish_options (o, &given);
}

enum bench_parsed bench_parse (int argc, char **argv, struct bench_options *options)
{
    bool said = false;

    *options = (struct bench_options){.dtype = GS_F32, .max_bytes = 4 << 20, .rounds = 21};
    options->model.modes = BENCH_CHOSEN_MODES;
    options->ckpt = (struct bench_ckpt_options){.bytes = (size_t) 256 << 20, .replicated = 50};
    if (!take_all (argc, argv, options, &said))
        return BENCH_WRONG;
    return said ? BENCH_DONE : BENCH_RUN;
}
