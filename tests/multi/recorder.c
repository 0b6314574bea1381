/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder - a library to be preloaded: keeps a journal of all calls of a program that change a
 * folder or its files, or sync them. Several processes and threads may write to one journal.
 *
 *   GS_TEST_JOURNAL_FOLDER  the folder, by its absolute path without symbolic links
 *   GS_TEST_JOURNAL         the journal, which is appended to
 *   GS_TEST_STOP            before the call of this number, from 1 on, of those between
 *                           JOURNAL_BEGINS and JOURNAL_SAVED, the process stops itself by SIGSTOP
 *   GS_TEST_STOP_RANK       which rank does
 *
 * Whose a descriptor is, the system is asked in every call. sync_file_range makes nothing durable
 * and is not among the calls; neither are those that nobody should make here, like
 * copy_file_range or writes to a mapping: then the replayer finds other files.
 */
#include "journal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof (off_t) == 8, "functions with and without 64 are the same");

#define PARTS_MAX 16

#define PUBLIC      __attribute__ ((visibility ("default")))
#define TWIN(OTHER) __attribute__ ((visibility ("default"), alias (OTHER)))

/* The functions that stand behind ours. */
static struct {
    int (*openat) (int at, const char *path, int flags, ...);
    ssize_t (*writev) (int fd, const struct iovec *parts, int number);
    ssize_t (*pwritev) (int fd, const struct iovec *parts, int number, off_t offset);
    int (*ftruncate) (int fd, off_t length);
    int (*fallocate) (int fd, int mode, off_t offset, off_t bytes);
    int (*posix_fallocate) (int fd, off_t offset, off_t bytes);
    int (*fsync) (int fd);
    int (*fdatasync) (int fd);
    int (*renameat2) (int from, const char *path, int to, const char *new_path, unsigned flags);
    int (*linkat) (int from, const char *path, int to, const char *new_path, int flags);
    int (*unlinkat) (int at, const char *path, int flags);
    int (*mkdirat) (int at, const char *path, mode_t mode);
    int (*access) (const char *path, int mode);
    int (*fstatat) (int at, const char *path, struct stat *facts, int flags);
    int (*futimens) (int fd, const struct timespec times[2]);
    DIR *(*opendir) (const char *path);
    ssize_t (*read) (int fd, void *data, size_t bytes);
    ssize_t (*pread) (int fd, void *data, size_t bytes, off_t offset);
} next;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *folder;
static size_t folder_length;
static int journal = -1;
static atomic_uint calls;
static atomic_int saving, places; /* calls that count, so far */
static int stop_at;

#define FIND(NAME) (*(void **) &next.NAME = dlsym (RTLD_NEXT, #NAME))

static int where_to_stop (void)
{
    const char *place = getenv ("GS_TEST_STOP"), *who = getenv ("GS_TEST_STOP_RANK");
    const char *rank = getenv ("OMPI_COMM_WORLD_RANK");

    return place && (!who || atoi (who) == (rank ? atoi (rank) : 0)) ? atoi (place) : 0;
}

