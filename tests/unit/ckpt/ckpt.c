/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt - calls of a plan that fail have changed nothing: neither the plan nor the process. */
#include "ckpt/ckpt.h"

#include "unit/alone.h"

static char folder[64];
static gs_comm_t *comm;
static gs_ckpt_t *plan;
static double x[6];
static int copies_left = -1; /* until one has no memory; -1: all have */

/* In place of the C library's, in this program. */
char *strdup (const char *text)
{
    char *copy = copies_left == 0 ? NULL : malloc (strlen (text) + 1);

    copies_left -= copies_left > 0;
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

UNIT_SUITE_WITH ("ckpt", 20, begin, end, set_bounds)
