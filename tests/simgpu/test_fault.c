/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fault - what SIM_FAULT makes happen, errors that stay, and what is counted. */
#include <sys/wait.h>

#include "test.h"

static void ask_for (const char *faults)
{
    ck_assert_int_eq (setenv ("SIM_FAULT", faults, 1), 0);
}

START_TEST (the_nth_call_fails)
{
    void *memory[2];

    if (!test_simulated ())
        return;
    ask_for ("cudaMalloc#2,cudaSetDevice=46");
    test_ok (cudaMalloc (&memory[0], 8));
    test_gives (cudaErrorMemoryAllocation, cudaMalloc (&memory[1], 8));
    test_ok (cudaMalloc (&memory[1], 8));
    test_gives (cudaErrorDevicesUnavailable, cudaSetDevice (0));
    test_ok (cudaSetDevice (0));
    test_ok (cudaFree (memory[0]));
    test_ok (cudaFree (memory[1]));
}
END_TEST

START_TEST (all_calls_from_the_nth_on_fail)
{
    cudaEvent_t event;

    if (!test_simulated ())
        return;
    ask_for ("cudaEventCreateWithFlags#2+=2");
    test_ok (cudaEventCreateWithFlags (&event, 0));
    test_ok (cudaEventDestroy (event));
    for (int i = 0; i < 3; i++)
        test_gives (cudaErrorMemoryAllocation, cudaEventCreateWithFlags (&event, 0));
}
END_TEST

START_TEST (faults_are_of_a_rank)
{
    int least, greatest;

    if (!test_simulated ())
        return;
    setenv ("PMIX_RANK", "3", 1);
    ask_for ("cudaDeviceGetStreamPriorityRange@2=5,cudaDeviceGetStreamPriorityRange#2@3=6");
    test_ok (cudaDeviceGetStreamPriorityRange (&least, &greatest));
    test_gives (6, cudaDeviceGetStreamPriorityRange (&least, &greatest));
}
END_TEST

START_TEST (kernels_fail_at_once)
{
    struct test_table none = {0, {0}};
    cudaStream_t stream;

    if (!test_simulated ())
        return;
    ask_for ("cudaLaunchKernel=701");
    stream = test_stream ();
    test_gives (cudaErrorLaunchOutOfResources, test_scale (NULL, 1, none, stream));
    test_ok (test_scale (NULL, 1, none, stream));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

/* The call works; when its turn comes in the stream, the device fails, and stays so. */
START_TEST (late_errors_stay)
{
    static struct test_gate gate;
    cudaStream_t stream, other;
    int done = 0;

    if (!test_simulated ())
        return;
    ask_for ("cudaLaunchHostFunc#2=late");
    stream = test_stream ();
    test_close (&gate, stream);
    test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_ok (cudaGetLastError ());
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    test_open (&gate);
    test_gives (cudaErrorLaunchFailure, cudaStreamSynchronize (stream));
    test_gives (cudaErrorLaunchFailure, cudaStreamCreate (&other));
    for (int i = 0; i < 2; i++) {
        test_gives (cudaErrorLaunchFailure, cudaGetLastError ());
        test_gives (cudaErrorLaunchFailure, cudaStreamQuery (stream));
    }
    usleep (20000);
    ck_assert_int_eq (test_counted (&done), 0); /* what was behind is dropped */
    test_ok (cudaSetDevice (1));                /* another device still works */
    test_ok (cudaStreamCreate (&other));
    test_ok (cudaStreamDestroy (other));
}
END_TEST

START_TEST (late_errors_without_a_stream)
{
    void *memory;

    if (!test_simulated ())
        return;
    ask_for ("cudaMalloc=late");
    test_ok (cudaMalloc (&memory, 1));
    test_gives (cudaErrorLaunchFailure, cudaDeviceSynchronize ());
}
END_TEST

START_TEST (stalled_work_holds_its_stream)
{
    cudaStream_t stream, other;
    cudaEvent_t event;

    if (!test_simulated ())
        return;
    ask_for ("cudaEventRecord=stall");
    stream = test_stream ();
    other = test_stream ();
    event = test_event ();
    test_ok (cudaEventRecord (event, stream));
    test_ok (cudaStreamSynchronize (other));
    usleep (10000);
    test_gives (cudaErrorNotReady, cudaEventQuery (event));
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (other));
    test_ok (cudaStreamDestroy (stream)); /* the process ends all the same */
}
END_TEST

START_TEST (stalled_calls_do_not_return)
{
    int status;
    pid_t child = fork ();

    if (!test_simulated ())
        return;
    if (!child) {
        ask_for ("cudaSetDevice=stall");
        signal (SIGALRM, SIG_DFL); /* Check has another use for it */
        alarm (1);
        cudaSetDevice (0);
        _exit (0);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert (WIFSIGNALED (status) && WTERMSIG (status) == SIGALRM);
}
END_TEST

START_TEST (calls_are_counted)
{
    unsigned long (*calls) (const char *);
    char path[] = "/tmp/gs-count-XXXXXX", text[2000] = "", wanted[100];
    int fd = mkstemp (path), device, status;
    pid_t child;

    if (!test_simulated ())
        return;
    *(void **) &calls = dlsym (RTLD_DEFAULT, "sim_calls");
    ck_assert_uint_eq (calls ("cudaGetDevice"), 0);
    child = fork ();
    if (!child) {
        setenv ("SIM_COUNT", path, 1);
        for (int i = 0; i < 5; i++)
            cudaGetDevice (&device);
        exit (calls ("cudaGetDevice") == 5 ? 0 : 1);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert_int_eq (status, 0);
    ck_assert_int_gt (read (fd, text, sizeof (text) - 1), 0);
    snprintf (wanted, sizeof (wanted), "cudaGetDevice 5 %ld\n", (long) child);
    ck_assert_msg (strstr (text, wanted) != NULL, "no '%s' in '%s'", wanted, text);
    close (fd);
    unlink (path);
}
END_TEST

TEST_CASE (test_fault, "fault", the_nth_call_fails, all_calls_from_the_nth_on_fail,
           faults_are_of_a_rank, kernels_fail_at_once, late_errors_stay,
           late_errors_without_a_stream, stalled_work_holds_its_stream,
           stalled_calls_do_not_return, calls_are_counted)
