#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# env.sh - src/base/env.def and doc/man/gradsync.7 name the same variables, and nothing but
# src/base/env.c reads a GS_* variable.
. "$(dirname "$0")/lint.sh"
manual=doc/man/gradsync.7

if [[ ! -e $manual ]]; then
    complain "$manual" "is not there"
    finish
fi
table=$(grep -oE '"GS_[A-Z_]+"' src/base/env.def | tr -d '"' | sort -u)
constants=$(grep -ohE 'GS_[A-Z0-9_]+' "${headers[@]}" | sort -u)
written=$(sed 's/\\_/_/g' "$manual" | grep -oE '\bGS_[A-Z0-9_]*[A-Z0-9]\b' | sort -u)

for name in $(comm -23 <(echo "$table") <(echo "$written")); do
    complain "$manual" "does not mention $name of src/base/env.def"
done
for name in $(comm -13 <(echo "$table") <(echo "$written") | comm -23 - <(echo "$constants")); do
    complain "$manual" "names $name, which src/base/env.def does not have"
done

while IFS= read -r line; do
    complain "${line%%: *}" "reads a GS_* variable without src/base/env.c"
done < <(sources c h cu cuh | grep -E '^(src|cuda|fortran)/' | grep -vx src/base/env.c \
    | xargs grep -nE 'getenv \("GS_')

finish "$(wc -w <<<"$table") variables, all of them in the manual"
