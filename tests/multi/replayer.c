/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replayer - the program of ckpt_replay.sh that judges a journal of recorder.so:
 *
 *   replayer JOURNAL SAVED ROOM LAYOUT   SAVED is the folder that the journal is of; in ROOM
 * folders are built as they may be after a loss of power
 *
 * For each entry of the journal power is lost behind it, and of what is not durable then many
 * subsets are on the disk: none and all, each item alone, all but each, and random ones in which
 * writes are torn, too. Once names are on the disk in the order of the calls, once in any. Each
 * time what gradsync finds there must be a whole checkpoint, and not older than the last one that
 * the program was told to be saved; every file that has its name must be whole.
 *
 * Then all this once more for each kind of sync, as if it were not made: then some folder must be
 * bad. GS_TEST_LONG: more subsets, and all of them where that can be done; GS_TEST_SHORT: fewer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "disk.h"
#include "known.h"

#define NOTHING   (-7) /* the step of arrays that nothing was read into */
#define TABLE     ((size_t) 1 << 20)
#define PATH_ROOM 1200
#define BOOT_S    120 /* since power was lost */
#define GOES_ON   64  /* one of so many folders is also written to */
#define EXTENDED  10  /* items of which all subsets are tried in a long test */

enum fault { SOUND, REFUSED, CHANGED, WRONG, DAMAGED, OLDER, UNBEGUN, LOCKED };

static const char *const faults[] = {
    "nothing is wrong",
    "a read fails, and not for damage",
    "a read fails and has changed arrays",
    "what is read is not what was saved",
    "a file that has its name is damaged",
    "the checkpoint is gone that the program was told to be saved",
    "a checkpoint is read that was not begun",
    "a lock is there that nobody can read"};

struct verdict {
    uint64_t key; /* of a folder or, with its step, of a file */
    int64_t found;
    enum fault fault;
};

static struct disk disk;
static struct disk_choice choice;
static struct verdict *table;
static size_t *pending; /* [items] those that can be lost now */
static size_t pending_number;
static size_t states, folders, bad; /* tried, different ones that were read, and not sound */
static size_t past;                 /* entries before power was lost */
static int64_t begun, saved;        /* by then */
static bool in_order, quiet;
static char how[128], first_bad[512];

static const char *room;
static gs_ckpt_layout_t layout;
static char *content;
static uint64_t there[DISK_NAMES_MAX]; /* signature of what has the name now, or 0 */
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static struct known *state;

/* ---- A folder ---- */

static const char *path_in (char path[PATH_ROOM], const char *folder, const char *name)
{
    if (snprintf (path, PATH_ROOM, "%s/%s", folder, name) >= PATH_ROOM)
        exit (1);
    return path;
}

static void write_file (const char *path, size_t bytes)
{
    const struct timespec then = {.tv_sec = time (NULL) - BOOT_S}, times[] = {then, then};
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (fd < 0 || write (fd, content, bytes) != (ssize_t) bytes || futimens (fd, times) ||
        close (fd)) {
        perror (path);
        exit (1);
    }
}

static void remove_in (const char *folder)
{
    DIR *dir = opendir (folder);
    struct dirent *entry;

    while (dir && (entry = readdir (dir)))
        unlinkat (dirfd (dir), entry->d_name, 0);
    if (dir)
        closedir (dir);
}

/* Makes [name] in the room be [file], or not be there. */
static void build_name (const char *name, int file, const int *owner)
{
    char path[PATH_ROOM], inner[PATH_ROOM];

    path_in (path, room, name);
    if (unlink (path) && errno != ENOENT) {
        remove_in (path);
        rmdir (path);
    }
    if (file == DISK_NONE)
        return;
    if (!disk.file[file].is_folder) {
        write_file (path, disk_content (&disk, &choice, file, content));
        return;
    }
    if (mkdir (path, 0777)) {
        perror (path);
        exit (1);
    }
    for (int i = 0; i < disk.names; i++)
        if (disk.name[i].folder == file && owner[i] >= 0)
            write_file (path_in (inner, path, disk.name[i].is),
                        disk_content (&disk, &choice, owner[i], content));
}

