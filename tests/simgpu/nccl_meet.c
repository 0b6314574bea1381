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

#define RING_BYTES (1 << 20) /* sums of fewer go along a tree: NCCL estimates what is faster */

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
    int *fd;              /* 0: has not come; else fd + 1 */
    char text[NSIM_TEXT]; /* why it was refused, for those who come later */
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

static void send_verdict (int fd, const struct root *root)
{
    struct verdict verdict = {.code = *root->text ? ncclInvalidUsage : ncclSuccess};
    struct timeval limit = {5, 0};

    memcpy (verdict.text, root->text, sizeof (verdict.text));
    setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof (limit));
    if (send (fd, &verdict, sizeof (verdict), MSG_NOSIGNAL) > 0 && !*root->text)
        (void) !send (fd, root->card, (size_t) root->ranks * sizeof (*root->card), MSG_NOSIGNAL);
    close (fd);
}

/* To all that have come. An id that served cannot be used again. */
static void decide (struct root **at)
{
    struct root *root = *at;
    struct nsim_place own;

    nsim_listen (&own);
    for (int i = 0; i < 2 * root->ranks; i++) { /* ours last: it may end the process */
        int r = i % root->ranks;

        if (root->fd[r] && (i >= root->ranks || root->card[r].place.port != own.port)) {
            send_verdict (root->fd[r] - 1, root);
            root->fd[r] = 0;
        }
    }
    if (*root->text)
        return;
    *at = root->next;
    free (root->card);
    free (root->fd);
    free (root);
}

/* What is wrong with the rank that comes, into the root's text. */
static void judge (struct root *root, const struct nsim_card *card)
{
    if (*root->text)
        return;
    if (card->ranks != root->ranks)
        snprintf (root->text, sizeof (root->text),
                  "the ranks disagree: rank %d joins %d ranks, others %d", card->rank,
                  card->ranks, root->ranks);
    else if (root->fd[card->rank])
        snprintf (root->text, sizeof (root->text),
                  "two processes joined one communicator as rank %d", card->rank);
    for (int i = 0; i < root->ranks && !*root->text; i++)
        if (root->fd[i] && root->card[i].ids != card->ids)
            snprintf (root->text, sizeof (root->text),
                      "ranks %d and %d joined with different lists of ids", i, card->rank);
}

static void rank_came (const struct nsim_card *card, uint64_t secret, int fd)
{
    struct root **at = find_root (secret), *root = *at;

    if (!root || card->ranks < 1 || card->rank < 0 || card->rank >= card->ranks) {
        close (fd);
        return;
    }
    if (root->came++ == 0) {
        root->ranks = card->ranks;
        root->card = calloc ((size_t) root->ranks, sizeof (*root->card));
        root->fd = calloc ((size_t) root->ranks, sizeof (*root->fd));
    }
    judge (root, card);
    if (*root->text) {
        send_verdict (fd, root);
        decide (at);
        return;
    }
    root->card[card->rank] = *card;
    root->fd[card->rank] = fd + 1;
    if (root->came == root->ranks)
        decide (at);
}

struct told {
    const struct nsim_hello *hello;
};

/* Another rank found that the ranks disagree, or gave up while the communicator was made. */
static void tell (ncclComm_t comm, void *arg)
{
    const struct nsim_hello *hello = ((struct told *) arg)->hello;
    bool meant;

    pthread_mutex_lock (&comm->mutex);
    meant = memcmp (&comm->tag, &hello->tag, sizeof (comm->tag)) == 0 && comm->rank == hello->to;
    pthread_mutex_unlock (&comm->mutex);
    if (!meant)
        return;
    nsim_warn ("%s", hello->text);
    if (hello->code == ncclInvalidUsage)
        sim_misuse ("%s (told by rank %d)", hello->text, hello->from);
    nsim_break (comm, (ncclResult_t) hello->code);
    nsim_warn ("%s", hello->text); /* again: what runs may have lost a rank that was told first */
}

/* A peer begins to connect, or is finalized. */
static void note_peer (ncclComm_t comm, void *arg)
{
    const struct nsim_hello *hello = arg;

    pthread_mutex_lock (&comm->mutex);
    if (!memcmp (&comm->tag, &hello->tag, sizeof (comm->tag)) && comm->rank == hello->to) {
        if (hello->kind == NSIM_CLOSE)
            comm->closed[hello->from] = true;
        else
            comm->connects[hello->code]++;
        pthread_cond_broadcast (&comm->cond);
    }
    pthread_mutex_unlock (&comm->mutex);
}

static void call_peer (ncclComm_t comm, int peer, enum nsim_hello_kind kind, int code)
{
    struct nsim_hello hello = {
        .kind = kind, .tag = comm->tag, .from = comm->rank, .to = peer, .code = code};
    int fd = -1;

    if (peer != comm->rank)
        fd = nsim_dial (&comm->card[peer].place, &hello, comm->wake);
    if (fd >= 0)
        close (fd);
}

static bool connects_in_calls (void)
{
    const char *late = getenv ("NCCL_RUNTIME_CONNECT");

    return nsim_version () >= 22200 && (!late || strcmp (late, "0"));
}

static int algorithm_of (const struct nsim_op *op)
{
    return op->what != NSIM_ALLREDUCE || op->comm->ranks < 3 ||
           op->count * nsim_type_bytes (op->type) >= RING_BYTES;
}

