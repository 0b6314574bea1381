/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replayer - the program of ckpt_replay.sh that judges a journal of recorder.so:
 *
 *   replayer JOURNAL SAVED ROOM   SAVED is the folder that the journal is of; in ROOM folders are
 *                                 built as they may be after a loss of power
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
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "disk.h"
#include "known.h"

#define NOTHING  (-7) /* the step of arrays that nothing was read into */
#define TABLE    ((size_t) 1 << 20)
#define GOES_ON  64 /* one of so many folders is also written to */
#define EXTENDED 10 /* items of which all subsets are tried in a long test */

enum fault { SOUND, REFUSED, CHANGED, WRONG, DAMAGED, OLDER, UNBEGUN };

static const char *const faults[] = {
    "nothing is wrong",
    "a read fails, and not for damage",
    "a read fails and has changed arrays",
    "what is read is not what was saved",
    "a file that has its name is damaged",
    "the checkpoint is gone that the program was told to be saved",
    "a checkpoint is read that was not begun"};

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
static char *content;
static uint64_t there[DISK_NAMES_MAX]; /* signature of the file that has the name now, or 0 */
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static struct known *state;

/* ---- A folder ---- */

static const char *path_in (const char *folder, const char *name)
{
    static char path[1200];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return path;
}

static void write_file (const char *path, size_t bytes)
{
    int fd = open (path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (fd < 0 || write (fd, content, bytes) != (ssize_t) bytes || close (fd)) {
        perror (path);
        exit (1);
    }
}

/* Makes the room hold these files. */
static void build (const int *owner, const uint64_t *signature)
{
    for (int i = 0; i < disk.names; i++) {
        const char *path = path_in (room, disk.name[i]);
        if (signature[i] == there[i])
            continue;
        if (owner[i] < 0)
            unlink (path);
        else
            write_file (path, disk_content (&disk, &choice, owner[i], content));
        there[i] = signature[i];
    }
}

static void clear (void)
{
    DIR *dir = opendir (room);
    struct dirent *entry;

    while (dir && (entry = readdir (dir)))
        unlinkat (dirfd (dir), entry->d_name, 0);
    if (dir)
        closedir (dir);
    memset (there, 0, sizeof (there));
}

/* The step of a file that is complete, by its name; -1 of others. */
static int64_t step_of (const char *name)
{
    int64_t step;
    int end = 0;

    return sscanf (name, "ck-%" SCNd64 ".h5%n", &step, &end) == 1 && end && !name[end] ? step
                                                                                       : -1;
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

static struct verdict judge_folder (const int *owner, const uint64_t *signature)
{
    struct verdict v = {.found = -1}, *file;
    int64_t newest = -1, found;

    v.fault = read_step (GS_CKPT_LATEST, &v.found);
    for (int i = 0; i < disk.names && v.fault == SOUND; i++) {
        int64_t step = owner[i] < 0 ? -1 : step_of (disk.name[i]);
        newest = step > newest ? step : newest;
        if (step < 0 || step == v.found)
            continue;
        file = look_up (signature[i] + (uint64_t) step);
        if (!file->key) {
            file->fault = read_step (step, &found);
            file->key = signature[i] + (uint64_t) step;
        }
        v.fault = file->fault;
    }
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
    for (int i = 0; i < disk.names; i++) {
        signature[i] = owner[i] < 0 ? 0 : disk_signature (&disk, &choice, owner[i]);
        key = (key ^ signature[i]) * UINT64_C (0x9e3779b97f4a7c15) + (uint64_t) i;
    }
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

/* The journal knows all that the program did: what it makes is what is there. */
static void check_end (const char *folder)
{
    int owner[DISK_NAMES_MAX], number = 0;
    struct stat facts;
    char *is = malloc (disk.most_bytes + 1);
    DIR *dir = opendir (folder);
    struct dirent *entry;

    memset (choice.fate, DISK_KEPT, disk.items);
    disk_names (&disk, &choice, owner);
    for (int i = 0; i < disk.names; i++) {
        int fd = open (path_in (folder, disk.name[i]), O_RDONLY);
        CHECK ((fd >= 0) == (owner[i] >= 0), "%s is there, or not, unlike in the journal",
               disk.name[i]);
        if (fd >= 0 && owner[i] >= 0) {
            size_t bytes = disk_content (&disk, &choice, owner[i], content);
            CHECK (!fstat (fd, &facts) && (size_t) facts.st_size == bytes &&
                       read (fd, is, bytes) == (ssize_t) bytes && !memcmp (is, content, bytes),
                   "%s has other bytes than in the journal", disk.name[i]);
        }
        number += owner[i] >= 0;
        if (fd >= 0)
            close (fd);
    }
    while (dir && (entry = readdir (dir)))
        number -= strcmp (entry->d_name, ".") && strcmp (entry->d_name, "..");
    CHECK (dir && !number, "%d files are not in the journal", -number);
    if (dir)
        closedir (dir);
    free (is);
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
        replay (kind, true, false);
        if (kind)
            printf ("without sync %d of a file by a process", kind);
        else
            printf ("without the sync of the folder");
        printf (": %s\n", bad ? first_bad : "nothing is bad");
        CHECK (bad, "kind %d of syncs is not needed, or this test does not see it", kind);
    }
}

int main (int argc, char **argv)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;

    if (argc < 4)
        return 2;
    if (!disk_load (&disk, argv[1]))
        return 1;
    room = argv[3];
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
