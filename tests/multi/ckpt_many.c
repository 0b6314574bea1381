/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_many - a thousand checkpoints, and two hundred plans with one each, leave nothing behind:
 * descriptors, threads, mappings, memory of the host or the device, files. GS_TEST_SHORT: less.
 */
#include <errno.h>
#include <sys/stat.h>

#include "array.h"
#include "holdings.h"

#define SAVES       1000
#define SHORT_SAVES 160
#define PLANS       200
#define SHORT_PLANS 100
#define WARM        20
#define KEPT        2
#define PARTS       4                  /* of a run; what leaks leaks in each of them: */
#define HEAP_BYTES  ((size_t) 640)     /* less than a block, 32 bytes, in each of 25 times */
#define RSS_BYTES   ((size_t) 4 << 20) /* pages that the allocator may keep */
#define COUNT       ((size_t) 30000)   /* elements of what is replicated, several shares */
#define ROWS        ((size_t) 5)
#define COLUMNS     ((size_t) 64)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEEPS_FREED true /* sanitizers do */
#else
#define KEEPS_FREED false
#endif

static gs_comm_t *comm;
static char folder[1100];
static size_t columns, first; /* of this rank */
static struct array weights, field, draws;

struct holdings {
    int descriptors, threads, mappings;
    size_t heap, resident;
};

/* ---- What a process holds ---- */

static struct holdings count_holdings (void)
{
    return (struct holdings){.descriptors = holdings_descriptors (),
                             .threads = holdings_threads (),
                             .mappings = holdings_mapped_files (),
                             .heap = holdings_heap (),
                             .resident = (size_t) holdings_resident ()};
}

/* Threads, when there are not more than [wanted]: one that was joined stays a moment. */
static int threads_settled (int wanted)
{
    double until = multi_seconds () + 10;
    int number;

    while ((number = holdings_threads ()) > wanted && multi_seconds () < until)
        usleep (1000);
    return number;
}

/* Holds what was there after each part of [number] turns against what was there before it. */
static void check_holdings (const struct holdings *there, int number, const char *what)
{
    const struct holdings *end = &there[PARTS];
    size_t heap = SIZE_MAX, resident_bytes = SIZE_MAX;
    int threads = threads_settled (there->threads);

    CHECK (end->descriptors <= there->descriptors, "%s: %d file descriptors became %d", what,
           there->descriptors, end->descriptors);
    CHECK (threads <= there->threads, "%s: %d threads became %d", what, there->threads, threads);
    CHECK (end->mappings <= there->mappings + 4, "%s: %d mappings of files became %d", what,
           there->mappings, end->mappings);
    for (int i = 0; i < PARTS; i++) {
        size_t more = there[i + 1].heap - there[i].heap;
        heap = there[i + 1].heap < there[i].heap ? 0 : more < heap ? more : heap;
        more = there[i + 1].resident - there[i].resident;
        resident_bytes = there[i + 1].resident < there[i].resident ? 0
                         : more < resident_bytes                   ? more
                                                                   : resident_bytes;
    }
    /* A part takes nothing, or 544 bytes, of Open MPI, for a message that comes before its
     * receive. The simulated GPUs remember what was freed, to find its use. */
    CHECK (multi_any_gpus () || heap <= HEAP_BYTES,
           "%s: %d times take %zu bytes of the heap, and again as many", what, number / PARTS,
           heap);
    CHECK (KEEPS_FREED || resident_bytes <= RSS_BYTES,
           "%s: %d times take %zu bytes in memory, and again as many", what, number / PARTS,
           resident_bytes);
}

/* ---- What is saved ---- */

static uint64_t value (int64_t step, int array, int owner, size_t i)
{
    return data_bits ((uint64_t) step * 4 + (uint64_t) array, owner, i);
}

/* Makes it that of [step], or tells whether it is. */
static bool visit (int64_t step, bool looks)
{
    const struct array *all[] = {&weights, &field, &draws};
    size_t wrong = 0;

    for (int a = 0; a < 3; a++) {
        uint64_t *at = (uint64_t *) (void *) all[a]->host;
        if (looks)
            array_fetch (all[a]);
        for (size_t i = 0; i < all[a]->bytes / 8; i++) {
            size_t whole = a == 1 ? i / columns * COLUMNS + i % columns + first : i;
            uint64_t is = value (step, a, a == 2 ? gs_comm_rank (comm) : 0, whole);
            wrong += looks && at[i] != is;
            at[i] = looks ? at[i] : is;
        }
        if (!looks)
            array_bring (all[a]);
    }
    return !wrong;
}

