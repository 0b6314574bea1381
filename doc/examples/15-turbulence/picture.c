/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * picture.c - fields of vorticity in a row; below correlations, enstrophies and spectra, and what
 * they come to. Each colour of a field is one path, of runs of cells.
 */
#include "picture.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLOURS = 33, CELLS = 96 }; /* an odd number: 0 is white */
enum { LEFT = 30, SIDE = 220, STEP = 236, WIDTH = 1040, HEIGHT = 680 };
enum { BELOW = 340, TALL = 190, WIDE = 265 }; /* plots */

const char *const closure_name[FIELDS] = {"no closure", "Smagorinsky", "network", "filtered DNS"};
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

/* A plot below the fields: ranges of x and y, which may be logarithms. */
struct plot {
    double left, x[2], y[2];
};

static double place_x (const struct plot *p, double x)
{
    return p->left + WIDE * (x - p->x[0]) / (p->x[1] - p->x[0]);
}

static double place_y (const struct plot *p, double y)
{
    double part = (y - p->y[0]) / (p->y[1] - p->y[0]);

    return BELOW + TALL * (1 - fmin (fmax (part, 0), 1));
}

static void put_frame (FILE *file, const struct plot *p, const char *title, const char *below)
{
    fprintf (file,
             "<text x='%g' y='%d'>%s</text>\n"
             "<text x='%g' y='%d' class='small' text-anchor='middle'>%s</text>\n"
             "<path stroke='#888' fill='none' d='M%g %dv%dh%d'/>\n",
             p->left, BELOW - 14, title, p->left + WIDE / 2.0, BELOW + TALL + 32, below, p->left,
             BELOW, TALL, WIDE);
}

static void put_x (FILE *file, const struct plot *p, double x, double label)
{
    fprintf (file,
             "<path stroke='#888' d='M%g %dv4'/>"
             "<text x='%g' y='%d' class='small' text-anchor='middle'>%g</text>\n",
             place_x (p, x), BELOW + TALL, place_x (p, x), BELOW + TALL + 16, label);
}

static void put_y (FILE *file, const struct plot *p, double y, const char *label)
{
    fprintf (file,
             "<path stroke='#ddd' d='M%g %gh%d'/>"
             "<text x='%g' y='%g' class='small' text-anchor='end'>%s</text>\n",
             p->left, place_y (p, y), WIDE, p->left - 5, place_y (p, y) + 4, label);
}

/* A curve to where it ends, or to its first value that is none. */
static void put_curve (FILE *file, const struct plot *p, int field, const double *x,
                       const double *y, size_t count)
{
    fprintf (file, "<polyline fill='none' stroke-width='%g' stroke='%s' points='",
             field == FINE ? 3.0 : 1.8, ink[field]);
    for (size_t i = 0; i < count && isfinite (y[i]); i++)
        fprintf (file, "%.1f,%.1f ", place_x (p, x[i]), place_y (p, y[i]));
    fputs ("'/>\n", file);
}

/* Values of [fields] fields, all 1 at first, against time. */
static void put_history (FILE *file, double left, const char *title,
                         const double (*value)[POINTS], int fields, const struct results *r)
{
    struct plot p = {left, {0, r->time[r->points - 1] + 1e-9}, {1, 1}};
    double step = pow (10, floor (log10 (p.x[1] / 2)));
    char label[32];

    for (int k = 0; k < fields; k++)
        for (size_t i = 0; i < r->points; i++)
            p.y[0] = fmin (p.y[0], value[k][i]);
    p.y[0] = fmax (floor (p.y[0] * 10 - 1e-9) / 10, 0);
    put_frame (file, &p, title, "time in turnover times of the start");
    while (p.x[1] / step > 10)
        step *= 2;
    for (double x = 0; x <= p.x[1]; x += step)
        put_x (file, &p, x, x);
    for (int i = 10; i >= p.y[0] * 10 - 1e-9; i -= p.y[0] < 0.4 ? 2 : 1) {
        snprintf (label, sizeof label, "%.1f", i / 10.0);
        put_y (file, &p, i / 10.0, label);
    }
    if (fields == CLOSURES) /* no curve of the fine flow, which is 1: of correlations */
        fprintf (file, "<path stroke='#555' stroke-dasharray='5 4' d='M%g %gh%d'/>\n", left,
                 place_y (&p, 0.9), WIDE);
    for (int k = fields - 1; k >= 0; k--)
        put_curve (file, &p, k, r->time, value[k], r->points);
}

