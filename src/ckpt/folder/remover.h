/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remover - takes files away. A large one keeps a file system as long as a copy of it would:
 * where the program is not to wait for that, a thread does it, after names that count are gone.
 */
#ifndef GS_CKPT_FOLDER_REMOVER_H
#define GS_CKPT_FOLDER_REMOVER_H

#include <stdbool.h>
#include <stdint.h>

/* Removes a file or a link, or a folder and the files of ours in it, now. [folder] is as file.h
 * has it; a folder must have the inode [number], 0: any has. What fails is logged. */
void gsi_remove (int folder, const char *path, uint64_t number);

struct gsi_remover;

/* Of what is in the folder [top]. NULL: no memory. */
struct gsi_remover *gsi_remover_open (const char *top);

/* Takes the file or folder of inode [number] that was renamed to [path] in [folder]: it goes when
 * the remover runs, and has seen to it that the name before is gone for good. */
void gsi_remover_take (struct gsi_remover *r, int folder, const char *path, uint64_t number);

/* Removes what was taken: [beside] the program, or now. What is taken while the thread is not
 * through waits for the next run. */
void gsi_remover_run (struct gsi_remover *r, bool beside);

/* Waits for the thread until [until_ns]; whether it is through. */
bool gsi_remover_await (struct gsi_remover *r, int64_t until_ns);

/* Removes what still waits, and frees the remover. False: at [until_ns] the file system still has
 * the thread, which goes on alone, and what waits stays. */
bool gsi_remover_close (struct gsi_remover *r, int64_t until_ns);

#endif /* GS_CKPT_FOLDER_REMOVER_H */
