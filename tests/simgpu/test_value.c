/* SPDX-License-Identifier: BSD-3-Clause */
/* test_value - the driver's operations on values in memory: waits for them, and writes. */
#include <sys/mman.h>
#include <sys/wait.h>

#include "test.h"

#define GEQ 0u /* CU_STREAM_WAIT_VALUE_* */
#define EQ  1u
#define AND 2u
#define NOR 3u

typedef int value_f (cudaStream_t stream, unsigned long long address, uint32_t value,
                     unsigned flags);

static value_f *wait_value, *write_value;

/* A function of the driver, which the runtime has loaded at its first call. */
static value_f *find (const char *name)
{
    void *driver = dlopen ("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    value_f *found = NULL;

    if (driver)
        *(void **) &found = dlsym (driver, name);
    ck_assert_msg (found, "libcuda.so.1 has no %s", name);
    return found;
}

static cudaStream_t begin (void)
{
    cudaStream_t stream = test_stream ();

    wait_value = find ("cuStreamWaitValue32_v2");
    write_value = find ("cuStreamWriteValue32_v2");
    return stream;
}

static unsigned long long at (const volatile uint32_t *word)
{
    return (unsigned long long) (uintptr_t) word;
}

static uint32_t *pinned_words (void)
{
    void *words;

    test_ok (cudaMallocHost (&words, 64));
    memset (words, 0, 64);
    return words;
}

static void set (uint32_t *word, uint32_t value)
{
    __atomic_store_n (word, value, __ATOMIC_RELEASE);
}

static void end (cudaStream_t stream, void *pinned)
{
    test_ok (cudaFreeHost (pinned));
    test_ok (cudaStreamDestroy (stream));
}

/* What is behind a wait has not begun before the value came; other streams go on. */
START_TEST (a_wait_holds_its_stream_alone)
{
    cudaStream_t stream = begin (), other = test_stream ();
    cudaEvent_t event = test_event ();
    uint32_t *word = pinned_words ();
    int done = 0;

    ck_assert_int_eq (wait_value (stream, at (word), 5, GEQ), 0);
    test_ok (cudaLaunchHostFunc (stream, test_count, &done));
    test_ok (cudaEventRecord (event, stream));
    test_ok (cudaStreamSynchronize (other));
    set (word, 4);
    usleep (20000);
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    test_gives (cudaErrorNotReady, cudaEventQuery (event));
    ck_assert_int_eq (test_counted (&done), 0);
    test_ok (cudaStreamQuery (other));
    set (word, 6);
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (test_counted (&done), 1);
    test_ok (cudaEventDestroy (event));
    test_ok (cudaStreamDestroy (other));
    end (stream, word);
}
END_TEST

/* Whether a wait for [value] is over where the word is [is]. */
static void check_wait (cudaStream_t stream, uint32_t *word, uint32_t is, uint32_t value,
                        unsigned flags, bool over, uint32_t ends)
{
    set (word, is);
    ck_assert_int_eq (wait_value (stream, at (word), value, flags), 0);
    if (!over) {
        usleep (20000);
        test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
        set (word, ends);
    }
    test_ok (cudaStreamSynchronize (stream));
}

START_TEST (values_are_compared)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();

    check_wait (stream, word, 7, 7, EQ, true, 0);
    check_wait (stream, word, 8, 7, EQ, false, 7);
    check_wait (stream, word, 7, 7, GEQ, true, 0);
    check_wait (stream, word, 6, 7, GEQ, false, 8);
    check_wait (stream, word, 1, 0xfffffffeu, GEQ, true, 0); /* counted on, past the last one */
    check_wait (stream, word, 0xfffffffeu, 1, GEQ, false, 1);
    check_wait (stream, word, 6, 4, AND, true, 0);
    check_wait (stream, word, 3, 4, AND, false, 12);
    end (stream, word);
}
END_TEST

START_TEST (a_write_comes_in_its_turn)
{
    static struct test_gate gate;
    cudaStream_t stream = begin ();
    uint32_t *word, seen[2] = {9, 9}, *pinned = pinned_words ();

    test_ok (cudaMalloc ((void **) &word, sizeof (seen)));
    test_ok (cudaMemcpy (word, seen, sizeof (seen), cudaMemcpyHostToDevice));
    test_ok (cudaDeviceSynchronize ());
    test_close (&gate, stream);
    ck_assert_int_eq (write_value (stream, at (word + 1), 3, 0), 0);
    ck_assert_int_eq (write_value (stream, at (pinned), 4, 0), 0);
    usleep (20000);
    ck_assert_uint_eq (__atomic_load_n (pinned, __ATOMIC_ACQUIRE), 0);
    test_open (&gate);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaMemcpy (seen, word, sizeof (seen), cudaMemcpyDeviceToHost));
    ck_assert (seen[0] == 9 && seen[1] == 3 && *pinned == 4);
    test_ok (cudaFree (word));
    end (stream, pinned);
}
END_TEST

