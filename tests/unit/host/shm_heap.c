/* SPDX-License-Identifier: BSD-3-Clause */
/* share - arrays in memory that ranks of a node see: here two of them, in one process. */
#include "host/shm_heap.h"

#include <sys/stat.h>

#include "unit/unit.h"

#define PLENTY GSI_PAGE

static struct gsi_shm_heap owner, other;

static void open_both (void)
{
    struct gsi_memfd_handle handle = gsi_shm_heap_open (&owner, 2);

    unit_check (handle.ok, "no memory");
    unit_check (gsi_shm_heap_open (&other, 2).ok, "no memory for the second");
    unit_check (gsi_shm_heap_join (&other, 0, &handle), "the second does not see the first's");
}

static void close_both (void)
{
    gsi_shm_heap_close (&owner);
    gsi_shm_heap_close (&other);
}

/* An array of the owner's, filled with [byte]. */
static char *make (size_t bytes, int byte)
{
    void *memory = NULL;

    unit_check (gsi_shm_heap_alloc (&owner, bytes, &memory), "no array of %zu bytes", bytes);
    memset (memory, byte, bytes);
    return memory;
}

/* Where the other sees it. */
static char *seen (const char *memory, size_t bytes)
{
    uint64_t place = gsi_shm_heap_place (&owner, memory, bytes);

    unit_check (place, "%zu bytes have no place", bytes);
    return gsi_shm_heap_at (&other, 0, place, bytes);
}

/* How much memory the owner's file takes. */
static size_t file_bytes (void)
{
    struct stat about;

    ck_assert_int_eq (fstat (owner.own.fd, &about), 0);
    return (size_t) about.st_blocks * 512;
}

START_TEST (both_see_the_same)
{
    char *memory[20];

    for (int i = 0; i < 20; i++) { /* each lets the file grow */
        memory[i] = make (PLENTY + (size_t) i, i);
        ck_assert_uint_eq ((uintptr_t) memory[i] % 256, 0);
    }
    for (int i = 19; i >= 0; i--) {
        char *there = seen (memory[i], PLENTY + (size_t) i);
        ck_assert_ptr_ne (there, memory[i]);
        for (size_t b = 0; b < PLENTY + (size_t) i; b++)
            ck_assert_int_eq (there[b], i);
        there[7] = 99;
        ck_assert_int_eq (memory[i][7], 99);
        ck_assert_ptr_eq (seen (memory[i] + 5, 10), seen (memory[i], PLENTY) + 5);
    }
}
END_TEST

START_TEST (only_whole_arrays_have_a_place)
{
    char *a = make (PLENTY, 1), *b = make (PLENTY, 2), local[16];

    ck_assert_uint_eq (gsi_shm_heap_place (&owner, local, 1), 0);
    ck_assert_uint_eq (gsi_shm_heap_place (&owner, a - 1, 2), 0);
    ck_assert_uint_eq (gsi_shm_heap_place (&owner, a + PLENTY, 1) != 0, b == a + PLENTY);
    ck_assert_uint_eq (gsi_shm_heap_place (&owner, a, PLENTY + 1), 0);
    ck_assert_uint_eq (gsi_shm_heap_place (&owner, a + 1, PLENTY), 0);
    ck_assert_uint_ne (gsi_shm_heap_place (&owner, a + 1, PLENTY - 1), 0);
    ck_assert_uint_ne (gsi_shm_heap_place (&owner, b, PLENTY),
                       gsi_shm_heap_place (&owner, a, PLENTY));
}
END_TEST

START_TEST (what_is_freed_is_used_again)
{
    char *kept = make (PLENTY, 1), *freed = make (PLENTY, 2), *last = make (PLENTY, 3);
    uint64_t place = gsi_shm_heap_place (&owner, freed, PLENTY);
    size_t before = file_bytes ();
    void *memory;

    memset (seen (freed, PLENTY), 4, PLENTY); /* the other has it mapped */
    unit_check (gsi_shm_heap_free (&owner, freed), "not taken for one of its arrays");
    unit_check (!gsi_shm_heap_free (&owner, kept + 1), "the middle of one is freed");
    ck_assert_uint_eq (file_bytes (), before - PLENTY);
    for (int i = 0; i < 1000; i++) {
        unit_check (gsi_shm_heap_alloc (&owner, PLENTY, &memory), "no array");
        ck_assert_uint_eq (gsi_shm_heap_place (&owner, memory, PLENTY), place);
        ck_assert_int_eq (((char *) memory)[PLENTY - 1], 0);
        memset (memory, 5, PLENTY);
        unit_check (gsi_shm_heap_free (&owner, memory), "not freed");
    }
    unit_check (gsi_shm_heap_alloc (&owner, PLENTY + 1, &memory), "no array");
    ck_assert_uint_gt (gsi_shm_heap_place (&owner, memory, PLENTY + 1), place);
    ck_assert_int_eq (kept[PLENTY - 1], 1);
    ck_assert_int_eq (last[0], 3);
}
END_TEST

