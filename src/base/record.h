/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record - the flight record: the last operations of one communicator on one rank.
 *
 * A ring of entries in a shared-mapped file, written by plain stores: it costs two clock reads
 * per operation and is still there after SIGKILL. The file's layout is the two structs below,
 * in this machine's byte order; `gs-info --record FILE` prints it.
 *
 * Operations of all ranks and messages, which are between some, have a ring each: so the numbers
 * of the former are the same on all ranks.
 */
#ifndef GS_BASE_RECORD_H
#define GS_BASE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "gradsync.h"

#define GSI_RECORD_MAGIC   UINT64_C (0x3152434552534700) /* "\0GSRECR1" read as little endian */
#define GSI_RECORD_ENTRIES 256                           /* of each kind; a power of two */
#define GSI_RECORD_NAME    64
#define GSI_RECORD_HOST    72

/* What is recorded. */
enum gsi_record_op {
#define GSI_RECORD_OP(NAME, name, value) GSI_OP_##NAME = value,
#include "base/record_ops.def"
    GSI_OP_COUNT
};

struct gsi_record_entry {
    uint64_t seq;     /* 1, 2, ... per communicator and kind; 0: unused */
    int64_t begin_ns; /* gsi_now_ns () */
    int64_t end_ns;   /* 0 while the operation has not ended */
    uint64_t count;   /* elements */
    int32_t op;       /* enum gsi_record_op */
    int32_t dtype;    /* gs_dtype_t */
    int32_t argument; /* gs_op_t, root or as record_ops.def has it */
    int32_t status;   /* gs_status_t, once ended */
};

struct gsi_record_file {
    uint64_t magic;
    uint32_t header_bytes, entry_bytes, entries;
    int32_t rank, size, pid;
    int64_t wall_offset_ns;     /* add to a time of an entry for nanoseconds since 1970 */
    char name[GSI_RECORD_NAME]; /* of the communicator */
    char host[GSI_RECORD_HOST];
    int32_t verdict; /* gs_status_t that this rank gave the communicator up with */
    int32_t culprit; /* rank that failed first, as far as this one knows; with a verdict */
    uint64_t missed; /* number of the first call it did not do its part of; written before */
    int64_t caller;  /* the thread that made it, or with GS_CHECK=collective its last call */
    int64_t step; /* of a feature's that the communicator is let to; -step: after it; 0: none */
    uint64_t started;        /* when the process did, and the space that its number is of: see */
    uint64_t space;          /* base/proc.h; 0: not known */
    int32_t settled, unused; /* 1: after its end the GPU has ended what was queued for it */
    uint64_t reserved;
    struct gsi_record_entry entry[GSI_RECORD_ENTRIES];
    struct gsi_record_entry message[GSI_RECORD_ENTRIES];
};

/* Threads that watch or abort look at what is atomic while another one is in a call. */
struct gsi_record {
    struct gsi_record_file *file;          /* mapped; never NULL once open */
    struct gsi_record_entry *_Atomic open; /* the entry of the running operation, or NULL */
    _Atomic uint64_t seq;                  /* of the last operation begun */
    uint64_t messages;                     /* of the last of them */
    atomic_flag given_up;                  /* the verdict is there, or is being written */
    char path[1024];                       /* "" when the record is in memory only */
};

/* "allreduce_avg"; "unknown" outside the list. */
const char *gsi_record_op_name (int op);

/*
 * Opens the record of one communicator in the folder that GS_RECORD_DIR and its defaults give,
 * whose last part is made where it is missing: it may be of one step, and of each node.
 * [job] and [serial] make the file's name unique among jobs and communicators. Where no file
 * can be made the record is kept in memory and a warning is logged: never an error but NOMEM.
 */
gs_status_t gsi_record_open (struct gsi_record *record, const char *job, const char *name,
                             int serial, int rank, int size, const char *host);

/*
 * Unmaps; removes the file unless [keep] or GS_RECORD_KEEP, and an empty folder gs-records.*
 * with it. A record never opened is fine.
 */
void gsi_record_close (struct gsi_record *record, int keep);

/* Writes the entries as text beside the ring file and returns its path; "" if it cannot. */
const char *gsi_record_dump (const struct gsi_record *record, const char *reason);

/* What a rank's record tells about it. */
struct gsi_record_state {
    uint64_t seq;                 /* of the last operation begun */
    struct gsi_record_entry last; /* that operation; its seq is 0 if there was none */
    gs_status_t verdict;
    int culprit;
    uint64_t missed; /* with a verdict: the first call it did not do its part of */
    int pid;
    int64_t caller, step; /* see the file */
    uint64_t started, space;
    bool settled;
};

/*
 * Reads the record of rank [rank] of the same communicator; false if that cannot be read here: it
 * is on another node, or in memory.
 */
bool gsi_record_peek (const struct gsi_record *record, int rank, struct gsi_record_state *state);

/* Whether the process of a record of this node goes on, as far as that can be told here. */
bool gsi_record_runs (const struct gsi_record_state *state);

/* Whether it has ended; one that is stopped has not. False if that cannot be told here. */
bool gsi_record_ended (const struct gsi_record_state *state);

/* Whether it has ended without a verdict: it was killed, or left. Likewise. */
bool gsi_record_died (const struct gsi_record_state *state);

/* Whether it has died, or is stopped. Likewise. */
bool gsi_record_halted (const struct gsi_record_state *state);

/* A call that a rank is in on another communicator, or the last that it was in. */
struct gsi_record_call {
    char name[GSI_RECORD_NAME]; /* of that communicator */
    uint64_t seq;               /* among the operations, or the messages */
    int op;
    int64_t caller;
    bool died;      /* it has ended, and the communicator with it */
    bool awaits_us; /* the thread that calls on ours waits in it, for this thread among others */
};

