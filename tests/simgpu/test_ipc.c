/* SPDX-License-Identifier: BSD-3-Clause */
/* test_ipc - memory of devices that several processes have. */
#include <errno.h>

#include "other.h"
#include "test.h"

#define BYTES 10000

static struct other other; /* of each test, which has a process of its own */

static struct other_answer ask (enum other_does what, int number,
                                const cudaIpcMemHandle_t *handle)
{
    struct other_answer answer = other_ask (&other, what, number, handle);

    ck_assert_msg (answer.error == cudaSuccess, "request %d gives %d, %s there", what,
                   answer.error, cudaGetErrorName (answer.error));
    return answer;
}

static void start (const char *visible)
{
    other_start (&other, visible, 0);
}

static void end (void)
{
    ck_assert_int_eq (other_end (&other, 0), 0);
}

static void *open_it (const cudaIpcMemHandle_t *handle)
{
    void *memory = NULL;

    test_ok (cudaIpcOpenMemHandle (&memory, *handle, cudaIpcMemLazyEnablePeerAccess));
    ck_assert_ptr_nonnull (memory);
    return memory;
}

static char *allocate (cudaIpcMemHandle_t *handle)
{
    char *memory;

    test_ok (cudaMalloc ((void **) &memory, BYTES));
    test_ok (cudaMemset (memory, 1, BYTES));
    test_ok (cudaDeviceSynchronize ());
    test_ok (cudaIpcGetMemHandle (handle, memory));
    return memory;
}

static int byte_at (const char *memory)
{
    char byte = -1;

    test_ok (cudaMemcpy (&byte, memory, 1, cudaMemcpyDeviceToHost));
    return byte;
}

START_TEST (both_have_the_same_memory)
{
    cudaIpcMemHandle_t handle;
    char *memory;

    start (NULL);
    memory = allocate (&handle);
    ask (OTHER_OPENS, 0, &handle);
    ck_assert_int_eq (ask (OTHER_READS, 0, NULL).number, 1);
    ask (OTHER_WRITES, 2, NULL);
    ck_assert_int_eq (byte_at (memory), 2);
    ck_assert_int_eq (byte_at (memory + 1), 1);
    test_ok (cudaMemset (memory, 3, 1));
    test_ok (cudaDeviceSynchronize ());
    ck_assert_int_eq (ask (OTHER_READS, 0, NULL).number, 3);
    ask (OTHER_CLOSES, 0, NULL);
    test_ok (cudaFree (memory));
    end ();
}
END_TEST

/* Copies, kernels and all that takes memory of a device. */
START_TEST (opened_memory_is_memory_of_a_device)
{
    struct cudaPointerAttributes about;
    struct other_answer its;
    cudaStream_t stream;
    char *memory, bytes[BYTES];
    float x[4] = {1, 2, 3, 4};

    start (NULL);
    its = ask (OTHER_MALLOCS, BYTES, NULL);
    memory = open_it (&its.handle);
    test_ok (cudaPointerGetAttributes (&about, memory + BYTES - 1));
    ck_assert_int_eq (about.type, cudaMemoryTypeDevice);
    ck_assert_int_eq (about.device, 0);
    ck_assert_ptr_eq (about.devicePointer, memory + BYTES - 1);
    stream = test_stream ();
    test_ok (cudaMemsetAsync (memory, 5, BYTES, stream));
    test_ok (cudaMemcpyAsync (bytes, memory, BYTES, cudaMemcpyDeviceToHost, stream));
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (bytes[BYTES - 1], 5);
    ck_assert_int_eq (ask (OTHER_READS, 0, NULL).number, 5);
    test_ok (cudaMemcpy (memory, x, sizeof (x), cudaMemcpyHostToDevice));
    test_ok (cudaDeviceSynchronize ());
    test_ok (test_scale ((float *) (void *) memory, 2, (struct test_table){4, {1}}, stream));
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaMemcpy (x, memory, sizeof (x), cudaMemcpyDeviceToHost));
    ck_assert (x[0] == 3 && x[3] == 8);
    test_ok (cudaIpcCloseMemHandle (memory));
    test_ok (cudaStreamDestroy (stream));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

