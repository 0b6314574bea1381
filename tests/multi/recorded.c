/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorded - the program of ckpt_replay.sh that saves, while recorder.so keeps a journal of it:
 *
 *   recorded FOLDER LAYOUT SAVES KEEP   steps 1, 2, ..., the last one twice; so many stay. Even
 *                                       ones beside the program, which does not wait for what
 *                                       is then removed
 */
#include <dlfcn.h>

#include "journal.h"
#include "known.h"

static void mark (enum journal_kind kind, int64_t step)
{
    journal_mark_f tell;

    *(void **) &tell = dlsym (RTLD_DEFAULT, JOURNAL_MARK);
    CHECK (tell, "recorder.so is not preloaded");
    if (tell)
        tell (kind, step);
}

static void save (gs_ckpt_t *plan, struct known *state, int64_t step)
{
    known_fill (state, step);
    mark (JOURNAL_BEGINS, step);
    if (step % 2)
        CHECK_OK (gs_ckpt_write (plan, step, NULL));
    else
        CHECK_OK (gs_ckpt_write_async (plan, step, NULL, NULL));
    CHECK_OK (gs_ckpt_wait (plan, NULL, NULL));
    mark (JOURNAL_SAVED, step);
}

int main (int argc, char **argv)
{
    gs_ckpt_opts_t opts = GS_CKPT_OPTS_INIT;
    struct known *state;
    gs_comm_t *comm;
    gs_ckpt_t *plan;
    int64_t saves;

    if (argc < 5)
        return 2;
    if (gs_ckpt_create (NULL, "x", NULL, &plan) == GS_ERR_UNSUPPORTED) {
        printf ("skip: this build has no HDF5\n");
        return 77;
    }
    saves = atoi (argv[3]);
    comm = multi_create (NULL);
    state = known_make (comm);
    opts.layout = known_layout (argv[2]);
    opts.keep_last = atoi (argv[4]);
    opts.overwrite = 1;
    plan = known_plan (state, comm, argv[1], &opts);
    for (int64_t step = 1; step <= saves; step++)
        save (plan, state, step);
    save (plan, state, saves);
    CHECK_OK (gs_ckpt_destroy (plan));
    CHECK_OK (gs_comm_destroy (comm));
    free (state);
    return multi_end ("saved");
}
