/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_id - a meeting of the ranks that know an id, for sites without a PMIx plugin.
 *
 * The process that makes the id listens; the others connect to one of the addresses in it, show
 * the id's secret and give their card; rank 0 answers with all cards, or with the reason why
 * not. Only cards travel here: the data goes over the transport.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/status.h"
#include "boot/boot.h"

#define ID_MAGIC     "gsid-1"
#define ID_ADDRESSES 8
#define SECRET_BYTES 16
#define ATTEMPT_MS   2000 /* for one round of addresses */
#define RETRY_MS     50   /* between rounds */
#define REFUSED_MS   3000 /* rank 0 is gone when every address has refused for so long */
#define GRACE_MS     2000 /* the others wait longer than rank 0, which knows who is missing */
#define LATE_MS      2000 /* after a failure rank 0 tells those who come so late */
#define BACKLOG      1024

/* What the bytes of a gs_unique_id_t are; the sender's byte order, checked by [order]. */
struct id {
    char magic[8];
    uint32_t order; /* 0x01020304 */
    uint16_t port;  /* host order */
    uint16_t addresses;
    unsigned char secret[SECRET_BYTES];
    uint64_t network; /* tells one network namespace of one boot from another: loopback works */
    struct {
        uint16_t family; /* 4 or 6 */
        unsigned char bytes[16];
    } address[ID_ADDRESSES];
};
_Static_assert(sizeof (struct id) <= GS_UNIQUE_ID_BYTES, "the id must fit");

/* What a rank says first, before its card. */
struct hello {
    char magic[8];
    unsigned char secret[SECRET_BYTES];
    int32_t rank, size;
    uint64_t bytes; /* of the card that follows */
};

/* What rank 0 answers before the cards; they follow only when status is GS_OK. */
struct answer {
    int32_t status;
    char text[500];
};

struct boot_id {
    struct gsi_boot base;
    struct id id;
    int listener; /* on rank 0, else -1 */
    int *peer;    /* [size] sockets on rank 0; one, to rank 0, elsewhere; -1: not connected */
};

/* Ids made here and not used yet. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct made {
    struct made *next;
    unsigned char secret[SECRET_BYTES];
    int listener;
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

static void add_address (struct id *id, const struct sockaddr *address)
{
    int n = id->addresses;

    if (n == ID_ADDRESSES)
        return;
    if (address->sa_family == AF_INET) {
        id->address[n].family = 4;
        memcpy (id->address[n].bytes,
                &((const struct sockaddr_in *) (const void *) address)->sin_addr, 4);
        id->addresses++;
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *a =
            &((const struct sockaddr_in6 *) (const void *) address)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL (a))
            return; /* needs an interface number that means nothing elsewhere */
        id->address[n].family = 6;
        memcpy (id->address[n].bytes, a, 16);
        id->addresses++;
    }
}

/* Every address of this host, loopback last; or the one GS_ID_HOST gives. */
static gs_status_t list_addresses (struct id *id)
{
    const char *wish = gsi_env_text (GSI_ENV_ID_HOST);
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct ifaddrs *list = NULL;

    if (*wish) {
        if (inet_pton (AF_INET, wish, &four.sin_addr) == 1)
            add_address (id, (struct sockaddr *) &four);
        else if (inet_pton (AF_INET6, wish, &six.sin6_addr) == 1)
            add_address (id, (struct sockaddr *) &six);
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
                add_address (id, i->ifa_addr);
    freeifaddrs (list);
    if (!id->addresses)
        return gsi_fail (GS_ERR_BOOT, "gs_unique_id_get: this host has no usable IP address");
    return GS_OK;
}

/* A socket that listens on every address of this host, v4 and v6; its port in [port]. */
static int listen_anywhere (uint16_t *port)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_ANY)};
    struct sockaddr_storage bound;
    socklen_t length = sizeof (bound);
    int off = 0, family = AF_INET6;
    int fd = socket (AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        family = AF_INET; /* a kernel without IPv6 */
        fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    }
    if (fd < 0)
        return -1;
    if (family == AF_INET6)
        setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof (off));
    if ((family == AF_INET6 ? bind (fd, (struct sockaddr *) &any, sizeof (any))
                            : bind (fd, (struct sockaddr *) &any4, sizeof (any4))) ||
        listen (fd, BACKLOG) || getsockname (fd, (struct sockaddr *) &bound, &length)) {
        close (fd);
        return -1;
    }
    *port = ntohs (family == AF_INET6 ? ((struct sockaddr_in6 *) (void *) &bound)->sin6_port
                                      : ((struct sockaddr_in *) (void *) &bound)->sin_port);
    return fd;
}

