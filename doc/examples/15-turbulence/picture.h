/* SPDX-License-Identifier: BSD-3-Clause */
/* picture.h - the results as one picture. */
#ifndef TURBULENCE_PICTURE_H
#define TURBULENCE_PICTURE_H

#include "evaluate.h"

/* Names of fields and closures, as tables and pictures have them. */
extern const char *const closure_name[FIELDS];

/* Writes FOLDER/turbulence.svg. Returns 0, or -1 with errno. */
int picture_write (const char *folder, const struct results *r);

#endif
