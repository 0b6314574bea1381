/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync.h - the whole public interface of gradsync.
 *
 * Sections in the order of the library's layers: results, settings, types, communicators; of the
 * files that this one includes, gradsync_collectives.h and gradsync_gather.h have collectives,
 * gradsync_adjoint.h their gradients, gradsync_stats.h statistics, gradsync_p2p.h messages and
 * halos, gradsync_group.h groups of ranks, gradsync_reducer.h reducers, gradsync_pool.h pools of
 * samples. Contracts have those labels that apply: Collective, Stream, Threads, Owner, Precision,
 * Returns, Since.
 *
 * Rules that hold for every function
 *   - Status: functions that can fail return gs_status_t; GS_OK is 0. On failure nothing was
 *     changed, outputs are NULL or untouched, and gs_last_error () tells what was wrong, where,
 *     and what to do about it.
 *   - Threads: one thread at a time per communicator; different communicators may be used by
 *     different threads at the same time. Functions without a communicator are thread-safe.
 *   - Processes: in a child of fork, calls on handles of its parent and creates are GS_ERR_STATE.
 *   - Waiting: no call waits without a deadline (GS_TIMEOUT_MS, GS_BOOT_TIMEOUT_MS).
 *   - Versions: what is since a version, experimental, may change in any later one; the rest
 * stays within 0.x as doc/NEWS.md says, and all of it from 1.0 on.
 *   - Output: it never exits, aborts or writes to stdout, and handles signals in section 8 only.
 */
#ifndef GRADSYNC_H
#define GRADSYNC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GS_VERSION_MAJOR 0
#define GS_VERSION_MINOR 2
#define GS_VERSION_PATCH 0

/* ---- 1. Results ------------------------------------------------------------------------- */

/* Result of a call. Each code implies a different remedy. */
typedef enum gs_status {
    GS_OK = 0,
    GS_ERR_ARG = 1,          /* an argument or a GS_* variable is wrong: correct it */
    GS_ERR_MISMATCH = 2,     /* the ranks disagree: look at the rank the text names */
    GS_ERR_NOMEM = 3,        /* out of memory or file descriptors on this or another rank */
    GS_ERR_BOOT = 4,         /* the ranks did not find each other: look at the launch line */
    GS_ERR_TRANSPORT = 5,    /* NCCL or MPI failed; the text has its words */
    GS_ERR_DEVICE = 6,       /* no such device, or memory of the wrong device */
    GS_ERR_IO = 7,           /* a file could not be read or written */
    GS_ERR_FORMAT = 8,       /* a file is damaged or of another kind */
    GS_ERR_TIMEOUT = 9,      /* a rank did not come in time; the communicator is dead */
    GS_ERR_UNSUPPORTED = 10, /* not in this build or not for this type */
    GS_ERR_STATE = 11,       /* not now: after abort, inside another call, after destroy */
    GS_STATUS_INT_SIZED = 0x7fffffff
} gs_status_t;

/*
 * Names a status: "GS_ERR_TIMEOUT".
 *
 *   status  in  any value
 *
 * Returns     a static string, never NULL; "unknown status" for a value outside the list.
 * Since       0.1
 */
const char *gs_status_string (gs_status_t status);

/*
 * Why the last call of the calling thread failed: culprit, reason, cure.
 *
 * Owner       the library; valid until the next call of this thread that returns a status or
 *             fails.
 * Returns     never NULL; "" after a call that returned GS_OK. What returns no status, such as
 *             gs_comm_rank, leaves the text, or sets it if it fails.
 * Since       0.1
 */
const char *gs_last_error (void);

/*
 * Ends this process by abort () where a call has failed, behind a line on stderr with the place,
 * the call, the status and gs_last_error (). Launchers end the other ranks then, or these name
 * this one. For programs with nothing to save, as MPI_ERRORS_ARE_FATAL is; the macro fills in the
 * rest: GS_ABORT_ON_ERROR (gs_barrier (comm, NULL));
 *
 *   status  in  what the call returned
 *   call    in  its text
 *   file    in  where it is,
 *   line    in  and in which line
 *
 * Threads     any, at any time.
 * Returns     after GS_OK only.
 * Since       0.2
 */
void gs_abort_on_error (gs_status_t status, const char *call, const char *file, int line);
#define GS_ABORT_ON_ERROR(call) gs_abort_on_error ((call), #call, __FILE__, __LINE__)

/*
 * The version of the library that runs, "0.2.0"; GS_VERSION_* say which one was compiled against.
 *
 * Returns     a static string.
 * Since       0.1
 */
