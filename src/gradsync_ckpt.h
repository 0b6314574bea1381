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

/* ---- 7. Checkpoints --------------------------------------------------------------------- */
/*
 * A checkpoint plan knows the state of a program: arrays that are equal on all ranks, blocks of
 * global arrays, and what each rank has of its own. It writes all of it to one HDF5 file, and
 * reads it back on any number of ranks:
 *
 *   create, add each array, commit
 *   at the start:        read
 *   every so many steps: write
 *   destroy
 *
 * A file is DIR/ck-<step>.h5, for HDF5 1.8 and later: doc/checkpoint-format.md describes it. It
 * has that name once it is complete and on disk; until then, and if the job dies, it is
 * ck-<step>.h5.tmp, which a write of that step, or a commit an hour later, removes. All that it
 * has is under checksums.
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
    GS_CKPT_RANKS_FIRST = 2, /* ranks that there were not have what rank 0 had */
    GS_CKPT_RANKS_INT_SIZED = 0x7fffffff
} gs_ckpt_ranks_t;

/*
 * Options of a plan, the same on all ranks. Start from GS_CKPT_OPTS_INIT; zero or NULL in a field
 * means its default. [size] lets later versions add fields.
 */
typedef struct gs_ckpt_opts {
    size_t size;           /* sizeof (gs_ckpt_opts_t) */
    const char *name;      /* shown in messages; copied; default "checkpoint" */
    int keep_last;         /* so many, of the steps up to that written, stay; default all */
    int64_t keep_every;    /* those of steps that are multiples of it stay even so */
    int overwrite;         /* 1: a step that there is already is replaced; default GS_ERR_STATE */
    int allow_missing;     /* 1: arrays that the file does not have stay as they are in a read */
    int allow_extra;       /* 1: a read takes no notice of what the file has beside the plan's */
    int no_compare;        /* 1: nobody looks whether replicated arrays are equal on all ranks */
    gs_ckpt_ranks_t ranks; /* of a read with another number of ranks */
    void *reserved[8];     /* NULL */
} gs_ckpt_opts_t;

#define GS_CKPT_OPTS_INIT                                                     \
    {                                                                         \
        sizeof (gs_ckpt_opts_t), NULL, 0, 0, 0, 0, 0, 0, GS_CKPT_RANKS_ERROR, \
        {                                                                     \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL                    \
        }                                                                     \
    }

/*
 * Makes a plan without arrays; commit completes it.
 *
 *   comm  in   outlives the plan
 *   dir   in   the folder of the files, which exists and which all ranks see; copied
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
 *   dtype  in  any. f16 and bf16 become floating types of two bytes, complex ones compounds of
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

/*
 * Ends the adds: compares what all ranks added, and lays out the file.
 *
 *   ckpt  in,out  not yet committed
 *
 * Collective  yes, over the ranks of the communicator.
 * Returns     the same on all ranks:
 *   GS_ERR_MISMATCH  options, names, shapes, types, attributes or the order of the adds differ;
 *                    the first difference is named, with both ranks
 *   GS_ERR_ARG       nothing was added; blocks of an array overlap, reach outside of it, or do
 *                    not cover it
 *   GS_ERR_IO        the folder is missing or cannot be written to
 *   GS_ERR_NOMEM     there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_commit (gs_ckpt_t *ckpt);

/*
 * Writes all arrays as they are. Replicated ones are first compared over the ranks, by digests of
 * 64 bits.
 *
 *   ckpt    in  committed
 *   step    in  0 or more, the same on all ranks: names the file
 *   stream  in  on GPUs the stream whose work completes the arrays; ignored on hosts
 *
 * Collective  yes.
 * Waits       for stream, for all ranks, and until the file is on disk. Files that keep_last and
 *             keep_every do not hold are removed then; those of later steps stay.
 * Returns     the same on all ranks. After a failure there is no new file, unless it is the fsync
 *             of the folder that has failed; and those that there were are whole:
 *   GS_ERR_MISMATCH  a replicated array differs: it and the ranks are named; or steps do
 *   GS_ERR_STATE     there is a file of that step already, and it is not one that a read of this
 *                    plan has found damaged
 *   GS_ERR_IO        with path and reason, on the other ranks with the rank as well
 *   GS_ERR_NOMEM     there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_write (gs_ckpt_t *ckpt, int64_t step, gs_stream_t stream);

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
 *   step    in   the same on all ranks; GS_CKPT_LATEST: the highest one, or if that is damaged,
 *                of which a warning is logged, the one before, and so on
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
 *   GS_ERR_NOMEM        there is no memory for it on a rank
 * Since       0.1
 */
gs_status_t gs_ckpt_read (gs_ckpt_t *ckpt, int64_t step, int64_t *found, gs_stream_t stream);

/*
 * Ends a plan; its arrays and files stay. NULL is allowed.
 *
 *   ckpt  in  not used any more
 *
 * Collective  no.
 * Returns     GS_OK; GS_ERR_STATE if it was destroyed already.
 * Since       0.1
 */
gs_status_t gs_ckpt_destroy (gs_ckpt_t *ckpt);

#ifdef __cplusplus
}
#endif

#endif /* GRADSYNC_CKPT_H */
