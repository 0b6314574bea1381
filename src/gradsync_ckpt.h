/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gradsync_ckpt.h - part of gradsync.h, which includes it: checkpoints of synchronized state in
 * HDF5 files.
 */
#ifndef GRADSYNC_CKPT_H
#define GRADSYNC_CKPT_H

#ifndef GRADSYNC_H
#error "include gradsync.h, which has this file in it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 8. Checkpoints --------------------------------------------------------------------- */
/*
 * A checkpoint plan knows the state of a program: arrays that are equal on all ranks, blocks of
 * global arrays, and what each rank has of its own. It writes all of it to one HDF5 file, and
 * reads it back on any number of ranks:
 *
 *   create, add each array, commit
 *   at the start:        read
 *   every so many steps: write; or write_async, and test in the steps that follow
 *   after each step:     ask whether to stop
 *   at the end:          wait
 *   destroy
 *
 * A file is DIR/ck-<step>.h5, for HDF5 1.8 and later: doc/checkpoint-format.md describes it. It
 * has that name once it is complete and on disk; until then, and if the job dies, it is
 * ck-<step>.h5.<id>.tmp, which the commit of the next job removes. All that
 * it has is under checksums. DIR/.gs-lock tells other jobs who writes there.
 *
 * All functions but gs_ckpt_destroy return GS_ERR_ARG if the plan is NULL, GS_ERR_STATE if it was
 * destroyed or, unless they say otherwise, is not committed; GS_ERR_UNSUPPORTED in a build
 * without HDF5. Those that are collective return what the collectives of section 5 do, too; what
 * a rank meets on the way, a full disk for instance, is returned on all ranks and names it. A
 * plan is used by one thread at a time, the one that calls on its communicator. While it is
 * called the program does not call HDF5 on another thread, unless its HDF5 is thread-safe.
 */
typedef struct gs_ckpt gs_ckpt_t;

/* Instead of a step: the newest checkpoint that is whole. */
#define GS_CKPT_LATEST (-1)

/* What a read does about arrays of ranks if there were another number of these. */
typedef enum gs_ckpt_ranks {
    GS_CKPT_RANKS_ERROR = 0, /* it fails with GS_ERR_MISMATCH */
    GS_CKPT_RANKS_KEEP = 1,  /* it leaves them as they are on all ranks */
    GS_CKPT_RANKS_FIRST = 2, /* new ranks receive rank 0's values */
    GS_CKPT_RANKS_INT_SIZED = 0x7fffffff
} gs_ckpt_ranks_t;

/* How the arrays of a checkpoint are spread over files. */
typedef enum gs_ckpt_layout {
    GS_CKPT_LAYOUT_AUTO = 0,   /* what suits the file system of the folder */
    GS_CKPT_LAYOUT_SINGLE = 1, /* one file, ck-<step>.h5, to which all ranks write */
    GS_CKPT_LAYOUT_NODE = 2,   /* a folder ck-<step> with a file for each node, and index.h5, in
                                  which readers find the arrays put together */
    GS_CKPT_LAYOUT_INT_SIZED = 0x7fffffff
} gs_ckpt_layout_t;

/* How replicated arrays are held against those of the other ranks, by digests of 64 bits. */
typedef enum gs_ckpt_compare {
    GS_CKPT_COMPARE_FULL = 0,   /* every byte */
    GS_CKPT_COMPARE_SAMPLE = 1, /* on hosts one of 100 pieces of 4 KiB, others in each step, the
                                   first and the last one, and arrays up to 64 KiB; on GPUs, where
                                   it costs little, every byte */
    GS_CKPT_COMPARE_NONE = 2,
    GS_CKPT_COMPARE_INT_SIZED = 0x7fffffff
} gs_ckpt_compare_t;

/* What an asynchronous write does while the one before is still under way. */
typedef enum gs_ckpt_busy {
    GS_CKPT_BUSY_WAIT = 0,  /* it waits for that one */
    GS_CKPT_BUSY_SKIP = 1,  /* it does nothing */
    GS_CKPT_BUSY_ERROR = 2, /* it fails with GS_ERR_STATE */
    GS_CKPT_BUSY_INT_SIZED = 0x7fffffff
} gs_ckpt_busy_t;

