/* SPDX-License-Identifier: BSD-3-Clause */
/* test_default - programs compiled with --default-stream per-thread: stream 0 is the thread's. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "test.h"

START_TEST (stream_0_is_the_threads)
{
    static struct test_gate gate;
    int done = 0;

    test_close (&gate, cudaStreamLegacy);
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamLegacy));
    test_ok (cudaLaunchHostFunc (0, test_count, &done)); /* it waits for the legacy stream */
    usleep (20000);
    ck_assert_int_eq (test_counted (&done), 0);
    test_gives (cudaErrorNotReady, cudaStreamQuery (0));
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamPerThread));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (0));
    ck_assert_int_eq (test_counted (&done), 1);
}
END_TEST

START_TEST (copies_are_in_it_too)
{
    static struct test_gate gate;
    char out = 5, in = 0, *memory;
    cudaEvent_t event = test_event ();

    test_ok (cudaMalloc ((void **) &memory, 1));
    test_ok (cudaMemcpy (memory, &out, 1, cudaMemcpyHostToDevice));
    test_close (&gate, 0);
    test_ok (cudaMemset (memory, 6, 1));
    test_ok (cudaMemsetAsync (memory, 7, 1, 0));
    test_ok (cudaEventRecord (event, 0));
    test_gives (cudaErrorNotReady, cudaEventQuery (event));
    test_open (&gate);
    test_ok (cudaMemcpy (&in, memory, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq (in, 7);
    test_ok (cudaStreamWaitEvent (0, event, 0));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaFree (memory));
}
END_TEST

START_TEST (it_can_be_captured)
{
    enum cudaStreamCaptureStatus status;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    int done = 0;

    test_ok (cudaStreamBeginCapture (0, cudaStreamCaptureModeGlobal));
    test_ok (cudaLaunchHostFunc (0, test_count, &done));
    test_ok (cudaStreamIsCapturing (cudaStreamPerThread, &status));
    ck_assert_int_eq (status, cudaStreamCaptureStatusActive);
    test_ok (cudaStreamEndCapture (0, &graph));
    test_ok (cudaGraphInstantiate (&exec, graph, 0));
    test_ok (cudaGraphLaunch (exec, 0));
    test_ok (cudaStreamSynchronize (0));
    ck_assert_int_eq (test_counted (&done), 1);
    test_ok (cudaGraphExecDestroy (exec));
    test_ok (cudaGraphDestroy (graph));
}
END_TEST

TEST_CASE (test_default, "default", stream_0_is_the_threads, copies_are_in_it_too,
           it_can_be_captured)
