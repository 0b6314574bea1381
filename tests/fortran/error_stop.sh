#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# error_stop.sh - a failure without stat ends a Fortran program, with the text on stderr.

program=./tests/fortran/error_stop
failed=0

# stops WAY WORDS: the program, failing in this way, says WORDS and exits with a status that is
# neither 0 nor that of a signal.
stops () {
    output=$("${top_srcdir:-.}/tests/timeout" 60 "$program" "$1" 2>&1)
    status=$?
    if [ "$status" -eq 0 ] || [ "$status" -ge 124 ]; then
        echo "not ok - $1: exit status $status"
        failed=1
    elif ! printf '%s\n' "$output" | grep -q "ERROR STOP.*$2"; then
        echo "not ok - $1: 'ERROR STOP ... $2' is not in:"
        failed=1
    elif printf '%s\n' "$output" | grep -q survived; then
        echo "not ok - $1: went on"
        failed=1
    else
        echo "ok - $1: exit status $status"
    fi
    printf '%s\n' "$output" | sed 's/^/# /'
}

[ -x "$program" ] || { echo "skip: $program is not built"; exit 77; }
# Programs that fail leave flight records.
GS_RECORD_DIR=$(mktemp -d "${TMPDIR:-/tmp}/gs-error-stop.XXXXXX") || exit 99
export GS_RECORD_DIR
trap 'rm -rf "$GS_RECORD_DIR"' EXIT
trap 'exit 99' HUP INT TERM
stops dtype 'rank 0 of 1: GS_ERR_ARG: gs_allreduce_avg: .*99'
stops errmsg 'rank 0 of 1: GS_ERR_ARG: gs_allreduce_avg: count is -4'
stops array 'rank 0 of 1: GS_ERR_ARG: gs_broadcast: buf is a strided'
stops plan "rank 0 of 1: GS_ERR_ARG: gs_ckpt_commit: "
stops destroyed "rank 0 of 1: GS_ERR_STATE: gs_barrier: communicator 'stopping' was destroyed"
stops create 'GS_ERR_ARG: .*99'
exit $failed