static void find_next (void)
{
    const char *path = getenv ("GS_TEST_JOURNAL");

    FIND (openat);
    FIND (writev);
    FIND (pwritev);
    FIND (ftruncate);
    FIND (fallocate);
    FIND (posix_fallocate);
    FIND (fsync);
    FIND (fdatasync);
    FIND (renameat2);
    FIND (linkat);
    FIND (unlinkat);
    FIND (mkdirat);
    FIND (access);
    FIND (fstatat);
    FIND (futimens);
    FIND (opendir);
    FIND (read);
    FIND (pread);
    folder = getenv ("GS_TEST_JOURNAL_FOLDER");
    stop_at = where_to_stop ();
    if (!path || !folder)
        return;
    folder_length = strlen (folder);
    journal = next.openat (AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (journal < 0)
        abort ();
}

/* Whether anything is recorded. */
static bool is_on (void)
{
    pthread_once (&once, find_next);
    return journal >= 0;
}

/* ---- Entries ---- */

/* N.B. Linux appends what one call has in one piece, on local file systems. */
static void append (const struct journal_entry *entry, const struct iovec *parts, int number)
{
    struct iovec all[PARTS_MAX + 1];
    size_t bytes = sizeof (*entry) + entry->bytes;

    if (number > PARTS_MAX)
        abort ();
    all[0] = (struct iovec){(void *) (uintptr_t) entry, sizeof (*entry)};
    for (int i = 0; i < number; i++)
        all[i + 1] = parts[i];
    if (next.writev (journal, all, number + 1) != (ssize_t) bytes)
        abort ();
}

static struct journal_entry make (enum journal_kind kind, uint64_t file, int64_t value)
{
    struct journal_entry entry = {.kind = kind,
                                  .process = (uint32_t) getpid (),
                                  .call = (uint64_t) getpid () << 32 | ++calls,
                                  .file = file,
                                  .value = value};

    return entry;
}

static void come_to_place (void)
{
    if (saving && ++places == stop_at)
        kill (getpid (), SIGSTOP);
}

static void begin (const struct journal_entry *entry)
{
    come_to_place ();
    append (entry, NULL, 0);
}

static void end (struct journal_entry *entry, int64_t value)
{
    int reason = errno;

    entry->kind = JOURNAL_END;
    entry->value = value;
    entry->bytes = 0;
    append (entry, NULL, 0);
    errno = reason;
}

static void unknown (const char *call)
{
    struct journal_entry entry = make (JOURNAL_UNKNOWN, 0, 0);

    snprintf (entry.name, sizeof (entry.name), "%s", call);
    append (&entry, NULL, 0);
}

PUBLIC void journal_mark (enum journal_kind kind, int64_t step);
PUBLIC void journal_mark (enum journal_kind kind, int64_t step)
{
    struct journal_entry entry = make (kind, 0, step);

    if (!is_on ())
        return;
    append (&entry, NULL, 0);
    saving = kind == JOURNAL_BEGINS;
}

/* ---- Whose ---- */

/* Where [path] lies in our folder; NULL: elsewhere. "" is the folder itself. */
static const char *inside (const char *path)
{
    if (strncmp (path, folder, folder_length))
        return NULL;
    path += folder_length;
    return *path == '/' ? path + 1 : *path ? NULL : path;
}

static bool path_of (int fd, char path[PATH_MAX])
{
    char link[64];
    ssize_t length;

    snprintf (link, sizeof (link), "/proc/self/fd/%d", fd);
    if ((length = readlink (link, path, PATH_MAX - 1)) < 0)
        return false;
    path[length] = 0;
    return true;
}

/* Whether [fd] is ours; then which file. */
static bool is_ours (int fd, uint64_t *file)
{
    int reason = errno;
    char path[PATH_MAX];
    struct stat facts;
    const char *name = is_on () && path_of (fd, path) ? inside (path) : NULL;
    bool ours = name && !fstat (fd, &facts);

    if (ours)
        *file = *name ? facts.st_ino : JOURNAL_FOLDER;
    errno = reason;
    return ours;
}

/* Where a path lies in our folder; NULL: elsewhere. */
static const char *find (int at, const char *path, char whole[2 * PATH_MAX + 2])
{
    int reason = errno;
    char base[PATH_MAX] = "";

    if (!is_on () || !path)
        return NULL;
    if (*path != '/' && !(at == AT_FDCWD ? !!getcwd (base, sizeof (base)) : path_of (at, base)))
        *base = 0;
    snprintf (whole, 2 * PATH_MAX + 2, "%s%s%s", base, *base ? "/" : "", path);
    errno = reason;
    return inside (whole);
}

/* Whether a path is one in our folder; then its name. */
static bool find_name (int at, const char *path, const char *call, char *name)
{
    char whole[2 * PATH_MAX + 2];
    const char *found = find (at, path, whole), *slash;

    if (!found || !*found)
        return false;
    slash = strchr (found, '/');
    if ((slash && strchr (slash + 1, '/')) || strlen (found) > JOURNAL_NAME_MAX) {
        unknown (call);
        return false;
    }
    strcpy (name, found);
    return true;
}

/* ---- Files ---- */

static int open_at (int at, const char *path, int flags, mode_t mode)
{
    struct journal_entry entry = make (JOURNAL_OPEN, 0, flags);
    struct stat facts = {.st_ino = 0};
    int fd;

    if (!is_on () || !(flags & (O_CREAT | O_TRUNC | O_DSYNC)) ||
        !find_name (at, path, "open", entry.name)) {
        if (is_on () && find_name (at, path, "open", entry.name))
            come_to_place ();
        return next.openat (at, path, flags, mode);
    }
    if (flags & O_DSYNC)
        unknown ("open with O_SYNC or O_DSYNC");
    begin (&entry);
    fd = next.openat (at, path, flags, mode);
    if (fd >= 0 && !fstat (fd, &facts))
        entry.file = facts.st_ino;
    end (&entry, fd);
    return fd;
}

static mode_t mode_of (int flags, va_list ap)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg (ap, mode_t) : 0;
}

