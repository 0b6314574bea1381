/* SPDX-License-Identifier: BSD-3-Clause */
/* test_device - which devices there are, and what they tell of themselves. */

#include "test.h"

START_TEST (four_devices)
{
    int count, device = -1;

    if (!test_simulated ())
        return;
    test_ok (cudaGetDeviceCount (&count));
    ck_assert_int_eq (count, 4);
    test_ok (cudaGetDevice (&device));
    ck_assert_int_eq (device, 0);
    test_gives (cudaErrorInvalidValue, cudaGetDeviceCount (NULL));
}
END_TEST

START_TEST (no_devices)
{
    int count;
    void *memory;

    if (!test_simulated ())
        return;
    setenv ("SIM_GPUS", "0", 1);
    test_gives (cudaErrorNoDevice, cudaGetDeviceCount (&count));
    test_gives (cudaErrorNoDevice, cudaMalloc (&memory, 1));
    test_gives (cudaErrorNoDevice, cudaSetDevice (0));
    test_gives (cudaErrorNoDevice, cudaGetLastError ());
    test_ok (cudaRuntimeGetVersion (&count));
    ck_assert_int_eq (count, CUDART_VERSION);
}
END_TEST

/* Also with the real library where there is no driver. */
START_TEST (no_driver)
{
    int count = 7, version;
    void *memory;

    setenv ("SIM_GPUS", "-1", 1);
    test_ok (cudaDriverGetVersion (&version));
    if (version)
        return;
    test_gives (cudaErrorInsufficientDriver, cudaPeekAtLastError ());
    test_gives (cudaErrorInsufficientDriver, cudaGetDeviceCount (&count));
    ck_assert_int_eq (count, 7);
    test_gives (cudaErrorInsufficientDriver, cudaSetDevice (0));
    test_gives (cudaErrorInsufficientDriver, cudaMalloc (&memory, 1));
    test_gives (cudaErrorInsufficientDriver,
                cudaPointerGetAttributes (&(struct cudaPointerAttributes){0}, &count));
    test_gives (cudaErrorInsufficientDriver, cudaHostAlloc (&memory, 1, 0xffff));
    for (int i = 0; i < 2; i++)
        test_gives (cudaErrorInsufficientDriver, cudaGetLastError ());
    test_ok (cudaRuntimeGetVersion (&version));
    ck_assert_int_eq (version, CUDART_VERSION);
}
END_TEST

START_TEST (an_empty_list_shows_none)
{
    int count;

    if (!test_simulated ())
        return;
    setenv ("CUDA_VISIBLE_DEVICES", "", 1);
    test_gives (cudaErrorNoDevice, cudaGetDeviceCount (&count));
}
END_TEST

static void find_bus_id (char *id, int device)
{
    test_ok (cudaDeviceGetPCIBusId (id, 16, device));
}

START_TEST (a_list_shows_what_it_names)
{
    char expected[16], id[16];
    int count, number;

    if (!test_simulated ())
        return;
    snprintf (expected, sizeof (expected), "0000:%02X:00.0", 7 + 7 * 3);
    setenv ("CUDA_VISIBLE_DEVICES", "3,1", 1);
    test_ok (cudaGetDeviceCount (&count));
    ck_assert_int_eq (count, 2);
    find_bus_id (id, 0);
    ck_assert_str_eq (id, expected);
    test_ok (cudaDeviceGetByPCIBusId (&number, id));
    ck_assert_int_eq (number, 0);
    test_gives (cudaErrorInvalidDevice, cudaSetDevice (2));
    test_gives (cudaErrorInvalidDevice, cudaSetDevice (-1));
}
END_TEST

START_TEST (a_list_ends_at_what_is_no_device)
{
    int count;

    if (!test_simulated ())
        return;
    setenv ("CUDA_VISIBLE_DEVICES", "2,9,1", 1);
    test_ok (cudaGetDeviceCount (&count));
    ck_assert_int_eq (count, 1);
}
END_TEST

START_TEST (devices_differ)
{
    struct cudaDeviceProp one, other, again;
    char id[2][16];
    int bus;

    if (!test_has_devices (2))
        return;
    find_bus_id (id[0], 0);
    find_bus_id (id[1], 1);
    ck_assert_str_ne (id[0], id[1]);
    test_gives (cudaErrorInvalidValue, cudaDeviceGetPCIBusId (id[0], 5, 0));
    test_ok (cudaGetDeviceProperties (&one, 0));
    test_ok (cudaGetDeviceProperties (&other, 1));
    test_ok (cudaGetDeviceProperties (&again, 0));
    ck_assert_mem_ne (&one.uuid, &other.uuid, sizeof (one.uuid));
    ck_assert_mem_eq (&one.uuid, &again.uuid, sizeof (one.uuid));
    test_ok (cudaDeviceGetAttribute (&bus, cudaDevAttrPciBusId, 1));
    ck_assert_int_eq (bus, other.pciBusID);
    test_gives (cudaErrorInvalidDevice, cudaGetDeviceProperties (&one, 99));
}
END_TEST

