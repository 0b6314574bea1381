/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device - every collective on arrays of gs_device_alloc, which the host only reaches by
 * gs_device_copy: on hosts and, without change, on GPUs.
 */
#include "data.h"

#define LEAD 256 /* bytes before an array, beside what makes its address odd */
#define TAIL 64  /* and behind it */
#define MARK 0xA5

/* An array in memory of the device, between borders. */
struct array {
    void *memory;
    char *at; /* aligned for its type and no further */
    size_t bytes;
};

static gs_comm_t *comm; /* the one that the checks below use */
static int rank, size;
static bool on_gpus;
static uint64_t seed;

static void use (gs_comm_t *which)
{
    comm = which;
    rank = gs_comm_rank (comm);
    size = gs_comm_size (comm);
    on_gpus = !strcmp (gs_comm_transport (comm), "nccl");
    data_learn (comm);
}

/* ---- Arrays ---- */

static void copy (void *dst, const void *src, size_t bytes)
{
    CHECK_OK (gs_device_copy (comm, dst, src, bytes, NULL));
}

/* Brings to the host what the calls on [at] have made of it. */
static void fetch (void *host, const void *at, size_t bytes)
{
    copy (host, at, bytes);
    CHECK_OK (gs_comm_wait (comm, NULL));
}

static void make_array (struct array *a, gs_dtype_t dtype, size_t count)
{
    size_t width = gs_dtype_size (dtype), odd = gsi_dtype_is_complex (dtype) ? width / 2 : width;
    char *marks;

    a->bytes = count * width;
    CHECK_OK (gs_device_alloc (comm, LEAD + odd + a->bytes + TAIL, &a->memory));
    if (!a->memory)
        exit (1);
    a->at = (char *) a->memory + LEAD + odd;
    marks = data_allocate (LEAD + odd + a->bytes + TAIL);
    memset (marks, MARK, LEAD + odd + a->bytes + TAIL);
    copy (a->memory, marks, LEAD + odd + a->bytes + TAIL);
    free (marks);
}

/* Makes an array of what [r] has for [seed]. */
static void make_data (struct array *a, gs_dtype_t dtype, int r, size_t count)
{
    void *host = data_allocate (count * gs_dtype_size (dtype));

    make_array (a, dtype, count);
    data_fill (dtype, host, seed, r, count);
    copy (a->at, host, a->bytes);
    free (host);
}

static bool is_marked (const char *border, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char) border[i] != MARK)
            return false;
    return true;
}

/* Frees, after a look at the borders. */
static void free_array (struct array *a)
{
    size_t lead = (size_t) (a->at - (char *) a->memory);
    char *host = data_allocate (lead + a->bytes + TAIL);

    fetch (host, a->memory, lead + a->bytes + TAIL);
    CHECK (is_marked (host, lead), "an array of %zu bytes is written to before it", a->bytes);
    CHECK (is_marked (host + lead + a->bytes, TAIL), "an array of %zu bytes: behind it",
           a->bytes);
    free (host);
    CHECK_OK (gs_device_free (comm, a->memory));
}

/* ---- The collectives ---- */

/* The ranks share the work of checking, for they have the same bits. */
static void check_all (const struct array *a, gs_dtype_t dtype, gs_op_t op, const double *weights)
{
    size_t count = a->bytes / gs_dtype_size (dtype), wrong = 0;
    size_t step = count > 100 ? (size_t) size : 1;
    void *x = data_allocate (a->bytes);

    fetch (x, a->at, a->bytes);
    for (size_t i = (size_t) rank % step; i < count; i += step)
        wrong += op ? !data_reduction_is_right (dtype, op, x, i, seed, size)
                    : !data_average_is_right (dtype, x, i, seed, size, weights);
    CHECK (!wrong, "op %d of %zu %s: %zu are wrong", op, count, data_names[dtype], wrong);
    CHECK (data_same_everywhere (comm, x, a->bytes), "op %d of %zu %s: bits differ", op, count,
           data_names[dtype]);
    free (x);
}

