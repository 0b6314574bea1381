/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timeline.c - when the gradients of 16 layers of 1 MiB travel: at the end of the step, or in
 * buckets beside the backward pass.
 *
 * The backward pass stands still for 0.4 ms in each layer, as where a GPU or other cores compute.
 * Rank 0 writes end.json and beside.json, which timeline.py draws.
 */
#include <gradsync.h>
#include <stdio.h>
#include <time.h>

enum { LAYERS = 16, STEPS = 50 };

static gs_status_t step (gs_reducer_t *reducer)
{
    const struct timespec layer_time = {.tv_nsec = 400000};
    gs_status_t st = GS_OK;

    for (int layer = LAYERS - 1; layer >= 0 && !st; layer--) {
        nanosleep (&layer_time, NULL);
        st = gs_reducer_ready (reducer, layer, NULL);
    }
    return st ? st : gs_reducer_finish (reducer, NULL);
}

static gs_status_t run (gs_comm_t *comm, gs_overlap_t overlap, const char *path)
{
    gs_reducer_opts_t opts = GS_REDUCER_OPTS_INIT;
    gs_reducer_stats_t stats = {.size = sizeof (stats)};
    gs_reducer_t *reducer;
    size_t count = 262144; /* of f32: 1 MiB */
    gs_status_t st;

    opts.overlap = overlap;
    st = gs_reducer_create (comm, &opts, &reducer);
    for (int layer = 0; layer < LAYERS && !st; layer++) {
        char name[16];
        snprintf (name, sizeof (name), "layer %d", layer);
        st = gs_reducer_add (reducer, name, 1, &count, GS_F32, NULL, NULL);
    }
    if (!st)
        st = gs_reducer_commit (reducer);
    for (int n = 0; n < STEPS && !st; n++)
        st = step (reducer);
    if (st || (st = gs_reducer_get_stats (reducer, &stats)) ||
        (st = gs_reducer_report (reducer, path)))
        return st;
    if (gs_comm_rank (comm) == 0)
        printf ("%s: %d buckets, a step takes %.2f ms and waits %.2f ms for averages\n", path,
                stats.buckets, stats.step_us / 1000, stats.exposed_us / 1000);
    return gs_reducer_destroy (reducer);
}

int main (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *comm;

    opts.device = GS_DEVICE_HOST;
    if (gs_comm_create (&opts, &comm) || run (comm, GS_OVERLAP_OFF, "end.json") ||
        run (comm, GS_OVERLAP_THREAD, "beside.json")) /* though a rank may have one core only */
        goto fail;
    if (!gs_comm_destroy (comm))
        return 0;
fail:
    fprintf (stderr, "timeline: %s\n", gs_last_error ());
    return 1;
}
