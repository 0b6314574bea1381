/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write - one checkpoint: all ranks write their parts to a file that has no name yet which
 * counts; when all of it is on disk, rank 0 seals it and gives it its name.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "ckpt/file.h"
#include "ckpt/parts.h"
#include "ckpt/store.h"
#include "comm/agree.h"
#include "comm/fetch.h"

static const char caller[] = "gs_ckpt_write";

#define PIECE_BYTES ((size_t) 1 << 20) /* whose checksum is taken while it is in the cache */

struct save {
    gs_ckpt_t *c;
    int64_t step;
    gs_stream_t stream;
    char *path; /* of the file that is coming */
    int fd;
    struct gsi_tally tally;
    struct gsi_fetch fetch; /* of the array that is being written, */
    int array;              /* its number */
};

static gs_status_t agree (const struct save *s, gs_status_t st)
{
    struct gsi_agreement nothing = {.words = 0};

    return gsi_agree (s->c->comm, caller, st, &nothing, s->stream);
}

/* ---- Before anything is written ---- */

static gs_status_t check_step (struct save *s)
{
    struct gsi_agreement a = {.words = 1, .word = {(uint64_t) s->step}};
    gs_status_t st = GS_OK;

    if (s->step < 0)
        st = gsi_fail (GS_ERR_ARG, "%s: step is %" PRId64 ": 0 or more", caller, s->step);
    else if (!(s->path = gsi_store_path (s->c, s->step, true)))
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    if ((st = gsi_agree (s->c->comm, caller, st, &a, s->stream)) || a.differs == -1)
        return st;
    return gsi_fail (GS_ERR_MISMATCH,
                     "%s: rank %d writes step %" PRId64 ", rank %d step %" PRId64
                     ": all ranks give the same",
                     caller, a.least_rank, (int64_t) a.least, a.most_rank, (int64_t) a.most);
}

/* Whether replicas are that, bit by bit. */
static gs_status_t compare_replicas (const struct save *s)
{
    const gs_ckpt_t *c = s->c;
    gs_array_t *arrays =
        c->opts.no_compare ? NULL : calloc ((size_t) c->arrays, sizeof (*arrays));
    size_t number = 0;
    gs_status_t st = GS_OK;

    if (c->opts.no_compare)
        return GS_OK;
    if (!arrays)
        st = gsi_fail (GS_ERR_NOMEM, "%s: out of memory", caller);
    st = agree (s, st);
    for (int i = 0; i < c->arrays && !st; i++)
        if (c->array[i].kind == GSI_CKPT_REPLICATED)
            arrays[number++] = (gs_array_t){.name = c->array[i].name,
                                            .data = c->array[i].data,
                                            .count = c->array[i].count,
                                            .dtype = c->array[i].dtype};
    if (!st && number)
        st = gs_compare (c->comm, arrays, number, 0, s->stream);
    free (arrays);
    return st;
}

/* ---- This rank's parts ---- */

static gs_status_t write_part (void *context, const struct gsi_part *part)
{
    struct save *s = context;
    const struct gsi_ckpt_array *a = &s->c->array[s->array];
    const struct gsi_h5_set *set = &s->c->set[s->array];
    gs_status_t st = GS_OK;

    for (size_t done = 0; done < part->bytes && !st; done += PIECE_BYTES) {
        size_t n = part->bytes - done < PIECE_BYTES ? part->bytes - done : PIECE_BYTES;
        const void *data;
        if ((st = gsi_fetch (&s->fetch, (const char *) a->data + part->at + done, n, &data)))
            break;
        gsi_tally_add (&s->tally, s->c->first[s->array], gsi_h5_bytes (set), part->offset + done,
                       data, n);
        st = gsi_file_write (s->fd, s->path, data, n, set->offset + part->offset + done);
    }
    return st;
}

static gs_status_t write_array (struct save *s, int i)
{
    const struct gsi_ckpt_array *a = &s->c->array[i];
    gs_status_t st;

    s->array = i;
    st = gsi_fetch_open (&s->fetch, s->c->comm, caller, a->data, a->count, a->dtype, PIECE_BYTES,
                         s->stream);
    if (!st)
        st = gsi_parts_each (s->c, i, s->c->rank, write_part, s);
    gsi_fetch_close (&s->fetch);
    return st;
}

/* Writes what this rank has, to disk. */
static gs_status_t write_parts (struct save *s)
{
    gs_status_t st = GS_OK;

    if ((s->fd = open (s->path, O_WRONLY | O_CLOEXEC)) < 0)
        return gsi_file_fail (s->path, "open");
    gsi_tally_begin (&s->tally, s->c->raw, s->c->blocks);
    for (int i = 0; i < s->c->arrays && !st; i++)
        st = write_array (s, i);
    gsi_tally_end (&s->tally);
    if (!st && fdatasync (s->fd))
        st = gsi_file_fail (s->path, "fdatasync");
    if (close (s->fd) && !st)
        st = gsi_file_fail (s->path, "close");
    return st;
}