static void check_reductions (gs_dtype_t dtype, size_t count)
{
    struct array a;

    for (gs_op_t op = GS_SUM; op <= (gsi_dtype_is_complex (dtype) ? GS_PROD : GS_MAX); op++) {
        seed++;
        make_data (&a, dtype, rank, count);
        CHECK_OK (gs_allreduce (comm, a.at, count, dtype, op, NULL));
        check_all (&a, dtype, op, NULL);
        free_array (&a);
    }
}

static void check_averages (gs_dtype_t dtype, size_t count)
{
    double weights[64];
    struct array a;

    if (gsi_dtype_is_integer (dtype) || size > 64)
        return;
    seed++;
    make_data (&a, dtype, rank, count);
    CHECK_OK (gs_allreduce_avg (comm, a.at, count, dtype, NULL));
    check_all (&a, dtype, (gs_op_t) 0, NULL);
    free_array (&a);
    for (int lonely = 0; lonely < 3; lonely++) { /* uneven; one without data; equal */
        for (int r = 0; r < size; r++)
            weights[r] = lonely == 2 ? 0.1 : lonely == 1 && r == size / 2 ? 0 : 1 + r * 37 % 11;
        if (lonely == 1 && size == 1)
            continue;
        seed++;
        make_data (&a, dtype, rank, count);
        CHECK_OK (gs_allreduce_wavg (comm, a.at, count, dtype, weights[rank], NULL));
        check_all (&a, dtype, (gs_op_t) 0, weights);
        free_array (&a);
    }
}

static void check_broadcasts (gs_dtype_t dtype, size_t count)
{
    void *x = data_allocate (count * gs_dtype_size (dtype));
    void *wanted = data_allocate (count * gs_dtype_size (dtype));
    struct array a;

    for (int root = 0; root < size; root++) {
        seed++;
        make_data (&a, dtype, rank, count);
        CHECK_OK (gs_broadcast (comm, a.at, count, dtype, root, NULL));
        fetch (x, a.at, a.bytes);
        data_fill (dtype, wanted, seed, root, count);
        CHECK (!memcmp (x, wanted, a.bytes), "%zu %s of root %d are wrong", count,
               data_names[dtype], root);
        free_array (&a);
    }
    free (x);
    free (wanted);
}

static void check_allgather (gs_dtype_t dtype, size_t count, bool in_place)
{
    size_t bytes = count * gs_dtype_size (dtype);
    char *x = data_allocate (bytes * (size_t) size), *part = data_allocate (bytes);
    struct array send, recv;

    seed++;
    make_data (&send, dtype, rank, count);
    make_array (&recv, dtype, count * (size_t) size);
    if (in_place)
        copy (recv.at + (size_t) rank * bytes, send.at, bytes); /* from device to device */
    CHECK_OK (gs_allgather (comm, in_place ? recv.at + (size_t) rank * bytes : send.at, recv.at,
                            count, dtype, NULL));
    fetch (x, recv.at, recv.bytes);
    for (int r = 0; r < size; r++) {
        data_fill (dtype, part, seed, r, count);
        CHECK (!memcmp (x + (size_t) r * bytes, part, bytes),
               "%zu %s%s: the part of rank %d is wrong", count, data_names[dtype],
               in_place ? " in place" : "", r);
    }
    fetch (x, send.at, bytes);
    data_fill (dtype, part, seed, rank, count);
    CHECK (!memcmp (x, part, bytes), "%zu %s: send was changed", count, data_names[dtype]);
    free_array (&recv);
    free_array (&send);
    free (x);
    free (part);
}

static void check_collectives (void)
{
    for (gs_dtype_t dtype = GS_F16; dtype < GSI_DTYPES; dtype++) {
        size_t counts[] = {0, 1, 37, (40 << 10) / gs_dtype_size (dtype) + 3};
        for (int c = 0; c < 4; c++) {
            check_averages (dtype, counts[c]);
            check_reductions (dtype, counts[c]);
            check_broadcasts (dtype, counts[c]);
            check_allgather (dtype, counts[c], false);
            check_allgather (dtype, counts[c], true);
        }
    }
    check_averages (GS_F32, (5 << 20) / 4 + 1); /* beyond all blocks */
    check_averages (GS_BF16, (3 << 20) / 2 + 1);
}

/* ---- What calls have to do with each other ---- */

