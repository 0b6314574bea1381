/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt - the life of a plan. */
#include "ckpt/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "ckpt/format/file.h"
#include "ckpt/save/save.h"
#include "ckpt/save/stage.h"

#define LEAST_MEMORY ((size_t) 1 << 20)

static gs_status_t check_opts (const gs_ckpt_opts_t *opts)
{
    if (opts->size != sizeof (*opts))
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_create: opts->size is %zu, not %zu: start from "
                         "GS_CKPT_OPTS_INIT, and compile with the header of this library",
                         opts->size, sizeof (*opts));
    if (opts->keep_last < 0 || opts->keep_every < 0)
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_create: keep_last is %d and keep_every %lld: 0 or more",
                         opts->keep_last, (long long) opts->keep_every);
    if ((int) opts->ranks < GS_CKPT_RANKS_ERROR || (int) opts->ranks > GS_CKPT_RANKS_FIRST)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: unknown ranks %d; see gs_ckpt_ranks_t",
                         (int) opts->ranks);
    if ((int) opts->compare < GS_CKPT_COMPARE_FULL || (int) opts->compare > GS_CKPT_COMPARE_NONE)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: unknown compare %d; see gs_ckpt_compare_t",
                         (int) opts->compare);
    if ((int) opts->busy < GS_CKPT_BUSY_WAIT || (int) opts->busy > GS_CKPT_BUSY_ERROR)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: unknown busy %d; see gs_ckpt_busy_t",
                         (int) opts->busy);
    if ((int) opts->layout < GS_CKPT_LAYOUT_AUTO || (int) opts->layout > GS_CKPT_LAYOUT_NODE)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: unknown layout %d; see gs_ckpt_layout_t",
                         (int) opts->layout);
    if (opts->memory && opts->memory < LEAST_MEMORY)
        return gsi_fail (GS_ERR_ARG,
                         "gs_ckpt_create: memory is %zu bytes: 0 for as much as is needed, or at "
                         "least %zu",
                         opts->memory, LEAST_MEMORY);
    return GS_OK;
}

static gs_status_t check_create (const char *dir, const gs_ckpt_opts_t *opts)
{
    gs_status_t st = gsi_h5_present ("gs_ckpt_create");

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    if (!st)
        return gsi_fail (GS_ERR_UNSUPPORTED, "gs_ckpt_create: this CPU is big endian, files of "
                                             "checkpoints are little endian");
#endif
    if (st)
        return st;
    if (!dir || !*dir)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: dir is %s: give the folder of the files",
                         dir ? "empty" : "NULL");
    return check_opts (opts);
}

gs_status_t gs_ckpt_create (gs_comm_t *comm, const char *dir, const gs_ckpt_opts_t *opts,
                            gs_ckpt_t **ckpt)
{
    static const gs_ckpt_opts_t standard = GS_CKPT_OPTS_INIT;
    gs_ckpt_t *c;
    gs_status_t st;

    if (!ckpt)
        return gsi_fail (GS_ERR_ARG, "gs_ckpt_create: ckpt is NULL");
    *ckpt = NULL;
    if (!opts)
        opts = &standard;
    if ((st = check_create (dir, opts)))
        return gsi_result (st);
    if (!(c = calloc (1, sizeof (*c))) || !(c->given = strdup (dir)) ||
        !(c->dir = gsi_file_absolute (dir))) {
        if (c)
            free (c->given);
        free (c);
        return gsi_fail (GS_ERR_NOMEM, "gs_ckpt_create: out of memory");
    }
    c->opts = *opts;
    c->opts.name = c->opts.signals = NULL;
    snprintf (c->client.name, sizeof (c->client.name), "plan '%.64s'",
              opts->name ? opts->name : "checkpoint");
    if ((st = gsi_stop_open (&c->stop, c->dir, opts)) ||
        (st = gsi_feature_open (comm, &c->client, "gs_ckpt_create"))) {
        gsi_stop_close (&c->stop);
        free (c->given);
        free (c->dir);
        free (c);
        return gsi_result (st);
    }
    c->magic = GSI_CKPT_MAGIC;
    c->coming.folder = c->coming.top = c->coming.sealed = -1;
    c->comm = comm;
    c->rank = gs_comm_rank (comm);
    c->size = gs_comm_size (comm);
    *ckpt = c;
    return gsi_result (GS_OK);
}

gs_status_t gs_ckpt_destroy (gs_ckpt_t *ckpt)
{
    gs_status_t st;

    if (!ckpt)
        return gsi_result (GS_OK);
    if ((st = gsi_ckpt_valid (ckpt, "gs_ckpt_destroy")))
        return gsi_result (st);
    if (ckpt->save)
        return gsi_fail (GS_ERR_STATE,
                         "gs_ckpt_destroy: a checkpoint of %s is still being written: call "
                         "gs_ckpt_wait first",
                         ckpt->client.name);
    if (!gsi_save_come_back (ckpt)) {
        gsi_log (GS_LOG_WARN, "ckpt",
                 "%s: its memory and its lock stay: the file system holds a thread of it",
                 ckpt->client.name);
        pthread_detach (ckpt->hung->worker); /* nobody waits for it any more */
        gsi_feature_close (ckpt->comm, &ckpt->client);
        ckpt->magic = 0;
        return gsi_result (GS_OK);
    }
    gsi_ckpt_undo (ckpt);
    gsi_stage_release (ckpt);
    gsi_stop_close (&ckpt->stop);
    for (int i = 0; i < ckpt->arrays; i++) {
        free (ckpt->array[i].name);
        gsi_h5_set_clear (&ckpt->set[i]);
    }
    free (ckpt->array);
    free (ckpt->set);
    free (ckpt->damaged);
    free (ckpt->given);
    free (ckpt->dir);
    gsi_feature_close (ckpt->comm, &ckpt->client);
    ckpt->magic = 0;
    free (ckpt);
    return gsi_result (GS_OK);
}

gs_status_t gs_stop_requested (gs_ckpt_t *ckpt, int *reasons, gs_stream_t stream)
{
    gs_status_t st = gsi_ckpt_ready (ckpt, "gs_stop_requested");

    return gsi_result (
        st ? st : gsi_stop_ask (&ckpt->stop, ckpt->comm, ckpt->client.name, reasons, stream));
}
