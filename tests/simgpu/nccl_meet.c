/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_meet - how the ranks of a communicator find each other. The process that made the id hears
 * every rank's card and sends all cards to all; then each rank calls those before it.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "nccl_sim.h"

#define ID_MAGIC 0x3169636d69736e67u

/* What an ncclUniqueId holds. */
struct id {
    uint64_t magic;
    uint64_t secret;
    struct nsim_place place;
};
_Static_assert(sizeof (struct id) <= NCCL_UNIQUE_ID_BYTES, "the id must fit");

/* What the process of the id keeps until all ranks have come. */
struct root {
    struct root *next;
    uint64_t secret;
    int ranks, came;
    struct nsim_card *card;
    int *fd; /* 0: has not come; else fd + 1 */
};

/* What it answers; the cards follow. */
struct verdict {
    int32_t code;
    char text[NSIM_TEXT];
};

/* A rank that called before this process awaits it. */
struct parked {
    struct parked *next;
    struct nsim_tag tag;
    int from, to, fd;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static struct root *roots;
static struct parked *parked;

ncclResult_t nsim_id_make (ncclUniqueId *id)
{
    struct id made = {.magic = ID_MAGIC};
    struct root *root = calloc (1, sizeof (*root));

    memset (id, 0, sizeof (*id));
    if (!nsim_listen (&made.place) ||
        getrandom (&made.secret, sizeof (made.secret), 0) != sizeof (made.secret)) {
        free (root);
        return ncclSystemError;
    }
    memcpy (id, &made, sizeof (made));
    root->secret = made.secret;
    pthread_mutex_lock (&mutex);
    root->next = roots;
    roots = root;
    pthread_mutex_unlock (&mutex);
    return ncclSuccess;
}

static struct root **find_root (uint64_t secret)
{
    struct root **at = &roots;

