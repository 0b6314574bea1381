#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# shell.sh - shellcheck has nothing to say about our shell scripts.
. "$(dirname "$0")/lint.sh"
need shellcheck shellcheck

mapfile -t scripts < <(
    find setup .ci tests slurm doc/examples -type f 2>/dev/null | sort | while read -r file; do
        read -r -n 80 first <"$file"
        case $first in
        '#!'*bash* | '#!'*/sh* | '# shellcheck shell='*) echo "$file" ;;
        esac
    done
)
((${#scripts[@]} > 10)) || complain . "found only ${#scripts[@]} shell scripts"
output=$(shellcheck --external-sources --source-path=SCRIPTDIR "${scripts[@]}" 2>&1) \
    || complain shellcheck "$output"

finish "${#scripts[@]} shell scripts are clean"
