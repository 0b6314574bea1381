/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine - the process: the lock, what every call begins and ends with, misuse, and the report
 * when the process ends.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt.h"

#define MISUSE_STATUS 86
#define MISUSE_LINES  50 /* the rest is not shown */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static int waiting; /* threads in rt_wait_for_progress */

static atomic_bool opened; /* somebody asked for devices */
static bool forked;        /* this process is a child of one that had opened them */
static pid_t owner;
static int misuses;

_Thread_local bool rt_in_host_function;

pthread_mutex_t *rt_mutex (void)
{
    return &lock;
}

void rt_lock (void)
{
    pthread_mutex_lock (&lock);
}

void rt_unlock (void)
{
    pthread_mutex_unlock (&lock);
}

void rt_wait_for_progress (void)
{
    waiting++;
    pthread_cond_wait (&progress, &lock);
    waiting--;
}

void rt_progress (void)
{
    if (waiting)
        pthread_cond_broadcast (&progress);
}

void rt_stall (void)
{
    for (;;)
        pause ();
}

void sim_misuse (const char *format, ...)
{
    char line[1000] = "simgpu: misuse: ";
    size_t used = strlen (line);
    va_list ap;
    int number = __atomic_add_fetch (&misuses, 1, __ATOMIC_RELAXED);

    if (number > MISUSE_LINES)
        return;
    va_start (ap, format);
    vsnprintf (line + used, sizeof (line) - used - 1, format, ap);
    va_end (ap);
    strcat (line, "\n");
    if (write (STDERR_FILENO, line, strlen (line)) < 0) /* one line, however many write */
        return;
    if (number == MISUSE_LINES)
        fputs ("simgpu: further misuse is not shown\n", stderr);
}

long rt_setting (const char *name, long otherwise, long low, long high)
{
    const char *text = getenv (name);
    char *end;
    long value;

    if (!text || !*text)
        return otherwise;
    errno = 0;
    value = strtol (text, &end, 10);
    if (!errno && !*end && value >= low && value <= high)
        return value;
    sim_misuse ("%s is '%s', not a number from %ld to %ld", name, text, low, high);
    return otherwise;
}

/* The state is whole in a child, whose only thread is this one; but it may not be used there. */
static void before_fork (void)
{
    rt_lock ();
    rt_faults_lock ();
}

static void after_fork (void)
{
    rt_faults_unlock ();
    rt_unlock ();
}

static void in_child (void)
{
    after_fork ();
    forked = opened;
    rt_share_in_child ();
    owner = getpid ();
    misuses = 0;
}

__attribute__ ((constructor)) static void begin (void)
{
    owner = getpid ();
    pthread_atfork (before_fork, after_fork, in_child);
}

static void leak (const struct rt_pool *pool, size_t count)
{
    if (count)
        sim_misuse ("leak: %zu of the %s kind were not destroyed", count, pool->what);
}

/* What is of a device that failed cannot be given back. Graphs are of no device. */
static void find_leaks (void)
{
    const struct rt_pool *const graphs[] = {&rt_graphs, &rt_execs};
    size_t streams = 0, events = 0;
    bool failed = false;

    for (size_t i = 0; i < rt_streams.used; i++) {
        struct rt_stream *stream = rt_pool_at (&rt_streams, i);
        streams += stream && stream->owned && !rt_devices[stream->device].failed;
    }
    leak (&rt_streams, streams);
    for (size_t i = 0; i < rt_events.used; i++) {
        struct rt_event *event = rt_pool_at (&rt_events, i);
        events += event && !rt_devices[event->device].failed;
    }
    leak (&rt_events, events);
    for (int i = 0; i < rt_device_count; i++)
        failed = failed || rt_devices[i].failed;
    for (size_t p = 0; !failed && p < sizeof (graphs) / sizeof (graphs[0]); p++) {
        size_t count = 0;
        for (size_t i = 0; i < graphs[p]->used; i++)
            count += rt_pool_at (graphs[p], i) != NULL;
        leak (graphs[p], count);
    }
    rt_memory_end ();
}

