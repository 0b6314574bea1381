/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare - a comparison of arrays finds one changed bit in any array of any type on any rank,
 * and nothing where there is none.
 */
#include "data.h"

#define ARRAYS 5

static gs_comm_t *comm;
static int rank, size;
static uint64_t seed;

/* The arrays of this rank, in both memories. */
static char *host[ARRAYS];
static void *there[ARRAYS];
static gs_array_t list[ARRAYS];
static const char *const names[ARRAYS] = {"conv1_w", "empty", "bias", "a long one", "last"};

static void fill (gs_dtype_t dtype, const size_t *counts, bool device)
{
    seed++;
    for (int a = 0; a < ARRAYS; a++) {
        size_t bytes = counts[a] * gs_dtype_size (dtype);
        host[a] = data_allocate (bytes);
        for (size_t i = 0; i < bytes; i++)
            host[a][i] = (char) data_bits (seed, a, i); /* the same on all ranks */
        there[a] = NULL;
        if (device && (rank + a) % 3)
            CHECK_OK (gs_device_alloc (comm, bytes, &there[a]));
        list[a] = (gs_array_t){names[a], there[a] ? there[a] : host[a], counts[a], dtype};
    }
}

static void upload (void)
{
    for (int a = 0; a < ARRAYS; a++)
        if (there[a])
            CHECK_OK (gs_device_copy (comm, there[a], host[a],
                                      list[a].count * gs_dtype_size (list[a].dtype), NULL));
    CHECK_OK (gs_comm_wait (comm, NULL));
}

static void release (void)
{
    for (int a = 0; a < ARRAYS; a++) {
        CHECK (data_free (host[a], list[a].count * gs_dtype_size (list[a].dtype)),
               "written behind");
        CHECK_OK (gs_device_free (comm, there[a]));
    }
}

/* One rank has one other bit; of two ranks, the one that is not rank 0 is told. */
static void check_bit (gs_dtype_t dtype, size_t most, bool device)
{
    size_t width = gs_dtype_size (dtype), element, place;
    size_t counts[ARRAYS] = {1 + data_bits (seed, 1, 0) % most, 0, 1, most, 3};
    int culprit = (int) (data_bits (seed, 2, 0) % (uint64_t) size), array;
    int told = size == 2 ? 1 : culprit, held = told == 0 ? 1 : 0;
    char what[200], who[40], where[60], with[40];

    fill (dtype, counts, device);
    upload ();
    CHECK_OK (gs_arrays_compare (comm, list, ARRAYS, 0, NULL));
    do
        array = (int) (data_bits (seed++, 3, 0) % ARRAYS);
    while (!counts[array]);
    place = data_bits (seed, 4, 0) % (counts[array] * width);
    element = place / width;
    if (rank == culprit)
        host[array][place] ^= (char) (1 << data_bits (seed, 5, 0) % 8);
    upload ();
    snprintf (what, sizeof (what), "array %d of %d, '%s' (", array + 1, ARRAYS, names[array]);
    snprintf (who, sizeof (who), "rank %d (host", told);
    snprintf (where, sizeof (where), " in element %zu (from 0), rank %d (host", element, held);
    snprintf (with, sizeof (with), "Ranks that differ: %d", told);
    if (size > 1)
        CHECK_FAILS (gs_arrays_compare (comm, list, ARRAYS, 0, NULL), GS_ERR_MISMATCH, what, who,
                     where, with);
    else
        CHECK_OK (gs_arrays_compare (comm, list, ARRAYS, 0, NULL));
    release ();
}

/* Values in the text, and the lowest of several ranks. */
static void check_values (void)
{
    int64_t whole = rank == size - 1 ? -7 : 5;
    unsigned char byte = rank == size - 1 ? 200 : 5;
    float complex z = rank == size - 1 ? 1.5F - 2 * I : 1.5F + 2 * I;
    gs_array_t one = {"whole", &whole, 1, GS_I64}, two = {"byte", &byte, 1, GS_U8},
               three = {"z", &z, 1, GS_C64};
    double many = rank < 2 ? 1 : 1.25 + rank;
    gs_array_t four = {"many", &many, 1, GS_F64};
    char last[60];

    if (size < 2)
        return;
    snprintf (last, sizeof (last), "Ranks that differ: %d", size - 1);
    CHECK_FAILS (gs_arrays_compare (comm, &one, 1, 0, NULL), GS_ERR_MISMATCH, "has -7 in",
                 "has 5.", "(GS_I64, 1 elements)", last);
    CHECK_FAILS (gs_arrays_compare (comm, &two, 1, 0, NULL), GS_ERR_MISMATCH, "has 200 in",
                 "has 5.");
    CHECK_FAILS (gs_arrays_compare (comm, &three, 1, 0, NULL), GS_ERR_MISMATCH,
                 "has (1.5, -2) in", "has (1.5, 2).");
    if (size == 4)
        CHECK_FAILS (gs_arrays_compare (comm, &four, 1, 0, NULL), GS_ERR_MISMATCH, "rank 2 (host",
                     "has 3.25 in", "rank 0 (host", "Ranks that differ: 2, 3");
}