/* What tells apart what has each name in the room; 0 of those that are not in it. */
static void sign (const int *owner, uint64_t *signature)
{
    for (int i = 0; i < disk.names; i++) {
        int file = disk.name[i].folder == DISK_ROOT ? owner[i] : DISK_NONE;
        signature[i] = file < 0 ? 0 : disk_signature (&disk, &choice, file);
        for (int k = 0; file >= 0 && disk.file[file].is_folder && k < disk.names; k++)
            if (disk.name[k].folder == file && owner[k] >= 0)
                signature[i] = (signature[i] ^ disk_signature (&disk, &choice, owner[k])) *
                                   UINT64_C (0x9e3779b97f4a7c15) +
                               (uint64_t) k;
    }
}

/* Makes the room hold these files. */
static void build (const int *owner, const uint64_t *signature)
{
    for (int i = 0; i < disk.names; i++)
        if (disk.name[i].folder == DISK_ROOT && signature[i] != there[i]) {
            build_name (disk.name[i].is, owner[i], owner);
            there[i] = signature[i];
        }
}

static void clear (void)
{
    DIR *dir = opendir (room);
    struct dirent *entry;

    while (dir && (entry = readdir (dir)))
        if (entry->d_name[0] != '.' || strlen (entry->d_name) > 2)
            build_name (entry->d_name, DISK_NONE, NULL);
    if (dir)
        closedir (dir);
    memset (there, 0, sizeof (there));
}

/* The step of a file or folder that is complete, by its name; -1 of others. */
static int64_t step_of (const char *name)
{
    int64_t step;
    int end = 0;

    if (sscanf (name, "ck-%" SCNd64 "%n", &step, &end) != 1)
        return -1;
    name += end;
    return !*name || !strcmp (name, ".h5") || !strcmp (name, ".old") ? step : -1;
}

/* ---- What gradsync finds there ---- */

static struct verdict *look_up (uint64_t key)
{
    size_t i = key % TABLE;

    while (table[i].key && table[i].key != key)
        i = (i + 1) % TABLE;
    return &table[i];
}

static enum fault read_step (int64_t step, int64_t *found)
{
    gs_status_t st;

    known_fill (state, NOTHING);
    *found = -1;
    st = gs_ckpt_read (plan, step, found, NULL);
    if (st == GS_ERR_FORMAT)
        return known_is (state, NOTHING) ? DAMAGED : CHANGED;
    if (st)
        return REFUSED;
    return known_is (state, *found < 0 ? NOTHING : *found) ? SOUND : WRONG;
}

/* A job that starts there goes on: what has remained of a save is not in its way. */
static void go_on (int64_t newest)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    int64_t found;
    gs_ckpt_t *next;

    opts.keep_last = 2;
    opts.layout = layout;
    opts.ranks = GS_CKPT_RANKS_FIRST;
    next = known_plan (state, comm, room, &opts);
    CHECK_OK (gs_ckpt_read (next, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == newest, "step %" PRId64 " is found, not %" PRId64, found, newest);
    known_fill (state, newest + 1);
    CHECK_OK (gs_ckpt_write (next, newest + 1, NULL));
    known_fill (state, NOTHING);
    CHECK_OK (gs_ckpt_read (next, GS_CKPT_LATEST, &found, NULL));
    CHECK (found == newest + 1 && known_is (state, found), "it does not go on from %s", how);
    CHECK_OK (gs_ckpt_destroy (next));
    clear ();
}

/* The step of the checkpoint that has name [i], and a key of all that is there of that step. */
static int64_t find_step (int i, const uint64_t *signature, uint64_t *key)
{
    int64_t step = signature[i] ? step_of (disk.name[i].is) : -1;

    *key = (uint64_t) step;
    for (int k = 0; k < disk.names && step >= 0; k++)
        if (signature[k] && step_of (disk.name[k].is) == step)
            *key = (*key ^ signature[k]) * UINT64_C (0x9e3779b97f4a7c15) + (uint64_t) k;
    return step;
}