const char *gs_version (void);

/* ---- 2. Settings ------------------------------------------------------------------------ */

/* One GS_* variable as this process sees it. */
typedef struct gs_setting {
    const char *name;   /* "GS_TIMEOUT_MS" */
    const char *value;  /* the text in force; "" when there is none */
    const char *origin; /* "default" or "environment" */
    const char *help;   /* one line: meaning, unit, allowed values */
} gs_setting_t;

/*
 * Lists the GS_* variables: [index] runs from 0; past the end GS_ERR_ARG.
 *
 *   index    in   0, 1, ...
 *   setting  out  name, value, origin and meaning
 *
 * Owner       the library owns the strings; [value] is valid until the environment changes.
 * Returns     GS_OK; GS_ERR_ARG when [setting] is NULL or [index] is past the end.
 * Since       0.1
 */
gs_status_t gs_setting_get (int index, gs_setting_t *setting);

/*
 * What was built in: lines "name: value", for example "pmix: 4.2.2" or "nccl: no".
 *
 * Returns     a static string of several lines.
 * Since       0.1
 */
const char *gs_build_info (void);

/* How loud the log is; a level includes those before it. */
typedef enum gs_log_level {
    GS_LOG_ERROR = 1, /* never in a good run */
    GS_LOG_WARN = 2,  /* something is worse than asked for (default) */
    GS_LOG_INFO = 3,  /* a few lines per communicator, from its rank 0 */
    GS_LOG_TRACE = 4, /* a line per operation and rank */
    GS_LOG_LEVEL_INT_SIZED = 0x7fffffff
} gs_log_level_t;

/*
 * Receives one log line, without a newline. May be called by any thread, one at a time. It may
 * set a sink, and should make no other call of gradsync, whose lines would not come to it.
 */
typedef void (*gs_log_f) (gs_log_level_t level, const char *line, void *context);

/*
 * Sends log lines to [sink] instead of stderr or GS_DEBUG_FILE.
 *
 *   sink     in  called for each line that GS_DEBUG lets through; NULL: back to the default
 *   context  in  handed to [sink] as it is
 *
 * Owner       the caller keeps [context] alive until another sink is set.
 * Since       0.1
 */
void gs_log_set_sink (gs_log_f sink, void *context);

/* ---- 3. Types --------------------------------------------------------------------------- */

/* Type of one element. */
typedef enum gs_dtype {
    GS_F16 = 1,   /* IEEE binary16 */
    GS_BF16 = 2,  /* bfloat16 */
    GS_F32 = 3,   /* float */
    GS_F64 = 4,   /* double */
    GS_I8 = 5,    /* int8_t */
    GS_I16 = 6,   /* int16_t */
    GS_I32 = 7,   /* int32_t */
    GS_I64 = 8,   /* int64_t */
    GS_U8 = 9,    /* uint8_t */
    GS_U16 = 10,  /* uint16_t */
    GS_U32 = 11,  /* uint32_t */
    GS_U64 = 12,  /* uint64_t */
    GS_C64 = 13,  /* complex of two floats, 8 bytes */
    GS_C128 = 14, /* complex of two doubles, 16 bytes */
    /* To store and to send; sums are in fp32. Those of P. Micikevicius et al., FP8 formats for
     * deep learning, arXiv:2209.05433, as PyTorch's float8_e4m3fn and float8_e5m2. Since 0.2 */
    GS_F8_E4M3 = 15, /* 4 bits of exponent, to 448; no infinity: what is more becomes NaN */
    GS_F8_E5M2 = 16, /* 5 bits of exponent, to 57344: the upper half of a binary16 */
    GS_DTYPE_INT_SIZED = 0x7fffffff
} gs_dtype_t;

/* Reduction of gs_allreduce and its like. Integers wrap; min and max of a NaN are NaN. */
typedef enum gs_op {
    GS_SUM = 1,
    GS_PROD = 2,
    GS_MIN = 3, /* not for complex */
    GS_MAX = 4, /* not for complex */
    GS_AVG = 5, /* sum over the number of ranks; not for integers */
    GS_OP_INT_SIZED = 0x7fffffff
} gs_op_t;

/* What carries the bytes. */
typedef enum gs_transport {
    GS_TRANSPORT_AUTO = 0, /* nccl if each rank has a GPU, else mpi, else self for one rank */
    GS_TRANSPORT_SELF = 1, /* one rank, no communication */
    GS_TRANSPORT_MPI = 2,  /* ranks on hosts */
    GS_TRANSPORT_NCCL = 3, /* ranks on GPUs */
    GS_TRANSPORT_INT_SIZED = 0x7fffffff
} gs_transport_t;

