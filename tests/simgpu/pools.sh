#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# pools.sh - evaluators register the memory of a pool with their GPU, once for each pool, and end
# that; where it cannot be registered pools work, and the log says so.

. "$(dirname "$0")/lib.sh"

# The sum over all processes of calls of a function of CUDA.
calls_of () { # NAME
    awk -v name="$1" '$1 == name { n += $2 } END { print n + 0 }' "$room/calls"
}

run "2 SIM_COUNT=$room/calls" tests/multi/pool.mt
pinned=$(calls_of cudaHostRegister)
((pinned > 0)) || fail "no memory of a pool is registered"
[[ $(calls_of cudaHostUnregister) = "$pinned" ]] \
    || fail "registered $pinned times, ended $(calls_of cudaHostUnregister) times"
echo "2: $pinned pools are registered with a GPU"

run "2 SIM_FAULT=cudaHostRegister#1+ GS_DEBUG=info" tests/multi/pool.mt
grep -q "pool 'rows': its memory is not registered with the GPU.*cudaHostRegister" "$room/out" \
    || { fail "who has no registered memory is not told"; cat "$room/out"; }
echo "2: pools work where nothing can be registered"

# Ranks that give up while a GPU may use the memory keep it.
run "2+1 OMPI_MCA_orte_allowed_exit_without_sync=1 GLIBC_TUNABLES=glibc.malloc.tcache_count=0" \
    tests/multi/pool_late.mt && echo "2+1: a late rank"
exit $((failures > 0))
