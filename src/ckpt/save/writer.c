/* SPDX-License-Identifier: BSD-3-Clause */
/* writer - writes what this rank has, to disk, and takes checksums and digests on the way. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "ckpt/format/file.h"
#include "ckpt/save/save.h"
#include "ckpt/folder/store.h"

#define PUSH_BYTES ((uint64_t) 32 << 20) /* are brought to disk while others are written */
#define PAGE       ((size_t) 4096)

#define RESERVE_BYTES ((uint64_t) 1 << 30) /* at a time, for which seconds may be needed */

struct writer {
    struct gsi_save *save;
    int fd;
    int direct; /* the same file, past the system's cache; -1: it is not open so */
    char *room; /* [GSI_PIECE_DIRECT] aligned, for it */
    struct gsi_block_crc crcs;
    uint64_t pushed, written; /* bytes */
};

/* ---- The file ---- */

/* Its inode, as it was told; 0: it was not. */
static uint64_t inode_of_target (const gs_ckpt_t *c)
{
    if (c->nodes)
        return c->coming.part;
    return c->rank ? c->coming.told : c->coming.number;
}

/* Opens it, and nothing that has its name: where inodes tell nothing it must have been made for
 * this, and for nothing else. */
static gs_status_t open_made (const struct gsi_save *s, int flags, int *fd)
{
    const gs_ckpt_t *c = s->c;
    uint64_t bytes = c->nodes ? c->metadata.part[c->node].file_bytes : c->main_file.file_bytes;
    uint64_t number = inode_of_target (c);
    struct stat facts;
    gs_status_t st =
        gsi_file_open (AT_FDCWD, s->path.text, O_WRONLY | O_NONBLOCK | flags, number, fd);

    if (st && errno == ENOENT && c->rank)
        return gsi_store_unseen (c, s->path.text);
    if (st || number)
        return st;
    if (!fstat (*fd, &facts) && S_ISREG (facts.st_mode) && facts.st_nlink == 1 &&
        (uint64_t) facts.st_size == bytes)
        return GS_OK;
    close (*fd);
    *fd = -1;
    errno = ESTALE;
    return gsi_fail (GS_ERR_IO,
                     "%s: this is no file of one name and %zu bytes: it is not the one that was "
                     "made for this checkpoint",
                     s->path.text, (size_t) bytes);
}

/* ---- Past the cache ---- */

/* Both ends of what is not whole pages go through the cache. */
static gs_status_t write_direct (struct writer *w, const char *data, size_t bytes,
                                 uint64_t offset)
{
    const char *path = w->save->path.text;
    size_t head = (PAGE - (size_t) (offset % PAGE)) % PAGE, middle;
    gs_status_t st;

    head = head < bytes ? head : bytes;
    middle = (bytes - head) / PAGE * PAGE;
    memcpy (w->room, data + head, middle); /* before what may hang */
    if (head && (st = gsi_file_write (w->fd, path, data, head, offset)))
        return st;
    if (middle && (st = gsi_file_write (w->direct, path, w->room, middle, offset + head)))
        return st;
    if (head + middle == bytes)
        return GS_OK;
    return gsi_file_write (w->fd, path, data + head + middle, bytes - head - middle,
                           offset + head + middle);
}

static gs_status_t open_direct (struct writer *w)
{
    const char *path = w->save->path.text;
    gs_status_t st = open_made (w->save, O_DIRECT, &w->direct);

    if (st && errno != EINVAL)
        return st;
    if (st) {
        gsi_log (GS_LOG_INFO, "ckpt", "%s: its file system has no O_DIRECT: written without",
                 path);
        return GS_OK;
    }
    if ((w->room = aligned_alloc (PAGE, GSI_PIECE_DIRECT)))
        return GS_OK;
    return gsi_fail (GS_ERR_NOMEM, "%s: no memory to write with O_DIRECT", path);
}

/* ---- Room ---- */

/* Of the file that this rank has made; NULL: another one has. */
static const struct gsi_h5_image *image_of (const gs_ckpt_t *c)
{
    if (c->nodes)
        return c->mine.data ? &c->mine : NULL;
    return c->rank ? NULL : &c->main_file;
}