PUBLIC int open (const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start (ap, flags);
    mode = mode_of (flags, ap);
    va_end (ap);
    return open_at (AT_FDCWD, path, flags, mode);
}
TWIN ("open") int open64 (const char *path, int flags, ...);

PUBLIC int openat (int at, const char *path, int flags, ...)
{
    mode_t mode;
    va_list ap;

    va_start (ap, flags);
    mode = mode_of (flags, ap);
    va_end (ap);
    return open_at (at, path, flags, mode);
}
TWIN ("openat") int openat64 (int at, const char *path, int flags, ...);

PUBLIC int creat (const char *path, mode_t mode)
{
    return open_at (AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
TWIN ("creat") int creat64 (const char *path, mode_t mode);

/* At [offset], or where the file stands if that is -1. */
static ssize_t put (int fd, const struct iovec *parts, int number, off_t offset)
{
    struct journal_entry entry;
    uint64_t file;
    ssize_t n;

    if (!is_ours (fd, &file))
        return offset < 0 ? next.writev (fd, parts, number)
                          : next.pwritev (fd, parts, number, offset);
    entry = make (JOURNAL_WRITE, file, offset < 0 ? lseek (fd, 0, SEEK_CUR) : offset);
    if (fcntl (fd, F_GETFL) & O_APPEND)
        unknown ("write with O_APPEND");
    for (int i = 0; i < number; i++)
        entry.bytes += parts[i].iov_len;
    come_to_place ();
    append (&entry, parts, number);
    n = offset < 0 ? next.writev (fd, parts, number) : next.pwritev (fd, parts, number, offset);
    end (&entry, n);
    return n;
}

PUBLIC ssize_t write (int fd, const void *data, size_t bytes)
{
    struct iovec part = {(void *) (uintptr_t) data, bytes};

    return put (fd, &part, 1, -1);
}

PUBLIC ssize_t writev (int fd, const struct iovec *parts, int number)
{
    return put (fd, parts, number, -1);
}

PUBLIC ssize_t pwrite (int fd, const void *data, size_t bytes, off_t offset)
{
    struct iovec part = {(void *) (uintptr_t) data, bytes};

    return put (fd, &part, 1, offset);
}
TWIN ("pwrite") ssize_t pwrite64 (int fd, const void *data, size_t bytes, off_t offset);

PUBLIC ssize_t pwritev (int fd, const struct iovec *parts, int number, off_t offset)
{
    return put (fd, parts, number, offset);
}
TWIN ("pwritev")
ssize_t pwritev64 (int fd, const struct iovec *parts, int number, off_t offset);

PUBLIC int ftruncate (int fd, off_t length)
{
    struct journal_entry entry;
    uint64_t file;
    int rc;

    if (!is_ours (fd, &file))
        return next.ftruncate (fd, length);
    entry = make (JOURNAL_LENGTH, file, length);
    begin (&entry);
    rc = next.ftruncate (fd, length);
    end (&entry, rc);
    return rc;
}
TWIN ("ftruncate") int ftruncate64 (int fd, off_t length);

PUBLIC int fallocate (int fd, int mode, off_t offset, off_t bytes)
{
    struct journal_entry entry;
    uint64_t file;
    int rc;

    if (!is_ours (fd, &file) || mode == FALLOC_FL_KEEP_SIZE)
        return next.fallocate (fd, mode, offset, bytes);
    if (mode)
        unknown ("fallocate that changes data");
    entry = make (JOURNAL_RESERVE, file, offset + bytes);
    begin (&entry);
    rc = next.fallocate (fd, mode, offset, bytes);
    end (&entry, rc);
    return rc;
}
TWIN ("fallocate") int fallocate64 (int fd, int mode, off_t offset, off_t bytes);

PUBLIC int posix_fallocate (int fd, off_t offset, off_t bytes)
{
    struct journal_entry entry;
    uint64_t file;
    int rc;

    if (!is_ours (fd, &file))
        return next.posix_fallocate (fd, offset, bytes);
    entry = make (JOURNAL_RESERVE, file, offset + bytes);
    begin (&entry);
    rc = next.posix_fallocate (fd, offset, bytes);
    end (&entry, rc);
    return rc;
}
TWIN ("posix_fallocate") int posix_fallocate64 (int fd, off_t offset, off_t bytes);

static int sync_by (int (*call) (int fd), int fd)
{
    struct journal_entry entry;
    uint64_t file;
    int rc;

    if (!is_ours (fd, &file))
        return call (fd);
    entry = make (JOURNAL_SYNC, file, 0);
    begin (&entry);
    rc = call (fd);
    end (&entry, rc);
    return rc;
}

PUBLIC int fsync (int fd)
{
    is_on ();
    return sync_by (next.fsync, fd);
}

PUBLIC int fdatasync (int fd)
{
    is_on ();
    return sync_by (next.fdatasync, fd);
}

/* ---- Names ---- */

PUBLIC int renameat2 (int from, const char *path, int to, const char *new_path, unsigned flags)
{
    struct journal_entry entry = make (JOURNAL_RENAME, 0, 0);
    bool ours = find_name (from, path, "rename", entry.name),
         new_ours = find_name (to, new_path, "rename", entry.to);
    int rc;

    if (ours != new_ours || (ours && flags))
        unknown ("rename between folders or with flags");
    if (ours)
        begin (&entry);
    rc = next.renameat2 (from, path, to, new_path, flags);
    if (ours)
        end (&entry, rc);
    return rc;
}

PUBLIC int renameat (int from, const char *path, int to, const char *new_path)
{
    return renameat2 (from, path, to, new_path, 0);
}

PUBLIC int rename (const char *path, const char *new_path)
{
    return renameat2 (AT_FDCWD, path, AT_FDCWD, new_path, 0);
}

PUBLIC int linkat (int from, const char *path, int to, const char *new_path, int flags)
{
    struct journal_entry entry = make (JOURNAL_LINK, 0, 0);
    bool ours = find_name (from, path, "link", entry.name),
         new_ours = find_name (to, new_path, "link", entry.to);
    int rc;

    if (ours != new_ours)
        unknown ("link between folders");
    if (ours)
        begin (&entry);
    rc = next.linkat (from, path, to, new_path, flags);
    if (ours)
        end (&entry, rc);
    return rc;
}

PUBLIC int link (const char *path, const char *new_path)
{
    return linkat (AT_FDCWD, path, AT_FDCWD, new_path, 0);
}

PUBLIC int unlinkat (int at, const char *path, int flags)
{
    struct journal_entry entry = make (JOURNAL_UNLINK, 0, 0);
    bool ours = find_name (at, path, "unlink", entry.name);
    int rc;

    if (ours)
        begin (&entry);
    rc = next.unlinkat (at, path, flags);
    if (ours)
        end (&entry, rc);
    return rc;
}

PUBLIC int unlink (const char *path)
{
    return unlinkat (AT_FDCWD, path, 0);
}

PUBLIC int rmdir (const char *path)
{
    return unlinkat (AT_FDCWD, path, AT_REMOVEDIR);
}

PUBLIC int mkdirat (int at, const char *path, mode_t mode)
{
    struct journal_entry entry = make (JOURNAL_FOLD, 0, 0);
    bool ours = find_name (at, path, "mkdir", entry.name);
    struct stat facts;
    int rc;

    if (ours)
        begin (&entry);
    rc = next.mkdirat (at, path, mode);
    if (ours && !rc && !next.fstatat (at, path, &facts, 0))
        entry.file = facts.st_ino;
    if (ours)
        end (&entry, rc);
    return rc;
}

PUBLIC int mkdir (const char *path, mode_t mode)
{
    return mkdirat (AT_FDCWD, path, mode);
}

/* ---- What changes nothing, and is in no journal ---- */

static void look_at (int at, const char *path)
{
    char whole[2 * PATH_MAX + 2];

    if (find (at, path, whole))
        come_to_place ();
}

static void look_into (int fd)
{
    uint64_t file;

    if (is_on () && saving && is_ours (fd, &file))
        come_to_place ();
}

PUBLIC int access (const char *path, int mode)
{
    look_at (AT_FDCWD, path);
    return next.access (path, mode);
}

PUBLIC int fstatat (int at, const char *path, struct stat *facts, int flags)
{
    look_at (at, path);
    return next.fstatat (at, path, facts, flags);
}

PUBLIC int stat (const char *path, struct stat *facts)
{
    return fstatat (AT_FDCWD, path, facts, 0);
}

PUBLIC int futimens (int fd, const struct timespec times[2])
{
    look_into (fd);
    return next.futimens (fd, times);
}

PUBLIC DIR *opendir (const char *path)
{
    look_at (AT_FDCWD, path);
    return next.opendir (path);
}

PUBLIC ssize_t read (int fd, void *data, size_t bytes)
{
    look_into (fd);
    return next.read (fd, data, bytes);
}

PUBLIC ssize_t pread (int fd, void *data, size_t bytes, off_t offset)
{
    look_into (fd);
    return next.pread (fd, data, bytes, offset);
}