START_TEST (attributes)
{
    int value = -1;

    test_ok (cudaDeviceGetAttribute (&value, cudaDevAttrWarpSize, 0));
    ck_assert_int_eq (value, 32);
    test_ok (cudaDeviceGetAttribute (&value, cudaDevAttrManagedMemory, 0));
    ck_assert_int_eq (value, 1);
    test_gives (cudaErrorInvalidDevice, cudaDeviceGetAttribute (&value, cudaDevAttrWarpSize, 99));
    if (test_simulated ()) /* an answer would be made up */
        test_gives (cudaErrorNotSupported,
                    cudaDeviceGetAttribute (&value, cudaDevAttrMaxTexture1DWidth, 0));
}
END_TEST

static void *ask_device (void *device)
{
    test_ok (cudaGetDevice (device));
    return NULL;
}

START_TEST (each_thread_has_its_device)
{
    int here = -1, there = -1;
    pthread_t thread;

    if (!test_has_devices (3))
        return;
    test_ok (cudaSetDevice (2));
    ck_assert_int_eq (pthread_create (&thread, NULL, ask_device, &there), 0);
    pthread_join (thread, NULL);
    test_ok (cudaGetDevice (&here));
    ck_assert_int_eq (here, 2);
    ck_assert_int_eq (there, 0);
}
END_TEST

START_TEST (priorities)
{
    int least, greatest, priority;
    cudaStream_t stream;

    test_ok (cudaDeviceGetStreamPriorityRange (&least, &greatest));
    ck_assert_int_lt (greatest, least);
    test_ok (cudaStreamCreateWithPriority (&stream, cudaStreamNonBlocking, greatest - 7));
    test_ok (cudaStreamGetPriority (stream, &priority));
    ck_assert_int_eq (priority, greatest);
    test_ok (cudaStreamDestroy (stream));
}
END_TEST

START_TEST (peers)
{
    int can;

    if (!test_has_devices (2))
        return;
    test_ok (cudaDeviceCanAccessPeer (&can, 0, 1));
    ck_assert_int_eq (can, 1);
    test_ok (cudaDeviceCanAccessPeer (&can, 1, 1));
    ck_assert_int_eq (can, 0);
    test_ok (cudaDeviceEnablePeerAccess (1, 0));
    test_gives (cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess (1, 0));
    test_gives (cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess (0, 0));
}
END_TEST

/* What the simulated NCCL asks for. */
START_TEST (the_engine_counts_physical_devices)
{
    int (*physical) (void);
    const char *(*bus_id) (void);
    char id[16];

    if (!test_simulated ())
        return;
    *(void **) &physical = dlsym (RTLD_DEFAULT, "sim_physical_device");
    *(void **) &bus_id = dlsym (RTLD_DEFAULT, "sim_bus_id");
    ck_assert_msg (physical && bus_id, "this is not the simulated runtime");
    setenv ("CUDA_VISIBLE_DEVICES", "2,0", 1);
    test_ok (cudaSetDevice (0));
    ck_assert_int_eq (physical (), 2);
    find_bus_id (id, 0);
    ck_assert_str_eq (bus_id (), id);
    test_ok (cudaSetDevice (1));
    ck_assert_int_eq (physical (), 0);
}
END_TEST

/* What makes a context, and what does not. */
START_TEST (contexts_are_made_where_they_are_used)
{
    bool (*has) (int);
    struct cudaPointerAttributes about;
    struct cudaDeviceProp properties;
    int count, x, thread_device;

    if (!test_simulated ())
        return;
    *(void **) &has = dlsym (RTLD_DEFAULT, "sim_has_context");
    ck_assert_msg (has, "this is not the simulated runtime");
    test_ok (cudaGetDeviceCount (&count));
    test_ok (cudaGetDevice (&thread_device));
    test_ok (cudaGetDeviceProperties (&properties, 1));
    for (int i = 0; i < count; i++)
        ck_assert (!has (i));
    test_ok (cudaSetDevice (2));
    ck_assert (has (2) && !has (0));
    test_ok (cudaPointerGetAttributes (&about, &x));
    ck_assert (!has (0) && !has (1));
    test_ok (cudaSetDevice (0));
    ck_assert (has (0));
}
END_TEST

TEST_CASE (test_device, "device", four_devices, no_devices, no_driver, an_empty_list_shows_none,
           a_list_shows_what_it_names, a_list_ends_at_what_is_no_device, devices_differ,
           attributes, each_thread_has_its_device, priorities, peers,
           the_engine_counts_physical_devices, contexts_are_made_where_they_are_used)
