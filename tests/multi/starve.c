/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starve - a library to be preloaded: lets allocations fail that gradsync's own code makes, told
 * by the address that the call returns to, and knows which of its blocks were not freed. What
 * MPI, PMIx, HDF5 and the program allocate is left alone.
 *
 *   GS_TEST_STARVE          begins at once, before main: the place, or the place and "+" for all
 *                           behind it, too
 *   GS_TEST_STARVE_RANK     which rank does
 *   GS_TEST_STARVE_LIBRARY  whose allocations fail instead: those of libraries whose names begin
 * so
 */
#include "starve.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PUBLIC      __attribute__ ((visibility ("default")))
#define TWIN(OTHER) __attribute__ ((visibility ("default"), alias (OTHER)))
#define CALLER      ((uintptr_t) __builtin_return_address (0))

#define PAGES      4096u /* code whose object is known */
#define BLOCKS     65536u
#define EARLY_ROOM 8192 /* for dlsym, while it looks for what stands behind ours */

/* The functions that stand behind ours. */
static struct {
    void *(*malloc) (size_t bytes);
    void *(*calloc) (size_t number, size_t bytes);
    void *(*realloc) (void *memory, size_t bytes);
    int (*posix_memalign) (void **memory, size_t alignment, size_t bytes);
    void *(*aligned_alloc) (size_t alignment, size_t bytes);
    void (*free) (void *memory);
    char *(*realpath) (const char *path, char *real);
    FILE *(*fopen) (const char *path, const char *mode);
    FILE *(*fdopen) (int fd, const char *mode);
    DIR *(*opendir) (const char *path);
    void *(*mmap) (void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
    int (*munmap) (void *at, size_t bytes);
    void *(*mremap) (void *at, size_t bytes, size_t new_bytes, int flags, ...);
    int (*memfd_create) (const char *name, unsigned flags);
    int (*ftruncate) (int fd, off_t length);
    int (*fallocate) (int fd, int mode, off_t offset, off_t bytes);
    int (*posix_fallocate) (int fd, off_t offset, off_t bytes);
    int (*pthread_create) (pthread_t *thread, const pthread_attr_t *attr, void *(*work) (void *),
                           void *argument);
} next;

static char early[EARLY_ROOM];
static size_t early_used;

/* A block of gradsync's. */
struct block {
    void *memory; /* NULL: none */
    size_t bytes;
    uintptr_t caller;
    unsigned age;
};

static atomic_uintptr_t pages[PAGES]; /* a page of code, with 1 where it is gradsync's */
static const char *library;           /* GS_TEST_STARVE_LIBRARY, or NULL */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct block blocks[BLOCKS];
static unsigned age;
static atomic_bool begun;
static bool to_the_end;
static long passages, fatal;
static uintptr_t failed_at;

#define FIND(NAME) (*(void **) &next.NAME = dlsym (RTLD_NEXT, #NAME))

static void find_next (void)
{
    static bool looking;

    if (looking || next.pthread_create)
        return;
    looking = true;
    FIND (malloc);
    FIND (calloc);
    FIND (realloc);
    FIND (posix_memalign);
    FIND (aligned_alloc);
    FIND (free);
    FIND (realpath);
    FIND (fopen);
    FIND (fdopen);
    FIND (opendir);
    FIND (mmap);
    FIND (munmap);
    FIND (mremap);
    FIND (memfd_create);
    FIND (ftruncate);
    FIND (fallocate);
    FIND (posix_fallocate);
    FIND (pthread_create);
}

static bool is_early (const void *memory)
{
    return (const char *) memory >= early && (const char *) memory < early + sizeof (early);
}

static void *take_early (size_t bytes)
{
    void *memory = early + early_used;

    early_used += (bytes + 15) & ~(size_t) 15;
    return early_used > sizeof (early) ? NULL : memory;
}

/* ---- Whose ---- */

/*
 * N.B. dladdr takes the loader's lock, with which the loader allocates: not with [guard] held.
 * And setenv allocates while it moves the environment, which getenv would walk.
 */
static bool is_ours (uintptr_t caller)
{
    uintptr_t page = caller & ~(uintptr_t) 4095, known = pages[(page >> 12) % PAGES];
    const char *name;
    Dl_info info;
    bool ours;

    if ((known & ~(uintptr_t) 1) == page)
        return known & 1;
    if (!dladdr ((void *) caller, &info) || !info.dli_fname)
        return false;
    name = strrchr (info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    ours = library ? !strncmp (name, library, strlen (library))
                   : !strncmp (name, "libgradsync.so", 14) || !strncmp (name, "gradsync-", 9);
    known = page | ours;
    pages[(page >> 12) % PAGES] = known;
    return known & 1;
}

static void name_caller (uintptr_t caller, char *text, size_t room)
{
    Dl_info info;

    if (caller && dladdr ((void *) caller, &info))
        snprintf (text, room, "%s+0x%zx", info.dli_fname,
                  (size_t) (caller - 1 - (uintptr_t) info.dli_fbase));
    else
        *text = 0;
}

/* Whether this allocation is to fail. */
static bool fails (uintptr_t caller)
{
    bool fatal_here = false;

    if (!begun || !is_ours (caller))
        return false;
    pthread_mutex_lock (&guard);
    if (begun) {
        passages++;
        fatal_here = fatal && (to_the_end ? passages >= fatal : passages == fatal);
        if (fatal_here && !failed_at)
            failed_at = caller;
    }
    pthread_mutex_unlock (&guard);
    return fatal_here;
}

/* ---- Blocks ---- */

static unsigned home_of (const void *memory)
{
    return (unsigned) (((uintptr_t) memory >> 4) * UINT64_C (0x9e3779b97f4a7c15) >> 40) % BLOCKS;
}

/* Where [memory] is, or the free place for it. */
static unsigned find (const void *memory)
{
    unsigned i = home_of (memory);

    while (blocks[i].memory && blocks[i].memory != memory)
        i = (i + 1) % BLOCKS;
    return i;
}

static void forget (unsigned i)
{
    unsigned j = i;

    for (;;) { /* what lies behind it must be found without it */
        unsigned home;
        blocks[i].memory = NULL;
        do {
            j = (j + 1) % BLOCKS;
            if (!blocks[j].memory)
                return;
            home = home_of (blocks[j].memory);
        } while (i <= j ? i < home && home <= j : i < home || home <= j);
        blocks[i] = blocks[j];
        i = j;
    }
}

static void *note (void *memory, size_t bytes, uintptr_t caller)
{
    if (!memory || memory == MAP_FAILED || !is_ours (caller))
        return memory;
    pthread_mutex_lock (&guard);
    blocks[find (memory)] = (struct block){memory, bytes, caller, age};
    pthread_mutex_unlock (&guard);
    return memory;
}

static void drop (void *memory)
{
    unsigned i;

    pthread_mutex_lock (&guard);
    i = find (memory);
    if (blocks[i].memory)
        forget (i);
    pthread_mutex_unlock (&guard);
}

/* ---- Memory ---- */

PUBLIC void *malloc (size_t bytes)
{
    if (!next.malloc) {
        find_next ();
        if (!next.malloc)
            return take_early (bytes);
    }
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return note (next.malloc (bytes), bytes, CALLER);
}

PUBLIC void *calloc (size_t number, size_t bytes)
{
    if (!next.calloc) {
        find_next ();
        if (!next.calloc)
            return take_early (number * bytes);
    }
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return note (next.calloc (number, bytes), number * bytes, CALLER);
}

PUBLIC void *realloc (void *memory, size_t bytes)
{
    void *larger;

    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    if (memory)
        drop (memory);
    larger = next.realloc (memory, bytes);
    return note (larger, bytes, CALLER);
}

PUBLIC int posix_memalign (void **memory, size_t alignment, size_t bytes)
{
    int rc;

    find_next ();
    if (fails (CALLER))
        return ENOMEM;
    if (!(rc = next.posix_memalign (memory, alignment, bytes)))
        note (*memory, bytes, CALLER);
    return rc;
}

PUBLIC void *aligned_alloc (size_t alignment, size_t bytes)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return note (next.aligned_alloc (alignment, bytes), bytes, CALLER);
}

PUBLIC char *strdup (const char *text)
{
    size_t bytes = strlen (text) + 1;
    char *copy;

    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    if ((copy = note (next.malloc (bytes), bytes, CALLER)))
        memcpy (copy, text, bytes);
    return copy;
}

PUBLIC void free (void *memory)
{
    if (!memory || is_early (memory))
        return;
    find_next ();
    drop (memory);
    next.free (memory);
}

/* ---- What takes memory inside the C library ---- */

PUBLIC char *realpath (const char *path, char *real)
{
    char *whole;

    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    whole = next.realpath (path, real);
    return real ? whole : note (whole, 1, CALLER); /* else it is part of another block */
}

PUBLIC FILE *fopen (const char *path, const char *mode)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return next.fopen (path, mode);
}
TWIN ("fopen") FILE *fopen64 (const char *path, const char *mode);

