#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# format.sh - C sources look as .clang-format says (make format makes them so).
. "$(dirname "$0")/lint.sh"
tool=clang-format-14
command -v "$tool" >/dev/null || tool=clang-format
need "$tool" clang-format-14
if ! "$tool" --version | grep -q 'version 14\.'; then
    echo "skip: other versions of clang-format set the same text differently; 14 is needed"
    exit 77
fi

output=$(sources c h cpp cu cuh | xargs "$tool" --dry-run -Werror 2>&1) \
    || complain "make format" "$output"

finish "every C file is formatted"
