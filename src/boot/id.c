/* SPDX-License-Identifier: BSD-3-Clause */
/* id - making and reading ids. Sockets listen at the addresses that an id has, and nowhere else.
 */
#include "boot/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/hash.h"
#include "base/status.h"

#define MAGIC   "gsid-2"
#define ORDER   0x01020304
#define BACKLOG 1024
#define PORTS   16 /* tries to find one that is free at all addresses */

_Static_assert(sizeof (struct gsi_id) <= GS_UNIQUE_ID_BYTES, "the id must fit");

/* Ids made here and not used yet. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct made {
    struct made *next;
    unsigned char key[GSI_KEY_BYTES];
    int listener[GSI_ID_ADDRESSES];
} * made_ids;

/* A number for this boot of this machine and this network namespace. */
static uint64_t network_identity (void)
{
    char boot_id[64] = "";
    struct stat st;
    bool found = true;
    FILE *file = fopen ("/proc/sys/kernel/random/boot_id", "re");

    if (!file || stat ("/proc/self/ns/net", &st) || !fgets (boot_id, sizeof (boot_id), file))
        found = false;
    if (file)
        fclose (file);
    return found ? gsi_hash (boot_id, strlen (boot_id)) ^ st.st_ino : 0;
}

static void add (struct gsi_id *id, uint16_t family, const void *bytes)
{
    if (id->addresses == GSI_ID_ADDRESSES)
        return;
    id->address[id->addresses].family = family;
    memcpy (id->address[id->addresses].bytes, bytes, family == 4 ? 4 : 16);
    id->addresses++;
}

static void add_interface (struct gsi_id *id, const struct sockaddr *address)
{
    const struct sockaddr_in *four = (const void *) address;
    const struct sockaddr_in6 *six = (const void *) address;

    if (address->sa_family == AF_INET)
        add (id, 4, &four->sin_addr);
    else if (address->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL (&six->sin6_addr))
        add (id, 6, &six->sin6_addr); /* local ones need an interface's number of this host */
}

/* Every address of this host, loopback last; or the one GS_ID_HOST gives. */
static gs_status_t list_addresses (struct gsi_id *id)
{
    const char *wish = gsi_env_text (GSI_ENV_ID_HOST);
    unsigned char bytes[16];
    struct ifaddrs *list = NULL;

    if (*wish) {
        if (inet_pton (AF_INET, wish, bytes) == 1)
            add (id, 4, bytes);
        else if (inet_pton (AF_INET6, wish, bytes) == 1)
            add (id, 6, bytes);
        else
            return gsi_fail (GS_ERR_ARG, "GS_ID_HOST='%s' is not a numeric IP address", wish);
        return GS_OK;
    }
    if (getifaddrs (&list))
        return gsi_fail (GS_ERR_BOOT, "getifaddrs: %s", strerror (errno));
    for (unsigned loopback = 0; loopback <= IFF_LOOPBACK; loopback += IFF_LOOPBACK)
        for (struct ifaddrs *i = list; i; i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP) &&
                (i->ifa_flags & IFF_LOOPBACK) == loopback)
                add_interface (id, i->ifa_addr);
    freeifaddrs (list);
    return GS_OK;
}

socklen_t gsi_id_address (const struct gsi_id *id, int i, struct sockaddr_in6 *address)
{
    struct sockaddr_in *four = (void *) address;

    memset (address, 0, sizeof (*address));
    if (id->address[i].family == 4) {
        four->sin_family = AF_INET;
        four->sin_port = htons (id->port);
        memcpy (&four->sin_addr, id->address[i].bytes, 4);
        return sizeof (*four);
    }
    address->sin6_family = AF_INET6;
    address->sin6_port = htons (id->port);
    memcpy (&address->sin6_addr, id->address[i].bytes, 16);
    return sizeof (*address);
}

static bool is_loopback (const struct gsi_id *id, int i)
{
    const unsigned char *bytes = id->address[i].bytes;

    return id->address[i].family == 4 ? bytes[0] == 127
                                      : !memcmp (bytes, &in6addr_loopback, sizeof (in6addr_any));
}

int gsi_id_order (const struct gsi_id *id, int order[GSI_ID_ADDRESSES])
{
    bool here = id->network && id->network == network_identity (), all_loop = true;
    int n = 0;

    for (int i = 0; i < id->addresses; i++)
        all_loop = all_loop && is_loopback (id, i);
    for (int i = 0; here && i < id->addresses; i++)
        if (is_loopback (id, i))
            order[n++] = i;
    for (int i = 0; i < id->addresses; i++)
        if (!is_loopback (id, i) || (!here && (all_loop || !id->network)))
            order[n++] = i;
    return n;
}