PUBLIC FILE *fdopen (int fd, const char *mode)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return next.fdopen (fd, mode);
}

PUBLIC DIR *opendir (const char *path)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return NULL;
    }
    return next.opendir (path);
}

/* ---- The system's ---- */

PUBLIC void *mmap (void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return note (next.mmap (at, bytes, protection, flags, fd, offset), bytes, CALLER);
}
TWIN ("mmap")
void *mmap64 (void *at, size_t bytes, int protection, int flags, int fd, off_t offset);

PUBLIC int munmap (void *at, size_t bytes)
{
    uintptr_t begin = (uintptr_t) at;

    find_next ();
    if (is_ours (CALLER)) {
        pthread_mutex_lock (&guard);
        for (unsigned i = 0; i < BLOCKS; i++)
            while (blocks[i].memory && (uintptr_t) blocks[i].memory - begin < bytes)
                forget (i);
        pthread_mutex_unlock (&guard);
    }
    return next.munmap (at, bytes);
}

PUBLIC void *mremap (void *at, size_t bytes, size_t new_bytes, int flags, ...)
{
    void *wanted = NULL, *moved;
    va_list ap;

    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    va_start (ap, flags);
    if (flags & MREMAP_FIXED)
        wanted = va_arg (ap, void *);
    va_end (ap);
    moved = next.mremap (at, bytes, new_bytes, flags, wanted);
    if (moved != MAP_FAILED)
        drop (at);
    return note (moved, new_bytes, CALLER);
}

