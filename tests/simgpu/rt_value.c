/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_value - the driver's stream memory operations: a stream waits until a word of memory has a
 * value, or writes one there, in its turn. Other streams, the host and other processes may write
 * that word, so a wait looks again and again. It is of the driver, whose calls take the context
 * that is the thread's, make none, and leave the runtime's last error alone.
 */
#include <sys/prctl.h>
#include <time.h>

#include "rt.h"

#define FIRST_NS 20000  /* between two looks */
#define MOST_NS  200000 /* of a wait that takes long */
#define SLACK_NS 1000   /* of sleeps of a stream's thread, 50 us else */

#define MISALIGNED (sizeof (uint32_t) - 1)

enum condition { GEQ = 0, EQ = 1, AND = 2 }; /* CU_STREAM_WAIT_VALUE_* */

#define NOR   0x3u       /* not every device has it */
#define FLUSH (1u << 30) /* nor that */

struct value { /* a wait, or a write */
    const char *user;
    const char *who;
    uint32_t value;
    enum condition condition;
};

/* Checked with each look: memory may be freed meanwhile. NULL: misuse, and the device fails. */
static uint32_t *reach (const struct value *v)
{
    uint32_t *word = rt_reach (v->user, sizeof (*word), false, v->who);

    if (!word)
        rt_device_fail (rt_worker->device, cudaErrorIllegalAddress);
    return word;
}

/* Greater is cyclic, as of counters that start again. */
static bool holds (uint32_t is, const struct value *v)
{
    if (v->condition == EQ)
        return is == v->value;
    if (v->condition == AND)
        return (is & v->value) != 0;
    return (int32_t) (is - v->value) >= 0;
}

/* Whether the wait is over, by the value or because work of the device has failed. */
static bool is_over (const struct value *v)
{
    const uint32_t *word;
    bool over;

    rt_lock ();
    word = rt_devices[rt_worker->device].failed ? NULL : reach (v);
    over = !word || holds (__atomic_load_n (word, __ATOMIC_ACQUIRE), v);
    rt_unlock ();
    return over;
}

static void wait_now (void *arg)
{
    long pause_ns = FIRST_NS;

    prctl (PR_SET_TIMERSLACK, SLACK_NS);
    while (!is_over (arg)) {
        nanosleep (&(struct timespec){.tv_nsec = pause_ns}, NULL);
        pause_ns += pause_ns / 8;
        if (pause_ns > MOST_NS)
            pause_ns = MOST_NS;
    }
}

/* What the stream did before is seen by who sees the value. */
static void write_now (void *arg)
{
    const struct value *v = arg;
    uint32_t *word;

    rt_lock ();
    word = reach (v);
    if (word)
        __atomic_store_n (word, v->value, __ATOMIC_RELEASE);
    rt_unlock ();
}

/* Memory that is the device's, pinned or registered; managed memory is not taken. Locked. */
static cudaError_t check_word (const struct value *v)
{
    const struct rt_range *range = rt_range_find (v->user);

    if (!rt_reach (v->user, sizeof (uint32_t), false, v->who))
        return cudaErrorInvalidValue;
    if (range->kind == RT_MANAGED)
        sim_misuse ("%s: %p is managed memory", v->who, (const void *) v->user);
    else if ((uintptr_t) v->user & MISALIGNED)
        sim_misuse ("%s: %p is no multiple of 4", v->who, (const void *) v->user);
    else
        return cudaSuccess;
    return cudaErrorInvalidValue;
}

static cudaError_t queue (cudaStream_t handle, const struct value *v, void (*run) (void *))
{
    cudaError_t error = cudaErrorInvalidResourceHandle;
    struct rt_stream *stream;

    rt_lock ();
    stream = rt_stream_find (handle, v->who);
    if (stream)
        error = rt_devices[stream->device].failed;
    if (stream && !error)
        error = check_word (v);
    if (stream && !error)
        error = rt_push (stream, run, v, sizeof (*v));
    rt_unlock ();
    return error;
}

cudaError_t sim_wait_value (cudaStream_t stream, const void *address, uint32_t value,
                            unsigned flags)
{
    struct value v = {address, "cuStreamWaitValue32", value, (enum condition) flags};
    cudaError_t error = rt_enter_driver (v.who, stream);

    if (error)
        return error;
    if ((flags & ~FLUSH) > NOR)
        return cudaErrorInvalidValue;
    if (flags > AND)
        return cudaErrorNotSupported;
    return queue (stream, &v, wait_now);
}

cudaError_t sim_write_value (cudaStream_t stream, const void *address, uint32_t value,
                             unsigned flags)
{
    struct value v = {address, "cuStreamWriteValue32", value, GEQ};
    cudaError_t error = rt_enter_driver (v.who, stream);

    if (error)
        return error;
    if (flags > 1)
        return cudaErrorInvalidValue;
    if (flags) /* CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER, of the first version only */
        return cudaErrorNotSupported;
    return queue (stream, &v, write_now);
}
