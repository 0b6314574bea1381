#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-bench on several ranks measures the plain calls too, and one rank speaks for all.
# shellcheck disable=SC1091,SC2154 # lib.sh sets work and status
. "${srcdir:-.}/tests/tools/lib.sh"

quick='--iterations 2 --warmup 1 --rounds 11'
number='[0-9]+\.[0-9]+'

# shellcheck disable=SC2086
run 0 "$srcdir/tests/launch.sh" 2 ./gs-bench allreduce_avg --min-bytes 4 --max-bytes 64K $quick --json
test "$status" -ne 77 || exit 77
only out "^\{\"op\":\"allreduce_avg\",\"dtype\":\"f32\",\"bytes\":[0-9]+,\"ranks\":2,\"nodes\":1,\"transport\":\"mpi\",\"time_us\":$number,\"raw_time_us\":$number,\"ratio\":$number\}\$"
test "$(wc -l <"$work/out")" -eq 15 || fail "there are not 15 sizes from 4 B to 64 KiB"
awk -F'[:,}]' '{ours = $14; raw = $16; ratio = $18
                if (!(ours > 0 && raw > 0) || (ratio - raw / ours) ^ 2 > 0.01) exit 1}' \
    "$work/out" || fail "ratio is not raw_time_us / time_us"

# shellcheck disable=SC2086
run 0 "$srcdir/tests/launch.sh" 2 ./gs-bench allgather --dtype i8 --min-bytes 1K --max-bytes 1K $quick --json
only out "\"op\":\"allgather\",\"dtype\":\"i8\",\"bytes\":1024,.*\"raw_time_us\":$number,\"ratio\":$number"

# MPI has no bf16.
# shellcheck disable=SC2086
run 0 "$srcdir/tests/launch.sh" 2 ./gs-bench allreduce_avg --dtype bf16 --max-bytes 16 --min-bytes 16 $quick --json
only out '"dtype":"bf16",.*"raw_time_us":null,"ratio":null'

run 0 "$srcdir/tests/launch.sh" 3 ./gs-bench bootstrap --rounds 11
says out '^gs-bench bootstrap: 3 ranks on 1 node, transport mpi, 11 rounds$'
says out '^first create of the process, on rank 0: open '
only out '.'
test "$(wc -l <"$work/out")" -eq 4 || fail "more than one rank prints"
finish