/* Whatever address in it is asked for; each allocation has its own. */
START_TEST (a_handle_is_of_an_allocation)
{
    cudaIpcMemHandle_t handle, again, another;
    char *memory = allocate (&handle), *more = allocate (&another);

    test_ok (cudaIpcGetMemHandle (&again, memory + BYTES - 1));
    ck_assert_mem_eq (&handle, &again, sizeof (handle));
    if (test_simulated ()) /* a real one may have them in one block */
        ck_assert_mem_ne (&handle, &another, sizeof (handle));
    test_ok (cudaFree (more));
    more = allocate (&again);
    if (test_simulated ())
        ck_assert_mem_ne (&again, &another, sizeof (again));
    test_ok (cudaFree (more));
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (what_is_opened_twice_is_closed_twice)
{
    struct other_answer its;
    char *memory, *again;

    start (NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    ask (OTHER_WRITES, 6, NULL);
    memory = open_it (&its.handle);
    again = open_it (&its.handle);
    ck_assert_ptr_eq (memory, again);
    test_ok (cudaIpcCloseMemHandle (memory));
    ck_assert_int_eq (byte_at (memory), 6);
    test_ok (cudaIpcCloseMemHandle (memory));
    again = open_it (&its.handle);
    ck_assert_int_eq (byte_at (again), 6);
    test_ok (cudaIpcCloseMemHandle (again));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

START_TEST (only_memory_of_cudaMalloc_has_a_handle)
{
    cudaError_t (*driver_alloc) (void **, size_t), (*driver_free) (void *);
    cudaStream_t stream = test_stream ();
    cudaIpcMemHandle_t handle;
    void *memory;
    char host;

    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, &host));
    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, NULL));
    test_ok (cudaMallocHost (&memory, 16));
    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, memory));
    test_ok (cudaFreeHost (memory));
    test_ok (cudaMallocManaged (&memory, 16, cudaMemAttachGlobal));
    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, memory));
    test_ok (cudaFree (memory));
    test_ok (cudaMallocAsync (&memory, 16, stream));
    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, memory));
    test_ok (cudaFreeAsync (memory, stream));
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaStreamDestroy (stream));
    if (!test_simulated ())
        return;
    *(void **) &driver_alloc = dlsym (RTLD_DEFAULT, "sim_memory_alloc");
    *(void **) &driver_free = dlsym (RTLD_DEFAULT, "sim_memory_free");
    test_ok (driver_alloc (&memory, 16));
    test_gives (cudaErrorInvalidValue, cudaIpcGetMemHandle (&handle, memory));
    test_ok (driver_free (memory));
}
END_TEST

