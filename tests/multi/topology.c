/* SPDX-License-Identifier: BSD-3-Clause */
/* topology - ranks, nodes and hosts are those of the launcher. */
#include "multi.h"

#define HOST_BYTES 72

/* How many GPUs this rank sees of a node that has one for each of its [local] ranks, or fewer. */
static int visible_gpus (int local)
{
    const char *list = getenv ("CUDA_VISIBLE_DEVICES");
    int count = 1;

    if (!list)
        return multi_number (local, "GS_TEST_SHARED_GPUS", NULL);
    for (; *list; list++)
        count += *list == ',';
    return count;
}

int main (void)
{
    gs_comm_t *comm = multi_create (NULL);
    int rank = gs_comm_rank (comm), size = gs_comm_size (comm), nodes = 0, local = 0, device;
    int place = multi_number (-1, "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", NULL);
    const char *transport = getenv ("GS_TRANSPORT"); /* nccl, on nodes of as many GPUs as ranks */
    int wanted = multi_number (0, "GS_TEST_NODES", NULL);
    char mine[HOST_BYTES] = "", *all = calloc ((size_t) size, HOST_BYTES);

    gethostname (mine, sizeof (mine) - 1);
    CHECK (rank == multi_rank (), "rank %d, the launcher says %d", rank, multi_rank ());
    CHECK (size == multi_size (), "size %d, the launcher says %d", size, multi_size ());
    CHECK (place < 0 || gs_comm_local_rank (comm) == place, "local rank %d, the launcher says %d",
           gs_comm_local_rank (comm), place);
    CHECK_OK (gs_allgather (comm, mine, all, HOST_BYTES, GS_I8, NULL));
    for (int r = 0; r < size; r++) {
        const char *host = all + (size_t) r * HOST_BYTES;
        int first = 0;
        while (strcmp (all + (size_t) first * HOST_BYTES, host))
            first++;
        if (r == rank)
            CHECK (gs_comm_node (comm) == (first == r ? nodes : gs_comm_node (comm)),
                   "node %d is not numbered by its first rank", gs_comm_node (comm));
        nodes += first == r;
        local += !strcmp (host, mine);
        CHECK (!strcmp (gs_comm_host_of (comm, r), host), "host of rank %d: %s, it says %s", r,
               gs_comm_host_of (comm, r), host);
    }
    CHECK (gs_comm_nodes (comm) == nodes, "%d nodes, not %d", gs_comm_nodes (comm), nodes);
    CHECK (!wanted || nodes == wanted, "%d nodes, %d were launched", nodes, wanted);
    CHECK (gs_comm_local_size (comm) == local, "local size %d, not %d", gs_comm_local_size (comm),
           local);
    if (multi_mixed ())
        transport = NULL; /* hosts carry the arrays of all ranks */
    CHECK (!strcmp (gs_comm_transport (comm), transport  ? transport
                                              : size > 1 ? "mpi"
                                                         : "self"),
           "transport %s", gs_comm_transport (comm));
    device = transport ? gs_comm_local_rank (comm) % visible_gpus (local) : GS_DEVICE_HOST;
    CHECK (multi_mixed () ? (gs_comm_device (comm) >= 0) == multi_has_gpu ()
                          : gs_comm_device (comm) == device,
           "device %d, not %d", gs_comm_device (comm), device);
    CHECK (!gs_comm_host_of (comm, size) && !gs_comm_host_of (comm, -1), "a host out of range");
    free (all);
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("ranks, nodes and hosts as launched");
}
