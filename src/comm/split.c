/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split - groups: which ranks are in one, and in which order, worked out alike on all ranks from
 * what each of them asks for; then the ordinary create, among the ranks of a group.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/dims.h"
#include "base/env.h"
#include "base/hash.h"
#include "call/call.h"
#include "call/inflight.h"
#include "call/watchdog.h"
#include "comm/create.h"
#include "comm/parent_boot.h"

#define END_NS (4 * GSI_NS_PER_S) /* ranks may tell late that a create was */

enum kind { COLORS, NODE, RAIL, ROW, COLUMN, LIST };

static const struct kind_words {
    const char *caller;
    const char *name; /* of a group, behind its parent's */
} words[] = {
    [COLORS] = {"gs_comm_split", ".split"},       [NODE] = {"gs_comm_split_node", "/node"},
    [RAIL] = {"gs_comm_split_rail", "/rail"},     [ROW] = {"gs_comm_split_grid", "/row"},
    [COLUMN] = {"gs_comm_split_grid", "/column"}, [LIST] = {"gs_comm_split_list", ".list"},
};

/* What a rank asks for. */
struct ask {
    int32_t status; /* gs_status_t of its own checks */
    int32_t kind;
    int32_t shape[3]; /* of a grid: rows and columns as given, and whether each is wanted */
    int32_t key;
    int64_t color;  /* the same in a group, negative: in none */
    int32_t count;  /* of the ranks in its list, else 0 */
    int32_t number; /* of the group, for its name */
    char text[200]; /* why, if status is not GS_OK */
};

/* A split, as it goes on. */
struct split {
    gs_comm_t *comm;
    const char *caller;
    struct ask mine, *all; /* [size of comm] */
    const int *list;       /* [mine.count] */
    struct gsi_call call;
    struct gsi_parent_boot parent_boot;
    struct gsi_boot *ranks; /* all of them, by way of it */
    int *member;            /* [size] ranks of comm in this rank's group */
    int size, rank;         /* of the group; size 0: in none */
};

/* ---- Who is in which group ---- */

/* All ranks must make the same split. */
static gs_status_t compare_splits (const struct split *s)
{
    const struct ask *zero = &s->all[0];

    for (int r = 1; r < s->comm->topo.size; r++) {
        const struct ask *other = &s->all[r];
        if (other->kind != zero->kind)
            return gsi_fail (GS_ERR_MISMATCH,
                             "communicator '%s': rank 0 (host %s) calls %s, rank %d (host %s) "
                             "%s: all ranks must make the same split",
                             s->comm->name, s->comm->hosts[0], words[zero->kind].caller, r,
                             s->comm->hosts[r], words[other->kind].caller);
        if (memcmp (other->shape, zero->shape, sizeof (zero->shape)))
            return gsi_fail (
                GS_ERR_MISMATCH,
                "%s: rank 0 (host %s) asks for %d rows and %d columns%s, rank %d (host %s) for "
                "%d and %d%s: give all ranks the same numbers, and want the same groups",
                s->caller, s->comm->hosts[0], zero->shape[0], zero->shape[1],
                zero->shape[2] == 3 ? "" : ", but not both groups", r, s->comm->hosts[r],
                other->shape[0], other->shape[1],
                other->shape[2] == 3 ? "" : ", but not both groups");
    }
    return GS_OK;
}

/* The first rank whose own checks failed. */
static gs_status_t first_failure (const struct split *s)
{
    for (int r = 0; r < s->comm->topo.size; r++)
        if (s->all[r].status)
            return gsi_fail ((gs_status_t) s->all[r].status, "%s: rank %d (host %s): %.199s",
                             s->caller, r, s->comm->hosts[r], s->all[r].text);
    return GS_OK;
}

/* How many ranks ask for [color]. */
static int count_of (const struct split *s, int64_t color)
{
    int count = 0;

    for (int r = 0; r < s->comm->topo.size; r++)
        count += s->all[r].color == color;
    return count;
}

/*
 * A list is of those who give it: as many ranks as it has must have given it, for each is in its
 * own. The same answer on all ranks; which rank did not, only those know who have the list.
 */
