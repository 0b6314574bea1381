#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# env.sh - src/base/env.def and doc/man/gradsync.7 name the same variables, and nothing but
# src/base/env.c reads a GS_* variable; gradsync.7 has the table nccl_versions.def.
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

# nccl_rows: VERSIONS: USE, then why and what gradsync does, a line each.
nccl_rows () {
    sed '1,/^ \*\/$/{/^GSI_/!d}' src/transport/nccl_versions.def | tr '\n' ' ' \
        | sed 's/GSI_NCCL_VERSIONS (NCCL/\n&/g' | awk -F '"' '
        NF > 6 {
            use = tolower ($1)
            sub (/^.*\), /, "", use)
            sub (/,.*/, "", use)
            text = $4 == "" ? "" : "NCCL " $4 ". "
            cure = use ~ /^(refused|conditional)$/
            answer = cure ? toupper (substr ($6, 1, 1)) substr ($6, 2) : "Gradsync " $6
            print $2 ": " use " " text answer "."
        }'
}
flat=$(sed 's/^\.[A-Z]* *//; s/"//g' "$manual" | tr '\n' ' ' | sed 's/ : /: /g')
rows=$(nccl_rows)
(($(grep -c . <<<"$rows") == $(grep -c '^GSI_NCCL_VERSIONS' src/transport/nccl_versions.def))) \
    || complain src/transport/nccl_versions.def "is not understood"
while IFS= read -r row; do
    [[ $flat = *"$row"* ]] || complain "$manual" "has not: $row (src/transport/nccl_versions.def)"
done <<<"$rows"
written=$(grep -cE '^\.BR .*": (supported|workaround|refused|conditional|untried)"' "$manual")
((written == $(grep -c . <<<"$rows"))) \
    || complain "$manual" "has $written rows of NCCL's versions, nccl_versions.def others"

while IFS= read -r line; do
    complain "${line%%: *}" "reads a GS_* variable without src/base/env.c"
done < <(sources c h cu cuh | grep -E '^(src|cuda|fortran)/' | grep -vx src/base/env.c \
    | xargs grep -nE 'getenv \("GS_')

finish "$(wc -w <<<"$table") variables, all of them in the manual"
