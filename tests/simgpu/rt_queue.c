/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_queue - streams at work: a thread for each, what is queued there, and who waits for whom.
 *
 * Everything between streams is a work that waits for a place in another stream: events, and the
 * rules of the legacy stream, which waits for all blocking streams of its device as they for it.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "rt.h"

#define STACK_BYTES (1 << 20)

_Thread_local struct rt_stream *rt_worker;

static _Thread_local struct rt_stream *per_thread[RT_DEVICES];
static pthread_key_t thread_ends; /* its value is per_thread of a thread that has such streams */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned long long last_id;
static long room = -1; /* works that a device has room for */

static void retire_all (void *streams)
{
    rt_lock ();
    for (int i = 0; i < RT_DEVICES; i++)
        if (((struct rt_stream **) streams)[i])
            rt_stream_retire (((struct rt_stream **) streams)[i]);
    rt_unlock ();
}

static void make_key (void)
{
    pthread_key_create (&thread_ends, retire_all);
}

struct rt_stream *rt_stream_make (int device, unsigned flags, int priority)
{
    struct rt_stream *stream = rt_pool_take (&rt_streams);

    if (!stream)
        return NULL;
    if (!stream->made) {
        pthread_cond_init (&stream->wake, NULL);
        stream->made = true;
    }
    stream->owned = false;
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = ++last_id;
    stream->capture = NULL;
    stream->after.count = 0;
    return stream;
}

void rt_stream_retire (struct rt_stream *stream)
{
    stream->slot.alive = false;
    stream->slot.busy = stream->running;
    pthread_cond_signal (&stream->wake);
}

void rt_await_room (int device)
{
    struct rt_device *d = &rt_devices[device];

    if (room < 0)
        room = rt_setting ("SIM_LAUNCH_QUEUE", 1024, 4, 1 << 20);
    if (rt_worker || d->pending < (size_t) room)
        return;
    d->launchers++;
    while (d->pending >= (size_t) room && !d->failed)
        rt_wait_for_progress ();
    d->launchers--;
    rt_progress ();
}

void rt_await_context (int device, bool asks)
{
    const struct rt_device *d = &rt_devices[device];

    while (!rt_worker && (d->launchers || (d->frees && !asks)) && !d->failed)
        rt_wait_for_progress ();
}

/* After work of the device has failed, what is queued is dropped. Locked; not while it runs. */
static void do_work (struct rt_stream *stream, struct rt_work *work, useconds_t delay_us)
{
    bool dropped = rt_devices[stream->device].failed;

    rt_unlock ();
    if (!dropped) {
        if (delay_us)
            usleep (delay_us);
        work->run (work->arg);
    }
    free (work);
    rt_lock ();
    stream->done++;
    rt_devices[stream->device].pending--;
    rt_progress ();
}

static void *work_off (void *argument)
{
    struct rt_stream *stream = argument;
    useconds_t delay_us;

    prctl (PR_SET_NAME, "simgpu stream"); /* for tests that count threads */
    rt_lock ();
    delay_us = (useconds_t) rt_setting ("SIM_DELAY_US", 0, 0, 1000000);
    rt_worker = stream;
    rt_current = stream->device;
    while (stream->first || stream->slot.alive) {
        struct rt_work *work = stream->first;
        if (!work) {
            pthread_cond_wait (&stream->wake, rt_mutex ());
            continue;
        }
        stream->first = work->next;
        if (!stream->first)
            stream->last = NULL;
        do_work (stream, work, delay_us);
    }
    stream->running = stream->slot.busy = false;
    rt_unlock ();
    return NULL;
}

