/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stream - order within and between streams, the default streams among them. */
#include <sys/wait.h>

#include "test.h"

START_TEST (calls_return_before_their_work_is_done)
{
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();
    int done = 0;

    test_close (&gate, stream);
    test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    ck_assert_int_eq (test_counted (&done), 0);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (test_counted (&done), 1);
    test_ok (cudaStreamQuery (stream));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (streams_do_not_wait_for_each_other)
{
    static struct test_gate gate;
    cudaStream_t held = test_stream (), idle = test_stream ();

    test_close (&gate, held);
    test_ok (cudaStreamQuery (idle));
    test_ok (cudaStreamSynchronize (idle));
    test_open (&gate);
    test_ok (cudaDeviceSynchronize ());
    test_ok (cudaStreamQuery (held));
    test_ok (cudaStreamDestroy (held));
    test_ok (cudaStreamDestroy (idle));
}
END_TEST

START_TEST (what_is_queued_is_done_after_a_destroy)
{
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();
    int done = 0;

    test_close (&gate, stream);
    for (int i = 0; i < 10; i++)
        test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_ok (cudaStreamDestroy (stream));
    test_open (&gate);
    test_ok (cudaDeviceSynchronize ());
    ck_assert_int_eq (test_counted (&done), 10);
}
END_TEST

/* What is in the legacy stream comes after what is in blocking streams, and before the rest. */
START_TEST (the_legacy_stream_waits_and_is_waited_for)
{
    static struct test_gate gate;
    cudaStream_t one, other, free_one = test_stream ();
    char *memory;

    test_ok (cudaMalloc ((void **) &memory, 3));
    test_ok (cudaStreamCreate (&one));
    test_ok (cudaStreamCreate (&other));
    test_close (&gate, one);
    test_ok (cudaMemsetAsync (memory, 1, 1, 0));
    test_ok (cudaMemsetAsync (memory + 1, 1, 1, other));
    test_ok (cudaMemsetAsync (memory + 2, 1, 1, free_one));
    test_ok (cudaStreamSynchronize (free_one)); /* non-blocking: not held up */
    usleep (20000);
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamLegacy));
    test_gives (cudaErrorNotReady, cudaStreamQuery (other));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (other));
    test_ok (cudaStreamQuery (cudaStreamLegacy));
    test_ok (cudaFree (memory));
    test_ok (cudaStreamDestroy (one));
    test_ok (cudaStreamDestroy (other));
    test_ok (cudaStreamDestroy (free_one));
}
END_TEST

START_TEST (the_legacy_stream_is_done_when_blocking_ones_are)
{
    static struct test_gate gate;
    cudaStream_t stream;
    int done = 0;

    test_ok (cudaStreamCreate (&stream));
    test_close (&gate, stream);
    test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_gives (cudaErrorNotReady, cudaStreamQuery (0));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (0));
    ck_assert_int_eq (test_counted (&done), 1);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (devices_have_legacy_streams_of_their_own)
{
    static struct test_gate gate;

    if (!test_has_devices (2))
        return;
    test_close (&gate, cudaStreamLegacy);
    test_ok (cudaSetDevice (1));
    test_ok (cudaStreamSynchronize (cudaStreamLegacy));
    test_ok (cudaDeviceSynchronize ());
    test_ok (cudaSetDevice (0));
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamLegacy));
    test_open (&gate);
    test_ok (cudaDeviceSynchronize ());
}
END_TEST

static void *use_own_stream (void *memory)
{
    test_ok (cudaMemsetAsync (memory, 1, 1, cudaStreamPerThread));
    test_ok (cudaStreamSynchronize (cudaStreamPerThread));
    return NULL;
}

START_TEST (each_thread_has_a_stream)
{
    static struct test_gate gate;
    pthread_t thread;
    void *memory;

    test_ok (cudaMalloc (&memory, 1));
    test_close (&gate, cudaStreamPerThread);
    ck_assert_int_eq (pthread_create (&thread, NULL, use_own_stream, memory), 0);
    pthread_join (thread, NULL);
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamPerThread));
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamLegacy)); /* it blocks */
    test_open (&gate);
    test_ok (cudaStreamSynchronize (cudaStreamLegacy));
    test_ok (cudaStreamQuery (cudaStreamPerThread));
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (host_functions_run_one_at_a_time)
{
    static struct test_gate gate;
    cudaStream_t one = test_stream (), other = test_stream ();
    int done = 0;

    test_close (&gate, one);
    usleep (20000);
    test_ok (cudaLaunchHostFunc (other, test_count, &done));
    usleep (20000);
    ck_assert_int_eq (test_counted (&done), 0);
    test_gives (cudaErrorNotReady, cudaStreamQuery (other));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (other));
    ck_assert_int_eq (test_counted (&done), 1);
    test_ok (cudaStreamDestroy (one));
    test_ok (cudaStreamDestroy (other));
}
END_TEST