PUBLIC int memfd_create (const char *name, unsigned flags)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOMEM;
        return -1;
    }
    return next.memfd_create (name, flags);
}

PUBLIC int ftruncate (int fd, off_t length)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOSPC;
        return -1;
    }
    return next.ftruncate (fd, length);
}
TWIN ("ftruncate") int ftruncate64 (int fd, off_t length);

PUBLIC int fallocate (int fd, int mode, off_t offset, off_t bytes)
{
    find_next ();
    if (fails (CALLER)) {
        errno = ENOSPC;
        return -1;
    }
    return next.fallocate (fd, mode, offset, bytes);
}
TWIN ("fallocate") int fallocate64 (int fd, int mode, off_t offset, off_t bytes);

PUBLIC int posix_fallocate (int fd, off_t offset, off_t bytes)
{
    find_next ();
    return fails (CALLER) ? ENOSPC : next.posix_fallocate (fd, offset, bytes);
}
TWIN ("posix_fallocate") int posix_fallocate64 (int fd, off_t offset, off_t bytes);

PUBLIC int pthread_create (pthread_t *thread, const pthread_attr_t *attr, void *(*work) (void *),
                           void *argument)
{
    find_next ();
    return fails (CALLER) ? EAGAIN : next.pthread_create (thread, attr, work, argument);
}

/* ---- What programs ask for ---- */

static void begin (long place, bool all)
{
    pthread_mutex_lock (&guard);
    begun = true;
    to_the_end = all;
    fatal = place;
    passages = 0;
    failed_at = 0;
    pthread_mutex_unlock (&guard);
}

static long end (char *where, size_t room)
{
    uintptr_t caller;
    long number;

    pthread_mutex_lock (&guard);
    begun = false;
    number = passages;
    caller = failed_at;
    pthread_mutex_unlock (&guard);
    name_caller (caller, where, room);
    return number;
}

static void hold (void)
{
    pthread_mutex_lock (&guard);
    age++;
    pthread_mutex_unlock (&guard);
}

static bool is_module (uintptr_t caller)
{
    Dl_info info;
    const char *name;

    if (!dladdr ((void *) caller, &info))
        return false;
    name = strrchr (info.dli_fname, '/');
    return !strncmp (name ? name + 1 : info.dli_fname, "gradsync-", 9);
}

static int held (bool modules, char *where, size_t room)
{
    static uintptr_t callers[BLOCKS];
    int all = 0, number = 0;

    pthread_mutex_lock (&guard);
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].memory && blocks[i].age == age)
            callers[all++] = blocks[i].caller;
    pthread_mutex_unlock (&guard);
    *where = 0;
    for (int i = 0; i < all; i++)
        if ((modules || !is_module (callers[i])) && !number++)
            name_caller (callers[i], where, room);
    return number;
}

PUBLIC extern const struct starve starve;
const struct starve starve = {.begin = begin, .end = end, .hold = hold, .held = held};

__attribute__ ((constructor)) static void begin_early (void)
{
    const char *place = getenv ("GS_TEST_STARVE"), *who = getenv ("GS_TEST_STARVE_RANK");
    const char *rank = getenv ("OMPI_COMM_WORLD_RANK");

    library = getenv ("GS_TEST_STARVE_LIBRARY");
    if (place && rank && who && !strcmp (rank, who))
        begin (strtol (place, NULL, 10), strchr (place, '+') != NULL);
}
