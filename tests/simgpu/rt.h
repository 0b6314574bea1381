/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt - what the files of the simulated CUDA runtime share.
 *
 * One lock guards all that is declared here; functions to be called with it held say "locked". It
 * is never held while work runs. Work is queued on streams, each of which has a thread of its
 * own; who waits for work waits for a place in a stream: the number of works that must be done
 * there. Streams, events and graphs lie in pools whose memory is never given back, so any handle,
 * also one that was destroyed, can be looked at.
 */
#ifndef GS_TESTS_SIMGPU_RT_H
#define GS_TESTS_SIMGPU_RT_H

#include <cuda_runtime_api.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/types.h>

#include "engine.h"

#define RT_DEVICES 32

/* engine.c: the process, the lock, entering and leaving a call */

pthread_mutex_t *rt_mutex (void);
void rt_lock (void);
void rt_unlock (void);

/* Waits for another thread's rt_progress; locked. */
void rt_wait_for_progress (void);
void rt_progress (void);

/* Never returns. */
void rt_stall (void);

#define RT_NO_STREAM ((cudaStream_t) -1)

/*
 * Every function of CUDA's interface begins with rt_enter and ends with rt_leave. rt_enter counts
 * the call of [name], lets the faults happen that were asked for ([stream]: where, for what is
 * queued), and gives an error if there is no device or work on the current one has failed.
 */
cudaError_t rt_enter (const char *name, cudaStream_t stream);

/* The same for what tells of devices, and needs a context on none. */
cudaError_t rt_enter_for_devices (const char *name);

/* The same for the driver's functions, which make no context and need the thread to have one. */
cudaError_t rt_enter_driver (const char *name, cudaStream_t stream);

/* Looks for devices, if nobody has yet; the error if there are none. */
cudaError_t rt_open (void);

/* Keeps an error for cudaGetLastError; returns it. */
cudaError_t rt_leave (cudaError_t error);

/* While this thread is in a function of cudaLaunchHostFunc, which may not call CUDA. */
extern _Thread_local bool rt_in_host_function;

/* An integer of the environment; what is no number between the limits is misuse. */
long rt_setting (const char *name, long otherwise, long low, long high);

/* fault.c */

void rt_faults_end (void); /* writes SIM_COUNT, names faults that did not happen */
void rt_faults_lock (void);
void rt_faults_unlock (void);

/* pool.c: handles */

struct rt_slot { /* first member of all that lies in a pool */
    bool alive;
    bool busy; /* may not be used again yet */
};

#define RT_POOL_BLOCK  256
#define RT_POOL_BLOCKS 128

struct rt_pool {
    const char *what;
    size_t bytes; /* of a slot */
    size_t used, hand;
    char *blocks[RT_POOL_BLOCKS];
};

extern struct rt_pool rt_streams, rt_events, rt_graphs, rt_execs;

/* A slot, alive; new ones are zeroed, others as they were left. NULL: all are in use. Locked. */
void *rt_pool_take (struct rt_pool *pool);

/* The slot of a handle. NULL if it is none, or, as misuse, if it was destroyed. Locked. */
void *rt_pool_find (const struct rt_pool *pool, const void *handle, const char *who);

/* Slot [i] below used; or NULL if it is not alive. Locked. */
void *rt_pool_slot (const struct rt_pool *pool, size_t i);
void *rt_pool_at (const struct rt_pool *pool, size_t i);

/* rt_device.c */

struct rt_device {
    int physical;             /* number on this node, of a GPU or an instance */
    int gpu;                  /* number of the GPU */
    cudaError_t failed;       /* what every call gives since work failed, or 0 */
    size_t used_bytes;        /* of its memory */
    struct rt_stream *legacy; /* NULL before its first use */
    bool context;             /* this process has one */
    size_t pending;           /* works queued that have not ended */
    int launchers;            /* threads that wait for room among them */
    int frees;                /* threads that wait for all of them, to free memory */
    bool peers[RT_DEVICES];   /* whose memory was made accessible */
};

extern struct rt_device rt_devices[RT_DEVICES]; /* the visible ones */
extern int rt_device_count;
extern cudaError_t rt_no_device;     /* what calls give where there is none */
extern _Thread_local int rt_current; /* this thread's device, as the program counts */
extern _Thread_local bool rt_bound;  /* its context is this thread's, for the driver */

