/* SPDX-License-Identifier: BSD-3-Clause */
/* id - making and reading ids. Sockets listen at the addresses that an id has, and nowhere else.
 */
#include "boot/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/status.h"

#define MAGIC   UINT64_C (0x6773696400000003) /* "gsid", and what has been changed in it since */
#define BACKLOG 1024

_Static_assert(sizeof (struct gsi_id) <= GS_UNIQUE_ID_BYTES, "the id must fit");

/* Ids made here and not used yet. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct made {
    struct made *next;
    struct gsi_id id;
    int listener[GSI_ID_ADDRESSES];
    int error; /* why there is none */
} * made_ids;

int gsi_id_socket (union gsi_address *at, bool listens)
{
    int fd = socket (at->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
    socklen_t bytes = sizeof (*at);

    if (fd < 0 || (listens ? !bind (fd, &at->any, bytes) && !listen (fd, BACKLOG) &&
                                 !getsockname (fd, &at->any, &bytes)
                           : !connect (fd, &at->any, bytes) || errno == EINPROGRESS))
        return fd;
    error = errno;
    close (fd);
    errno = error;
    return -1;
}

/* Whether [at] alone leads to one host: what is local to a link needs an interface, too. */
static bool is_of_a_host (const union gsi_address *at)
{
    in_addr_t four = ntohl (at->four.sin_addr.s_addr);
    const struct in6_addr *six = &at->six.sin6_addr;

    if (at->any.sa_family == AF_INET)
        return four != INADDR_ANY && four != INADDR_BROADCAST && !IN_MULTICAST (four);
    return !IN6_IS_ADDR_UNSPECIFIED (six) && !IN6_IS_ADDR_LINKLOCAL (six) &&
           !IN6_IS_ADDR_MULTICAST (six);
}

/*
 * Listens at [address] and notes it. Left out is one that is not to be had, of an interface that
 * goes up or down, and one that others could not use.
 */
static void add_address (struct made *made, const struct sockaddr *address)
{
    uint32_t n = made->id.addresses;
    union gsi_address *at = &made->id.address[n];

    if (n == GSI_ID_ADDRESSES)
        return;
    if (address->sa_family == AF_INET)
        memcpy (&at->four, address, sizeof (at->four));
    else if (address->sa_family == AF_INET6)
        memcpy (&at->six, address, sizeof (at->six));
    else
        return;
    if (!is_of_a_host (at))
        return;
    if ((made->listener[n] = gsi_id_socket (at, true)) >= 0)
        made->id.addresses++;
    else
        made->error = errno;
}

/* Those of interfaces that are up and of loopback as [loopback] has it: IFF_LOOPBACK or 0. */
static void add_all (struct made *made, const struct ifaddrs *list, unsigned loopback)
{
    for (const struct ifaddrs *i = list; i; i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == (IFF_UP | loopback))
            add_address (made, i->ifa_addr);
}

/* The address of GS_ID_HOST, which is [setting]. */
static gs_status_t read_setting (const char *setting, union gsi_address *at)
{
    at->any.sa_family = inet_pton (AF_INET, setting, &at->four.sin_addr) == 1    ? AF_INET
                        : inet_pton (AF_INET6, setting, &at->six.sin6_addr) == 1 ? AF_INET6
                                                                                 : AF_UNSPEC;
    if (at->any.sa_family == AF_UNSPEC)
        return gsi_fail (GS_ERR_ARG, "GS_ID_HOST='%s' is not a numeric IP address", setting);
    return is_of_a_host (at) ? GS_OK
                             : gsi_fail (GS_ERR_ARG,
                                         "GS_ID_HOST='%s' cannot be reached from other hosts: "
                                         "give an address of this host in a network of them all",
                                         setting);
}

/*
 * Listens at the address that GS_ID_HOST gives, or at every one of this host. Those of loopback
 * serve hosts that have no other, and 127.0.0.1 those that lose the others.
 */
static gs_status_t listen_to_all (struct made *made)
{
    const char *setting = gsi_env_text (GSI_ENV_ID_HOST);
    union gsi_address at = {.six = {0}};
    struct ifaddrs *list = NULL;
    gs_status_t st;

    if (*setting) {
        if ((st = read_setting (setting, &at)))
            return st;
        add_address (made, &at.any);
    } else if (getifaddrs (&list)) {
        return gsi_fail (GS_ERR_BOOT, "getifaddrs: %s", strerror (errno));
    }
    add_all (made, list, 0);
    if (list && made->id.addresses) {
        at.four.sin_family = AF_INET;
        at.four.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
        add_address (made, &at.any);
    } else {
        add_all (made, list, IFF_LOOPBACK);
    }
    freeifaddrs (list);
    if (made->id.addresses)
        return GS_OK;
    return gsi_fail (GS_ERR_BOOT, "gs_unique_id_get: cannot listen at %s: %s",
                     *setting ? "the address of GS_ID_HOST, which must be one of this host"
                              : "any address of this host",
                     strerror (made->error));
}

gs_status_t gs_unique_id_get (gs_unique_id_t *out)
{
    struct made *made;
    gs_status_t st;

    if (!out)
        return gsi_fail (GS_ERR_ARG, "gs_unique_id_get: id is NULL");
    if (!(made = malloc (sizeof (*made))))
        return gsi_fail (GS_ERR_NOMEM, "gs_unique_id_get: out of memory");
    *made = (struct made){.id.magic = MAGIC, .error = EADDRNOTAVAIL};
    memset (made->listener, -1, sizeof (made->listener));
    if (getrandom (made->id.key, GSI_KEY_BYTES, 0) != GSI_KEY_BYTES ||
        getrandom (&made->id.job, sizeof (made->id.job), 0) != sizeof (made->id.job))
        st = gsi_fail (GS_ERR_BOOT, "getrandom: %s", strerror (errno));
    else
        st = listen_to_all (made);
    if (st) {
        free (made);
        return gsi_result (st);
    }
    memset (out, 0, sizeof (*out));
    memcpy (out->bytes, &made->id, sizeof (made->id));
    pthread_mutex_lock (&guard);
    made->next = made_ids;
    made_ids = made;
    pthread_mutex_unlock (&guard);
    return gsi_result (GS_OK);
}

gs_status_t gsi_id_read (const gs_unique_id_t *bytes, struct gsi_id *id)
{
    bool good;

    memcpy (id, bytes->bytes, sizeof (*id));
    good = id->magic == MAGIC && id->addresses >= 1 && id->addresses <= GSI_ID_ADDRESSES;
    for (uint32_t i = 0; good && i < id->addresses; i++)
        good =
            id->address[i].any.sa_family == AF_INET || id->address[i].any.sa_family == AF_INET6;
    return good ? GS_OK
                : gsi_fail (GS_ERR_ARG,
                            "gs_comm_create_from_id: the id is damaged or not from "
                            "gs_unique_id_get: carry all %d bytes as they are",
                            GS_UNIQUE_ID_BYTES);
}

gs_status_t gsi_id_take (const struct gsi_id *id, int listener[GSI_ID_ADDRESSES])
{
    struct made **m = &made_ids, *found;

    pthread_mutex_lock (&guard);
    while (*m && memcmp ((*m)->id.key, id->key, GSI_KEY_BYTES))
        m = &(*m)->next;
    if ((found = *m))
        *m = found->next;
    pthread_mutex_unlock (&guard);
    if (!found)
        return gsi_fail (GS_ERR_ARG,
                         "gs_comm_create_from_id: rank 0 must be the process that made the id, "
                         "and an id serves once: call gs_unique_id_get again");
    memcpy (listener, found->listener, sizeof (found->listener));
    free (found);
    return GS_OK;
}