START_TEST (opens_are_checked)
{
    struct other_answer its;
    cudaIpcMemHandle_t none;
    void *memory;

    start (NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    memset (&none, 0, sizeof (none));
    test_gives (cudaErrorInvalidValue, cudaIpcOpenMemHandle (&memory, its.handle, 0));
    test_gives (cudaErrorInvalidValue, cudaIpcOpenMemHandle (NULL, its.handle, 1));
    test_gives (cudaErrorInvalidValue, cudaIpcOpenMemHandle (&memory, none, 1));
    test_gives (cudaErrorInvalidValue, cudaIpcCloseMemHandle (NULL));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

/* Of memory that was freed, and of a process that has ended. */
START_TEST (old_handles_cannot_be_opened)
{
    struct other_answer its;
    void *memory;

    if (!test_simulated ())
        return;
    start (NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    ask (OTHER_FREES, 0, NULL);
    test_gives (cudaErrorInvalidResourceHandle, cudaIpcOpenMemHandle (&memory, its.handle, 1));
    its = ask (OTHER_MALLOCS, 100, NULL);
    other_end (&other, 1);
    test_gives (cudaErrorInvalidResourceHandle, cudaIpcOpenMemHandle (&memory, its.handle, 1));
}
END_TEST

/* Nobody can know in time that another process dies. */
START_TEST (memory_outlives_an_owner_that_was_killed)
{
    struct other_answer its;
    char *memory;

    if (!test_simulated ())
        return;
    start (NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    ask (OTHER_WRITES, 7, NULL);
    memory = open_it (&its.handle);
    other_end (&other, 1);
    ck_assert_int_eq (byte_at (memory), 7);
    test_ok (cudaIpcCloseMemHandle (memory));
}
END_TEST

/* So it is not one that has it open. */
START_TEST (an_owner_may_free_when_the_other_was_killed)
{
    cudaIpcMemHandle_t handle;
    char *memory;

    start (NULL);
    memory = allocate (&handle);
    ask (OTHER_OPENS, 0, &handle);
    other_end (&other, 1);
    test_ok (cudaFree (memory));
}
END_TEST

/* The owner ends without a free, for which it would have to wait. */
START_TEST (what_others_have_opened_is_no_leak)
{
    cudaIpcMemHandle_t handle;

    start (NULL);
    allocate (&handle);
    ask (OTHER_OPENS, 0, &handle);
    ask (OTHER_CLOSES, 0, NULL);
}
END_TEST

/* Devices are numbered by each process; memory of one that it does not see is the current one's.
 */
START_TEST (devices_have_other_numbers_elsewhere)
{
    struct cudaPointerAttributes about;
    struct other_answer its;
    char *memory;

    if (!test_simulated ())
        return;
    start ("2,0");
    its = ask (OTHER_MALLOCS, 100, NULL);
    ask (OTHER_WRITES, 8, NULL);
    setenv ("CUDA_VISIBLE_DEVICES", "1,2", 1);
    memory = open_it (&its.handle);
    test_ok (cudaPointerGetAttributes (&about, memory));
    ck_assert_int_eq (about.device, 1);
    test_ok (cudaIpcCloseMemHandle (memory));
    ask (OTHER_FREES, 0, NULL);
    ask (OTHER_SETS, 1, NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    ask (OTHER_WRITES, 9, NULL);
    memory = open_it (&its.handle);
    test_ok (cudaPointerGetAttributes (&about, memory));
    ck_assert_int_eq (about.device, 0);
    ck_assert_int_eq (byte_at (memory), 9);
    test_ok (cudaIpcCloseMemHandle (memory));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

/* What is open here was allocated there. */
START_TEST (memory_counts_where_it_was_allocated)
{
    struct other_answer its;
    size_t before, left, total;
    void *memory;

    if (!test_simulated ())
        return;
    start (NULL);
    its = ask (OTHER_MALLOCS, 1 << 20, NULL);
    test_ok (cudaMemGetInfo (&before, &total));
    memory = open_it (&its.handle);
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, before);
    test_ok (cudaIpcCloseMemHandle (memory));
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, before);
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

static void *close_it (void *memory)
{
    return (void *) (uintptr_t) cudaIpcCloseMemHandle (memory);
}

START_TEST (a_close_waits_for_what_is_queued)
{
    static struct test_gate gate;
    struct other_answer its;
    cudaStream_t stream;
    pthread_t closing;
    void *memory, *result;

    if (!test_simulated ())
        return;
    start (NULL);
    its = ask (OTHER_MALLOCS, 100, NULL);
    memory = open_it (&its.handle);
    stream = test_stream ();
    test_close (&gate, stream);
    test_ok (cudaMemsetAsync (memory, 1, 100, stream));
    ck_assert (!pthread_create (&closing, NULL, close_it, memory));
    usleep (200000);
    ck_assert (pthread_tryjoin_np (closing, &result) == EBUSY);
    test_open (&gate);
    ck_assert (!pthread_join (closing, &result) && !result);
    test_ok (cudaStreamDestroy (stream));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

START_TEST (opens_fail_as_asked)
{
    struct other_answer its;
    void *memory;

    if (!test_simulated ())
        return;
    start (NULL);
    setenv ("SIM_FAULT", "cudaIpcOpenMemHandle", 1);
    its = ask (OTHER_MALLOCS, 100, NULL);
    test_gives (cudaErrorMapBufferObjectFailed, cudaIpcOpenMemHandle (&memory, its.handle, 1));
    memory = open_it (&its.handle);
    test_ok (cudaIpcCloseMemHandle (memory));
    ask (OTHER_FREES, 0, NULL);
    end ();
}
END_TEST

TEST_CASE (test_ipc, "ipc", both_have_the_same_memory, opened_memory_is_memory_of_a_device,
           a_handle_is_of_an_allocation, what_is_opened_twice_is_closed_twice,
           only_memory_of_cudaMalloc_has_a_handle, opens_are_checked,
           old_handles_cannot_be_opened, memory_outlives_an_owner_that_was_killed,
           an_owner_may_free_when_the_other_was_killed, what_others_have_opened_is_no_leak,
           devices_have_other_numbers_elsewhere, memory_counts_where_it_was_allocated,
           a_close_waits_for_what_is_queued, opens_fail_as_asked)
