# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# programs.sh - which programs of several ranks are tests; to be sourced.

# Prints those of tests/multi and tests/fortran, as their Makefile.am lists them.
programs () { # TOP
    awk '/^(GS_MULTI_TESTS|gs_ft_[a-z]+) = / { listed = 1 }
         listed
         !/\\$/ { listed = 0 }' "$1"/tests/{multi,fortran}/Makefile.am \
        | grep -oE 'tests/[a-z]+/[a-z0-9_]+\.[mf]t' | sort -u
}
