#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# spelling.sh - codespell finds no common misspelling; words it gets wrong are in words.txt.
. "$(dirname "$0")/lint.sh"
need codespell codespell

output=$(codespell --ignore-words tests/lint/words.txt --skip '*.abi,*.h5,*.svg,*.png,./build*' \
    README.md configure.ac config/gs_*.m4 setup src cuda fortran slurm contrib tests doc 2>&1 \
    | grep -v '^WARNING: No such')
[[ -z $output ]] || complain spelling "$output"

finish "no common misspelling"
