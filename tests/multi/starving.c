/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starving - the program of starved.sh: on one of two ranks an allocation of gradsync's own code
 * fails, or all from one on, by the preloaded starve.so. Then the call fails on all ranks that
 * must know of it, and names that rank; or it goes well, and its results are right. The
 * communicator is of one mind, the call goes well when it is made again, and nothing is left.
 *
 *   starved create [BLOCKS]        one create, starved from before main; BLOCKS are left by one
 *                                  that is not. The last line says how many there were
 *   starved calls SEED EVERY [NAME]  all other calls, each allocation in turn, or one of EVERY
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "holdings.h"
#include "starve.h"
#include "starved_calls.h"

/* What a rank tells the other beside gradsync, in a file that both have mapped. */
struct told {
    atomic_int meetings;
    gs_status_t st;
    long passages;
    bool hit, lives, right;
    int left;
    char text[600], where[300];
};

static struct told *told; /* [size] */
static const struct starve *starve;
static double expected[4 * LARGE];
static struct {
    const char *name;
    int guilty;
    long place;
    bool all;
} now;
static struct {
    long tried, went_on, refused, died;
} sum;

/* Waits for the other rank to come here, too. */
static void meet (void)
{
    int mine = atomic_fetch_add (&told[rank].meetings, 1) + 1;

    for (int r = 0; r < size; r++)
        while (atomic_load (&told[r].meetings) < mine)
            usleep (200);
}

