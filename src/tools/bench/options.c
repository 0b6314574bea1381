/* SPDX-License-Identifier: BSD-3-Clause */
/* options - the operations, and the command line of gs-bench. */
#include "tools/bench/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tools/bench/modes.h"
#include "tools/bench/raw.h"

#define MIN_ROUNDS 11 /* fewer make a median that noise can move */
#define MAX_ROUNDS 10000
#define MAX_RANKS  256 /* that one process starts */
#define MAX_CALLS  1000000000
#define MAX_BYTES  (INT64_C (1) << 40)
#define MAX_US     1000000000

#define COUNT(array) (sizeof (array) / sizeof (*(array)))

static const struct bench_op ops[] = {
    {"allreduce_avg", bench_run_average, BENCH_SIZED, BENCH_EITHER, 0, bench_has_average,
     "average over ranks; raw: MPI_Allreduce and division, or ncclAllReduce"},
    {"reduce", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_REDUCE, NULL,
     "sum on rank 0; raw: MPI_Reduce"},
    {"reduce_scatter", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_REDUCE_SCATTER, NULL,
     "sum, a part for each rank; raw: MPI_Reduce_scatter_block"},
    {"broadcast", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_BROADCAST, NULL,
     "from rank 0 to all; raw: MPI_Bcast"},
    {"gather", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_GATHER, NULL,
     "collect from all ranks on rank 0; raw: MPI_Gather"},
    {"scatter", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_SCATTER, NULL,
     "parts of rank 0's array to all; raw: MPI_Scatter"},
    {"allgather", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_ALLGATHER, NULL,
     "collect from all ranks; raw: MPI_Allgather"},
    {"allgatherv", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_ALLGATHERV, NULL,
     "collect pieces of given lengths from all ranks; raw: MPI_Allgatherv"},
    {"alltoall", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_ALLTOALL, NULL,
     "from each rank to each; raw: MPI_Alltoall"},
    {"sendrecv", bench_run_move, BENCH_SIZED, BENCH_HOSTS, BENCH_SENDRECV, NULL,
     "to the next rank, from the one before; raw: MPI_Sendrecv"},
    {"messages", bench_run_neighbours, BENCH_SIZED, BENCH_HOSTS, 0, NULL,
     "the same as a group of messages; raw: MPI_Irecv, MPI_Isend"},
    {"halo", bench_run_neighbours, BENCH_SIZED, BENCH_HOSTS, 1, NULL,
     "ghost rows of both neighbours; raw: MPI_Irecv, MPI_Isend"},
    {"pool", bench_run_pool, BENCH_SIZED, BENCH_HOSTS, 0, NULL,
     "uneven rows to one rank, results back; raw: MPI_Gatherv, MPI_Scatterv"},
    {"bootstrap", bench_run_bootstrap, BENCH_PLAIN, BENCH_HOSTS, 0, NULL,
     "finding all ranks; raw: PMIx_Init, fence and gets"},
    {"queue", bench_run_queue, BENCH_SIZED, BENCH_GPUS, 0, bench_has_average,
     "host time to queue an average on a GPU; raw: ncclAllReduce"},
    {"bucket", bench_run_bucket, BENCH_SIZED, BENCH_GPUS, 0, bench_has_average,
     "host time of a reducer's bucket on a GPU; raw: an event and ncclAllReduce"},
    {"copy", bench_run_copy, BENCH_SIZED, BENCH_HOSTS, 0, NULL,
     "memcpy on all ranks at once, what memory allows; raw: none"},
    {"record", bench_run_record, BENCH_PLAIN, BENCH_HOSTS, 0, NULL,
     "one entry of the flight record, which every call writes; raw: none"},
    {"reducer", bench_run_reducer, BENCH_MODELLED, BENCH_EITHER, 0, NULL,
     "average the gradients of a model; raw: MPI_Allreduce and division"},
    {"split", bench_run_split, BENCH_PLAIN, BENCH_HOSTS, 0, NULL,
     "making groups of half of the ranks; no raw call does the same"},
    {"ckpt", bench_run_ckpt, BENCH_STORED, BENCH_EITHER, 0, NULL,
     "write a checkpoint; raw: pwrite and fsync"},
    {"checksum", bench_run_copy, BENCH_SIZED, BENCH_HOSTS, 1, NULL,
     "CRC32C, which a checkpoint takes of all its bytes; raw: memcpy of them"},
};

