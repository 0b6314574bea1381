/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt - calls of a plan that fail have changed nothing: neither the plan nor the process. */
#include "ckpt/plan/plan.h"

#include <signal.h>
#include <stdatomic.h>

#include "unit/alone.h"

static char folder[64];
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static double x[6];
static atomic_int copies_left = -1; /* until one has no memory; -1: all have */

/* In place of the C library's, in this program. */
char *strdup (const char *text)
{
    int left = copies_left;
    char *copy = left == 0 ? NULL : malloc (strlen (text) + 1);

    if (left > 0) /* a test sets it where there is one thread */
        copies_left = left - 1;
    return copy ? strcpy (copy, text) : NULL;
}

static void begin (void)
{
    strcpy (folder, "plan.XXXXXX");
    ck_assert_ptr_nonnull (mkdtemp (folder));
    comm = alone_create ();
    unit_ok (gs_ckpt_create (comm, folder, NULL, &plan));
    unit_ok (gs_ckpt_add_replicated (plan, "x", 2, (const size_t[]){2, 3}, GS_F64, x));
}

static void end (void)
{
    char command[96];

    unit_ok (gs_ckpt_destroy (plan));
    unit_ok (gs_comm_destroy (comm));
    snprintf (command, sizeof (command), "rm -r %s", folder);
    ck_assert_int_eq (system (command), 0);
}

START_TEST (stop_requested)
{
    struct sigaction before, after;
    struct gsi_stop was;

    unit_ok (gs_ckpt_commit (plan));
    was = plan->stop;
    ck_assert_int_eq (sigaction (SIGUSR1, NULL, &before), 0);
    unit_fails (gs_stop_requested (plan, NULL, NULL), GS_ERR_ARG, "reasons is NULL");
    ck_assert_int_eq (sigaction (SIGUSR1, NULL, &after), 0);
    ck_assert_msg (before.sa_handler == after.sa_handler && before.sa_flags == after.sa_flags,
                   "a call that was refused has installed the handler");
    ck_assert_msg (!memcmp (&was, &plan->stop, sizeof (was)),
                   "it has changed what the plan knows");
}
END_TEST

START_TEST (refused_read)
{
    int filled = 0;

    unit_ok (gs_ckpt_commit (plan));
    unit_ok (gs_ckpt_write (plan, 1, NULL));
    unit_ok (gs_ckpt_read (plan, 1, NULL, NULL));
    unit_fails (gs_ckpt_read (plan, -5, NULL, NULL), GS_ERR_ARG, "step is -5");
    unit_ok (gs_ckpt_was_read (plan, "x", &filled));
    ck_assert_msg (filled, "a read that was refused has forgotten the one before");
}
END_TEST

/* Whether the array has the texts of its beginning. */
static bool is_plain (void)
{
    const struct gsi_h5_set *set = &plan->set[0];

    return set->texts == 1 && !strcmp (set->text[0].name, "gs_order") &&
           !strcmp (set->text[0].text, "C");
}

START_TEST (set_bounds)
{
    static const int64_t lower[] = {0, -1};
    gs_status_t st = GS_ERR_NOMEM;
    int copies = 0;

    for (; st && copies < 99; copies++) {
        copies_left = copies;
        st = gs_ckpt_set_bounds (plan, "x", lower);
        copies_left = -1;
        if (!st)
            break;
        ck_assert_msg (st == GS_ERR_NOMEM && is_plain (),
                       "after %d copies: %s, and the array has %d texts", copies,
                       gs_status_string (st), plan->set[0].texts);
    }
    ck_assert_int_gt (copies, 1);
    unit_ok (st);
    ck_assert_int_eq (plan->set[0].texts, 2);
    ck_assert_str_eq (plan->set[0].text[0].text, "(0:2, -1:0)");
    ck_assert_str_eq (plan->set[0].text[1].text, "Fortran");
}
END_TEST

UNIT_SUITE_WITH ("ckpt", 20, begin, end, stop_requested, refused_read, set_bounds)
