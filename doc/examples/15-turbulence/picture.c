/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * picture.c - fields of vorticity in a row, and below what became of enstrophy and error. Each
 * colour of a field is one path, a unit square for each cell, or runs of them.
 */
#include "picture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLOURS = 33, CELLS = 96 }; /* an odd number: 0 is white */
enum { LEFT = 30, SIDE = 220, STEP = 236, WIDTH = 1040, HEIGHT = 600, BELOW = 340, TALL = 190 };

const char *const closure_name[FIELDS] = {"no closure", "Smagorinsky", "network", "fine"};
static const char *const ink[FIELDS] = {"#b8860b", "#2a7f3f", "#c2185b", "#222222"};

/* Writes a colour from blue by white to red; [level] from 0 to COLOURS - 1. */
static void put_colour (FILE *file, int level)
{
    static const double end[2][3] = {{5, 48, 97}, {103, 0, 31}};
    static const double middle[2][3] = {{67, 147, 195}, {214, 96, 77}};
    double t = 2.0 * level / (COLOURS - 1) - 1, far = fabs (t);
    int side = t > 0, rgb[3];

    for (int i = 0; i < 3; i++)
        rgb[i] = (int) (far < 0.5
                            ? 247 + 2 * far * (middle[side][i] - 247)
                            : middle[side][i] + (2 * far - 1) * (end[side][i] - middle[side][i]));
    fprintf (file, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

static int level_of (double value, double most)
{
    double t = (value / most + 1) / 2 * (COLOURS - 1) + 0.5;

    return t > 0 ? t < COLOURS ? (int) t : COLOURS - 1 : 0; /* NaN is 0 */
}

static void put_field (FILE *file, double left, const char *title, const double *field, size_t n,
                       double most)
{
    size_t part = (n + CELLS - 1) / CELLS, cells = n / part; /* every so many cells */

    fprintf (file,
             "<text x='%g' y='52' text-anchor='middle'>%s</text>\n"
             "<g transform='translate(%g 62) scale(%.5f)' shape-rendering='crispEdges'>\n",
             left + SIDE / 2.0, title, left, SIDE / (double) cells);
    for (int level = 0; level < COLOURS; level++) {
        fputs ("<path fill='", file);
        put_colour (file, level);
        fputs ("' d='", file);
        for (size_t y = 0; y < cells; y++)
            for (size_t x = 0, run; x < cells; x += run) {
                const double *row = field + (cells - 1 - y) * part * n; /* y goes up */
                for (run = 0; x + run < cells; run++)
                    if (level_of (row[(x + run) * part], most) != level)
                        break;
                if (run)
                    fprintf (file, "M%zu %zuh%zuv1h-%zuz", x, y, run, run);
                else
                    run = 1;
            }
        fputs ("'/>\n", file);
    }
    fprintf (file, "<path fill='none' stroke='#888' stroke-width='%.3f' d='M0 0h%zuv%zuh-%zuz'/>",
             (double) cells / SIDE, cells, cells, cells);
    fputs ("</g>\n", file);
}

static void put_bar (FILE *file, double most)
{
    const double left = LEFT + 4 * STEP - 2, tall = (double) SIDE / COLOURS;

    for (int level = 0; level < COLOURS; level++) {
        fprintf (file, "<rect x='%g' y='%.2f' width='12' height='%.2f' fill='", left,
                 62 + SIDE - (level + 1) * tall, tall + 0.3);
        put_colour (file, level);
        fputs ("'/>\n", file);
    }
    for (int i = -1; i <= 1; i++)
        fprintf (file, "<text x='%g' y='%g' class='small'>%.2g</text>\n", left + 16,
                 66 + SIDE / 2.0 - i * (SIDE / 2.0 - 4), i * most);
}

/* A number above [most] of one digit, and of which a fifth is a good tick. */
static double round_up (double most)
{
    double power = pow (10, floor (log10 (most)));
    double digit = most / power;

    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void put_axes (FILE *file, double left, double wide, const char *title, double top)
{
    fprintf (file, "<text x='%g' y='%d'>%s</text>\n", left, BELOW - 12, title);
    for (int i = 0; i <= 4; i++) {
        double y = BELOW + TALL - i * TALL / 4.0;
        fprintf (file,
                 "<path stroke='#ddd' d='M%g %gh%g'/><text x='%g' y='%g' class='small' "
                 "text-anchor='end'>%.3g</text>\n",
                 left, y, wide, left - 5, y + 4, top * i / 4);
    }
}

/* Curves of [count] fields against time. */
static void put_curves (FILE *file, double left, const char *title, const double (*value)[POINTS],
                        int count, const struct results *r)
{
    const double wide = 300, begin = r->time[0], end = r->time[r->points - 1];
    double most = 0, top;

    for (int k = 0; k < count; k++)
        for (size_t p = 0; p < r->points; p++)
            most = fmax (most, value[k][p]);
    top = round_up (most > 0 && most < 1e3 ? most : 1); /* one that blew up leaves the picture */
    put_axes (file, left, wide, title, top);
    for (int k = 0; k < count; k++) {
        fprintf (file, "<polyline fill='none' stroke-width='2' stroke='%s' points='", ink[k]);
        for (size_t p = 0; p < r->points && value[k][p] <= top; p++)
            fprintf (file, "%.1f,%.1f ",
                     left + wide * (r->time[p] - begin) / (end - begin + 1e-9),
                     BELOW + TALL * (1 - value[k][p] / top));
        fputs ("'/>\n", file);
    }
    fprintf (file,
             "<text x='%g' y='%d' class='small'>%g</text><text x='%g' y='%d' class='small' "
             "text-anchor='end'>%g steps</text>\n",
             left, BELOW + TALL + 16, begin, left + wide, BELOW + TALL + 16, end);
}

static void put_r2 (FILE *file, double left, const struct results *r)
{
    const double *value[2] = {r->stress, r->force};
    static const char *const what[2] = {"stress", "force"};

    put_axes (file, left, 200, "held-out R2", 1);
    for (int i = 0; i < 2; i++) {
        for (int k = 1; k < CLOSURES; k++) {
            double tall = TALL * fmin (fmax (value[i][k], 0), 1),
                   x = left + 100 * i + 36 * k - 20;
            fprintf (file,
                     "<rect x='%g' y='%.1f' width='30' height='%.1f' fill='%s'/><text x='%g' "
                     "y='%.1f' class='small' text-anchor='middle'>%.2f</text>\n",
                     x, BELOW + TALL - tall, tall, ink[k], x + 15, BELOW + TALL - tall - 4,
                     value[i][k]);
        }
        fprintf (file, "<text x='%g' y='%d' class='small' text-anchor='middle'>%s</text>\n",
                 left + 100 * i + 50, BELOW + TALL + 16, what[i]);
    }
}

static void put_all (FILE *file, const struct results *r)
{
    static const int order[FIELDS] = {FINE, NONE, SMAGORINSKY, NETWORK};
    double square = 0, most;

    for (size_t i = 0; i < r->n * r->n; i++)
        square += r->vorticity[FINE][i] * r->vorticity[FINE][i];
    most = 3 * sqrt (square / (double) (r->n * r->n)) + 1e-12;
    fprintf (
        file,
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family="
        "'sans-serif' font-size='14'>\n<style>.small { font-size: 11px }</style>\n"
        "<rect width='%d' height='%d' fill='#fff'/>\n"
        "<text x='%d' y='24' font-size='17'>Vorticity after %g steps from a start no network "
        "has seen: %zu x %zu cells, and the fine flow filtered</text>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, r->time[r->points - 1], r->n, r->n);
    for (int i = 0; i < FIELDS; i++)
        put_field (file, LEFT + STEP * i, closure_name[order[i]], r->vorticity[order[i]], r->n,
                   most);
    put_bar (file, most);
    put_curves (file, LEFT + 20, "enstrophy, 1 at the start", r->enstrophy, FIELDS, r);
    put_curves (file, LEFT + 390, "relative error of the vorticity", r->error, CLOSURES, r);
    put_r2 (file, LEFT + 760, r);
    for (int i = 0; i < FIELDS; i++)
        fprintf (file,
                 "<path stroke='%s' stroke-width='3' d='M%d %dh24'/><text x='%d' y='%d'>%s</text>"
                 "\n",
                 ink[order[i]], 220 + 150 * i, HEIGHT - 25, 250 + 150 * i, HEIGHT - 20,
                 closure_name[order[i]]);
    fputs ("</svg>\n", file);
}

int picture_write (const char *folder, const struct results *r)
{
    char path[4096];
    FILE *file;

    snprintf (path, sizeof path, "%s/turbulence.svg", folder);
    file = fopen (path, "w");
    if (!file)
        return -1;
    put_all (file, r);
    return fclose (file) ? -1 : 0;
}
