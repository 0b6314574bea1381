/* SPDX-License-Identifier: BSD-3-Clause */
/* test_visible - devices by their names, and instances of GPUs. */
#include <sys/wait.h>

#include "other.h"
#include "test.h"

#define NAME_BYTES 48

/* The name of a device as CUDA_VISIBLE_DEVICES takes it; GPU- or MIG-. */
static void write_name (char *name, const char *what, int device)
{
    struct cudaDeviceProp properties;
    const unsigned char *byte = (const unsigned char *) properties.uuid.bytes;

    test_ok (cudaGetDeviceProperties (&properties, device));
    name += sprintf (name, "%s-", what);
    for (int i = 0; i < 16; i++)
        name +=
            sprintf (name, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", byte[i]);
}

/* The name of what [visible] shows first, from another process: this one must not begin yet. */
static void ask_name (char *name, const char *what, const char *visible)
{
    int pipes[2], status;
    pid_t child;

    ck_assert_int_eq (pipe (pipes), 0);
    child = fork ();
    if (!child) {
        setenv ("CUDA_VISIBLE_DEVICES", visible, 1);
        write_name (name, what, 0);
        exit (write (pipes[1], name, NAME_BYTES) == NAME_BYTES ? 0 : 1);
    }
    ck_assert_int_eq (waitpid (child, &status, 0), child);
    ck_assert_int_eq (status, 0);
    ck_assert_int_eq (read (pipes[0], name, NAME_BYTES), NAME_BYTES);
    close (pipes[0]);
    close (pipes[1]);
}

static void check_bus (int device, int gpu)
{
    char expected[16], id[16];

    snprintf (expected, sizeof (expected), "0000:%02X:00.0", 7 + 7 * gpu);
    test_ok (cudaDeviceGetPCIBusId (id, sizeof (id), device));
    ck_assert_str_eq (id, expected);
}

static int count_devices (void)
{
    int count = 0;

    test_ok (cudaGetDeviceCount (&count));
    return count;
}

START_TEST (a_list_may_have_names)
{
    char third[NAME_BYTES], second[NAME_BYTES], list[3 * NAME_BYTES], again[NAME_BYTES];

    if (!test_simulated ())
        return;
    ask_name (third, "GPU", "2");
    ask_name (second, "GPU", "1");
    snprintf (list, sizeof (list), "%s,0,%.12s", third, second);
    setenv ("CUDA_VISIBLE_DEVICES", list, 1);
    ck_assert_int_eq (count_devices (), 3);
    check_bus (0, 2);
    check_bus (1, 0);
    check_bus (2, 1);
    write_name (again, "GPU", 0);
    ck_assert_str_eq (again, third);
}
END_TEST

/* "GPU-" could be any of them. */
START_TEST (a_name_must_be_one_devices)
{
    char first[NAME_BYTES], list[2 * NAME_BYTES];

    if (!test_simulated ())
        return;
    ask_name (first, "GPU", "0");
    snprintf (list, sizeof (list), "1,GPU-,%s", first);
    setenv ("CUDA_VISIBLE_DEVICES", list, 1);
    ck_assert_int_eq (count_devices (), 1);
}
END_TEST

START_TEST (a_name_of_an_instance_shows_none_without_instances)
{
    char first[NAME_BYTES];
    int count;

    if (!test_simulated ())
        return;
    ask_name (first, "MIG", "0");
    setenv ("CUDA_VISIBLE_DEVICES", first, 1);
    test_gives (cudaErrorNoDevice, cudaGetDeviceCount (&count));
}
END_TEST

/* The first of the first GPU, or of the GPU that is named. */
START_TEST (a_process_sees_one_instance)
{
    struct cudaDeviceProp properties;

    if (!test_simulated ())
        return;
    setenv ("SIM_MIG", "3", 1);
    ck_assert_int_eq (count_devices (), 1);
    check_bus (0, 0);
    test_ok (cudaGetDeviceProperties (&properties, 0));
    ck_assert_ptr_nonnull (strstr (properties.name, "MIG"));
    test_gives (cudaErrorInvalidDevice, cudaSetDevice (1));
}
END_TEST

START_TEST (a_number_shows_the_first_instance_of_a_gpu)
{
    char first[NAME_BYTES], again[NAME_BYTES];

    if (!test_simulated ())
        return;
    setenv ("SIM_MIG", "3", 1);
    ask_name (first, "MIG", "2");
    setenv ("CUDA_VISIBLE_DEVICES", "2,1", 1);
    ck_assert_int_eq (count_devices (), 1);
    check_bus (0, 2);
    write_name (again, "MIG", 0);
    ck_assert_str_eq (again, first);
}
END_TEST

/* All instances of a GPU, by the names that the simulation gives them. */
static void name_instance (char *name, int number)
{
    void (*uuid_of) (int, cudaUUID_t *);
    cudaUUID_t uuid;

    *(void **) &uuid_of = dlsym (RTLD_DEFAULT, "sim_uuid");
    ck_assert_msg (uuid_of, "this is not the simulated runtime");
    uuid_of (number, &uuid);
    name += sprintf (name, "MIG-");
    for (int i = 0; i < 16; i++)
        name += sprintf (name, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                         (unsigned char) uuid.bytes[i]);
}

START_TEST (instances_of_a_gpu_have_its_bus_id)
{
    char names[2][NAME_BYTES], list[3 * NAME_BYTES], again[NAME_BYTES];

    if (!test_simulated ())
        return;
    setenv ("SIM_MIG", "3", 1);
    for (int i = 0; i < 2; i++)
        name_instance (names[i], 3 + i);
    ck_assert_str_ne (names[0], names[1]);
    snprintf (list, sizeof (list), "%s,%s", names[1], names[0]);
    setenv ("CUDA_VISIBLE_DEVICES", list, 1);
    ck_assert_int_eq (count_devices (), 1);
    check_bus (0, 1);
    write_name (again, "MIG", 0);
    ck_assert_str_eq (again, names[1]);
}
END_TEST

/* Processes on one instance share memory, those on two do not. */
START_TEST (memory_is_shared_within_an_instance)
{
    struct other_answer near, far;
    struct other same, another;
    char name[NAME_BYTES];
    void *memory;

    if (!test_simulated ())
        return;
    setenv ("SIM_MIG", "2", 1);
    name_instance (name, 1);
    other_start (&same, "0", 0);
    other_start (&another, name, 0);
    near = other_ask (&same, OTHER_MALLOCS, 100, NULL);
    far = other_ask (&another, OTHER_MALLOCS, 100, NULL);
    ck_assert (!near.error && !far.error);
    test_ok (cudaIpcOpenMemHandle (&memory, near.handle, cudaIpcMemLazyEnablePeerAccess));
    test_ok (cudaIpcCloseMemHandle (memory));
    test_gives (cudaErrorPeerAccessUnsupported,
                cudaIpcOpenMemHandle (&memory, far.handle, cudaIpcMemLazyEnablePeerAccess));
    ck_assert (!other_ask (&same, OTHER_FREES, 0, NULL).error);
    ck_assert (!other_ask (&another, OTHER_FREES, 0, NULL).error);
    ck_assert_int_eq (other_end (&same, 0), 0);
    ck_assert_int_eq (other_end (&another, 0), 0);
}
END_TEST

TEST_CASE (test_visible, "visible", a_list_may_have_names, a_name_must_be_one_devices,
           a_name_of_an_instance_shows_none_without_instances, a_process_sees_one_instance,
           a_number_shows_the_first_instance_of_a_gpu, instances_of_a_gpu_have_its_bus_id,
           memory_is_shared_within_an_instance)