/*
 * Options of a plan, the same on all ranks. Start from GS_CKPT_OPTS_INIT; zero or NULL in a field
 * means its default. [size] lets later versions add fields.
 */
typedef struct gs_ckpt_opts {
    size_t size;        /* sizeof (gs_ckpt_opts_t) */
    const char *name;   /* shown in messages; copied; default "checkpoint" */
    int keep_last;      /* so many, of the steps up to that written, stay; default all */
    int64_t keep_every; /* those of steps that are multiples of it stay even so */
    int overwrite;      /* 1: a step that there is already is replaced; default GS_ERR_STATE */
    int allow_missing;  /* 1: arrays that the file does not have stay as they are in a read */
    int allow_extra;    /* 1: a read takes no notice of what the file has beside the plan's */
    gs_ckpt_compare_t compare; /* of replicated arrays */
    gs_ckpt_layout_t layout;   /* of files */
    gs_ckpt_busy_t busy;       /* of asynchronous writes */
    int lazy;      /* 1: they return before the arrays are copied, see gs_ckpt_wait_staged */
    int direct;    /* 1: past the system's cache (O_DIRECT), where there is such */
    size_t memory; /* bytes on a rank for copies of arrays: 0: as much as they have; less,
                      at least 1 MiB: copies are made as the file takes them */
    gs_ckpt_ranks_t ranks; /* of a read with another number of ranks */
    int read_only;         /* 1: it writes nothing, and the folder may be another job's */
    const char *signals;   /* that ask to stop, see below; copied; default "USR1,TERM" */
    double stop_margin_s;  /* seconds to be left at the end of the job, see below; default 60 */
    int create_folder;     /* 1: a folder that is not there is made, with those on the way to it;
                              default GS_ERR_IO */
    void *reserved[7];     /* NULL */
} gs_ckpt_opts_t;

#define GS_CKPT_OPTS_INIT                                                                        \
    {                                                                                            \
        sizeof (gs_ckpt_opts_t), NULL, 0, 0, 0, 0, 0, GS_CKPT_COMPARE_FULL, GS_CKPT_LAYOUT_AUTO, \
            GS_CKPT_BUSY_WAIT, 0, 0, 0, GS_CKPT_RANKS_ERROR, 0, NULL, 0, 0,                      \
        {                                                                                        \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL                                             \
        }                                                                                        \
    }

/*
 * Makes a plan without arrays; commit completes it.
 *
 *   comm  in   outlives the plan
 *   dir   in   the folder of the files, which exists, or see create_folder, and which all ranks
 *              see; copied. A relative one is that of now, whatever the working folder is later
 *   opts  in   NULL for the defaults
 *   ckpt  out  the new plan; NULL on failure
 *
 * Collective  no; gs_ckpt_commit is.
 * Owner       the caller, until gs_ckpt_destroy.
 * Returns     GS_OK; GS_ERR_ARG for an argument or option that is wrong; GS_ERR_STATE if comm was
 *             destroyed; GS_ERR_UNSUPPORTED also on CPUs that are big endian; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_ckpt_create (gs_comm_t *comm, const char *dir, const gs_ckpt_opts_t *opts,
                            gs_ckpt_t **ckpt);

#define GS_CKPT_DIMS_MAX GS_FIELD_DIMS_MAX
#define GS_CKPT_NAME_MAX 255 /* bytes */

