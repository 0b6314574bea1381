/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_share - what the processes of a node know of each other on a device: who has a context
 * there, and how much of its memory each has taken.
 *
 * Each tells it by the name of a socket, which nobody connects to: names without a file, which
 * all can list, and which go with the process that has them, however it ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rt.h"

#define NAME_BYTES  100
#define WAIT_NS     100000 /* between two looks whether the lock is free */
#define MOST_WAITS  100000 /* who is stopped while he has it does not stop the others for good */
#define CONTEXTS    'c'    /* sockets by what they tell */
#define MEMORY      'm'
#define LOCK        'l'
#define PROC_SOCKET "/proc/net/unix"
#define IN_USE      (-1)
#define FAILED      (-2)

static int context_of[RT_DEVICES] = {[0 ... RT_DEVICES - 1] = -1};
static int memory_of[RT_DEVICES] = {[0 ... RT_DEVICES - 1] = -1};
static uint64_t token; /* of this process */
static uint64_t node;
static bool exclusive, by_server, counts;

static uint64_t hash_of (uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char) *text) * UINT64_C (1099511628211);
    return hash;
}

/* What processes with the same SIM_SHARE do on a host counts for all of them. */
void rt_share_open (void)
{
    const char *word = getenv ("SIM_SHARE"), *mode = getenv ("SIM_COMPUTE_MODE");
    char host[256] = "";

    gethostname (host, sizeof (host) - 1);
    node = hash_of (hash_of (UINT64_C (14695981039346656037), host), "/");
    node = hash_of (node, word ? word : "");
    counts = word && *word;
    exclusive = mode && !strcmp (mode, "exclusive");
    if (mode && *mode && !exclusive && strcmp (mode, "default"))
        sim_misuse ("SIM_COMPUTE_MODE is '%s', not default or exclusive", mode);
    by_server = rt_setting ("SIM_MPS", 0, 0, 1);
    if (getrandom (&token, sizeof (token), 0) != (ssize_t) sizeof (token))
        token = (uint64_t) getpid ();
}

bool rt_share_exclusive (void)
{
    return exclusive;
}

/* What all names of [kind] on a device begin with. */
static int write_prefix (char *text, int device, char kind)
{
    return snprintf (text, NAME_BYTES, "simgpu/%llx/%d/%c", (unsigned long long) node,
                     rt_devices[device].physical, kind);
}

/* A socket of this name; IN_USE: another one has it, FAILED, which is told: there is none. */
static int take_name (const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = (socklen_t) (offsetof (struct sockaddr_un, sun_path) + 1 + strlen (name));
    int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), result;

    memcpy (address.sun_path + 1, name, strlen (name));
    if (fd >= 0 && !bind (fd, (const struct sockaddr *) &address, bytes))
        return fd;
    if (fd < 0 || errno != EADDRINUSE)
        sim_misuse ("a device cannot be shared, as the socket @%s fails: %s", name,
                    strerror (errno));
    result = errno == EADDRINUSE ? IN_USE : FAILED;
    if (fd >= 0)
        close (fd);
    return result;
}

/* Others have it while they look and tell. */
static int lock_device (int device)
{
    char name[NAME_BYTES];
    int fd;

    write_prefix (name, device, LOCK);
    for (int i = 0; (fd = take_name (name)) == IN_USE && i < MOST_WAITS; i++)
        nanosleep (&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    return fd;
}

static void drop (int *fd)
{
    if (*fd >= 0)
        close (*fd);
    *fd = -1;
}

/* The sum of what other processes tell by names of [kind], and how many they are. */
static size_t sum_of_others (int device, char kind, size_t *others)
{
    FILE *list = fopen (PROC_SOCKET, "re");
    char prefix[NAME_BYTES + 1] = "@", *line = NULL;
    size_t room = 0, sum = 0;

    write_prefix (prefix + 1, device, kind);
    *others = 0;
    while (list && getline (&line, &room, list) > 0) {
        const char *name = strstr (line, prefix);
        unsigned long long who, number;
        if (!name || sscanf (name + strlen (prefix), "/%llx/%llu", &who, &number) != 2 ||
            who == token)
            continue;
        sum += number;
        ++*others;
    }
    if (list)
        fclose (list);
    free (line);
    return sum;
}

/* Tells [number] by a name of [kind]; what was told before is no longer true. */
static void tell (int *fd, int device, char kind, size_t number)
{
    char name[NAME_BYTES];
    int used = write_prefix (name, device, kind);

    drop (fd);
    snprintf (name + used, (size_t) (NAME_BYTES - used), "/%llx/%zu", (unsigned long long) token,
              number);
    *fd = take_name (name);
}

/* The numbers that are told are 1 of a client of the server, which shares the GPU with others. */
bool rt_share_context (int device)
{
    size_t others, clients;
    bool free_for_us;
    int lock;

    if (!exclusive)
        return true;
    lock = lock_device (device);
    clients = sum_of_others (device, CONTEXTS, &others);
    free_for_us = by_server ? clients == others : !others;
    if (free_for_us)
        tell (&context_of[device], device, CONTEXTS, by_server);
    drop (&lock);
    return free_for_us;
}

size_t rt_share_others (int device)
{
    size_t others, sum;
    int lock;

    if (!counts)
        return 0;
    lock = lock_device (device);
    sum = sum_of_others (device, MEMORY, &others);
    drop (&lock);
    return sum;
}

bool rt_share_memory (int device, size_t bytes)
{
    size_t others, taken;
    bool fits;
    int lock;

    if (!counts)
        return bytes <= rt_device_bytes ();
    lock = lock_device (device);
    taken = sum_of_others (device, MEMORY, &others);
    fits = bytes <= rt_device_bytes () && taken <= rt_device_bytes () - bytes;
    if (fits)
        tell (&memory_of[device], device, MEMORY, bytes);
    drop (&lock);
    return fits;
}

void rt_share_in_child (void)
{
    for (int i = 0; i < RT_DEVICES; i++) {
        drop (&context_of[i]);
        drop (&memory_of[i]);
    }
}
