/* SPDX-License-Identifier: BSD-3-Clause */
/* ckpt_script - a program in Python that reads a checkpoint with h5py. */
#include "tools/ckpt_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A literal of Python. File names may have any bytes; names in files are UTF-8. */
static void print_literal (const char *text, bool utf8)
{
    fputs (utf8 ? "\"" : "b\"", stdout);
    for (; *text; text++) {
        unsigned char c = (unsigned char) *text;
        if (c == '"' || c == '\\')
            printf ("\\%c", c);
        else if (c < ' ' || c == 127 || (c > 127 && !utf8))
            printf ("\\x%02x", c);
        else
            putchar (c);
    }
    putchar ('"');
}

static bool is_ascii (const char *text)
{
    while (*text && (unsigned char) *text < 128)
        text++;
    return !*text;
}

/* In a comment: nothing of it can end the line. */
static void print_comment (const char *text)
{
    for (; *text; text++)
        putchar ((unsigned char) *text < ' ' || *text == 127 ? ' ' : *text);
}

/* A comment: "f64 [6, 10], gs_bounds (0:9, -2:3), gs_order Fortran, units m s-1" */
static void print_facts (const struct gsi_h5_set *set)
{
    char text[256];

    ckpt_file_describe (set, text, sizeof (text));
    printf ("  # %s", text);
    for (int k = 0; k < set->texts; k++) {
        const struct gsi_h5_text *t = &set->text[k];
        if (!strcmp (t->name, "gs_order") && !strcmp (t->text, "C"))
            continue;
        fputs (", ", stdout);
        print_comment (t->name);
        putchar (' ');
        print_comment (t->text);
    }
    putchar ('\n');
}

/* Numbers that a picture can be made of. */
static bool is_field (const struct gsi_h5_set *set)
{
    return !strncmp (set->path, "/sharded/", 9) && set->dims >= 2 && gsi_h5_bytes (set);
}

static const char *find_field (const struct gsi_h5_file *h5)
{
    for (size_t i = 0; i < h5->sets; i++)
        if (is_field (&h5->set[i]))
            return h5->set[i].path;
    return NULL;
}

static void print_names (const struct ckpt_file *f)
{
    char *path = realpath (f->reader.path, NULL);
    const char *shown = path ? path : f->reader.path;

    fputs ("path = ", stdout);
    print_literal (shown, is_ascii (shown));
    free (path);
    puts ("\nnames = [");
    for (size_t i = 0; i < f->reader.file.sets; i++) {
        if (!strncmp (f->reader.file.set[i].path, "/gs/", 4))
            continue;
        fputs ("    ", stdout);
        print_literal (f->reader.file.set[i].path, true);
        putchar (',');
        print_facts (&f->reader.file.set[i]);
    }
    puts ("]\n");
}

/* Of those that there are. */
static void print_parts (const struct gsi_reader *s)
{
    const char *comma = "";

    puts (
        "# HDF5 gives zeros, and says nothing, for what it does not find in these files; gs-ckpt "
        "verify\n"
        "# looks at all that is in them.");
    fputs ("for part in [", stdout);
    for (uint64_t p = 0; p < s->trailer.parts; p++)
        if (s->part[p].file_bytes) {
            printf ("%s%" PRIu64, comma, p);
            comma = ", ";
        }
    puts ("]:\n"
          "    folder = os.path.dirname(os.fsencode(path))\n"
          "    open(os.path.join(folder, b\"" GSI_PART_NAME "\" % part), \"rb\").close()\n");
}

static void print_reading (void)
{
    puts ("with h5py.File(path, \"r\") as file:\n"
          "    step = file[\"/gs/step\"][()]\n"
          "    data = {name: file[name][()] for name in names}  # file[name][:10] is some rows\n"
          "\n"
          "# Dimensions are in the order of C: u(i, j) of Fortran is data[\"/sharded/u\"][j, i], "
          "with\n"
          "# indices from 0.\n"
          "print(\"step\", step)\n"
          "for name, values in data.items():\n"
          "    print(name, values.dtype, values.shape)");
}

static void print_picture (const char *field)
{
    puts ("\n# python3 THIS u.png: a picture of a field, or of its middle layer.\n"
          "if len(sys.argv) > 1:\n"
          "    import matplotlib.pyplot as plt\n");
    fputs ("    name = ", stdout);
    print_literal (field, true);
    puts ("\n    values = data[name]\n"
          "    while values.ndim > 2:\n"
          "        values = values[len(values) // 2]\n"
          "    plt.pcolormesh(abs(values) if values.dtype.kind == \"c\" else values)\n"
          "    plt.colorbar()\n"
          "    plt.title(f\"{name}, step {step}\")\n"
          "    plt.savefig(sys.argv[1])");
}

void ckpt_script_print (const struct ckpt_file *f)
{
    const char *field = find_field (&f->reader.file);

    printf ("#!/usr/bin/env python3\n"
            "\"\"\"Reads a checkpoint of gradsync, of step %" PRIu64 ": what gs-ckpt h5py has "
            "printed.\"\"\"\n"
            "%s%s%simport h5py\n\n",
            f->reader.trailer.step, f->reader.trailer.parts ? "import os\n" : "",
            field ? "import sys\n" : "", field || f->reader.trailer.parts ? "\n" : "");
    print_names (f);
    if (f->reader.trailer.parts)
        print_parts (&f->reader);
    print_reading ();
    if (field)
        print_picture (field);
}