static bool lists_fit (const struct split *s)
{
    for (int r = 0; r < s->comm->topo.size; r++)
        if (s->all[r].count && count_of (s, s->all[r].color) != s->all[r].count)
            return false;
    return true;
}

static gs_status_t name_stranger (const struct split *s)
{
    for (int i = 0; i < s->mine.count; i++) {
        int r = s->list[i];
        if (s->all[r].color != s->mine.color)
            return gsi_fail (GS_ERR_MISMATCH,
                             "%s: my list has rank %d (host %s), which gives %s: all ranks of a "
                             "group must give the same list, in the same order",
                             s->caller, r, s->comm->hosts[r],
                             s->all[r].count ? "another list" : "none");
    }
    return GS_OK;
}

/* By key, then by rank. */
static int compare_members (const void *a, const void *b, void *asks)
{
    const struct ask *all = asks;
    int x = *(const int *) a, y = *(const int *) b;

    if (all[x].key != all[y].key)
        return all[x].key < all[y].key ? -1 : 1;
    return x - y;
}

/* Finds this rank's group. */
static gs_status_t gather_members (struct split *s)
{
    int size = s->mine.color < 0 ? 0 : count_of (s, s->mine.color), n = 0;

    if (!size)
        return GS_OK;
    if (!(s->member = calloc ((size_t) size, sizeof (*s->member))))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->caller);
    for (int r = 0; r < s->comm->topo.size; r++)
        if (s->all[r].color == s->mine.color)
            s->member[n++] = r;
    qsort_r (s->member, (size_t) size, sizeof (*s->member), compare_members, s->all);
    while (s->member[s->rank] != s->comm->topo.rank)
        s->rank++;
    s->size = size;
    return GS_OK;
}

/* ---- Making it ---- */

/* Its parent's, but for a rank alone on hosts, and for MPI, what hosts have by themselves. */
static gs_transport_t transport_of_group (const struct split *s)
{
    int transport = gsi_transport_of (s->comm->coll->ops->name);

    if (gsi_coll_is_shared (s->comm->coll->ops))
        return GS_TRANSPORT_AUTO;
    if (s->comm->inflight)
        return GS_TRANSPORT_NCCL;
    return s->size > 1 && gsi_transport_joins (transport) == GSI_JOINS_HOSTS &&
                   transport != GSI_TRANSPORT_MPI
               ? (gs_transport_t) transport
               : GS_TRANSPORT_AUTO;
}

/* The options of the group: its parent's. */
static struct gsi_plan plan_of_group (const struct split *s, struct gsi_coll_parent *coll,
                                      int64_t deadline_ns)
{
    const gs_comm_t *parent = s->comm;
    struct gsi_plan plan = {.caller = s->caller,
                            .transport = transport_of_group (s),
                            .device = parent->device->ordinal,
                            .timeout_ns = parent->timeout_ns,
                            .boot_timeout_ns = parent->boot_timeout_ns,
                            .begin_ns = gsi_now_ns (),
                            .deadline_ns = deadline_ns,
                            .st = gsi_env_check (),
                            .check = parent->check,
                            .parent = coll,
                            .serial = (int) s->call.seq};

    if (gsi_env_is_set (GSI_ENV_CHECK))
        plan.check = (enum gsi_check) gsi_env_choice (GSI_ENV_CHECK);
    snprintf (plan.name, sizeof (plan.name), "%.40s%s%d", parent->name, words[s->mine.kind].name,
              s->mine.number);
    if (plan.st)
        snprintf (plan.text, sizeof (plan.text), "%s", gsi_last_text ());
    return plan;
}

/* A job of the group's own, so that no other group has a flight record of the same name. */
static void name_job (const struct split *s, char *job)
{
    const gs_comm_t *parent = s->comm;
    const char *end = parent->boot->is_group ? strrchr (parent->boot->job, '.') : NULL;
    int root = end ? (int) (end - parent->boot->job) : (int) strlen (parent->boot->job);
    char whole[GSI_JOB_BYTES + 128];
    int length =
        snprintf (whole, sizeof (whole), "%s %s %d %llu %d", parent->boot->job, parent->name,
                  parent->serial, (unsigned long long) s->call.seq, s->member[0]);

    snprintf (job, GSI_JOB_BYTES, "%.*s.%08x", root < 200 ? root : 200, parent->boot->job,
              (unsigned) gsi_hash (whole, (size_t) length));
}

