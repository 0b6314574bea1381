/* SPDX-License-Identifier: BSD-3-Clause */
/* cfi_read - array arguments as memory: what the files cfi share. */
#ifndef GS_FORTRAN_CFI_READ_H
#define GS_FORTRAN_CFI_READ_H

#include <ISO_Fortran_binding.h>
#include <stdbool.h>

#include "fortran/cfi.h"
#include "fortran/kept.h"

/* An array argument as it came in. */
struct gsi_fortran_argument {
    const char *call; /* public name of the procedure */
    const char *name; /* of the dummy argument */
    const CFI_cdesc_t *array;
    bool is_open;  /* assumed-size */
    bool is_input; /* intent(in): the actual argument may be an expression */
};

/* What a collective needs to know of it. */
struct gsi_fortran_memory {
    void *address;
    size_t count;
    gs_dtype_t dtype;
};

/*
 * The array that a collective sends, or the one that it receives: an argument of the procedure
 * [call], or with is_backward of [backward].
 */
struct gsi_fortran_argument gsi_fortran_from (const struct gsi_fortran_args *args,
                                              const char *call, const char *backward,
                                              const CFI_cdesc_t *array, int is_open);
struct gsi_fortran_argument gsi_fortran_to (const struct gsi_fortran_args *args, const char *call,
                                            const char *backward, const CFI_cdesc_t *array,
                                            int is_open);

/* Whether it is not allocated, or a pointer that is not associated. */
bool gsi_fortran_is_absent (const CFI_cdesc_t *array, bool is_input);

/* Whether its elements are logical, of any kind. */
bool gsi_fortran_is_logical (const CFI_cdesc_t *array);

/* Whether Fortran has no kind for it: then it is given in integers that stand for it. */
bool gsi_fortran_has_no_kind (int dtype);

/* Tells [args] of an array that may be character, before anything can fail. */
void gsi_fortran_note (struct gsi_fortran_args *args, const CFI_cdesc_t *array);

/* The number of elements of an array that is not assumed-size; refused where it has gaps. */
gs_status_t gsi_fortran_whole_count (const struct gsi_fortran_argument *a, size_t *count);

/* The array as memory; refused by name where it is not plain memory of a known type. */
gs_status_t gsi_fortran_read (const struct gsi_fortran_args *args,
                              const struct gsi_fortran_argument *a,
                              struct gsi_fortran_memory *memory);

/* What most calls start with: the communicator of the handle, and the array as memory. */
gs_status_t gsi_fortran_start (struct gsi_fortran_args *args,
                               const struct gsi_fortran_argument *a, gs_comm_t **comm,
                               struct gsi_fortran_memory *memory);

/* Element [i] of a list of integers of 32 or 64 bits. */
int64_t gsi_fortran_integer_at (const CFI_cdesc_t *list, int i);

/*
 * For [call], which adds an array that a reducer or plan keeps: fills [gradient] with what
 * [array] is, but for its bounds, which do not come along with it. No address is kept here.
 */
gs_status_t gsi_fortran_describe (struct gsi_fortran_args *args, const char *call,
                                  const CFI_cdesc_t *array, int is_open,
                                  struct gsi_fortran_gradient *gradient);

/* Reads an array that must have [ranks] times what [part] has, and be of the same type. */
gs_status_t gsi_fortran_read_times (const struct gsi_fortran_args *args,
                                    const struct gsi_fortran_argument *a, int ranks,
                                    const struct gsi_fortran_argument *part_name,
                                    const struct gsi_fortran_memory *part,
                                    struct gsi_fortran_memory *whole);

#endif /* GS_FORTRAN_CFI_READ_H */
