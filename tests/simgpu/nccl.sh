#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# nccl.sh - the simulated NCCL keeps the rules of README.md: between processes, between simulated
# nodes with a network each, and as an older version.

: "${top_builddir:?run me by make check}"
here=$top_builddir/tests/simgpu
failures=0

fail () {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

unset "${!SIM_@}" "${!NCCL_@}" CUDA_VISIBLE_DEVICES PMIX_RANK TEST_NCCL_WRAP
export SIM_GPUS=32

# cases FOLDERS RANKS [CASE...]: runs cases with the libraries of these folders of ours.
cases () {
    local folder folders=

    for folder in $1; do
        folders=$folders$here/$folder:
    done
    LD_LIBRARY_PATH=$folders$LD_LIBRARY_PATH "$here/test_nccl" "${@:2}" >>"$room/output" 2>&1
}

# make_node NUMBER: a host with a network of its own, on the bridge; its process goes into pids.
make_node () {
    unshare --net --uts sleep 300 &
    pids[$1]=$!
    until [[ $(readlink "/proc/${pids[$1]}/ns/net") != $(readlink /proc/self/ns/net) ]]; do
        sleep 0.01
    done
    ip link add "to$1" type veth peer name net netns "${pids[$1]}" || return 77
    ip link set "to$1" master bridge up || return 77
    nsenter --target "${pids[$1]}" --net --uts sh -e <<END
hostname n$1
ip link set lo up
ip address add 10.77.0.$(($1 + 1))/24 dev net
ip link set net up
END
}

# nodes: in a network that goes with this process; even ranks on one node, odd ones on the other.
nodes () {
    trap 'kill "${pids[@]}" 2>/dev/null' EXIT
    ip link set lo up && ip link add bridge type bridge && ip link set bridge up || exit 77
    make_node 0 && make_node 1 || exit 77
    cat >"$room/enter" <<END
#!/usr/bin/env bash
pids=(${pids[*]})
exec nsenter --target "\${pids[\$1 % 2]}" --net --uts "\${@:2}"
END
    chmod +x "$room/enter"
    export TEST_NCCL_WRAP=$room/enter
    cases lib 4 reductions all-to-all split-blocking different-counts remote-error
}

if [[ ${1-} = nodes ]]; then
    room=$2
    nodes
    exit
fi
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-nccl.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT

for ranks in 1 2 3 4 8; do
    cases lib "$ranks" || fail "with $ranks ranks"
done
cases lib 32 blocking || fail "with 32 ranks"

for version in 2.18 2.22; do
    SIM_NCCL_VERSION=$version cases "nccl-$version lib" 1 versions || fail "version $version"
    SIM_NCCL_VERSION=$version.5 cases "nccl-$version lib" 2 not-blocking versions split-blocking \
        || fail "version $version.5"
done

# Instances of a GPU have its PCI id, by which NCCL tells GPUs apart.
names=$(SIM_MIG=2 LD_LIBRARY_PATH=$here/lib:$LD_LIBRARY_PATH "$here/names" | tr '\n' ' ')
cat >"$room/instance" <<END
#!/usr/bin/env bash
names=($names)
CUDA_VISIBLE_DEVICES=\${names[\$((\$1 * \$STEP))]} exec "\${@:2}"
END
chmod +x "$room/instance"
SIM_MIG=2 STEP=1 TEST_NCCL_WRAP=$room/instance cases lib 2 one-gpu-for-all \
    || fail "two instances of a GPU"
SIM_MIG=2 STEP=2 TEST_NCCL_WRAP=$room/instance cases lib 2 reductions \
    || fail "instances of two GPUs"

sent='sent 7560 bytes in collectives, 40 in send/recv, of these 0 and 0 to other hosts'
# In a ring of 4 each rank sends 3/4 twice for an allreduce, once for an allgather.
SIM_TRAFFIC=$room/traffic cases lib 4 traffic || fail "traffic"
for rank in 0 1 2 3; do
    grep -qx "rank $rank: $sent; send/recv with 2 ranks" "$room/traffic" \
        || fail "traffic of rank $rank: $(cat "$room/traffic")"
done

if [[ $(id -u) = 0 ]] && command -v ip >/dev/null && unshare --net true 2>/dev/null; then
    unshare --net "$0" nodes "$room" >"$room/network" 2>&1
    status=$?
    ((status == 0 || status == 77)) || fail "between two networks: $(cat "$room/network")"
    ((status != 77)) || echo "two networks: not tried, $(cat "$room/network")"
fi

passed=$(grep -c '^ok' "$room/output")
((passed > 200)) || fail "only $passed cases passed"
((failures == 0)) || grep -v '^ok' "$room/output"
echo "$passed cases passed"
exit $((failures != 0))