START_TEST (handles_are_checked)
{
    cudaStream_t stream = test_stream ();
    unsigned flags;
    int number = 0;

    if (test_simulated ()) /* the real one trusts its caller */
        test_gives (cudaErrorInvalidResourceHandle, cudaStreamQuery ((cudaStream_t) &number));
    test_gives (cudaErrorInvalidResourceHandle, cudaStreamDestroy (cudaStreamLegacy));
    test_gives (cudaErrorInvalidResourceHandle, cudaStreamDestroy (NULL));
    test_gives (cudaErrorInvalidValue, cudaStreamCreate (NULL));
    test_gives (cudaErrorInvalidValue, cudaStreamCreateWithFlags (&stream, 8));
    test_gives (cudaErrorInvalidValue, cudaLaunchHostFunc (stream, NULL, NULL));
    test_ok (cudaStreamGetFlags (stream, &flags));
    ck_assert_uint_eq (flags, cudaStreamNonBlocking);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

#if CUDART_VERSION >= 12080
START_TEST (streams_know_their_device_and_number)
{
    unsigned long long id, other;
    cudaStream_t stream;
    int device;

    if (!test_has_devices (4))
        return;
    test_ok (cudaSetDevice (3));
    stream = test_stream ();
    test_ok (cudaSetDevice (0));
    test_ok (cudaStreamGetDevice (stream, &device));
    ck_assert_int_eq (device, 3);
    test_ok (cudaStreamGetDevice (0, &device));
    ck_assert_int_eq (device, 0);
    test_ok (cudaStreamGetId (stream, &id));
    test_ok (cudaStreamGetId (cudaStreamLegacy, &other));
    ck_assert (id != other);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST
#endif

/* A library's own work: of the simulated NCCL. */
static void add (void *arg)
{
    struct {
        int *to;
        int value;
    } *sum = arg;

    *sum->to += sum->value;
}

START_TEST (the_engine_queues_work_with_a_copy_of_its_argument)
{
    cudaError_t (*push) (cudaStream_t, void (*) (void *), const void *, size_t);
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();
    int total = 0;
    struct {
        int *to;
        int value;
    } sum = {&total, 5};

    if (!test_simulated ())
        return;
    *(void **) &push = dlsym (RTLD_DEFAULT, "sim_push");
    test_close (&gate, stream);
    test_ok (push (stream, add, &sum, sizeof (sum)));
    sum.value = 100;
    ck_assert_int_eq (total, 0);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (total, 5);
    test_gives (cudaErrorInvalidResourceHandle,
                push ((cudaStream_t) &total, add, &sum, sizeof (sum)));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (many_streams_come_and_go)
{
    int done = 0;

    for (int i = 0; i < 40000; i++) { /* more than there are slots */
        cudaStream_t stream;
        test_gave (cudaStreamCreate (&stream), cudaSuccess, "create");
        if (i % 100 == 0)
            test_ok (cudaLaunchHostFunc (stream, test_count, &done));
        test_gave (cudaStreamDestroy (stream), cudaSuccess, "destroy");
    }
    test_ok (cudaDeviceSynchronize ());
    ck_assert_int_eq (test_counted (&done), 400);
}
END_TEST

/* A child of a process that uses CUDA may not, and ends as if it had never heard of it. */
START_TEST (children_are_left_alone)
{
    cudaStream_t stream = test_stream ();
    int status, count;
    pid_t child;

    if (!test_simulated ())
        return;
    child = fork ();
    if (!child) {
        bool refused = cudaGetDeviceCount (&count) == cudaErrorInitializationError;
        exit (refused ? 5 : 6);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFEXITED (status) && WEXITSTATUS (status) == 5);
    ck_assert_int_eq (system ("true"), 0);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (work_can_be_made_slow)
{
    cudaEvent_t start, stop;
    float ms;

    if (!test_simulated ())
        return;
    setenv ("SIM_DELAY_US", "5000", 1);
    test_ok (cudaEventCreate (&start));
    test_ok (cudaEventCreate (&stop));
    test_ok (cudaEventRecord (start, 0));
    test_ok (cudaEventRecord (stop, 0));
    test_ok (cudaEventSynchronize (stop));
    test_ok (cudaEventElapsedTime (&ms, start, stop));
    ck_assert (ms > 4.9f);
    test_ok (cudaEventDestroy (start));
    test_ok (cudaEventDestroy (stop));
}
END_TEST

TEST_CASE (test_stream_case, "stream", calls_return_before_their_work_is_done,
           streams_do_not_wait_for_each_other, what_is_queued_is_done_after_a_destroy,
           the_legacy_stream_waits_and_is_waited_for,
           the_legacy_stream_is_done_when_blocking_ones_are,
           devices_have_legacy_streams_of_their_own, each_thread_has_a_stream,
           host_functions_run_one_at_a_time, handles_are_checked,
#if CUDART_VERSION >= 12080
           streams_know_their_device_and_number,
#endif
           the_engine_queues_work_with_a_copy_of_its_argument, many_streams_come_and_go,
           work_can_be_made_slow, children_are_left_alone)