/* A CUDA stream: the same type as cudaStream_t, so no cast and no CUDA header are needed. */
struct CUstream_st;
typedef struct CUstream_st *gs_stream_t;

/*
 * The size in bytes of one element of [dtype]; 0 for an unknown type.
 * Since       0.1
 */
size_t gs_dtype_size (gs_dtype_t dtype);

/* ---- 4. Communicators ------------------------------------------------------------------- */

/* A group of ranks, each with one device, joined by a transport. */
typedef struct gs_comm gs_comm_t;

#define GS_DEVICE_AUTO (-1) /* choose by local rank */
#define GS_DEVICE_HOST (-2) /* no GPU: arrays are in host memory */

/*
 * Options of a communicator. Start from GS_COMM_OPTS_INIT; zero or NULL in a field other than
 * device means its default. [size] lets later versions add fields: those
 * that a program does not have keep their default.
 */
typedef struct gs_comm_opts {
    size_t size;      /* sizeof (gs_comm_opts_t) */
    const char *name; /* shown in messages and records; the same on all ranks, or they do not find
                       * each other's records; copied; default "world" */
    gs_transport_t transport; /* default: GS_TRANSPORT, else GS_TRANSPORT_AUTO */
    int device;         /* ordinal, GS_DEVICE_AUTO (GS_DEVICE, else by local rank) or _HOST */
    int64_t timeout_ms; /* deadline of one operation; 0: GS_TIMEOUT_MS */
    int64_t boot_timeout_ms; /* deadline of the bootstrap; 0: GS_BOOT_TIMEOUT_MS */
    void *reserved[8];       /* NULL */
} gs_comm_opts_t;

#define GS_COMM_OPTS_INIT                                                       \
    {                                                                           \
        sizeof (gs_comm_opts_t), NULL, GS_TRANSPORT_AUTO, GS_DEVICE_AUTO, 0, 0, \
        {                                                                       \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                      \
        }                                                                       \
    }

/*
 * Makes the communicator of all ranks of this job step, or of this process alone when nothing
 * launched it. Under Slurm: srun --mpi=pmix.
 *
 *   opts  in   NULL for the defaults; transport must be the same on all ranks
 *   comm  out  the new communicator; NULL on failure
 *
 * Collective  yes, over all ranks of the job step; ranks that make several communicators make
 *             them in the same order. Where some ranks do not use gradsync see gs_comm_from_mpi
 *             and gs_comm_create_from_id.
 * Owner       the caller, until gs_comm_destroy.
 * Returns     the same status on every rank that comes:
 *   GS_ERR_ARG          comm is NULL, opts is not from its INIT, or a GS_* variable is wrong
 *   GS_ERR_BOOT         several tasks are announced, and no PMIx server answers
 *   GS_ERR_MISMATCH     ranks differ in version or in the transport asked for
 *   GS_ERR_TIMEOUT      ranks did not come within GS_BOOT_TIMEOUT_MS; they are named with hosts
 *   GS_ERR_UNSUPPORTED  the transport asked for is not in this build
 *   GS_ERR_DEVICE       a GPU or transport nccl was asked for, and a rank has none of its own
 *   GS_ERR_TRANSPORT    the transport did not start
 * Since       0.1
 */
gs_status_t gs_comm_create (const gs_comm_opts_t *opts, gs_comm_t **comm);

#define GS_UNIQUE_ID_BYTES 256

/* Names a rendezvous of ranks; made by one rank, carried to the others by any means. */
typedef struct gs_unique_id {
    char bytes[GS_UNIQUE_ID_BYTES];
} gs_unique_id_t;

/*
 * Makes an id for one gs_comm_create_from_id. The process that makes it must be the one that
 * becomes rank 0, and keeps listening sockets until then. Who knows the id can join, nobody else.
 *
 *   id  out  plain bytes; send them to the other ranks by file, socket or message
 *
 * Returns     GS_OK; GS_ERR_ARG: id is NULL; GS_ERR_BOOT: no socket; GS_ERR_UNSUPPORTED.
 * Since       0.1
 */
gs_status_t gs_unique_id_get (gs_unique_id_t *id);

