#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# manual.sh - each public function has a contract in its header with its labels, and a manual page
# that has its name, its parameters and, if it can fail, what it returns, and that tells what the
# header does (contracts). Each program has a page, each topic of the log stands in gradsync(7),
# and each number of a section of the headers in one.
. "$(dirname "$0")/lint.sh"
need python3 python3

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

# Prints what is wrong with the pages of the functions, which are all read in one pass.
page_faults () {
    prototypes | awk -v OFS=': ' '
        pages && FNR == 1 { page = FILENAME; there[page] = 1; in_name = 0 }
        pages && FNR == 1 && sub (/^\.so man3\//, "") { target[page] = "doc/man/" $0 }
        pages {
            gsub (/\\f[BIRP]|\\f\(C[WRBI]/, "") # fonts
            gsub (/\\_/, "_")
            if (/^\.SH NAME/)
                in_name = 1
            if (/^\.SH "?RETURN VALUE/)
                returns[page] = 1
            n = split ($0, word, /[^A-Za-z0-9_]+/)
            for (i = 1; i <= n; i++) {
                has[page, word[i]] = 1
                if (in_name)
                    named[page, word[i]] = 1
            }
            if (/^\.SH SYNOPSIS/)
                in_name = 0
            next
        }
        { # name, type, parameters
            page = text = "doc/man/" $1 ".3"
            if (!(page in there)) {
                print page, "is not there"
                next
            }
            if (page in target)
                text = target[page] # this page only points to another
            if (!((text, $1) in named))
                print page, $1 " is not in its NAME section"
            n = split ($3, word, " ")
            for (i = 1; i <= n; i++)
                if (!((text, word[i]) in has))
                    print page, "does not mention " $1 "\047s parameter " word[i]
            if ($2 ~ /^gs_status_t/ && !(text in returns))
                print page, "has no section RETURN VALUE"
        }
    ' pages=1 doc/man/*.3 pages= FS="$unit" -
}

check_programs () {
    local program

    while read -r program; do
        [[ -e doc/man/${program##*/}.1 ]] || complain "doc/man/${program##*/}.1" "is not there"
    done < <(sed -nE 's/^bin_(PROGRAMS|SCRIPTS) \+?= //p' {src/tools,slurm}/Makefile.am \
        | xargs -n 1)
}

check_topics () {
    local topic listed names

    listed=$(sed -n '/^Topics are/,/^\.TP/p' doc/man/gradsync.7)
    names=$(sed -n '/topic_names\[\] =/,/;/p' src/base/log.c
        sed -n '/define GSI_MODULES/,/^$/p' src/base/transport.h)
    while read -r topic; do
        [[ $listed =~ (^|[^[:alnum:]_])"$topic"([^[:alnum:]_]|$) ]] \
            || complain doc/man/gradsync.7 "does not list the topic $topic of the log"
        [[ $names =~ (^|[^[:alnum:]_])"$topic"([^[:alnum:]_]|$) ]] \
            || complain src/base/log.c "does not list the topic $topic"
    done < <(cat src/*/*.c src/*/*/*.c cuda/*.c \
        | sed -nE 's/.*gsi_log \([^,]*, "([a-z]+)".*/\1/p' | sort -u)
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
    ((count++))
done < <(prototypes)
faults=$(page_faults 2>&1) || complain doc/man "the pages cannot be read"
[[ -z $faults ]] || complain manual "$faults"
faults=$(tests/lint/contracts) || complain doc/man "$faults"
[[ $count = "$(public_names | wc -l)" ]] \
    || complain "${headers[*]}" "$count contracts, but $(public_names | wc -l) names are public"

fortran=$(<doc/man/gradsync-fortran.7)
for header in "${headers[@]#src/}"; do
    [[ $fortran = *"$header"* ]] || complain doc/man/gradsync-fortran.7 "does not name $header"
done

finish "$count functions have their contract and their page"
