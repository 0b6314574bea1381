/* SPDX-License-Identifier: BSD-3-Clause */
/* net_mpi - the network of hosts that MPI is: messages by calls of MPI that are polled. */
#include "mpi/net_mpi.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "mpi/mpi_env.h"
#include "host/coll_host_ops.h"
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

extern const struct gsi_coll_ops gsi_coll_mpi;

/* ---- Its life ---- */

static gs_status_t net_prepare (struct gsi_net *base, const struct gsi_boot *boot, void *memory)
{
    struct gsi_net_mpi_card *card = memory;
    int up = gsi_mpi_env_up ();
    gs_status_t st = gsi_mpi_env_not_finalized ();

    (void) base;
    card->world_rank = card->world_size = -1;
    if (st)
        return st;
    if (up) {
        MPI_Comm_rank (MPI_COMM_WORLD, &card->world_rank);
        MPI_Comm_size (MPI_COMM_WORLD, &card->world_size);
    }
    if (!up && !strcmp (boot->ops->name, "id") && boot->size > 1)
        return gsi_fail (GS_ERR_STATE,
                         "gs_comm_create_from_id: between hosts MPI carries the "
                         "data, and the application must have initialised it before, or "
                         "GS_TRANSPORT=ofi does without");
    if (!up && (boot->is_group || !strcmp (boot->ops->name, "pmix")) &&
        gsi_mpi_env_before_pmix ())
        return gsi_fail (GS_ERR_STATE,
                         "transport mpi: Open MPI 5 cannot be started once PMIx is open, which "
                         "it is since a communicator that needed no MPI: call MPI_Init before "
                         "the first gs_comm_create, or make one with transport auto or mpi "
                         "first");
    return GS_OK;
}

/* The largest tag: 32767 by the standard, millions as it is. */
static uint32_t tags_of (MPI_Comm comm)
{
    int *most, there = 0;

    return MPI_Comm_get_attr (comm, MPI_TAG_UB, &most, &there) || !there ? 32767
                                                                         : (uint32_t) *most;
}

static gs_status_t net_open (struct gsi_net *base, const struct gsi_coll_setup *setup,
                             const struct gsi_net *parent)
{
    struct gsi_net_mpi *net = (struct gsi_net_mpi *) base;
    gs_status_t st;
    int level;

    gsi_mpi_env_count (1);
    net->comm = MPI_COMM_NULL;
    if ((st = gsi_net_mpi_comm (net, setup, parent)))
        return st;
    base->tags = tags_of (net->comm);
    MPI_Query_thread (&level);
    base->any_thread = level == MPI_THREAD_MULTIPLE;
    return GS_OK;
}

static void net_close (struct gsi_net *net)
{
    MPI_Comm_free (&((struct gsi_net_mpi *) net)->comm);
}

static bool net_discard (struct gsi_net *net, bool unfinished)
{
    (void) net;
    gsi_mpi_env_count (-1);
    return unfinished;
}

/* The application may have ended MPI; every call of MPI would then end the process. */
static gs_status_t net_enter (const struct gsi_net *net)
{
    gs_status_t st;

    (void) net;
    if (gsi_mpi_env_usable ())
        return GS_OK;
    if (gsi_mpi_env_up () && (st = gsi_mpi_env_enter ()))
        return st;
    return gsi_fail (GS_ERR_STATE, "MPI was finalized before gs_comm_destroy: destroy "
                                   "communicators first");
}

static bool net_usable (const struct gsi_net *net)
{
    (void) net;
    return gsi_mpi_env_usable ();
}

/* ---- Requests ---- */

/* What stands before the requests of a batch; statuses follow them, and lengths. */
struct batch {
    MPI_Status *status;
    int *length; /* that a receive waits for; -1: it is none */
    MPI_Request request[];
};

static size_t requests_bytes (int n)
{
    size_t bytes = sizeof (struct batch) + (size_t) n * sizeof (MPI_Request);

    return (bytes + _Alignof(MPI_Status) - 1) / _Alignof(MPI_Status) * _Alignof(MPI_Status);
}

static size_t net_batch_bytes (int n)
{
    return requests_bytes (n) + (size_t) n * (sizeof (MPI_Status) + sizeof (int));
}

