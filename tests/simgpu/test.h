/* SPDX-License-Identifier: BSD-3-Clause */
/* test - what the tests of the simulated runtime share. */
#ifndef GS_TESTS_SIMGPU_TEST_H
#define GS_TESTS_SIMGPU_TEST_H

#include <check.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels.h"

/* Checks what a call of CUDA gives; test_ok: success. */
#define test_gives(error, call) test_gave (call, error, #call)
#define test_ok(call)           test_gave (call, cudaSuccess, #call)

static inline void test_gave (cudaError_t given, cudaError_t wanted, const char *call)
{
    ck_assert_msg (given == wanted, "%s gives %d, %s, not %d", call, given,
                   cudaGetErrorName (given), wanted);
}

/*
 * The tests also run on real devices, to see whether the rules are theirs: those of what only the
 * simulation has, or of several devices, then return at once.
 */
static inline bool test_simulated (void)
{
    return dlsym (RTLD_DEFAULT, "sim_push") != NULL;
}

static inline bool test_has_devices (int wanted)
{
    int count;

    return cudaGetDeviceCount (&count) == cudaSuccess && count >= wanted;
}

/* A stream stands at a gate until it is opened. */
struct test_gate {
    sem_t open;
};

static inline void test_stand (void *gate)
{
    sem_wait (&((struct test_gate *) gate)->open);
}

static inline void test_close (struct test_gate *gate, cudaStream_t stream)
{
    sem_init (&gate->open, 0, 0);
    test_ok (cudaLaunchHostFunc (stream, test_stand, gate));
}

static inline void test_open (struct test_gate *gate)
{
    sem_post (&gate->open);
}

/* A function for cudaLaunchHostFunc: counts. */
static inline void test_count (void *counter)
{
    __atomic_add_fetch ((int *) counter, 1, __ATOMIC_SEQ_CST);
}

static inline int test_counted (const int *counter)
{
    return __atomic_load_n (counter, __ATOMIC_SEQ_CST);
}

static inline cudaStream_t test_stream (void)
{
    cudaStream_t stream;

    test_ok (cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking));
    return stream;
}

static inline cudaEvent_t test_event (void)
{
    cudaEvent_t event;

    test_ok (cudaEventCreateWithFlags (&event, cudaEventDisableTiming));
    return event;
}

/* The tests of each file. */
TCase *test_capture (void);
TCase *test_default (void);
TCase *test_device (void);
TCase *test_event_case (void);
TCase *test_fault (void);
TCase *test_ipc (void);
TCase *test_launch (void);
TCase *test_memory (void);
TCase *test_share (void);
TCase *test_stream_case (void);
TCase *test_value (void);
TCase *test_visible (void);

/* Its function makes the case of these tests, each in a process of its own. */
#define TEST_CASE(function, name, ...)                                  \
    TCase *function (void)                                              \
    {                                                                   \
        const TTest *const tests[] = {__VA_ARGS__};                     \
        TCase *tcase = tcase_create (name);                             \
                                                                        \
        tcase_set_timeout (tcase, 20);                                  \
        for (size_t i = 0; i < sizeof (tests) / sizeof (tests[0]); i++) \
            tcase_add_test (tcase, tests[i]);                           \
        return tcase;                                                   \
    }

#endif /* GS_TESTS_SIMGPU_TEST_H */