/* A socket that listens at address [i]; a port of 0 becomes one that is free. -1: errno says why.
 */
static int listen_at (struct gsi_id *id, int i)
{
    struct sockaddr_in6 at;
    socklen_t length = gsi_id_address (id, i, &at);
    int on = 1, error;
    int fd = socket (at.sin6_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (at.sin6_family == AF_INET6)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof (on));
    if (!bind (fd, (struct sockaddr *) &at, length) && !listen (fd, BACKLOG) &&
        !getsockname (fd, (struct sockaddr *) &at, &length)) {
        id->port = ntohs (at.sin6_port); /* where IPv4 has it, too */
        return fd;
    }
    error = errno;
    close (fd);
    errno = error;
    return -1;
}

static void close_all (int listener[GSI_ID_ADDRESSES])
{
    for (int i = 0; i < GSI_ID_ADDRESSES; i++)
        if (listener[i] >= 0)
            close (listener[i]);
}

/*
 * Listens at every address, with one port. An address that is not to be had, of an interface that
 * goes up or down, is left out; EADDRINUSE: the port is taken at one of them.
 */
static int listen_to_all (struct gsi_id *id, int listener[GSI_ID_ADDRESSES])
{
    int open = 0, error = EADDRNOTAVAIL;

    id->port = 0;
    for (int i = 0; i < GSI_ID_ADDRESSES; i++)
        listener[i] = -1;
    for (int i = 0; i < id->addresses; i++) {
        listener[open] = listen_at (id, i);
        if (listener[open] >= 0)
            id->address[open++] = id->address[i];
        else if ((error = errno) == EADDRINUSE)
            break;
    }
    if (open && error != EADDRINUSE) {
        id->addresses = (uint16_t) open;
        return 0;
    }
    close_all (listener);
    return error;
}

gs_status_t gs_unique_id_get (gs_unique_id_t *out)
{
    struct gsi_id id = {.magic = MAGIC, .order = ORDER, .network = network_identity ()}, wish;
    struct made *made;
    gs_status_t st;
    int error = EADDRINUSE;

    if (!out)
        return gsi_fail (GS_ERR_ARG, "gs_unique_id_get: id is NULL");
    if ((st = gsi_mac_there ("gs_unique_id_get")) || (st = list_addresses (&id)))
        return gsi_result (st);
    if (getrandom (id.key, sizeof (id.key), 0) != sizeof (id.key))
        return gsi_fail (GS_ERR_BOOT, "getrandom: %s", strerror (errno));
    if (!(made = calloc (1, sizeof (*made))))
        return gsi_fail (GS_ERR_NOMEM, "gs_unique_id_get: out of memory");
    wish = id;
    for (int i = 0; i < PORTS && error == EADDRINUSE; i++) {
        id = wish;
        error = listen_to_all (&id, made->listener);
    }
    if (error) {
        free (made);
        return gsi_fail (GS_ERR_BOOT, "gs_unique_id_get: cannot listen at %s: %s",
                         gsi_env_is_set (GSI_ENV_ID_HOST)
                             ? "the address of GS_ID_HOST, which must be one of this host"
                             : "any address of this host",
                         strerror (error));
    }
    memcpy (made->key, id.key, sizeof (made->key));
    pthread_mutex_lock (&guard);
    made->next = made_ids;
    made_ids = made;
    pthread_mutex_unlock (&guard);
    memset (out, 0, sizeof (*out));
    memcpy (out->bytes, &id, sizeof (id));
    return gsi_result (GS_OK);
}

gs_status_t gsi_id_read (const gs_unique_id_t *bytes, struct gsi_id *id)
{
    bool good;

    memcpy (id, bytes->bytes, sizeof (*id));
    good = !memcmp (id->magic, MAGIC, sizeof (MAGIC)) && id->order == ORDER && id->port &&
           id->addresses >= 1 && id->addresses <= GSI_ID_ADDRESSES;
    for (int i = 0; good && i < id->addresses; i++)
        good = id->address[i].family == 4 || id->address[i].family == 6;
    return good ? GS_OK
                : gsi_fail (GS_ERR_ARG,
                            "gs_comm_create_from_id: the id is damaged or not from "
                            "gs_unique_id_get: carry all %d bytes as they are",
                            GS_UNIQUE_ID_BYTES);
}

gs_status_t gsi_id_take (const struct gsi_id *id, int listener[GSI_ID_ADDRESSES])
{
    struct made **m, *found;

    pthread_mutex_lock (&guard);
    for (m = &made_ids; *m && memcmp ((*m)->key, id->key, GSI_KEY_BYTES);)
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
