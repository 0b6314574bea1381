/* SPDX-License-Identifier: BSD-3-Clause */
/* node - memory that the ranks of a node share, and how they meet in it. */
#include "mpi/node.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/status.h"
#include "mpi/coll_mpi.h"
#include "mpi/guest.h"

#define PAGE       4096
#define PROGRESS   32u  /* polls between calls of MPI, whose messages others may wait for */
#define LOOK_EVERY 512u /* polls between looks at what ends a wait */
#define RELAXED    16u  /* polls that take as long as one of MPI's */

/* How far a rank has come: numbers of blocks, from 1; each in a cache line that only it writes.
 */
struct line {
    _Alignas(64) atomic_uint_fast64_t put;
    uint64_t kind[GSI_NODE_SLOTS]; /* what the block is of: alike on all ranks */
    _Alignas(64) atomic_uint_fast64_t done;
};

/* Where the first rank of a node has made the memory, told to all. */
struct handle {
    int64_t process, bytes;
    uint64_t token; /* also the first word of the memory */
    int32_t fd, ok;
};

/* All ranks' handles, and their agreement on whether every rank has the memory. */
struct meeting {
    int32_t mine, all;
    struct handle handle[]; /* [size], and the own one behind them */
};

gs_status_t gsi_node_build (struct gsi_node *node, const struct gsi_team *team)
{
    node->rank = calloc ((size_t) team->local_size, sizeof (*node->rank));
    if (!node->rank)
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    node->size = 0;
    node->index = team->local_rank;
    for (int r = 0; r < team->size; r++)
        if (team->node_of[r] == team->node)
            node->rank[node->size++] = r;
    return GS_OK;
}

/* ---- Making the memory ---- */

static struct line *line_of (const struct gsi_node *node, int index)
{
    return (struct line *) (node->base + PAGE) + index;
}

