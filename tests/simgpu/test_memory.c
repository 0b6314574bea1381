/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory - allocation, what pointers are, copies. */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "test.h"

static void *device_memory (size_t bytes)
{
    void *memory = NULL;

    test_ok (cudaMalloc (&memory, bytes));
    ck_assert_uint_eq ((uintptr_t) memory % 256, 0);
    return memory;
}

START_TEST (bytes_go_to_the_device_and_back)
{
    char out[1000], in[1000];
    char *memory = device_memory (sizeof (out)), *other = device_memory (sizeof (out));

    for (size_t i = 0; i < sizeof (out); i++)
        out[i] = (char) (i * 7);
    test_ok (cudaMemcpy (memory, out, sizeof (out), cudaMemcpyHostToDevice));
    test_ok (cudaMemcpy (other, memory, sizeof (out), cudaMemcpyDeviceToDevice));
    test_ok (cudaMemset (other + 10, 3, 5));
    test_ok (cudaMemcpy (in, other, sizeof (in), cudaMemcpyDefault));
    memset (out + 10, 3, 5);
    ck_assert_mem_eq (in, out, sizeof (in));
    test_ok (cudaMemcpy (in, memory, 0, cudaMemcpyDeviceToHost));
    test_ok (cudaFree (memory));
    test_ok (cudaFree (other));
    test_ok (cudaFree (NULL));
}
END_TEST

START_TEST (memory_is_limited)
{
    size_t left, total;
    void *memory, *more;

    if (!test_simulated ())
        return;
    setenv ("SIM_GPU_MEMORY_MB", "2", 1);
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (total, 2 << 20);
    ck_assert_uint_eq (left, total);
    memory = device_memory ((1 << 20) + 1);
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, total - (1 << 20) - 512);
    test_gives (cudaErrorMemoryAllocation, cudaMalloc (&more, 1 << 20));
    ck_assert_ptr_null (more);
    test_gives (cudaErrorMemoryAllocation, cudaGetLastError ());
    test_gives (cudaErrorMemoryAllocation, cudaMalloc (&more, SIZE_MAX / 2));
    test_ok (cudaSetDevice (1)); /* has its own */
    more = device_memory (1 << 20);
    test_ok (cudaFree (more));
    test_ok (cudaFree (memory));
    test_ok (cudaSetDevice (0));
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, total);
}
END_TEST

START_TEST (nothing_is_allocated_for_no_bytes)
{
    void *memory = &memory;

    test_ok (cudaMalloc (&memory, 0));
    ck_assert_ptr_null (memory);
    test_gives (cudaErrorInvalidValue, cudaMalloc (NULL, 1));
    if (test_simulated ()) /* the real one gives some */
        test_gives (cudaErrorInvalidValue, cudaMallocManaged (&memory, 0, cudaMemAttachGlobal));
    test_gives (cudaErrorInvalidValue, cudaMallocManaged (&memory, 1, 0));
}
END_TEST

