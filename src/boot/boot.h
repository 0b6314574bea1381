/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot - who are we: rank, size, host, job, and one exchange of cards among all ranks.
 *
 * To add a way of finding the other ranks: write boot_NAME.c with a const struct gsi_boot_ops
 * gsi_boot_NAME, declare it below, and give it a place in choose () of boot.c.
 */
#ifndef GS_BOOT_BOOT_H
#define GS_BOOT_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradsync.h"

#define GSI_HOST_BYTES 72  /* room for a host name (64 on Linux), with the final 0 */
#define GSI_JOB_BYTES  256 /* room for a name of a job, with the final 0 */

struct gsi_boot_ops;

/* What every implementation's own struct begins with; filled by open, constant afterwards. */
struct gsi_boot {
    const struct gsi_boot_ops *ops;
    int rank, size;
    char host[GSI_HOST_BYTES]; /* the node's name: ranks with the same one share memory */
    char job[GSI_JOB_BYTES];   /* the same on all ranks, different for each job step */
    int64_t timeout_ns;        /* of the create: how late ranks may be, likewise */
    /* (or NULL) Whether [rank] is one of this node and goes on, or has died or is stopped there,
     * as far as that can be told. */
    bool (*goes_on) (const void *context, int rank);
    bool (*halted) (const void *context, int rank);
    const void *context; /* theirs */
    bool one_node;       /* all ranks are known to be on one */
    bool is_group;       /* the ranks are some of another communicator, and meet there */
    bool own_job;        /* the name is of this create alone, which some ranks may not make */
    bool any_thread;     /* several threads may do so at once: nothing is in an order */
};

struct gsi_boot_ops {
    const char *name;

    /*
     * (optional) Reaches the other ranks' rendezvous without waiting for them and fills the
     * base struct. NULL for implementations that need arguments and have their own way in.
     * GS_ERR_UNSUPPORTED: this way is not there, another may be. Any other failure is final.
     */
    gs_status_t (*open) (int64_t deadline_ns, struct gsi_boot **out);

    /*
     * (optional) Local. Makes what the next exchange, of [bytes], needs of this rank, which then
     * does not fail for want of memory. Comes before each one that is to give cards.
     */
    gs_status_t (*reserve) (struct gsi_boot *boot, size_t bytes);

    /*
     * (required) Collective. Gives [bytes] of every rank to every rank, in rank order, until
     * [deadline_ns] of gsi_now_ns (). On GS_ERR_TIMEOUT the text names the ranks without a card
     * and their hosts. May be called again after a success. A rank that has no memory for [cards]
     * gives NULL: it tells the others its own, needs no memory for it if it can, and hears
     * nothing.
     */
    gs_status_t (*exchange) (struct gsi_boot *boot, const void *card, size_t bytes, void *cards,
                             int64_t deadline_ns);

    /*
     * (optional, both) After a failure [st] that all ranks meet with which are left, behind an
     * exchange that went well. blame, from [from_ns] on, adds the others, that do not call it,
     * too, within a few seconds, to the text of gs_last_error (), and returns [st]. A rank that
     * knows who it was calls show: it is there.
     */
    void (*show) (struct gsi_boot *boot);
    gs_status_t (*blame) (struct gsi_boot *boot, gs_status_t st, int64_t from_ns);

    /*
     * (optional) Collective, after an exchange whose outcome is a failure on all ranks: stays
     * until all have read it, a few seconds at most, where what a rank told is lost as soon as
     * it ends. Leaves gs_last_error () as it is.
     */
    void (*part) (struct gsi_boot *boot);

    /*
     * (optional) Collective, at the end of a create that went well: gives back what the transport
     * could have taken and has not, within a second or not at all.
     */
    void (*settle) (struct gsi_boot *boot);

    /* (required) Leaves, without waiting, and frees. */
    void (*close) (struct gsi_boot *boot);
};

/* A process alone. Always works. */
extern const struct gsi_boot_ops gsi_boot_single;

/* A PMIx server: srun --mpi=pmix, mpirun. Present with HAVE_PMIX. */
extern const struct gsi_boot_ops gsi_boot_pmix;

/* An id carried by the application: needs gsi_boot_id_open instead of open. */
extern const struct gsi_boot_ops gsi_boot_id;
gs_status_t gsi_boot_id_open (const gs_unique_id_t *id, int rank, int size,
                              struct gsi_boot **out);

/*
 * For ranks that wait in the start of MPI, which has opened PMIx: wait opens it too and tells the
 * others that this rank came; missing fails with GS_ERR_TIMEOUT and names those that did not.
 */
gs_status_t gsi_boot_pmix_wait (struct gsi_boot **out);
gs_status_t gsi_boot_pmix_missing (struct gsi_boot *boot);

/* Whether PMIx is open in this process, by whomever. */
bool gsi_boot_pmix_is_open (void);

/*
 * Opens the way that GS_BOOT asks for, or the first that works; see gs_comm_create. [requested]
 * is the transport asked for: where it may need an MPI library that must be started before PMIx,
 * that is started, and waits for the other ranks until [deadline_ns].
 */
gs_status_t gsi_boot_open (gs_transport_t requested, int64_t deadline_ns, struct gsi_boot **out);

/* Opens the way through the ranks of an MPI communicator (Fortran handle), in the MPI module. */
gs_status_t gsi_boot_from_mpi (int mpi_comm, struct gsi_boot **out);

/*
 * Collective: tells every rank of the first rank whose [st] is a failure, by one exchange; it
 * returns that, or GS_OK. Ranks that only waited in vain or for one that gave up, GS_ERR_TIMEOUT
 * and GS_ERR_STATE, come behind those with a cause. The text of the failure must be in
 * gs_last_error (); a rank that has failed itself keeps that when the exchange fails.
 */
gs_status_t gsi_boot_agree (struct gsi_boot *boot, gs_status_t st, int64_t deadline_ns);

/* What the next exchange, of [bytes], needs of this rank: see struct gsi_boot_ops. */
gs_status_t gsi_boot_reserve (struct gsi_boot *boot, size_t bytes);

/* After an exchange whose outcome is a failure on all ranks: see struct gsi_boot_ops. */
void gsi_boot_part (struct gsi_boot *boot);

/* NULL is allowed. */
void gsi_boot_close (struct gsi_boot *boot);

/* What the MPI module offers to this layer, looked up by name (src/mpi/boot_mpi.c). */
struct gsi_boot_mpi_entry {
    struct gsi_boot_ops ops;    /* open, after start: all ranks of MPI_COMM_WORLD */
    bool (*initialized) (void); /* whether MPI is up in this process, not finalized */
    bool (*before_pmix) (void); /* whether it can still be started, but not once PMIx is open */
    gs_status_t (*start) (int64_t deadline_ns); /* makes it up if it is not; may be called again
                                                   after GS_ERR_TIMEOUT, and then waits on */
    gs_status_t (*from_comm) (int mpi_comm, struct gsi_boot **out); /* kept until exchange */
};
#define GSI_BOOT_MPI_SYMBOL "gsi_boot_mpi"

#endif /* GS_BOOT_BOOT_H */