/* A stream waits for what another one writes, of another device too. */
START_TEST (streams_meet_by_values)
{
    cudaStream_t stream = begin (), other;
    uint32_t *word, zero = 0, seen = 0;

    if (test_has_devices (2))
        test_ok (cudaSetDevice (1));
    other = test_stream ();
    test_ok (cudaSetDevice (0));
    test_ok (cudaMalloc ((void **) &word, sizeof (*word)));
    test_ok (cudaMemcpy (word, &zero, sizeof (zero), cudaMemcpyHostToDevice));
    test_ok (cudaDeviceSynchronize ());
    ck_assert_int_eq (wait_value (stream, at (word), 1, GEQ), 0);
    ck_assert_int_eq (write_value (stream, at (word), 2, 0), 0);
    ck_assert_int_eq (write_value (other, at (word), 1, 0), 0);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaMemcpy (&seen, word, sizeof (seen), cudaMemcpyDeviceToHost));
    ck_assert_uint_eq (seen, 2);
    test_ok (cudaFree (word));
    test_ok (cudaStreamDestroy (other));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

/* The other process: waits for 1 and answers 2. */
static void answer (uint32_t *words)
{
    cudaStream_t stream = begin ();

    test_ok (cudaHostRegister (words, 4096, cudaHostRegisterDefault));
    ck_assert_int_eq (wait_value (stream, at (words), 1, EQ), 0);
    ck_assert_int_eq (write_value (stream, at (words + 16), 2, 0), 0);
    test_ok (cudaStreamSynchronize (stream));
    test_ok (cudaHostUnregister (words));
    test_ok (cudaStreamDestroy (stream));
    exit (0);
}

START_TEST (processes_meet_by_values)
{
    uint32_t *words =
        mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cudaStream_t stream;
    int status;
    pid_t child;

    ck_assert (words != MAP_FAILED);
    child = fork ();
    if (!child)
        answer (words);
    stream = begin ();
    test_ok (cudaHostRegister (words, 4096, cudaHostRegisterDefault));
    ck_assert_int_eq (wait_value (stream, at (words + 16), 2, EQ), 0);
    usleep (20000);
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
    set (words, 1);
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert_int_eq (status, 0);
    test_ok (cudaHostUnregister (words));
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

/* With each launch of the graph, and in the order of their capture. */
START_TEST (values_are_captured)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    size_t nodes = 0;

    test_ok (cudaStreamBeginCapture (stream, cudaStreamCaptureModeGlobal));
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    ck_assert_int_eq (write_value (stream, at (word), 2, 0), 0);
    test_ok (cudaStreamEndCapture (stream, &graph));
    test_ok (cudaGraphGetNodes (graph, NULL, &nodes));
    ck_assert_uint_eq (nodes, 2);
    test_ok (cudaGraphInstantiate (&exec, graph, 0));
    for (int i = 0; i < 2; i++) {
        set (word, 0);
        test_ok (cudaGraphLaunch (exec, stream));
        usleep (5000);
        test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
        set (word, 1);
        test_ok (cudaStreamSynchronize (stream));
        ck_assert_uint_eq (__atomic_load_n (word, __ATOMIC_ACQUIRE), 2);
    }
    test_ok (cudaGraphExecDestroy (exec));
    test_ok (cudaGraphDestroy (graph));
    end (stream, word);
}
END_TEST

static void *free_device (void *memory)
{
    test_ok (cudaFree (memory));
    return NULL;
}

/* A free waits for a stream that waits for a value. */
START_TEST (a_wait_is_work)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();
    void *memory;
    pthread_t thread;

    test_ok (cudaMalloc (&memory, 1));
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    ck_assert_int_eq (pthread_create (&thread, NULL, free_device, memory), 0);
    usleep (50000);
    ck_assert_int_ne (pthread_tryjoin_np (thread, NULL), 0);
    set (word, 1);
    ck_assert_int_eq (pthread_join (thread, NULL), 0);
    end (stream, word);
}
END_TEST

