/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine - what the simulated CUDA runtime offers the simulated NCCL beside the public interface
 * of CUDA: work on a stream's thread, the engine's own view of device memory, misuse, faults.
 */
#ifndef GS_TESTS_SIMGPU_ENGINE_H
#define GS_TESTS_SIMGPU_ENGINE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Queues work (arg) on [stream], behind what is queued there; [bytes] of [arg] are copied. Runs
 * on the stream's thread, and may wait there for other processes. While the stream is captured it
 * is put into the graph instead and runs with each launch of it. The legacy stream, the
 * per-thread stream and their rules are the runtime's business.
 */
cudaError_t sim_push (cudaStream_t stream, void (*work) (void *arg), const void *arg,
                      size_t bytes);

/* Waits as a launch into [stream] would while there is no room for one; a capture has room. */
void sim_await_room (cudaStream_t stream);

/* Waits as cudaFreeHost does on [device], as the program numbers it, and keeps others out. */
void sim_await_to_free (int device);
void sim_await_device (int device); /* what is queued there now */

/*
 * The engine's address of [bytes] of device, managed or pinned memory that the program knows as
 * [user]; NULL after reporting misuse if they do not lie in one live allocation. Each use on a
 * stream's thread is checked at the time it runs.
 */
void *sim_alias (const void *user, size_t bytes, const char *who);

/*
 * Device memory as the driver makes it in parts that processes can share (cuMemCreate, cuMemMap).
 * It is not cudaFree's, and its end waits for no work: what uses it later is misuse.
 */
cudaError_t sim_memory_alloc (void **address, size_t bytes);
cudaError_t sim_memory_free (void *address);
bool sim_is_shareable (const void *user); /* whether it lies in such memory */

/* Whether [user] is in live device or managed memory, and of which device (physical number). */
bool sim_is_device (const void *user, int *device);

/* Reports misuse: a line on stderr; the process ends with status 86 when it exits. */
void sim_misuse (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/* What SIM_FAULT asks to happen at this passage of [point]; see README.md. Slow ones are NONE. */
enum sim_fault {
    SIM_FAULT_NONE = 0,
    SIM_FAULT_ERROR,
    SIM_FAULT_STALL,
    SIM_FAULT_LATE,
    SIM_FAULT_SLOW
};
enum sim_fault sim_fault (const char *point, int *code);

/* How often [point] was passed so far, in this process: a function's name, or a call's. */
unsigned long sim_calls (const char *point);

/* Of the calling thread's current device: its number among the machine's, and its PCI bus id. */
int sim_physical_device (void);
const char *sim_bus_id (void);

/* The UUID of a device of this machine, by its number; with SIM_MIG it is an instance. */
void sim_uuid (int physical, cudaUUID_t *uuid);

/* This process's rank, as the launcher tells, else 0. */
long sim_rank (void);

/* Whether this process has a context on [device], as the program numbers it. */
bool sim_has_context (int device);

/*
 * cuStreamWaitValue32 and cuStreamWriteValue32 of the driver. In the thread's context: without
 * one they give CUDA_ERROR_INVALID_CONTEXT, which is cudaErrorDeviceUninitialized.
 */
cudaError_t sim_wait_value (cudaStream_t stream, const void *address, uint32_t value,
                            unsigned flags);
cudaError_t sim_write_value (cudaStream_t stream, const void *address, uint32_t value,
                             unsigned flags);

/* Whether [stream] is being captured by this process. */
bool sim_is_capturing (cudaStream_t stream);

/*
 * Calls gone (arg) when what [stream] is captured into is destroyed: the capture, the graph and
 * all that was instantiated from it. [gone] may not call CUDA. False: it is not captured.
 */
bool sim_watch_graph (cudaStream_t stream, void (*gone) (void *arg), void *arg);

#ifdef __cplusplus
}
#endif

#endif /* GS_TESTS_SIMGPU_ENGINE_H */