/* ---- What makes it whole ---- */

/*
 * The checksums of the blocks on rank 0. A sum of bytes has the exclusive or of their lowest bits
 * as its own, however often it wraps.
 */
static gs_status_t gather_sums (const struct save *s)
{
    gs_ckpt_t *c = s->c;
    gs_status_t st;

    for (size_t b = 0; b < c->blocks; b++)
        for (int k = 0; k < 32; k++)
            c->bits[32 * b + (size_t) k] = c->raw[b] >> k & 1;
    if ((st = gs_reduce (c->comm, c->bits, c->bits, 32 * c->blocks, GS_U8, GS_SUM, 0, s->stream)))
        return st;
    for (size_t b = 0; b < c->blocks && !c->rank; b++) {
        uint32_t raw = 0;
        for (int k = 0; k < 32; k++)
            raw |= (uint32_t) (c->bits[32 * b + (size_t) k] & 1) << k;
        c->block[b].crc = raw ^ gsi_crc32c_zeros (c->block[b].bytes);
    }
    return GS_OK;
}

/* Writes one of our own data sets of one number, and notes its checksum. */
static gs_status_t write_number (const struct save *s, int fd, enum gsi_ckpt_own own,
                                 int64_t value)
{
    gs_ckpt_t *c = s->c;

    c->block[c->blocks - 3 + (size_t) own].crc = gsi_crc32c (0, &value, sizeof (value));
    return gsi_file_write (fd, s->path, &value, sizeof (value),
                           c->set[c->arrays + (int) own].offset);
}

static gs_status_t write_seal (const struct save *s, int fd)
{
    gs_ckpt_t *c = s->c;
    const struct gsi_h5_set *own = &c->set[c->arrays];
    size_t table_bytes = c->blocks * sizeof (*c->block);
    struct gsi_seal seal = {.file_bytes = c->file_bytes,
                            .image_bytes = c->image_bytes,
                            .image_crc = gsi_crc32c (0, c->image, c->image_bytes),
                            .table_offset = own[GSI_SET_BLOCKS].offset,
                            .blocks = c->blocks,
                            .table_crc = gsi_crc32c (0, c->block, table_bytes),
                            .step = (uint64_t) s->step,
                            .ranks = (uint64_t) c->size};
    uint64_t words[GSI_SEAL_WORDS];
    gs_status_t st = gsi_file_write (fd, s->path, c->block, table_bytes, seal.table_offset);

    gsi_seal_write (&seal, words);
    return st ? st
              : gsi_file_write (fd, s->path, words, sizeof (words), own[GSI_SET_SEAL].offset);
}

/* Rank 0, when the parts of all ranks are on disk. */
static gs_status_t seal (const struct save *s)
{
    int fd = open (s->path, O_WRONLY | O_CLOEXEC);
    gs_status_t st;

    if (fd < 0)
        return gsi_file_fail (s->path, "open");
    if (!(st = write_number (s, fd, GSI_SET_STEP, s->step)) &&
        !(st = write_number (s, fd, GSI_SET_TIME, gsi_wall_ns ())) &&
        !(st = write_number (s, fd, GSI_SET_RANKS, s->c->size)) && !(st = write_seal (s, fd)) &&
        fsync (fd))
        st = gsi_file_fail (s->path, "fsync");
    if (close (fd) && !st)
        st = gsi_file_fail (s->path, "close");
    return st ? st : gsi_store_publish (s->c, s->step, s->path);
}

static gs_status_t carry_out (struct save *s)
{
    bool first = !s->c->rank;
    gs_status_t st = check_step (s);

    if (st || (st = compare_replicas (s)) ||
        (st = agree (s, first ? gsi_store_begin (s->c, s->step, s->path) : GS_OK)))
        return st;
    if ((st = agree (s, write_parts (s))) || (st = gather_sums (s)) ||
        (st = agree (s, first ? seal (s) : GS_OK))) {
        if (first)
            unlink (s->path);
        return st;
    }
    if (first)
        gsi_store_retain (s->c, s->step);
    return GS_OK;
}

gs_status_t gs_ckpt_write (gs_ckpt_t *ckpt, int64_t step, gs_stream_t stream)
{
    struct save s = {.c = ckpt, .step = step, .stream = stream};
    gs_status_t st = gsi_ckpt_ready (ckpt, caller);

    if (st)
        return st;
    st = carry_out (&s);
    free (s.path);
    return st;
}