/* Each call works on what the one before has made; the host waits once. */
static void check_queue (void)
{
    size_t count = 1000;
    double x[1000], sum = 0, largest = 0;
    struct array a, all;

    for (size_t i = 0; i < count; i++)
        x[i] = rank + 1;
    make_array (&a, GS_F64, count);
    make_array (&all, GS_F64, count * (size_t) size);
    copy (a.at, x, sizeof (x));
    CHECK_OK (gs_allreduce (comm, a.at, count, GS_F64, GS_SUM, NULL));
    CHECK_OK (gs_allgather (comm, a.at, all.at, count, GS_F64, NULL));
    CHECK_OK (gs_barrier (comm, NULL));
    CHECK_OK (gs_allreduce (comm, all.at, count * (size_t) size, GS_F64, GS_MAX, NULL));
    copy (a.at, all.at + (size_t) (size - 1) * a.bytes, a.bytes);
    for (int i = 0; i < 100; i++) /* more than are watched at a time */
        CHECK_OK (gs_broadcast (comm, a.at, count, GS_F64, i % size, NULL));
    fetch (x, a.at, sizeof (x));
    for (int r = 0; r < size; r++)
        sum += r + 1;
    for (size_t i = 0; i < count; i++)
        largest = fabs (x[i] - sum) > largest ? fabs (x[i] - sum) : largest;
    CHECK (largest == 0, "what is queued one after the other is off by %g", largest);
    free_array (&a);
    free_array (&all);
}

/* Arrays of the host and of the device by turns; the first hands over to the second. */
static void check_mixed (void)
{
    float x[777], y[777];
    struct array a;

    make_array (&a, GS_F32, 777);
    for (int i = 0; i < 20; i++) {
        seed++;
        data_fill (GS_F32, x, seed, rank, 777);
        copy (a.at, x, sizeof (x));
        CHECK_OK (gs_allreduce (comm, x, 777, GS_F32, GS_MAX, NULL));
        CHECK_OK (gs_allreduce (comm, a.at, 777, GS_F32, GS_MAX, NULL));
        fetch (y, a.at, sizeof (y));
        CHECK (!memcmp (x, y, sizeof (x)), "host and device disagree about a maximum");
        CHECK_OK (gs_allreduce_avg (comm, a.at, 777, GS_F32, NULL)); /* of equal numbers */
        CHECK_OK (gs_broadcast (comm, x, 777, GS_F32, i % size, NULL));
        CHECK_OK (gs_broadcast (comm, a.at, 777, GS_F32, i % size, NULL));
    }
    free_array (&a);
}

/* Both arrays of an allgather are in the same memory, and all ranks give the same kind. */
static void check_kinds (void)
{
    gs_comm_t *world = comm, *other = multi_create (NULL);
    int32_t x[64] = {0}, *y = size <= 64 ? x : NULL, own;
    size_t counts[64] = {1, 1};
    struct array a;

    use (other);
    make_array (&a, GS_I32, (size_t) size);
    if (on_gpus && size > 1) {
        void *mine = rank ? (void *) a.at : x;
        CHECK_FAILS (gs_broadcast (comm, mine, 1, GS_I32, 0, NULL), GS_ERR_MISMATCH,
                     "broadcast, GS_I32, count 1", "in host memory", "rank 1");
    }
    if (on_gpus && size > 1 && y && !multi_mixed ()) /* the third has nothing, anywhere */
        CHECK_FAILS (gs_scatterv (comm, x, counts, NULL, rank ? (void *) a.at : &own, rank < 2,
                                  GS_I32, 0, NULL),
                     GS_ERR_MISMATCH, "scatterv, GS_I32", "in host memory", "rank 1");
    if (multi_mixed ()) {
        /* each rank as it can */
    } else if (on_gpus && y) {
        CHECK_FAILS (gs_allgather (comm, y, a.at, 1, GS_I32, NULL), GS_ERR_DEVICE,
                     "gs_allgather: send is in host memory, recv in device memory");
        CHECK_FAILS (gs_allgather (comm, a.at, y, 1, GS_I32, NULL), GS_ERR_DEVICE,
                     "gs_allgather: send is in device memory, recv in host memory");
    } else if (y) {
        CHECK_OK (gs_allgather (comm, y, a.at, 1, GS_I32, NULL));
    }
    CHECK_OK (gs_barrier (comm, NULL)); /* it lives on */
    CHECK_OK (gs_comm_wait (comm, NULL));
    if (!on_gpus && y)
        copy (a.at, y, (size_t) size * sizeof (*y)); /* only the borders are looked at */
    free_array (&a);
    CHECK_OK (gs_comm_destroy (other));
    use (world);
}