    while (*at && (*at)->secret != secret)
        at = &(*at)->next;
    return at;
}

bool nsim_hello_known (const struct nsim_hello *hello)
{
    bool known = true;

    if (hello->kind == NSIM_ROOT) {
        pthread_mutex_lock (&mutex);
        known = *find_root (hello->tag.secret);
        pthread_mutex_unlock (&mutex);
    }
    return known;
}

/* To all that have come; the id cannot be used again. */
static void decide (struct root **at, ncclResult_t code, const char *text)
{
    struct root *root = *at;
    struct verdict verdict = {.code = (int32_t) code};
    struct timeval limit = {5, 0};
    size_t cards = code == ncclSuccess ? (size_t) root->ranks * sizeof (*root->card) : 0;

    snprintf (verdict.text, sizeof (verdict.text), "%s", text);
    for (int i = 0; i < root->ranks; i++) {
        if (root->fd[i] == 0)
            continue;
        setsockopt (root->fd[i] - 1, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof (limit));
        if (send (root->fd[i] - 1, &verdict, sizeof (verdict), MSG_NOSIGNAL) > 0 && cards > 0)
            (void) !send (root->fd[i] - 1, root->card, cards, MSG_NOSIGNAL);
        close (root->fd[i] - 1);
    }
    *at = root->next;
    free (root->card);
    free (root->fd);
    free (root);
}

static void rank_came (const struct nsim_card *card, uint64_t secret, int fd)
{
    struct root **at = find_root (secret), *root = *at;
    char text[NSIM_TEXT] = "";

    if (!root || card->ranks < 1 || card->rank < 0 || card->rank >= card->ranks) {
        close (fd);
        return;
    }
    if (root->came == 0) {
        root->ranks = card->ranks;
        root->card = calloc ((size_t) root->ranks, sizeof (*root->card));
        root->fd = calloc ((size_t) root->ranks, sizeof (*root->fd));
    }
    if (card->ranks != root->ranks)
        snprintf (text, sizeof (text), "the ranks disagree: rank %d joins %d ranks, others %d",
                  card->rank, card->ranks, root->ranks);
    else if (root->fd[card->rank])
        snprintf (text, sizeof (text), "two processes joined one communicator as rank %d",
                  card->rank);
    for (int i = 0; i < root->ranks && !*text; i++)
        if (root->fd[i] && root->card[i].ids != card->ids)
            snprintf (text, sizeof (text), "ranks %d and %d joined with different lists of ids",
                      i, card->rank);
    if (*text) {
        struct verdict verdict = {.code = ncclInvalidUsage};

        memcpy (verdict.text, text, sizeof (text));
        (void) !send (fd, &verdict, sizeof (verdict), MSG_NOSIGNAL);
        close (fd);
        decide (at, ncclInvalidUsage, text);
        return;
    }
    root->card[card->rank] = *card;
    root->fd[card->rank] = fd + 1;
    if (++root->came == root->ranks)
        decide (at, ncclSuccess, "");
}

struct told {
    const struct nsim_hello *hello;
};

/* Another rank found that the ranks disagree, or gave up while the communicator was made. */
static void tell (ncclComm_t comm, void *arg)
{
    const struct nsim_hello *hello = ((struct told *) arg)->hello;

    if (memcmp (&comm->tag, &hello->tag, sizeof (comm->tag)) != 0 || comm->rank != hello->to)
        return;
    nsim_warn ("%s", hello->text);
    if (hello->code == ncclInvalidUsage)
        sim_misuse ("%s (told by rank %d)", hello->text, hello->from);
    nsim_break (comm, (ncclResult_t) hello->code);
}

void nsim_hello_came (const struct nsim_hello *hello, int fd)
{
    struct told told = {hello};
    struct parked *entry;

    if (hello->kind == NSIM_NOTICE) {
        close (fd);
        nsim_comm_each (tell, &told);
        return;
    }
    pthread_mutex_lock (&mutex);
    if (hello->kind == NSIM_ROOT) {
        rank_came (&hello->card, hello->tag.secret, fd);
    } else {
        entry = calloc (1, sizeof (*entry));
        *entry = (struct parked){parked, hello->tag, hello->from, hello->to, fd};
        parked = entry;
        pthread_cond_broadcast (&came);
    }
    pthread_mutex_unlock (&mutex);
}

void nsim_meet_wake (void)
{
    pthread_mutex_lock (&mutex);
    pthread_cond_broadcast (&came);
    pthread_mutex_unlock (&mutex);
}

static bool given_up (ncclComm_t comm)
{
    return nsim_await_fd (-1, 0, comm->wake, 0) == -2;
}

/* Waits for the call of rank [from]; -2 if the communicator is stopped before. */
static int take_parked (ncclComm_t comm, int from)
{
    int fd = -2;

    pthread_mutex_lock (&mutex);
    while (fd == -2 && !given_up (comm)) {
        struct parked **at = &parked, *entry;

        while (*at && (memcmp (&(*at)->tag, &comm->tag, sizeof (comm->tag)) != 0 ||
                       (*at)->from != from || (*at)->to != comm->rank))
            at = &(*at)->next;
        entry = *at;
        if (entry) {
            fd = entry->fd;
            *at = entry->next;
            free (entry);
        } else {
            pthread_cond_wait (&came, &mutex);
        }
    }
    pthread_mutex_unlock (&mutex);
    return fd;
}

static ncclResult_t failure (ncclComm_t comm, int end, const char *whom, int rank)
{
    ncclResult_t code = comm->error;

    if (end == -2) /* an abort, or another rank has said what is wrong */
        return code == ncclSuccess || code == ncclInProgress ? ncclInternalError : code;
    nsim_warn ("rank %d cannot reach %s %d: it is gone", comm->rank, whom, rank);
    return ncclRemoteError;
}

/* One connection to each rank; the table of cards is there. */
ncclResult_t nsim_mesh (ncclComm_t comm)
{
    struct nsim_hello hello = {.kind = NSIM_PEER, .tag = comm->tag, .from = comm->rank};

    for (int i = 0; i < comm->ranks; i++) {
        int fd;

        if (i == comm->rank)
            continue;
        hello.to = i;
        fd = i < comm->rank ? nsim_dial (&comm->card[i].place, &hello, comm->wake)
                            : take_parked (comm, i);
        if (fd < 0)
            return failure (comm, fd, "rank", i);
        comm->fd[i] = fd;
    }
    return ncclSuccess;
}

void nsim_tell_all (ncclComm_t comm, ncclResult_t code, const char *text)
{
    struct nsim_hello hello = {
        .kind = NSIM_NOTICE, .tag = comm->tag, .from = comm->rank, .code = (int32_t) code};

    snprintf (hello.text, sizeof (hello.text), "%s", text);
    for (int i = 0; i < comm->ranks; i++) {
        int fd;

        if (i == comm->rank)
            continue;
        hello.to = i;
        fd = nsim_dial (&comm->card[i].place, &hello, -1);
        if (fd >= 0)
            close (fd);
    }
}

/* Both of two ranks on one GPU fail alike, without a word to each other; the rest is told. */
static ncclResult_t find_duplicate (ncclComm_t comm)
{
    const struct nsim_card *mine = &comm->card[comm->rank];
    char text[NSIM_TEXT];

    for (int i = 0; i < comm->ranks; i++) {
        const struct nsim_card *other = &comm->card[i];

        if (i == comm->rank || other->host != mine->host ||
            strncmp (other->bus, mine->bus, sizeof (mine->bus)) != 0)
            continue;
        nsim_warn ("Duplicate GPU detected : rank %d and rank %d both on CUDA device %s",
                   comm->rank, i, mine->bus);
        snprintf (text, sizeof (text), "rank %d gave up: duplicate GPU", comm->rank);
        nsim_tell_all (comm, ncclRemoteError, text);
        return ncclInvalidUsage;
    }
    return ncclSuccess;
}

static ncclResult_t hear_verdict (ncclComm_t comm, int fd)
{
    struct verdict verdict;
    int end = nsim_receive (fd, &verdict, sizeof (verdict), comm->wake);

    if (end == 0 && verdict.code != ncclSuccess) {
        verdict.text[NSIM_TEXT - 1] = '\0';
        sim_misuse ("%s", verdict.text);
        nsim_warn ("%s", verdict.text);
        return (ncclResult_t) verdict.code;
    }
    if (end == 0)
        end = nsim_receive (fd, comm->card, (size_t) comm->ranks * sizeof (*comm->card),
                            comm->wake);
    return end == 0 ? ncclSuccess : failure (comm, end, "the process of the id, rank", 0);
}

ncclResult_t nsim_meet (ncclComm_t comm, const ncclUniqueId *ids, int n)
{
    struct id id;
    struct nsim_hello hello = {.kind = NSIM_ROOT, .from = comm->rank};
    ncclResult_t result;
    int fd;

    memcpy (&id, ids, sizeof (id));
    if (id.magic != ID_MAGIC) {
        nsim_warn ("the ncclUniqueId does not come from ncclGetUniqueId");
        return ncclInvalidArgument;
    }
    comm->tag = hello.tag = (struct nsim_tag){id.secret, 1};
    hello.card = comm->card[comm->rank];
    hello.card.ids = nsim_hash (ids, (size_t) n * sizeof (*ids));
    if (!nsim_listen (&hello.card.place))
        return ncclSystemError;
    fd = nsim_dial (&id.place, &hello, comm->wake);
    if (fd < 0)
        return failure (comm, fd, "the process of the id, rank", 0);
    result = hear_verdict (comm, fd);
    close (fd);
    if (result == ncclSuccess)
        result = find_duplicate (comm);
    return result == ncclSuccess ? nsim_mesh (comm) : result;
}
