/* SPDX-License-Identifier: BSD-3-Clause */
/* info_layout_print - tells the way of a job of one layout, and what to type for it. */
#include "tools/info_layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/json.h"

#define MPS_ROOM 48 /* processes of a GPU that CUDA's MPS serves */
#define SHOWN    8  /* numbers of a list in text */

/* A text that grows. */
struct text {
    char bytes[2 * GSI_TEXT_MAX];
    size_t length;
};

static void add (struct text *t, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

static void add (struct text *t, const char *format, ...)
{
    va_list arguments;
    int written;

    va_start (arguments, format);
    written = vsnprintf (t->bytes + t->length, sizeof (t->bytes) - t->length, format, arguments);
    va_end (arguments);
    if (written > 0)
        t->length += (size_t) written;
    if (t->length >= sizeof (t->bytes))
        t->length = sizeof (t->bytes) - 1;
}

static const char *plural (int number)
{
    return number == 1 ? "" : "s";
}

/* How many ranks of a node take [gpu]. */
static int takers_of (const struct info_plan *p, int gpu)
{
    int takers = 0;

    for (int r = 0; r < p->ranks; r++)
        takers += p->gpu_of[r] == gpu;
    return takers;
}

/* Whether sums are made by the ranks of a GPU, and one of them goes on. */
static bool has_leaders (const struct info_plan *p)
{
    return p->mode == GSI_MODE_SHARED_GPUS && !*p->by_hosts;
}

/* ---- What each line says; nothing where it does not apply ---- */

static void tell_transport (const struct info_plan *p, struct text *t)
{
    add (t, "%s", p->transport);
}

static void tell_reason (const struct info_plan *p, struct text *t)
{
    add (t, "%s", p->reason);
}

static void tell_sums (const struct info_plan *p, struct text *t)
{
    int size = p->nodes * p->ranks;

    if (size == 1)
        return;
    if (p->mode == GSI_MODE_HOSTS)
        add (t, "between hosts: gs-info --hosts %dx%d tells how", p->nodes, p->ranks);
    else if (p->mode == GSI_MODE_GPUS)
        add (t, "by NCCL between %d ranks", size);
    else if (*p->by_hosts)
        add (t, "by way of the hosts: %s", p->by_hosts);
    else if (p->groups == 1)
        add (t, "on the GPU, in rank order, without NCCL");
    else
        add (t, "on each GPU, in rank order, then by NCCL between %d leaders, %d on each node",
             p->groups, p->node_groups);
}

static void tell_others (const struct info_plan *p, struct text *t)
{
    if (p->mode == GSI_MODE_SHARED_GPUS)
        add (t,
             "all but sums of arrays on GPUs goes by way of the hosts, by transport %s, and the "
             "call waits",
             p->hosts);
}

static void tell_idle (const struct info_plan *p, struct text *t)
{
    int idle = 0, told = 0;

    for (int gpu = 0; gpu < p->gpus; gpu++)
        idle += !takers_of (p, gpu);
    if (!idle)
        return;
    add (t, "GPU%s", plural (idle));
    for (int gpu = 0; gpu < p->gpus; gpu++)
        if (!takers_of (p, gpu))
            add (t, "%s %d", told++ ? "," : "", gpu);
    if (idle == p->gpus)
        add (t, " of each node: no rank takes one, so do not ask for them");
    else
        add (t, " of each node: start %d ranks on a node, or ask for %d GPU%s", p->gpus,
             p->gpus - idle, plural (p->gpus - idle));
}

static void tell_mps (const struct info_plan *p, struct text *t)
{
    if (p->mode != GSI_MODE_SHARED_GPUS || p->largest < 2)
        return;
    if (p->largest > MPS_ROOM)
        add (t, "has room for %d ranks of a GPU, not for %d: they take turns", MPS_ROOM,
             p->largest);
    else
        add (t,
             "lets the %d ranks of a GPU work at once, else they take turns: on each node, "
             "before the ranks, nvidia-cuda-mps-control -d, as templates/shared.sbatch does with "
             "MPS=yes",
             p->largest);
}

static void tell_command (const struct info_plan *p, struct text *t)
{
    add (t, "srun --mpi=pmix --nodes=%d --ntasks-per-node=%d", p->nodes, p->ranks);
    if (p->mode != GSI_MODE_HOSTS)
        add (t, " --gpus-per-node=%d", p->gpus);
    add (t, " ./program");
}

static void tell_harmful (const struct info_plan *p, struct text *t)
{
    if (p->binding_hides)
        add (t, "--gpus-per-task, --ntasks-per-gpu, --gpu-bind: ranks would not see each other's "
                "GPUs, so NCCL may not copy directly between them");
    else if (p->mode != GSI_MODE_HOSTS && p->ranks > p->gpus)
        add (t, "--gpus-per-task: it asks for as many GPUs as ranks");
}

static const struct line {
    const char *name;
    void (*tell) (const struct info_plan *p, struct text *t);
} lines[] = {
    {"transport", tell_transport}, {"reason", tell_reason}, {"sums", tell_sums},
    {"others", tell_others},       {"idle", tell_idle},     {"mps", tell_mps},
    {"type", tell_command},        {"not", tell_harmful},
};

#define LINES (sizeof (lines) / sizeof (lines[0]))

/* ---- The whole ---- */

static void print_gpu (const struct info_plan *p, int gpu)
{
    int takers = takers_of (p, gpu), shown = 0, leader = 0;

    if (!takers)
        return;
    printf ("  GPU %-9d rank%s", gpu, plural (takers));
    for (int r = 0; r < p->ranks; r++) {
        if (p->gpu_of[r] != gpu)
            continue;
        leader = p->leader_of[r];
        if (++shown < SHOWN || shown == takers)
            printf (" %d", r);
        else if (shown == SHOWN)
            printf (" ...");
    }
    printf (" of a node");
    if (has_leaders (p))
        printf (", %d in all; rank %d leads", takers, leader);
    printf ("\n");
}

static void print_text (const struct info_plan *p)
{
    int size = p->nodes * p->ranks;

    printf ("%d rank%s: %d node%s of %d rank%s and %d GPU%s\n", size, plural (size), p->nodes,
            plural (p->nodes), p->ranks, plural (p->ranks), p->gpus, plural (p->gpus));
    for (size_t i = 0; i < LINES; i++) {
        struct text t = {.length = 0};

        if (lines[i].tell == tell_sums)
            for (int gpu = 0; gpu < p->gpus; gpu++)
                print_gpu (p, gpu);
        lines[i].tell (p, &t);
        if (t.length)
            printf ("  %-13s %s\n", lines[i].name, t.bytes);
    }
}

static void print_json_gpu (const struct info_plan *p, int gpu, bool first)
{
    const char *comma = "";

    printf ("%s{\"gpu\":%d,\"ranks\":[", first ? "" : ",", gpu);
    for (int r = 0; r < p->ranks; r++)
        if (p->gpu_of[r] == gpu) {
            printf ("%s%d", comma, r);
            comma = ",";
        }
    printf ("]");
    for (int r = 0; r < p->ranks && has_leaders (p); r++)
        if (p->gpu_of[r] == gpu) {
            printf (",\"leader\":%d", p->leader_of[r]);
            break;
        }
    printf ("}");
}

static void print_json (const struct info_plan *p)
{
    printf ("{\"nodes\":%d,\"ranks\":%d,\"gpus\":[", p->nodes, p->ranks);
    for (int gpu = 0; gpu < p->gpus; gpu++)
        print_json_gpu (p, gpu, !gpu);
    printf ("]");
    for (size_t i = 0; i < LINES; i++) {
        struct text t = {.length = 0};

        lines[i].tell (p, &t);
        if (!t.length)
            continue;
        printf (",\"%s\":", lines[i].name);
        json_string (stdout, t.bytes);
    }
    printf ("}\n");
}

void info_layout_print (const struct info_plan *p, bool json)
{
    if (json)
        print_json (p);
    else
        print_text (p);
}
