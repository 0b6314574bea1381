/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint - the process's endpoints of libfabric, which all communicators share. */
#include "ofi/endpoint.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/module.h"
#include "base/process.h"
#include "base/status.h"

#define API          FI_VERSION (1, 14)
#define EVENTS       16 /* completions taken at once */
#define NUMBERS      (1u << GSI_OFI_NUMBER_BITS)
#define CANCEL_LOOKS 100 /* for the end of a request that is cancelled */

/* An endpoint that some communicator reaches. */
struct known_address {
    struct known_address *next;
    fi_addr_t at;
    uint32_t bytes;
    char address[];
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct gsi_ofi_endpoint {
    bool open;
    int broken; /* a code, of its queue of completions */
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct gsi_ofi_request *first, **last; /* the queue */
    uint32_t look;                         /* number of the last one at it */
    uint32_t next;                         /* number to be given */
    int users;
    int cancelled; /* requests that have not ended yet */
    bool used[NUMBERS];
    struct known_address *places[256]; /* by hash */
} of_data, of_notices;

/* Where the site has named a provider, or all there is, one is enough. */
struct gsi_ofi_endpoint *gsi_ofi_endpoint (bool for_notices)
{
    return for_notices && !*gsi_env_text (GSI_ENV_OFI_PROVIDER) ? &of_notices : &of_data;
}

/* ---- Opening it ---- */

static gs_status_t ofi_fail (const char *what, int rc)
{
    return gsi_fail (GS_ERR_TRANSPORT, "transport ofi: %s: %s", what, fi_strerror (-rc));
}

/*
 * N.B. shm reaches no other node, and the ranks of one share memory without it; sockets and udp
 * are there for tests of libfabric. psm2 and psm3 connect in the first send to a rank, which then
 * waits for it, for seconds, and call abort if it does not answer (libfabric 1.17 and 2.4,
 * psmx3_av_translate_addr): so a rank that has died ends the others.
 */
static bool is_for_all (const char *provider)
{
    static const char *const others[] = {"shm",      "sm2", "sockets", "udp",  "net",
                                         "ofi_hook", "lnx", "psm",     "psm2", "psm3"};

    for (size_t i = 0; i < sizeof (others) / sizeof (others[0]); i++) {
        size_t n = strlen (others[i]);
        if (!strncmp (provider, others[i], n) && (!provider[n] || provider[n] == ';'))
            return false;
    }
    return true;
}

/* Which tags a provider matches: the ones of its format that end all others. */
static bool matches_tags (const struct fi_info *info)
{
    uint64_t all = gsi_ofi_bits (NUMBERS - 1, (1 << GSI_OFI_RANK_BITS) - 1, 0);
    uint64_t format = info->ep_attr->mem_tag_format, usable = 0;

    for (int bit = 0; bit < 64 && format; bit++)
        if (format >> bit)
            usable |= UINT64_C (1) << bit;
    return (usable & all) == all;
}

/* The first provider of [name], "" for any, that will do and [can] also do that, in the order of
 * libfabric. */
static struct fi_info *find_provider (const char *name, uint64_t can)
{
    struct fi_info *hints = fi_allocinfo (), *all = NULL, *one, *found;
    int rc;

    if (!hints)
        return NULL;
    hints->caps = FI_TAGGED | can;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    /* Without FI_MR_LOCAL: buffers are any memory. The others are about what we do not use. */
    hints->domain_attr->mr_mode =
        FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_MMU_NOTIFY;
    if (*name)
        hints->fabric_attr->prov_name = strdup (name);
    rc = fi_getinfo (API, NULL, NULL, 0, hints, &all);
    fi_freeinfo (hints);
    for (one = rc ? NULL : all; one; one = one->next)
        if (matches_tags (one) && (*name || is_for_all (one->fabric_attr->prov_name)))
            break;
    found = one ? fi_dupinfo (one) : NULL;
    if (!rc)
        fi_freeinfo (all);
    return found;
}

/*
 * Takes [info] once more if it needs care. N.B. In rxm fi_av_insert crashes while a message is
 * there that nobody has asked for yet (rxm_domain.c, rxm_get_addr, mended in 2.4), but where it
 * knows the sources of messages from the beginning.
 */
static struct fi_info *with_care (struct fi_info *info)
{
    const char *name = info->fabric_attr->prov_name;
    struct fi_info *careful = NULL;

