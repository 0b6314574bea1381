/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix - a server that answers when nobody waits any more, or never. Functions of PMIx are
 * replaced by those below while [fake] is set; else these hand on, also what PMIx itself calls
 * (5.0).
 */
#include <dlfcn.h>
#include <pmix.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "boot/boot.h"
#include "boot/boot_pmix_server.h"
#include "unit/unit.h"

#define HELD 2 /* questions: of the own node's ranks */

static bool fake, hangs; /* in PMIx_Commit */

/* Questions as they were asked, and what PMIx has been given to keep until it answers. */
static struct held {
    const char *key;
    const pmix_info_t *info;
    char asked_key[64];
    pmix_info_t asked_info;
    pmix_value_cbfunc_t answer;
    void *context;
} held[HELD];
static int number;
static pmix_op_cbfunc_t fence_answer;
static void *fence_context;

/* PMIx's own function. */
static void *own (const char *name)
{
    void *address = dlsym (RTLD_NEXT, name);

    ck_assert_msg (address != NULL, "no %s", name);
    return address;
}

/* What follows hands on a call of [name] with the arguments behind it, unless [fake] is set. */
#define HAND_ON(name, ...)                  \
    do {                                    \
        __typeof__ (&name) real;            \
        if (!fake) {                        \
            *(void **) &real = own (#name); \
            return real (__VA_ARGS__);      \
        }                                   \
    } while (0)

pmix_status_t PMIx_Init (pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    HAND_ON (PMIx_Init, proc, info, ninfo);
    PMIX_LOAD_PROCID (proc, "job", 0);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Finalize (const pmix_info_t info[], size_t ninfo)
{
    HAND_ON (PMIx_Finalize, info, ninfo);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Put (pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    HAND_ON (PMIx_Put, scope, key, val);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Commit (void)
{
    HAND_ON (PMIx_Commit, );
    while (hangs)
        pause ();
    return PMIX_SUCCESS;
}

/* Knows of two ranks, and on which node they are. */
pmix_status_t PMIx_Get (const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                        size_t ninfo, pmix_value_t **val)
{
    uint32_t two = 2;

    HAND_ON (PMIx_Get, proc, key, info, ninfo, val);
    PMIX_VALUE_CREATE (*val, 1);
    if (!strcmp (key, PMIX_JOB_SIZE))
        PMIX_VALUE_LOAD (*val, &two, PMIX_UINT32);
    else
        PMIX_VALUE_LOAD (*val, strcmp (key, PMIX_LOCAL_PEERS) ? "n1" : "0,1", PMIX_STRING);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Fence_nb (const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                             size_t ninfo, pmix_op_cbfunc_t answer, void *context)
{
    HAND_ON (PMIx_Fence_nb, procs, nprocs, info, ninfo, answer, context);
    fence_answer = answer;
    fence_context = context;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Get_nb (const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                           size_t ninfo, pmix_value_cbfunc_t answer, void *context)
{
    struct held *h;

    HAND_ON (PMIx_Get_nb, proc, key, info, ninfo, answer, context);
    h = &held[number++];
    ck_assert_int_le (number, HELD);
    *h = (struct held){.key = key, .info = info, .answer = answer, .context = context};
    snprintf (h->asked_key, sizeof (h->asked_key), "%s", key);
    h->asked_info = info[0];
    return PMIX_SUCCESS;
}

/* Leaves nothing of what was on the stack. */
__attribute__ ((noinline)) static void scribble (void)
{
    volatile char stack[65536];

    for (size_t i = 0; i < sizeof (stack); i++)
        stack[i] = 0x5a;
}

START_TEST (answers_come_after_the_deadline)
{
    struct gsi_boot *boot;
    int card = 7, cards[2];

    fake = true;
    unit_ok (gsi_boot_pmix.open (INT64_MAX, &boot));
    unit_ok (gsi_boot_reserve (boot, sizeof (card)));
    unit_fails (boot->ops->exchange (boot, &card, sizeof (card), cards, gsi_now_ns ()),
                GS_ERR_TIMEOUT, "2 of 2 ranks did not come");
    scribble ();
    ck_assert_int_eq (number, HELD);
    for (int i = 0; i < HELD; i++) {
        ck_assert (!memcmp (held[i].key, held[i].asked_key, strlen (held[i].asked_key) + 1));
        ck_assert (!memcmp (held[i].info, &held[i].asked_info, sizeof (held[i].asked_info)));
    }
    for (int i = 0; i < HELD; i++)
        held[i].answer (PMIX_ERR_NOT_FOUND, NULL, held[i].context);
    fence_answer (PMIX_SUCCESS, fence_context);
    gsi_boot_close (boot);
}
END_TEST

START_TEST (a_commit_has_a_deadline)
{
    static const char text[] =
        "the PMIx server, a part of the launcher, does not answer any more";

    fake = true;
    unit_ok (gsi_pmix_commit (INT64_MAX / 2));
    hangs = true;
    unit_fails (gsi_pmix_commit (gsi_now_ns () + 50 * GSI_NS_PER_MS), GS_ERR_TIMEOUT, text);
    unit_fails (gsi_pmix_commit (INT64_MAX / 2), GS_ERR_TIMEOUT,
                text); /* it is not asked again */
}
END_TEST

UNIT_SUITE ("boot_pmix", 60, answers_come_after_the_deadline, a_commit_has_a_deadline)