/*
 * From 2.22 on channels are connected in the first collective of an algorithm (v2.28.9
 * enqueue.cc:460), by the call itself if it blocks (v2.22.3 group.cc:420, and there if it does
 * not block, too): it waits for all ranks on the host. N.B. also long after the first one.
 */
void nsim_connect_begin (const struct nsim_op *op)
{
    int algorithm = algorithm_of (op);

    if (op->comm->connected[algorithm] || !connects_in_calls ())
        return;
    op->comm->connected[algorithm] = true;
    for (int i = 0; i < op->comm->ranks; i++)
        call_peer (op->comm, i, NSIM_CONNECT, algorithm);
}

static bool is_neighbour (ncclComm_t comm, int peer)
{
    return peer != comm->rank && comm->card[peer].host == comm->card[comm->rank].host;
}

void nsim_say_closed (ncclComm_t comm)
{
    for (int i = 0; i < comm->ranks; i++)
        if (is_neighbour (comm, i))
            call_peer (comm, i, NSIM_CLOSE, 0);
}

bool nsim_has_left (ncclComm_t comm, int peer)
{
    struct pollfd hangup = {comm->fd[peer], POLLRDHUP, 0};

    return !is_neighbour (comm, peer) || comm->closed[peer] || comm->fd[peer] < 0 ||
           poll (&hangup, 1, 0) > 0;
}

ncclResult_t nsim_connect (const struct nsim_op *op)
{
    ncclComm_t comm = op->comm;
    int *connects = &comm->connects[algorithm_of (op)];
    bool ready;

    if (!connects_in_calls ())
        return ncclSuccess;
    pthread_mutex_lock (&comm->mutex);
    while (*connects < comm->ranks - 1 && !comm->stop && !comm->broken)
        pthread_cond_wait (&comm->cond, &comm->mutex);
    ready = *connects >= comm->ranks - 1;
    pthread_mutex_unlock (&comm->mutex);
    /* v2.22.3 group.cc:358: abortFlagDev is not set. */
    if (!ready && comm->stop && nsim_version () < 22300)
        sim_misuse ("NCCL %d crashes here: communicator %d was aborted while a call connected it",
                    nsim_version (), comm->number);
    return ready || comm->broken ? ncclSuccess : ncclInternalError;
}

void nsim_hello_came (const struct nsim_hello *hello, int fd)
{
    struct told told = {hello};
    struct parked *entry;

    if (hello->kind == NSIM_NOTICE) {
        nsim_comm_each (tell, &told);
        return;
    }
    if (hello->kind == NSIM_CONNECT || hello->kind == NSIM_CLOSE) {
        nsim_comm_each (note_peer, (void *) (uintptr_t) hello);
        close (fd);
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

/* One connection to each rank; the table of cards is there. All ranks have come when it is done:
 * a call is heard by a process, whatever becomes of its rank. */
ncclResult_t nsim_mesh (ncclComm_t comm)
{
    struct nsim_hello hello = {.kind = NSIM_PEER, .tag = comm->tag, .from = comm->rank};
    enum nsim_end end;

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
    end = nsim_barrier (comm, NSIM_INIT);
    comm->sequence = 0;
    if (end == NSIM_LOST)
        return ncclRemoteError;
    return end == NSIM_OK ? ncclSuccess : failure (comm, -2, "rank", 0);
}

static void tell_rank (ncclComm_t comm, int to, ncclResult_t code, const char *text)
{
    struct nsim_hello hello = {.kind = NSIM_NOTICE,
                               .tag = comm->tag,
                               .from = comm->rank,
                               .to = to,
                               .code = (int32_t) code};
    int fd;

    snprintf (hello.text, sizeof (hello.text), "%s", text);
    fd = nsim_dial (&comm->card[to].place, &hello, -1);
    if (fd >= 0)
        close (fd);
}

void nsim_tell_all (ncclComm_t comm, ncclResult_t code, const char *text)
{
    for (int i = 0; i < comm->ranks; i++)
        if (i != comm->rank)
            tell_rank (comm, i, code, text);
}

static bool on_one_gpu (const struct nsim_card *a, const struct nsim_card *b)
{
    return a->host == b->host && strncmp (a->bus, b->bus, sizeof (a->bus)) == 0;
}

/* The ranks on one GPU see it alike, without a word to each other; the rest is told. */
static ncclResult_t find_duplicate (ncclComm_t comm)
{
    const struct nsim_card *card = comm->card, *mine = &card[comm->rank];
    char text[NSIM_TEXT];
    int other = 0;

    while (other < comm->ranks && (other == comm->rank || !on_one_gpu (&card[other], mine)))
        other++;
    if (other == comm->ranks)
        return ncclSuccess;
    snprintf (text, sizeof (text), "rank %d gave up: duplicate GPU", comm->rank);
    for (int i = 0; i < comm->ranks; i++)
        if (!on_one_gpu (&card[i], mine))
            tell_rank (comm, i, ncclRemoteError, text);
    nsim_warn ("Duplicate GPU detected : rank %d and rank %d both on CUDA device %s", comm->rank,
               other, mine->bus);
    return ncclInvalidUsage;
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
    hello.tag = (struct nsim_tag){id.secret, 1};
    pthread_mutex_lock (&comm->mutex);
    comm->tag = hello.tag;
    pthread_mutex_unlock (&comm->mutex);
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
