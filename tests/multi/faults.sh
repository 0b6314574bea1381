#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# faults.sh - fails every fault point of the library on every rank, the n-th passage for n = 1, 2,
# ... until a run passes: each time all ranks end, in time, with the statuses that are promised.
# GS_TEST_LONG: with more ranks and nodes too. GS_TEST_SHORT: the ranks take turns at passages.

launch=${top_srcdir:?run me by make check}/tests/launch.sh
program=tests/multi/faulty.mt
bound=45 # seconds for one launch
most=200 # passages of one point
parallel=3
failures=0
runs=0
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-faults.XXXXXX") || exit 99
trap 'wait; rm -rf "$room"' EXIT

# What a fault at each point gives: the status of the rank itself and of the others.
declare -A own=(
    [comm.memory]=GS_ERR_NOMEM [coll_host.memory]=GS_ERR_NOMEM [pmix.fence]=GS_ERR_NOMEM
    [record.map]=GS_OK [node.memory]=GS_OK [node.read]=GS_OK [share.memory]=GS_OK
    [nccl.join]=GS_OK [p2p.send]=GS_ERR_TRANSPORT
    [split.memory]=GS_ERR_NOMEM [stats.memory]=GS_ERR_NOMEM [compare.memory]=GS_ERR_NOMEM
    [p2p.memory]=GS_ERR_NOMEM [messages.memory]=GS_ERR_NOMEM [messages.post]=GS_ERR_TRANSPORT
    [halo.memory]=GS_ERR_NOMEM [ckpt.memory]=GS_ERR_NOMEM [file.write]=GS_ERR_IO
    [file.read]=GS_ERR_IO [scratch.memory]=GS_OK [lock.link]=GS_OK
    [pool.memory]=GS_ERR_UNSUPPORTED)
declare -A others=(
    [comm.memory]=GS_ERR_NOMEM [coll_host.memory]=GS_ERR_NOMEM [pmix.fence]=GS_ERR_NOMEM
    [record.map]=GS_OK [node.memory]=GS_OK [node.read]=GS_OK [share.memory]=GS_OK
    [nccl.join]=GS_OK [p2p.send]=GS_ERR_STATE
    [split.memory]=GS_ERR_NOMEM [stats.memory]=GS_ERR_NOMEM [compare.memory]=GS_ERR_NOMEM
    [p2p.memory]=GS_ERR_STATE [messages.memory]=GS_ERR_STATE [messages.post]=GS_ERR_STATE
    [halo.memory]=GS_ERR_NOMEM [ckpt.memory]=GS_ERR_STATE [file.write]=GS_ERR_IO
    [file.read]=GS_ERR_IO [scratch.memory]=GS_OK [lock.link]=GS_OK
    [pool.memory]=GS_ERR_UNSUPPORTED)

fail () {
    echo "FAIL: $*"
    sed 's/^/    /' "$room/output"
    failures=$((failures + 1))
}

# Launches with a fault; sets ends to the status of each rank, in rank order.
run () {
    local layout=$1 begin=$SECONDS algorithm=auto status

    runs=$((runs + 1))
    [[ $2 != p2p.send:* ]] || algorithm=flat # on one node memory is shared
    # The ranks may leave without MPI_Finalize, which would wait for what never comes.
    OMPI_MCA_orte_allowed_exit_without_sync=1 GS_FAULT=$2 GS_TIMEOUT_MS=60000 \
        GS_HOST_ALGO=$algorithm GS_BOOT_TIMEOUT_MS=60000 GS_TEST_SECONDS=60 \
        "$launch" --live --layout "$layout" "$program" >"$room/output" 2>&1
    status=$?
    ((status == 0)) || fail "GS_FAULT=$2 on $layout: exit status $status"
    ((SECONDS - begin < bound)) || fail "GS_FAULT=$2 on $layout took $((SECONDS - begin)) s"
    mapfile -t ends < <(grep '^rank [0-9]* ended in step' "$room/output" | sort -n -k 2 \
        | sed 's/.* with \(GS_[A-Z_]*\):.*/\1/')
}

