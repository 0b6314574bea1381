/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_dial - how one process of the simulated NCCL reaches another: where it listens, what it
 * says first, and the thread that hears it.
 *
 * TCP is the one thing that works between all simulated nodes: with a network namespace each and
 * a bridge between them, or with a shared network and nothing else in common.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nccl_sim.h"

#define HELLO_MAGIC 0x47534e31u
#define ATTEMPT_MS  2000  /* for one address, */
#define LAST_MS     20000 /* and again, as nobody else stops trying: the machine may be busy */
#define BACKLOG     512

/* A connection whose hello has not come in full. */
struct caller {
    int fd;
    size_t done;
    struct nsim_hello hello;
};

static struct nsim_place here;
static int listener = -1;

uint64_t nsim_hash (const void *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *) data)[i]) * 1099511628211u;
    return hash;
}

static void boot_id (char *text, size_t bytes)
{
    FILE *file = fopen ("/proc/sys/kernel/random/boot_id", "r");

    memset (text, 0, bytes);
    if (file && !fgets (text, (int) bytes, file))
        text[0] = '\0';
    if (file)
        fclose (file);
}

/* As NCCL has it: NCCL_HOSTID as it stands, else host name and boot. */
uint64_t nsim_host_hash (void)
{
    const char *given = getenv ("NCCL_HOSTID");
    char text[512] = "", boot[64];

    if (given && *given)
        return nsim_hash (given, strlen (given));
    gethostname (text, 256);
    boot_id (boot, sizeof (boot));
    strcat (text, boot);
    return nsim_hash (text, strlen (text));
}

static void add_address (struct nsim_place *place, const struct ifaddrs *at, bool loopback)
{
    if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET || !(at->ifa_flags & IFF_UP) ||
        !(at->ifa_flags & IFF_LOOPBACK) == loopback || place->addresses == NSIM_ADDRESSES)
        return;
    place->address[place->addresses++] =
        ((const struct sockaddr_in *) (const void *) at->ifa_addr)->sin_addr.s_addr;
}

static void find_place (struct nsim_place *place)
{
    struct ifaddrs *all = NULL;
    struct stat net = {0};
    char boot[64];

    boot_id (boot, sizeof (boot));
    stat ("/proc/self/ns/net", &net);
    place->network = nsim_hash (boot, sizeof (boot)) ^ (uint64_t) net.st_ino;
    getifaddrs (&all);
    for (struct ifaddrs *at = all; at; at = at->ifa_next)
        add_address (place, at, false);
    for (struct ifaddrs *at = all; at; at = at->ifa_next)
        add_address (place, at, true);
    freeifaddrs (all);
}

/*
 * The hello is complete: the caller learns that it has reached the right process. A notice has
 * taken effect by then, so what its sender does next cannot overtake it.
 */
static void answer (struct caller *caller)
{
    const struct nsim_hello *hello = &caller->hello;
    bool known = hello->magic == HELLO_MAGIC && nsim_hello_known (hello);
    int on = 1;

    if (known && hello->kind == NSIM_NOTICE)
        nsim_hello_came (hello, -1);
    if (known && send (caller->fd, &hello->tag.secret, sizeof (hello->tag.secret),
                       MSG_NOSIGNAL) != sizeof (hello->tag.secret))
        known = false;
    if (!known || hello->kind == NSIM_NOTICE) {
        close (caller->fd);
        return;
    }
    setsockopt (caller->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
    nsim_hello_came (hello, caller->fd);
}

/* Whether the connection is done with, here. */
static bool hear (struct caller *caller)
{
    ssize_t n = recv (caller->fd, (char *) &caller->hello + caller->done,
                      sizeof (caller->hello) - caller->done, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        close (caller->fd);
        return true;
    }
    caller->done += (size_t) n;
    if (caller->done < sizeof (caller->hello))
        return false;
    answer (caller);
    return true;
}

static void *listen_thread (void *arg)
{
    struct caller *caller = NULL;
    struct pollfd *wait = malloc (sizeof (*wait));
    size_t n = 0;

    (void) arg;
    for (;;) {
        wait[0] = (struct pollfd){listener, POLLIN, 0};
        for (size_t i = 0; i < n; i++)
            wait[i + 1] = (struct pollfd){caller[i].fd, POLLIN, 0};
        if (poll (wait, n + 1, -1) < 0)
            continue;
        for (size_t i = n; i-- > 0;)
            if (wait[i + 1].revents && hear (&caller[i]))
                caller[i] = caller[--n];
        if (wait[0].revents) {
            int fd = accept4 (listener, NULL, NULL, SOCK_CLOEXEC);

            if (fd < 0)
                continue;
            caller = realloc (caller, (n + 1) * sizeof (*caller));
            wait = realloc (wait, (n + 2) * sizeof (*wait));
            caller[n++] = (struct caller){.fd = fd};
        }
    }
    return NULL;
}

static void start (void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = INADDR_ANY};
    socklen_t length = sizeof (address);
    sigset_t all, before;
    pthread_t thread;
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind (fd, (struct sockaddr *) &address, sizeof (address)) != 0 ||
        listen (fd, BACKLOG) != 0 ||
        getsockname (fd, (struct sockaddr *) &address, &length) != 0) {
        nsim_warn ("cannot listen on a TCP port: %s", strerror (errno));
        return;
    }
    find_place (&here);
    here.port = ntohs (address.sin_port);
    listener = fd;
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    if (pthread_create (&thread, NULL, listen_thread, NULL) == 0)
        pthread_detach (thread);
    else
        listener = -1;
    pthread_sigmask (SIG_SETMASK, &before, NULL);
}