/* Of floating types only, their parts, and NaN as NaN. */
static void check_tolerance (void)
{
    bool last = rank == size - 1;
    double x[3] = {1, last ? 100.00001 : 100, NAN};
    float complex z[2] = {1, last ? 5 + 3.00001F * I : 5 + 3 * I};
    uint16_t h = gsi_f16_of_float (last ? 1.001F : 1);
    int n = last ? 1000000 : 1000001;
    gs_array_t all[3] = {{"x", x, 3, GS_F64}, {"z", z, 2, GS_C64}, {"h", &h, 1, GS_F16}};
    gs_array_t whole = {"n", &n, 1, GS_I32};

    ((unsigned char *) &x[2])[0] = (unsigned char) rank; /* another NaN */
    CHECK_OK (gs_arrays_compare (comm, all, 3, 0.01, NULL));
    if (size < 2)
        return;
    CHECK_FAILS (gs_arrays_compare (comm, all, 3, 1e-9, NULL), GS_ERR_MISMATCH, "'x'",
                 "in element 1 (from 0)", "100.00001");
    CHECK_FAILS (gs_arrays_compare (comm, all + 1, 2, 1e-9, NULL), GS_ERR_MISMATCH, "'z'",
                 "in element 1 (from 0)", "3.00001");
    CHECK_FAILS (gs_arrays_compare (comm, all, 3, 1e-5, NULL), GS_ERR_MISMATCH, "'h'");
    CHECK_FAILS (gs_arrays_compare (comm, &whole, 1, 0.5, NULL), GS_ERR_MISMATCH, "1000001");
    if (size == 2)
        CHECK_FAILS (gs_arrays_compare (comm, all, 1, 0, NULL), GS_ERR_MISMATCH, "element 1");
    x[1] = 100;
    if (size == 2)
        CHECK_FAILS (gs_arrays_compare (comm, all, 1, 0, NULL), GS_ERR_MISMATCH, "nan",
                     "other bits");
    x[2] = last ? INFINITY : -INFINITY;
    CHECK_FAILS (gs_arrays_compare (comm, all, 1, 1, NULL), GS_ERR_MISMATCH, "inf", "element 2");
}

static void check_lists (void)
{
    double x[2] = {1, 2};
    bool last = rank == size - 1;
    gs_array_t a[3] = {{"x", x, 2, GS_F64}, {"y", x, 2, GS_F64}, {"z", x, 1, GS_F64}};

    CHECK_OK (gs_arrays_compare (comm, a, 3, 0, NULL));
    CHECK_OK (gs_arrays_compare (comm, NULL, 0, 0, NULL));
    if (size < 2)
        return;
    a[1].name = last ? "other" : "y";
    CHECK_FAILS (gs_arrays_compare (comm, a, 3, 0, NULL), GS_ERR_MISMATCH, "array 2 is 'y'",
                 "'other'");
    a[1].name = "y";
    a[1].count = last ? 1 : 2;
    CHECK_FAILS (gs_arrays_compare (comm, a, 3, 0, NULL), GS_ERR_MISMATCH,
                 "'y' (GS_F64, 2 elements)", "'y' (GS_F64, 1 elements)");
    a[1].count = 2;
    a[2].dtype = last ? GS_I64 : GS_F64;
    CHECK_FAILS (gs_arrays_compare (comm, a, 3, 0, NULL), GS_ERR_MISMATCH,
                 "array 3 is 'z' (GS_F64", "(GS_I64");
    a[2].dtype = GS_F64;
    CHECK_FAILS (gs_arrays_compare (comm, a, last ? 2 : 3, 0, NULL), GS_ERR_MISMATCH,
                 "gives 2 arrays", ") 3:");
    CHECK_FAILS (gs_arrays_compare (comm, a, 3, last ? 0.1 : 0.2, NULL), GS_ERR_MISMATCH,
                 "tolerances");
    CHECK_OK (gs_arrays_compare (comm, a, 3, 0, NULL));
}

static void check_refusals (void)
{
    double x[2] = {1, 2};
    gs_array_t a = {"x", x, 2, GS_F64}, nameless = {NULL, x, 2, GS_F64},
               nowhere = {"x", NULL, 2, GS_F64}, odd = {"x", x, 2, (gs_dtype_t) 77};

    CHECK_FAILS (gs_arrays_compare (NULL, &a, 1, 0, NULL), GS_ERR_ARG,
                 "gs_arrays_compare: comm is NULL");
    CHECK_FAILS (gs_arrays_compare (comm, NULL, 1, 0, NULL), GS_ERR_ARG, "arrays is NULL");
    CHECK_FAILS (gs_arrays_compare (comm, &a, 1, -1, NULL), GS_ERR_ARG, "tolerance is -1");
    CHECK_FAILS (gs_arrays_compare (comm, &a, 1, NAN, NULL), GS_ERR_ARG, "tolerance is nan");
    CHECK_FAILS (gs_arrays_compare (comm, &nameless, 1, 0, NULL), GS_ERR_ARG,
                 "array 1 has no name");
    CHECK_FAILS (gs_arrays_compare (comm, &nowhere, 1, 0, NULL), GS_ERR_ARG,
                 "the buffer is NULL");
    CHECK_FAILS (gs_arrays_compare (comm, &odd, 1, 0, NULL), GS_ERR_ARG, "gs_arrays_compare");
}

int main (void)
{
    bool device;

    comm = multi_create (NULL);
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    device = multi_any_gpus ();
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++)
        for (int n = 0; n < 3; n++)
            check_bit (dtype, 700, device);
    for (int n = 0; n < 5; n++)
        check_bit (GS_F32, 1500001, device);
    check_values ();
    check_tolerance ();
    check_lists ();
    check_refusals ();
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end ("arrays compared across ranks");
}
