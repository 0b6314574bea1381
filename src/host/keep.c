/* SPDX-License-Identifier: BSD-3-Clause */
/* keep - memory that a network still owns. */
#include "host/keep.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* kept */

/* Reachable, so that leak checkers know it is meant to stay. */
static struct kept {
    struct kept *next;
    void *memory;
} * kept;

void gsi_keep (void *memory)
{
    struct kept *k;

    if (!memory || !(k = malloc (sizeof (*k))))
        return;
    pthread_mutex_lock (&guard);
    *k = (struct kept){.next = kept, .memory = memory};
    kept = k;
    pthread_mutex_unlock (&guard);
}
