#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# coverage.sh PERCENT - share of the lines of src/ that the tests run in this build have reached,
# by file; fails when the whole is below PERCENT. Run by make in the build folder.
minimum=${1:?}

if ! command -v lcov >/dev/null; then
    echo "skip: lcov is not installed"
    exit 77
fi
if [[ -z $(find src -name '*.gcda' -print -quit) ]]; then
    echo "no counts: configure with --enable-code-coverage and run make check first"
    exit 99
fi
top=$(cd "${top_srcdir:?}" && pwd) || exit 99 # as the compiler wrote it, without ..
lcov --quiet --capture --directory src --output-file coverage.all || exit 99
lcov --quiet --extract coverage.all "$top/src/*" --output-file coverage.info || exit 99
lcov --list coverage.info
percent=$(lcov --summary coverage.info 2>&1 | sed -n 's/.*lines\.*: \([0-9.]*\)%.*/\1/p')
echo "coverage of src/: ${percent:-no} % of lines, $minimum % are asked for"
awk -v have="${percent:-0}" -v want="$minimum" 'BEGIN { exit !(have >= want) }'
