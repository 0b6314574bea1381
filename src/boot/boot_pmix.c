/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix - ranks of a job step with a PMIx server: srun --mpi=pmix, mpirun.
 *
 * No more of PMIx is called than Slurm's server offers. A fence tells when
 * all have come but not who has not; after its deadline we ask for each card by itself. A card
 * stays in the servers until the step ends. N.B. No call takes a key back, and a value put again
 * is one more there (4.2): groups meet over their parent.
 */
#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/process.h"
#include "base/status.h"
#include "base/thread.h"
#include "boot/missing.h"
#include "boot/boot.h"
#include "boot/boot_pmix_server.h"
#include "boot/launch.h"

#define STARTING_KEY "gradsync.starting" /* of ranks that wait in the start of MPI */
#define ASK_SECONDS  2                   /* how long a server may take to find a card, at least */
#define ASK_AGAIN_NS (GSI_NS_PER_S / 4)
#define PUT_NS       (10 * GSI_NS_PER_S) /* how long it may take to note a card, at least */

struct boot_pmix {
    struct gsi_boot base;
    pmix_proc_t me;
    struct pending *fence, *cards; /* of the next exchange, once it is reserved */
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static int exchanges; /* numbers the keys; the same on all ranks by the order of creates */

static gs_status_t from_pmix (gs_status_t st, const char *what, pmix_status_t rc)
{
    return gsi_fail (st, "%s: %s (%d)", what, PMIx_Error_string (rc), rc);
}

static bool get_uint32 (const pmix_proc_t *proc, const char *key, uint32_t *number)
{
    pmix_value_t *value = NULL;
    bool found = PMIx_Get (proc, key, NULL, 0, &value) == PMIX_SUCCESS && value;

    found = found && value->type == PMIX_UINT32;
    if (found)
        *number = value->data.uint32;
    if (value)
        PMIX_VALUE_RELEASE (value);
    return found;
}

/* The node's name of [rank] from the job's keys, without asking other nodes; false if unknown. */
static bool host_name (const struct boot_pmix *boot, uint32_t rank, char *host)
{
    pmix_value_t *value = NULL;
    pmix_proc_t proc;
    pmix_info_t info[1];
    bool optional = true, found;

    PMIX_LOAD_PROCID (&proc, boot->me.nspace, rank);
    PMIX_INFO_LOAD (&info[0], PMIX_OPTIONAL, &optional, PMIX_BOOL);
    found = PMIx_Get (&proc, PMIX_HOSTNAME, info, 1, &value) == PMIX_SUCCESS && value &&
            value->type == PMIX_STRING && value->data.string[0];
    if (found)
        snprintf (host, GSI_HOST_BYTES, "%s", value->data.string);
    if (value)
        PMIX_VALUE_RELEASE (value);
    PMIX_INFO_DESTRUCT (&info[0]);
    return found;
}

static gs_status_t open_pmix (int64_t deadline_ns, struct gsi_boot **out)
{
    struct boot_pmix *boot = calloc (1, sizeof (*boot));
    pmix_proc_t job;
    uint32_t size = 0, local = 0;
    gs_status_t st;

    if (!boot)
        return gsi_fail (GS_ERR_NOMEM, "boot pmix: out of memory");
    if ((st = gsi_pmix_connect (deadline_ns, &boot->me))) {
        free (boot);
        return st;
    }
    boot->base.ops = &gsi_boot_pmix;
    PMIX_LOAD_PROCID (&job, boot->me.nspace, PMIX_RANK_WILDCARD);
    if (!get_uint32 (&job, PMIX_JOB_SIZE, &size) || boot->me.rank >= size) {
        boot->base.ops->close (&boot->base);
        return gsi_fail (GS_ERR_BOOT, "the PMIx server gives no job size (%s)", PMIX_JOB_SIZE);
    }
    boot->base.rank = (int) boot->me.rank;
    boot->base.size = (int) size;
    boot->base.one_node = get_uint32 (&job, PMIX_LOCAL_SIZE, &local) && local >= size;
    if ((st = gsi_launch_check (boot->base.size, "its PMIx server",
                                "is that of another launcher around this one?"))) {
        boot->base.ops->close (&boot->base);
        return st;
    }
    if (!host_name (boot, boot->me.rank, boot->base.host))
        gsi_process_host (boot->base.host, sizeof (boot->base.host));
    snprintf (boot->base.job, sizeof (boot->base.job), "%s", boot->me.nspace);
    *out = &boot->base;
    return GS_OK;
}

/* A question for the card of one rank, and whether it is there and has the size it should. */
struct question {
    struct pending *pending;
    bool found, fits;
};

/*
 * A wait that the answering thread of PMIx may outlive: whoever is last frees it. One that is
 * never answered stays in the list, so that leak checkers know it is meant to.
 */
struct pending {
    struct pending *next;
    pthread_mutex_t mutex; /* all below */
    pthread_cond_t changed;
    int holders;                /* us, and one for each answer to come */
    int answers;                /* still to come */
    pmix_status_t rc;           /* of a fence */
    struct question *questions; /* [size], or NULL */
    char key[64];               /* N.B. PMIx holds this and info until it answers (4.2) */
    pmix_info_t info[1];
    char *cards; /* [size][bytes], of questions that found one */
    size_t bytes;
};
static pthread_mutex_t list_guard = PTHREAD_MUTEX_INITIALIZER;
static struct pending *list;

static void pending_free (struct pending *p)
{
    PMIX_INFO_DESTRUCT (&p->info[0]);
    free (p->questions);
    free (p->cards);
    free (p);
}

static struct pending *pending_alloc (size_t size, size_t bytes)
{
    struct pending *p = calloc (1, sizeof (*p));