/* The create of this rank's group; the other ranks' run beside it. */
static gs_status_t make_group (struct split *s, struct gsi_coll_parent *coll, int64_t deadline_ns,
                               gs_comm_t **out)
{
    struct gsi_plan plan = plan_of_group (s, coll, deadline_ns);
    struct gsi_boot *boot;
    char job[GSI_JOB_BYTES];

    name_job (s, job);
    if (gsi_parent_boot_boot (&s->parent_boot, s->member, s->size, s->rank, job, &boot))
        return gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->caller);
    return gsi_comm_build (boot, &plan, out);
}

/* What all ranks make of [st] of each; a rank without a failure of its own gets another's. */
static gs_status_t agree_on_split (struct split *s, gs_status_t st, int64_t deadline_ns)
{
    if (s->parent_boot.broken)
        return st ? st : s->parent_boot.broken;
    return gsi_boot_agree (s->ranks, st, deadline_ns);
}

static gs_status_t make_together (struct split *s, gs_comm_t **out)
{
    struct gsi_coll_parent parent = {.coll = s->comm->coll};
    int64_t deadline_ns = gsi_now_ns () + s->comm->boot_timeout_ns;
    struct gsi_call longer = s->call;
    gs_status_t st = gather_members (s), verdict;
    char text[GSI_TEXT_MAX];

    longer.deadline_ns = deadline_ns + END_NS;
    gsi_watchdog_expect (s->comm, longer.deadline_ns);
    gsi_inflight_now (s->comm, &longer);
    parent.rank = s->member;
    gsi_parent_boot_begin (&s->parent_boot, &parent);
    if (!st && s->size)
        st = make_group (s, &parent, deadline_ns, out);
    /* Texts of the create number the ranks of the group. */
    snprintf (text, sizeof (text), "a group of %d ranks: %.900s", s->size, gsi_last_text ());
    gsi_parent_boot_end (&s->parent_boot, deadline_ns);
    if (st)
        gsi_fail (st, "%s", text);
    verdict = agree_on_split (s, st, deadline_ns + END_NS);
    if (verdict && st) /* this rank knows best what it has seen itself */
        return gsi_fail (verdict, "%s", text);
    if (!verdict && s->comm->inflight) /* a start that failed has ended the parent */
        verdict = s->parent_boot.broken = s->comm->coll->ops->poll (s->comm->coll);
    return verdict;
}

/* Inside the call: what each asks for, the verdict, the groups. */
static gs_status_t work_split (struct split *s, gs_comm_t **out)
{
    bool any = false;
    gs_status_t st = s->ranks->ops->exchange (s->ranks, &s->mine, sizeof (s->mine), s->all,
                                              s->call.deadline_ns);

    if (st || (st = compare_splits (s)) || (st = first_failure (s)))
        return st;
    if (s->mine.kind == LIST && !lists_fit (s))
        return agree_on_split (s, name_stranger (s), s->call.deadline_ns);
    for (int r = 0; r < s->comm->topo.size && !any; r++)
        any = s->all[r].color >= 0;
    return any ? make_together (s, out) : GS_OK;
}

/* What the work needs; it must be there before other ranks are told anything. */
static gs_status_t prepare_split (struct split *s)
{
    gs_status_t st = gsi_inflight_drain (s->comm, &s->call);

    if (st || (st = gsi_parent_boot_open (&s->parent_boot, s->comm, &s->call)) ||
        (st = gsi_parent_boot_boot (&s->parent_boot, NULL, s->comm->topo.size, s->comm->topo.rank,
                                    s->comm->boot->job, &s->ranks)))
        return st;
    s->all = calloc ((size_t) s->comm->topo.size, sizeof (*s->all));
    return s->all ? GS_OK : gsi_fail (GS_ERR_NOMEM, "%s: out of memory", s->caller);
}

