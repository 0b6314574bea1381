#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-bench on several ranks measures the plain calls too, and one rank speaks for all.
. "$(dirname "$0")/lib.sh"

quick='--iterations 2 --warmup 1 --rounds 11 --json'
number='[0-9]+\.[0-9]+'

for part in pmix mpi; do
    if ./gs-info | grep -q "^  $part  *no\$"; then
        echo "skip: this build has no $part"
        exit 77
    fi
done

# run_ranks N ARGUMENT...: gs-bench on N ranks; skips the test where they cannot be launched.
run_ranks () {
    ranks=$1
    shift
    run 0 "$top_srcdir/tests/launch.sh" --live --layout "$ranks" -- ./gs-bench "$@"
    if test "$status" -eq 77; then
        cat "$work/err"
        echo "skip: no launcher for $ranks ranks"
        exit 77
    fi
}

# shellcheck disable=SC2086 # options are words
run_ranks 2 allreduce_avg --min-bytes 4 --max-bytes 64K $quick
only out "^\{\"op\":\"allreduce_avg\",\"dtype\":\"f32\",\"bytes\":[0-9]+,\"ranks\":2,\"nodes\":1,\
\"transport\":\"mpi\",\"time_us\":$number,\"raw_time_us\":$number,\"ratio\":$number\}\$"
test "$(wc -l <"$work/out")" -eq 15 || fail "there are not 15 sizes from 4 B to 64 KiB"
awk -F'[:,}]' '
    { ours = $14; raw = $16; ratio = $18 }
    ours <= 0 || raw <= 0 || (ratio - raw / ours) ^ 2 > 1e-4 { wrong = 1 }
    END { exit wrong }' "$work/out" || fail "ratio is not raw_time_us / time_us"

# shellcheck disable=SC2086
run_ranks 2x1 allgather --dtype i8 --min-bytes 1K --max-bytes 1K $quick
only out "\"op\":\"allgather\",\"dtype\":\"i8\",\"bytes\":1024,\"ranks\":2,\"nodes\":2,"
only out "\"raw_time_us\":$number,\"ratio\":$number\}\$"

for op in allgatherv alltoall broadcast gather reduce reduce_scatter scatter sendrecv \
    messages halo pool; do
    # shellcheck disable=SC2086
    run_ranks 2 $op --dtype f64 --min-bytes 1K --max-bytes 1K $quick
    only out "\"op\":\"$op\",\"dtype\":\"f64\",\"bytes\":1024,\"ranks\":2,"
    only out "\"raw_time_us\":$number,\"ratio\":$number\}\$"
done
# shellcheck disable=SC2086
run_ranks 2 reduce --dtype i32 --min-bytes 1K --max-bytes 1K $quick
only out '"dtype":"i32",.*"raw_time_us":null,"ratio":null\}$'

# MPI has no bf16.
# shellcheck disable=SC2086
run_ranks 2 allreduce_avg --dtype bf16 --max-bytes 16 --min-bytes 16 $quick
only out '"dtype":"bf16",.*"raw_time_us":null,"ratio":null\}$'

# A model: all modes, and the better plain call for each; that is for itself the measure.
# shellcheck disable=SC2086
run_ranks 2 reducer --model mlp --compute-us 100 --warmup 1 --rounds 11 --json
only out "^\{\"op\":\"reducer\",\"mode\":\"[a-z-]+\",\"model\":\"mlp\",\
\"dtype\":\"f32\",\"bytes\":3158016,\"ranks\":2,\"nodes\":1,\"transport\":\"mpi\",\
\"compute_us\":100,\"exposed_us\":-?$number,\"time_us\":$number,\"raw_time_us\":($number|null),\
\"ratio\":($number|null)\}\$"
modes=$(sed 's/.*"mode":"\([^"]*\)".*/\1/' "$work/out" | tr '\n' ' ')
test "$modes" = "compute per-tensor flat no-overlap overlap packed raw-per-tensor raw-flat " \
    || fail "the modes are $modes"
awk -F'[:,}]' '
    { time = $22; raw = $24; ratio = $26 }
    /"mode":"compute"/ { if (raw != "null" || ratio != "null") wrong = 1; next }
    time <= 0 || raw <= 0 || (ratio - raw / time) ^ 2 > 1e-4 { wrong = 1 }
    /"mode":"raw-/ && (!least || time < least) { least = time }
    { shown = raw }
    END { exit wrong || shown != least }' "$work/out" || fail "raw_time_us or ratio is not right"

# Checkpoints: both ways to write; the kept one is whole, and what is beside it is gone.
if ! ./gs-info | grep -q '^  hdf5  *no$'; then
    mkdir "$work/ck" || exit 99
    run_ranks 2 ckpt --dir "$work/ck" --bytes 1M --async --keep --warmup 1 --rounds 11 --json
    only out "^\{\"op\":\"ckpt\",\"mode\":\"(sync|async)\",\"bytes\":1048576,\"ranks\":2,\
\"nodes\":1,\"transport\":\"mpi\",\"time_us\":$number,\"blocked_us\":$number,\
\"raw_time_us\":$number,\"ratio\":$number,\"copy_us\":$number,\"copy_ratio\":$number\}\$"
    test "$(wc -l <"$work/out")" -eq 2 || fail "there are not 2 ways to write"
    test "$(ls "$work/ck")" = ck-000000000001.h5 || fail "left: $(ls "$work/ck")"
    run 0 ./gs-ckpt verify "$work/ck/ck-000000000001.h5"
fi

# One rank speaks of a file that none can read.
printf 'w f32 3\nv float 3\n' >"$work/model"
"$top_srcdir/tests/launch.sh" --live --layout 2 -- ./gs-bench reducer --model "$work/model" \
    >"$work/out" 2>"$work/err" && fail "a wrong model is taken"
said=$(cat "$work/out" "$work/err" | grep -c "$work/model:2: type 'float' is not one of ")
test "$said" -eq 1 || fail "not one line says what is wrong with a model"

run_ranks 3 split --rounds 11
says out '^gs-bench split: 3 ranks on 1 node, transport mpi, 11 rounds$'
run_ranks 3 bootstrap --rounds 11
says out '^gs-bench bootstrap: 3 ranks on 1 node, transport mpi, 11 rounds$'
says out "^ +1 +$number "
says out '^first create of the process, on rank 0: open '
test "$(wc -l <"$work/out")" -eq 4 || fail "more than one rank prints"
finish