/*
 * Adds an array of which every rank has the same: parameters, moments of an optimizer, a step. It
 * is stored once, each rank writes a part.
 *
 *   ckpt   in  not yet committed
 *   name   in  of the data set /replicated/NAME, different from the others: up to
 *              GS_CKPT_NAME_MAX bytes of UTF-8; "model/conv1" lies in a group "model"; copied
 *   dims   in  number of dimensions, 0 (a scalar) to GS_CKPT_DIMS_MAX
 *   shape  in  [dims] extents in C order, slowest first; an extent may be 0
 *   dtype  in  any. f16, bf16 and fp8 become floating types as small, complex ones compounds of
 *              "r" and "i", as of h5py
 *   data   in  contiguous memory, of the device or of the host, of the same kind on all ranks;
 *              the caller's, who keeps it until the plan is destroyed: write reads it, read fills
 *              it
 *
 * Returns     GS_OK; GS_ERR_ARG for a name that is taken, empty or not allowed, a size that
 *             overflows, memory that is not aligned; GS_ERR_DEVICE for memory of another device;
 *             GS_ERR_STATE after the commit; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_ckpt_add_replicated (gs_ckpt_t *ckpt, const char *name, int dims,
                                    const size_t *shape, gs_dtype_t dtype, void *data);

/*
 * Adds an array of which every rank has a block, as gs_gather_field would assemble it. The blocks
 * of all ranks cover it, and do not overlap; that is looked at in the commit.
 *
 *   ckpt     in  not yet committed
 *   name     in  of the data set /sharded/NAME, as gs_ckpt_add_replicated
 *   dims     in  1 to GS_CKPT_DIMS_MAX
 *   extents  in  [dims] of this rank's block, in C order; if one is 0, it has none
 *   offsets  in  [dims] of its first element in the array
 *   shape    in  [dims] of the array, the same on all ranks
 *   dtype    in  as gs_ckpt_add_replicated
 *   data     in  the block, contiguous, without ghosts, of either memory on each rank; else as
 *                gs_ckpt_add_replicated
 *
 * Returns     as gs_ckpt_add_replicated.
 * Since       0.1
 */
gs_status_t gs_ckpt_add_sharded (gs_ckpt_t *ckpt, const char *name, int dims,
                                 const size_t *extents, const size_t *offsets,
                                 const size_t *shape, gs_dtype_t dtype, void *data);

/*
 * Adds an array that each rank has its own of, of one shape: the state of a generator of random
 * numbers. The data set has the rank as another dimension, the first.
 *
 *   ckpt   in  not yet committed
 *   name   in  of the data set /rank/NAME, as gs_ckpt_add_replicated
 *   dims   in  as gs_ckpt_add_replicated
 *   shape  in  [dims] extents of what each rank has, the same on all ranks
 *   dtype  in  as gs_ckpt_add_replicated
 *   data   in  as gs_ckpt_add_replicated, but of either memory on each rank
 *
 * Returns     as gs_ckpt_add_replicated.
 * Since       0.1
 */
gs_status_t gs_ckpt_add_per_rank (gs_ckpt_t *ckpt, const char *name, int dims,
                                  const size_t *shape, gs_dtype_t dtype, void *data);

/*
 * Gives an array a text that readers of the file find: a unit, a long name.
 *
 *   ckpt       in  not yet committed
 *   name       in  of an array that was added
 *   attribute  in  its name, up to GS_CKPT_NAME_MAX bytes, not one that begins with "gs_"; copied
 *   text       in  UTF-8, not empty, up to 4096 bytes; copied
 *
 * Returns     GS_OK; GS_ERR_ARG; GS_ERR_STATE after the commit; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_ckpt_set_attribute (gs_ckpt_t *ckpt, const char *name, const char *attribute,
                                   const char *text);

/*
 * Says that an array is one of Fortran, and how it is declared: readers of the file find it as
 * attributes gs_order and gs_bounds, "(0:65, 1:10)" for example. Its data do not change, nor the
 * order of the dimensions in the file, which is that of C. Bindings to other languages call it.
 *
 *   ckpt   in  not yet committed
 *   name   in  of an array that was added
 *   lower  in  [dims] lower bounds, in Fortran's order of dimensions, fastest first; of a sharded
 *              array those of the whole
 *
 * Returns     GS_OK; GS_ERR_ARG; GS_ERR_STATE after the commit; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_ckpt_set_bounds (gs_ckpt_t *ckpt, const char *name, const int64_t *lower);

/* Where the numbers of a field are on its grid. */
typedef enum gs_ckpt_place {
    GS_CKPT_POINTS = 0, /* at its points: as many as these */
    GS_CKPT_CELLS = 1,  /* in the cells between them: one less in each dimension */
    GS_CKPT_PLACE_INT_SIZED = 0x7fffffff
} gs_ckpt_place_t;