/* Ends a group that this rank has got, but not all ranks theirs; keeps the text of [st]. */
static gs_status_t undo (struct split *s, gs_comm_t *group, gs_status_t st)
{
    char text[GSI_TEXT_MAX];

    if (!group)
        return st;
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    if (s->parent_boot.broken)
        gs_comm_abort (group);
    gs_comm_destroy (group);
    return gsi_fail (st, "%s", text);
}

static gs_status_t run_split (struct split *s, gs_comm_t **out)
{
    struct gsi_request r = {.comm = s->comm, .op = GSI_OP_SPLIT};
    gs_comm_t *group = NULL;
    gs_status_t st;

    s->caller = words[s->mine.kind].caller;
    if (s->mine.status)
        snprintf (s->mine.text, sizeof (s->mine.text), "%.*s", (int) sizeof (s->mine.text) - 1,
                  gsi_last_text ());
    if ((st = gsi_call_begin (&r, NULL, &s->call)))
        return st;
    if ((st = prepare_split (s)))
        s->parent_boot.broken = st; /* the other ranks wait: this tells them */
    else
        st = work_split (s, &group);
    if (st && !s->parent_boot.broken)
        gsi_call_refuse (s->comm, st);
    else
        st = gsi_call_end (s->comm, &s->call, st);
    if (st)
        st = undo (s, group, st);
    else if (out)
        *out = group;
    gsi_boot_close (s->ranks);
    gsi_parent_boot_close (&s->parent_boot);
    free (s->member);
    free (s->all);
    return st;
}

/* Begins a split: NULL in [out] where there is one. */
static gs_status_t begin_split (struct split *s, gs_comm_t *comm, enum kind kind, gs_comm_t **out)
{
    gs_status_t st = gsi_comm_valid (comm, words[kind].caller);

    if (out)
        *out = NULL;
    memset (s, 0, sizeof (*s));
    s->comm = comm;
    s->mine.kind = (int32_t) kind;
    return st;
}

/* Notes a failure of this rank's own checks, which the other ranks are told of. */
static void refuse_split (struct split *s, gs_status_t st)
{
    s->mine.status = (int32_t) st;
    s->mine.color = GS_COLOR_NONE;
}

/* A split by [color]; the group's name has it. */
static gs_status_t run_colors (struct split *s, int color, int key, gs_comm_t **out)
{
    s->mine.color = s->mine.number = color;
    s->mine.key = key;
    if (color < GS_COLOR_NONE)
        refuse_split (s, gsi_fail (GS_ERR_ARG,
                                   "color %d is negative: give 0 or more, or GS_COLOR_NONE (%d)",
                                   color, GS_COLOR_NONE));
    if (!out && s->mine.kind != ROW)
        refuse_split (s, gsi_fail (GS_ERR_ARG, "group is NULL"));
    return run_split (s, out);
}

/* ---- The functions ---- */

gs_status_t gs_comm_split (gs_comm_t *comm, int color, int key, gs_comm_t **group)
{
    struct split s;
    gs_status_t st = begin_split (&s, comm, COLORS, group);

    return gsi_result (st ? st : run_colors (&s, color, key, group));
}

gs_status_t gs_comm_split_node (gs_comm_t *comm, gs_comm_t **group)
{
    struct split s;
    gs_status_t st = begin_split (&s, comm, NODE, group);

    return gsi_result (st ? st : run_colors (&s, comm->topo.node, 0, group));
}

gs_status_t gs_comm_split_rail (gs_comm_t *comm, gs_comm_t **group)
{
    struct split s;
    gs_status_t st = begin_split (&s, comm, RAIL, group);

    return gsi_result (st ? st : run_colors (&s, comm->topo.local_rank, comm->topo.node, group));
}

/* Fills in what is 0; of both, the most square grid with rows >= columns. */
static gs_status_t complete_grid (int size, int *rows, int *columns)
{
    int given[2] = {*rows, *columns};

    if (*rows < 0 || *columns < 0)
        return gsi_fail (GS_ERR_ARG, "%d rows and %d columns: give numbers of 0 or more", *rows,
                         *columns);
    if (!*rows && !*columns)
        for (*rows = 1; (int64_t) *rows * *rows < size || size % *rows;)
            ++*rows;
    if (!*columns)
        *columns = size / *rows;
    else if (!*rows)
        *rows = size / *columns;
    if ((int64_t) *rows * *columns != size)
        return gsi_fail (GS_ERR_ARG,
                         "%d rows and %d columns are no grid of %d ranks: give numbers whose "
                         "product that is, or 0 for what fits",
                         given[0], given[1], size);
    return GS_OK;
}