void rt_devices_open (void); /* locked */
void rt_driver_open (void);  /* rt_launch.c: loads libcuda.so.1, which lies beside this library */
int rt_device_of (int physical); /* as the program counts; the current one if it sees it not */
void rt_device_fail (int device, cudaError_t error);       /* locked */
cudaError_t rt_context_need (int device, const char *who); /* locked; makes it the thread's */

/* rt_visible.c */

void rt_visible_open (void); /* finds the visible devices */
bool rt_is_instance (void);  /* they are parts of GPUs */

/* rt_share.c: between the processes of a node. All locked. */

void rt_share_open (void);
void rt_share_in_child (void);
bool rt_share_exclusive (void);                  /* one process may have a context */
bool rt_share_context (int device);              /* this one has it; false: another one */
bool rt_share_memory (int device, size_t bytes); /* it takes so much; false: too much */
size_t rt_share_others (int device);             /* what others have taken */

/*
 * What queues work waits while there is too much of it, and has the lock of the context then:
 * calls of other threads wait behind it, questions too, for all that is known. So has a free
 * while it waits, but not against what only [asks]. Locked.
 */
void rt_await_room (int device);
void rt_await_context (int device, bool asks);
cudaError_t rt_await_to_free (int device);
size_t rt_device_bytes (void); /* memory of one */

/* rt_queue.c: streams at work */

struct rt_work {
    struct rt_work *next;
    void (*run) (void *arg);
    size_t bytes;
    alignas (max_align_t) char arg[];
};

struct rt_set { /* of nodes of a graph, by number */
    size_t count;
    size_t *at;
};

struct rt_stream {
    struct rt_slot slot;
    bool made;    /* slot was used before: its condition is initialised */
    bool running; /* its thread is there */
    bool owned;   /* by the program, which must destroy it */
    int device;
    unsigned flags;
    int priority;
    unsigned long long id;
    uint64_t queued, done; /* works since the slot was first used */
    struct rt_work *first, *last;
    pthread_cond_t wake;
    struct rt_capture *capture; /* NULL: not captured */
    struct rt_set after;        /* what its next node depends on */
};

extern _Thread_local struct rt_stream *rt_worker; /* whose thread this is, or NULL */

/* Makes a stream; locked. */
struct rt_stream *rt_stream_make (int device, unsigned flags, int priority);

/* Its thread ends when it has done what is queued; locked. */
void rt_stream_retire (struct rt_stream *stream);

/* The stream of a handle, default streams included; NULL: cudaErrorInvalidResourceHandle. Locked.
 */
struct rt_stream *rt_stream_find (cudaStream_t handle, const char *who);

bool rt_is_legacy (const struct rt_stream *stream); /* locked */

/* Queues, or puts into the graph that the stream is captured into. Locked. */
cudaError_t rt_push (struct rt_stream *stream, void (*run) (void *), const void *arg,
                     size_t bytes);

/* Queues behind what the default streams' rules demand, captured or not. Locked. */
cudaError_t rt_queue (struct rt_stream *stream, void (*run) (void *), const void *arg,
                      size_t bytes);

/* Makes [stream] wait for a place in [other]; locked. */
cudaError_t rt_queue_wait (struct rt_stream *stream, struct rt_stream *other, uint64_t place);

/* Waits until a place is done, or work of the device has failed, which it returns. Locked. */
cudaError_t rt_await (struct rt_stream *stream, uint64_t place);
cudaError_t rt_await_device (int device); /* all its streams */

/* rt_event.c */

struct rt_event {
    struct rt_slot slot;
    int device;
    unsigned flags;
    uint64_t record;          /* number of its last record */
    struct rt_stream *stream; /* of the last record; NULL: never recorded, or captured */
    uint64_t place;           /* there */
    double time_ms;           /* when the last record was done */
    bool captured;            /* the last record is in a capture */
    unsigned long long capture_id;
    struct rt_set after; /* nodes that it stands for */
};

/* rt_capture.c */

struct rt_node {
    struct rt_work *work;
    struct rt_set after;
};

struct rt_watch { /* who wants to know that the nodes are gone */
    struct rt_watch *next;
    void (*gone) (void *arg);
    void *arg;
};

struct rt_nodes { /* what a graph and its executable forms share */
    int owners;
    struct rt_watch *watches;
    size_t count;
    struct rt_node **at;
};