    if (FI_VERSION_GE (fi_version (), FI_VERSION (2, 0)) &&
        FI_VERSION_LT (fi_version (), FI_VERSION (2, 4)) && strstr (name, "ofi_rxm"))
        careful = find_provider (name, FI_SOURCE);
    if (careful)
        fi_freeinfo (info);
    return careful ? careful : info;
}

/*
 * In its info. N.B. Some providers take things of the network's card that there are few of, which
 * notices are not worth: TCP is everywhere.
 */
static gs_status_t choose_provider (struct gsi_ofi_endpoint *e)
{
    const char *setting = gsi_env_text (GSI_ENV_OFI_PROVIDER);

    if (e == &of_notices && !(e->info = find_provider ("tcp;ofi_rxm", 0)))
        e->info = find_provider ("tcp", 0);
    if (!e->info)
        e->info = find_provider (setting, 0);
    if (e->info)
        e->info = with_care (e->info);
    if (e->info)
        return GS_OK;
    return gsi_fail (
        GS_ERR_UNSUPPORTED,
        "transport ofi: libfabric has no provider here that carries tagged messages "
        "between hosts%s%s: fi_info lists those there are, GS_OFI_PROVIDER names one",
        *setting ? ", of the name " : "", setting);
}

static gs_status_t open_all (struct gsi_ofi_endpoint *e)
{
    struct fi_av_attr av = {.type = FI_AV_UNSPEC};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
    int rc;

    if ((rc = fi_fabric (e->info->fabric_attr, &e->fabric, NULL)))
        return ofi_fail ("fi_fabric", rc);
    if ((rc = fi_domain (e->fabric, e->info, &e->domain, NULL)))
        return ofi_fail ("fi_domain", rc);
    if ((rc = fi_av_open (e->domain, &av, &e->av, NULL)))
        return ofi_fail ("fi_av_open", rc);
    if ((rc = fi_cq_open (e->domain, &cq, &e->cq, NULL)))
        return ofi_fail ("fi_cq_open", rc);
    if ((rc = fi_endpoint (e->domain, e->info, &e->ep, NULL)))
        return ofi_fail ("fi_endpoint", rc);
    if ((rc = fi_ep_bind (e->ep, &e->av->fid, 0)) ||
        (rc = fi_ep_bind (e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV)))
        return ofi_fail ("fi_ep_bind", rc);
    return (rc = fi_enable (e->ep)) ? ofi_fail ("fi_enable", rc) : GS_OK;
}

static void close_all (struct gsi_ofi_endpoint *e)
{
    struct fid *all[] = {e->ep ? &e->ep->fid : NULL, e->cq ? &e->cq->fid : NULL,
                         e->av ? &e->av->fid : NULL, e->domain ? &e->domain->fid : NULL,
                         e->fabric ? &e->fabric->fid : NULL};

    for (size_t i = 0; i < sizeof (all) / sizeof (all[0]); i++)
        if (all[i])
            fi_close (all[i]);
    fi_freeinfo (e->info);
    e->ep = NULL, e->cq = NULL, e->av = NULL, e->domain = NULL, e->fabric = NULL, e->info = NULL;
    e->open = false;
}

/* With a communicator left, the provider may still write to its memory, or wait for its peers. */
static void close_at_exit (void)
{
    if (gsi_process_is_child () || pthread_mutex_trylock (&guard))
        return;
    for (int i = 0; i < 2; i++) {
        struct gsi_ofi_endpoint *e = i ? &of_notices : &of_data;
        if (e->open && !e->users)
            close_all (e);
    }
    pthread_mutex_unlock (&guard);
}

/* N.B. Providers that are plug-ins are loaded here, not with libfabric. */
static gs_status_t find_and_open (struct gsi_ofi_endpoint *e)
{
    struct gsi_handlers handlers;
    gs_status_t st;

    gsi_handlers_keep (&handlers);
    if (!(st = choose_provider (e)))
        st = open_all (e);
    gsi_handlers_restore (&handlers);
    return st;
}

static gs_status_t open_once (struct gsi_ofi_endpoint *e)
{
    static bool registered;
    gs_status_t st;

    if (e->open)
        return GS_OK;
    if ((st = find_and_open (e))) {
        if (e->info)
            close_all (e);
        return st;
    }
    e->open = true;
    e->last = &e->first;
    if (!registered)
        atexit (close_at_exit);
    registered = true;
    gsi_log (GS_LOG_TRACE, "ofi", "provider %s, domain %s", e->info->fabric_attr->prov_name,
             e->info->domain_attr->name);
    return GS_OK;
}

/* A number that no communicator has. */
static gs_status_t give_number (struct gsi_ofi_endpoint *e, uint32_t *number)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        *number = e->next++ % NUMBERS;
        if (!e->used[*number])
            return GS_OK;
    }
    return gsi_fail (GS_ERR_UNSUPPORTED, "transport ofi: a process can have %u communicators",
                     NUMBERS);
}