gs_status_t gs_unique_id_get (gs_unique_id_t *out)
{
    struct id id = {.magic = ID_MAGIC, .order = 0x01020304, .network = network_identity ()};
    struct made *made;
    gs_status_t st;

    if (!out)
        return gsi_fail (GS_ERR_ARG, "gs_unique_id_get: id is NULL");
    if ((st = list_addresses (&id)))
        return st;
    if (getrandom (id.secret, sizeof (id.secret), 0) != sizeof (id.secret))
        return gsi_fail (GS_ERR_BOOT, "getrandom: %s", strerror (errno));
    if (!(made = calloc (1, sizeof (*made))))
        return gsi_fail (GS_ERR_NOMEM, "gs_unique_id_get: out of memory");
    if ((made->listener = listen_anywhere (&id.port)) < 0) {
        free (made);
        return gsi_fail (GS_ERR_BOOT, "gs_unique_id_get: cannot listen: %s", strerror (errno));
    }
    memcpy (made->secret, id.secret, sizeof (made->secret));
    pthread_mutex_lock (&guard);
    made->next = made_ids;
    made_ids = made;
    pthread_mutex_unlock (&guard);
    memset (out, 0, sizeof (*out));
    memcpy (out->bytes, &id, sizeof (id));
    return GS_OK;
}

/* Takes the listening socket of an id made here; -1 if there is none. */
static int take_listener (const unsigned char *secret)
{
    int fd = -1;

    pthread_mutex_lock (&guard);
    for (struct made **m = &made_ids; *m; m = &(*m)->next)
        if (!memcmp ((*m)->secret, secret, SECRET_BYTES)) {
            struct made *found = *m;
            fd = found->listener;
            *m = found->next;
            free (found);
            break;
        }
    pthread_mutex_unlock (&guard);
    return fd;
}

static void close_id (struct gsi_boot *base)
{
    struct boot_id *boot = (struct boot_id *) base;

    for (int r = 0; boot->peer && r < (base->rank ? 1 : base->size); r++)
        if (boot->peer[r] >= 0)
            close (boot->peer[r]);
    if (boot->listener >= 0)
        close (boot->listener);
    free (boot->peer);
    free (boot);
}

gs_status_t gsi_boot_id_open (const gs_unique_id_t *bytes, int rank, int size,
                              struct gsi_boot **out)
{
    struct boot_id *boot = calloc (1, sizeof (*boot));
    struct id *id;

    *out = NULL;
    if (!boot || !(boot->peer = malloc (sizeof (int) * (size_t) (rank ? 1 : size)))) {
        free (boot);
        return gsi_fail (GS_ERR_NOMEM, "gs_comm_create_from_id: out of memory");
    }
    for (int r = 0; r < (rank ? 1 : size); r++)
        boot->peer[r] = -1;
    id = &boot->id;
    memcpy (id, bytes->bytes, sizeof (*id));
    boot->listener = -1;
    boot->base.ops = &gsi_boot_id;
    boot->base.rank = rank;
    boot->base.size = size;
    gsi_boot_own_host (boot->base.host);
    snprintf (boot->base.job, sizeof (boot->base.job), "id-%02x%02x%02x%02x%02x%02x",
              id->secret[0], id->secret[1], id->secret[2], id->secret[3], id->secret[4],
              id->secret[5]);
    if (memcmp (id->magic, ID_MAGIC, sizeof (ID_MAGIC)) || id->order != 0x01020304 ||
        id->addresses < 1 || id->addresses > ID_ADDRESSES) {
        close_id (&boot->base);
        return gsi_fail (GS_ERR_ARG,
                         "gs_comm_create_from_id: the id is damaged or not from "
                         "gs_unique_id_get: carry all %d bytes as they are",
                         GS_UNIQUE_ID_BYTES);
    }
    if (!rank && (boot->listener = take_listener (id->secret)) < 0) {
        close_id (&boot->base);
        return gsi_fail (GS_ERR_ARG,
                         "gs_comm_create_from_id: rank 0 must be the process that "
                         "made the id, and an id serves once: call gs_unique_id_get again");
    }
    *out = &boot->base;
    return GS_OK;
}

