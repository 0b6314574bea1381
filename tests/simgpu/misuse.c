/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * misuse - does one thing wrong, named by its argument, and returns 0: runtime.sh looks at what
 * becomes of that. "list" prints "NAME WORDS" for each, the words of its message.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "other.h"

static cudaStream_t stream;
static cudaEvent_t event;
static char *memory, host[16];
static struct other second; /* process, of kinds whose name has "shared" */

static void nothing (void *unused)
{
    (void) unused;
}

static void call_cuda (void *unused)
{
    (void) unused;
    cudaGetDevice (&(int){0});
}

static void begin (void)
{
    cudaStreamCreateWithFlags (&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags (&event, cudaEventDisableTiming);
    cudaMalloc ((void **) &memory, 16);
}

static void end (void)
{
    cudaFree (memory);
    cudaEventDestroy (event);
    cudaStreamDestroy (stream);
}

static cudaGraph_t capture (void)
{
    cudaGraph_t graph;

    cudaStreamBeginCapture (stream, cudaStreamCaptureModeRelaxed);
    cudaLaunchHostFunc (stream, nothing, NULL);
    cudaStreamEndCapture (stream, &graph);
    return graph;
}

static void leak_stream (void)
{
    cudaStreamCreate (&(cudaStream_t){NULL});
}

static void leak_event (void)
{
    cudaEventCreate (&(cudaEvent_t){NULL});
}

static void leak_graph (void)
{
    capture ();
}

static void leak_exec (void)
{
    cudaGraph_t graph = capture ();

    cudaGraphInstantiate (&(cudaGraphExec_t){NULL}, graph, 0);
    cudaGraphDestroy (graph);
}

static void leak_device (void)
{
    cudaMalloc (&(void *){NULL}, 100);
}

static void leak_managed (void)
{
    cudaMallocManaged (&(void *){NULL}, 100, cudaMemAttachGlobal);
}

static void leak_pinned (void)
{
    cudaMallocHost (&(void *){NULL}, 100);
}

static void leak_registered (void)
{
    cudaHostRegister (host, sizeof (host), cudaHostRegisterDefault);
}

static void double_free (void)
{
    void *other;

    cudaMalloc (&other, 1);
    cudaFree (other);
    cudaFree (other);
}

static void free_inside (void)
{
    cudaFree (memory + 1);
}

static void free_unknown (void)
{
    cudaFree (host);
}

static void free_other_kind (void)
{
    cudaFreeHost (memory);
}

static void copy_after_free (void)
{
    void *other;

    cudaMalloc (&other, 16);
    cudaFree (other);
    cudaMemcpy (host, other, 1, cudaMemcpyDeviceToHost);
}

static void queued_after_free (void)
{
    void *other;

    cudaMallocAsync (&other, 16, stream);
    cudaFreeAsync (other, stream);
    cudaMemsetAsync (other, 0, 1, stream);
    cudaStreamSynchronize (stream);
}

static void kernel_after_free (void)
{
    float *other;

    cudaMalloc ((void **) &other, 16);
    cudaFree (other);
    test_scale (other, 1, (struct test_table){4, {0}}, stream);
    cudaStreamSynchronize (stream);
}

static void kernel_out_of_range (void)
{
    test_scale ((float *) (void *) memory, 1, (struct test_table){5, {0}}, stream);
    cudaStreamSynchronize (stream);
}

static void kernel_on_host_memory (void)
{
    test_scale ((float *) (void *) host, 1, (struct test_table){1, {0}}, stream);
    cudaStreamSynchronize (stream);
}

static void copy_out_of_range (void)
{
    cudaMemcpy (memory + 10, host, 7, cudaMemcpyHostToDevice);
}

static void copy_direction (void)
{
    cudaMemcpy (memory, host, 1, cudaMemcpyDeviceToHost);
}

static void set_host_memory (void)
{
    cudaMemset (host, 0, 1);
}

/* A function of the driver on the value at [address]. */
static void call_value (const char *name, void *address)
{
    int (*call) (cudaStream_t, unsigned long long, unsigned, unsigned);

    *(void **) &call = dlsym (dlopen ("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD), name);
    call (stream, (unsigned long long) (uintptr_t) address, 1, 0);
}

static void wait_on_host_memory (void)
{
    call_value ("cuStreamWaitValue32_v2", host);
}

static void wait_out_of_range (void)
{
    call_value ("cuStreamWaitValue32_v2", memory + 14);
}

static void wait_misaligned (void)
{
    call_value ("cuStreamWaitValue32_v2", memory + 1);
}

static void write_managed (void)
{
    void *other;

    cudaMallocManaged (&other, 16, cudaMemAttachGlobal);
    call_value ("cuStreamWriteValue32_v2", other);
    cudaFree (other);
}

/* While the stream waits; its device fails then. */
static void wait_after_free (void)
{
    cudaStream_t other;
    void *word;

    cudaStreamCreateWithFlags (&other, cudaStreamNonBlocking);
    cudaMallocAsync (&word, 16, other);
    cudaMemsetAsync (word, 0, 16, other);
    cudaStreamSynchronize (other);
    call_value ("cuStreamWaitValue32_v2", word);
    cudaFreeAsync (word, other);
    cudaStreamSynchronize (stream);
}

static cudaIpcMemHandle_t handle_of_own (void)
{
    cudaIpcMemHandle_t handle;

    cudaIpcGetMemHandle (&handle, memory);
    return handle;
}

/* Memory of the second process. */
static char *open_its (void)
{
    struct other_answer its = other_ask (&second, OTHER_MALLOCS, 16, NULL);
    void *opened = NULL;

    cudaIpcOpenMemHandle (&opened, its.handle, cudaIpcMemLazyEnablePeerAccess);
    return opened;
}

static void open_own (void)
{
    cudaIpcOpenMemHandle (&(void *){NULL}, handle_of_own (), cudaIpcMemLazyEnablePeerAccess);
}

static void close_unknown (void)
{
    cudaIpcCloseMemHandle (memory);
}

static void shared_closed_twice (void)
{
    char *opened = open_its ();

    cudaIpcCloseMemHandle (opened);
    cudaIpcCloseMemHandle (opened);
}

static void shared_closed_inside (void)
{
    char *opened = open_its ();

    cudaIpcCloseMemHandle (opened + 1);
    cudaIpcCloseMemHandle (opened);
}

static void shared_used_closed (void)
{
    char *opened = open_its ();

    cudaIpcCloseMemHandle (opened);
    cudaMemset (opened, 0, 1);
}

static void shared_freed_opened (void)
{
    char *opened = open_its ();

    cudaFree (opened);
    cudaIpcCloseMemHandle (opened);
}

static void shared_freed_early (void)
{
    cudaIpcMemHandle_t handle = handle_of_own ();

    other_ask (&second, OTHER_OPENS, 0, &handle);
    cudaFree (memory);
    memory = NULL;
    other_ask (&second, OTHER_CLOSES, 0, NULL);
}

/* As who has it open sees it. */
static void shared_used_freed (void)
{
    char *opened = open_its ();

    other_ask (&second, OTHER_FREES, 0, NULL);
    cudaMemcpy (host, opened, 1, cudaMemcpyDeviceToHost);
    cudaIpcCloseMemHandle (opened);
}

static void leak_shared (void)
{
    open_its ();
}

static void destroyed_stream (void)
{
    cudaStream_t other;

    cudaStreamCreate (&other);
    cudaStreamDestroy (other);
    cudaStreamSynchronize (other);
}

static void destroyed_event (void)
{
    cudaEvent_t other;

    cudaEventCreate (&other);
    cudaEventDestroy (other);
    cudaEventRecord (other, stream);
}

static void destroyed_graph (void)
{
    cudaGraph_t graph = capture ();

    cudaGraphDestroy (graph);
    cudaGraphDestroy (graph);
}

static void record_elsewhere (void)
{
    cudaEvent_t other;

    cudaSetDevice (1);
    cudaEventCreate (&other);
    cudaEventRecord (other, stream);
    cudaEventDestroy (other);
    cudaSetDevice (0);
}

static void launch_elsewhere (void)
{
    cudaSetDevice (1);
    test_scale ((float *) (void *) memory, 1, (struct test_table){1, {0}}, stream);
    cudaSetDevice (0);
}

static void no_twin (void)
{
    test_orphan (stream);
}

static void two_dimensions (void)
{
    test_scale_shaped ((float *) (void *) memory, (dim3){1, 2, 1}, (dim3){1, 1, 1}, 0, stream);
}

static void host_function (void)
{
    cudaLaunchHostFunc (stream, call_cuda, NULL);
    cudaStreamSynchronize (stream);
}

static void destroy_captured (void)
{
    cudaStream_t other;

    cudaStreamCreateWithFlags (&other, cudaStreamNonBlocking);
    cudaStreamBeginCapture (other, cudaStreamCaptureModeRelaxed);
    cudaStreamDestroy (other);
}

static void bad_fault (void)
{
    setenv ("SIM_FAULT", "cudaMalloc#x", 1);
}

static void bad_mode (void)
{
    setenv ("SIM_COMPUTE_MODE", "shared", 1);
}

static void bad_number (void)
{
    setenv ("SIM_GPUS", "many", 1);
}

/* A device's memory is not the host's. Ends by a signal. */
static void touch (void)
{
    memory[3] = 1;
}

/* A host's pinned memory, after it was freed. */
static void touch_freed (void)
{
    char *pinned;

    cudaMallocHost ((void **) &pinned, 1);
    cudaFreeHost (pinned);
    *(volatile char *) pinned = 1;
}

static const struct {
    const char *name;
    void (*run) (void);
    const char *words;
} kinds[] = {
    {"leak_stream", leak_stream, "leak: 1 of the stream kind"},
    {"leak_event", leak_event, "leak: 1 of the event kind"},
    {"leak_graph", leak_graph, "leak: 1 of the graph kind"},
    {"leak_exec", leak_exec, "leak: 1 of the executable graph kind"},
    {"leak_device", leak_device, "leak: 100 bytes of device memory"},
    {"leak_managed", leak_managed, "leak: 100 bytes of managed memory"},
    {"leak_pinned", leak_pinned, "leak: 100 bytes of pinned memory"},
    {"leak_registered", leak_registered, "leak: 16 bytes of registered memory"},
    {"double_free", double_free, "cudaFree: .*double free"},
    {"free_inside", free_inside, "cudaFree: .* 1 bytes into an allocation"},
    {"free_unknown", free_unknown, "cudaFree: .* was not allocated"},
    {"free_other_kind", free_other_kind, "cudaFreeHost: .* another kind"},
    {"copy_after_free", copy_after_free, "cudaMemcpy: .* used after it was freed"},
    {"queued_after_free", queued_after_free, "cudaMemsetAsync: .* used after it was freed"},
    {"kernel_after_free", kernel_after_free, "scale: .* used after it was freed"},
    {"kernel_out_of_range", kernel_out_of_range, "scale: 20 bytes .* end 4 bytes behind"},
    {"kernel_on_host_memory", kernel_on_host_memory, "scale: .* not memory that a device can"},
    {"copy_out_of_range", copy_out_of_range, "cudaMemcpy: 7 bytes .* end 1 bytes behind"},
    {"copy_direction", copy_direction, "cudaMemcpy: .* direction says otherwise"},
    {"set_host_memory", set_host_memory, "cudaMemset: .* not memory that a device can"},
    {"wait_on_host_memory", wait_on_host_memory, "cuStreamWaitValue32: .* not memory that a dev"},
    {"wait_out_of_range", wait_out_of_range,
     "cuStreamWaitValue32: 4 bytes .* end 2 bytes behind"},
    {"wait_misaligned", wait_misaligned, "cuStreamWaitValue32: .* is no multiple of 4"},
    {"wait_after_free", wait_after_free, "cuStreamWaitValue32: .* used after it was freed"},
    {"write_managed", write_managed, "cuStreamWriteValue32: .* is managed memory"},
    {"open_own", open_own, "cudaIpcOpenMemHandle: the handle is of memory of this process"},
    {"close_unknown", close_unknown, "cudaIpcCloseMemHandle: .* was not opened"},
    {"shared_closed_twice", shared_closed_twice, "cudaIpcCloseMemHandle: .* was closed before"},
    {"shared_closed_inside", shared_closed_inside, "cudaIpcCloseMemHandle: .* 1 bytes into what"},
    {"shared_used_closed", shared_used_closed, "cudaMemset: .* is used after it was closed"},
    {"shared_freed_opened", shared_freed_opened,
     "cudaFree: .* was opened: cudaIpcCloseMemHandle"},
    {"shared_freed_early", shared_freed_early, "cudaFree: .* is still open in process"},
    {"shared_used_freed", shared_used_freed, "cudaMemcpy: .* used after its owner, process"},
    {"leak_shared", leak_shared, "leak: 16 bytes of opened memory at .* were not closed"},
    {"destroyed_stream", destroyed_stream, "cudaStreamSynchronize: the stream .* was destroyed"},
    {"destroyed_event", destroyed_event, "cudaEventRecord: the event .* was destroyed"},
    {"destroyed_graph", destroyed_graph, "cudaGraphDestroy: the graph .* was destroyed"},
    {"record_elsewhere", record_elsewhere, "the event is of device 1, the stream of device 0"},
    {"launch_elsewhere", launch_elsewhere, "the stream is of device 0, the current one is 1"},
    {"no_twin", no_twin, "kernel orphan has no twin"},
    {"two_dimensions", two_dimensions, "only launches of one dimension"},
    {"host_function", host_function, "cudaGetDevice: called from a function of cudaLaunchHost"},
    {"destroy_captured", destroy_captured, "cudaStreamDestroy: the stream .* is being captured"},
    {"bad_fault", bad_fault, "SIM_FAULT: 'cudaMalloc#x' is not"},
    {"bad_mode", bad_mode, "SIM_COMPUTE_MODE is 'shared', not default or exclusive"},
    {"bad_number", bad_number, "SIM_GPUS is 'many', not a number"},
    {"touch", touch, ""},
    {"touch_freed", touch_freed, ""},
};

int main (int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < sizeof (kinds) / sizeof (kinds[0]); i++) {
        if (!strcmp (name, "list"))
            printf ("%s %s\n", kinds[i].name, kinds[i].words);
        if (strcmp (name, kinds[i].name))
            continue;
        if (strstr (name, "shared"))
            other_start (&second, NULL, 1);
        if (strncmp (name, "bad_", 4)) {
            begin ();
            kinds[i].run ();
        } else {
            kinds[i].run (); /* settings are read at the first call */
            begin ();
        }
        end ();
        if (second.pid)
            other_end (&second, 0);
        return 0;
    }
    if (!strcmp (name, "none")) {
        begin ();
        end ();
    }
    return strcmp (name, "none") && strcmp (name, "list");
}