static void net_batch_init (void *memory, int n)
{
    struct batch *batch = memory;

    batch->status = (MPI_Status *) (void *) ((char *) memory + requests_bytes (n));
    batch->length = (int *) (void *) (batch->status + n);
    for (int i = 0; i < n; i++)
        batch->request[i] = MPI_REQUEST_NULL;
}

static int net_isend (struct gsi_net *net, void *memory, int i, const void *data, size_t bytes,
                      int peer, int tag)
{
    struct batch *batch = memory;

    batch->length[i] = -1;
    return MPI_Isend (data, (int) bytes, MPI_BYTE, peer, tag, ((struct gsi_net_mpi *) net)->comm,
                      &batch->request[i]);
}

static int net_irecv (struct gsi_net *net, void *memory, int i, void *data, size_t bytes,
                      int peer, int tag)
{
    struct batch *batch = memory;

    batch->length[i] = (int) bytes;
    return MPI_Irecv (data, (int) bytes, MPI_BYTE, peer, tag, ((struct gsi_net_mpi *) net)->comm,
                      &batch->request[i]);
}

/* The first of [n] requests that brought less than it waited for; -1: none. */
static int find_short (const struct batch *batch, int n)
{
    for (int i = 0, bytes; i < n; i++)
        if (batch->length[i] >= 0 &&
            (MPI_Get_count (&batch->status[i], MPI_BYTE, &bytes) || bytes != batch->length[i]))
            return i;
    return -1;
}

static int net_test_all (struct gsi_net *net, void *memory, int n, bool *done, int *failed)
{
    struct batch *batch = memory;
    int all = 0, rc = MPI_Testall (n, batch->request, &all, batch->status);

    (void) net;
    *done = all;
    *failed = -1;
    for (int i = 0; rc == MPI_ERR_IN_STATUS && i < n; i++) {
        int error = batch->status[i].MPI_ERROR;
        if (error != MPI_SUCCESS && error != MPI_ERR_PENDING) {
            *failed = i;
            return error;
        }
    }
    if (!rc && all)
        *failed = find_short (batch, n);
    return *failed < 0 ? rc : GSI_NET_SHORT;
}

static int net_test_some (struct gsi_net *net, void *memory, int n, int *ended, int *index,
                          int *failed)
{
    struct batch *batch = memory;
    int some = 0, rc = MPI_Testsome (n, batch->request, &some, index, batch->status);

    (void) net;
    *ended = some == MPI_UNDEFINED ? -1 : some;
    *failed = -1;
    for (int i = 0; rc == MPI_ERR_IN_STATUS && i < some; i++)
        if (batch->status[i].MPI_ERROR != MPI_SUCCESS) {
            *failed = index[i];
            return batch->status[i].MPI_ERROR;
        }
    return rc;
}

static void net_make_void (void *batch, int i)
{
    ((struct batch *) batch)->request[i] = MPI_REQUEST_NULL;
}

static bool net_pending (struct gsi_net *net, void *batch, int i)
{
    MPI_Status status;
    int done;

    (void) net;
    return !MPI_Request_get_status (((struct batch *) batch)->request[i], &done, &status) &&
           !done;
}

static bool net_probe (struct gsi_net *net, int peer, int *tag)
{
    MPI_Status status;
    int there;

    if (MPI_Iprobe (peer, MPI_ANY_TAG, ((struct gsi_net_mpi *) net)->comm, &there, &status) ||
        !there)
        return false;
    *tag = status.MPI_TAG;
    return true;
}

/* A short message: it leaves at once, or as MPI makes progress elsewhere. */
static void net_tell (struct gsi_net *net, const void *data, size_t bytes, int peer, int tag)
{
    MPI_Request request;

    if (!MPI_Isend (data, (int) bytes, MPI_BYTE, peer, tag, ((struct gsi_net_mpi *) net)->comm,
                    &request))
        MPI_Request_free (&request);
}

/* Takes in one notice of [source], if it is here; what MPI says. */
static int take_notice (struct gsi_net *net, int source, void *data, size_t bytes, int tag,
                        int *from)
{
    MPI_Comm comm = ((struct gsi_net_mpi *) net)->comm;
    MPI_Message message;
    MPI_Status status;
    int there = 0, rc = MPI_Iprobe (source, tag, comm, &there, &status);

    *from = -1;
    if (rc || !there)
        return rc;
    /* N.B. Not MPI_Recv: Open MPI 5 receives nothing from a rank that has left since. */
    if ((rc = MPI_Improbe (source, tag, comm, &there, &message, &status)) || !there ||
        (rc = MPI_Mrecv (data, (int) bytes, MPI_BYTE, &message, &status)))
        return rc;
    *from = status.MPI_SOURCE;
    return MPI_SUCCESS;
}

