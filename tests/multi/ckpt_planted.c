/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ckpt_planted - a folder of checkpoints that others can write to: who plants a link, or swaps a
 * folder, in the middle of a save, does not make it write, rename or remove anything else. The
 * calls of the library on files are ours first; one of them is where it happens, on rank 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "known.h"

/* Before which call it is done: a coming file that is there is opened, what is coming gets its
 * name, a folder that was set aside is removed. */
enum moment { NEVER, AT_OPEN, AT_RENAME, AT_REMOVAL };

static gs_comm_t *comm;
static struct known *state;
static char room[1000], folder[1100];
static enum moment moment;
static bool strange; /* the file system is one that nobody knows */
static void (*plant) (const char *name);
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* ---- What is planted ---- */

__attribute__ ((format (printf, 1, 2))) static void shell (const char *format, ...)
{
    char command[6000];
    va_list ap;

    va_start (ap, format);
    vsnprintf (command, sizeof (command), format, ap);
    va_end (ap);
    CHECK (!system (command), "'%s' fails", command);
}

static void hard_link (const char *name)
{
    shell ("cd '%s' && f=$(find . -path '*.tmp*' -name '%s') && ln '%s/precious' x && mv x $f",
           folder, name, room);
}

static void soft_link (const char *name)
{
    shell ("cd '%s' && f=$(find . -path '*.tmp*' -name '%s') && ln -s '%s/precious' x && mv x $f",
           folder, name, room);
}

/* The folder of the checkpoints is another one. */
static void swap_folder (const char *name)
{
    (void) name;
    shell ("mv '%s' '%s.away' && mkdir '%s/other' && ln -s '%s/other' '%s'", folder, folder, room,
           room, folder);
}

/* What was set aside is another folder, which has what a checkpoint has. */
static void swap_gone (const char *name)
{
    shell ("cd '%s' && mv '%s' stays && mkdir '%s' && touch '%s/index.h5' '%s/letter'", folder,
           name, name, name, name);
}

/* ---- Calls ---- */

static void come_to (enum moment now, const char *path)
{
    const char *slash = strrchr (path, '/'), *name = slash ? slash + 1 : path;
    void (*act) (const char *name) = NULL;

    pthread_mutex_lock (&guard);
    if (moment == now && !multi_rank ()) {
        moment = NEVER;
        act = plant;
    }
    pthread_mutex_unlock (&guard);
    if (act)
        act (name);
}

static bool is_coming (const char *path)
{
    return strstr (path, ".tmp") || !strncmp (path, "part-", 5);
}

static int open_at (int at, const char *path, int flags, mode_t mode)
{
    if ((flags & O_ACCMODE) == O_WRONLY && !(flags & O_CREAT) && is_coming (path))
        come_to (AT_OPEN, path);
    return (int) syscall (SYS_openat, at, path, flags, mode);
}

int open (const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    if (flags & O_CREAT) {
        va_start (ap, flags);
        mode = va_arg (ap, mode_t);
        va_end (ap);
    }
    return open_at (AT_FDCWD, path, flags, mode);
}

int openat (int at, const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;

    va_start (ap, flags);
    mode = va_arg (ap, mode_t);
    va_end (ap);
    return open_at (at, path, flags, mode);
}

int renameat (int from, const char *path, int to, const char *other)
{
    if (is_coming (path))
        come_to (AT_RENAME, path);
    return (int) syscall (SYS_renameat2, from, path, to, other, 0);
}

int rename (const char *path, const char *other)
{
    return renameat (AT_FDCWD, path, AT_FDCWD, other);
}

int unlinkat (int at, const char *path, int flags)
{
    if (strstr (path, ".gone"))
        come_to (AT_REMOVAL, path);
    return (int) syscall (SYS_unlinkat, at, path, flags);
}

int unlink (const char *path)
{
    return unlinkat (AT_FDCWD, path, 0);
}

int statfs (const char *path, struct statfs *facts)
{
    long rc = syscall (SYS_statfs, path, facts);

    facts->f_type = strange ? 0x4711 : facts->f_type;
    return (int) rc;
}

/* ---- What is asserted ---- */

