#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# queued.sh - calls on device arrays: what a call costs in calls of CUDA and NCCL, what exact
# averages send and that they are exact on 2 to 16 ranks, graphs, and a rank that is late.

. "$(dirname "$0")/lib.sh"

# How often one more call of an average calls [name]: from processes that made 20 and 120 of them.
declare -A per_call
count_calls () { # DTYPE COUNT
    local name calls

    per_call=()
    rm -f "$room"/calls.*
    run "2 SIM_COUNT=$room/calls.20 GS_TEST_DTYPE=$1" tests/simgpu/queued average "$2" 20
    run "2 SIM_COUNT=$room/calls.120 GS_TEST_DTYPE=$1" tests/simgpu/queued average "$2" 120
    while read -r name calls; do
        per_call[$name]=$calls
    done < <(awk '{ n[$1] += (FILENAME ~ /120$/ ? 1 : -1) * $2 }
                  END { for (name in n) printf "%s %.2f\n", name, n[name] / 200 }' \
        "$room"/calls.*)
}

# A call makes no memory, waits for nothing on the host, and asks each thing once.
cheap () { # DTYPE COUNT NCCL-CALL TIMES
    local name

    count_calls "$1" "$2"
    for name in "${!per_call[@]}"; do
        case $name in
        cudaMalloc* | cudaFree* | cudaHost* | *Synchronize* | *Create*)
            [[ ${per_call[$name]} = 0.00 ]] || fail "type $1: ${per_call[$name]} $name a call"
            ;;
        cudaPointerGetAttributes | cudaStreamIsCapturing)
            [[ ${per_call[$name]} = 1.00 ]] || fail "type $1: ${per_call[$name]} $name a call"
            ;;
        esac
    done
    [[ ${per_call[ncclThread]-0.00} = 0.00 ]] || fail "type $1: NCCL makes threads for calls"
    [[ ${per_call[$3]-0} = "$4" ]] || fail "type $1: ${per_call[$3]-0} $3 a call, not $4"
    echo "type $1: one call is $(for name in "${!per_call[@]}"; do
        [[ ${per_call[$name]} = 0.00 ]] || printf '%s %s, ' "${per_call[$name]}" "$name"
    done)"
}

# Exact averages send what a ring sends, 2 (N - 1) / N of the array, to 1 %.
sends_as_a_ring () { # RANKS
    local elements=3000000 # of 2 bytes

    rm -f "$room/traffic"
    run "$1 GS_AVG=exact GS_TEST_DTYPE=2 SIM_TRAFFIC=$room/traffic" \
        tests/simgpu/queued average "$elements" 1 || return
    awk -v n="$1" -v bytes=$((2 * elements)) '
        { sent = $4 + $8; ring = 2 * (n - 1) / n * bytes; share = sent / ring
          if (share > most) most = share
          if (share < 0.99 || share > 1.01) bad = 1 }
        END { printf "%d ranks: %.4f of what a ring sends\n", n, most; exit bad || NR != n }' \
        "$room/traffic" || { fail "$1 ranks: traffic"; cat "$room/traffic"; }
}

# Between nodes exact averages send at most 2.05 times as much as a ring of nodes, and a rank
# sends to few; and the library's count is what NCCL was given, all of it in messages.
sends_between () { # NODES GPUS
    local elements=3000000 # of 2 bytes

    rm -f "$room/traffic"
    run "$1x$2 GS_AVG=exact GS_TEST_DTYPE=2 SIM_TRAFFIC=$room/traffic" \
        tests/simgpu/queued average "$elements" 1 || return
    awk -v n="$1" -v g="$2" -v bytes=$((2 * elements)) '
        FILENAME ~ /out$/ && / between, all known: 1$/ { known[$2] = $3 + $5; told += $5; next }
        FILENAME ~ /out$/ { next }
        { far[int ($2 / g)] += $13 + $15; counted += $15; connections = $21
          if (known[$2] != $8) bad = 1
          if (connections > most) most = connections }
        END { ring = 2 * (n - 1) / n * bytes
              for (node in far) if (far[node] > out) out = far[node]
              for (allowed = g; 2 ^ steps < n * g; steps++) allowed += 2
              printf "%dx%d: a node sends %.2f MB, %.3f of a ring; a rank sends to %d\n", n, g,
                      out / 1e6, out / ring, most
              exit bad || told != counted || !told || out > 2.05 * ring || most > allowed }' \
        "$room/out" "$room/traffic" || { fail "$1x$2: traffic"; cat "$room/out" "$room/traffic"; }
}

cheap 3 1000 ncclAllReduce 1.00
cheap 1 1000 ncclAllReduce 1.00
GS_AVG=exact cheap 2 1024 ncclSend 1.00
for ranks in 2 3 4 8; do
    sends_as_a_ring "$ranks"
done
for layout in "2 4" "4 4" "8 4" "16 4" "9 1"; do
    # shellcheck disable=SC2086 # words
    sends_between $layout
done
for ((ranks = 2; ranks <= 16; ranks++)); do
    run "$ranks GS_AVG=exact GS_TEST_HALVES=1" tests/multi/average.mt \
        && echo "$ranks ranks: exact"
done
for ranks in 3 4 8 12; do
    run "$ranks GS_AVG=fast GS_TEST_HALVES=1" tests/multi/average.mt \
        && echo "$ranks ranks: fast averages within their bound"