START_TEST (calls_are_checked)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();

    test_ok (cudaGetLastError ());
    ck_assert_int_ne (wait_value (stream, at (word), 0, 77), 0);
    ck_assert_int_ne (write_value (stream, at (word), 0, 77), 0);
    ck_assert_int_eq (write_value (stream, at (word), 0, 1), cudaErrorNotSupported);
    if (test_simulated ()) { /* a real one may have them */
        ck_assert_int_eq (wait_value (stream, at (word), 0, NOR), cudaErrorNotSupported);
        ck_assert_int_eq (wait_value (stream, at (word), 0, 1u << 30), cudaErrorNotSupported);
        ck_assert_int_eq (find ("cuStreamWaitValue32") (stream, at (word), 0, 0),
                          cudaErrorNotSupported);
        ck_assert_int_eq (find ("cuStreamWriteValue32") (stream, at (word), 0, 0),
                          cudaErrorNotSupported);
        ck_assert_int_eq (wait_value ((cudaStream_t) &word, at (word), 0, 0),
                          cudaErrorInvalidResourceHandle);
    }
    test_ok (cudaGetLastError ()); /* the runtime's, which the driver leaves alone */
    end (stream, word);
}
END_TEST

static void *wait_without_context (void *word)
{
    int *given = malloc (sizeof (*given));

    *given = wait_value (NULL, at (word), 0, GEQ);
    return given;
}

/* A thread has the context of a device by a call of the runtime. */
START_TEST (a_thread_needs_a_context)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();
    pthread_t thread;
    void *given;

    ck_assert_int_eq (pthread_create (&thread, NULL, wait_without_context, word), 0);
    ck_assert_int_eq (pthread_join (thread, &given), 0);
    ck_assert_int_eq (*(int *) given, cudaErrorDeviceUninitialized);
    free (given);
    end (stream, word);
}
END_TEST

START_TEST (stream_0_may_be_the_threads)
{
    cudaStream_t held = begin ();
    uint32_t *word = pinned_words ();
    value_f *wait = find ("cuStreamWaitValue32_v2_ptsz");
    value_f *write = find ("cuStreamWriteValue32_v2_ptsz");

    ck_assert_int_eq (write (NULL, at (word), 1, 0), 0);
    test_ok (cudaStreamSynchronize (cudaStreamPerThread));
    ck_assert_uint_eq (__atomic_load_n (word, __ATOMIC_ACQUIRE), 1);
    ck_assert_int_eq (wait (NULL, at (word), 2, EQ), 0);
    usleep (5000);
    test_gives (cudaErrorNotReady, cudaStreamQuery (cudaStreamPerThread));
    set (word, 2);
    test_ok (cudaStreamSynchronize (cudaStreamPerThread));
    end (held, word);
}
END_TEST

START_TEST (faults_are_theirs_too)
{
    cudaStream_t stream;
    uint32_t *word;

    if (!test_simulated ())
        return;
    setenv ("SIM_FAULT", "cuStreamWriteValue32=700,cuStreamWaitValue32#2=stall", 1);
    setenv ("SIM_LEAKS", "0", 1);
    stream = begin ();
    word = pinned_words ();
    ck_assert_int_eq (write_value (stream, at (word), 1, 0), cudaErrorIllegalAddress);
    ck_assert_int_eq (write_value (stream, at (word), 1, 0), 0);
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    test_ok (cudaStreamSynchronize (stream));
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    usleep (20000);
    test_gives (cudaErrorNotReady, cudaStreamQuery (stream));
}
END_TEST

/* Also if the value never comes. */
START_TEST (a_process_ends_while_it_waits)
{
    cudaStream_t stream = begin ();
    uint32_t *word = pinned_words ();

    setenv ("SIM_LEAKS", "0", 1);
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    if (!test_simulated ())
        set (word, 1);
}
END_TEST

/* Work that fails ends the waits of its device. */
START_TEST (a_wait_ends_with_its_device)
{
    cudaStream_t stream, other;
    uint32_t *word;

    if (!test_simulated ())
        return;
    setenv ("SIM_FAULT", "cudaLaunchHostFunc=late", 1);
    stream = begin ();
    other = test_stream ();
    word = pinned_words ();
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), 0);
    test_ok (cudaLaunchHostFunc (other, test_count, word + 1));
    test_gives (cudaErrorLaunchFailure, cudaStreamSynchronize (stream));
    ck_assert_int_eq (wait_value (stream, at (word), 1, EQ), cudaErrorLaunchFailure);
}
END_TEST

TEST_CASE (test_value, "value", a_wait_holds_its_stream_alone, values_are_compared,
           a_write_comes_in_its_turn, streams_meet_by_values, processes_meet_by_values,
           values_are_captured, a_wait_is_work, calls_are_checked, a_thread_needs_a_context,
           stream_0_may_be_the_threads, faults_are_theirs_too, a_process_ends_while_it_waits,
           a_wait_ends_with_its_device)