START_TEST (new_memory_is_no_number)
{
    float x = 0, *memory = device_memory (sizeof (x));

    if (!test_simulated ())
        return;
    test_ok (cudaMemcpy (&x, memory, sizeof (x), cudaMemcpyDeviceToHost));
    ck_assert (x != x);
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (managed_and_pinned_memory_are_the_hosts_too)
{
    char *managed, *pinned, *memory = device_memory (64);
    void *seen;
    unsigned flags;

    test_ok (cudaMallocManaged ((void **) &managed, 64, cudaMemAttachGlobal));
    test_ok (cudaHostAlloc ((void **) &pinned, 64, cudaHostAllocPortable));
    memset (managed, 5, 64);
    test_ok (cudaMemcpy (memory, managed, 64, cudaMemcpyDeviceToDevice));
    test_ok (cudaMemcpy (pinned, memory, 64, cudaMemcpyDeviceToHost));
    ck_assert_int_eq (pinned[63], 5);
    test_ok (cudaMemset (managed, 6, 64));
    ck_assert_int_eq (managed[63], 6); /* that one does wait */
    test_ok (cudaHostGetDevicePointer (&seen, pinned, 0));
    ck_assert_ptr_eq (seen, pinned);
    test_ok (cudaHostGetFlags (&flags, pinned));
    ck_assert_uint_eq (flags, cudaHostAllocPortable | cudaHostAllocMapped);
    test_ok (cudaFree (managed));
    test_ok (cudaFree (memory));
    test_ok (cudaFreeHost (pinned));
    test_ok (cudaFreeHost (NULL));
}
END_TEST

static void check_pointer (const void *address, enum cudaMemoryType type, int device,
                           bool device_sees, bool host_sees)
{
    struct cudaPointerAttributes a;

    test_ok (cudaPointerGetAttributes (&a, address));
    ck_assert_int_eq (a.type, type);
    ck_assert_int_eq (a.device, device);
    ck_assert_ptr_eq (a.devicePointer, device_sees ? address : NULL);
    ck_assert_ptr_eq (a.hostPointer, host_sees ? address : NULL);
}

START_TEST (pointers_are_told_apart)
{
    char *managed, *pinned, *memory, pageable[100], registered[100];
    struct cudaPointerAttributes a;

    if (!test_has_devices (2))
        return;
    test_ok (cudaSetDevice (1));
    memory = device_memory (100);
    test_ok (cudaMallocManaged ((void **) &managed, 100, cudaMemAttachGlobal));
    test_ok (cudaMallocHost ((void **) &pinned, 100));
    test_ok (cudaHostRegister (registered, 100, cudaHostRegisterDefault));
    test_ok (cudaSetDevice (0));
    check_pointer (memory, cudaMemoryTypeDevice, 1, true, false);
    check_pointer (memory + 99, cudaMemoryTypeDevice, 1, true, false);
    check_pointer (memory + 100, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, true);
    check_pointer (managed + 5, cudaMemoryTypeManaged, 1, true, true);
    check_pointer (pinned + 5, cudaMemoryTypeHost, 1, true, true);
    check_pointer (registered + 5, cudaMemoryTypeHost, 1, true, true);
    check_pointer (pageable, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, true);
    test_ok (cudaHostUnregister (registered));
    check_pointer (registered, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, true);
    test_ok (cudaFreeHost (pinned));
    test_ok (cudaFree (managed));
    test_ok (cudaFree (memory));
    check_pointer (memory, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, false, true);
    test_gives (cudaErrorInvalidValue, cudaPointerGetAttributes (&a, NULL));
    test_gives (cudaErrorInvalidValue, cudaPointerGetAttributes (NULL, memory));
}
END_TEST

START_TEST (memory_is_registered_once)
{
    char memory[100];

    test_ok (cudaHostRegister (memory, 100, cudaHostRegisterDefault));
    test_gives (cudaErrorHostMemoryAlreadyRegistered,
                cudaHostRegister (memory + 50, 10, cudaHostRegisterDefault));
    test_gives (cudaErrorInvalidValue, cudaHostUnregister (memory + 1));
    test_ok (cudaHostUnregister (memory));
    test_gives (cudaErrorHostMemoryNotRegistered, cudaHostUnregister (memory));
    test_gives (cudaErrorInvalidValue, cudaHostRegister (NULL, 1, cudaHostRegisterDefault));
    test_gives (cudaErrorInvalidValue, cudaHostRegister (memory, 0, cudaHostRegisterDefault));
}
END_TEST

START_TEST (copies_are_checked)
{
    char host[8], *memory = device_memory (8);

    test_gives (cudaErrorInvalidMemcpyDirection, cudaMemcpy (memory, host, 8, 9));
    test_gives (cudaErrorInvalidValue, cudaMemcpy (NULL, host, 8, cudaMemcpyHostToDevice));
    test_gives (cudaErrorInvalidValue, cudaMemcpy (memory, NULL, 8, cudaMemcpyHostToDevice));
    test_gives (cudaErrorInvalidDevice, cudaMemcpyPeerAsync (memory, 9, memory, 0, 8, 0));
    test_ok (cudaMemcpyPeerAsync (memory, 0, memory, 0, 8, 0));
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (asynchronous_copies_come_in_their_turn)
{
    char *pinned, *memory = device_memory (1), seen;
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();

    test_ok (cudaMallocHost ((void **) &pinned, 1));
    *pinned = 1;
    test_close (&gate, stream);
    test_ok (cudaMemcpyAsync (memory, pinned, 1, cudaMemcpyHostToDevice, stream));
    *pinned = 2; /* too early: this is what arrives */
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaMemcpy (&seen, memory, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq (seen, 2);
    test_close (&gate, stream);
    test_ok (cudaMemsetAsync (memory, 3, 1, stream));
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    test_open (&gate);
    test_ok (cudaMemcpyAsync (&seen, memory, 1, cudaMemcpyDeviceToHost, stream));
    ck_assert_int_eq (seen, 3); /* pageable: the call has waited */
    test_ok (cudaFree (memory));
    test_ok (cudaFreeHost (pinned));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

/* The device's own memory: neither waits for what is in front of it. */
START_TEST (some_synchronous_calls_are_not)
{
    char *memory = device_memory (16);
    static struct test_gate gate;

    test_close (&gate, cudaStreamLegacy);
    test_ok (cudaMemset (memory, 1, 8));
    test_ok (cudaMemcpy (memory + 8, memory, 8, cudaMemcpyDeviceToDevice));
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamLegacy));
    test_open (&gate);
    test_ok (cudaFree (memory));
}
END_TEST

/* From pageable memory: the source was read; other streams do not wait for what comes of it. */
START_TEST (what_is_copied_may_land_later)
{
    char *memory = device_memory (1), sent = 5, seen;
    bool later = !test_simulated ();

    test_ok (cudaMemset (memory, 0, 1));
    for (int i = 0; i < 100; i++) { /* this thread may lose its core meanwhile */
        test_ok (cudaMemcpy (memory, &sent, 1, cudaMemcpyHostToDevice));
        later = later || cudaStreamQuery (cudaStreamLegacy) == cudaErrorNotReady;
    }
    ck_assert (later);
    sent = 6;
    test_ok (cudaMemcpy (&seen, memory, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq (seen, 5);
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (free_waits_for_what_is_queued)
{
    char *memory = device_memory (1 << 20);
    cudaStream_t stream = test_stream ();

    for (int i = 0; i < 50; i++)
        test_ok (cudaMemsetAsync (memory, i, 1 << 20, stream));
    test_ok (cudaFree (memory)); /* else it would be used after */
    test_ok (cudaStreamQuery (stream));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

static void *free_it (void *memory)
{
    return (void *) (intptr_t) cudaFree (memory);
}

static void *record_it (void *event)
{
    return (void *) (intptr_t) cudaEventRecord (event, cudaStreamPerThread);
}

/* While a free waits CUDA keeps calls of other threads out, but for questions. */
START_TEST (a_free_that_waits_keeps_others_out)
{
    static struct test_gate gate;
    char *memory = device_memory (1 << 20);
    cudaEvent_t event = test_event ();
    cudaStream_t stream;
    pthread_t freeing, recording;
    void *result = NULL;

    test_ok (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    test_close (&gate, stream);
    ck_assert (!pthread_create (&freeing, NULL, free_it, memory));
    usleep (200000);
    ck_assert (!pthread_create (&recording, NULL, record_it, event));
    usleep (200000);
    ck_assert (pthread_tryjoin_np (freeing, &result) == EBUSY);
    ck_assert (pthread_tryjoin_np (recording, &result) == EBUSY);
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    test_open (&gate);
    ck_assert (!pthread_join (freeing, &result) && !result);
    ck_assert (!pthread_join (recording, &result) && !result);
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (memory_is_freed_in_a_stream)
{
    size_t before, left, total;
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();
    void *memory;

    test_ok (cudaMemGetInfo (&before, &total));
    test_ok (cudaMallocAsync (&memory, 512, stream));
    test_close (&gate, stream);
    test_ok (cudaMemsetAsync (memory, 1, 512, stream));
    test_ok (cudaFreeAsync (memory, stream));
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert (test_simulated () ? left == before - 512 : left < before);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaMemGetInfo (&left, &total));
    if (test_simulated ()) /* the real one has a pool */
        ck_assert_uint_eq (left, before);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (the_engine_reaches_memory)
{
    void *(*alias) (const void *, size_t, const char *);
    bool (*is_device) (const void *, int *);
    char *memory, *pinned, seen = 0;
    int device = -1;

    if (!test_simulated ())
        return;
    *(void **) &alias = dlsym (RTLD_DEFAULT, "sim_alias");
    *(void **) &is_device = dlsym (RTLD_DEFAULT, "sim_is_device");
    setenv ("CUDA_VISIBLE_DEVICES", "3", 1);
    memory = device_memory (10);
    test_ok (cudaMallocHost ((void **) &pinned, 10));
    ck_assert (is_device (memory + 9, &device) && device == 3);
    ck_assert (!is_device (pinned, &device) && !is_device (&seen, &device));
    ck_assert_ptr_ne (alias (memory, 10, "test"), memory);
    *(char *) alias (memory + 9, 1, "test") = 7;
    *(char *) alias (pinned + 2, 1, "test") = 8;
    ck_assert_int_eq (pinned[2], 8);
    test_ok (cudaMemcpy (&seen, memory + 9, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq (seen, 7);
    test_ok (cudaFree (memory));
    test_ok (cudaFreeHost (pinned));
}
END_TEST

/* Far more ranges than are remembered, in an order that shuffles them. */
START_TEST (many_ranges)
{
    static void *kept[500];

    for (int i = 0; i < 20000; i++) {
        void **slot = &kept[(i * 7919) % 500];
        if (*slot)
            test_gave (cudaFree (*slot), cudaSuccess, "free");
        test_gave (cudaMalloc (slot, 100), cudaSuccess, "malloc");
    }
    for (int i = 0; i < 500; i++)
        test_gave (cudaFree (kept[i]), cudaSuccess, "free");
}
END_TEST

TEST_CASE (test_memory, "memory", bytes_go_to_the_device_and_back, memory_is_limited,
           nothing_is_allocated_for_no_bytes, new_memory_is_no_number,
           managed_and_pinned_memory_are_the_hosts_too, pointers_are_told_apart,
           memory_is_registered_once, copies_are_checked, asynchronous_copies_come_in_their_turn,
           some_synchronous_calls_are_not, what_is_copied_may_land_later,
           free_waits_for_what_is_queued, a_free_that_waits_keeps_others_out,
           memory_is_freed_in_a_stream, the_engine_reaches_memory, many_ranges)