gs_status_t gs_comm_split_grid (gs_comm_t *comm, int rows, int columns, gs_comm_t **row,
                                gs_comm_t **column)
{
    struct split s;
    int32_t shape[3] = {rows, columns, (row != NULL) + 2 * (column != NULL)};
    gs_status_t st = begin_split (&s, comm, ROW, row), fits;
    char text[GSI_TEXT_MAX];

    if (column)
        *column = NULL;
    if (st)
        return gsi_result (st);
    memcpy (s.mine.shape, shape, sizeof (shape));
    if ((fits = complete_grid (comm->topo.size, &rows, &columns)))
        refuse_split (&s, fits);
    st = fits ? run_split (&s, NULL)
              : run_colors (&s, row ? comm->topo.rank / columns : GS_COLOR_NONE,
                            comm->topo.rank % columns, row);
    if (st || !column)
        return gsi_result (st);
    begin_split (&s, comm, COLUMN, column);
    memcpy (s.mine.shape, shape, sizeof (shape));
    if (!(st = run_colors (&s, comm->topo.rank % columns, comm->topo.rank / columns, column)) ||
        !row)
        return gsi_result (st);
    snprintf (text, sizeof (text), "%s", gsi_last_text ());
    gs_comm_destroy (*row); /* on all ranks: all have failed */
    *row = NULL;
    return gsi_fail (st, "%s", text);
}

/* Looks at this rank's list; its place in it is its rank in the group. */
static gs_status_t check_list (struct split *s, int n, const int *ranks)
{
    int size = s->comm->topo.size, place = -1;
    unsigned char *seen;
    char at[16];
    gs_status_t st = GS_OK;

    if (n < 0 || n > size || (n && !ranks))
        return gsi_fail (GS_ERR_ARG,
                         n > 0 && !ranks ? "ranks is NULL, but n is %d of %d ranks"
                                         : "n is %d: the list has 0 to %d ranks",
                         n, size);
    if (!(seen = calloc ((size_t) size, 1)))
        return gsi_fail (GS_ERR_NOMEM, "out of memory");
    for (int i = 0; i < n && !st; i++) {
        if (ranks[i] < 0 || ranks[i] >= size)
            st = gsi_fail (GS_ERR_ARG, "ranks%s is %d: ranks of communicator '%s' are 0 to %d",
                           gsi_dims_subscript (i, at), ranks[i], s->comm->name, size - 1);
        else if (seen[ranks[i]]++)
            st = gsi_fail (GS_ERR_ARG, "ranks%s is %d, which the list has twice",
                           gsi_dims_subscript (i, at), ranks[i]);
        else if (ranks[i] == s->comm->topo.rank)
            place = i;
    }
    free (seen);
    if (!st && n && place < 0)
        st = gsi_fail (GS_ERR_ARG,
                       "the list of %d ranks is without the rank that gives it: each rank gives "
                       "the list of its own group, or n 0",
                       n);
    s->mine.key = place;
    return st;
}

gs_status_t gs_comm_split_list (gs_comm_t *comm, int n, const int *ranks, gs_comm_t **group)
{
    struct split s;
    gs_status_t st = begin_split (&s, comm, LIST, group);

    if (st)
        return gsi_result (st);
    s.list = ranks;
    s.mine.color = GS_COLOR_NONE;
    if ((st = check_list (&s, n, ranks))) {
        refuse_split (&s, st);
    } else if (!group) {
        refuse_split (&s, gsi_fail (GS_ERR_ARG, "group is NULL"));
    } else if (n) {
        s.mine.color =
            (int64_t) (gsi_hash (ranks, (size_t) n * sizeof (*ranks)) & (uint64_t) INT64_MAX);
        s.mine.count = n;
        s.mine.number = ranks[0];
    }
    return gsi_result (run_split (&s, group));
}