/* N.B. File systems in memory take as long for it as for a copy. */
static gs_status_t reserve_file (struct writer *w)
{
    const struct gsi_h5_image *image = image_of (w->save->c);
    gs_status_t st = GS_OK;

    for (uint64_t at = 0, n; image && at < image->file_bytes && !st; at += n) {
        n = image->file_bytes - at < RESERVE_BYTES ? image->file_bytes - at : RESERVE_BYTES;
        st = gsi_file_reserve (w->fd, w->save->path.text, at, n);
        gsi_flow_move (&w->save->flow);
        if (!st && gsi_flow_closed (&w->save->flow))
            st = GS_ERR_STATE; /* the flow knows why */
    }
    return st;
}

/* ---- Pieces ---- */

static gs_status_t write_own (struct writer *w, const struct gsi_piece *p, const char *data)
{
    const struct gsi_region *r = p->region;
    uint64_t offset = r->offset + p->offset;
    gs_status_t st;

    gsi_block_crc_add (&w->crcs, r->first, r->bytes, p->offset, data, p->bytes);
    st = w->direct >= 0 ? write_direct (w, data, p->bytes, offset)
                        : gsi_file_write (w->fd, w->save->path.text, data, p->bytes, offset);
    w->written += p->bytes;
    if (!st && w->direct < 0 && w->written - w->pushed >= PUSH_BYTES) {
        gsi_file_push (w->fd);
        w->pushed = w->written;
    }
    return st;
}

static gs_status_t write_save_piece (void *context, const struct gsi_piece *p)
{
    struct writer *w = context;
    struct gsi_flow *flow = &w->save->flow;
    const gs_ckpt_t *c = w->save->c;
    const struct gsi_ckpt_array *a = &c->array[p->array];
    const char *data =
        flow->ring ? gsi_flow_place (flow, p->pos) : (const char *) a->data + p->at;
    gs_status_t st;

    if (!gsi_flow_await_data (flow, p->pos + p->bytes))
        return GS_ERR_STATE; /* the flow knows why */
    if (p->region && (st = write_own (w, p, data)))
        return st;
    if (!p->region && w->pushed < w->written) {
        gsi_file_push (w->fd); /* while digests are made */
        w->pushed = w->written;
    }
    if (gsi_flow_closed (flow))
        return GS_ERR_STATE; /* the system kept us, and the array may be gone */
    if (a->kind == GSI_CKPT_REPLICATED && w->save->pieces.digests != GS_CKPT_COMPARE_NONE)
        c->digest[p->array] += gsi_save_pieces_digest (&w->save->pieces, p, data);
    gsi_flow_take (flow, p->pos + p->bytes);
    return GS_OK;
}

static gs_status_t write_pieces (struct writer *w)
{
    gs_ckpt_t *c = w->save->c;
    gs_status_t st = c->opts.direct && w->fd >= 0 ? open_direct (w) : GS_OK;

    if (st)
        return st;
    memset (c->digest, 0, (size_t) c->arrays * sizeof (*c->digest));
    gsi_block_crc_begin (&w->crcs, c->raw, c->metadata.blocks);
    st = gsi_save_pieces_each (&w->save->pieces, write_save_piece, w, NULL);
    gsi_block_crc_end (&w->crcs);
    if (!st && w->fd >= 0 && fdatasync (w->fd))
        st = gsi_file_fail (w->save->path.text, "fdatasync");
    return st;
}

/* Who has made a part sees to it that its name stays; rank 0 does when the index is complete.
 */
static gs_status_t sync_name (const struct gsi_save *s)
{
    if (!s->c->mine.data || !s->c->rank)
        return GS_OK;
    return gsi_file_sync_folder (gsi_store_coming (s->c, s->step, GSI_STORE_TOP).text);
}

/* Whether this rank's node has any data. */
static bool has_file (const gs_ckpt_t *c)
{
    return !c->nodes || c->metadata.part[c->node].file_bytes;
}

/* N.B. A failed sync is final: the pages that it could not write count as clean from then on. */
gs_status_t gsi_save_write (struct gsi_save *s)
{
    struct writer w = {.save = s, .direct = -1};
    gs_status_t st;

    if (!has_file (s->c)) {
        w.fd = -1;
        return write_pieces (&w); /* it has digests to take */
    }
    if ((st = open_made (s, 0, &w.fd)))
        return st;
    if (!(st = reserve_file (&w)))
        st = write_pieces (&w);
    if (w.direct >= 0 && close (w.direct) && !st)
        st = gsi_file_fail (s->path.text, "close");
    if (close (w.fd) && !st)
        st = gsi_file_fail (s->path.text, "close");
    free (w.room);
    return st ? st : sync_name (s);
}