#define NAMED(NAME, name, ...) [GS_##NAME] = #name,
#define GSI_REDUCED            NAMED
#define GSI_FLOATING           NAMED
#define GSI_INTEGER            NAMED
#define GSI_COMPLEX            NAMED
static const char *const dtypes[GSI_DTYPES] = {
#include "base/dtype.def"
};

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
        printf ("  %-16s %s\n", ops[i].name, ops[i].help);
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
    return dtypes[dtype];
}

bool bench_dtype_find (const char *name, gs_dtype_t *dtype)
{
    for (int i = 1; i < GSI_DTYPES; i++) {
        if (!strcmp (dtypes[i], name)) {
            *dtype = (gs_dtype_t) i;
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

static bool parse_int (const char *option, const char *text, int low, int high, int *value)
{
    char *end;
    intmax_t wide;

    errno = 0;
    wide = strtoimax (text, &end, 10);
    if (errno || end == text || *end || wide < low || wide > high)
        return wrong ("--%s %s: not a whole number from %d to %d", option, text, low, high);
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
    return memory == BENCH_DEVICE
               ? op->place != BENCH_HOSTS
               : memory == BENCH_HOST || (op->group == BENCH_SIZED && op->place != BENCH_GPUS);
}

static bool parse_op (const char *text, const struct bench_op **op)
{
    for (size_t i = 0; i < COUNT (ops); i++) {
        if (!strcmp (ops[i].name, text)) {
            *op = &ops[i];
            return true;
        }
    }
    return wrong ("there is no operation '%s'", text);
}

/* What takes an option: all operations, those of a group, or (WARM) all but the plain ones. */
enum { ALL = BENCH_PLAIN, WARM = BENCH_STORED + 1, GROUPS };

enum kind { NUMBER, BYTES, DTYPE, MEMORY, MODES, WIRE, TEXT, FLAG, HELP, VERSION };

#define AT(member) offsetof (struct bench_options, member)
static const struct setting {
    const char *name;
    int group;
    enum kind kind;
    size_t at; /* of its value in struct bench_options */
    int low, high;
} settings[] = {
    {"min-bytes", BENCH_SIZED, BYTES, AT (min_bytes), 0, 0},
    {"max-bytes", BENCH_SIZED, BYTES, AT (max_bytes), 0, 0},
    {"dtype", BENCH_SIZED, DTYPE, AT (dtype), 0, 0},
    {"iterations", BENCH_SIZED, NUMBER, AT (iterations), 1, MAX_CALLS},
    {"warmup", WARM, NUMBER, AT (warmup), 0, MAX_CALLS},
    {"rounds", ALL, NUMBER, AT (rounds), MIN_ROUNDS, MAX_ROUNDS},
    {"memory", ALL, MEMORY, AT (memory), 0, 0},
    {"ranks", ALL, NUMBER, AT (ranks), 1, MAX_RANKS},
    {"model", BENCH_MODELLED, TEXT, AT (model.name), 0, 0},
    {"mode", BENCH_MODELLED, MODES, AT (model.modes), 0, 0},
    {"compute-us", BENCH_MODELLED, NUMBER, AT (model.compute_us), 0, MAX_US},
    {"bucket-bytes", BENCH_MODELLED, BYTES, AT (model.bucket_bytes), 0, 0},
    {"first-bytes", BENCH_MODELLED, BYTES, AT (model.first_bytes), 0, 0},
    {"last-bytes", BENCH_MODELLED, BYTES, AT (model.last_bytes), 0, 0},
    {"wire", BENCH_MODELLED, WIRE, AT (model.wire), 0, 0},
    {"dir", BENCH_STORED, TEXT, AT (ckpt.dir), 0, 0},
    {"bytes", BENCH_STORED, BYTES, AT (ckpt.bytes), 0, 0},
    {"replicated", BENCH_STORED, NUMBER, AT (ckpt.replicated), 0, 100},
    {"async", BENCH_STORED, FLAG, AT (ckpt.async), 0, 0},
    {"direct", BENCH_STORED, FLAG, AT (ckpt.direct), 0, 0},
    {"keep", BENCH_STORED, FLAG, AT (ckpt.keep), 0, 0},
    {"json", ALL, FLAG, AT (json), 0, 0},
    {"help", ALL, HELP, 0, 0, 0},
    {"version", ALL, VERSION, 0, 0, 0},
};

#define SETTINGS ((int) COUNT (settings))
#define FIRST    256 /* of what getopt_long says for them: no two are the same to it */

static bool take_setting (struct bench_options *o, const struct setting *s, const char *value)
{
    void *at = (char *) o + s->at;

    switch (s->kind) {
    case NUMBER: return parse_int (s->name, value, s->low, s->high, at);
    case BYTES: return parse_bytes (s->name, value, at);
    case DTYPE: return parse_dtype (value, at);
    case MEMORY: return parse_memory (value, at);
    case MODES: return parse_modes (value, at);
    case WIRE: return parse_wire (value, at);
    case TEXT: *(const char **) at = value; return true;
    default: *(bool *) at = true; return true;
    }
}

/* [given] is by group the last option of it that was given, or NULL. */
static bool takes_options (const struct bench_options *o, const char *given[GROUPS])
{
    for (int group = BENCH_SIZED; group < GROUPS; group++)
        if (given[group] &&
            (group == WARM ? o->op->group == BENCH_PLAIN : group != (int) o->op->group))
            return wrong ("%s takes no --%s", o->op->name, given[group]);
    if (o->op->group == BENCH_MODELLED && !o->model.name)
        return wrong ("%s needs --model: resnet50, transformer, mlp or a file", o->op->name);
    if (o->op->group == BENCH_STORED && !o->ckpt.dir)
        return wrong ("%s needs --dir: a folder on the file system to be measured", o->op->name);
    return true;
}

/* Defaults that depend on others, and what goes together. */
static bool finish_options (struct bench_options *o, const char *given[GROUPS])
{
    static const int warmup[] = {
        [BENCH_PLAIN] = 10, [BENCH_SIZED] = 10, [BENCH_MODELLED] = 3, [BENCH_STORED] = 1};
    size_t element = gs_dtype_size (o->dtype);

    if (!takes_options (o, given))
        return false;
    if (!given[WARM])
        o->warmup = warmup[o->op->group];
    if (!takes_memory (o->op, o->memory))
        return wrong ("%s is not measured with --memory %s", o->op->name, memories[o->memory]);
    if (o->op->place == BENCH_GPUS)
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

/* --help and --version; one process is enough here too. */
static void say (enum kind kind)
{
    if (first_process () && kind == HELP)
        print_help ();
    if (first_process () && kind == VERSION)
        printf ("gs-bench (gradsync) %s\n", gs_version ());
}

/* Takes the options in; [said] is true after --help or --version, which end it. */
static bool take_all (int argc, char **argv, struct bench_options *o, bool *said)
{
    struct option known[SETTINGS + 1] = {{0}};
    const char *given[GROUPS] = {0};
    const struct setting *s;
    int c;

    for (int i = 0; i < SETTINGS; i++)
        known[i] = (struct option){settings[i].name, settings[i].kind < FLAG, NULL, FIRST + i};
    opterr = 0;
    while ((c = getopt_long (argc, argv, ":", known, NULL)) != -1) {
        if (c == ':')
            return wrong ("%s needs a value", argv[optind - 1]);
        if (c == '?')
            return wrong ("%s is not an option, or has a value and takes none", argv[optind - 1]);
        s = &settings[c - FIRST];
        if ((*said = s->kind >= HELP)) {
            say (s->kind);
            return true;
        }
        if (!take_setting (o, s, optarg))
            return false;
        given[s->group] = s->name;
    }
    if (optind == argc)
        return wrong ("an operation is missing");
    if (optind + 1 < argc)
        return wrong ("one operation at a time: what is '%s'?", argv[optind + 1]);
    return parse_op (argv[optind], &o->op) && finish_options (o, given);
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
