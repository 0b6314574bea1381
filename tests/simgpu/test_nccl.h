/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_nccl - tests of the simulated NCCL: one program, run once for each rank of a case. A case
 * is a function that every rank runs; the parent knows how each of them has to end.
 */
#ifndef GS_TESTS_SIMGPU_TEST_NCCL_H
#define GS_TESTS_SIMGPU_TEST_NCCL_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

#define MOST   32                       /* ranks */
#define EARLY  "NCCL_RUNTIME_CONNECT=0" /* calls do not wait in connecting */
#define MISUSE 86                       /* how a process ends that misused CUDA or NCCL */

extern int rank, ranks; /* of this process */

/* Ends this rank with status 1 and a line that says where. */
void failed (const char *file, int line, const char *format, ...)
    __attribute__ ((noreturn, format (printf, 3, 4)));
#define FAIL(...) failed (__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition)             \
    do {                             \
        if (!(condition))            \
            FAIL ("%s", #condition); \
    } while (0)
#define CUDA(call)                                              \
    do {                                                        \
        cudaError_t code_ = (call);                             \
        if (code_ != cudaSuccess)                               \
            FAIL ("%s: %s", #call, cudaGetErrorString (code_)); \
    } while (0)
#define GIVES(result, call)                                                                    \
    do {                                                                                       \
        ncclResult_t code_ = (call);                                                           \
        if (code_ != (result))                                                                 \
            FAIL ("%s gives %d, not %s (%s)", #call, code_, #result, ncclGetLastError (NULL)); \
    } while (0)
#define NCCL(call) GIVES (ncclSuccess, call)

/* Ends the case, as one that was not tried, unless each rank can have [each] GPUs to itself. */
void need_gpus (int each);

/* Whether this is the simulated NCCL, whose numbers and order are known. */
bool is_simulated (void);

/* From the rank [from] to all; outside of NCCL. */
void tell (int from, void *data, size_t bytes);
void meet (void); /* all ranks have come */

/* A communicator of all ranks, each with a device of its own. */
ncclComm_t make_comm (bool blocking);
ncclComm_t make_comm_from (ncclUniqueId id, bool blocking);
ncclResult_t settle (ncclComm_t comm); /* polls until nothing is in progress; what it is then */
void end_comm (ncclComm_t comm);

cudaStream_t make_stream (void);
void *make_device (const void *host, size_t bytes);               /* [host] may be NULL: zeros */
void write_device (void *device, const void *host, size_t bytes); /* for all streams */
void read_device (void *host, const void *device, size_t bytes);

struct test {
    const char *name;
    void (*run) (void);
    int most; /* ranks, if not any number */
    int least;
    int status;       /* of every rank */
    const char *text; /* that stderr has to hold */
    const char *set;  /* VARIABLE=VALUE */
};
extern const struct test data_tests[], group_tests[], life_tests[], memory_tests[], rule_tests[];

#endif /* GS_TESTS_SIMGPU_TEST_NCCL_H */