/* Waits for [events] on [fd]; false at the deadline. */
static bool wait_fd (int fd, short events, int64_t deadline_ns)
{
    struct pollfd p = {.fd = fd, .events = events};
    int64_t left_ms;

    do {
        left_ms = (deadline_ns - gsi_now_ns () + GSI_NS_PER_MS - 1) / GSI_NS_PER_MS;
        if (left_ms <= 0)
            return false;
    } while (poll (&p, 1, left_ms > 1000 ? 1000 : (int) left_ms) <= 0);
    return true;
}

/* Moves all [bytes] over a non-blocking socket; false at its end, an error or the deadline. */
static bool move_all (int fd, void *data, size_t bytes, bool sending, int64_t deadline_ns)
{
    char *at = data;

    while (bytes) {
        ssize_t n = sending ? send (fd, at, bytes, MSG_NOSIGNAL) : recv (fd, at, bytes, 0);
        if (n > 0) {
            at += n;
            bytes -= (size_t) n;
        } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            return false;
        } else if (!wait_fd (fd, sending ? POLLOUT : POLLIN, deadline_ns)) {
            return false;
        }
    }
    return true;
}

/* Connects to one address; -1 if that fails. Clears [refused] unless it failed by refusal. */
static int connect_one (int family, const unsigned char *bytes, uint16_t port,
                        int64_t deadline_ns, bool *refused)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons (port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons (port)};
    int fd =
        socket (family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = 0, on = 1;
    socklen_t length = sizeof (error);

    if (fd < 0)
        return -1;
    memcpy (&four.sin_addr, bytes, 4);
    memcpy (&six.sin6_addr, bytes, 16);
    if ((family == 4 ? connect (fd, (struct sockaddr *) &four, sizeof (four))
                     : connect (fd, (struct sockaddr *) &six, sizeof (six))) &&
        (errno != EINPROGRESS || !wait_fd (fd, POLLOUT, deadline_ns) ||
         getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &length) || error)) {
        if (error != ECONNREFUSED && errno != ECONNREFUSED)
            *refused = false;
        close (fd);
        return -1;
    }
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
    return fd;
}

/*
 * Tries the addresses in turn until one works; -1 at the deadline, or when they have refused for
 * a while: rank 0 listens from the moment the id is made, so it has ended.
 */
static int connect_root (const struct id *id, int64_t deadline_ns)
{
    static const unsigned char loopback[16] = {127, 0, 0, 1};
    int64_t refused_since_ns = gsi_now_ns (), now_ns;

    while ((now_ns = gsi_now_ns ()) < deadline_ns &&
           now_ns - refused_since_ns < REFUSED_MS * GSI_NS_PER_MS) {
        int64_t soon = now_ns + ATTEMPT_MS * GSI_NS_PER_MS;
        bool refused = true;
        int fd = -1;
        if (soon > deadline_ns)
            soon = deadline_ns;
        if (id->network && id->network == network_identity ())
            fd = connect_one (4, loopback, id->port, soon, &refused);
        for (int a = 0; fd < 0 && a < id->addresses; a++)
            fd = connect_one (id->address[a].family, id->address[a].bytes, id->port, soon,
                              &refused);
        if (fd >= 0)
            return fd;
        if (!refused)
            refused_since_ns = gsi_now_ns ();
        usleep (RETRY_MS * 1000);
    }
    return -1;
}

static gs_status_t exchange_other (struct boot_id *boot, const struct hello *hello,
                                   const void *card, void *cards, int64_t deadline_ns)
{
    size_t bytes = hello->bytes;
    struct hello own = *hello;
    struct answer answer;
    char *copy = malloc (bytes);
    bool sent;

    if (!copy)
        return gsi_fail (GS_ERR_NOMEM, "boot id: out of memory");
    memcpy (copy, card, bytes);
    deadline_ns += GRACE_MS * GSI_NS_PER_MS;
    if (boot->peer[0] < 0)
        boot->peer[0] = connect_root (&boot->id, deadline_ns);
    sent = boot->peer[0] >= 0 &&
           move_all (boot->peer[0], &own, sizeof (own), true, deadline_ns) &&
           move_all (boot->peer[0], copy, bytes, true, deadline_ns);
    free (copy);
    if (!sent)
        return gsi_fail (GS_ERR_TIMEOUT,
                         "bootstrap: rank %d cannot reach rank 0, the process "
                         "that made the id: has it ended or failed, or is the network between "
                         "the hosts closed? GS_ID_HOST on rank 0 chooses the address",
                         boot->base.rank);
    if (!move_all (boot->peer[0], &answer, sizeof (answer), false, deadline_ns))
        return gsi_fail (GS_ERR_TIMEOUT, "bootstrap: rank 0 ended or did not answer rank %d",
                         boot->base.rank);
    answer.text[sizeof (answer.text) - 1] = 0;
    if (answer.status)
        return gsi_fail ((gs_status_t) answer.status, "%s", answer.text);
    if (!move_all (boot->peer[0], cards, bytes * (size_t) boot->base.size, false, deadline_ns))
        return gsi_fail (GS_ERR_BOOT, "bootstrap: the connection to rank 0 broke");
    return GS_OK;
}

