/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * array.h - arrays of a call that are in host memory or in that of the device, and pieces of
 * them for every rank.
 */
#ifndef GS_TESTS_ARRAY_H
#define GS_TESTS_ARRAY_H

#include "data.h"

#define MOST_RANKS MULTI_MOST_RANKS

/* [host] is what it holds, [used] where the call finds it. */
struct array {
    gs_comm_t *comm;
    size_t bytes;
    char *host, *used;
};

static inline struct array array_allocate (gs_comm_t *comm, size_t bytes, bool on_device)
{
    struct array a = {.comm = comm, .bytes = bytes, .host = data_allocate (bytes)};
    void *memory = a.host;

    memset (a.host, 0x11, bytes);
    if (on_device)
        CHECK_OK (gs_device_alloc (comm, bytes, &memory));
    a.used = memory;
    return a;
}

/* To where the call finds it; and back, when what was queued has ended. */
static inline void array_bring (const struct array *a)
{
    if (a->used != a->host)
        CHECK_OK (gs_device_copy (a->comm, a->used, a->host, a->bytes, NULL));
}

static inline void array_fetch (const struct array *a)
{
    CHECK_OK (gs_comm_wait (a->comm, NULL));
    if (a->used != a->host)
        CHECK_OK (gs_device_copy (a->comm, a->host, a->used, a->bytes, NULL));
    CHECK_OK (gs_comm_wait (a->comm, NULL));
}

static inline void array_release (const struct array *a, const char *what)
{
    if (a->used != a->host)
        CHECK_OK (gs_device_free (a->comm, a->used));
    CHECK (data_free (a->host, a->bytes), "%s: written behind the end", what);
}

/* Pieces of different lengths, with gaps between them or not. */
struct pieces {
    size_t counts[MOST_RANKS], displs[MOST_RANKS], extent;
};

/* Lays pieces out: [gap] < 0: one behind the other, else with gaps, and in the reverse order. */
static inline void pieces_lay_out (struct pieces *p, int size, int gap)
{
    p->extent = 0;
    for (int i = 0; i < size; i++) {
        int r = gap < 0 ? i : size - 1 - i;
        p->displs[r] = p->extent + (gap > 0 ? (size_t) gap : 0);
        p->extent = p->displs[r] + p->counts[r];
    }
}

#endif /* GS_TESTS_ARRAY_H */