/* Calls of two communicators by turns, on arrays of each. */
static void check_two (void)
{
    gs_comm_opts_t opts = GS_COMM_OPTS_INIT;
    gs_comm_t *world = comm, *second;
    float x[500], y[500];
    struct array a, b;

    opts.name = "second";
    second = multi_create (&opts);
    seed++;
    make_data (&a, GS_F32, rank, 500);
    use (second);
    make_data (&b, GS_F32, rank, 500);
    for (int i = 0; i < 10; i++) {
        CHECK_OK (gs_allreduce (world, a.at, 500, GS_F32, i % 2 ? GS_MIN : GS_SUM, NULL));
        CHECK_OK (gs_allreduce (second, b.at, 500, GS_F32, i % 2 ? GS_MIN : GS_SUM, NULL));
    }
    CHECK_OK (gs_comm_wait (world, NULL));
    fetch (y, b.at, sizeof (y));
    use (world);
    fetch (x, a.at, sizeof (x));
    CHECK (!memcmp (x, y, sizeof (x)), "two communicators disagree");
    free_array (&a);
    use (second);
    free_array (&b);
    CHECK_OK (gs_comm_destroy (second));
    use (world);
}

/* ---- Memory ---- */

static void check_memory (void)
{
    char x[1000], y[1000];
    void *memory = x, *other;

    CHECK (multi_has_gpu () ? gs_comm_device (comm) >= 0
                            : gs_comm_device (comm) == GS_DEVICE_HOST,
           "transport %s with device %d", gs_comm_transport (comm), gs_comm_device (comm));
    CHECK_OK (gs_device_alloc (comm, 0, &memory));
    CHECK (!memory, "no bytes have an address");
    CHECK_OK (gs_device_free (comm, NULL));
    CHECK_FAILS (gs_device_alloc (comm, SIZE_MAX / 2, &memory), GS_ERR_NOMEM, "memory");
    CHECK (!memory, "a failed alloc gives an address");
    CHECK_OK (gs_device_alloc (comm, sizeof (x), &memory));
    CHECK_OK (gs_device_alloc (comm, sizeof (x), &other));
    CHECK (memory && other && !((uintptr_t) memory % 256) && !((uintptr_t) other % 256),
           "%p or %p is not aligned to 256 bytes", memory, other);
    for (size_t bytes = 0; bytes < 900; bytes = bytes * 3 + 1) {
        for (size_t i = 0; i < sizeof (x); i++)
            x[i] = (char) data_bits (bytes, rank, i);
        copy ((char *) memory + 7, x, bytes);
        copy ((char *) other + 13, (char *) memory + 7, bytes);
        memset (y, 0, sizeof (y));
        fetch (y + 3, (char *) other + 13, bytes);
        CHECK (!memcmp (x, y + 3, bytes) && !y[2] && !y[3 + bytes], "%zu bytes do not come back",
               bytes);
    }
    copy (NULL, NULL, 0);
    CHECK_FAILS (gs_device_copy (comm, NULL, x, 1, NULL), GS_ERR_ARG, "gs_device_copy", "NULL");
    CHECK_FAILS (gs_device_copy (comm, x, NULL, 1, NULL), GS_ERR_ARG, "gs_device_copy", "NULL");
    CHECK_FAILS (gs_device_alloc (comm, 1, NULL), GS_ERR_ARG, "memory is NULL");
    CHECK_OK (gs_device_free (comm, memory));
    CHECK_OK (gs_device_free (comm, other));
}

int main (void)
{
    use (multi_create (NULL));
    check_memory ();
    check_collectives ();
    check_queue ();
    check_mixed ();
    check_kinds ();
    check_two ();
    CHECK_OK (gs_comm_check (comm));
    CHECK_OK (gs_comm_destroy (comm));
    return multi_end (on_gpus ? "all collectives on arrays of GPUs"
                              : "all collectives on arrays of gs_device_alloc");
}