/*
 * Makes a communicator of exactly the ranks that call with the same [id]: for sites without a
 * PMIx plugin and for jobs in which some processes never use gradsync.
 *
 *   id    in   from gs_unique_id_get on the process that becomes rank 0; used once
 *   rank  in   0 to size - 1, each taken once
 *   size  in   how many ranks will call
 *   opts  in   NULL for the defaults
 *   comm  out  the new communicator; NULL on failure
 *
 * Collective  over the [size] ranks that call. On hosts with size > 1 the application must have
 *             initialised MPI on these ranks, which carries the data.
 * Owner       the caller, until gs_comm_destroy.
 * Returns     as gs_comm_create; GS_ERR_ARG too for a rank out of range, taken twice, or an id
 *             that is damaged or was used before.
 * Since       0.1
 */
gs_status_t gs_comm_create_from_id (const gs_unique_id_t *id, int rank, int size,
                                    const gs_comm_opts_t *opts, gs_comm_t **comm);

/*
 * Makes a communicator of the ranks of an MPI communicator, given as the Fortran integer of
 * MPI_Comm_c2f. gradsync_mpi.h has the form for MPI_Comm.
 *
 *   mpi_comm  in   an intracommunicator of initialised MPI; duplicated, not kept
 *   opts      in   NULL for the defaults
 *   comm      out  the new communicator; NULL on failure
 *
 * Collective  over the ranks of [mpi_comm]; other ranks of the job take no part.
 * Owner       the caller, until gs_comm_destroy, which must precede MPI_Finalize.
 * Returns     as gs_comm_create; GS_ERR_STATE if MPI is not initialised or already finalized;
 *             GS_ERR_UNSUPPORTED without an MPI module for this MPI library.
 * Since       0.1
 */
gs_status_t gs_comm_from_mpi_fint (int mpi_comm, const gs_comm_opts_t *opts, gs_comm_t **comm);

/*
 * Ends a communicator.
 *
 *   comm  in  NULL does nothing; not to be used afterwards
 *
 * Collective  yes, unless the communicator was aborted or has timed out: then local. Memory
 *             that an unfinished transfer still owns is kept, not freed.
 * Returns     GS_OK; GS_ERR_TIMEOUT if the other ranks did not come in time; GS_ERR_MISMATCH if
 *             they are in another call, which then fails; GS_ERR_TRANSPORT also if one has given
 *             up; GS_ERR_STATE: nothing was destroyed, for it is in use.
 * Since       0.1
 */
gs_status_t gs_comm_destroy (gs_comm_t *comm);

/*
 * Declares the communicator dead on this rank: every later call but gs_comm_destroy returns
 * GS_ERR_STATE. The other ranks find out by their deadline, or at once where the transport can
 * tell them. It does not wait, but on GPUs of several nodes with calls under way: there until a
 * rank of each other node has answered that it knows, a second or, where ranks share GPUs, some
 * seconds at most. Not to be called by a signal handler.
 *
 *   comm  in  a live communicator; aborting twice is allowed
 *
 * Threads     may be called by any thread, also while another is inside a call on [comm]. Below
 *             MPI_THREAD_MULTIPLE only the thread of the last call tells the other ranks.
 * Returns     GS_OK; GS_ERR_ARG if comm is NULL.
 * Since       0.1
 */
gs_status_t gs_comm_abort (gs_comm_t *comm);

/*
 * Asks, without waiting, whether something failed after a call had returned.
 *
 *   comm  in  a communicator
 *
 * Returns     GS_OK, or the status that killed the communicator, again and again.
 * Since       0.1
 */
gs_status_t gs_comm_check (gs_comm_t *comm);

/*
 * Waits on the host until the work queued on [stream] is done, at most timeout_ms.
 * On hosts calls are complete when they return, so there is nothing to wait for.
 *
 *   comm    in  a communicator
 *   stream  in  the stream given to the calls; ignored on hosts
 *
 * Returns     GS_OK; GS_ERR_TIMEOUT, after which the communicator lives on; GS_ERR_UNSUPPORTED if
 *             the stream is captured; or what gs_comm_check says.
 * Since       0.1
 */
gs_status_t gs_comm_wait (gs_comm_t *comm, gs_stream_t stream);

/*
 * What a communicator is. Each is local, cheap and thread-safe; with comm NULL they return
 * -1, or NULL for a string, and set gs_last_error.
 *
 *   rank, size              of the communicator
 *   local_rank, local_size  among its ranks on the same node, in rank order
 *   node, nodes             index of the node in the order of its first rank; how many there are
 *   device                  ordinal of the GPU, or GS_DEVICE_HOST
 *   transport               "self", "mpi", "ofi" or "nccl"
 *   host_of                 the node's name for any rank, NULL if out of range
 *   name                    as given in the options
 *
 * Owner       strings belong to the communicator.
 * Since       0.1
 */