/* Reads a hello; a stranger is dropped in silence. */
static bool knows_id (int fd, const struct hello *own, struct hello *hello, int64_t deadline_ns)
{
    if (move_all (fd, hello, sizeof (*hello), false, deadline_ns) &&
        !memcmp (hello->magic, own->magic, sizeof (own->magic)) &&
        !memcmp (hello->secret, own->secret, sizeof (own->secret)))
        return true;
    gsi_log (GS_LOG_WARN, "boot", "dropped a connection that does not know the id");
    close (fd);
    return false;
}

/* Tells the last error, and ends the connection when that has been read. */
static void turn_away (int fd, gs_status_t st, int64_t deadline_ns)
{
    struct answer no = {.status = (int32_t) st};
    char rest[512];

    snprintf (no.text, sizeof (no.text), "%.*s", (int) sizeof (no.text) - 1, gs_last_error ());
    if (move_all (fd, &no, sizeof (no), true, deadline_ns))
        shutdown (fd, SHUT_WR);
    while (wait_fd (fd, POLLIN, deadline_ns) && recv (fd, rest, sizeof (rest), 0) > 0)
        ; /* a card left unread would make the close drop our answer */
    close (fd);
}

/* After a failure: tells the [number] ranks that may be on their way. */
static void tell_late (struct boot_id *boot, const struct hello *own, gs_status_t st, int number)
{
    int64_t until_ns = gsi_now_ns () + LATE_MS * GSI_NS_PER_MS;
    struct hello hello;

    while (number > 0 && wait_fd (boot->listener, POLLIN, until_ns)) {
        int fd = accept4 (boot->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 || !knows_id (fd, own, &hello, until_ns))
            continue;
        turn_away (fd, st, until_ns);
        number--;
    }
}

/* Takes one connection's hello and card. */
static gs_status_t admit (struct boot_id *boot, int fd, const struct hello *own, char *cards,
                          int64_t deadline_ns)
{
    int64_t soon = gsi_now_ns () + 2 * GSI_NS_PER_S; /* nobody may block the door */
    struct hello hello;
    int rank;

    if (soon > deadline_ns)
        soon = deadline_ns;
    if (!knows_id (fd, own, &hello, soon))
        return GS_OK;
    rank = hello.rank;
    if (hello.size != own->size || hello.bytes != own->bytes || rank < 1 || rank >= own->size ||
        boot->peer[rank] >= 0) {
        bool taken = rank >= 1 && rank < own->size && boot->peer[rank] >= 0;
        gs_status_t st = gsi_fail (
            hello.bytes != own->bytes ? GS_ERR_MISMATCH : GS_ERR_ARG,
            "gs_comm_create_from_id: a process came as rank %d of %d, %s (rank 0 says size %d)",
            rank, hello.size,
            taken                       ? "which is taken"
            : hello.bytes != own->bytes ? "with another gradsync version"
                                        : "which does not fit",
            own->size);
        turn_away (fd, st, soon);
        return st;
    }
    boot->peer[rank] = fd;
    return move_all (fd, cards + (size_t) rank * own->bytes, own->bytes, false, soon)
               ? GS_OK
               : gsi_fail (GS_ERR_BOOT, "bootstrap: the connection of rank %d broke", rank);
}

