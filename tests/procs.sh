# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# procs.sh - finds and ends processes by a mark in their environment; to be sourced.
#
# The daemons of a launcher leave their process group, session and parent, but keep the
# environment they were started with. What was started with a MARK, an assignment like
# GS_LAUNCH_MARK=4711, is therefore found in /proc whatever became of its parents, and nothing
# else is ever touched.

# Prints the ids of the processes that carry the mark $1, on one line.
marked_procs () {
    grep -lzsx -- "$1" /proc/[0-9]*/environ | cut -d / -f 3 | tr '\n' ' '
}

# Waits at most $2 seconds until no process carries the mark $1; false if some remain.
await_marked () {
    local tries=$(($2 * 10))

    while [[ -n $(marked_procs "$1") ]]; do
        ((tries-- > 0)) || return 1
        sleep 0.1
    done
}

# Ends the processes that carry the mark $1: TERM, and two seconds later KILL.
end_marked () {
    local signal pids

    for signal in TERM KILL; do
        read -ra pids <<<"$(marked_procs "$1")"
        ((${#pids[@]})) || return 0
        kill -s "$signal" "${pids[@]}" 2>/dev/null
        await_marked "$1" 2 && return 0
    done
    return 1
}
