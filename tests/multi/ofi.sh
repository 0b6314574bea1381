#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ofi.sh - transport ofi: the programs of several ranks over libfabric's TCP, without MPI.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
failures=0 runs=0
parallel=3
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-ofi.XXXXXX") || exit 99
trap 'wait; rm -rf "$room"' EXIT

skip () {
    echo "skip: $*"
    exit 77
}

fail () {
    echo "FAIL: $*"
    sed 's/^/    /' "$room/output"
    failures=$((failures + 1))
}

[[ -e .libs/gradsync-ofi.so ]] || skip "no gradsync-ofi.so in this build (Debian: libfabric-dev)"
./gs-info | grep -q '^pmix: no' && skip "without PMIx MPI finds the ranks"

# What is called here would load MPI's module, which is not there.
export GS_TRANSPORT=ofi GS_MPI_MODULE=/nonexistent/gradsync-mpi.so FI_TCP_IFACE=lo
export GS_OFI_PROVIDER='tcp;ofi_rxm'

# try PROGRAM LAYOUT-AND-SETTINGS: sets status.
try () {
    "$launch" --live --layout "$2" "tests/multi/$1.mt" >"$room/output" 2>&1
    status=$?
    ((status != 77)) || skip "$(tail -n 1 "$room/output")"
}

# start PROGRAM LAYOUT-AND-SETTINGS: in the background; it is to pass.
start () {
    local out=$room/$((++runs))

    (($(jobs -rp | wc -l) < parallel)) || wait -n
    {
        "$launch" --live --layout "$2" "tests/multi/$1.mt" >"$out" 2>&1
        echo "$? $*" >"$out.end"
    } &
}

# Looks at all that were started.
judge_all () {
    local status what number

    wait
    for ((number = 1; number <= runs; number++)); do
        read -r status what <"$room/$number.end"
        ((status != 77)) || skip "$(tail -n 1 "$room/$number")"
        ((!status)) || { cp "$room/$number" "$room/output"; fail "$what: exit status $status"; }
        echo "ran $what"
    done
}

ends=OMPI_MCA_orte_allowed_exit_without_sync=1
programs=(allreduce exchange messages split)
layouts=(2x2 '4 GS_HOST_ALGO=flat')
if [[ ${GS_TEST_LAYOUTS-} != quick ]]; then
    programs+=(adjoint algorithms allgather average barrier broadcast compare field halo many
        mixed reduce reducer stats threads traffic uneven wavg)
    layouts+=(4 4x2 8x1)
fi
for layout in "${layouts[@]}"; do
    for program in "${programs[@]}"; do
        start "$program" "$layout"
    done
done
for layout in "2x2 $ends" "3x1 $ends"; do
    start mismatch "$layout"
    [[ ${GS_TEST_LAYOUTS-} = quick ]] || { start abort "$layout"; start late "$layout"; }
done
judge_all

for how in exit-before kill-before kill-inside; do
    begin=$SECONDS
    try dying "3x1 GS_TEST_END=$how GS_TEST_SECONDS=60" # 137: of a rank that was killed, too
    ((status && SECONDS - begin < 60)) || fail "$how: exit status $status, or no end"
    echo "ran dying $how"
done

try barrier '2x1 GS_DEBUG=info'
((status == 0)) || fail "barrier: exit status $status"
grep -q ' transport ofi (asked for' "$room/output" || fail "the transport is another one"
try barrier '2x1 GS_OFI_PROVIDER=planted'
((status)) || fail "a provider that there is not: exit status 0"
grep -q 'libfabric has no provider here .* of the name planted' "$room/output" \
    || fail "a provider that there is not: another text"

# libpsm2, which libfabric loads, takes signals of the program, unless mpirun has told it not to.
"$launch" --live --layout 2 "$(command -v env)" -u HFI_NO_BACKTRACE -u IPATH_NO_BACKTRACE \
    tests/multi/preempt.mt >"$room/output" 2>&1 || (($? == 77)) \
    || fail "preempt: signals of the program are handled by others"

((!failures)) || exit 1
echo "all over libfabric, without MPI"