/*
 * Says that an array is a field on a regular grid: the file, or index.h5, then has a group
 * /VTKHDF, by which ParaView and VTK show it where it is. All fields of a plan are on one grid. A
 * second call for an array replaces the first.
 *
 *   ckpt     in  not yet committed
 *   name     in  of a sharded array that was added, not a complex one: of as many dimensions as
 *                the grid, or one more, the last, of components, 2 or more
 *   place    in  where its numbers are
 *   dims     in  of the grid, 2 or 3
 *   origin   in  [dims] the first point, in the order of the array's shape: z, y, x; NULL for 0;
 *                of cells the corner of the first one
 *   spacing  in  [dims] between points, above 0, in the same order; NULL for 1
 *
 * Returns     GS_OK; GS_ERR_ARG, also if the array is on another grid than a field before, which
 *             is named; GS_ERR_STATE after the commit.
 * Since       0.1
 */
gs_status_t gs_ckpt_set_grid (gs_ckpt_t *ckpt, const char *name, gs_ckpt_place_t place, int dims,
                              const double *origin, const double *spacing);

/*
 * Ends the adds: compares what all ranks added, lays out the file, and takes the folder for this
 * job step, unless the plan only reads.
 *
 *   ckpt  in,out  not yet committed
 *
 * Collective  yes, over the ranks of the communicator.
 * Returns     the same on all ranks:
 *   GS_ERR_MISMATCH  options, names, shapes, types, attributes, the grid or the order of the adds
 *                    differ; the first difference is named, with both ranks
 *   GS_ERR_ARG       nothing was added; blocks of an array overlap, reach outside of it, or do
 *                    not cover it
 *   GS_ERR_STATE     another job writes to the folder: it is named
 *   GS_ERR_IO        the folder is missing or cannot be written to, or a rank does not see it
 *   GS_ERR_TIMEOUT   also: its file system has not let rank 0 take it within the deadline
 *   GS_ERR_NOMEM     there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_commit (gs_ckpt_t *ckpt);

/*
 * Writes all arrays as they are. Replicated ones are compared over the ranks.
 *
 *   ckpt    in  committed
 *   step    in  0 or more, the same on all ranks: names the file
 *   stream  in  on GPUs the stream whose work completes the arrays; ignored on hosts
 *
 * Collective  yes.
 * Threads     each rank starts one, and rank 0 one before and one after it, which do all that is
 *             done with files; they take no signals and call neither HDF5 nor NCCL nor MPI.
 * Waits       for stream, for all ranks, and until the file is on disk; and first for a write
 *             that is under way, whose failure it returns. Files that keep_last and keep_every do
 *             not hold are removed then; those of later steps stay.
 * Returns     the same on all ranks. After a failure there is no new file, unless it is the fsync
 *             of the folder that has failed, or the removal of a file of the other layout; and
 *             those that there were are whole:
 *   GS_ERR_MISMATCH  a replicated array differs: it and the ranks are named; or steps do
 *   GS_ERR_STATE     there is a file of that step already, and it is not one that a read of this
 *                    plan has found damaged; the file system still holds a write that has failed
 *                    with GS_ERR_TIMEOUT; another job has taken the folder over, and this plan
 *                    writes nothing there any more; or the plan only reads
 *   GS_ERR_IO        with path and reason, on the other ranks with the rank as well
 *   GS_ERR_TIMEOUT   the file system of a rank has taken nothing for the communicator's deadline;
 *                    if it has completed the file by then, that may get its name yet, whole
 *   GS_ERR_NOMEM     there is no memory or no thread for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_write (gs_ckpt_t *ckpt, int64_t step, gs_stream_t stream);

/*
 * Begins such a write. It goes on beside the program, which may change its arrays when the call
 * returns: they were copied. Ends in gs_ckpt_test or gs_ckpt_wait, and has failed or not then.
 *
 *   ckpt    in   committed
 *   step    in   as gs_ckpt_write
 *   begun   out  1, or 0: the one before is under way, and the option busy is GS_CKPT_BUSY_SKIP;
 *                NULL if not wanted
 *   stream  in   as gs_ckpt_write
 *
 * Collective  yes.
 * Memory      for the copies, which the plan keeps: on hosts as much as a rank's arrays, on GPUs,
 *             in pinned memory of the host, what a rank writes of them; or less, see the option
 *             memory. None for option lazy on hosts, where arrays are written from where they
 *             are.
 * Threads     as gs_ckpt_write. They have a nice value of 5 more than the caller: where there is
 *             no core to spare, the program goes first. Rank 0 has one more, when the file is a
 *             checkpoint, which removes files that are not to stay.
 * Waits       for stream and for all ranks, and until the arrays were copied; with the option
 *             lazy not for this: gs_ckpt_wait_staged does.
 * Returns     as gs_ckpt_write if it was not begun. If the one before had failed, that is told
 *             here, and none is begun.
 * Since       0.1
 */