/*
 * N.B. Once a rank has ended, Open MPI 5 takes no more from any source until that is
 * acknowledged; then it also has the messages of those that have ended. A library that cannot be
 * told so is asked rank by rank.
 */
static bool net_hear (struct gsi_net *net, void *data, size_t bytes, int tag, int *from)
{
    int rc = take_notice (net, MPI_ANY_SOURCE, data, bytes, tag, from);

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    if (rc && !MPIX_Comm_failure_ack (((struct gsi_net_mpi *) net)->comm))
        rc = take_notice (net, MPI_ANY_SOURCE, data, bytes, tag, from);
#endif
    for (int r = 0; rc && *from < 0 && r < net->size; r++)
        if (r != net->rank)
            take_notice (net, r, data, bytes, tag, from);
    return *from >= 0;
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
static int net_dead (const struct gsi_net *net)
{
    MPI_Comm comm = ((const struct gsi_net_mpi *) net)->comm;
    const int first = 0;
    int number = 0, rank = -1;
    MPI_Group failed, all;

    if (comm == MPI_COMM_NULL || MPIX_Comm_failure_ack (comm) ||
        MPIX_Comm_failure_get_acked (comm, &failed))
        return -1;
    MPI_Group_size (failed, &number);
    if (number) {
        MPI_Comm_group (comm, &all);
        MPI_Group_translate_ranks (failed, 1, &first, all, &rank);
        MPI_Group_free (&all);
    }
    if (failed != MPI_GROUP_EMPTY)
        MPI_Group_free (&failed);
    return rank < 0 ? -1 : rank;
}
#endif

static gs_status_t net_allgather (struct gsi_net *net, const void *own, void *all, size_t bytes,
                                  int64_t deadline_ns)
{
    struct gsi_net_mpi *n = (struct gsi_net_mpi *) net;

    n->opening = (struct gsi_mpi_collective){
        .comm = n->comm, .own = own, .all = all, .bytes = (int) bytes};
    return gsi_mpi_env_collective ("transport mpi: MPI_Iallgather", &n->opening, deadline_ns);
}

static gs_status_t net_fail (const char *what, int code)
{
    return gsi_mpi_env_fail (what, code == GSI_NET_FAULT ? MPI_ERR_OTHER : code);
}

static const struct gsi_net_ops net_ops = {
    .name = "mpi",
    .words = {[GSI_NET_ISEND] = "MPI_Isend",
              [GSI_NET_IRECV] = "MPI_Irecv",
              [GSI_NET_TEST_ALL] = "MPI_Testall",
              [GSI_NET_TEST_SOME] = "MPI_Testsome"},
    .bytes = sizeof (struct gsi_net_mpi),
    .rank_bytes = sizeof (int),
    .prepare = net_prepare,
    .open = net_open,
    .close = net_close,
    .discard = net_discard,
    .enter = net_enter,
    .usable = net_usable,
    .batch_bytes = net_batch_bytes,
    .batch_init = net_batch_init,
    .isend = net_isend,
    .irecv = net_irecv,
    .test_all = net_test_all,
    .test_some = net_test_some,
    .make_void = net_make_void,
    .pending = net_pending,
    .probe = net_probe,
    .tell = net_tell,
    .hear = net_hear,
    .allgather = net_allgather,
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
    .dead = net_dead,
#endif
    .fail = net_fail,
    .keep = gsi_mpi_env_keep,
};

/* ---- The transport ---- */

static gs_status_t prepare_mpi (const struct gsi_boot *boot, const struct gsi_coll *parent,
                                void *card, void **room)
{
    (void) parent;
    return gsi_coll_host_prepare (&net_ops, boot, card, room);
}

static gs_status_t open_mpi (const struct gsi_coll_setup *setup, struct gsi_coll **out)
{
    return gsi_coll_host_open (&gsi_coll_mpi, setup, out);
}

const struct gsi_coll_ops gsi_coll_mpi = {
    .name = "mpi", .prepare = prepare_mpi, .unprepare = free, .open = open_mpi, GSI_COLL_HOST};