/* Whether the lock, if there is one, was whole before it got its name. */
static bool can_be_locked (const int *owner)
{
    static const char last[] = "\nid="; /* and 16 digits */

    for (int i = 0; i < disk.names; i++) {
        size_t bytes, end = strlen (last) + 17;
        if (strcmp (disk.name[i].is, ".gs-lock") != 0 || owner[i] < 0)
            continue;
        bytes = disk_content (&disk, &choice, owner[i], content);
        if (bytes < end || memcmp (content + bytes - end, last, strlen (last)) != 0 ||
            content[bytes - 1] != '\n')
            return false;
    }
    return true;
}

static struct verdict judge_folder (const int *owner, const uint64_t *signature)
{
    struct verdict v = {.found = -1}, *file;
    int64_t newest = -1, found;
    uint64_t key;

    v.fault = read_step (GS_CKPT_LATEST, &v.found);
    for (int i = 0; i < disk.names && v.fault == SOUND; i++) {
        int64_t step = find_step (i, signature, &key);
        newest = step > newest ? step : newest;
        if (step < 0 || step == v.found)
            continue;
        file = look_up (key);
        if (!file->key) {
            file->fault = read_step (step, &found);
            file->key = key;
        }
        v.fault = file->fault;
    }
    if (v.fault == SOUND && !can_be_locked (owner))
        v.fault = LOCKED;
    if (v.fault == SOUND && v.found != newest)
        v.fault = DAMAGED;
    if (v.fault == SOUND && !quiet && folders % GOES_ON == 0)
        go_on (newest);
    return v;
}

/* ---- One state ---- */

static void complain (enum fault fault, int64_t found)
{
    char text[sizeof (first_bad)];

    snprintf (text, sizeof (text),
              "power lost after entry %zu of %zu, with %s of %zu items on the disk, names %s%s: "
              "%s (step %" PRId64 " was saved, %" PRId64 " is found)",
              past, disk.entries, how, pending_number, in_order ? "in order" : "in any order",
              choice.stale ? ", stale bytes for lost ones" : "", faults[fault], saved, found);
    if (!bad++)
        strcpy (first_bad, text);
    CHECK (quiet, "%s", text);
}

/* The folder that [choice] gives. */
static void try (void)
{
    int owner[DISK_NAMES_MAX];
    uint64_t signature[DISK_NAMES_MAX], key = 1;
    struct verdict v;
    enum fault fault;

    states++;
    disk_names (&disk, &choice, owner);
    sign (owner, signature);
    for (int i = 0; i < disk.names; i++)
        key = (key ^ signature[i]) * UINT64_C (0x9e3779b97f4a7c15) + (uint64_t) i;
    v = *look_up (key);
    if (!v.key) {
        build (owner, signature);
        folders++;
        v = judge_folder (owner, signature);
        v.key = key;
        *look_up (key) = v;
    }
    fault = v.fault == SOUND && v.found < saved ? OLDER : v.fault;
    fault = fault == SOUND && v.found > begun ? UNBEGUN : fault;
    if (fault)
        complain (fault, v.found);
}

/* ---- All states ---- */

/* What is pending gets [fate], but for [other], which gets [other_fate]. */
static void set_all (enum disk_fate fate, size_t other, enum disk_fate other_fate)
{
    for (size_t i = 0; i < pending_number; i++)
        choice.fate[pending[i]] = (unsigned char) (i == other ? other_fate : fate);
}

static enum disk_fate random_fate (const struct disk_item *item, uint64_t bits, unsigned kept)
{
    if (item->kind == DISK_DATA && bits % 4 == 0)
        return DISK_TORN;
    return (bits >> 8) % 256 < kept ? DISK_KEPT : DISK_LOST;
}

static void set_random (uint64_t seed)
{
    static const unsigned kept[] = {32, 128, 224}; /* of 256 */

    choice.seed = seed;
    choice.stale = seed / 2 % 2;
    for (size_t i = 0; i < pending_number; i++)
        choice.fate[pending[i]] = (unsigned char) random_fate (
            &disk.item[pending[i]], data_bits (seed, 0, i), kept[seed / 4 % 3]);
}

