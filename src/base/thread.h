/* SPDX-License-Identifier: BSD-3-Clause */
/* thread - threads of the library's own. */
#ifndef GS_BASE_THREAD_H
#define GS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gradsync.h"

/*
 * Starts a thread that takes no signals: they are the application's. GS_ERR_NOMEM, with a text
 * that begins with [owner].
 */
gs_status_t gsi_thread_start (pthread_t *thread, void *(*work) (void *), void *argument,
                              const char *owner);

/* The calling thread, which is the library's, leaves a core to the program's if both want it. */
void gsi_thread_stand_back (void);

/*
 * A thread of the library calls CUDA or NCCL only between these. False: the process is at its
 * end, and they are no longer to be called. N.B. Their static objects, such as the modules of the
 * CUDA runtime within libnccl, go in exit, while threads run on: a call crashes then (seen on an
 * H100).
 */
bool gsi_thread_enter_gpu (void);
void gsi_thread_leave_gpu (void);

/* Whether the process waits for the calling thread to leave, and will not for long. */
bool gsi_thread_must_leave_gpu (void);

/*
 * From now on the process does not end with a thread between those, if that takes no more than
 * some seconds. To be called when the GPU's libraries are up: what registers later is gone
 * before.
 */
void gsi_thread_outlast_gpu (void);

/* A condition whose timed waits are told times of gsi_now_ns. */
void gsi_condition_init (pthread_cond_t *condition);

/* Waits for it at most until [until_ns]. */
void gsi_condition_wait (pthread_cond_t *condition, pthread_mutex_t *guard, int64_t until_ns);

#endif /* GS_BASE_THREAD_H */
