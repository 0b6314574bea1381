/* SPDX-License-Identifier: BSD-3-Clause */
/* test_share - several processes on a device: who may have a context, and memory for all. */
#include "other.h"
#include "test.h"

#define MB (1 << 20)

/* Runs that are under way beside this one have other devices. */
static void be_alone (void)
{
    char word[32];

    snprintf (word, sizeof (word), "test %ld", (long) getpid ());
    setenv ("SIM_SHARE", word, 1);
}

static cudaError_t ask (struct other *other, enum other_does what, int number)
{
    return other_ask (other, what, number, NULL).error;
}

static void end (struct other *other)
{
    ck_assert_int_eq (other_end (other, 0), 0);
}

/* The first one has it until it ends, however; other devices are free. */
START_TEST (one_process_has_an_exclusive_device)
{
    struct cudaDeviceProp properties;
    struct other other, third;
    int mode, current;
    void *memory;

    if (!test_simulated ())
        return;
    be_alone ();
    setenv ("SIM_COMPUTE_MODE", "exclusive", 1);
    other_start (&other, NULL, 0);
    other_start (&third, NULL, 0);
    ck_assert_int_eq (ask (&other, OTHER_SETS, 0), cudaSuccess);
    test_ok (cudaGetDeviceProperties (&properties, 0));
    test_ok (cudaDeviceGetAttribute (&mode, cudaDevAttrComputeMode, 0));
    ck_assert_int_eq (mode, cudaComputeModeExclusiveProcess);
    test_gives (cudaErrorDevicesUnavailable, cudaSetDevice (0));
    test_gives (cudaErrorDevicesUnavailable, cudaMalloc (&memory, 1));
    test_ok (cudaSetDevice (1));
    test_gives (cudaErrorDevicesUnavailable, cudaSetDevice (0));
    test_ok (cudaGetDevice (&current));
    ck_assert_int_eq (current, 1);
    ck_assert_int_eq (ask (&third, OTHER_SETS, 1), cudaErrorDevicesUnavailable);
    ck_assert_int_eq (ask (&third, OTHER_SETS, 2), cudaSuccess);
    other_end (&other, 1);
    test_ok (cudaSetDevice (0));
    ck_assert_int_eq (ask (&third, OTHER_SETS, 0), cudaErrorDevicesUnavailable);
    end (&third);
}
END_TEST

/* Also when none of them was first. */
START_TEST (one_of_many_gets_an_exclusive_device)
{
    enum { MANY = 8 };
    struct other_request request = {.what = OTHER_SETS};
    struct other_answer answer;
    struct other others[MANY];
    int have = 0;

    if (!test_simulated ())
        return;
    be_alone ();
    setenv ("SIM_COMPUTE_MODE", "exclusive", 1);
    for (int i = 0; i < MANY; i++)
        other_start (&others[i], NULL, 0);
    for (int i = 0; i < MANY; i++)
        ck_assert (write (others[i].fd, &request, sizeof (request)) == sizeof (request));
    for (int i = 0; i < MANY; i++) {
        ck_assert (read (others[i].fd, &answer, sizeof (answer)) == sizeof (answer));
        ck_assert (!answer.error || answer.error == cudaErrorDevicesUnavailable);
        have += !answer.error;
    }
    ck_assert_int_eq (have, 1);
    for (int i = 0; i < MANY; i++)
        end (&others[i]);
}
END_TEST

/* With the server all have it, unless somebody has it without. */
START_TEST (clients_of_the_server_share_a_device)
{
    struct other client, another, alone;

    if (!test_simulated ())
        return;
    be_alone ();
    setenv ("SIM_COMPUTE_MODE", "exclusive", 1);
    other_start (&alone, NULL, 0);
    setenv ("SIM_MPS", "1", 1);
    other_start (&client, NULL, 0);
    other_start (&another, NULL, 0);
    ck_assert_int_eq (ask (&client, OTHER_SETS, 0), cudaSuccess);
    ck_assert_int_eq (ask (&another, OTHER_SETS, 0), cudaSuccess);
    test_ok (cudaSetDevice (0));
    ck_assert_int_eq (ask (&alone, OTHER_SETS, 0), cudaErrorDevicesUnavailable);
    ck_assert_int_eq (ask (&alone, OTHER_SETS, 1), cudaSuccess);
    ck_assert_int_eq (ask (&another, OTHER_SETS, 1), cudaErrorDevicesUnavailable);
    end (&client);
    end (&another);
    end (&alone);
}
END_TEST