struct rt_capture;

/* The errors of calls that may disturb captures, which are then invalid. All locked. */
cudaError_t rt_capture_unsafe (void);       /* what the call does is not seen by captures */
cudaError_t rt_capture_legacy (int device); /* the legacy stream of the device is used */
cudaError_t rt_capture_device (int device); /* the device is waited for */
cudaError_t rt_capture_break (struct rt_capture *capture, cudaError_t error);

bool rt_capture_is (const struct rt_capture *capture, unsigned long long id);
cudaError_t rt_capture_add (struct rt_stream *stream, void (*run) (void *), const void *arg,
                            size_t bytes);
void rt_capture_record (struct rt_stream *stream, struct rt_event *event);
cudaError_t rt_capture_wait (struct rt_stream *stream, struct rt_event *event);

/* Removes [stream], which is being destroyed, from its capture. */
void rt_capture_drop (struct rt_stream *stream);

bool rt_set_copy (struct rt_set *to, const struct rt_set *from);

/* rt_graph.c */

struct rt_graph {
    struct rt_slot slot;
    struct rt_nodes *nodes;
    struct rt_stream *stream; /* of an executable graph's last launch, and its end there */
    uint64_t place;
};

void rt_nodes_drop (struct rt_nodes *nodes); /* locked */

/* rt_memory.c */

enum rt_kind { RT_DEVICE = 1, RT_MANAGED = 2, RT_PINNED = 3, RT_REGISTERED = 4 };

struct rt_range {
    char *user;  /* the program's address, aligned to 256 bytes and no more */
    char *alias; /* ours of the same memory */
    size_t bytes;
    enum rt_kind kind;
    int device;
    unsigned flags;
    uint64_t freed; /* 0: live; else the how-manyth that was freed */
    char *map;      /* what is mapped at the program's address */
    size_t map_bytes;
    struct rt_shared *shared; /* of what other processes may open, or have given; else NULL */
    uint64_t offset;          /* in the file that it lies in */
    struct rt_owner *owner;   /* it was opened: whose it is; else NULL */
    int opener;               /* the device that was current then */
    int opened;               /* how often */
};

/* The live or freed allocation that [address] lies in, or NULL. Locked. */
struct rt_range *rt_range_find (const void *address);

bool rt_range_add (const struct rt_range *range);                /* locked */
void rt_range_release (struct rt_range *range, const char *who); /* its end, for [who]; locked */

/* What is open of [owner] at [offset], or NULL. Locked. */
struct rt_range *rt_range_opened (const struct rt_owner *owner, uint64_t offset);

/*
 * Our address of [bytes] that the program knows as [user]: of memory that CUDA knows, or, if
 * [pageable], also of other memory, which is as it is. NULL after misuse. Locked.
 */
void *rt_reach (const void *user, size_t bytes, bool pageable, const char *who);

/* cudaMemcpy and cudaMemset in a default stream: the legacy one, or this thread's. */
cudaError_t rt_copy_in (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                        cudaStream_t handle);
cudaError_t rt_set_in (void *dst, int value, size_t bytes, cudaStream_t handle);

void rt_memory_end (void); /* reports what was not freed; locked */

/* rt_map.c: the memory of a range, twice; false: there is none. All locked. */

bool rt_map (struct rt_range *range,
             int first);                      /* [first]: protection at the program's address */
bool rt_map_in_file (struct rt_range *range); /* where other processes find it */
bool rt_map_others (struct rt_range *range, int fd, uint64_t offset); /* of another process */
void rt_map_undo (struct rt_range *range);

/* The program's address stays reserved; [own]: the memory is given back. */
void rt_map_end (struct rt_range *range, bool own);

int rt_map_file (uint64_t *inode); /* of this process, or -1 */

/* Who has another process's memory open holds it; its owner disowns it as it frees it. */
bool rt_map_hold (int fd, uint64_t offset, bool hold);
bool rt_map_is_live (const struct rt_range *range);
void rt_map_note_open (struct rt_range *range); /* by another process */
bool rt_map_was_opened (const struct rt_range *range);
pid_t rt_map_disown (struct rt_range *range); /* a process that has it open, or 0 */

/* rt_ipc.c */

pid_t rt_owner_pid (const struct rt_owner *owner);

#endif /* GS_TESTS_SIMGPU_RT_H */
