# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# programs.sh - which programs of several ranks are tests; to be sourced.

# Prints those of tests/multi and tests/fortran, as their Makefile.am lists them.
programs () { # TOP
    awk '/^[A-Za-z_]*HELPERS *=/ { helpers = 1 }
         /^#/ || /^$/ { helpers = 0 }
         !helpers' "$1"/tests/{multi,fortran}/Makefile.am \
        | grep -oE 'tests/[a-z]+/[a-z0-9_]+\.[mf]t' | sort -u
}