/* The energy at each wavenumber, both as logarithms. */
static void put_spectra (FILE *file, double left, const struct results *r)
{
    size_t count = r->n / 2 - 1;
    struct plot p = {left, {0, log10 ((double) count)}, {0, -99}};
    double *x = malloc (2 * count * sizeof *x), *y = x + count;
    char label[64];

    if (!x)
        return;
    for (size_t i = 0; i < count; i++) {
        x[i] = log10 ((double) (i + 1));
        p.y[1] = fmax (p.y[1], ceil (log10 (r->energy[FINE][i + 1])));
    }
    for (size_t i = 0; i < count; i++)
        p.y[0] = fmin (p.y[0], floor (log10 (r->energy[FINE][i + 1])));
    p.y[0] = fmax (p.y[0], p.y[1] - 14);
    put_frame (file, &p, "energy spectrum at the end", "wavenumber, in waves along a side");
    for (size_t k = 1; k <= count; k *= 2)
        put_x (file, &p, log10 ((double) k), (double) k);
    for (double at = p.y[0]; at <= p.y[1]; at += p.y[1] - p.y[0] > 7 ? 2 : 1) {
        snprintf (label, sizeof label, "10<tspan dy='-5' font-size='9'>%g</tspan>", at);
        put_y (file, &p, at, label);
    }
    for (int k = FIELDS - 1; k >= 0; k--) {
        for (size_t i = 0; i < count; i++)
            y[i] = log10 (r->energy[k][i + 1]);
        put_curve (file, &p, k, x, y, count);
    }
    free (x);
}

/* What the curves come to, a row for each closure, beside the colours. */
static void put_table (FILE *file, const struct results *r)
{
    static const char *const title[] = {"R2 of the sub-grid force", "correlation above 0.9 until",
                                        "error of the enstrophy", "error of the spectrum"};
    double row = BELOW + TALL + 66;

    for (int i = 0; i < 4; i++)
        fprintf (file, "<text x='%d' y='%g' class='small' text-anchor='end'>%s</text>\n",
                 380 + 200 * i, row, title[i]);
    for (int k = FIELDS - 1; k >= 0; k--) {
        row += 20;
        fprintf (file,
                 "<path stroke='%s' stroke-width='%d' d='M%d %gh24'/>"
                 "<text x='%d' y='%g'>%s</text>\n",
                 ink[k], k == FINE ? 3 : 2, LEFT + 20, row - 5, LEFT + 52, row, closure_name[k]);
        if (k == FINE)
            continue;
        fprintf (file,
                 "<g text-anchor='end'><text x='380' y='%g'>%.3f</text>"
                 "<text x='580' y='%g'>%s%.1f turnover times</text>"
                 "<text x='780' y='%g'>%.1f %%</text>"
                 "<text x='980' y='%g'>%.2f decades</text></g>\n",
                 row, r->force[k], row, r->kept[k] < r->time[r->points - 1] ? "" : "the end, ",
                 r->kept[k], row, 100 * r->enstrophy_error[k], row, r->spectrum_error[k]);
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
        "<text x='%d' y='26' font-size='17'>Vorticity of a held-out flow after %.1f turnover "
        "times, %zu x %zu cells; DNS: %zu x %zu</text>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, r->time[r->points - 1], r->n, r->n, FACTOR * r->n,
        FACTOR * r->n);
    for (int i = 0; i < FIELDS; i++)
        put_field (file, LEFT + STEP * i, closure_name[order[i]], r->vorticity[order[i]], r->n,
                   most);
    put_bar (file, most);
    put_history (file, LEFT + 30, "correlation with the filtered DNS", r->correlation, CLOSURES,
                 r);
    put_history (file, LEFT + 365, "enstrophy, 1 at the start", r->enstrophy, FIELDS, r);
    put_spectra (file, LEFT + 700, r);
    put_table (file, r);
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