/* After the destructors of all libraries that need this one. Threads may still be at work. */
__attribute__ ((destructor)) static void end (void)
{
    if (forked || getpid () != owner)
        return;
    rt_faults_end ();
    if (opened && rt_setting ("SIM_LEAKS", 1, 0, 1)) {
        rt_lock ();
        find_leaks ();
        rt_unlock ();
    }
    if (__atomic_load_n (&misuses, __ATOMIC_RELAXED)) {
        fflush (NULL);
        _exit (MISUSE_STATUS);
    }
}

static void stalled_work (void *unused)
{
    (void) unused;
    rt_stall ();
}

static void failing_work (void *code)
{
    rt_lock ();
    rt_device_fail (rt_current, *(cudaError_t *) code);
    rt_unlock ();
}

/* Lets what sim_fault answered happen; for what is queued, in its stream. */
static cudaError_t let_happen (enum sim_fault fault, int code, const char *name,
                               cudaStream_t handle)
{
    cudaError_t error = (cudaError_t) code;
    struct rt_stream *stream;

    if (fault == SIM_FAULT_ERROR)
        return error;
    if (handle == RT_NO_STREAM && fault == SIM_FAULT_STALL)
        rt_stall ();
    rt_lock ();
    if (handle == RT_NO_STREAM)
        rt_device_fail (rt_current, error);
    else if ((stream = rt_stream_find (handle, name)))
        rt_push (stream, fault == SIM_FAULT_STALL ? stalled_work : failing_work, &error,
                 sizeof (error));
    rt_unlock ();
    return cudaSuccess;
}

static bool is_among (const char *name, const char *const *names, size_t number)
{
    for (size_t i = 0; i < number; i++)
        if (!strcmp (name, names[i]))
            return true;
    return false;
}

/* What a free that waits does not keep out (tried on an H100, driver 580). */
static bool only_asks (const char *name)
{
    static const char *const asking[] = {"cudaEventQuery", "cudaStreamQuery",
                                         "cudaPointerGetAttributes", "cudaDeviceSynchronize"};

    return is_among (name, asking, sizeof (asking) / sizeof (asking[0]));
}

/* The current device's, for [name]. Locked. */
static cudaError_t enter_context (const char *name)
{
    const struct rt_device *device = &rt_devices[rt_current];
    cudaError_t error = rt_context_need (rt_current, name);

    if (!error)
        rt_await_context (rt_current, device->frees && only_asks (name));
    return error;
}

cudaError_t rt_open (void)
{
    if (!opened) {
        rt_lock ();
        if (!opened) {
            rt_devices_open ();
            rt_driver_open ();
        }
        opened = true;
        rt_unlock ();
    }
    return rt_device_count ? cudaSuccess : rt_no_device;
}

enum needs { NEEDS_DEVICES = 0, NEEDS_CONTEXT = 1, NEEDS_BOUND = 2 };

/* The context that a call needs, and room for what it queues. Locked. */
static cudaError_t prepare (const char *name, cudaStream_t stream, enum needs needs)
{
    struct rt_stream *queue;
    cudaError_t error;

    if (needs == NEEDS_BOUND && !rt_bound)
        return cudaErrorDeviceUninitialized;
    error = needs == NEEDS_DEVICES ? cudaSuccess : enter_context (name);
    if (error)
        return error;
    if (stream != RT_NO_STREAM && (queue = rt_stream_find (stream, name)) && !queue->capture)
        rt_await_room (queue->device);
    return rt_devices[rt_current].failed;
}

static cudaError_t enter (const char *name, cudaStream_t stream, enum needs needs)
{
    enum sim_fault fault;
    cudaError_t error;
    int code;

    if (forked)
        return cudaErrorInitializationError;
    if (rt_in_host_function) {
        sim_misuse ("%s: called from a function of cudaLaunchHostFunc", name);
        return cudaErrorNotPermitted;
    }
    error = rt_open ();
    if (!error) {
        rt_lock ();
        error = prepare (name, stream, needs);
        rt_unlock ();
    }
    fault = sim_fault (name, &code);
    if (!error && fault)
        error = let_happen (fault, code, name, stream);
    return error;
}

cudaError_t rt_enter (const char *name, cudaStream_t stream)
{
    return enter (name, stream, NEEDS_CONTEXT);
}

cudaError_t rt_enter_for_devices (const char *name)
{
    return enter (name, RT_NO_STREAM, NEEDS_DEVICES);
}

cudaError_t rt_enter_driver (const char *name, cudaStream_t stream)
{
    return enter (name, stream, NEEDS_BOUND);
}
