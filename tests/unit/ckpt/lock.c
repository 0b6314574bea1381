/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock - one job step at a time has a folder: others are refused, or take it from who has ended;
 * of several that take it at once one does.
 */
#include "ckpt/folder/lock.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log.h"
#include "ckpt/folder/lock_owner.h"
#include "unit/unit.h"

#define RACERS 8
#define ROUNDS 40

static char folder[64], path[96];

/* What processes of a test share. */
static struct shared {
    atomic_int stage;
    atomic_int ready, had, refused, other;
} * shared;

static void begin (void)
{
    strcpy (folder, "lock.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    snprintf (path, sizeof (path), "%s/.gs-lock", folder);
    shared =
        mmap (NULL, sizeof (*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne (shared, MAP_FAILED);
}

/* Nothing is left. */
static void end (void)
{
    ck_assert_int_eq (rmdir (folder), 0);
    munmap (shared, sizeof (*shared));
}

static void await (atomic_int *word, int value)
{
    while (atomic_load (word) < value)
        usleep (200);
}

static struct gsi_lock *take (bool from_another)
{
    struct gsi_lock *lock;
    bool taken;

    unit_ok (gsi_lock_take ("test", folder, &lock, &taken));
    ck_assert_int_eq (taken, from_another);
    return lock;
}

static gs_status_t look (struct gsi_lock *lock)
{
    bool taken;

    return gsi_lock_look ("test", lock, &taken);
}

/* The folder is another's, as the text tells. */
#define refused(...)                                                                            \
    do {                                                                                        \
        struct gsi_lock *of_another;                                                            \
        bool taken_;                                                                            \
        unit_fails (gsi_lock_take ("test", folder, &of_another, &taken_), GS_ERR_STATE, folder, \
                    __VA_ARGS__);                                                               \
    } while (0)

static struct gsi_owner read_lock (void)
{
    char text[GSI_OWNER_TEXT_MAX] = "";
    struct gsi_owner h;
    int fd = open (path, O_RDONLY);

    ck_assert_int_ge (fd, 0);
    ck_assert_int_gt (read (fd, text, sizeof (text) - 1), 0);
    close (fd);
    ck_assert (gsi_owner_read (&h, text));
    return h;
}

/* Sets its last sign of life back. */
static void age (const char *of, int seconds)
{
    struct timespec times[2];

    clock_gettime (CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    ck_assert_int_eq (utimensat (AT_FDCWD, of, times, 0), 0);
}

static void put (const char *text, int seconds)
{
    FILE *file = fopen (path, "w");

    ck_assert_ptr_nonnull (file);
    fputs (text, file);
    fclose (file);
    age (path, seconds);
}

/* A lock of a job of another host, or of one that cannot be seen from here. */
static void put_foreign (int seconds)
{
    put ("job=99\nrestarts=4\nstep=slurm:99.2\nhost=elsewhere\npid=1\nboot=another\n"
         "since=2026-11-22T20:00:00Z\nid=0123456789abcdef\n",
         seconds);
}

static int threads (void)
{
    DIR *dir = opendir ("/proc/self/task");
    int number = -2;

    while (readdir (dir))
        number++;
    closedir (dir);
    return number;
}

/* ---- One process ---- */

START_TEST (plans)
{
    struct gsi_lock *first, *second;
    struct gsi_owner h;
    char whole[200];
    bool taken;
    int before;

    gsi_lock_drop (take (false)); /* a sanitizer may make a thread of its own beside the first */
    before = threads ();
    first = take (false);
    h = read_lock ();
    ck_assert_int_eq (h.pid, getpid ());
    ck_assert_int_eq (threads (), before + 1);
    snprintf (whole, sizeof (whole), "%s/../%s/.", folder, folder); /* by another name */
    unit_ok (gsi_lock_take ("test", whole, &second, &taken));
    ck_assert_ptr_eq (first, second);
    ck_assert_int_eq (threads (), before + 1);
    unit_ok (look (first));
    gsi_lock_drop (first);
    ck_assert_str_eq (read_lock ().id, h.id);
    unit_ok (look (second));
    gsi_lock_drop (second);
    ck_assert_int_ne (access (path, F_OK), 0);
    ck_assert_int_eq (threads (), before);
    gsi_lock_drop (NULL);
    gsi_lock_drop (take (false));
    ck_assert_int_eq (threads (), before);
}
END_TEST

/* The thread touches it, and takes no signal. */
START_TEST (heartbeat)
{
    struct gsi_lock *lock = take (false);
    struct stat facts;

    age (path, 50);
    gsi_lock_beat (lock);
    ck_assert_int_eq (stat (path, &facts), 0);
    ck_assert_int_lt (time (NULL) - facts.st_mtime, 40);
    age (path, 50);
    do { /* now by itself */
        usleep (100000);
        ck_assert_int_eq (stat (path, &facts), 0);
    } while (time (NULL) - facts.st_mtime > 40);
    gsi_lock_drop (lock);
}
END_TEST

START_TEST (removed_by_hand)
{
    struct gsi_lock *lock = take (false);

    unlink (path);
    gsi_lock_beat (lock);
    ck_assert (!gsi_lock_is_lost (lock));
    unit_ok (look (lock));
    ck_assert_int_eq (read_lock ().pid, getpid ());
    unit_ok (look (lock));
    gsi_lock_drop (lock);
}
END_TEST

START_TEST (moved_folder)
{
    struct gsi_lock *lock = take (false), *none;
    char away[80];
    bool taken;

    snprintf (away, sizeof (away), "%s.away", folder);
    ck_assert_int_eq (rename (folder, away), 0);
    unit_fails (look (lock), GS_ERR_IO, folder, "No such file or directory");
    unit_fails (gsi_lock_take ("test", folder, &none, &taken), GS_ERR_IO, folder);
    ck_assert_int_eq (rename (away, folder), 0);
    unit_ok (look (lock));
    gsi_lock_drop (lock);
}
END_TEST

/* The program goes elsewhere. */
START_TEST (working_folder)
{
    struct gsi_lock *lock = take (false);
    int here = open (".", O_RDONLY);

    ck_assert_int_eq (chdir ("/"), 0);
    unit_ok (look (lock));
    gsi_lock_drop (lock);
    ck_assert_int_eq (fchdir (here), 0);
    close (here);
}
END_TEST

START_TEST (forked)
{
    struct gsi_lock *lock = take (false);
    int status;
    pid_t pid = fork ();

    if (!pid) {
        gsi_lock_drop (lock); /* which is its parent's */
        _exit (0);
    }
    waitpid (pid, &status, 0);
    ck_assert_int_eq (status, 0);
    unit_ok (look (lock));
    gsi_lock_drop (lock);
}
END_TEST

static void *come_and_go (void *failures)
{
    for (int i = 0; i < 100; i++) {
        struct gsi_lock *lock;
        bool taken;
        bool fine = !gsi_lock_take ("test", folder, &lock, &taken);
        fine = fine && !look (lock) && !gsi_lock_is_lost (lock) && !taken;
        if (i % 3)
            gsi_lock_beat (lock);
        gsi_lock_drop (lock);
        atomic_fetch_add ((atomic_int *) failures, !fine);
    }
    return NULL;
}

START_TEST (many_threads)
{
    pthread_t thread[4];
    atomic_int failures = 0;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq (pthread_create (&thread[i], NULL, come_and_go, &failures), 0);
    for (int i = 0; i < 4; i++)
        pthread_join (thread[i], NULL);
    ck_assert_int_eq (failures, 0);
}
END_TEST

/* ---- Others ---- */

START_TEST (foreign)
{
    struct gsi_lock *lock;

    put_foreign (30);
    refused ("job 99", "restart 4", "slurm:99.2", "process 1", "host elsewhere",
             "2026-11-22T20:00:00Z", "s ago", "another folder", "wait", "/.gs-lock");
    put_foreign (-3600); /* by a clock that is wrong */
    refused ("job 99", " 0 s ago");
    put_foreign (70);
    lock = take (true);
    ck_assert_int_eq (read_lock ().pid, getpid ());
    put_foreign (0); /* and back */
    unit_fails (look (lock), GS_ERR_STATE, folder, "job 99", "restart 4", "elsewhere",
                "process 1");
    ck_assert (gsi_lock_is_lost (lock));
    unlink (path); /* what is lost stays lost, */
    unit_fails (look (lock), GS_ERR_STATE, "job 99");
    gsi_lock_drop (lock);
    lock = take (false); /* until there is another plan */
    put_foreign (0);
    gsi_lock_beat (lock);
    ck_assert (gsi_lock_is_lost (lock));
    gsi_lock_drop (lock);
    ck_assert_str_eq (read_lock ().host, "elsewhere");
    unlink (path);
}
END_TEST

START_TEST (unreadable)
{
    struct gsi_lock *none;
    bool taken;

    put ("something else", 30);
    refused (".gs-lock", "remove it");
    put ("", 30);
    refused (".gs-lock", "remove it");
    put ("something else", 61);
    gsi_lock_drop (take (true));
    unlink (path);
    ck_assert_int_eq (mkdir (path, 0777), 0);
    unit_fails (gsi_lock_take ("test", folder, &none, &taken), GS_ERR_IO, folder,
                "Is a directory");
    rmdir (path);
}
END_TEST

/* A clock that was wrong once: the holder counts as alive from now on, not until then. */
START_TEST (future)
{
    struct stat facts;

    put_foreign (-100000);
    refused ("job 99");
    ck_assert_int_eq (stat (path, &facts), 0);
    ck_assert_int_le (facts.st_mtim.tv_sec, time (NULL) + 5);
    put_foreign (-30); /* as clocks of servers may differ */
    refused ("job 99");
    ck_assert_int_eq (stat (path, &facts), 0);
    ck_assert_int_gt (facts.st_mtim.tv_sec, time (NULL) + 5);
    unlink (path);
}
END_TEST

/* Who takes it died in the act, long ago: its claim does not count, and does not stay. */
START_TEST (old_claim)
{
    char claim[128];
    int fd;

    put_foreign (70);
    snprintf (claim, sizeof (claim), "%s.0123456789abcdef.0", path);
    fd = open (claim, O_CREAT | O_WRONLY, 0666);
    close (fd);
    age (claim, 70);
    gsi_lock_drop (take (true));
}
END_TEST

/* What is between two moments is swept when it is old. */
START_TEST (old_files)
{
    char old[128], fresh[128];

    snprintf (old, sizeof (old), "%s.fedcba9876543210", path);
    snprintf (fresh, sizeof (fresh), "%s.fedcba9876543211", path);
    close (open (old, O_CREAT | O_WRONLY, 0666));
    close (open (fresh, O_CREAT | O_WRONLY, 0666));
    age (old, 4000);
    gsi_lock_drop (take (false));
    ck_assert_int_ne (access (old, F_OK), 0);
    ck_assert_int_eq (unlink (fresh), 0);
}
END_TEST

/* A process of [job] that has the lock from stage 1 on, and goes on with [rest] in stage 2. */
static pid_t start_holder (const char *job, const char *step, void (*rest) (struct gsi_lock *))
{
    pid_t pid = fork ();

    if (pid) {
        await (&shared->stage, 1);
        return pid;
    }
    setenv ("SLURM_JOB_ID", job, 1);
    if (step)
        setenv ("PMIX_NAMESPACE", step, 1);
    rest (take (false));
    _exit (0);
}

static void finish (pid_t pid)
{
    int status;

    ck_assert_int_eq (waitpid (pid, &status, 0), pid);
    ck_assert_int_eq (status, 0);
}

static void hold (struct gsi_lock *lock)
{
    atomic_store (&shared->stage, 1);
    await (&shared->stage, 2);
    unit_ok (look (lock));
    gsi_lock_drop (lock);
}

START_TEST (live_holder)
{
    char process[40];
    pid_t pid = start_holder ("71", NULL, hold);

    snprintf (process, sizeof (process), "process %ld on host", (long) pid);
    setenv ("SLURM_JOB_ID", "72", 1);
    refused ("job 71", "restart 0", process);
    ck_assert_str_eq (read_lock ().job, "71");
    atomic_store (&shared->stage, 2);
    finish (pid);
    gsi_lock_drop (take (false));
}
END_TEST

START_TEST (killed_holder)
{
    pid_t pid = start_holder ("71", NULL, hold);

    setenv ("SLURM_JOB_ID", "72", 1);
    refused ("job 71");
    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
    gsi_lock_drop (take (true));
}
END_TEST

static void hold_and_lose (struct gsi_lock *lock)
{
    atomic_store (&shared->stage, 1);
    await (&shared->stage, 2);
    unit_fails (look (lock), GS_ERR_STATE, folder, "job 71", "restart 1");
    gsi_lock_drop (lock);
    refused ("job 71", "restart 1");
}

START_TEST (requeued)
{
    struct gsi_lock *lock;
    pid_t pid = start_holder ("71", "slurm.pmix.71.0", hold_and_lose);

    setenv ("SLURM_JOB_ID", "71", 1);
    setenv ("PMIX_NAMESPACE", "slurm.pmix.71.0", 1);
    setenv ("SLURM_RESTART_COUNT", "1", 1);
    lock = take (true);
    atomic_store (&shared->stage, 2);
    finish (pid);
    unit_ok (look (lock)); /* the other one has left it alone */
    gsi_lock_drop (lock);
}
END_TEST

static void hold_and_leave (struct gsi_lock *lock)
{
    atomic_store (&shared->stage, 1);
    await (&shared->stage, 2);
    gsi_lock_drop (lock);
    atomic_store (&shared->stage, 3);
    await (&shared->stage, 4);
    gsi_lock_drop (take (false)); /* now it shares */
    atomic_store (&shared->stage, 5);
}

START_TEST (same_step)
{
    struct gsi_lock *lock;
    struct stat facts;
    pid_t pid = start_holder ("71", "slurm.pmix.71.0", hold_and_leave);

    setenv ("SLURM_JOB_ID", "71", 1);
    setenv ("PMIX_NAMESPACE", "slurm.pmix.71.0", 1);
    lock = take (false);
    ck_assert_int_eq (read_lock ().pid, pid);
    unit_ok (look (lock));
    ck_assert_int_eq (read_lock ().pid, pid);
    age (path, 50); /* each of the two keeps it alive */
    gsi_lock_beat (lock);
    ck_assert_int_eq (stat (path, &facts), 0);
    ck_assert_int_lt (time (NULL) - facts.st_mtime, 40);
    atomic_store (&shared->stage, 2);
    await (&shared->stage, 3);
    ck_assert_int_ne (access (path, F_OK), 0);
    unit_ok (look (lock)); /* makes a new one */
    ck_assert_int_eq (read_lock ().pid, getpid ());
    atomic_store (&shared->stage, 4);
    await (&shared->stage, 5);
    ck_assert_int_eq (read_lock ().pid, getpid ());
    finish (pid);
    gsi_lock_drop (lock);
}
END_TEST

/* ---- All at once ---- */

static void run_racer (int round)
{
    struct gsi_lock *lock = NULL;
    bool taken;
    gs_status_t st;

    atomic_fetch_add (&shared->ready, 1);
    while (atomic_load (&shared->stage) <= round)
        ;
    st = gsi_lock_take ("test", folder, &lock, &taken);
    atomic_fetch_add (!st                  ? &shared->had
                      : st == GS_ERR_STATE ? &shared->refused
                                           : &shared->other,
                      1);
    while (atomic_load (&shared->had) + atomic_load (&shared->refused) +
               atomic_load (&shared->other) <
           RACERS)
        usleep (200);
    if (!st && look (lock))
        atomic_fetch_add (&shared->other, 1);
    gsi_lock_drop (lock);
    _exit (0);
}

/* [prepare] is called before each round: of all that come then, one has it. */
static void race (void (*prepare) (int round))
{
    pid_t pids[RACERS];

    setenv ("GS_DEBUG", "error", 1); /* who takes it over warns */
    gsi_log_configure ();
    for (int round = 0; round < ROUNDS; round++) {
        prepare (round);
        *shared = (struct shared){.stage = round};
        for (int i = 0; i < RACERS; i++)
            if (!(pids[i] = fork ()))
                run_racer (round);
        await (&shared->ready, RACERS);
        atomic_store (&shared->stage, round + 1);
        for (int i = 0; i < RACERS; i++)
            finish (pids[i]);
        unit_check (shared->had == 1 && shared->refused == RACERS - 1 && !shared->other,
                    "round %d: %d have it, %d are refused, %d else", round, shared->had,
                    shared->refused, shared->other);
        ck_assert_int_ne (access (path, F_OK), 0);
    }
}

static void prepare_stale (int round)
{
    char claim[128];

    put_foreign (70);
    if (round % 2)
        return;
    snprintf (claim, sizeof (claim), "%s.0123456789abcdef.0", path);
    close (open (claim, O_CREAT | O_WRONLY, 0666));
    age (claim, 70);
}

static void prepare_nothing (int round)
{
    (void) round;
}

START_TEST (race_for_stale)
{
    race (prepare_stale);
}
END_TEST

START_TEST (race_for_none)
{
    race (prepare_nothing);
}
END_TEST

UNIT_SUITE_WITH ("lock", 120, begin, end, plans, heartbeat, removed_by_hand, moved_folder, future,
                 working_folder, many_threads, forked, foreign, unreadable, old_claim, old_files,
                 live_holder, killed_holder, requeued, same_step, race_for_stale, race_for_none)
