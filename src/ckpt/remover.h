/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remover - takes files away. A large one keeps a file system as long as a copy of it would:
 * where the program is not to wait for that, names go at once, and a thread frees what they stood
 * for.
 */
#ifndef GS_CKPT_REMOVER_H
#define GS_CKPT_REMOVER_H

#include <stdbool.h>
#include <stdint.h>

/* Removes a file, or a folder and the files in it, now, and frees [path]; NULL was no memory for
 * it. What fails is logged. */
void gsi_remove (char *path);

struct gsi_remover;

/* Of what is in the folder [top]. NULL: no memory. */
struct gsi_remover *gsi_remover_open (const char *top);

/* Waits for its thread until [until_ns]; whether that is through. One that is not takes nothing.
 */
bool gsi_remover_await (struct gsi_remover *r, int64_t until_ns);

/* What a file has stays until the remover runs, though its name goes before. A remover that has
 * its hands full lets it go with its name. */
void gsi_remover_hold (struct gsi_remover *r, const char *path);

/* The same for a file that loses its name here. Frees [path], see gsi_remove. */
void gsi_remover_take (struct gsi_remover *r, char *path);

/* Removes the folder [path] with its files when the remover runs, and has seen to it that the
 * name which that had before is gone for good. Frees [path]. N.B. Its thread is through. */
void gsi_remover_take_folder (struct gsi_remover *r, char *path);

/* Frees what was taken: [beside] the program, or now. */
void gsi_remover_run (struct gsi_remover *r, bool beside);

/* Frees what was taken and not yet run for, and the remover; a thread that is not through at
 * [until_ns] does so itself then. */
void gsi_remover_close (struct gsi_remover *r, int64_t until_ns);

#endif /* GS_CKPT_REMOVER_H */