/* Lets the other ranks in until all are there. */
static gs_status_t gather (struct boot_id *boot, const struct hello *own, char *cards,
                           int64_t deadline_ns)
{
    unsigned char *missing;
    char names[GSI_TEXT_MAX / 2];
    gs_status_t st = GS_OK;
    int waiting = boot->base.size - 1;

    while (waiting && !st && wait_fd (boot->listener, POLLIN, deadline_ns)) {
        int fd = accept4 (boot->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            continue;
        st = admit (boot, fd, own, cards, deadline_ns);
        waiting = boot->base.size - 1;
        for (int r = 1; r < boot->base.size; r++)
            waiting -= boot->peer[r] >= 0;
    }
    if (st)
        tell_late (boot, own, st, waiting - 1); /* one of them has just been told */
    if (st || !waiting)
        return st;
    if (!(missing = calloc (1, (size_t) boot->base.size)))
        return gsi_fail (GS_ERR_NOMEM, "boot id: out of memory");
    for (int r = 1; r < boot->base.size; r++)
        missing[r] = boot->peer[r] < 0;
    gsi_boot_name_missing (missing, boot->base.size, NULL, NULL, names, sizeof (names));
    free (missing);
    return gsi_fail (GS_ERR_TIMEOUT,
                     "bootstrap by id: the deadline passed (GS_BOOT_TIMEOUT_MS); %s", names);
}

/*
 * A later exchange: every rank is connected and sends its hello and card again. After a failure
 * the others' are read all the same: left unread, they would make the close drop our answer.
 */
static gs_status_t gather_again (struct boot_id *boot, const struct hello *own, char *cards,
                                 int64_t deadline_ns)
{
    bool late = false;
    int failed = 0;

    for (int r = 1; r < boot->base.size; r++) {
        struct hello hello;
        if ((move_all (boot->peer[r], &hello, sizeof (hello), false, deadline_ns) &&
             hello.bytes == own->bytes &&
             move_all (boot->peer[r], cards + (size_t) r * own->bytes, own->bytes, false,
                       deadline_ns)) ||
            failed)
            continue;
        failed = r;
        late = gsi_now_ns () >= deadline_ns;
    }
    if (!failed)
        return GS_OK;
    return late ? gsi_fail (GS_ERR_TIMEOUT,
                            "bootstrap by id: the deadline passed (GS_BOOT_TIMEOUT_MS); rank %d "
                            "did not come again",
                            failed)
                : gsi_fail (GS_ERR_BOOT, "bootstrap by id: rank %d has ended", failed);
}

static gs_status_t exchange_root (struct boot_id *boot, const struct hello *own, const void *card,
                                  void *cards, int64_t deadline_ns)
{
    size_t bytes = own->bytes, size = (size_t) boot->base.size;
    struct answer answer = {0};
    int64_t answer_ns;
    gs_status_t st;

    memcpy (cards, card, bytes);
    if (boot->listener < 0) {
        st = gather_again (boot, own, cards, deadline_ns);
    } else {
        st = gather (boot, own, cards, deadline_ns);
        close (boot->listener); /* the id is used up */
        boot->listener = -1;
    }
    answer.status = (int32_t) st;
    if (st)
        snprintf (answer.text, sizeof (answer.text), "%.*s", (int) sizeof (answer.text) - 1,
                  gs_last_error ());
    answer_ns = gsi_now_ns () + GRACE_MS * GSI_NS_PER_MS;
    for (size_t r = 1; r < size; r++)
        if (boot->peer[r] >= 0 &&
            (!move_all (boot->peer[r], &answer, sizeof (answer), true, answer_ns) ||
             (!answer.status && !move_all (boot->peer[r], cards, bytes * size, true, answer_ns))))
            st = gsi_fail (GS_ERR_BOOT, "bootstrap: the connection to rank %zu broke", r);
    return st;
}

static gs_status_t exchange (struct gsi_boot *base, const void *card, size_t bytes, void *cards,
                             int64_t deadline_ns)
{
    struct boot_id *boot = (struct boot_id *) base;
    struct hello own = {
        .magic = ID_MAGIC, .rank = base->rank, .size = base->size, .bytes = bytes};

    if (!cards)
        return GS_OK; /* the others see that this rank has not come */
    memcpy (own.secret, boot->id.secret, sizeof (own.secret));
    return base->rank ? exchange_other (boot, &own, card, cards, deadline_ns)
                      : exchange_root (boot, &own, card, cards, deadline_ns);
}

const struct gsi_boot_ops gsi_boot_id = {
    .name = "id",
    .exchange = exchange,
    .close = close_id,
};
