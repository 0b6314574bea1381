#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# runtime.sh - the simulated CUDA runtime keeps the rules of README.md, takes the real one's place
# by the library path alone, and makes programs fail that misuse it.

: "${top_builddir:?run me by make check}"
here=$top_builddir/tests/simgpu
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-runtime.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
failures=0

fail () {
    echo "FAIL: $*"
    [[ ! -s $room/output ]] || sed 's/^/    /' "$room/output"
    failures=$((failures + 1))
}

unset "${!SIM_@}" CUDA_VISIBLE_DEVICES PMIX_RANK OMPI_COMM_WORLD_RANK SLURM_PROCID
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export SIM_TWINS=$here/kernels_twins.so

"$here/runtime" || failures=$((failures + 1))

# misuse ARGUMENT: runs the program; its exit status is in $status. The subshell keeps the shell's
# word about a signal to itself.
misuse () {
    ("$here/misuse" "$1" >"$room/output" 2>&1; exit $?) 2>/dev/null
    status=$?
}

misuse none
((status == 0)) || fail "a program that does nothing wrong ends with status $status"
[[ ! -s $room/output ]] || fail "a program that does nothing wrong makes lines"

kinds=0
while read -r kind words; do
    misuse "$kind"
    kinds=$((kinds + 1))
    if [[ -z $words ]]; then # ends by a signal, or as a sanitizer ends then
        ((status != 0 && status != 86)) || fail "$kind: exit status $status"
        continue
    fi
    ((status == 86)) || fail "$kind: exit status $status, not 86"
    grep -q "^simgpu: misuse: .*$words" "$room/output" || fail "$kind: no line with '$words'"
    (($(grep -c "^simgpu: misuse: " "$room/output") == 1)) || fail "$kind: more than one line"
    [[ $kind = leak_* ]] || continue
    SIM_LEAKS=0 misuse "$kind"
    ((status == 0)) || fail "$kind with SIM_LEAKS=0: exit status $status"
done < <("$here/misuse" list)
((kinds > 25)) || fail "only $kinds kinds of misuse are known"

SIM_LEAKS=0 misuse double_free
((status == 86)) || fail "SIM_LEAKS=0 hides misuse that is no leak: status $status"
SIM_TWINS=/nowhere/twins.so misuse kernel_after_free
grep -q 'kernel scale has no twin: /nowhere/twins.so' "$room/output" \
    || fail "a missing libsimtwins.so is not named"
mkdir "$room/lib" # twins are found beside the runtime
cp "$here"/lib/libcudart.so.* "$room/lib" && cp "$SIM_TWINS" "$room/lib/libsimtwins.so"
SIM_TWINS='' LD_LIBRARY_PATH=$room/lib misuse kernel_out_of_range
grep -q 'scale: 20 bytes' "$room/output" || fail "libsimtwins.so beside the runtime is not found"
SIM_CONTEXTS=0 misuse none
grep -q 'misuse: .* makes a context on GPU 0, number 1 of this process' "$room/output" \
    || fail "a context too many is not told"
SIM_FAULT=cudaHostAlloc#3 misuse none
grep -q 'SIM_FAULT: call 3 of cudaHostAlloc did not come' "$room/output" \
    || fail "a fault that did not happen is not named"

((failures == 0)) && echo "the rules hold; $kinds kinds of misuse are seen"
exit $((failures != 0))