# Checks [ends] of [ranks] ranks after a fault of [point] on rank [guilty]; false if none failed.
judge () {
    local point=$1 guilty=$2 ranks=$3 what=$4 rank wanted

    if ((${#ends[@]} != ranks)); then
        fail "$what: ${#ends[@]} of $ranks ranks say how they ended"
        return 0
    fi
    [[ " ${ends[*]} " == *GS_ERR_* ]] || return 1
    for ((rank = 0; rank < ranks; rank++)); do
        wanted=${others[$point]}
        ((rank != guilty)) || wanted=${own[$point]}
        # The ranks agree on how a split ends: then all have what the rank itself has.
        [[ ${ends[rank]} = "$wanted" || ${ends[rank]} = "${own[$point]}" ]] \
            || fail "$what: rank $rank ends with ${ends[rank]}, not $wanted"
    done
}

# made_up_for POINT: there was a fault, but another way did, as for a layout that goes elsewhere.
made_up_for () {
    [[ ${own[$1]} != GS_OK ]] && grep -q "GS_FAULT fails $1 here" "$room/output"
}

# All ranks and passages of one point; leaves what it found in sum.
check_point () { # LAYOUT RANKS POINT
    local layout=$1 ranks=$2 point=$3 guilty n fault step=1
    local room=$room/$3 failures=0 runs=0

    rm -rf "$room"
    mkdir "$room"
    [[ -z ${GS_TEST_SHORT-} ]] || step=$ranks
    for ((guilty = 0; guilty < ranks; guilty++)); do
        for ((n = step > 1 ? guilty + 1 : 1; n <= most; n += step)); do
            fault=$point:$n@$guilty
            run "$layout" "$fault"
            judge "$point" "$guilty" "$ranks" "GS_FAULT=$fault on $layout" \
                || made_up_for "$point" || break
        done
        ((n > 1)) || [[ ${own[$point]} = GS_OK ]] || fail "$point on rank $guilty never fails"
        ((n <= most)) || fail "$point on rank $guilty does not come to an end"
    done
    echo "$failures $runs" >"$room/sum"
}

# All points in one layout, some side by side.
check_layout () { # LAYOUT RANKS
    local point bad number

    "$launch" --live --layout "$1" "$program" >"$room/output" 2>&1
    (($? != 77)) || { echo "skip: $(tail -n 1 "$room/output")"; exit 77; }
    for point in "${!own[@]}"; do
        (($(jobs -rp | wc -l) < parallel)) || wait -n
        check_point "$@" "$point" >"$room/$point.said" 2>&1 &
    done
    wait
    for point in "${!own[@]}"; do
        cat "$room/$point.said"
        read -r bad number <"$room/$point/sum" || bad=1 number=0
        failures=$((failures + bad)) runs=$((runs + number))
    done
}

if ! ./gs-info | grep -q 'fault injection.*yes'; then
    echo "skip: not configured with --enable-fault-injection"
    exit 77
fi

: >"$room/output"
while read -r point; do
    [[ -n ${own[$point]-} ]] || fail "fault point $point of src/ is not tested here"
done < <(grep -rhoE 'gsi_fault \("[^"]*"\)' "$top_srcdir/src" --include='*.c' \
    | cut -d '"' -f 2 | sort -u)

if ./gs-info | grep -qE '^  hdf5 +no'; then # no checkpoints
    unset 'own[ckpt.memory]' 'own[file.write]' 'own[file.read]' 'own[scratch.memory]' \
        'own[lock.link]'
fi

check_layout 2 2
if [[ -n ${GS_TEST_LONG-} ]]; then
    check_layout 4 4
    check_layout 2x2 4
fi
((failures)) || echo "$runs launches with a fault"
exit $((failures > 0))
