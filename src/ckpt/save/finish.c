/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * finish - the end of a save: when the parts of all ranks are on disk, replicas are compared,
 * and a thread of rank 0 writes the trailer, syncs the file, and has it renamed
 * (ckpt/folder/store.c).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "ckpt/format/file.h"
#include "ckpt/save/save.h"
#include "ckpt/folder/store.h"
#include "feature/consensus.h"

/* ---- Replicas ---- */

gs_status_t gsi_save_compare (const char *caller, gs_comm_t *comm, const gs_array_t *arrays,
                              size_t number, gs_stream_t stream)
{
    static const char other[] = "gs_arrays_compare";
    gs_status_t st = gs_arrays_compare (comm, arrays, number, 0, stream);
    struct gsi_failure failure;

    gsi_failure_note (&failure, st);
    if (!st || strncmp (failure.text, other, strlen (other)) != 0)
        return st;
    return gsi_fail (st, "%s%s", caller, failure.text + strlen (other));
}

/* Names array [i], whose digests differ: by its elements, if they are still there. */
static gs_status_t name_diverged (const struct gsi_save *s, const char *caller, int i,
                                  gs_stream_t stream)
{
    const struct gsi_ckpt_array *a = &s->c->array[i];
    char name[GS_CKPT_NAME_MAX + 32];
    gs_array_t array = {a->name, a->data, a->count, a->dtype};
    gs_array_t digest = {name, &s->c->digest[i], 1, GS_U64};
    gs_status_t st =
        s->flow.ring ? GS_OK : gsi_save_compare (caller, s->c->comm, &array, 1, stream);

    snprintf (name, sizeof (name), "digest of %s", a->name);
    return st ? st : gsi_save_compare (caller, s->c->comm, &digest, 1, stream);
}

/* Whether replicas were that, bit by bit, when they were staged. */
static gs_status_t compare_digests (const struct gsi_save *s, const char *caller,
                                    gs_stream_t stream)
{
    const gs_ckpt_t *c = s->c;
    size_t n = (size_t) c->arrays;
    uint64_t *most = c->digest + n, *least = most + n; /* of its complement */
    gs_status_t st;

    if (s->pieces.digests == GS_CKPT_COMPARE_NONE)
        return GS_OK;
    for (size_t i = 0; i < n; i++) {
        most[i] = c->digest[i];
        least[i] = ~c->digest[i];
    }
    if ((st = gs_allreduce (c->comm, most, 2 * n, GS_U64, GS_MAX, stream)))
        return st;
    for (size_t i = 0; i < n; i++)
        if (most[i] != ~least[i])
            return name_diverged (s, caller, (int) i, stream);
    return GS_OK;
}

/* ---- The trailer ---- */

/*
 * The checksums of the blocks on rank 0. A sum of bytes has the exclusive or of their lowest bits
 * as its own, however often it wraps.
 */
static gs_status_t gather_sums (const struct gsi_save *s, gs_stream_t stream)
{
    gs_ckpt_t *c = s->c;
    gs_status_t st;

    for (size_t b = 0; b < c->metadata.blocks; b++)
        for (int k = 0; k < 32; k++)
            c->bits[32 * b + (size_t) k] = c->raw[b] >> k & 1;
    if ((st = gs_reduce (c->comm, c->bits, c->bits, 32 * c->metadata.blocks, GS_U8, GS_SUM, 0,
                         stream)))
        return st;
    for (size_t b = 0; b < c->metadata.blocks && !c->rank; b++) {
        uint32_t raw = 0;
        for (int k = 0; k < 32; k++)
            raw |= (uint32_t) (c->bits[32 * b + (size_t) k] & 1) << k;
        c->metadata.block[b].crc = raw ^ gsi_crc32c_zeros (c->metadata.block[b].bytes);
    }
    return GS_OK;
}

gs_status_t gsi_save_settle (struct gsi_save *s, const char *caller, gs_stream_t stream)
{
    gs_status_t st =
        gsi_consensus (s->c->comm, caller, gsi_failure_repeat (&s->flow.failure), NULL, stream);

    return st || (st = compare_digests (s, caller, stream)) ? st : gather_sums (s, stream);
}

/* Completes it, on disk. */
static gs_status_t write_trailer (const struct gsi_save *s)
{
    gs_status_t st = gsi_store_hold (s->c);
    int fd = s->c->coming.main_file;
    struct gsi_metadata own = s->c->metadata;

    if (st)
        return st;
    own.step = s->step;
    own.time = gsi_wall_ns ();
    st = gsi_metadata_write (&own, fd, s->main_file.text);
    return st || !fsync (fd) ? st : gsi_file_fail (s->main_file.text, "fsync");
}

gs_status_t gsi_save_complete (struct gsi_save *s)
{
    gs_status_t st = write_trailer (s);

    gsi_flow_move (&s->flow);
    if (!st && gsi_flow_closed (&s->flow))
        st = GS_ERR_STATE; /* the flow knows why: who was told that it failed finds none */
    if (st || (st = gsi_store_publish (s->c, s->step)))
        return st;
    gsi_flow_move (&s->flow);
    gsi_store_tidy (s->c, s->step, s->beside);
    gsi_store_end (s->c);
    return GS_OK;
}

void gsi_save_log (const struct gsi_save *s)
{
    size_t bytes = (size_t) s->c->main_file.file_bytes;
    double seconds = (double) (gsi_now_ns () - s->begin_ns) / 1e9;

    for (int n = 0; n < s->c->nodes; n++)
        bytes += (size_t) s->c->metadata.part[n].file_bytes;
    if (!s->c->rank)
        gsi_log (GS_LOG_INFO, "ckpt", "step %" PRId64 ": %zu bytes on disk after %.3f s", s->step,
                 bytes, seconds);
}
