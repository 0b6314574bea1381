/* SPDX-License-Identifier: BSD-3-Clause */
/* shm_heap - arrays that the ranks of a node see where they are. */
#include "host/shm_heap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"

#define PIECE ((size_t) 16 << 20) /* copied at once when arrays are hidden */

struct gsi_shm_heap_array {
    char *memory;
    size_t place, bytes; /* whole pages */
    bool hidden;         /* no longer in the file */
};

struct gsi_memfd_handle gsi_shm_heap_open (struct gsi_shm_heap *s, int ranks)
{
    *s = (struct gsi_shm_heap){.own = GSI_MEMFD_NONE, .file_bytes = GSI_PAGE, .ranks = ranks};
    if (!(s->seen = calloc ((size_t) ranks, sizeof (*s->seen))))
        return (struct gsi_memfd_handle){.ok = 0};
    for (int i = 0; i < ranks; i++)
        s->seen[i] = GSI_MEMFD_NONE;
    pthread_mutex_init (&s->guard, NULL);
    return gsi_memfd_make (&s->own, s->file_bytes);
}

bool gsi_shm_heap_join (struct gsi_shm_heap *s, int index, const struct gsi_memfd_handle *handle)
{
    return s->seen && gsi_memfd_join (&s->seen[index], handle);
}

void gsi_shm_heap_close (struct gsi_shm_heap *s)
{
    if (!s->seen)
        return;
    for (int i = 0; i < s->number; i++)
        munmap (s->array[i].memory, s->array[i].bytes);
    for (int i = 0; i < s->ranks; i++)
        gsi_memfd_close (&s->seen[i]);
    gsi_memfd_close (&s->own);
    pthread_mutex_destroy (&s->guard);
    free (s->array);
    free (s->seen);
    s->seen = NULL;
}

/* ---- Making and freeing ---- */

static bool shm_heap_make_room (struct gsi_shm_heap *s)
{
    int room = s->room ? 2 * s->room : 16;
    struct gsi_shm_heap_array *array;

    if (s->number < s->room)
        return true;
    if (!(array = realloc (s->array, (size_t) room * sizeof (*array))))
        return false;
    s->array = array;
    s->room = room;
    return true;
}

/* The first place with room for [bytes], and in [*at] how many arrays are before it. */
static size_t find_gap (const struct gsi_shm_heap *s, size_t bytes, int *at)
{
    size_t end = GSI_PAGE;

    for (*at = 0; *at < s->number && s->array[*at].place - end < bytes; ++*at)
        end = s->array[*at].place + s->array[*at].bytes;
    return end;
}

/* Maps [bytes] of the file at [place], which it reaches then. */
static char *map_array (struct gsi_shm_heap *s, size_t place, size_t bytes)
{
    void *memory;

    if (place + bytes > s->file_bytes) {
        if (ftruncate (s->own.fd, (off_t) (place + bytes)))
            return NULL;
        s->file_bytes = place + bytes;
    }
    memory = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->own.fd, (off_t) place);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool add_array (struct gsi_shm_heap *s, size_t bytes, void **out)
{
    struct gsi_shm_heap_array array = {.bytes = bytes};
    int at;

    if (s->own.fd < 0 || s->closed || !shm_heap_make_room (s) || gsi_fault ("share.memory"))
        return false;
    array.place = find_gap (s, bytes, &at);
    if (!(array.memory = map_array (s, array.place, bytes)))
        return false;
    memmove (&s->array[at + 1], &s->array[at], (size_t) (s->number - at) * sizeof (array));
    s->array[at] = array;
    s->number++;
    *out = array.memory;
    return true;
}

bool gsi_shm_heap_alloc (struct gsi_shm_heap *s, size_t bytes, void **out)
{
    bool ok;

    if (!s->seen || bytes > SIZE_MAX / 4)
        return false;
    pthread_mutex_lock (&s->guard);
    ok = add_array (s, gsi_memfd_round (bytes), out);
    pthread_mutex_unlock (&s->guard);
    return ok;
}

