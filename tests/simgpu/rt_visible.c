/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rt_visible - the devices of a node, whole GPUs or instances of them (MIG), their names, and
 * which of them this process sees.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rt.h"

#define MOST_INSTANCES 7 /* of a GPU */

static long gpus;
static long instances; /* of each GPU; 0: they are whole */

bool rt_is_instance (void)
{
    return instances > 0;
}

/* The same for each run on a node, another one for each device and each node. */
static void make_uuid (const char *what, int number, cudaUUID_t *uuid)
{
    char text[300] = "";
    uint64_t hash = UINT64_C (14695981039346656037);

    gethostname (text, 256);
    text[256] = 0;
    snprintf (text + strlen (text), 30, " %s%d", what, number);
    for (size_t i = 0; i < sizeof (uuid->bytes); i++) {
        for (const char *c = text; *c; c++)
            hash = (hash ^ (unsigned char) *c) * UINT64_C (1099511628211);
        uuid->bytes[i] = (char) (hash >> 56);
    }
}

static long count_instances (void)
{
    return rt_setting ("SIM_MIG", 0, 0, MOST_INSTANCES);
}

void sim_uuid (int physical, cudaUUID_t *uuid)
{
    make_uuid (count_instances () ? "instance " : "", physical, uuid);
}

/* As nvidia-smi -L writes it. */
static void write_uuid (const char *what, const cudaUUID_t *uuid, char *text)
{
    text += sprintf (text, "%s-", what);
    for (size_t i = 0; i < sizeof (uuid->bytes); i++)
        text += sprintf (text, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                         (unsigned char) uuid->bytes[i]);
}

/* The one of [count] devices whose name begins with [item]; -1: none, or several. */
static int find_named (const char *item, size_t bytes, const char *what, bool gpu, long count)
{
    char text[64];
    int found = -1;

    if (bytes <= strlen (what) + 1 || bytes > 40)
        return -1;
    for (int i = 0; i < count; i++) {
        cudaUUID_t uuid;
        if (gpu)
            make_uuid ("", i, &uuid);
        else
            sim_uuid (i, &uuid);
        write_uuid (what, &uuid, text);
        if (strncasecmp (item, text, bytes))
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* The GPU of a number or a name, or -1. */
static int find_gpu (const char *item, size_t bytes)
{
    char *end;
    long number;

    if (!strncmp (item, "GPU-", 4))
        return find_named (item, bytes, "GPU", true, gpus);
    number = strtol (item, &end, 10);
    return end == item + bytes && bytes && number >= 0 && number < gpus ? (int) number : -1;
}

/* The device of an item of the list, or -1; of a GPU in instances it is the first. */
static int find_device (const char *item, size_t bytes)
{
    int gpu;

    if (instances && !strncmp (item, "MIG-", 4))
        return find_named (item, bytes, "MIG", false, gpus * instances);
    gpu = find_gpu (item, bytes);
    return instances && gpu >= 0 ? gpu * (int) instances : gpu;
}

static bool is_seen (int physical)
{
    for (int i = 0; i < rt_device_count; i++)
        if (rt_devices[i].physical == physical)
            return true;
    return false;
}

static void see (int physical)
{
    struct rt_device *device = &rt_devices[rt_device_count++];

    device->physical = physical;
    device->gpu = instances ? physical / (int) instances : physical;
}

/*
 * A list as in CUDA_VISIBLE_DEVICES: what follows something that is no device is not visible. A
 * process sees one instance, the first of its list.
 */
static void read_list (const char *list)
{
    while (*list && !(instances && rt_device_count)) {
        size_t bytes = strcspn (list, ",");
        int physical = find_device (list, bytes);
        if (physical < 0 || is_seen (physical))
            return;
        see (physical);
        list += bytes + (list[bytes] == ',');
    }
}

void rt_visible_open (void)
{
    const char *list = getenv ("CUDA_VISIBLE_DEVICES");
    long blind;

    blind = rt_setting ("SIM_BLIND_EVERY", 0, 0, INT_MAX);
    gpus = rt_setting ("SIM_GPUS", 4, -1, RT_DEVICES);
    if (blind && sim_rank () % blind == blind - 1)
        gpus = 0;
    instances = count_instances ();
    if (gpus < 0)
        rt_no_device = cudaErrorInsufficientDriver;
    if (list) {
        read_list (list);
        return;
    }
    for (int i = 0; i < gpus && !(instances && i); i++)
        see (i);
}