    if (p && size) {
        p->questions = calloc (size, sizeof (*p->questions));
        p->cards = bytes ? malloc (size * bytes) : NULL;
        p->bytes = bytes;
        if (!p->questions || (bytes && !p->cards)) {
            pending_free (p);
            return NULL;
        }
    }
    return p;
}

/* [p] is in the list, and waits for [answers]. */
static void pending_begin (struct pending *p, int answers, int holders)
{
    pthread_mutex_init (&p->mutex, NULL);
    gsi_condition_init (&p->changed);
    p->answers = answers;
    p->holders = holders;
    pthread_mutex_lock (&list_guard);
    p->next = list;
    list = p;
    pthread_mutex_unlock (&list_guard);
}

/* The one of a rank without memory for its fence: kept, and had once; else NULL. */
static struct pending *pending_spare (void)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    static struct pending spare;

    if (atomic_flag_test_and_set (&taken))
        return NULL;
    pending_begin (&spare, 1, 3);
    return &spare;
}

/* A wait for [answers], or for questions to come for cards of [bytes] from [size] ranks. */
static struct pending *pending_new (int answers, int size, size_t bytes)
{
    struct pending *p = pending_alloc ((size_t) size, bytes);

    if (!p)
        return NULL;
    for (int r = 0; r < size; r++)
        p->questions[r].pending = p;
    pending_begin (p, answers, answers + 1);
    return p;
}