static size_t round_up (size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t head_bytes (const struct gsi_node *node)
{
    return round_up (PAGE + (size_t) node->size * sizeof (struct line));
}

/* Maps the memory behind [fd], which is closed unless it is [keep]. */
static bool map (struct gsi_node *node, int fd, bool keep)
{
    void *base = mmap (NULL, node->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (!keep)
        close (fd);
    node->base = base == MAP_FAILED ? NULL : base;
    return node->base != NULL;
}

/* The first rank of a node: memory without a name, which goes with the last process that has it,
 * and takes up room where it was written only. */
static struct handle make (struct gsi_node *node)
{
    struct handle h = {.process = getpid (), .bytes = (int64_t) node->bytes, .fd = -1};

    if (gsi_fault ("node.memory") || (h.fd = memfd_create ("gradsync", MFD_CLOEXEC)) < 0)
        return h;
    h.token = (uint64_t) gsi_now_ns () ^ (uint64_t) h.process << 40;
    h.ok = !ftruncate (h.fd, (off_t) node->bytes) && map (node, h.fd, true);
    if (h.ok)
        memcpy (node->base, &h.token, sizeof (h.token));
    return h;
}

/* Maps what another process has made: through /proc, which shows its open files to its user. */
static bool join (struct gsi_node *node, const struct handle *h)
{
    char path[64];
    struct stat about;
    int fd;

    snprintf (path, sizeof (path), "/proc/%lld/fd/%d", (long long) h->process, (int) h->fd);
    if (!h->ok || h->bytes != (int64_t) node->bytes || (fd = open (path, O_RDWR | O_CLOEXEC)) < 0)
        return false;
    if (fstat (fd, &about) || about.st_size != (off_t) h->bytes) {
        close (fd);
        return false;
    }
    /* Another process may have that number where containers number their own. */
    return map (node, fd, false) && !memcmp (node->base, &h->token, sizeof (h->token));
}

/* Tells all ranks where the memory of each node is. */
static gs_status_t tell (struct gsi_coll_mpi *c, struct meeting *m, int64_t deadline_ns)
{
    MPI_Request request;
    int rc = MPI_Iallgather (&m->handle[c->size], sizeof (struct handle), MPI_BYTE, m->handle,
                             sizeof (struct handle), MPI_BYTE, c->comm, &request);

    return rc ? gsi_guest_fail ("MPI_Iallgather", rc)
              : gsi_guest_wait ("transport mpi: MPI_Iallgather", &request, deadline_ns);
}

static gs_status_t agree (struct gsi_coll_mpi *c, struct meeting *m, int64_t deadline_ns)
{
    MPI_Request request;
    int rc = MPI_Iallreduce (&m->mine, &m->all, 1, MPI_INT32_T, MPI_MIN, c->comm, &request);

    return rc ? gsi_guest_fail ("MPI_Iallreduce", rc)
              : gsi_guest_wait ("transport mpi: MPI_Iallreduce", &request, deadline_ns);
}

static gs_status_t meet (struct gsi_coll_mpi *c, struct gsi_node *node, struct meeting *m,
                         int64_t deadline_ns)
{
    struct handle *own = &m->handle[c->size];
    gs_status_t st;

    own->fd = -1;
    if (node->index == 0)
        *own = make (node);
    if (!(st = tell (c, m, deadline_ns))) {
        m->mine = node->index == 0 ? own->ok : join (node, &m->handle[node->rank[0]]);
        st = agree (c, m, deadline_ns);
    }
    if (own->fd >= 0)
        close (own->fd);
    return st;
}

gs_status_t gsi_node_open (struct gsi_coll_mpi *c, struct gsi_node *node, size_t area_bytes,
                           size_t result_bytes, int64_t deadline_ns, bool *there)
{
    struct meeting *m = calloc (1, sizeof (*m) + ((size_t) c->size + 1) * sizeof (m->handle[0]));
    gs_status_t st;

    *there = false;
    if (!m)
        return gsi_fail (GS_ERR_NOMEM, "transport mpi: out of memory");
    node->area_bytes = round_up (area_bytes);
    node->result_bytes = round_up (result_bytes);
    node->bytes = head_bytes (node) + (size_t) node->size * (size_t) node->slots *
                                          (node->area_bytes + node->result_bytes);
    node->turn = 1;
    if ((st = meet (c, node, m, deadline_ns))) {
        gsi_guest_keep (m);
        return st;
    }
    *there = m->all;
    if (!m->all) {
        gsi_log (GS_LOG_INFO, "mpi", "the ranks of a node share no memory%s: messages carry all",
                 m->mine ? " on another rank's node" : "");
        gsi_node_close (node);
    }
    free (m);
    return GS_OK;
}

void gsi_node_close (struct gsi_node *node)
{
    if (node->base)
        munmap (node->base, node->bytes);
    node->base = NULL;
}

/* ---- Using it ---- */

enum step { PUT, DONE };

static char *slot_of (const struct gsi_node *node, int index, uint64_t turn)
{
    size_t slot =
        (size_t) index * (size_t) node->slots + (size_t) (turn % (uint64_t) node->slots);

    return node->base + head_bytes (node) + slot * (node->area_bytes + node->result_bytes);
}

void *gsi_node_area (const struct gsi_node *node, int index, uint64_t turn)
{
    return slot_of (node, index, turn);
}

void *gsi_node_result (const struct gsi_node *node, int index, uint64_t turn)
{
    return slot_of (node, index, turn) + node->area_bytes;
}

static atomic_uint_fast64_t *word_of (const struct gsi_node *node, int index, enum step step)
{
    struct line *line = line_of (node, index);

    return step == PUT ? &line->put : &line->done;
}

void gsi_node_put (const struct gsi_node *node, uint64_t turn, uint64_t kind)
{
    struct line *line = line_of (node, node->index);

    line->kind[turn % GSI_NODE_SLOTS] = kind;
    atomic_store_explicit (&line->put, turn, memory_order_release);
}

void gsi_node_done (const struct gsi_node *node, uint64_t turn)
{
    atomic_store_explicit (&line_of (node, node->index)->done, turn, memory_order_release);
}

/* Waits until [step] of the first [ranks] has come to [turn]. */
static gs_status_t await (struct gsi_coll_mpi *c, enum step step, uint64_t turn, int ranks,
                          const struct gsi_call *call)
{
    const struct gsi_node *node = &c->node;
    unsigned spins = c->spins;
    gs_status_t st;
    int i = 0;

    for (unsigned polls = 1;; polls++) {
        while (i < ranks &&
               atomic_load_explicit (word_of (node, i, step), memory_order_acquire) >= turn)
            i++;
        if (i == ranks)
            return GS_OK;
        if (c->levels.rails > 1 && polls % PROGRESS == 0)
            gsi_notice_hear (c); /* and so lets messages go on */
        if (polls % LOOK_EVERY == 0 && (st = gsi_p2p_interrupted (c, call, polls))) {
            c->unfinished = true;
            return st;
        }
        if (c->spins || polls % RELAXED == 0)
            gsi_guest_pause (&spins);
        else
            gsi_relax ();
    }
}

gs_status_t gsi_node_await_put (struct gsi_coll_mpi *c, uint64_t turn, uint64_t kind,
                                const struct gsi_call *call)
{
    const struct gsi_node *node = &c->node;
    gs_status_t st = await (c, PUT, turn, node->size, call);

    for (int i = 0; i < node->size && !st; i++)
        if (line_of (node, i)->kind[turn % GSI_NODE_SLOTS] != kind)
            st = gsi_fail (GS_ERR_MISMATCH,
                           "ranks %d and %d disagree on count, dtype or operation; "
                           "GS_CHECK=collective tells which",
                           c->rank, node->rank[i]);
    return st;
}

gs_status_t gsi_node_await_done (struct gsi_coll_mpi *c, uint64_t turn, int ranks,
                                 const struct gsi_call *call)
{
    return await (c, DONE, turn, ranks, call);
}