gs_status_t gsi_ofi_open (struct gsi_ofi_endpoint *e, int size, struct gsi_notice_card *card)
{
    size_t length = sizeof (card->address);
    gs_status_t st;
    int rc;

    if (size > 1 << GSI_OFI_RANK_BITS)
        return gsi_fail (GS_ERR_UNSUPPORTED, "transport ofi: %d ranks; it serves up to %d", size,
                         1 << GSI_OFI_RANK_BITS);
    gsi_process_outlive_pipes ();
    pthread_mutex_lock (&guard);
    if (!(st = open_once (e)) && (rc = fi_getname (&e->ep->fid, card->address, &length)))
        st = ofi_fail ("fi_getname", rc);
    if (!st)
        st = give_number (e, &card->number);
    if (!st)
        strncpy (card->provider, e->info->fabric_attr->prov_name, sizeof (card->provider) - 1);
    pthread_mutex_unlock (&guard);
    card->bytes = (uint32_t) length;
    return st;
}

void gsi_ofi_join (struct gsi_ofi_endpoint *e, uint32_t number)
{
    pthread_mutex_lock (&guard);
    e->users++;
    e->used[number] = true;
    pthread_mutex_unlock (&guard);
}

/* Called with the lock: takes what is of [owner] out of the queue, but what nobody asks for. */
static void drop_queued (struct gsi_ofi_endpoint *e, const void *owner)
{
    struct gsi_ofi_request **at = &e->first, *r;

    e->last = &e->first;
    while ((r = *at)) {
        if (r->owner == owner && !r->orphan) {
            *at = r->next;
            r->peer->waiting[r->kind]--;
        } else {
            at = &r->next;
            e->last = at;
        }
    }
}

void gsi_ofi_leave (struct gsi_ofi_endpoint *e, const void *owner, uint32_t number,
                    bool unfinished, bool well)
{
    pthread_mutex_lock (&guard);
    if (unfinished)
        drop_queued (e, owner);
    e->used[number] = unfinished || !well;
    e->users -= !unfinished;
    pthread_mutex_unlock (&guard);
}

/* ---- Addresses ---- */

/* Called with the lock. */
static gs_status_t insert (struct gsi_ofi_endpoint *e, const char *address, uint32_t bytes,
                           struct known_address **row)
{
    struct known_address *p = malloc (sizeof (*p) + bytes);
    int rc;

    if (!p)
        return gsi_fail (GS_ERR_NOMEM, "transport ofi: out of memory");
    memcpy (p->address, address, bytes);
    p->bytes = bytes;
    if ((rc = fi_av_insert (e->av, p->address, 1, &p->at, 0, NULL)) != 1) {
        free (p);
        return ofi_fail ("fi_av_insert", rc < 0 ? rc : -FI_EADDRNOTAVAIL);
    }
    p->next = *row;
    *row = p;
    return GS_OK;
}

gs_status_t gsi_ofi_find (struct gsi_ofi_endpoint *e, const char *address, uint32_t bytes,
                          fi_addr_t *out)
{
    struct known_address **row, *p;
    gs_status_t st = GS_OK;

    pthread_mutex_lock (&guard);
    row = &e->places[gsi_hash (address, bytes) % (sizeof (e->places) / sizeof (e->places[0]))];
    for (p = *row; p; p = p->next)
        if (p->bytes == bytes && !memcmp (p->address, address, bytes))
            break;
    if (!p && !(st = insert (e, address, bytes, row)))
        p = *row;
    if (!st)
        *out = p->at;
    pthread_mutex_unlock (&guard);
    return st;
}

/* ---- Posts and completions, with the lock ---- */

static int hand_over (struct gsi_ofi_request *r)
{
    struct fi_msg_tagged peek = {
        .addr = FI_ADDR_UNSPEC, .tag = r->bits, .ignore = r->ignore, .context = &r->context};
    const struct gsi_ofi_endpoint *e = r->endpoint;
    ssize_t rc = -FI_ENOSYS;

    switch (r->kind) {
    case GSI_OFI_SEND:
        rc = fi_tsend (e->ep, r->out, r->bytes, NULL, r->peer->address, r->bits, &r->context);
        break;
    case GSI_OFI_RECV:
        rc = fi_trecv (e->ep, r->in, r->bytes, NULL, FI_ADDR_UNSPEC, r->bits, r->ignore,
                       &r->context);
        break;
    case GSI_OFI_PEEK: rc = fi_trecvmsg (e->ep, &peek, FI_PEEK); break;
    }
    return (int) -rc;
}