done
for layout in 1 2 2x2; do
    for mode in graph busy; do
        run "$layout" tests/simgpu/queued "$mode" && echo "$layout: $mode"
    done
done
run "2 SIM_DELAY_US=5000" tests/simgpu/queued many 500 && echo "2: many"
run "3 SIM_LAUNCH_QUEUE=100000" tests/simgpu/queued ahead && echo "3: ahead"
run 2 tests/simgpu/queued stuck && run 2 tests/simgpu/queued stuck beside && echo "2: stuck"
for layout in 2 3 1+1 2+2; do
    run "$layout SIM_FIRST_LAUNCH=1" tests/simgpu/queued crossed && echo "$layout: crossed"
done
run 2x2 tests/simgpu/queued contexts && echo "2x2: contexts"
run "1 GS_TRANSPORT=auto GS_DEVICE=host" tests/simgpu/queued contexts && echo "1, host: contexts"
for layout in 2x2 3+2; do
    run "$layout GS_AVG=exact GS_TEST_DTYPE=2" tests/simgpu/queued graph \
        && echo "$layout: graph, exact"
done
# Memory that is freed too early is not read or written in silence.
"$top_srcdir/tests/launch.sh" --live --layout 1 tests/simgpu/queued freed >"$room/out" 2>&1 \
    && fail "a freed gradient was averaged"
grep -q 'simgpu: misuse: .*freed' "$room/out" || { fail "no misuse is told"; cat "$room/out"; }
echo "1: freed"
run "3 OMPI_MCA_orte_allowed_exit_without_sync=1" tests/simgpu/queued late && echo "3: late"
# A rank stays away or stops: the others end at their deadline, though their launches are blocked
# (2000 calls), a graph lives, or more was queued than is watched call by call. Each version of
# NCCL that behaves in another way.
give_up () { # VERSION
    local mode folders=$LD_LIBRARY_PATH

    [[ $1 = newest ]] || local -x SIM_NCCL_VERSION=$1
    # Elsewhere an aborted call that connects crashes, so this version is refused without it.
    [[ $1 != 2.22 ]] || local -x NCCL_RUNTIME_CONNECT=0
    [[ $1 = newest ]] || folders=$PWD/tests/simgpu/nccl-$1:$folders
    for mode in shrunk "flood 0 2000" "flood 0 2000 graph" "flood 80 200" no-group; do
        [[ $mode != no-group ]] || local -x SIM_FAULT=ncclCommSplit@0=stall
        # shellcheck disable=SC2086 # words
        LD_LIBRARY_PATH=$folders run "3 OMPI_MCA_orte_allowed_exit_without_sync=1" \
            tests/simgpu/queued $mode && echo "3, NCCL $1: $mode"
        [[ $mode$1 != shrunknewest ]] || grep -q 'blocked in CUDA or NCCL' "$room/out" \
            || { fail "NCCL connected before"; cat "$room/out"; }
    done
}
SIM_NCCL_VERSION=2.22.3 LD_LIBRARY_PATH=$PWD/tests/simgpu/nccl-2.22:$LD_LIBRARY_PATH \
    "$top_srcdir/tests/launch.sh" --live --layout 2 tests/simgpu/queued late >"$room/out" 2>&1 \
    && fail "NCCL 2.22 is not refused"
grep -q 'NCCL 2.22.3, which gradsync refuses.*NCCL_RUNTIME_CONNECT=0' "$room/out" \
    || { fail "no cure for NCCL 2.22"; cat "$room/out"; }
for version in newest 2.18 2.22 2.24 2.26; do
    give_up "$version"
done
# So do ranks whose sums go over nodes by rails, though each waits for a few of the others alone.
for mode in late "flood 0 100" "flood 0 100 graph" "flood 20 80"; do
    # shellcheck disable=SC2086 # words
    run "3x3 GS_AVG=exact GS_TEST_DTYPE=2 OMPI_MCA_orte_allowed_exit_without_sync=1" \
        tests/simgpu/queued $mode && echo "3x3, exact: $mode"
done
# NCCL does not tell that a rank of the node was killed; its record does.
"$top_srcdir/tests/launch.sh" --live \
    --layout "3 OMPI_MCA_orte_enable_recovery=1 OMPI_MCA_orte_allowed_exit_without_sync=1" \
    tests/simgpu/queued killed >"$room/out" 2>&1
(($(grep -c '^rank [12] knows it' "$room/out") > 0)) || { fail "killed"; cat "$room/out"; }
# By one of the two, or by both where they see it a fifth of a second apart.
grep -q '^gradsync.*rank 0 .* is gone: its process' "$room/out" \
    || { fail "who was killed is not logged"; cat "$room/out"; }
echo "3: killed"
GS_TEST_LAUNCHER="$top_srcdir/tests/gpu/ranks %n %N" GS_TEST_DIES=0 \
    run 3 tests/simgpu/queued killed slowly && echo "3: killed slowly"
# No rank frees what kernels on the node's other GPUs still use.
for layout in 2 3 2+1; do
    run "$layout SIM_NEIGHBOURS=1 OMPI_MCA_orte_allowed_exit_without_sync=1" \
        tests/multi/abort.mt && echo "$layout: aborts beside kernels"
done
exit $((failures > 0))