gs_status_t gs_ckpt_write_async (gs_ckpt_t *ckpt, int64_t step, int *begun, gs_stream_t stream);

/*
 * With the option lazy: waits until the program may change its arrays again.
 *
 *   ckpt  in  committed
 *
 * Collective  no.
 * Waits       for this rank's copies, or if there are none its file, and that with the deadline
 *             of the communicator.
 * Returns     GS_OK, also if the write has failed, which gs_ckpt_test and gs_ckpt_wait tell.
 * Since       0.2
 */
gs_status_t gs_ckpt_wait_staged (gs_ckpt_t *ckpt);

/*
 * At the end of a time step: looks whether the write that is under way has ended on all ranks.
 * If so, a thread of rank 0 makes its file a checkpoint, which a later call tells; or this one
 * tells why there is none.
 *
 *   ckpt     in   committed
 *   written  out  the step that is on disk now; -1: none has come to it in this call; NULL if not
 *                 wanted
 *   stream   in   on GPUs the stream that its small messages are queued on; ignored on hosts
 *
 * Collective  yes: of one byte while a write is under way; of nothing else.
 * Waits       for all ranks and, on GPUs, for stream, while a write is under way; never for
 *             files.
 * Returns     as gs_ckpt_write.
 * Since       0.1
 */
gs_status_t gs_ckpt_test (gs_ckpt_t *ckpt, int64_t *written, gs_stream_t stream);

/*
 * Waits for the write that is under way, if there is one, and does as gs_ckpt_test.
 *
 *   ckpt, written, stream  as gs_ckpt_test
 *
 * Collective  yes, if a write is under way.
 * Returns     as gs_ckpt_write.
 * Since       0.1
 */
gs_status_t gs_ckpt_wait (gs_ckpt_t *ckpt, int64_t *written, gs_stream_t stream);

/*
 * The steps of the checkpoints in the folder, oldest first, as their names tell.
 *
 *   ckpt    in   committed
 *   steps   out  [room] the newest ones; NULL if room is 0
 *   room    in   the same on all ranks
 *   number  out  how many there are
 *
 * Collective  yes: one rank looks, and tells the others.
 * Returns     GS_OK; GS_ERR_IO if the folder cannot be read; GS_ERR_MISMATCH if room differs;
 *             GS_ERR_ARG; GS_ERR_NOMEM.
 * Since       0.1
 */
gs_status_t gs_ckpt_list (gs_ckpt_t *ckpt, int64_t *steps, size_t room, size_t *number);