int gs_comm_rank (const gs_comm_t *comm);
int gs_comm_size (const gs_comm_t *comm);
int gs_comm_local_rank (const gs_comm_t *comm);
int gs_comm_local_size (const gs_comm_t *comm);
int gs_comm_node (const gs_comm_t *comm);
int gs_comm_nodes (const gs_comm_t *comm);
int gs_comm_device (const gs_comm_t *comm);
const char *gs_comm_transport (const gs_comm_t *comm);
const char *gs_comm_host_of (const gs_comm_t *comm, int rank);
const char *gs_comm_name (const gs_comm_t *comm);

/* Where the time of the create went, in microseconds of this rank. */
typedef struct gs_comm_times {
    size_t size;         /* in: sizeof (gs_comm_times_t) */
    double open_us;      /* reaching the bootstrap server (PMIx_Init; MPI_Init in boot mpi) */
    double exchange_us;  /* the card exchange: put, fence, gets */
    double transport_us; /* loading and starting the transport; MPI_Init where we do it */
    double reserved[5];
} gs_comm_times_t;

/*
 * Tells how long the phases of the create took.
 *
 *   comm   in      a communicator
 *   times  in,out  [size] in, the rest out
 *
 * Returns     GS_OK; GS_ERR_ARG if an argument is NULL or [size] is wrong.
 * Since       0.1
 */
gs_status_t gs_comm_get_times (const gs_comm_t *comm, gs_comm_times_t *times);

/*
 * Makes an array in memory of the communicator's device: of its GPU, or of the host. On hosts the
 * ranks of a node share it where they can, and sums of such arrays copy nothing: the fastest way.
 *
 *   comm    in   a communicator
 *   bytes   in   its size; 0 gives NULL
 *   memory  out  aligned to 256 bytes, not initialised; NULL on failure
 *
 * Threads     may be called by any thread, also while another is inside a call on [comm].
 * Owner       the caller, until gs_device_free, which must precede gs_comm_destroy.
 * Returns     GS_OK; GS_ERR_NOMEM; GS_ERR_DEVICE; GS_ERR_ARG if an argument is NULL.
 * Since       0.1
 */
gs_status_t gs_device_alloc (const gs_comm_t *comm, size_t bytes, void **memory);

/*
 * Frees what gs_device_alloc made with [comm]. On GPUs it waits for the work of the device. Where
 * that of the legacy stream, and of those that this waits for, does not end within the deadline,
 * or the communicator has failed and what it has queued does not end, the memory stays instead;
 * where that of a stream that does not block does not, it is freed when it has, with a warning.
 * For collectives of other communicators of this process on the GPU it does not wait: while some
 * are under way the memory is freed later, when none is. Graphs that run it does not know.
 *
 *   comm    in  the same communicator
 *   memory  in  NULL does nothing
 *
 * Threads     may be called by any thread, also while another is inside a call on [comm].
 * Returns     GS_OK; GS_ERR_DEVICE if the memory is not of this device, unless it is freed later;
 *             GS_ERR_TIMEOUT if it is kept.
 * Since       0.1
 */
gs_status_t gs_device_free (const gs_comm_t *comm, void *memory);

/*
 * Copies [bytes] between any two places, of the host or of the communicator's device.
 *
 *   comm    in   a communicator
 *   dst     out  does not overlap src
 *   src     in
 *   bytes   in   0 does nothing
 *   stream  in   on GPUs the copy is queued there (NULL: the legacy default stream): ordinary
 *                host memory has been read, or written, when the call returns, pinned memory when
 *                the stream has passed it. Ignored on hosts
 *
 * Returns     GS_OK; GS_ERR_ARG; GS_ERR_DEVICE for memory of another GPU; that of gs_comm_check
 *             if the communicator failed meanwhile.
 * Since       0.1
 */
gs_status_t gs_device_copy (gs_comm_t *comm, void *dst, const void *src, size_t bytes,
                            gs_stream_t stream);

#ifdef __cplusplus
}
#endif

#include "gradsync_collectives.h"
#include "gradsync_adjoint.h"
#include "gradsync_gather.h"
#include "gradsync_ckpt.h"
#include "gradsync_group.h"
#include "gradsync_p2p.h"
#include "gradsync_pool.h"
#include "gradsync_reducer.h"
#include "gradsync_stats.h"

#endif /* GRADSYNC_H */
