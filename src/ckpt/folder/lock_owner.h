/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock_owner - who writes to a folder of checkpoints: what a lock says of a job, and which lock a
 * job may take. No file is written here.
 */
#ifndef GS_CKPT_FOLDER_LOCK_OWNER_H
#define GS_CKPT_FOLDER_LOCK_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GSI_OWNER_TEXT_MAX 1024 /* bytes of a lock, with the final 0 */

#define GSI_OWNER_BEAT_S   10 /* a holder that lives touches its lock this often */
#define GSI_OWNER_SILENT_S 60 /* one that has not for so long has ended, or hangs */

/* What a lock says; empty or 0 is not known. */
struct gsi_owner {
    char id[17];        /* of this lock: no two have the same */
    char cluster[64];   /* SLURM_CLUSTER_NAME, */
    char job[64];       /* SLURM_JOB_ID, */
    long long restarts; /* SLURM_RESTART_COUNT */
    char step[256];     /* the same in all processes of a job step, and in no others */
    char host[72];
    long long pid;
    char boot[40];      /* the run of the kernel that has the process, */
    uint64_t pid_space; /* the namespace in which it has this number, */
    uint64_t start;     /* and its start, in ticks of that kernel */
    char since[24];     /* UTC */
};

/* What one may do with the lock of another. */
enum gsi_right {
    GSI_RIGHT_NONE,
    GSI_RIGHT_SHARED, /* it is of this job step, too */
    GSI_RIGHT_OLDER,  /* take it: this job before it was requeued; */
    GSI_RIGHT_GONE,   /* its process was on this host, and has ended; */
    GSI_RIGHT_SILENT  /* it was touched too long ago */
};

/* This process, with an id that is new. */
void gsi_owner_self (struct gsi_owner *h);

/* The lines of a lock in [text] of GSI_OWNER_TEXT_MAX; their length. */
size_t gsi_owner_write (const struct gsi_owner *h, char *text);

/* Reads them. False: it is none, or its end is missing; then all is empty. */
bool gsi_owner_read (struct gsi_owner *h, const char *text);

/* Whether both are of one job step, which was not requeued in between. */
bool gsi_owner_is_same_step (const struct gsi_owner *a, const struct gsi_owner *b);

/* What [self] may do with a lock that was touched [age_s] ago. */
enum gsi_right gsi_owner_judge (const struct gsi_owner *there, const struct gsi_owner *self,
                                int64_t age_s);

/* "job 17 (restart 1, step slurm:17.0), process 4711 on host n1, since 2026-11-22T20:00:00Z" */
void gsi_owner_describe (const struct gsi_owner *h, char *text, size_t room);

#endif /* GS_CKPT_FOLDER_LOCK_OWNER_H */
