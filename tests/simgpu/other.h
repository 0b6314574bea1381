/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * other - a second process for tests of memory that processes share. It does what it is asked,
 * one request at a time, and ends with what it was asked through. It must be started before the
 * first call of CUDA.
 */
#ifndef GS_TESTS_SIMGPU_OTHER_H
#define GS_TESTS_SIMGPU_OTHER_H

#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct other {
    int fd;
    pid_t pid;
};

enum other_does {
    OTHER_MALLOCS = 1, /* [number] bytes, on the current device; gives their handle */
    OTHER_FREES = 2,
    OTHER_OPENS = 3, /* [handle] */
    OTHER_CLOSES = 4,
    OTHER_WRITES = 5, /* [number] into the first byte of what it has */
    OTHER_READS = 6,  /* gives that byte as [number] */
    OTHER_SETS = 7    /* the current device, [number] */
};

struct other_request {
    enum other_does what;
    int number;
    cudaIpcMemHandle_t handle;
};

struct other_answer {
    cudaError_t error;
    int number;
    cudaIpcMemHandle_t handle;
};

static inline cudaError_t other_malloc (struct other_answer *answer, int bytes, char **memory)
{
    cudaError_t error = cudaMalloc ((void **) memory, (size_t) bytes);

    return error ? error : cudaIpcGetMemHandle (&answer->handle, *memory);
}

static inline struct other_answer other_does (const struct other_request *request, char **memory)
{
    struct other_answer answer = {.number = 0};
    char byte = (char) request->number;

    switch (request->what) {
    case OTHER_MALLOCS: answer.error = other_malloc (&answer, request->number, memory); break;
    case OTHER_FREES: answer.error = cudaFree (*memory); break;
    case OTHER_OPENS:
        answer.error = cudaIpcOpenMemHandle ((void **) memory, request->handle,
                                             cudaIpcMemLazyEnablePeerAccess);
        break;
    case OTHER_CLOSES: answer.error = cudaIpcCloseMemHandle (*memory); break;
    case OTHER_WRITES:
        answer.error = cudaMemcpy (*memory, &byte, 1, cudaMemcpyHostToDevice);
        if (!answer.error)
            answer.error = cudaDeviceSynchronize ();
        break;
    case OTHER_READS:
        answer.error = cudaMemcpy (&byte, *memory, 1, cudaMemcpyDeviceToHost);
        answer.number = byte;
        break;
    case OTHER_SETS: answer.error = cudaSetDevice (request->number); break;
    }
    return answer;
}

/* Its misuse is another process's, whose lines are not shown if it is [quiet]. */
static inline void other_serve (int fd, int quiet)
{
    struct other_request request;
    char *memory = NULL;

    if (quiet && !freopen ("/dev/null", "w", stderr))
        exit (99);
    while (read (fd, &request, sizeof (request)) == (ssize_t) sizeof (request)) {
        struct other_answer answer = other_does (&request, &memory);
        if (write (fd, &answer, sizeof (answer)) != (ssize_t) sizeof (answer))
            exit (99);
    }
    exit (0);
}

/* With [visible] as its CUDA_VISIBLE_DEVICES, unless that is NULL. */
static inline void other_start (struct other *other, const char *visible, int quiet)
{
    int pair[2];

    if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        abort ();
    other->pid = fork ();
    if (other->pid < 0)
        abort ();
    if (!other->pid) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        close (pair[0]);
        if (visible)
            setenv ("CUDA_VISIBLE_DEVICES", visible, 1);
        other_serve (pair[1], quiet);
    }
    close (pair[1]);
    other->fd = pair[0];
}

/* Without an answer the other process has ended: an error that no function gives. */
static inline struct other_answer other_ask (const struct other *other, enum other_does what,
                                             int number, const cudaIpcMemHandle_t *handle)
{
    struct other_request request = {.what = what, .number = number};
    struct other_answer answer = {.error = cudaErrorApiFailureBase};

    if (handle)
        request.handle = *handle;
    if (send (other->fd, &request, sizeof (request), MSG_NOSIGNAL) !=
            (ssize_t) sizeof (request) ||
        read (other->fd, &answer, sizeof (answer)) != (ssize_t) sizeof (answer))
        answer.error = cudaErrorApiFailureBase;
    return answer;
}

/* The exit status of the other process, or -1; [killed]: by SIGKILL, which it does not see. */
static inline int other_end (struct other *other, int killed)
{
    int status;

    if (killed)
        kill (other->pid, SIGKILL);
    shutdown (other->fd, SHUT_RDWR); /* processes that were started later have it, too */
    close (other->fd);
    if (waitpid (other->pid, &status, 0) != other->pid || !WIFEXITED (status))
        return -1;
    return WEXITSTATUS (status);
}

#endif /* GS_TESTS_SIMGPU_OTHER_H */
