/* SPDX-License-Identifier: BSD-3-Clause */
/* many - communicators made and destroyed again and again leave nothing behind. */
#include "holdings.h"

#define CYCLES 100
#define ALIVE  6

/* How many entries [path] has; with [part] in their names. */
static int records (const char *path, const char *part)
{
    DIR *dir = opendir (path);
    struct dirent *entry;
    int count = 0;

    CHECK (dir, "cannot read %s", path);
    while (dir && (entry = readdir (dir)))
        count += strstr (entry->d_name, part) != NULL;
    if (dir)
        closedir (dir);
    return count;
}

static void check_sum (gs_comm_t *comm)
{
    int64_t x = gs_comm_rank (comm) + 1, n = gs_comm_size (comm);

    CHECK_OK (gs_allreduce (comm, &x, 1, GS_I64, GS_SUM, NULL));
    CHECK (x == n * (n + 1) / 2, "sum of ranks is %lld", (long long) x);
}

int main (void)
{
    const char *folder = getenv ("GS_RECORD_DIR");
    gs_comm_t *comms[ALIVE] = {NULL};
    int descriptors = 0, now;

    for (int cycle = 0; cycle < CYCLES; cycle++) {
        int slot = cycle % ALIVE;
        CHECK_OK (gs_comm_destroy (comms[slot]));
        comms[slot] = multi_create (NULL);
        for (int i = 0; i < ALIVE && comms[i]; i++) /* the older ones still work */
            check_sum (comms[i]);
        if (cycle == 2 * ALIVE)
            descriptors = holdings_descriptors ();
    }
    now = holdings_descriptors ();
    CHECK (now <= descriptors, "%d file descriptors became %d", descriptors, now);
    for (int i = 0; i < ALIVE; i++) /* not in the order of making */
        CHECK_OK (gs_comm_destroy (comms[(i * 5 + 2) % ALIVE]));
    if (folder) {
        char part[32];
        snprintf (part, sizeof (part), "-r%d.ring", multi_rank ());
        CHECK (!records (folder, part), "%d flight records are left", records (folder, part));
    }
    return multi_end ("100 communicators, 6 at a time");
}
