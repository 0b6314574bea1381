/* SPDX-License-Identifier: BSD-3-Clause */
/* starve - what the preloaded library starve.so offers to a program, by the symbol STARVE. */
#ifndef GS_TESTS_STARVE_H
#define GS_TESTS_STARVE_H

#include <stdbool.h>
#include <stddef.h>

#define STARVE "starve"

struct starve {
    /* From now on the [place]-th allocation of gradsync's own code fails, from 1; then that one
     * only, or [all] behind it, too. 0: they are only counted. */
    void (*begin) (long place, bool all);

    /* The end of that: how many allocations there were. [where] is the first that failed, as
     * "object+0xoffset function"; empty if none did. */
    long (*end) (char *where, size_t room);

    /* What gradsync's own code allocates from now on is looked at by held. */
    void (*hold) (void);

    /* How many blocks of these are still there, and where the first was allocated; without
     * [modules] those of the library itself. */
    int (*held) (bool modules, char *where, size_t room);
};

#endif /* GS_TESTS_STARVE_H */
