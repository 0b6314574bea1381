/* SPDX-License-Identifier: BSD-3-Clause */
/* create - while ranks meet, those of a node see by flight records who goes on and who died. */
#include "comm/create.h"

#include <signal.h>

#include "unit/base/records.h"

static int again; /* how many creates have failed before */

static void leave (void)
{
    clear_room ();
}

/* Rank 1: it has its record, has given up or not, and waits. */
static pid_t come (const struct gsi_boot *boot, bool gives_up)
{
    int there[2];
    char byte;
    pid_t pid;

    ck_assert_int_eq (pipe (there), 0);
    if (!(pid = fork ())) {
        struct gsi_record record;
        if (gsi_record_open (&record, boot->job, "met", 0, 1, 2, boot->host))
            _exit (1);
        gsi_record_give_up (&record, gives_up ? GS_ERR_STATE : GS_OK, 1, 0);
        for (alarm (15); write (there[1], "", 1) == 1;)
            pause ();
    }
    ck_assert_int_eq (read (there[0], &byte, 1), 1);
    close (there[0]);
    close (there[1]);
    return pid;
}

static gs_status_t meet (struct gsi_boot *boot, const void *card, size_t bytes, void *cards,
                         int64_t deadline_ns)
{
    (void) card, (void) bytes, (void) cards, (void) deadline_ns;
    ck_assert (boot->goes_on && boot->goes_on (boot->context, 0));
    ck_assert (boot->halted && !boot->halted (boot->context, 0));
    ck_assert (!boot->goes_on (boot->context, 1) && !boot->halted (boot->context, 1));
    for (int gives_up = 0; gives_up < 2; gives_up++) {
        pid_t pid = come (boot, gives_up);
        ck_assert (boot->goes_on (boot->context, 1) && !boot->halted (boot->context, 1));
        ck_assert_int_eq (kill (pid, SIGKILL), 0);
        ck_assert_int_eq (waitpid (pid, NULL, 0), pid);
        ck_assert (!boot->goes_on (boot->context, 1));
        ck_assert (boot->halted (boot->context, 1) == !gives_up);
    }
    return gsi_fail (GS_ERR_TIMEOUT, "failed %d times before", again);
}

static void close_boot (struct gsi_boot *boot)
{
    (void) boot;
}

START_TEST (records_are_there_before_the_cards)
{
    static const struct gsi_boot_ops ops = {
        .name = "test", .exchange = meet, .close = close_boot};
    struct gsi_plan plan = {.caller = "create", .name = "met", .transport = GS_TRANSPORT_SELF};
    struct gsi_boot boot = {.ops = &ops, .size = 2, .host = "host9", .job = "job"};
    gs_comm_t *comm = NULL;
    char path[300];

    for (again = 0; again < 2; again++) { /* with the same names: the ranks have not met */
        unit_fails (gsi_comm_build (&boot, &plan, &comm), GS_ERR_TIMEOUT, "failed",
                    again ? "1 times" : "0 times");
        snprintf (path, sizeof (path), "%s/gradsync-%ld-job-met.0-r0.ring", room,
                  (long) getuid ());
        ck_assert_int_ne (access (path, F_OK), 0);
        memcpy (path + strlen (path) - 6, "1.ring", 6);
        ck_assert_int_eq (unlink (path), 0);
    }
}
END_TEST

UNIT_SUITE_WITH ("create", 20, enter_room, leave, records_are_there_before_the_cards)
