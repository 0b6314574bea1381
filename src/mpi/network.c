/* SPDX-License-Identifier: BSD-3-Clause */
/* network - what can be said when MPI does not reach ranks of other hosts. */
#include "mpi/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

/* Writes "eth0 10.1.2.3, docker0 172.17.0.1" of the interfaces that are up, as many as fit. */
static void list_interfaces (char *text, size_t room)
{
    struct ifaddrs *all = NULL;
    size_t used = 0;

    snprintf (text, room, "none that is known");
    if (getifaddrs (&all))
        return;
    for (const struct ifaddrs *one = all; one && used + 1 < room; one = one->ifa_next) {
        const struct sockaddr_in *address = (const void *) one->ifa_addr;
        char numbers[INET_ADDRSTRLEN];
        if (!address || address->sin_family != AF_INET || !(one->ifa_flags & IFF_UP) ||
            (one->ifa_flags & IFF_LOOPBACK))
            continue;
        inet_ntop (AF_INET, &address->sin_addr, numbers, sizeof (numbers));
        used += (size_t) snprintf (text + used, room - used, "%s%s %s", used ? ", " : "",
                                   one->ifa_name, numbers);
    }
    freeifaddrs (all);
}

gs_status_t gsi_network_blame (gs_status_t st, const struct gsi_boot *boot,
                               const struct gsi_topo *topo)
{
    char cause[200], interfaces[400];

    snprintf (cause, sizeof (cause), "%s", gsi_last_text ());
    if (topo->nodes == 1)
        return gsi_fail (st, "%s, though all ranks of host %s have come", cause, boot->host);
    list_interfaces (interfaces, sizeof (interfaces));
    return gsi_fail (st,
                     "%s: all %d ranks of %d nodes have come, but MPI on host %s did not reach "
                     "the others. A firewall between the hosts does this, or an interface with "
                     "the same address on several of them, such as docker0. Interfaces of %s: "
                     "%s. Name the one that connects the hosts: OMPI_MCA_btl_tcp_if_include "
                     "(Open MPI over TCP) or UCX_NET_DEVICES (UCX), and for NCCL "
                     "NCCL_SOCKET_IFNAME",
                     cause, topo->size, topo->nodes, boot->host, boot->host, interfaces);
}
