/* SPDX-License-Identifier: BSD-3-Clause */
/* test_launch - kernels that nvcc compiled, run by their twins. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "test.h"

static float *make_array (cudaStream_t stream)
{
    static const float values[4] = {1, 2, 3, 4};
    float *x;

    test_ok (cudaMalloc ((void **) &x, sizeof (values)));
    test_ok (cudaMemcpyAsync (x, values, sizeof (values), cudaMemcpyDefault, stream));
    return x;
}

static void check_array (const float *x, float first, float last)
{
    float values[4];

    test_ok (cudaMemcpy (values, x, sizeof (values), cudaMemcpyDeviceToHost));
    ck_assert (values[0] == first && values[3] == last);
}

START_TEST (arguments_are_copied_at_the_launch)
{
    struct test_table table = {4, {10, 20, 30, 40}};
    static struct test_gate gate;
    cudaStream_t stream = test_stream ();
    float *x = make_array (stream);

    test_ok (test_scale (NULL, 1, (struct test_table){0, {0}}, stream)); /* loads its code */
    test_close (&gate, stream);
    test_ok (test_scale (x, 2, table, stream));
    table.at[0] = 1000;
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    cudaGetLastError ();
    test_ok (test_scale (x, 1, table, stream));
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    check_array (x, 1012, 88);
    test_ok (cudaFree (x));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (shapes_are_checked)
{
    const dim3 one = {1, 1, 1}, none = {0, 1, 1}, wide = {1025, 1, 1}, flat = {1, 65536, 1};
    float *x = make_array (0);

    test_ok (test_scale_shaped (x, one, one, 0, 0));
    check_array (x, 3, 12);
    test_gives (cudaErrorInvalidValue, test_scale_shaped (x, none, one, 0, 0));
    test_gives (cudaErrorInvalidValue, test_scale_shaped (x, one, none, 0, 0));
    test_gives (cudaErrorInvalidValue, test_scale_shaped (x, one, wide, 0, 0));
    if (test_simulated ()) /* not asked of a real one yet */
        test_gives (cudaErrorInvalidConfiguration, test_scale_shaped (x, flat, one, 0, 0));
    test_gives (cudaErrorInvalidValue, test_scale_shaped (x, one, one, 1 << 20, 0));
    test_gives (cudaErrorInvalidValue, cudaGetLastError ());
    check_array (x, 3, 12);
    test_ok (cudaFree (x));
}
END_TEST

START_TEST (launches_are_captured)
{
    struct test_table table = {4, {0, 0, 0, 1}};
    cudaStream_t stream = test_stream ();
    float *x = make_array (stream);
    cudaGraphExec_t exec;
    cudaGraph_t graph;

    test_ok (cudaStreamBeginCapture (stream, cudaStreamCaptureModeThreadLocal));
    test_ok (test_scale (x, 3, table, stream));
    test_ok (cudaStreamEndCapture (stream, &graph));
    check_array (x, 1, 4);
    test_ok (cudaGraphInstantiate (&exec, graph, 0));
    memset (&table, 0, sizeof (table));
    test_ok (cudaGraphLaunch (exec, stream));
    test_ok (cudaGraphLaunch (exec, stream));
    test_ok (cudaStreamSynchronize (stream));
    check_array (x, 9, 40);
    test_ok (cudaGraphExecDestroy (exec));
    test_ok (cudaGraphDestroy (graph));
    test_ok (cudaFree (x));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (a_launch_without_a_device_fails)
{
    if (!test_simulated ())
        return;
    setenv ("SIM_GPUS", "0", 1);
    test_gives (cudaErrorNoDevice, test_scale (NULL, 1, (struct test_table){0, {0}}, 0));
}
END_TEST

struct launcher {
    cudaStream_t stream;
    float *x;
    atomic_bool launched;
};

static void *launch_one (void *argument)
{
    struct launcher *l = argument;

    test_ok (test_scale (l->x, 1, (struct test_table){0, {0}}, l->stream));
    atomic_store (&l->launched, true);
    return NULL;
}

/* A launch that waits while [gate] is shut, and no longer. */
static void check_waits (struct test_gate *gate, struct launcher *l)
{
    pthread_t thread;

    ck_assert_int_eq (pthread_create (&thread, NULL, launch_one, l), 0);
    usleep (20000);
    ck_assert (!atomic_load (&l->launched));
    test_open (gate);
    pthread_join (thread, NULL);
    ck_assert (atomic_load (&l->launched));
    test_ok (cudaDeviceSynchronize ());
}

/* To load a kernel is to wait for what runs, in whatever stream. */
START_TEST (the_first_launch_waits_for_the_device)
{
    static struct test_gate gate;
    cudaStream_t other = test_stream ();
    struct launcher l = {.stream = test_stream ()};

    if (!test_simulated ())
        return;
    l.x = make_array (l.stream);
    test_close (&gate, other);
    check_waits (&gate, &l);
    test_ok (cudaFree (l.x));
    test_ok (cudaStreamDestroy (l.stream));
    test_ok (cudaStreamDestroy (other));
}
END_TEST

START_TEST (a_launch_waits_for_room)
{
    static struct test_gate gate;
    struct launcher l = {.stream = test_stream ()};
    cudaEvent_t event;

    if (!test_simulated ())
        return;
    setenv ("SIM_LAUNCH_QUEUE", "50", 1);
    l.x = make_array (l.stream);
    test_ok (test_scale (NULL, 1, (struct test_table){0, {0}}, l.stream));
    test_ok (cudaStreamSynchronize (l.stream));
    test_ok (cudaEventCreate (&event));
    test_close (&gate, l.stream);
    for (int i = 0; i < 49; i++)
        test_ok (cudaEventRecord (event, l.stream));
    check_waits (&gate, &l);
    test_ok (cudaEventDestroy (event));
    test_ok (cudaFree (l.x));
    test_ok (cudaStreamDestroy (l.stream));
}
END_TEST

TEST_CASE (test_launch, "launch", arguments_are_copied_at_the_launch, shapes_are_checked,
           launches_are_captured, a_launch_without_a_device_fails,
           the_first_launch_waits_for_the_device, a_launch_waits_for_room)
