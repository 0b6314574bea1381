#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# results.sh - each public function that can fail returns by gsi_result or gsi_fail, so that
# gs_last_error is "" after it has succeeded; and the library itself asks gsi_last_text, since a
# public call that succeeded meanwhile hides the text from gs_last_error.
. "$(dirname "$0")/lint.sh"

can_fail=$(prototypes | awk -F "$unit" '$2 ~ /^gs_status_t/ { print $1 }')
declare -A there=()
while IFS=: read -r what where; do
    case $what in
        defined) there[$where]=yes ;; # a part that a build can leave out has two definitions
        *) complain "$where" "returns past gsi_result and gsi_fail: gs_last_error would lie" ;;
    esac
done < <(awk -v names="$can_fail" '
    BEGIN { split (names, list); for (i in list) public[list[i]] }
    { gsub (/\/\*.*\*\//, "") }
    /^gs_status_t gs_[a-z0-9_]+ \(/ { name = $2 }
    /;$/ && !inside { name = "" } # a prototype
    /^\{/ && name in public { inside = 1; print "defined:" name }
    /^\}/ { inside = 0; name = "" }
    inside && /(^|[ ;:])return / && !/return gsi_(result|fail) \(/ {
        print "past:" FILENAME ":" FNR ": " name
    }
' src/*/*.c src/*/*/*.c)
wanted=$(wc -w <<<"$can_fail")
defined=${#there[@]}
((defined == wanted)) \
    || complain src "$defined definitions of $wanted public functions that can fail"

while IFS=: read -r file line _; do
    complain "$file:$line" "asks gs_last_error, which is for programs: use gsi_last_text"
done < <(grep -n 'gs_last_error ()' src/*/*.c src/*/*/*.c \
    | grep -v '^src/tools/\|:[0-9]*: *\(/\*\| \*\)')

finish "$defined functions return by gsi_result or gsi_fail"