/* Signals are for the program's own threads. */
static cudaError_t start_thread (struct rt_stream *stream)
{
    pthread_attr_t attributes;
    sigset_t blocked, before;
    pthread_t thread;
    int error;

    pthread_attr_init (&attributes);
    pthread_attr_setdetachstate (&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize (&attributes, STACK_BYTES);
    sigfillset (&blocked);
    sigdelset (&blocked, SIGSEGV);
    sigdelset (&blocked, SIGBUS);
    sigdelset (&blocked, SIGFPE);
    sigdelset (&blocked, SIGILL);
    pthread_sigmask (SIG_SETMASK, &blocked, &before);
    error = pthread_create (&thread, &attributes, work_off, stream);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    pthread_attr_destroy (&attributes);
    stream->running = !error;
    return error ? cudaErrorMemoryAllocation : cudaSuccess;
}

static cudaError_t append (struct rt_stream *stream, void (*run) (void *), const void *arg,
                           size_t bytes)
{
    struct rt_work *work = malloc (sizeof (*work) + bytes);

    if (!work || (!stream->running && start_thread (stream))) {
        free (work);
        return cudaErrorMemoryAllocation;
    }
    *work = (struct rt_work){NULL, run, bytes};
    if (bytes)
        memcpy (work->arg, arg, bytes);
    if (stream->last)
        stream->last->next = work;
    else
        stream->first = work;
    stream->last = work;
    stream->queued++;
    rt_devices[stream->device].pending++;
    pthread_cond_signal (&stream->wake);
    return cudaSuccess;
}

struct place {
    struct rt_stream *stream;
    uint64_t place;
};

static void wait_for_place (void *arg)
{
    struct place *p = arg;

    rt_lock ();
    rt_await (p->stream, p->place);
    rt_unlock ();
}

cudaError_t rt_queue_wait (struct rt_stream *stream, struct rt_stream *other, uint64_t place)
{
    struct place p = {other, place};

    if (other == stream || other->done >= place)
        return cudaSuccess;
    return append (stream, wait_for_place, &p, sizeof (p));
}

bool rt_is_legacy (const struct rt_stream *stream)
{
    return stream == rt_devices[stream->device].legacy;
}

/* The next of the streams that the legacy stream of [device] waits for, from slot *i on. */
static struct rt_stream *next_blocking (int device, size_t *i)
{
    while (*i < rt_streams.used) {
        struct rt_stream *stream = rt_pool_slot (&rt_streams, (*i)++);
        if ((stream->slot.alive || stream->slot.busy) && stream->device == device &&
            !(stream->flags & cudaStreamNonBlocking) && !rt_is_legacy (stream))
            return stream;
    }
    return NULL;
}

static cudaError_t wait_for_default (struct rt_stream *stream)
{
    struct rt_stream *legacy = rt_devices[stream->device].legacy, *other;
    cudaError_t error = cudaSuccess;
    size_t i = 0;

    if (!legacy || (stream->flags & cudaStreamNonBlocking))
        return cudaSuccess;
    if (stream != legacy)
        return rt_queue_wait (stream, legacy, legacy->queued);
    while (!error && (other = next_blocking (stream->device, &i)))
        error = rt_queue_wait (stream, other, other->queued);
    return error;
}

cudaError_t rt_queue (struct rt_stream *stream, void (*run) (void *), const void *arg,
                      size_t bytes)
{
    cudaError_t error = cudaSuccess;

    if (rt_is_legacy (stream))
        error = rt_capture_legacy (stream->device);
    if (!error)
        error = wait_for_default (stream);
    return error ? error : append (stream, run, arg, bytes);
}

cudaError_t rt_push (struct rt_stream *stream, void (*run) (void *), const void *arg,
                     size_t bytes)
{
    if (stream->capture)
        return rt_capture_add (stream, run, arg, bytes);
    return rt_queue (stream, run, arg, bytes);
}

cudaError_t rt_await (struct rt_stream *stream, uint64_t place)
{
    while (stream->done < place && !rt_devices[stream->device].failed)
        rt_wait_for_progress ();
    return rt_devices[stream->device].failed;
}

cudaError_t rt_await_device (int device)
{
    for (size_t i = 0; i < rt_streams.used; i++) {
        struct rt_stream *stream = rt_pool_slot (&rt_streams, i);
        if (stream->made && stream->device == device)
            rt_await (stream, stream->queued);
    }
    return rt_devices[device].failed;
}

cudaError_t rt_await_to_free (int device)
{
    cudaError_t error;

    rt_devices[device].frees++;
    error = rt_await_device (device);
    rt_devices[device].frees--;
    rt_progress ();
    return error;
}

static struct rt_stream *find_legacy (void)
{
    struct rt_device *device = &rt_devices[rt_current];

    if (!device->legacy)
        device->legacy = rt_stream_make (rt_current, 0, 0);
    return device->legacy;
}

static struct rt_stream *find_per_thread (void)
{
    struct rt_stream **stream = &per_thread[rt_current];

    if (!*stream) {
        pthread_once (&once, make_key);
        pthread_setspecific (thread_ends, per_thread);
        *stream = rt_stream_make (rt_current, 0, 0);
    }
    return *stream;
}

struct rt_stream *rt_stream_find (cudaStream_t handle, const char *who)
{
    struct rt_stream *stream;

    if (!handle || handle == cudaStreamLegacy)
        return find_legacy ();
    if (handle == cudaStreamPerThread)
        return find_per_thread ();
    stream = rt_pool_find (&rt_streams, handle, who);
    return stream && stream->owned ? stream : NULL;
}

cudaError_t sim_push (cudaStream_t handle, void (*work) (void *arg), const void *arg,
                      size_t bytes)
{
    cudaError_t error = cudaErrorInvalidResourceHandle;
    struct rt_stream *stream;

    rt_lock ();
    stream = rt_device_count ? rt_stream_find (handle, "sim_push") : NULL;
    if (stream)
        error = rt_devices[stream->device].failed;
    if (stream && !error)
        error = rt_push (stream, work, arg, bytes);
    rt_unlock ();
    return error;
}

void sim_await_room (cudaStream_t handle)
{
    struct rt_stream *stream;

    rt_lock ();
    stream = rt_device_count ? rt_stream_find (handle, "sim_await_room") : NULL;
    if (stream && !stream->capture)
        rt_await_room (stream->device);
    rt_unlock ();
}

void sim_await_to_free (int device)
{
    rt_lock ();
    if (rt_device_count)
        rt_await_to_free (device);
    rt_unlock ();
}

void sim_await_device (int device)
{
    rt_lock ();
    if (rt_device_count)
        rt_await_device (device);
    rt_unlock ();
}

bool sim_is_capturing (cudaStream_t handle)
{
    struct rt_stream *stream;
    bool is;

    rt_lock ();
    stream = rt_device_count ? rt_stream_find (handle, "sim_is_capturing") : NULL;
    is = stream && stream->capture;
    rt_unlock ();
    return is;
}