/* The memory of a part of the file, which the others have mapped and so would keep. */
static void give_back (struct gsi_shm_heap *s, size_t place, size_t bytes)
{
    if (fallocate (s->own.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) place,
                   (off_t) bytes))
        gsi_log (GS_LOG_TRACE, "hosts", "%zu bytes are given back only with the communicator",
                 bytes);
}

static void remove_array (struct gsi_shm_heap *s, int at)
{
    struct gsi_shm_heap_array *array = &s->array[at];

    munmap (array->memory, array->bytes);
    if (!array->hidden)
        give_back (s, array->place, array->bytes);
    memmove (array, array + 1, (size_t) (s->number - at - 1) * sizeof (*array));
    s->number--;
}

bool gsi_shm_heap_free (struct gsi_shm_heap *s, void *memory)
{
    int at = 0;
    bool found;

    if (!s->seen)
        return false;
    pthread_mutex_lock (&s->guard);
    while (at < s->number && s->array[at].memory != memory)
        at++;
    found = at < s->number;
    if (found)
        remove_array (s, at);
    pthread_mutex_unlock (&s->guard);
    return found;
}

/* ---- Using ---- */

static bool contains (const struct gsi_shm_heap_array *array, const char *memory, size_t bytes)
{
    size_t offset = (size_t) (memory - array->memory);

    return memory >= array->memory && offset < array->bytes && bytes <= array->bytes - offset &&
           !array->hidden;
}

/* N.B. Begins where it ended last time: programs go through their arrays in turn. */
static uint64_t find_place (struct gsi_shm_heap *s, const char *memory, size_t bytes)
{
    for (int tried = 0; tried < s->number; tried++) {
        int i = (s->last + tried) % s->number;
        if (contains (&s->array[i], memory, bytes)) {
            s->last = i;
            return s->array[i].place + (size_t) (memory - s->array[i].memory);
        }
    }
    return 0;
}

uint64_t gsi_shm_heap_place (struct gsi_shm_heap *s, const void *memory, size_t bytes)
{
    uint64_t place;

    if (!s->seen)
        return 0;
    pthread_mutex_lock (&s->guard);
    place = find_place (s, memory, bytes);
    pthread_mutex_unlock (&s->guard);
    return place;
}

void *gsi_shm_heap_at (struct gsi_shm_heap *s, int index, uint64_t place, size_t bytes)
{
    struct gsi_memfd *seen = &s->seen[index];
    size_t end = gsi_memfd_round ((size_t) place + bytes);

    if (end > seen->bytes) { /* the file has grown */
        void *base = mremap (seen->base, seen->bytes, end, MREMAP_MAYMOVE);
        if (base == MAP_FAILED)
            return NULL;
        seen->base = base;
        seen->bytes = end;
    }
    return seen->base + place;
}

/* Puts a copy that is this process's alone at the same address. */
static bool replace (char *memory, size_t bytes)
{
    void *copy = mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return false;
    memcpy (copy, memory, bytes);
    if (mremap (copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != MAP_FAILED)
        return true;
    munmap (copy, bytes);
    return false;
}

/* Piece by piece, each given back once it is copied: the array may fill half of the memory. */
static void hide_array (struct gsi_shm_heap *s, struct gsi_shm_heap_array *array)
{
    size_t done = 0, n;

    for (; done < array->bytes; done += n) {
        n = array->bytes - done < PIECE ? array->bytes - done : PIECE;
        if (!replace (array->memory + done, n))
            break;
        give_back (s, array->place + done, n);
    }
    array->hidden = true;
    if (done < array->bytes)
        gsi_log (GS_LOG_WARN, "hosts",
                 "no memory to part from the other ranks: one that is late may still write to an "
                 "array of gs_device_alloc of %zu bytes",
                 array->bytes);
}

/* N.B. Not the others: what another thread of the program writes to an array while it is copied
 * is lost, and it has no business but with this one. */
void gsi_shm_heap_hide (struct gsi_shm_heap *s, uint64_t place)
{
    if (!s->seen)
        return;
    pthread_mutex_lock (&s->guard);
    for (int i = 0; i < s->number; i++)
        if (place - s->array[i].place < s->array[i].bytes && !s->array[i].hidden)
            hide_array (s, &s->array[i]);
    s->closed = true;
    pthread_mutex_unlock (&s->guard);
}
