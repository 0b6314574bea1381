/* SPDX-License-Identifier: BSD-3-Clause */
/* test_capture - work that goes into a graph instead, and what is forbidden meanwhile. */
#include "test.h"

static void begin (cudaStream_t stream)
{
    test_ok (cudaStreamBeginCapture (stream, cudaStreamCaptureModeGlobal));
}

/* Ends the capture of [stream], which must be broken. */
static void end_one_broken (cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status;
    cudaGraph_t graph = (cudaGraph_t) &status;
    int done = 0;

    test_ok (cudaStreamIsCapturing (stream, &status));
    ck_assert_int_eq (status, cudaStreamCaptureStatusInvalidated);
    test_gives (cudaErrorStreamCaptureInvalidated,
                cudaLaunchHostFunc (stream, test_count, &done));
    test_gives (cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture (stream, &graph));
    ck_assert_ptr_null (graph);
}

static void end_broken (cudaStream_t stream)
{
    end_one_broken (stream);
    test_ok (cudaStreamSynchronize (stream)); /* as before */
}

/* Ends the capture of [stream], launches what was captured, and waits for it. */
static void end_and_launch (cudaStream_t stream, int launches, size_t nodes)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    size_t count = 0;

    test_ok (cudaStreamEndCapture (stream, &graph));
    test_ok (cudaGraphGetNodes (graph, NULL, &count));
    ck_assert_uint_eq (count, nodes);
    test_ok (cudaGraphInstantiate (&exec, graph, 0));
    test_ok (cudaGraphDestroy (graph)); /* the executable one has its own */
    test_ok (cudaGraphUpload (exec, stream));
    for (int i = 0; i < launches; i++)
        test_ok (cudaGraphLaunch (exec, stream));
    test_ok (cudaGraphExecDestroy (exec));
    test_ok (cudaStreamSynchronize (stream));
}

