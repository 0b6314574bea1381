/* SPDX-License-Identifier: BSD-3-Clause */
/* model - the parameters of a model, read from a file. */
#include "tools/bench/model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/options.h"

#define PATH_BYTES   4096
#define MAX_BYTES    ((size_t) 1 << 40) /* of all tensors: sums and products cannot overflow */
#define MAX_TENSORS  1000000
#define BLANKS       " \t\r\n"
#define MODEL_ENDING ".params"

/* Types that have an average. */
#define NAMED(NAME, name, ...) " " #name
#define GSI_REDUCED            NAMED
#define GSI_FLOATING           NAMED
#define GSI_COMPLEX            NAMED
static const char averaged[] =
#include "base/dtype.def"
    ;

/* A file that is being read. */
struct source {
    char path[PATH_BYTES];
    int line;
    char *why;
    size_t room;
};

static bool wrong (const struct source *s, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/* The reason, behind the file and, if there is one, the line; false. */
static bool wrong (const struct source *s, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start (ap, format);
    vsnprintf (text, sizeof (text), format, ap);
    va_end (ap);
    if (s->line)
        snprintf (s->why, s->room, "%s:%d: %s", s->path, s->line, text);
    else
        snprintf (s->why, s->room, "%s: %s", s->path, text);
    return false;
}

/* ---- Where it is ---- */

/* The folder of this program into [folder]; "" where that cannot be told. */
static void find_self (char *folder, size_t room)
{
    ssize_t length = readlink ("/proc/self/exe", folder, room - 1);

    folder[length > 0 ? length : 0] = 0;
    *(strrchr (folder, '/') ? strrchr (folder, '/') : folder) = 0;
}

/*
 * The file of a model of the installation: wherever the prefix was moved to, else (before
 * installation) above .libs, else where configure has put it.
 */
static bool find_installed (const char *name, char *path, size_t room)
{
    static const char *const ways[] = {"/" BENCH_BIN_TO_DATA "/gradsync/models/", "/../models/"};
    char folder[PATH_BYTES - 512];

    if (strchr (name, '/'))
        return false;
    find_self (folder, sizeof (folder));
    for (size_t i = 0; i < sizeof (ways) / sizeof (*ways) && *folder; i++) {
        snprintf (path, room, "%s%s%.128s" MODEL_ENDING, folder, ways[i], name);
        if (!access (path, R_OK))
            return true;
    }
    snprintf (path, room, "%s/models/%.128s" MODEL_ENDING, BENCH_PKGDATADIR, name);
    return !access (path, R_OK);
}

static bool find_model (const char *name, struct source *s)
{
    if (find_installed (name, s->path, sizeof (s->path)))
        return true;
    snprintf (s->path, sizeof (s->path), "%s", name);
    if (!access (name, R_OK))
        return true;
    return wrong (s, "%s%s", strerror (errno),
                  strchr (name, '/') ? "" : ", and no model of the installation has this name");
}

/* ---- What it says ---- */

static bool read_extent (const struct source *s, const char *word, struct bench_tensor *t)
{
    size_t most = MAX_BYTES / gs_dtype_size (t->dtype) / t->count;
    char *end;
    intmax_t extent;

    if (t->dims == GS_REDUCER_DIMS_MAX)
        return wrong (s, "more than %d extents", GS_REDUCER_DIMS_MAX);
    errno = 0;
    extent = strtoimax (word, &end, 10);
    if (errno == ERANGE || (!*end && extent > 0 && (size_t) extent > most))
        return wrong (s, "the tensor is too large: more than %zu bytes", MAX_BYTES);
    if (*end || extent < 1)
        return wrong (s, "extent '%.64s' is not a whole number from 1", word);
    t->shape[t->dims++] = (size_t) extent;
    t->count *= (size_t) extent;
    return true;
}

/* A tensor from the words of a line, of which [name] is the first. */
static bool read_tensor (const struct source *s, const char *name, char **rest,
                         struct bench_tensor *t)
{
    const char *word = strtok_r (NULL, BLANKS, rest);

    *t = (struct bench_tensor){.count = 1, .line = s->line};
    if (!word)
        return wrong (s, "no type behind the name '%.64s'", name);
    if (!bench_dtype_find (word, &t->dtype) || !bench_has_average (t->dtype))
        return wrong (s, "type '%.64s' is not one of%s", word, averaged);
    while ((word = strtok_r (NULL, BLANKS, rest)))
        if (!read_extent (s, word, t))
            return false;
    t->bytes = t->count * gs_dtype_size (t->dtype);
    return (t->name = strdup (name)) || wrong (s, "out of memory");
}

/* Room for one more, which doubles when it is a power of two. */
static bool grow_model (const struct source *s, struct bench_model *m)
{
    size_t count = (size_t) m->tensors;
    struct bench_tensor *more;

    if (m->tensors == MAX_TENSORS)
        return wrong (s, "more than %d tensors", MAX_TENSORS);
    if (count & (count - 1))
        return true;
    more = reallocarray (m->tensor, count ? 2 * count : 1, sizeof (*more));
    if (!more)
        return wrong (s, "out of memory");
    m->tensor = more;
    return true;
}

static bool read_line (const struct source *s, char *line, struct bench_model *m)
{
    char *rest, *name;

    line[strcspn (line, "#")] = 0;
    if (!(name = strtok_r (line, BLANKS, &rest)))
        return true;
    if (!grow_model (s, m) || !read_tensor (s, name, &rest, &m->tensor[m->tensors]))
        return false;
    m->bytes += m->tensor[m->tensors++].bytes;
    return m->bytes <= MAX_BYTES || wrong (s, "all together more than %zu bytes", MAX_BYTES);
}

static bool read_lines (struct source *s, FILE *in, struct bench_model *m)
{
    char *line = NULL;
    size_t room = 0;
    bool ok = true;

    while (ok && (errno = 0, getline (&line, &room, in) >= 0)) {
        s->line++;
        ok = read_line (s, line, m);
    }
    free (line);
    if (!ok)
        return false;
    s->line = 0;
    if (ferror (in))
        return wrong (s, "%s", strerror (errno));
    return m->tensors || wrong (s, "there is no tensor in it");
}

/* ---- What follows from it ---- */

static int by_name (const void *a, const void *b)
{
    const struct bench_tensor *x = *(const struct bench_tensor *const *) a;
    const struct bench_tensor *y = *(const struct bench_tensor *const *) b;
    int order = strcmp (x->name, y->name);

    return order ? order : x->line - y->line;
}

static bool check_names (struct source *s, const struct bench_model *m)
{
    const struct bench_tensor **sorted = calloc ((size_t) m->tensors, sizeof (void *));
    bool ok = sorted || wrong (s, "out of memory");

    for (int i = 0; i < m->tensors && ok; i++)
        sorted[i] = &m->tensor[i];
    if (ok)
        qsort (sorted, (size_t) m->tensors, sizeof (void *), by_name);
    for (int i = 1; i < m->tensors && ok; i++) {
        s->line = sorted[i]->line;
        ok = strcmp (sorted[i]->name, sorted[i - 1]->name) != 0 ||
             wrong (s, "the name '%.64s' is that of line %d already", sorted[i]->name,
                    sorted[i - 1]->line);
    }
    free (sorted);
    return ok;
}

static struct bench_span *span_of (struct bench_model *m, gs_dtype_t dtype)
{
    for (int i = 0; i < m->spans; i++)
        if (m->span[i].dtype == dtype)
            return &m->span[i];
    m->span[m->spans] = (struct bench_span){.dtype = dtype};
    return &m->span[m->spans++];
}

/* Where spans, and the tensors in them, begin. */
static void lay_out_model (struct bench_model *m)
{
    for (int i = 0; i < m->tensors; i++)
        span_of (m, m->tensor[i].dtype)->count += m->tensor[i].count;
    for (int i = 0; i < m->spans; i++) {
        size_t at = m->room, bytes = m->span[i].count * gs_dtype_size (m->span[i].dtype);
        m->span[i].offset = at;
        m->room += (bytes + BENCH_SPAN_ALIGN - 1) / BENCH_SPAN_ALIGN * BENCH_SPAN_ALIGN;
        for (int t = 0; t < m->tensors; t++)
            if (m->tensor[t].dtype == m->span[i].dtype) {
                m->tensor[t].offset = at;
                at += m->tensor[t].bytes;
            }
    }
}

bool bench_model_read (const char *name, struct bench_model *model, char *why, size_t room)
{
    struct source s = {.why = why, .room = room};
    FILE *in;
    bool ok;

    *model = (struct bench_model){0};
    if (!find_model (name, &s))
        return false;
    if (!(in = fopen (s.path, "r")))
        return wrong (&s, "%s", strerror (errno));
    ok = read_lines (&s, in, model) && check_names (&s, model);
    fclose (in);
    if (ok)
        lay_out_model (model);
    return ok;
}

void bench_model_free (struct bench_model *model)
{
    for (int i = 0; i < model->tensors; i++)
        free (model->tensor[i].name);
    free (model->tensor);
    *model = (struct bench_model){0};
}
