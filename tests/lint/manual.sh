#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# manual.sh - each public function has a contract in its header with its labels, and a manual page
# that has its name, its parameters and, if it can fail, what it returns. Each program has a page,
# each topic of the log stands in gradsync(7), and each number of a section of the headers in one.
. "$(dirname "$0")/lint.sh"

# Prints page $1 without fonts; a page that only points to another is that other.
page () {
    local file=$1 target

    target=$(sed -n '1s/^\.so man3\///p' "$file")
    [[ -z $target ]] || file=doc/man/$target
    sed 's/\\f[BIRP]//g; s/\\f(C[WRBI]//g; s/\\-/-/g; s/\\_/_/g' "$file"
}

check_contract () { # NAME TYPE PARAMETERS HEADER CONTRACT
    local word label rest=$5

    for word in $3; do
        [[ $5 =~ [^a-z_]"$word"[^a-z_] ]] || complain "$4: $1" "contract without '$word'"
    done
    [[ $5 = *" * Since "* ]] || complain "$4: $1" "contract without Since"
    [[ $2 != gs_status_t* || $5 = *" * Returns "* ]] \
        || complain "$4: $1" "contract without Returns"
    # Labels that are there stand in this order: what is left after one must hold the next.
    for label in Collective Stream Threads Owner Precision Returns Since; do
        [[ $5 = *" * $label "* ]] || continue
        [[ $rest = *" * $label "* ]] || complain "$4: $1" "label $label is out of order"
        rest=${rest#*" * $label "}
    done
}

check_page () { # NAME TYPE PARAMETERS
    local file=doc/man/$1.3 text word

    if [[ ! -e $file ]]; then
        complain "$file" "is not there"
        return
    fi
    text=$(page "$file" 2>&1)
    sed -n '/^\.SH NAME/,/^\.SH SYNOPSIS/p' <<<"$text" | grep -qw "$1" \
        || complain "$file" "$1 is not in its NAME section"
    for word in $3; do
        grep -qw -- "$word" <<<"$text" || complain "$file" "does not mention $1's parameter $word"
    done
    [[ $2 != gs_status_t* ]] || grep -qE '^\.SH "?RETURN VALUE' <<<"$text" \
        || complain "$file" "has no section RETURN VALUE"
}

check_programs () {
    local program

    while read -r program; do
        [[ -e doc/man/${program##*/}.1 ]] || complain "doc/man/${program##*/}.1" "is not there"
    done < <(sed -nE 's/^bin_(PROGRAMS|SCRIPTS) \+?= //p' {src/tools,slurm}/Makefile.am \
        | xargs -n 1)
}

check_topics () {
    local topic listed

    listed=$(sed -n '/^Topics are/,/^\.TP/p' doc/man/gradsync.7)
    while read -r topic; do
        grep -qw -- "$topic" <<<"$listed" \
            || complain doc/man/gradsync.7 "does not list the topic $topic of the log"
        grep -qw -- "$topic" <(sed -n '/topic_names\[\] =/,/;/p' src/base/log.c) \
            || complain src/base/log.c "does not list the topic $topic"
    done < <(cat src/*/*.c cuda/*.c | sed -nE 's/.*gsi_log \([^,]*, "([a-z]+)".*/\1/p' | sort -u)
}

check_sections () {
    local twice

    twice=$(grep -hv ', continued' "${headers[@]}" | sed -nE 's|^/\* ---- ([0-9]+)\. .*|\1|p' \
        | sort | uniq -d)
    [[ -z $twice ]] || complain "${headers[*]}" "there are two sections $twice"
}

check_programs
check_topics
check_sections
count=0
while IFS=$unit read -r name type parameters header contract; do
    check_contract "$name" "$type" "$parameters" "$header" "$contract"
    check_page "$name" "$type" "$parameters"
    ((count++))
done < <(prototypes)
[[ $count = "$(public_names | wc -l)" ]] \
    || complain "${headers[*]}" "$count contracts, but $(public_names | wc -l) names are public"

for header in "${headers[@]#src/}"; do
    grep -qF "$header" doc/man/gradsync-fortran.7 \
        || complain doc/man/gradsync-fortran.7 "does not name $header"
done

finish "$count functions have their contract and their page"