START_TEST (hidden_ones_are_left_alone)
{
    char *before = make (PLENTY, 7), *memory = make (PLENTY, 1), *behind = make (PLENTY, 8);
    char *there;
    void *late;

    seen (behind, PLENTY); /* which may move all that is seen */
    there = seen (memory, PLENTY);
    there[10] = 2;
    gsi_shm_heap_hide (&owner, gsi_shm_heap_place (&owner, memory + 5, PLENTY - 5));
    memset (seen (before, PLENTY), 5, PLENTY); /* what was in no failed call is as it was */
    memset (seen (behind, PLENTY), 6, PLENTY);
    ck_assert_int_eq (before[PLENTY - 1], 5);
    ck_assert_int_eq (behind[0], 6);
    memset (there, 3, PLENTY); /* a rank that has not heard of the failure */
    ck_assert_int_eq (memory[9], 1);
    ck_assert_int_eq (memory[10], 2);
    ck_assert_int_eq (memory[PLENTY - 1], 1);
    ck_assert_uint_eq (gsi_shm_heap_place (&owner, memory, PLENTY), 0);
    unit_check (!gsi_shm_heap_alloc (&owner, PLENTY, &late), "an array that others would see");
    memory[0] = 4;
    ck_assert_int_eq (there[0], 3);
    unit_check (gsi_shm_heap_free (&owner, memory), "not freed");
}
END_TEST

START_TEST (large_ones_are_hidden_in_pieces)
{
    size_t bytes = ((size_t) 40 << 20) + GSI_PAGE;
    char *memory = make (bytes, 1), *there = seen (memory, bytes);

    for (size_t i = 0; i < bytes; i += 4096)
        memory[i] = (char) (i >> 12);
    gsi_shm_heap_hide (&owner, gsi_shm_heap_place (&owner, memory, bytes));
    memset (there, 3, bytes);
    for (size_t i = 0; i < bytes; i += 4096)
        unit_check (memory[i] == (char) (i >> 12) && memory[i + 1] == 1, "byte %zu is lost", i);
    unit_check (gsi_shm_heap_free (&owner, memory), "not freed");
}
END_TEST

START_TEST (what_cannot_be_had_is_refused)
{
    struct gsi_shm_heap third = {0};
    struct gsi_memfd_handle handle = gsi_shm_heap_open (&third, 3), wrong = handle;
    void *memory;

    wrong.token++;
    unit_check (!gsi_shm_heap_join (&other, 1, &wrong), "memory of something else is taken");
    wrong = handle;
    wrong.bytes += (int64_t) GSI_PAGE;
    unit_check (!gsi_shm_heap_join (&other, 1, &wrong), "memory of another size is taken");
    wrong = handle;
    wrong.ok = 0;
    unit_check (!gsi_shm_heap_join (&other, 1, &wrong), "memory that is not there is taken");
    unit_check (gsi_shm_heap_join (&other, 1, &handle), "the right memory is not taken");
    unit_check (!gsi_shm_heap_alloc (&owner, SIZE_MAX, &memory), "all memory there is");
    gsi_shm_heap_close (&third);
    gsi_shm_heap_close (&third);
    ck_assert_uint_eq (gsi_shm_heap_place (&third, &handle, 1), 0);
    unit_check (!gsi_shm_heap_alloc (&third, 1, &memory), "an array after the end");
}
END_TEST

UNIT_SUITE_WITH ("shm_heap", 30, open_both, close_both, both_see_the_same,
                 only_whole_arrays_have_a_place, what_is_freed_is_used_again,
                 hidden_ones_are_left_alone, large_ones_are_hidden_in_pieces,
                 what_cannot_be_had_is_refused)