static void open_told (void)
{
    const char *room = getenv ("TMPDIR");
    char path[1000];
    int fd;

    snprintf (path, sizeof (path), "%s/starved", room ? room : "/tmp");
    fd = open (path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate (fd, size * (off_t) sizeof (*told)))
        exit (1);
    told = mmap (NULL, (size_t) size * sizeof (*told), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close (fd);
    if (told == MAP_FAILED)
        exit (1);
    snprintf (folder, sizeof (folder), "%s/ck", room ? room : "/tmp");
}

static void describe (char *text, size_t room)
{
    snprintf (text, room, "%s, allocation %ld%s of rank %d", now.name, now.place,
              now.all ? " and all behind it" : "", now.guilty);
}

#define FRAMES 40

static void *frames[FRAMES];

static void on_end (int number)
{
    char text[300], line[400];
    int length;

    describe (text, sizeof (text));
    length = snprintf (line, sizeof (line), "rank %d: signal %d in %s\n", rank, number, text);
    if (write (STDERR_FILENO, line, (size_t) length) < 0)
        _exit (2);
    backtrace_symbols_fd (frames, backtrace (frames, FRAMES), STDERR_FILENO);
    _exit (3);
}

__attribute__ ((format (printf, 1, 2))) static void wrong (const char *format, ...)
{
    char what[300], text[1500];
    va_list ap;

    describe (what, sizeof (what));
    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    multi_failed ("starved", __LINE__, "%s: %s; %s", what, text, told[now.guilty].where);
}

/* ---- What a call gives ---- */

static void fill (void)
{
    for (size_t i = 0; i < 4 * LARGE; i++) {
        in[i] = (double) (i % 1000 + (size_t) rank);
        out[i] = (double) (i % 100 + (i < LARGE ? 7 * (size_t) rank : 0)); /* replicas behind */
    }
}

/* Both ranks tell how it went; behind the failure itself, whose text is there still. */
static void tell (gs_status_t st, bool ends)
{
    struct told *mine = &told[rank];

    mine->st = st;
    snprintf (mine->text, sizeof (mine->text), "%.599s", st ? gs_last_error () : "");
    if (st && ends)
        gs_comm_abort (comm);
    mine->lives = comm && !gs_comm_check (comm);
    meet ();
}

static bool both (gs_status_t st)
{
    return told[0].st == st && told[1].st == st;
}

/* Judges a call of which an allocation failed; each rank speaks for itself. */
static void judge (const struct call *call)
{
    const struct told *mine = &told[rank], *own = &told[now.guilty], *other = &told[!now.guilty];
    char name[20];

    snprintf (name, sizeof (name), "rank %d", now.guilty);
    if (mine->st == GS_ERR_TIMEOUT)
        wrong ("rank %d waited to the end of its time: %s", rank, mine->text);
    if (rank == now.guilty && mine->st && mine->st != GS_ERR_NOMEM && mine->st != GS_ERR_IO)
        wrong ("fails with %s, not for want of memory: %s", gs_status_string (mine->st),
               mine->text);
    if (rank == now.guilty && mine->st && !strstr (mine->text, "memory") &&
        !strstr (mine->text, "allocate") && !strstr (mine->text, "No space") &&
        !strstr (mine->text, "thread"))
        wrong ("the text does not say what was short: %s", mine->text);
    if (call->kind == ALONE)
        return;
    if (call->kind == TOGETHER && !own->st != !other->st)
        wrong ("%s here, %s: %s there", gs_status_string (mine->st),
               gs_status_string (told[!rank].st), told[!rank].text);
    if (rank != now.guilty && mine->st && !strstr (mine->text, name))
        wrong ("rank %d is not told of %s: %s", rank, name, mine->text);
    if (own->lives != other->lives)
        wrong ("the communicator %s on this rank only: %s", mine->lives ? "lives" : "is dead",
               mine->text);
}

static bool is_right (bool learning)
{
    if (learning)
        memcpy (expected, out, sizeof (out));
    return !memcmp (expected, out, sizeof (out));
}

/* Makes the call, which has been refused, again. */
static gs_status_t again (const struct call *call)
{
    gs_status_t st = call->kind != ALONE || told[rank].st ? call->run () : GS_OK;

    if (st)
        wrong ("made again it fails: %s", gs_last_error ());
    return st;
}

/* Whether the results are those of a call that nothing was short for. */
static void use (const struct call *call, bool learning)
{
    if (call->use)
        call->use ();
    if (!is_right (learning))
        wrong ("wrong numbers");
}

/* ---- One call ---- */

/* Makes it, on a communicator of its own, starved at [now]. */
static void make (const struct call *call, bool learning)
{
    struct told *mine = &told[rank];
    int descriptors = holdings_descriptors (), files = holdings_mapped_files ();
    gs_status_t st;
    char where[300];
    int left;
    bool dead;

    meet ();
    starve->hold ();
    comm = multi_create (NULL);
    fill ();
    if (call->prepare)
        call->prepare ();
    meet ();
    if (rank == now.guilty)
        starve->begin (now.place, now.all);
    st = call->run ();
    mine->passages = rank == now.guilty ? starve->end (mine->where, sizeof (mine->where)) : 0;
    mine->hit = rank == now.guilty && *mine->where;
    tell (st, call->kind == ENDS);
    judge (call);
    sum.tried += told[now.guilty].hit;
    sum.went_on += told[now.guilty].hit && both (GS_OK);
    sum.refused += !both (GS_OK);
    sum.died += !both (GS_OK) && !told[rank].lives;
    if (both (GS_OK)) {
        use (call, learning);
    } else if (comm && told[0].lives && told[1].lives) {
        fill ();
        if (call->prepare == prepare_read)
            memset (out, 0, sizeof (out));
        if (!again (call))
            use (call, false);
    }
    if (comm && !(told[0].lives && told[1].lives))
        gs_comm_abort (comm);
    dead = comm && gs_comm_check (comm);
    finish ();
    gs_comm_destroy (comm);
    comm = NULL;
    meet ();
    /* What MPI may still write to is kept when a communicator has died. */
    if ((left = starve->held (!dead, where, sizeof (where))))
        wrong ("%d blocks are left on rank %d: %s", left, rank, where);
    if (!learning && holdings_descriptors () > descriptors)
        wrong ("%d descriptors are left on rank %d", holdings_descriptors () - descriptors, rank);
    if (!learning && !dead && holdings_mapped_files () > files)
        wrong ("%d mapped files are left on rank %d", holdings_mapped_files () - files, rank);
}

static bool drawn (uint64_t seed, int i, long every)
{
    uint64_t x = seed ^ (uint64_t) i << 40 ^ (uint64_t) now.guilty << 32 ^
                 (uint64_t) now.place << 1 ^ (uint64_t) now.all;

    x = (x ^ x >> 31) * UINT64_C (0x94d049bb133111eb);
    x = (x ^ x >> 29) * UINT64_C (0xbf58476d1ce4e5b9);
    return (long) ((x >> 33) % (uint64_t) every) == 0;
}

/* All allocations of a call, on each rank. */
static void starve_call (int i, uint64_t seed, long every)
{
    long most[2];

    memset (&sum, 0, sizeof (sum));
    now.name = calls[i].name;
    now.place = now.all = 0;
    for (now.guilty = 0; now.guilty < 2; now.guilty++) {
        make (&calls[i], true);
        make (&calls[i], false); /* nothing is left of that */
        most[now.guilty] = told[now.guilty].passages;
    }
    for (now.guilty = 0; now.guilty < 2; now.guilty++)
        for (now.place = 1; now.place <= most[now.guilty]; now.place++)
            for (int all = 0; all < 2; all++) {
                now.all = all;
                if (drawn (seed, i, every))
                    make (&calls[i], false);
            }
    if (!rank)
        printf ("%s: %ld and %ld allocations; of %ld that failed %ld were made up for, %ld "
                "refused, %ld ended the communicator\n",
                now.name, most[0], most[1], sum.tried, sum.went_on, sum.refused - sum.died,
                sum.died);
    fflush (stdout);
}

/* ---- A create ---- */

static void starve_create (int blocks)
{
    static const struct call call = {"comm_create", TOGETHER, NULL, NULL, NULL};
    struct told *mine = &told[rank];
    gs_status_t st, ended = GS_OK;
    char where[300];
    int left;
    bool late;

    now.name = call.name;
    now.guilty = multi_number (0, "GS_TEST_STARVE_RANK", NULL);
    now.place = multi_number (0, "GS_TEST_STARVE", NULL);
    st = gs_comm_create (NULL, &comm);
    mine->passages = starve->end (mine->where, sizeof (mine->where));
    mine->hit = *mine->where;
    tell (st, false);
    /* Before it knows of the others a rank can tell them nothing. */
    late = rank != now.guilty && st == GS_ERR_TIMEOUT && strstr (mine->text, "did not come");
    if (late)
        mine->st = GS_ERR_NOMEM;
    meet ();
    judge (&call);
    fill ();
    if (both (GS_OK)) {
        CHECK_OK (sum_small ());
        for (int i = 0; i < SMALL; i++)
            CHECK (out[i] == 2 * i + 7, "a wrong sum");
    }
    ended = gs_comm_destroy (comm);
    if (both (GS_OK))
        CHECK_OK (ended);
    left = starve->held (true, where, sizeof (where));
    if (now.place && !late && left > blocks) /* what is waited for in vain is kept */
        wrong ("%d blocks are left on rank %d, not %d: %s", left, rank, blocks, where);
    meet ();
    printf ("rank %d: %ld allocations, %s, blocks left %d; %s: %s\n", rank, mine->passages,
            mine->hit ? "one failed" : "none failed", left, gs_status_string (mine->st),
            mine->text);
    fflush (stdout);
}

int main (int argc, char **argv)
{
    rank = multi_rank ();
    size = multi_size ();
    starve = dlsym (RTLD_DEFAULT, STARVE);
    if (argc < 2 || !starve || size != 2)
        return 2;
    open_told ();
    backtrace (frames, FRAMES); /* its library is there before the fault is */
    for (int i = 0; i < 3; i++)
        signal ((const int[]){SIGSEGV, SIGABRT, SIGTERM}[i], on_end);
    if (!strcmp (argv[1], "create")) {
        starve_create (argc > 2 ? atoi (argv[2]) : 0);
        return multi_end ("");
    }
    if (argc < 4)
        return 2;
    if (!rank)
        mkdir (folder, 0700);
    meet ();
    for (int i = 0; i < CALLS; i++)
        if (argc < 5 || !strcmp (argv[4], calls[i].name))
            starve_call (i, strtoull (argv[2], NULL, 10), strtol (argv[3], NULL, 10));
    return multi_end ("every allocation that fails is told of, or made up for");
}