/* [bytes] have come, with the tag [bits]. */
static void end_request (struct gsi_ofi_request *r, int code, uint64_t bits, size_t bytes)
{
    if (r->orphan) {
        if (r->count)
            atomic_fetch_sub (r->count, 1);
        else
            r->endpoint->cancelled--;
        free (r);
        return;
    }
    r->code = code;
    if (r->kind != GSI_OFI_SEND) {
        r->bits = bits;
        r->came = bytes;
    }
    atomic_store_explicit (&r->state, code ? GSI_OFI_FAILED : GSI_OFI_ENDED,
                           memory_order_release);
}

int gsi_ofi_post (struct gsi_ofi_request *r)
{
    struct gsi_ofi_endpoint *e = r->endpoint;
    int rc = FI_EAGAIN;

    pthread_mutex_lock (&guard);
    atomic_store_explicit (&r->state, GSI_OFI_PENDING, memory_order_relaxed);
    if (!r->peer || !r->peer->waiting[r->kind])
        rc = hand_over (r);
    if (rc == FI_EAGAIN && r->peer) {
        r->peer->waiting[r->kind]++;
        r->next = NULL;
        *e->last = r;
        e->last = &r->next;
        rc = 0;
    }
    if (rc)
        atomic_store_explicit (&r->state, GSI_OFI_VOID, memory_order_relaxed);
    pthread_mutex_unlock (&guard);
    return rc;
}

/* Tries what is in the queue again; of a peer that has no room for one, no later one. */
static void post_queued (struct gsi_ofi_endpoint *e)
{
    struct gsi_ofi_request **at = &e->first, *r;

    e->look++;
    while ((r = *at)) {
        struct gsi_ofi_peer *peer = r->peer;
        int rc = peer->stuck[r->kind] == e->look ? FI_EAGAIN : hand_over (r);
        if (rc == FI_EAGAIN) {
            peer->stuck[r->kind] = e->look;
            at = &r->next;
            continue;
        }
        *at = r->next;
        peer->waiting[r->kind]--;
        if (rc)
            end_request (r, rc, 0, 0);
    }
    e->last = at;
}

/* A request that failed; whether there was one. */
static bool take_error (const struct gsi_ofi_endpoint *e)
{
    struct fi_cq_err_entry error = {0};
    ssize_t rc = fi_cq_readerr (e->cq, &error, 0);

    if (rc == 1 && error.op_context)
        end_request (error.op_context, error.err ? error.err : FI_EOTHER, error.tag, 0);
    return rc == 1;
}

static void take_completions (struct gsi_ofi_endpoint *e)
{
    struct fi_cq_tagged_entry event[EVENTS];
    ssize_t n;

    do {
        n = fi_cq_read (e->cq, event, EVENTS);
        for (ssize_t i = 0; i < n; i++)
            end_request (event[i].op_context, 0, event[i].tag, event[i].len);
        if (n == -FI_EAVAIL && !take_error (e))
            return;
    } while (n == EVENTS || n == -FI_EAVAIL);
    if (n < 0 && n != -FI_EAGAIN && n != -FI_EINTR)
        e->broken = (int) -n;
}

int gsi_ofi_progress (struct gsi_ofi_endpoint *e)
{
    int rc;

    if (pthread_mutex_trylock (&guard))
        return 0; /* another thread does it */
    take_completions (e);
    if (e->first)
        post_queued (e);
    rc = e->broken;
    pthread_mutex_unlock (&guard);
    return rc;
}

void gsi_ofi_cancel (struct gsi_ofi_request *r)
{
    struct gsi_ofi_endpoint *e = r->endpoint;

    pthread_mutex_lock (&guard);
    if (atomic_load_explicit (&r->state, memory_order_relaxed) == GSI_OFI_PENDING) {
        r->orphan = true;
        e->cancelled++;
        fi_cancel (&e->ep->fid, &r->context);
        for (int i = 0; i < CANCEL_LOOKS && e->cancelled; i++) /* nobody may look later */
            take_completions (e);
    } else {
        free (r);
    }
    pthread_mutex_unlock (&guard);
}