START_TEST (work_is_done_with_each_launch_only)
{
    cudaStream_t stream = test_stream ();
    int *counted, host = 0, seen = 0;

    test_ok (cudaMalloc ((void **) &counted, sizeof (int)));
    begin (stream);
    test_ok (cudaMemsetAsync (counted, 0, sizeof (int), stream));
    test_ok (cudaMemcpyAsync (&seen, counted, sizeof (int), cudaMemcpyDeviceToHost, stream));
    test_ok (cudaLaunchHostFunc (stream, test_count, &host));
    usleep (5000);
    ck_assert_int_eq (test_counted (&host), 0);
    seen = 9;
    end_and_launch (stream, 3, 3);
    ck_assert_int_eq (test_counted (&host), 3);
    ck_assert_int_eq (seen, 0);
    test_ok (cudaFree (counted));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (what_a_stream_says_of_its_capture)
{
    bool (*is_capturing) (cudaStream_t);
    enum cudaStreamCaptureStatus status;
    unsigned long long id = 0, other = 0;
    cudaStream_t stream = test_stream ();

    *(void **) &is_capturing = dlsym (RTLD_DEFAULT, "sim_is_capturing");
    test_ok (cudaStreamIsCapturing (stream, &status));
    ck_assert_int_eq (status, cudaStreamCaptureStatusNone);
    ck_assert (!is_capturing || !is_capturing (stream));
    for (int i = 0; i < 2; i++) {
        begin (stream);
        ck_assert (!is_capturing || is_capturing (stream)); /* no real runtime has it */
        test_gives (cudaErrorIllegalState,
                    cudaStreamBeginCapture (stream, cudaStreamCaptureModeGlobal));
#if CUDART_VERSION >= 13000
        test_ok (cudaStreamGetCaptureInfo (stream, &status, &id, NULL, NULL, NULL, NULL));
        ck_assert (id != other);
        other = id;
#endif
        test_ok (cudaStreamIsCapturing (stream, &status));
        ck_assert_int_eq (status, cudaStreamCaptureStatusActive);
        end_and_launch (stream, 1, 0);
    }
    test_gives (cudaErrorIllegalState, cudaStreamEndCapture (stream, &(cudaGraph_t){NULL}));
    test_gives (cudaErrorStreamCaptureUnsupported,
                cudaStreamBeginCapture (0, cudaStreamCaptureModeGlobal));
    test_gives (cudaErrorInvalidValue, cudaStreamBeginCapture (stream, 17));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (other_streams_join_by_events)
{
    cudaStream_t origin = test_stream (), fork = test_stream ();
    cudaEvent_t forked = test_event (), joined = test_event ();
    enum cudaStreamCaptureStatus status;
    int first = 0, second = 0;

    begin (origin);
    test_ok (cudaLaunchHostFunc (origin, test_count, &first));
    test_ok (cudaEventRecord (forked, origin));
    test_ok (cudaStreamWaitEvent (fork, forked, 0));
    test_ok (cudaStreamIsCapturing (fork, &status));
    ck_assert_int_eq (status, cudaStreamCaptureStatusActive);
    test_ok (cudaLaunchHostFunc (fork, test_count, &second));
    test_ok (cudaLaunchHostFunc (origin, test_count, &first));
    test_ok (cudaEventRecord (joined, fork));
    test_ok (cudaStreamWaitEvent (origin, joined, 0));
    end_and_launch (origin, 2, 3);
    ck_assert_int_eq (test_counted (&first), 4);
    ck_assert_int_eq (test_counted (&second), 2);
    test_ok (cudaStreamSynchronize (fork)); /* released */
    test_ok (cudaEventDestroy (forked));
    test_ok (cudaEventDestroy (joined));
    test_ok (cudaStreamDestroy (origin));
    test_ok (cudaStreamDestroy (fork));
}
END_TEST

START_TEST (a_fork_must_be_joined)
{
    cudaStream_t origin = test_stream (), fork = test_stream ();
    cudaEvent_t forked = test_event ();
    cudaGraph_t graph;
    int done = 0;

    begin (origin);
    test_ok (cudaEventRecord (forked, origin));
    test_ok (cudaStreamWaitEvent (fork, forked, 0));
    test_ok (cudaLaunchHostFunc (fork, test_count, &done));
    test_gives (cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture (origin, &graph));
    ck_assert_ptr_null (graph);
    begin (origin);
    test_ok (cudaEventRecord (forked, origin));
    test_ok (cudaStreamWaitEvent (fork, forked, 0));
    test_gives (cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture (fork, &graph));
    end_broken (origin);
    test_ok (cudaStreamSynchronize (fork));
    test_ok (cudaEventDestroy (forked));
    test_ok (cudaStreamDestroy (origin));
    test_ok (cudaStreamDestroy (fork));
}
END_TEST

START_TEST (captures_are_closed_to_what_is_outside)
{
    cudaStream_t one = test_stream (), other = test_stream ();
    cudaEvent_t outside = test_event (), inside = test_event ();

    test_ok (cudaEventRecord (outside, other));
    begin (one);
    test_gives (cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent (one, outside, 0));
    end_broken (one);
    begin (one);
    begin (other);
    test_ok (cudaEventRecord (inside, one));
    test_gives (cudaErrorStreamCaptureMerge, cudaStreamWaitEvent (other, inside, 0));
    end_one_broken (one);
    end_broken (other);
    test_gives (cudaErrorInvalidValue, cudaStreamWaitEvent (one, inside, 0));
    test_ok (cudaEventDestroy (outside));
    test_ok (cudaEventDestroy (inside));
    test_ok (cudaStreamDestroy (one));
    test_ok (cudaStreamDestroy (other));
}
END_TEST

/* What asks whether captured work is done: in any mode. */
START_TEST (captured_work_has_no_state)
{
    cudaStream_t stream = test_stream ();
    cudaEvent_t event = test_event ();
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;

    test_ok (cudaThreadExchangeStreamCaptureMode (&mode));
    ck_assert_int_eq (mode, cudaStreamCaptureModeGlobal);
    begin (stream);
    test_gives (cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize (stream));
    end_broken (stream);
    begin (stream);
    test_gives (cudaErrorStreamCaptureUnsupported, cudaStreamQuery (stream));
    end_broken (stream);
    begin (stream);
    test_gives (cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize ());
    end_broken (stream);
    begin (stream);
    test_ok (cudaEventRecord (event, stream));
    test_gives (cudaErrorCapturedEvent, cudaEventQuery (event));
    end_broken (stream);
    begin (stream);
    test_ok (cudaEventRecord (event, stream));
    test_gives (cudaErrorCapturedEvent, cudaEventSynchronize (event));
    end_broken (stream);
    test_ok (cudaEventRecord (event, stream));
    test_ok (cudaEventSynchronize (event));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (the_legacy_stream_is_closed_beside_blocking_ones)
{
    enum cudaStreamCaptureStatus status;
    cudaStream_t blocking;
    char *memory, byte = 0;
    int done = 0;

    test_ok (cudaMalloc ((void **) &memory, 1));
    test_ok (cudaStreamCreate (&blocking));
    begin (blocking);
    test_gives (cudaErrorStreamCaptureImplicit, cudaStreamIsCapturing (0, &status));
    test_ok (cudaStreamIsCapturing (blocking, &status));
    ck_assert_int_eq (status, cudaStreamCaptureStatusActive); /* asking breaks nothing */
    test_gives (cudaErrorStreamCaptureImplicit, cudaLaunchHostFunc (0, test_count, &done));
    end_broken (blocking);
    begin (blocking);
    test_gives (cudaErrorStreamCaptureImplicit,
                cudaMemcpy (memory, &byte, 1, cudaMemcpyHostToDevice));
    end_broken (blocking);
    ck_assert_int_eq (test_counted (&done), 0);
    test_ok (cudaFree (memory));
    test_ok (cudaStreamDestroy (blocking));
}
END_TEST

/* What this thread would do, and CUDA's answer: nothing of it is seen by a capture. */
static cudaError_t do_unsafe (int what)
{
    void *memory = NULL;
    cudaEvent_t event = test_event ();
    cudaStream_t other = test_stream ();
    cudaError_t error = cudaErrorUnknown;

    switch (what) {
    case 0: error = cudaMalloc (&memory, 1); break;
    case 1: error = cudaMallocHost (&memory, 1); break;
    case 2: error = cudaMallocManaged (&memory, 1, cudaMemAttachGlobal); break;
    case 3: error = cudaEventQuery (event); break;
    case 4: error = cudaEventSynchronize (event); break;
    case 5: error = cudaStreamQuery (other); break;
    case 6: error = cudaStreamSynchronize (other); break;
    }
    if (!error && what == 1)
        test_ok (cudaFreeHost (memory));
    else if (!error)
        test_ok (cudaFree (memory));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (other));
    return error;
}

START_TEST (unsafe_calls_break_a_capture)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream = test_stream ();

    for (int what = 0; what < 7; what++) {
        begin (stream);
        ck_assert_int_eq (do_unsafe (what), cudaErrorStreamCaptureUnsupported);
        end_broken (stream);
        test_ok (cudaThreadExchangeStreamCaptureMode (&mode)); /* this thread takes the blame */
        begin (stream);
        ck_assert_int_eq (do_unsafe (what), cudaSuccess);
        end_and_launch (stream, 0, 0);
        test_ok (cudaThreadExchangeStreamCaptureMode (&mode));
    }
    for (int what = 0; what < 7; what++) {
        test_ok (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
        ck_assert_int_eq (do_unsafe (what), cudaErrorStreamCaptureUnsupported);
        end_broken (stream);
        test_ok (cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed));
        ck_assert_int_eq (do_unsafe (what), cudaSuccess);
        end_and_launch (stream, 0, 0);
    }
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

struct visitor {
    enum cudaStreamCaptureMode mode;
    cudaError_t error;
};

static void *visit (void *arg)
{
    struct visitor *visitor = arg;

    test_ok (cudaThreadExchangeStreamCaptureMode (&visitor->mode));
    visitor->error = do_unsafe (3);
    return NULL;
}

/* An unsafe call of another thread with [mode], beside a capture begun with [capture]. */
static cudaError_t from_another_thread (enum cudaStreamCaptureMode capture,
                                        enum cudaStreamCaptureMode mode)
{
    struct visitor visitor = {mode, cudaErrorUnknown};
    enum cudaStreamCaptureStatus status;
    cudaStream_t stream = test_stream ();
    cudaGraph_t graph;
    pthread_t thread;

    test_ok (cudaStreamBeginCapture (stream, capture));
    ck_assert_int_eq (pthread_create (&thread, NULL, visit, &visitor), 0);
    pthread_join (thread, NULL);
    test_ok (cudaStreamIsCapturing (stream, &status));
    if (status == cudaStreamCaptureStatusActive) {
        test_ok (cudaStreamEndCapture (stream, &graph));
        test_ok (cudaGraphDestroy (graph));
        ck_assert_int_eq (visitor.error, cudaSuccess);
    } else {
        end_broken (stream);
    }
    test_ok (cudaStreamDestroy (stream));
    return visitor.error;
}

START_TEST (threads_disturb_global_captures_only)
{
    const enum cudaStreamCaptureMode global = cudaStreamCaptureModeGlobal,
                                     local = cudaStreamCaptureModeThreadLocal,
                                     relaxed = cudaStreamCaptureModeRelaxed;

    ck_assert_int_eq (from_another_thread (global, global), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq (from_another_thread (global, local), cudaSuccess);
    ck_assert_int_eq (from_another_thread (global, relaxed), cudaSuccess);
    ck_assert_int_eq (from_another_thread (local, global), cudaSuccess);
    ck_assert_int_eq (from_another_thread (relaxed, global), cudaSuccess);
}
END_TEST

static void *end_here (void *stream)
{
    cudaGraph_t graph;

    test_gives (cudaErrorStreamCaptureWrongThread, cudaStreamEndCapture (stream, &graph));
    return NULL;
}

START_TEST (the_thread_that_began_ends)
{
    cudaStream_t stream = test_stream ();
    pthread_t thread;

    begin (stream);
    ck_assert_int_eq (pthread_create (&thread, NULL, end_here, stream), 0);
    pthread_join (thread, NULL);
    test_gives (cudaErrorIllegalState, cudaStreamEndCapture (stream, &(cudaGraph_t){NULL}));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (launches_of_one_graph_follow_each_other)
{
    static struct test_gate gate;
    cudaStream_t stream = test_stream (), other = test_stream ();
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    int begun = 0;

    sem_init (&gate.open, 0, 0);
    begin (stream);
    test_ok (cudaLaunchHostFunc (stream, test_count, &begun));
    test_ok (cudaLaunchHostFunc (stream, test_stand, &gate));
    test_ok (cudaStreamEndCapture (stream, &graph));
    test_ok (cudaGraphInstantiateWithFlags (&exec, graph, 0));
    test_ok (cudaGraphLaunch (exec, stream));
    test_ok (cudaGraphLaunch (exec, other));
    usleep (20000);
    ck_assert_int_eq (test_counted (&begun), 1);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream)); /* the first, not the second */
    test_gives (cudaErrorNotReady, cudaStreamQuery (other));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (other));
    test_ok (cudaGraphExecDestroy (exec));
    test_ok (cudaGraphDestroy (graph));
    test_gives (cudaErrorInvalidValue, cudaGraphLaunch (NULL, stream));
    test_gives (cudaErrorInvalidValue, cudaGraphInstantiate (&exec, NULL, 0));
    test_ok (cudaStreamDestroy (stream));
    test_ok (cudaStreamDestroy (other));
}
END_TEST

START_TEST (no_graphs_within_graphs)
{
    cudaStream_t stream = test_stream ();
    cudaGraphExec_t inner;
    cudaGraph_t graph;
    int done = 0;

    begin (stream);
    test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_ok (cudaStreamEndCapture (stream, &graph));
    test_ok (cudaGraphInstantiate (&inner, graph, 0));
    begin (stream);
    test_gives (cudaErrorStreamCaptureUnsupported, cudaGraphLaunch (inner, stream));
    end_broken (stream);
    ck_assert_int_eq (test_counted (&done), 0);
    test_ok (cudaGraphExecDestroy (inner));
    test_ok (cudaGraphDestroy (graph));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

TEST_CASE (test_capture, "capture", work_is_done_with_each_launch_only,
           what_a_stream_says_of_its_capture, other_streams_join_by_events, a_fork_must_be_joined,
           captures_are_closed_to_what_is_outside, captured_work_has_no_state,
           the_legacy_stream_is_closed_beside_blocking_ones, unsafe_calls_break_a_capture,
           threads_disturb_global_captures_only, the_thread_that_began_ends,
           launches_of_one_graph_follow_each_other, no_graphs_within_graphs)