static void set_subset (uint64_t subset)
{
    for (size_t i = 0; i < pending_number; i++)
        choice.fate[pending[i]] = subset >> i & 1 ? DISK_KEPT : DISK_LOST;
}

/* Names are on the disk up to the [number]th that is pending. */
static void set_names (size_t number)
{
    for (size_t i = 0; i < pending_number; i++)
        if (disk.item[pending[i]].kind == DISK_NAME)
            choice.fate[pending[i]] = number && number-- ? DISK_KEPT : DISK_LOST;
}

/* Tries a setting in each way that names can have come to the disk. */
static void try_names (void)
{
    size_t names = 0;

    for (size_t i = 0; i < pending_number; i++)
        names += disk.item[pending[i]].kind == DISK_NAME;
    if (!in_order)
        try ();
    for (size_t i = 0; i <= names && in_order; i++) {
        set_names (i);
        try ();
    }
}

static void try_subsets (bool thorough)
{
    size_t none = pending_number, randoms = thorough ? 300 : getenv ("GS_TEST_SHORT") ? 4 : 30;

    snprintf (how, sizeof (how), "none");
    set_all (DISK_LOST, none, DISK_LOST);
    try_names ();
    snprintf (how, sizeof (how), "all");
    set_all (DISK_KEPT, none, DISK_KEPT);
    try_names ();
    for (size_t i = 0; i < pending_number; i++) {
        snprintf (how, sizeof (how), "all but number %zu", i);
        set_all (DISK_KEPT, i, DISK_LOST);
        try_names ();
        snprintf (how, sizeof (how), "number %zu alone", i);
        set_all (DISK_LOST, i, DISK_KEPT);
        try_names ();
    }
    for (size_t i = 0; i < randoms && pending_number; i++) {
        snprintf (how, sizeof (how), "random subset %zu", i);
        set_random (2000 * past + 2 * i + in_order);
        try_names ();
    }
    choice.stale = false;
    for (uint64_t i = 0; thorough && pending_number <= EXTENDED && i >> pending_number == 0;
         i++) {
        snprintf (how, sizeof (how), "subset %" PRIx64, i);
        set_subset (i);
        try_names ();
    }
}

/* Whether other states are possible after entry [past] - 1 than before it, or more is promised.
 */
static bool is_new (void)
{
    enum journal_kind kind = past ? disk.entry[past - 1].is.kind : JOURNAL_BEGINS;

    begun = kind == JOURNAL_BEGINS && past ? disk.entry[past - 1].is.value : begun;
    if (kind == JOURNAL_SAVED && disk.entry[past - 1].is.value > saved)
        saved = disk.entry[past - 1].is.value;
    if (kind != JOURNAL_END)
        return kind != JOURNAL_SYNC;
    for (size_t i = 0; i < disk.items; i++)
        if (disk.item[i].durable == past - 1)
            return true;
    return false;
}

/* Loses power after each entry. If syncs of a kind are left out, until something is found. */
static void replay (int without, bool names_in_order, bool thorough)
{
    disk_settle (&disk, without);
    in_order = names_in_order;
    quiet = without >= 0;
    states = folders = bad = 0;
    begun = saved = -1;
    for (past = 0; past <= disk.entries && !(quiet && bad); past++) {
        if (!is_new ())
            continue;
        pending_number = 0;
        for (size_t i = 0; i < disk.items; i++) {
            const struct disk_item *item = &disk.item[i];
            choice.fate[i] = item->begin >= past ? DISK_NOT_YET : DISK_KEPT;
            if (item->begin < past && item->durable >= past)
                pending[pending_number++] = i;
        }
        try_subsets (thorough);
    }
}

/* ---- What is asserted ---- */