/*
 * Finds a call that rank [rank] of this communicator is in elsewhere; false if there is none or
 * that cannot be told. It looks through all records of this node: for when something is wrong.
 */
bool gsi_record_elsewhere (const struct gsi_record *record, int rank,
                           struct gsi_record_call *call);

/*
 * Removes from [folder] what killed processes of this user on this host have left: records that
 * nobody has written to for a day, and their texts.
 */
void gsi_record_sweep (const char *folder, const char *host);

/* The calling thread, as the system numbers it. */
int64_t gsi_record_thread (void);

/* The number of the last operation begun. */
uint64_t gsi_record_newest (const struct gsi_record_file *file);

/* Tells those who peek that after its end nothing of the communicator runs here any more. */
void gsi_record_settle (struct gsi_record *record);

/*
 * Tells those who peek that this rank gave up because of [culprit]; the first failure counts,
 * GS_OK is none.
 */
void gsi_record_give_up (struct gsi_record *record, gs_status_t verdict, int culprit,
                         uint64_t missed);

/* What this rank gave up with; GS_OK: it has not, or has no record. */
static inline gs_status_t gsi_record_verdict (const struct gsi_record *record)
{
    return record->file ? (gs_status_t) __atomic_load_n (&record->file->verdict, __ATOMIC_ACQUIRE)
                        : GS_OK;
}

/* Whether [op] is of some ranks only, and has its entry among the messages. */
static inline bool gsi_record_is_message (int op)
{
    return op == GSI_OP_SEND || op == GSI_OP_RECV || op == GSI_OP_MESSAGES;
}

/* The entry with number [seq] of the kind that [op] is of. */
static inline struct gsi_record_entry *gsi_record_entry (struct gsi_record_file *file, int op,
                                                         uint64_t seq)
{
    uint64_t slot = seq & (GSI_RECORD_ENTRIES - 1);

    return gsi_record_is_message (op) ? &file->message[slot] : &file->entry[slot];
}

/*
 * Other threads and processes look at an entry while it is written, and may find it half done:
 * each number of it is whole, and their order does not matter. So these stores are plain ones for
 * the processor.
 */
#define GSI_RECORD_SET(number, value) __atomic_store_n (&(number), (value), __ATOMIC_RELAXED)
#define GSI_RECORD_GET(number)        __atomic_load_n (&(number), __ATOMIC_RELAXED)

static inline struct gsi_record_entry gsi_record_load (const struct gsi_record_entry *e)
{
    return (struct gsi_record_entry){.seq = GSI_RECORD_GET (e->seq),
                                     .begin_ns = GSI_RECORD_GET (e->begin_ns),
                                     .end_ns = GSI_RECORD_GET (e->end_ns),
                                     .count = GSI_RECORD_GET (e->count),
                                     .op = GSI_RECORD_GET (e->op),
                                     .dtype = GSI_RECORD_GET (e->dtype),
                                     .argument = GSI_RECORD_GET (e->argument),
                                     .status = GSI_RECORD_GET (e->status)};
}

/* The number of a new operation or message; only the thread in the call counts. */
static inline uint64_t gsi_record_count (struct gsi_record *record, int op)
{
    uint64_t seq = atomic_load_explicit (&record->seq, memory_order_relaxed) + 1;

    if (gsi_record_is_message (op))
        return ++record->messages;
    atomic_store_explicit (&record->seq, seq, memory_order_relaxed);
    return seq;
}

/* Begins an entry and returns its time. The caller fills nothing else in. */
static inline int64_t gsi_record_begin (struct gsi_record *record, int op, size_t count,
                                        int dtype, int argument)
{
    uint64_t seq = gsi_record_count (record, op);
    struct gsi_record_entry *e = gsi_record_entry (record->file, op, seq);
    int64_t now_ns = gsi_now_ns ();

    GSI_RECORD_SET (e->seq, seq);
    GSI_RECORD_SET (e->begin_ns, now_ns);
    GSI_RECORD_SET (e->end_ns, 0);
    GSI_RECORD_SET (e->count, count);
    GSI_RECORD_SET (e->op, op);
    GSI_RECORD_SET (e->dtype, dtype);
    GSI_RECORD_SET (e->argument, argument);
    GSI_RECORD_SET (e->status, 0);
    atomic_store_explicit (&record->open, e, memory_order_relaxed);
    return now_ns;
}

/* The operation was queued: its entry ends when gsi_record_done is told so. */
static inline void gsi_record_queued (struct gsi_record *record)
{
    atomic_store_explicit (&record->open, NULL, memory_order_relaxed);
}

static inline void gsi_record_end (struct gsi_record *record, gs_status_t st)
{
    struct gsi_record_entry *e = atomic_load_explicit (&record->open, memory_order_relaxed);

    GSI_RECORD_SET (e->status, (int32_t) st);
    GSI_RECORD_SET (e->end_ns, gsi_now_ns ());
    gsi_record_queued (record);
}

/* Ends the entry of operation or message [seq], unless a newer one stands in its place. */
static inline void gsi_record_done (struct gsi_record *record, int op, uint64_t seq,
                                    int64_t now_ns)
{
    struct gsi_record_entry *e = gsi_record_entry (record->file, op, seq);

    if (GSI_RECORD_GET (e->seq) == seq)
        GSI_RECORD_SET (e->end_ns, now_ns);
}

/* Prints [file] as text with write (context, line) per line; for the dump and for gs-info. */
void gsi_record_print (const struct gsi_record_file *file,
                       void (*write) (void *context, const char *line), void *context);

#endif /* GS_BASE_RECORD_H */