/*
 * Fills all arrays from a checkpoint, written on any number of ranks. All of the file is checked
 * before anything is changed.
 *
 *   ckpt    in   committed
 *   step    in   the same on all ranks; GS_CKPT_LATEST: the highest one, or if that is damaged
 *                or cannot be read, of which a warning is logged, the one before, and so on
 *   found   out  the step that was read; NULL if not wanted; -1: GS_CKPT_LATEST found no file at
 *                all, which is no failure, and arrays stay as they are
 *   stream  in   on GPUs the stream that goes on with the arrays; ignored on hosts
 *
 * Collective  yes.
 * Waits       for stream, and for all ranks.
 * Returns     the same on all ranks. After a failure arrays are as they were, unless it is a
 *             GS_ERR_IO, GS_ERR_DEVICE, or of the communicator, in the second look at a file that
 *             was whole in the first:
 *   GS_ERR_IO           there is no such file, or it cannot be read: with rank, path and reason
 *   GS_ERR_FORMAT       it is damaged, not complete, or no checkpoint; of GS_CKPT_LATEST: all are
 *   GS_ERR_UNSUPPORTED  it was written by a later version of gradsync
 *   GS_ERR_MISMATCH     an array has another type or shape there, is missing or too many; or
 *                       there were more or fewer ranks, and the plan has arrays of ranks: see the
 *                       options
 *   GS_ERR_STATE        also if a write is under way
 *   GS_ERR_NOMEM        there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_read (gs_ckpt_t *ckpt, int64_t step, int64_t *found, gs_stream_t stream);

/*
 * Tells whether the last gs_ckpt_read has filled an array: with the option allow_missing those
 * stay as they are that the file does not have, of which a warning is logged. The same on all
 * ranks.
 *
 *   ckpt    in   committed
 *   name    in   as it was added
 *   filled  out  1, or 0: it did not, failed, or found no file; or there was none. On failure 0
 *
 * Collective  no.
 * Returns     GS_OK; GS_ERR_ARG for a name that was not added.
 * Since       0.2
 */
gs_status_t gs_ckpt_was_read (gs_ckpt_t *ckpt, const char *name, int *filled);

/* Why a program is to stop; several may hold. */
typedef enum gs_ckpt_stop {
    GS_CKPT_STOP_SIGNAL = 1, /* a rank had one of the signals */
    GS_CKPT_STOP_TIME = 2,   /* the end of the job is near */
    GS_CKPT_STOP_FILE = 4,   /* there is a file DIR/stop */
    GS_CKPT_STOP_INT_SIZED = 0x7fffffff
} gs_ckpt_stop_t;

/* What a program exits with that has stopped, and wants to be started again: EX_TEMPFAIL. */
#define GS_CKPT_EXIT_REQUEUE 75

/*
 * Asks whether the program should write a checkpoint and end, because the job makes room for
 * another, its time is over, or somebody wishes so. For each step: it is one exchange of 32
 * bytes. All ranks have the same answer.
 *
 *   ckpt     in   committed
 *   reasons  out  0: go on; else one or more of GS_CKPT_STOP_*, from then on in each call
 *   stream   in   as of gs_allreduce with an array of the host; ignored on hosts
 *
 * Signals: those of the option signals, names as of kill -l with commas between them, or "none".
 * A rank that has one is enough. The first call of a plan installs a handler on each rank, which
 * notes the signal, for the rest of the process, and calls the handler that was there before. If
 * a later call finds another one, it puts its own back, which calls that, and warns. The last
 * destroy of a plan that has asked restores what was there, unless it is another by then.
 *
 * Time: rank 0's clock, and the end of the job from GS_JOB_END, else SLURM_JOB_END_TIME. The
 * program is to stop when no more is left than the longest time between two calls of this
 * function so far, 1.5 times that of the longest write of this plan, and stop_margin_s together.
 *
 * File: rank 0 looks in the first call, and then once a second at most. A file system that does
 * not answer is awaited for one second, with a warning; what it tells later counts then.
 *
 * In the first call that says so rank 0 logs why, as a warning.
 *
 * Collective  yes; not within a step of a reducer.
 * Waits       for all ranks; on GPUs for stream.
 * Returns     the same on all ranks: GS_OK; GS_ERR_ARG if reasons is NULL on one; and what the
 *             collectives do.
 * Since       0.2
 */
gs_status_t gs_stop_requested (gs_ckpt_t *ckpt, int *reasons, gs_stream_t stream);

/*
 * Ends a plan; its arrays and files stay, and the folder is free. NULL is allowed.
 *
 *   ckpt  in  not used any more
 *
 * Collective  no.
 * Waits       until files that were not to stay are gone, a fourth of the communicator's deadline
 *             at most; then the folder stays locked until the process ends.
 * Returns     GS_OK; GS_ERR_STATE if it was destroyed already, or if a write is under way: it
 *             stays, and gs_ckpt_wait comes first.
 * Since       0.1
 */
gs_status_t gs_ckpt_destroy (gs_ckpt_t *ckpt);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_CKPT_H */
