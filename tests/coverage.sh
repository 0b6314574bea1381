#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# coverage.sh PERCENT [FILE...] - share of the lines of src/ that the tests run in this build have
# reached, by file; fails when the whole is below PERCENT. With FILEs, below the source folder, it
# is about them, and each must have PERCENT. Run by make in the build folder.
minimum=${1:?}
shift
top=$(cd "${top_srcdir:?}" && pwd) || exit 99 # as the compiler wrote it, without ..
files=("${@/#/$top/}")
((${#files[@]})) || files=("$top/src/*")

if ! command -v lcov >/dev/null; then
    echo "skip: lcov is not installed"
    exit 77
fi
if [[ -z $(find src -name '*.gcda' -print -quit) ]]; then
    echo "no counts: configure with --enable-code-coverage and run make check first"
    exit 99
fi
folders=(--directory src)
[[ $* != *cuda/* ]] || folders+=(--directory cuda)
lcov --quiet --capture "${folders[@]}" --output-file coverage.all || exit 99
lcov --quiet --extract coverage.all "${files[@]}" --output-file coverage.info || exit 99
lcov --list coverage.info

# reached INFO: percent of the lines.
reached () {
    lcov --summary "$1" 2>&1 | sed -n 's/.*lines\.*: \([0-9.]*\)%.*/\1/p'
}

# enough WHAT PERCENT: says it, and whether it is.
enough () {
    echo "coverage of $1: ${2:-no} % of lines, $minimum % are asked for"
    awk -v have="${2:-0}" -v want="$minimum" 'BEGIN { exit !(have >= want) }'
}

status=0
if (($#)); then
    for file; do
        lcov --quiet --extract coverage.info "$top/$file" --output-file coverage.one
        enough "$file" "$(reached coverage.one)" || status=1
    done
    rm -f coverage.one
else
    enough src/ "$(reached coverage.info)" || status=1
fi
exit "$status"
