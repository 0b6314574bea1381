/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_heap - arrays that the ranks of a node see where they are.
 *
 * Each rank has one file of memory (memfd.h), which grows. An array is a part of it that its
 * owner maps by itself, so that it never moves; the others map the file as a whole. What tells an
 * array to them is its place: where it begins in the file.
 */
#ifndef GS_HOST_SHM_HEAP_H
#define GS_HOST_SHM_HEAP_H

#include <pthread.h>
#include <stdbool.h>

#include "base/memfd.h"

struct gsi_shm_heap {
    pthread_mutex_t guard; /* arrays come and go while another thread is in a collective */
    struct gsi_memfd own;
    size_t file_bytes;
    struct gsi_shm_heap_array *array; /* [number], by their places */
    int number, room, last;           /* last: the one that was asked for last */
    bool closed;                      /* no more of them */
    int ranks;                        /* of the node */
    struct gsi_memfd *seen;           /* [ranks], this one's own unused */
};

/* Makes this rank's file; to be closed in any case. */
struct gsi_memfd_handle gsi_shm_heap_open (struct gsi_shm_heap *share, int ranks);

/* Maps the file of the rank with place [index] on the node. */
bool gsi_shm_heap_join (struct gsi_shm_heap *share, int index,
                        const struct gsi_memfd_handle *handle);

/* One that was not opened is allowed. */
void gsi_shm_heap_close (struct gsi_shm_heap *share);

/* An array of [bytes], aligned to a page; false if it cannot be had. Any thread. */
bool gsi_shm_heap_alloc (struct gsi_shm_heap *share, size_t bytes, void **out);

/* Frees it; false if it is not one of these. Any thread. */
bool gsi_shm_heap_free (struct gsi_shm_heap *share, void *memory);

/* The place of [bytes] from [memory] on; 0 if they are not in one array of this rank's. */
uint64_t gsi_shm_heap_place (struct gsi_shm_heap *share, const void *memory, size_t bytes);

/* Where [bytes] at [place] of the rank with place [index] are; NULL if they cannot be mapped. */
void *gsi_shm_heap_at (struct gsi_shm_heap *share, int index, uint64_t place, size_t bytes);

/* Takes the array at [place] from the others' sight, with what is in it, where it is: after a
 * failure, when another rank may still write to it. No more are made. */
void gsi_shm_heap_hide (struct gsi_shm_heap *share, uint64_t place);

#endif /* GS_HOST_SHM_HEAP_H */