START_TEST (devices_are_shared_by_default)
{
    struct other other;
    int mode;

    other_start (&other, NULL, 0);
    ck_assert_int_eq (ask (&other, OTHER_SETS, 0), cudaSuccess);
    test_ok (cudaSetDevice (0));
    test_ok (cudaDeviceGetAttribute (&mode, cudaDevAttrComputeMode, 0));
    if (test_simulated ())
        ck_assert_int_eq (mode, cudaComputeModeDefault);
    end (&other);
}
END_TEST

/* What a process has taken is free again when it ends, however. */
START_TEST (processes_share_the_memory)
{
    size_t left, total;
    struct other other;
    void *memory;

    if (!test_simulated ())
        return;
    be_alone ();
    setenv ("SIM_GPU_MEMORY_MB", "4", 1);
    other_start (&other, NULL, 0);
    ck_assert_int_eq (ask (&other, OTHER_MALLOCS, 3 * MB), cudaSuccess);
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (total, 4 * MB);
    ck_assert_uint_eq (left, MB);
    test_gives (cudaErrorMemoryAllocation, cudaMalloc (&memory, MB + 1));
    test_ok (cudaMalloc (&memory, MB));
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, 0);
    ck_assert_int_eq (ask (&other, OTHER_FREES, 0), cudaSuccess);
    ck_assert_int_eq (ask (&other, OTHER_MALLOCS, 4 * MB), cudaErrorMemoryAllocation);
    ck_assert_int_eq (ask (&other, OTHER_MALLOCS, 2 * MB), cudaSuccess);
    test_ok (cudaFree (memory));
    other_end (&other, 1);
    test_ok (cudaMemGetInfo (&left, &total));
    ck_assert_uint_eq (left, total);
    test_ok (cudaMalloc (&memory, 4 * MB));
    test_ok (cudaFree (memory));
}
END_TEST

/* Each has its own without a word to share by. */
START_TEST (memory_is_each_processes_own_else)
{
    struct other other;
    void *memory;

    if (!test_simulated ())
        return;
    setenv ("SIM_GPU_MEMORY_MB", "4", 1);
    other_start (&other, NULL, 0);
    ck_assert_int_eq (ask (&other, OTHER_MALLOCS, 3 * MB), cudaSuccess);
    test_ok (cudaMalloc (&memory, 4 * MB));
    test_ok (cudaFree (memory));
    ck_assert_int_eq (ask (&other, OTHER_FREES, 0), cudaSuccess);
    end (&other);
}
END_TEST

/* A process that has memory and the device, and a child, which it leaves behind; its status. */
static int leave_a_child (const int hold[2], const int ready[2])
{
    void *memory;
    bool has = cudaMalloc (&memory, 3 * MB) == cudaSuccess;
    char byte = 0;

    if (!fork ()) {
        if (write (ready[1], &byte, 1) != 1)
            return 1;
        return read (hold[0], &byte, 1) == 1 ? 0 : 1;
    }
    return read (ready[0], &byte, 1) == 1 && has ? 0 : 1;
}

/* A child of fork has nothing that would stay when its parent ends. */
START_TEST (a_child_has_nothing)
{
    int hold[2], ready[2], status;
    void *memory;
    pid_t child;

    if (!test_simulated ())
        return;
    be_alone ();
    setenv ("SIM_COMPUTE_MODE", "exclusive", 1);
    setenv ("SIM_GPU_MEMORY_MB", "4", 1);
    ck_assert (!pipe (hold) && !pipe (ready));
    child = fork ();
    if (!child)
        _exit (leave_a_child (hold, ready));
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert_int_eq (status, 0);
    test_ok (cudaMalloc (&memory, 4 * MB));
    test_ok (cudaFree (memory));
    ck_assert_int_eq (write (hold[1], "", 1), 1);
}
END_TEST

TEST_CASE (test_share, "share", one_process_has_an_exclusive_device,
           one_of_many_gets_an_exclusive_device, clients_of_the_server_share_a_device,
           devices_are_shared_by_default, processes_share_the_memory,
           memory_is_each_processes_own_else, a_child_has_nothing)