bool nsim_listen (struct nsim_place *place)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once (&once, start);
    *place = here;
    return listener >= 0;
}

/* 0: [events] or an end came; -1: time is up; -2: [wake] became readable. */
int nsim_await_fd (int fd, short events, int wake, int timeout_ms)
{
    struct pollfd wait[2] = {{fd, events, 0}, {wake, POLLIN, 0}};
    int n;

    do
        n = poll (wait, 2, timeout_ms);
    while (n < 0 && errno == EINTR);
    if (wait[1].revents)
        return -2;
    return n > 0 ? 0 : -1;
}

static int exchange (int fd, bool out, void *data, size_t bytes, int wake, int timeout_ms)
{
    size_t done = 0;

    while (done < bytes) {
        int waited = nsim_await_fd (fd, out ? POLLOUT : POLLIN, wake, timeout_ms);
        ssize_t n;

        if (waited != 0)
            return waited;
        n = out ? send (fd, (char *) data + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT)
                : recv (fd, (char *) data + done, bytes - done, MSG_DONTWAIT);
        if (n > 0)
            done += (size_t) n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            return -1;
    }
    return 0;
}

/* Waits for ever. */
int nsim_receive (int fd, void *data, size_t bytes, int wake)
{
    return exchange (fd, false, data, bytes, wake, -1);
}

static int try_address (uint32_t where, uint16_t port, struct nsim_hello *hello, int wake,
                        int most_ms)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons (port), .sin_addr.s_addr = where};
    int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), failed = 0, on = 1;
    uint64_t echo = 0;

    if (fd < 0)
        return -1;
    if (connect (fd, (struct sockaddr *) &to, sizeof (to)) != 0 && errno != EINPROGRESS)
        failed = -1;
    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
    if (failed == 0)
        failed = exchange (fd, true, hello, sizeof (*hello), wake, most_ms);
    if (failed == 0)
        failed = exchange (fd, false, &echo, sizeof (echo), wake, most_ms);
    if (failed == 0 && echo != hello->tag.secret)
        failed = -1;
    if (failed == 0)
        return fd;
    close (fd);
    return failed;
}

/* The connection after the hello was heard. Without [wake] it is a word that may as well be lost.
 */
int nsim_dial (const struct nsim_place *place, const struct nsim_hello *hello, int wake)
{
    struct nsim_hello copy = *hello;
    struct nsim_place own;
    int fd = -1, last_ms = wake >= 0 ? LAST_MS : ATTEMPT_MS;

    copy.magic = HELLO_MAGIC;
    if (!nsim_listen (&own))
        return -1;
    if (own.network == place->network)
        return try_address (htonl (INADDR_LOOPBACK), place->port, &copy, wake, last_ms);
    for (int most_ms = ATTEMPT_MS; most_ms <= last_ms && fd == -1;
         most_ms += LAST_MS - ATTEMPT_MS)
        for (int i = 0; i < place->addresses && fd == -1; i++)
            fd = try_address (place->address[i], place->port, &copy, wake, most_ms);
    return fd;
}
