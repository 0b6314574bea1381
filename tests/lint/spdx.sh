#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# spdx.sh - every source file names its licence in its first three lines.
. "$(dirname "$0")/lint.sh"

found=$({
    sources awk c h cpp cu cuh f90 sh am def map supp
    find config -name 'gs_*.m4'
    find doc/man -name '*.[0-9]' ! -size -3
    printf '%s\n' configure.ac Makefile.am setup tests/fakersh slurm/modulefiles/gradsync.*.in \
        src/*.cmake.in doc/packaging/*/*
} | xargs awk '
    FNR < 4 && /SPDX-License-Identifier: BSD-3-Clause/ { named[FILENAME] = 1 }
    END {
        for (i = 1; i < ARGC; i++)
            if (!(ARGV[i] in named))
                print ARGV[i] ": no SPDX-License-Identifier: BSD-3-Clause in its first 3 lines"
    }' 2>&1) || complain spdx "the files cannot be read"
[[ -z $found ]] || complain spdx "$found"

finish "every source file names its licence"