static bool is_there (const char *name)
{
    char path[2000];

    snprintf (path, sizeof (path), "%s/%s", room, name);
    return !access (path, F_OK);
}

static void begin (void)
{
    snprintf (folder, sizeof (folder), "%s/ck", room);
    if (!multi_rank ())
        shell ("mkdir '%s' '%s' && echo precious >'%s/precious'", room, folder, room);
    CHECK_OK (multi_barrier (comm));
}

static void end (void)
{
    CHECK_OK (multi_barrier (comm));
    if (!multi_rank ())
        shell ("test \"$(cat '%s/precious')\" = precious && rm -r '%s'", room, room);
    CHECK_OK (multi_barrier (comm));
}

static gs_ckpt_t *plan_of (const char *layout)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *plan;

    opts.layout = known_layout (layout);
    opts.keep_last = 1;
    plan = known_plan (state, comm, folder, &opts);
    known_fill (state, 1);
    CHECK_OK (gs_ckpt_write (plan, 1, NULL));
    return plan;
}

/* The save in which it happens fails and says where; the next one goes on. */
static void check_refused (const char *layout, enum moment when, void (*what) (const char *name),
                           const char *text)
{
    gs_ckpt_t *plan;
    gs_status_t st;
    int64_t found = -1;

    begin ();
    plan = plan_of (layout);
    plant = what;
    moment = when;
    known_fill (state, 2);
    st = gs_ckpt_write (plan, 2, NULL);
    CHECK (moment == NEVER || multi_rank (), "%s, %s: it was not tried", layout, text);
    CHECK (st == GS_ERR_IO || st == GS_ERR_STATE, "%s, %s: %s", layout, text,
           gs_status_string (st));
    CHECK (st && strstr (gs_last_error (), text) && strstr (gs_last_error (), folder),
           "%s: no '%s' in '%s'", layout, text, st ? gs_last_error () : "");
    CHECK_OK (multi_barrier (comm));
    if (what == swap_folder) {
        if (!multi_rank ())
            shell ("test -z \"$(find '%s/other' -name 'ck-*')\" && rm '%s' && mv '%s.away' '%s'",
                   room, folder, folder, folder);
        CHECK_OK (multi_barrier (comm));
    }
    known_fill (state, 3);
    CHECK_OK (gs_ckpt_write (plan, 3, NULL));
    CHECK_OK (gs_ckpt_read (plan, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == 3 && known_is (state, 3), "%s: step %lld is found", text, (long long) found);
    CHECK_OK (gs_ckpt_destroy (plan));
    end ();
}

/* What is in the place of what was to go stays. */
static void check_removal (void)
{
    gs_ckpt_t *plan;

    begin ();
    plan = plan_of ("node");
    plant = swap_gone;
    moment = AT_REMOVAL;
    known_fill (state, 2);
    CHECK_OK (gs_ckpt_write (plan, 2, NULL));
    CHECK_OK (multi_barrier (comm));
    CHECK (moment == NEVER || multi_rank (), "it was not tried");
    CHECK (is_there ("ck/ck-000000000001.gone0.tmp/letter"), "a letter is gone");
    CHECK (is_there ("ck/ck-000000000001.gone0.tmp/index.h5"), "another's index is gone");
    CHECK_OK (gs_ckpt_destroy (plan));
    end ();
}

int main (void)
{
    const char *parent = getenv ("TMPDIR");
    gs_ckpt_t *plan;

    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    snprintf (room, sizeof (room), "%s/planted", parent ? parent : "/tmp");
    comm = multi_create (NULL);
    state = known_make (comm);
    for (int turn = 0; turn < 2; turn++) {
        strange = turn;
        check_refused ("single", AT_OPEN, hard_link, "was made for this checkpoint");
        check_refused ("single", AT_OPEN, soft_link, ".tmp: open: ");
        check_refused ("node", AT_OPEN, hard_link, "was made for this checkpoint");
        check_refused ("node", AT_OPEN, soft_link, ".h5: open: ");
    }
    check_refused ("single", AT_RENAME, swap_folder, "in its place");
    check_refused ("node", AT_RENAME, swap_folder, "in its place");
    check_removal ();
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("what is planted is not followed");
}