static gs_ckpt_t *make_plan (void)
{
    const size_t count = COUNT, extents[] = {ROWS, columns}, offsets[] = {0, first};
    const size_t shape[] = {ROWS, COLUMNS}, few = 9;
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;

    opts.keep_last = KEPT;
    CHECK_OK (gs_ckpt_create (comm, folder, &opts, &plan));
    CHECK_OK (gs_ckpt_add_replicated (plan, "weights", 1, &count, GS_U64, weights.used));
    CHECK_OK (gs_ckpt_add_sharded (plan, "u", 2, extents, offsets, shape, GS_U64, field.used));
    CHECK_OK (gs_ckpt_add_per_rank (plan, "draws", 1, &few, GS_U64, draws.used));
    CHECK_OK (gs_ckpt_set_attribute (plan, "u", "units", "m s-1"));
    CHECK_OK (gs_ckpt_commit (plan));
    return plan;
}

/* The newest one is read, and the folder has no file but those that are kept. */
static void check_newest (gs_ckpt_t *plan, int64_t newest, const char *what)
{
    int64_t found;

    visit (0, false);
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == newest && visit (newest, true), "%s: step %lld is read, or it is wrong", what,
           (long long) found);
    CHECK (holdings_entries (folder, false) == (newest < KEPT ? 1 : KEPT), "%s: %d files", what,
           holdings_entries (folder, false));
}

/* ---- What is asserted ---- */

static int64_t save_often (int number)
{
    gs_ckpt_t *plan = make_plan ();
    struct holdings there[PARTS + 1];
    int64_t step = 0;

    for (int i = 0; i <= WARM + number; i++) {
        if (i >= WARM && (i - WARM) % (number / PARTS) == 0)
            there[(i - WARM) / (number / PARTS)] = count_holdings ();
        visit (++step, false);
        CHECK_OK (gs_ckpt_write (plan, step, NULL));
        if (i < WARM || i % 4 == 0)
            check_newest (plan, step, "one plan");
    }
    check_newest (plan, step, "one plan");
    check_holdings (there, number, "one plan");
    CHECK_OK (gs_ckpt_destroy (plan));
    return step;
}

static void plan_often (int number, int64_t step)
{
    struct holdings there[PARTS + 1];

    for (int i = 0; i <= WARM + number; i++) {
        gs_ckpt_t *plan;
        if (i >= WARM && (i - WARM) % (number / PARTS) == 0)
            there[(i - WARM) / (number / PARTS)] = count_holdings ();
        plan = make_plan ();
        visit (++step, false);
        CHECK_OK (gs_ckpt_write (plan, step, NULL));
        check_newest (plan, step, "many plans");
        CHECK_OK (gs_ckpt_destroy (plan));
    }
    check_holdings (there, number, "many plans");
}

int main (void)
{
    bool brief = getenv ("GS_TEST_SHORT"), on_device = multi_any_gpus ();
    const char *memory = getenv ("GS_RECORD_DIR"); /* if there is any: no disk is tested here */
    size_t rank, size;
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    comm = multi_create (NULL);
    rank = (size_t) gs_comm_rank (comm);
    size = (size_t) gs_comm_size (comm);
    first = COLUMNS * rank / size;
    columns = COLUMNS * (rank + 1) / size - first;
    snprintf (folder, sizeof (folder), "%s/checkpoints", memory ? memory : ".");
    CHECK (rank || !mkdir (folder, 0777) || errno == EEXIST, "cannot make %s", folder);
    CHECK_OK (multi_barrier (comm));
    weights = array_allocate (comm, COUNT * 8, on_device);
    field = array_allocate (comm, ROWS * columns * 8, on_device);
    draws = array_allocate (comm, 9 * 8, on_device);
    plan_often (brief ? SHORT_PLANS : PLANS, save_often (brief ? SHORT_SAVES : SAVES));
    CHECK_OK (multi_barrier (comm));
    CHECK (holdings_entries (folder, true) == 2, "%d hidden files",
           holdings_entries (folder, true) - 2);
    array_release (&weights, "weights");
    array_release (&field, "field");
    array_release (&draws, "draws");
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("a thousand checkpoints and hundreds of plans leave nothing behind");
}