/* [path] is what the journal makes of it: [file]. */
static void check_file (const char *path, int file)
{
    size_t bytes = disk_content (&disk, &choice, file, content);
    char *is = malloc (bytes + 1);
    int fd = open (path, O_RDONLY);
    struct stat facts;

    CHECK (fd >= 0 && !fstat (fd, &facts) && (size_t) facts.st_size == bytes &&
               read (fd, is, bytes) == (ssize_t) bytes && !memcmp (is, content, bytes),
           "%s has other bytes than in the journal, or is not there", path);
    if (fd >= 0)
        close (fd);
    free (is);
}

/* The journal knows all that the program did: what it makes is what is there, in [folder], which
 * is number [at]. */
static void check_folder (const char *folder, int at, const int *owner)
{
    DIR *dir = opendir (folder);
    struct dirent *entry;
    char path[PATH_ROOM];
    int number = 0;

    for (int i = 0; i < disk.names; i++) {
        if (disk.name[i].folder != at || owner[i] < 0)
            continue;
        path_in (path, folder, disk.name[i].is);
        number++;
        if (disk.file[owner[i]].is_folder)
            check_folder (path, owner[i], owner);
        else
            check_file (path, owner[i]);
    }
    while (dir && (entry = readdir (dir)))
        number -= strcmp (entry->d_name, ".") && strcmp (entry->d_name, "..");
    CHECK (dir && !number, "%s: %d files more than in the journal", folder, -number);
    if (dir)
        closedir (dir);
}

static void check_end (const char *folder)
{
    int owner[DISK_NAMES_MAX];

    memset (choice.fate, DISK_KEPT, disk.items);
    disk_names (&disk, &choice, owner);
    check_folder (folder, DISK_ROOT, owner);
}

static void check_sound (bool thorough)
{
    for (int turn = 0; turn < 2; turn++) {
        replay (-1, !turn, thorough);
        printf ("names %s: %zu states, %zu folders that are new are read, %zu bad\n",
                in_order ? "in order" : "in any order", states, folders, bad);
        CHECK (folders > disk.items || turn, "that is too few");
    }
    CHECK (saved > 0 && saved == begun, "step %" PRId64 " was begun and %" PRId64 " saved", begun,
           saved);
}

/* No sync can be left out. */
static void check_needed (void)
{
    CHECK (disk.kinds >= 3, "%d kinds of syncs", disk.kinds);
    for (int kind = 0; kind < disk.kinds; kind++) {
        const struct disk_kind_of_sync *k = &disk.kind[kind];
        replay (kind, true, false);
        if (k->n > 0)
            printf ("without sync %d of a file %s... by a process", k->n, k->of);
        else
            printf ("without the sync of the folder%s%s%s", *k->of ? " " : "", k->of,
                    *k->of ? (k->n ? "... by who has not made it" : "... by who has made it")
                           : "");
        printf (": %s\n", bad ? first_bad : "nothing is bad");
        CHECK (bad, "sync %d of %s... is not needed, or this test does not see it", k->n, k->of);
    }
}

int main (int argc, char **argv)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    if (argc < 5)
        return 2;
    if (!disk_load (&disk, argv[1]))
        return 1;
    room = argv[3];
    layout = known_layout (argv[4]);
    printf ("%zu entries of %u processes: %zu items, %zu syncs of %d kinds\n", disk.entries,
            disk.processes, disk.items, disk.syncs, disk.kinds);
    content = malloc (disk.most_bytes + 1);
    choice.fate = calloc (disk.items, 1);
    pending = calloc (disk.items, sizeof (*pending));
    table = calloc (TABLE, sizeof (*table));
    comm = multi_create (NULL);
    state = known_make (comm);
    opts.ranks = GS_CKPT_RANKS_FIRST;
    opts.read_only = 1;
    plan = known_plan (state, comm, room, &opts);
    check_end (argv[2]);
    check_sound (getenv ("GS_TEST_LONG"));
    check_needed ();
    clear ();
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    free (table);
    free (pending);
    free (choice.fate);
    free (content);
    disk_unload (&disk);
    return multi_end ("each state has a whole checkpoint, and no sync can be left out");
}
