/* SPDX-License-Identifier: BSD-3-Clause */
/* test_event - events, and the order that they make between streams. */
#include "test.h"

START_TEST (an_event_is_a_place_in_a_stream)
{
    static struct test_gate before, behind;
    cudaStream_t stream = test_stream ();
    cudaEvent_t event = test_event ();

    test_ok (cudaEventQuery (event)); /* never recorded: nothing to wait for */
    test_ok (cudaEventSynchronize (event));
    test_close (&before, stream);
    test_ok (cudaEventRecord (event, stream));
    test_close (&behind, stream);
    test_gives (cudaErrorNotReady, cudaEventQuery (event));
    test_open (&before);
    test_ok (cudaEventSynchronize (event));
    test_ok (cudaEventQuery (event));
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    test_open (&behind);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (a_stream_waits_for_the_record_made_before)
{
    static struct test_gate first, second;
    cudaStream_t from = test_stream (), to = test_stream ();
    cudaEvent_t event = test_event ();
    void *memory;

    test_ok (cudaMalloc (&memory, 1));
    test_close (&first, from);
    test_ok (cudaEventRecord (event, from));
    test_ok (cudaStreamWaitEvent (to, event, 0));
    test_ok (cudaMemsetAsync (memory, 1, 1, to));
    test_close (&second, from);
    test_ok (cudaEventRecord (event, from)); /* later than the wait: does not concern it */
    test_ok (cudaEventDestroy (event));      /* nor does this */
    test_gives (cudaErrorNotReady, cudaStreamQuery (to));
    test_open (&first);
    test_ok (cudaStreamSynchronize (to));
    test_gives (cudaErrorNotReady, cudaStreamQuery (from));
    test_open (&second);
    test_ok (cudaFree (memory));
    test_ok (cudaStreamDestroy (from));
    test_ok (cudaStreamDestroy (to));
}
END_TEST

START_TEST (waiting_for_an_event_never_recorded_is_nothing)
{
    cudaStream_t stream = test_stream ();
    cudaEvent_t event = test_event ();

    test_ok (cudaStreamWaitEvent (stream, event, 0));
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (streams_of_two_devices)
{
    static struct test_gate gate;
    cudaStream_t there, here;
    cudaEvent_t event;

    if (!test_has_devices (2))
        return;
    test_ok (cudaSetDevice (1));
    there = test_stream ();
    event = test_event ();
    test_ok (cudaSetDevice (0));
    here = test_stream ();
    test_close (&gate, there);
    test_ok (cudaEventRecord (event, there));
    test_ok (cudaStreamWaitEvent (here, event, 0));
    test_gives (cudaErrorNotReady, cudaEventQuery (event));
    test_gives (cudaErrorNotReady, cudaStreamQuery (here));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (here));
    test_ok (cudaEventQuery (event));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (here));
    test_ok (cudaStreamDestroy (there));
}
END_TEST

START_TEST (times)
{
    static struct test_gate gate;
    cudaEvent_t start, stop, plain = test_event ();
    cudaStream_t stream = test_stream ();
    float ms = -1;

    test_ok (cudaEventCreate (&start));
    test_ok (cudaEventCreate (&stop));
    test_gives (cudaErrorInvalidResourceHandle, cudaEventElapsedTime (&ms, start, stop));
    test_ok (cudaEventRecord (start, stream));
    test_ok (cudaEventSynchronize (start));
    test_close (&gate, stream);
    test_ok (cudaEventRecord (stop, stream));
    test_ok (cudaEventRecord (plain, stream));
    test_gives (cudaErrorNotReady, cudaEventElapsedTime (&ms, start, stop));
    usleep (2000);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaEventElapsedTime (&ms, start, stop));
    ck_assert (ms >= 2);
    test_gives (cudaErrorInvalidResourceHandle, cudaEventElapsedTime (&ms, start, plain));
    test_ok (cudaEventDestroy (start));
    test_ok (cudaEventDestroy (stop));
    test_ok (cudaEventDestroy (plain));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (handles_are_checked)
{
    cudaEvent_t event;

    test_gives (cudaErrorInvalidResourceHandle, cudaEventRecord (NULL, 0));
    test_gives (cudaErrorInvalidResourceHandle, cudaEventQuery (NULL));
    test_gives (cudaErrorInvalidResourceHandle, cudaEventDestroy (NULL));
    test_gives (cudaErrorInvalidResourceHandle, cudaStreamWaitEvent (0, NULL, 0));
    test_gives (cudaErrorInvalidValue, cudaEventCreateWithFlags (&event, 64));
    test_gives (cudaErrorInvalidValue, cudaEventCreateWithFlags (&event, cudaEventInterprocess));
    test_gives (cudaErrorInvalidValue, cudaEventCreateWithFlags (NULL, 0));
}
END_TEST

/* N.B. of both generations: an answer that is not ready is kept as the last error. */
START_TEST (the_last_error)
{
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();

    test_gives (cudaErrorInvalidDevice, cudaSetDevice (77));
    test_ok (cudaStreamQuery (stream)); /* success does not reset it */
    test_gives (cudaErrorInvalidDevice, cudaPeekAtLastError ());
    test_gives (cudaErrorInvalidDevice, cudaGetLastError ());
    test_ok (cudaGetLastError ());
    test_close (&gate, stream);
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    if (test_simulated ()) /* the real one does not keep this one, as of 13.0 */
        test_gives (cudaErrorNotReady, cudaGetLastError ());
    test_open (&gate);
    ck_assert_str_eq (cudaGetErrorName (cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
    ck_assert_str_eq (cudaGetErrorString (cudaErrorMemoryAllocation), "out of memory");
    ck_assert_str_eq (cudaGetErrorName (12345), "unrecognized error code");
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

TEST_CASE (test_event_case, "event", an_event_is_a_place_in_a_stream,
           a_stream_waits_for_the_record_made_before,
           waiting_for_an_event_never_recorded_is_nothing, streams_of_two_devices, times,
           handles_are_checked, the_last_error)
