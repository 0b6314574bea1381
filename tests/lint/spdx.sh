#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# spdx.sh - every source file names its licence in its first three lines.
. "$(dirname "$0")/lint.sh"

while read -r file; do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' \
        || complain "$file" "no SPDX-License-Identifier: BSD-3-Clause in its first three lines"
done < <(
    sources c h cpp cu cuh f90 sh am def map supp
    find config -name 'gs_*.m4'
    find doc/man -name '*.[0-9]' ! -size -3
    printf '%s\n' configure.ac Makefile.am setup tests/fakersh slurm/modulefiles/gradsync.*.in \
        src/*.cmake.in doc/packaging/*/*
)

finish "every source file names its licence"