static void pending_drop (struct pending *p, int holders)
{
    bool last;

    if (!p)
        return;
    pthread_mutex_lock (&p->mutex);
    last = (p->holders -= holders) == 0;
    pthread_mutex_unlock (&p->mutex);
    if (!last)
        return;
    pthread_mutex_lock (&list_guard);
    for (struct pending **at = &list; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    pthread_mutex_unlock (&list_guard);
    pthread_cond_destroy (&p->changed);
    pthread_mutex_destroy (&p->mutex);
    pending_free (p);
}

/* True when all answers came by [deadline_ns]; looks at [grace] meanwhile, or NULL. */
static bool pending_wait (struct pending *p, int64_t deadline_ns, struct gsi_grace *grace)
{
    int64_t now_ns;
    bool all;

    pthread_mutex_lock (&p->mutex);
    while (p->answers && (now_ns = gsi_now_ns ()) < deadline_ns &&
           (!grace || !gsi_grace_is_over (grace)))
        gsi_condition_wait (&p->changed, &p->mutex,
                            grace ? now_ns + 10 * GSI_NS_PER_MS : deadline_ns);
    all = !p->answers;
    pthread_mutex_unlock (&p->mutex);
    return all;
}

/* Counts an answer that has been taken note of. Called with the mutex held, which it leaves. */
static void answered (struct pending *p)
{
    p->answers--;
    pthread_cond_signal (&p->changed);
    pthread_mutex_unlock (&p->mutex);
    pending_drop (p, 1);
}

static void on_fence (pmix_status_t rc, void *context)
{
    struct pending *p = context;

    if (!p)
        return;
    pthread_mutex_lock (&p->mutex);
    p->rc = rc;
    answered (p);
}

/* N.B. PMIx frees the value when this returns. */
static void on_get (pmix_status_t rc, pmix_value_t *value, void *context)
{
    struct question *q = context;
    struct pending *p = q->pending;

    pthread_mutex_lock (&p->mutex);
    q->found = rc == PMIX_SUCCESS && value;
    q->fits = q->found && value->type == PMIX_BYTE_OBJECT && value->data.bo.size == p->bytes;
    if (q->fits && p->bytes)
        memcpy (p->cards + (size_t) (q - p->questions) * p->bytes, value->data.bo.bytes,
                p->bytes);
    answered (p);
}

/*
 * Asks for the card, of p->bytes, of each rank with wanted[rank] (NULL: of all), and waits for
 * the answers until [deadline_ns], or the end of [grace] if it is not NULL: a server may have
 * none for a rank of another node, and then PMIX_TIMEOUT does not help. The caller drops [p],
 * into which they come.
 */
static void ask_cards (const struct boot_pmix *boot, const char *key, struct pending *p,
                       const unsigned char *wanted, int64_t deadline_ns, struct gsi_grace *grace)
{
    int size = boot->base.size, seconds = ASK_SECONDS;

    snprintf (p->key, sizeof (p->key), "%s", key);
    PMIX_INFO_LOAD (&p->info[0], PMIX_TIMEOUT, &seconds, PMIX_INT);
    for (int r = 0; r < size; r++) {
        struct question *q = &p->questions[r];
        pmix_proc_t proc;
        pmix_status_t rc;
        if (wanted && !wanted[r])
            continue;
        PMIX_LOAD_PROCID (&proc, boot->me.nspace, (uint32_t) r);
        pthread_mutex_lock (&p->mutex);
        p->answers++;
        p->holders++;
        pthread_mutex_unlock (&p->mutex);
        if ((rc = PMIx_Get_nb (&proc, p->key, p->info, 1, on_get, q)) != PMIX_SUCCESS)
            on_get (rc, NULL, q);
    }
    pending_wait (p, deadline_ns, grace);
}

/* The least time that servers are given to find cards. */
static int64_t ask_deadline_ns (void)
{
    return gsi_now_ns () + (ASK_SECONDS + 1) * GSI_NS_PER_S;
}

/* Asks once for cards, of any size; how many of the [wanted] are not there. */
static int ask_once (struct gsi_boot *base, const char *key, const unsigned char *wanted,
                     unsigned char *missing, struct gsi_grace *grace)
{
    struct pending *p = pending_new (0, base->size, 0);
    int left = 0;

    if (!p)
        return 0;
    ask_cards ((struct boot_pmix *) base, key, p, wanted, INT64_MAX, grace);
    pthread_mutex_lock (&p->mutex);
    for (int r = 0; r < base->size; r++) {
        if (p->questions[r].found)
            missing[r] = 0;
        left += wanted[r] && missing[r];
    }
    pthread_mutex_unlock (&p->mutex);
    pending_drop (p, 1);
    return left;
}

/*
 * The same, again until all are there or the grace period is over: a rank may be slow, and a
 * server answers after ASK_SECONDS, or at once.
 */
static void ask_missing (struct gsi_boot *base, const char *key, const unsigned char *wanted,
                         unsigned char *missing)
{
    unsigned char *left = malloc ((size_t) base->size);
    struct gsi_grace grace;
    int number;

    gsi_grace_begin (&grace, gsi_missing_grace_ns (base->timeout_ns));
    number = ask_once (base, key, wanted, missing, &grace);
    while (number && left && !gsi_missing_rest (&grace, ASK_AGAIN_NS)) {
        for (int r = 0; r < base->size; r++)
            left[r] = wanted[r] && missing[r];
        number = ask_once (base, key, left, missing, &grace);
    }
    free (left);
}

static void local_ranks (struct gsi_boot *base, unsigned char *local)
{
    local[base->rank] = 1;
    gsi_pmix_local_ranks (&((struct boot_pmix *) base)->me, base->size, local);
}

static const char *host_or_null (void *context, int rank)
{
    static _Thread_local char host[GSI_HOST_BYTES];

    return host_name (context, (uint32_t) rank, host) ? host : NULL;
}

static int name_absent (struct gsi_boot *base, const char *key, bool early, char *names,
                        size_t room)
{
    const struct gsi_asking asking = {.local = local_ranks,
                                      .ask = ask_missing,
                                      .host = host_or_null,
                                      .ask_ns = gsi_missing_grace_ns (base->timeout_ns),
                                      .early = early};

    return gsi_missing_name (base, &asking, key, names, room);
}

/* Fails with the names of the ranks that have put no card. */
static gs_status_t pmix_name_missing (struct boot_pmix *boot, const char *key, const char *what)
{
    char names[GSI_TEXT_MAX / 2];

    name_absent (&boot->base, key, false, names, sizeof (names));
    return gsi_fail (GS_ERR_TIMEOUT,
                     "bootstrap: %s; %s. Does every rank of the job step call "
                     "gs_comm_create? If not, use gs_comm_from_mpi or gs_comm_create_from_id",
                     what, names);
}

static gs_status_t pmix_reserve (struct gsi_boot *base, size_t bytes)
{
    struct boot_pmix *boot = (struct boot_pmix *) base;

    pending_drop (boot->cards, 1);
    boot->cards = pending_new (0, base->size, bytes);
    if (!boot->fence && !gsi_fault ("pmix.fence"))
        boot->fence = pending_new (1, 0, 0);
    return boot->fence && boot->cards ? GS_OK : gsi_fail (GS_ERR_NOMEM, "pmix: out of memory");
}

static gs_status_t put_card (const char *key, const void *card, size_t bytes, int64_t deadline_ns)
{
    int64_t least_ns = gsi_now_ns () + PUT_NS;
    pmix_value_t value;
    pmix_status_t rc;

    PMIX_VALUE_CONSTRUCT (&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *) (uintptr_t) card; /* only read, and copied */
    value.data.bo.size = bytes;
    if ((rc = PMIx_Put (PMIX_GLOBAL, key, &value)) != PMIX_SUCCESS)
        return from_pmix (GS_ERR_BOOT, "PMIx_Put", rc);
    return gsi_pmix_commit (deadline_ns > least_ns ? deadline_ns : least_ns);
}

/* Puts the key of ranks that have failed, the same on all that did so since the last exchange. */
static gs_status_t put_end (char *key, size_t room)
{
    pthread_mutex_lock (&guard);
    snprintf (key, room, "gradsync.end.%d", exchanges);
    pthread_mutex_unlock (&guard);
    return put_card (key, "", 1, 0);
}

static void pmix_show (struct gsi_boot *base)
{
    char key[64];
    (void) base, put_end (key, sizeof (key));
}

static gs_status_t pmix_blame (struct gsi_boot *base, gs_status_t st, int64_t from_ns)
{
    char what[GSI_TEXT_MAX / 2], names[GSI_TEXT_MAX / 2], key[64];

    snprintf (what, sizeof (what), "%s", gsi_last_text ());
    gsi_missing_stay (from_ns);
    if (put_end (key, sizeof (key)) ||
        !name_absent (base, key, st != GS_ERR_TIMEOUT, names, sizeof (names)))
        return gsi_fail (st, "%s", what);
    return gsi_fail (st, "%s; %s", what, names);
}

/*
 * A rank of this node died. Those of other nodes do not know that and go on, so that this one
 * does, too: if the rank had put its card, what comes next ends at the deadline, and names it.
 */
static gs_status_t one_died (struct boot_pmix *boot)
{
    if (!boot->base.one_node)
        return GS_OK;
    gsi_fail (GS_ERR_TIMEOUT, "bootstrap: a rank died during the exchange");
    return pmix_blame (&boot->base, GS_ERR_TIMEOUT, 0);
}

/*
 * Waits in a fence until all ranks are in it; [collect] brings their cards here as well. False at
 * [deadline_ns]; else [*rc] is what PMIx says, PMIX_SUCCESS if there was no memory to wait with,
 * for this rank has told the others then, and goes.
 */
static bool meet_in_fence (struct boot_pmix *boot, bool collect, int64_t deadline_ns,
                           pmix_status_t *rc)
{
    struct pending *p = boot->fence ? boot->fence : pending_spare ();
    pmix_proc_t all;
    pmix_info_t info[1];
    bool done;

    boot->fence = NULL;
    PMIX_LOAD_PROCID (&all, boot->me.nspace, PMIX_RANK_WILDCARD);
    /* N.B. Slurm looks at the key's presence, not its value: leave it out for a pure barrier. */
    PMIX_INFO_LOAD (&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    /* It packs what it is given at once. */
    *rc = PMIx_Fence_nb (&all, 1, collect ? info : NULL, collect ? 1 : 0, on_fence, p);
    PMIX_INFO_DESTRUCT (&info[0]);
    if (*rc != PMIX_SUCCESS)
        pending_drop (p, 2);
    if (*rc != PMIX_SUCCESS || !p)
        return true;
    done = pending_wait (p, deadline_ns, NULL);
    *rc = done ? p->rc : PMIX_ERR_TIMEOUT; /* else its thread may be writing it */
    pending_drop (p, 1);
    return done;
}

/* Waits until all ranks have put their card. */
static gs_status_t fence (struct boot_pmix *boot, const char *key, int64_t deadline_ns)
{
    pmix_status_t rc;

    if (!meet_in_fence (boot, true, deadline_ns, &rc))
        return pmix_name_missing (boot, key, GSI_LATE_BOOT);
    /* N.B. PARTIAL_SUCCESS means that a rank of this node died (4.2), INVALID_ARG that one had
     * before (PRRTE 3). */
    if (rc == PMIX_ERR_PARTIAL_SUCCESS || rc == PMIX_ERR_INVALID_ARG)
        return one_died (boot);
    return rc == PMIX_SUCCESS ? GS_OK : from_pmix (GS_ERR_BOOT, "PMIx fence", rc);
}

/* N.B. A server forgets the cards of a rank that has ended (PRRTE 3), which others still read. */
static void pmix_part (struct gsi_boot *base)
{
    struct boot_pmix *boot = (struct boot_pmix *) base;
    pmix_status_t rc;

    if (!boot->fence)
        boot->fence = pending_new (1, 0, 0);
    meet_in_fence (boot, false, gsi_now_ns () + gsi_missing_grace_ns (base->timeout_ns), &rc);
}

/* The cards, once the fence has brought them here. */
static gs_status_t get_cards (struct boot_pmix *boot, const char *key, size_t bytes, char *cards,
                              int64_t deadline_ns)
{
    int64_t least_ns = ask_deadline_ns ();
    struct pending *p = boot->cards;
    int size = boot->base.size, first = 0;
    bool found = false;

    boot->cards = NULL;
    ask_cards (boot, key, p, NULL, deadline_ns > least_ns ? deadline_ns : least_ns, NULL);
    pthread_mutex_lock (&p->mutex);
    while (first < size && p->questions[first].fits)
        first++;
    if (first == size)
        memcpy (cards, p->cards, (size_t) size * bytes);
    else
        found = p->questions[first].found;
    pthread_mutex_unlock (&p->mutex);
    pending_drop (p, 1);
    if (first == size)
        return GS_OK;
    if (!found)
        return pmix_name_missing (boot, key, "a rank ended during the exchange");
    pmix_part (&boot->base); /* all ranks have found a card that does not fit */
    return gsi_fail (GS_ERR_MISMATCH,
                     "bootstrap: the card of rank %d is not of this gradsync version: do all "
                     "ranks load the same libgradsync?",
                     first);
}

static gs_status_t pmix_exchange (struct gsi_boot *base, const void *card, size_t bytes,
                                  void *cards, int64_t deadline_ns)
{
    struct boot_pmix *boot = (struct boot_pmix *) base;
    char key[32];
    gs_status_t st;

    pthread_mutex_lock (&guard);
    snprintf (key, sizeof (key), "gradsync.card.%d", ++exchanges); /* also if this one fails */
    pthread_mutex_unlock (&guard);
    if ((st = put_card (key, card, bytes, deadline_ns)) ||
        (st = fence (boot, key, deadline_ns)) || !cards)
        return st;
    return get_cards (boot, key, bytes, cards, deadline_ns);
}

gs_status_t gsi_boot_pmix_wait (struct gsi_boot **out)
{
    gs_status_t st = gsi_boot_pmix_is_open () ? open_pmix (INT64_MAX, out) : GS_ERR_STATE;

    return st ? st : put_card (STARTING_KEY, "", 1, 0);
}

gs_status_t gsi_boot_pmix_missing (struct gsi_boot *boot)
{
    return pmix_name_missing ((struct boot_pmix *) boot, STARTING_KEY,
                              GSI_LATE_BOOT " while MPI started");
}

static void close_pmix (struct gsi_boot *base)
{
    struct boot_pmix *boot = (struct boot_pmix *) base;

    gsi_pmix_disconnect ();
    pending_drop (boot->fence, 2);
    pending_drop (boot->cards, 1);
    free (base);
}

const struct gsi_boot_ops gsi_boot_pmix = {
    .name = "pmix",
    .open = open_pmix,
    .reserve = pmix_reserve,
    .exchange = pmix_exchange,
    .show = pmix_show,
    .blame = pmix_blame,
    .part = pmix_part,
    .close = close_pmix,
};
