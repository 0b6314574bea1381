#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-bench on one rank: its options, its two forms of output.
. "$(dirname "$0")/lib.sh"

quick='--iterations 2 --warmup 1 --rounds 11'
number='[0-9]+\.[0-9]+'

# shellcheck disable=SC2086 # options are words
run 0 ./gs-bench allreduce_avg --min-bytes 4 --max-bytes 1K $quick --json
quiet err
only out "^\{\"op\":\"allreduce_avg\",\"dtype\":\"f32\",\"bytes\":[0-9]+,\"ranks\":1,\"nodes\":1,\
\"transport\":\"self\",\"time_us\":$number,\"raw_time_us\":null,\"ratio\":null\}\$"
sizes=$(sed 's/.*"bytes":\([0-9]*\).*/\1/' "$work/out" | tr '\n' ' ')
test "$sizes" = "4 8 16 32 64 128 256 512 1024 " || fail "the sizes are $sizes"

# shellcheck disable=SC2086
run 0 ./gs-bench allgather --dtype c128 --min-bytes 1 --max-bytes 50 $quick --json
sizes=$(sed 's/.*"dtype":"c128","bytes":\([0-9]*\).*/\1/' "$work/out" | tr '\n' ' ')
test "$sizes" = "16 32 " || fail "the sizes are $sizes, not whole elements from 16 to 50"

for dtype in f16 bf16 f32 f64 c64 c128; do
    # shellcheck disable=SC2086
    run 0 ./gs-bench allreduce_avg --dtype $dtype --max-bytes 16 --min-bytes 16 $quick --json
    only out "\"dtype\":\"$dtype\",\"bytes\":16,"
done
for dtype in i8 i16 i32 i64 u8 u16 u32 u64; do
    run 2 ./gs-bench allreduce_avg --dtype $dtype
    says err "^gs-bench: allreduce_avg cannot be done with --dtype $dtype"
    # shellcheck disable=SC2086
    run 0 ./gs-bench allgather --dtype $dtype --max-bytes 16 --min-bytes 16 $quick
    says out "^ +16 +$dtype +2 +$number +- +-\$"
done

run 0 ./gs-bench bootstrap --rounds 11 --json
only out '^\{"op":"bootstrap","dtype":null,"bytes":[1-9][0-9]*,"ranks":1,'
only out "\"time_us\":$number,"
# shellcheck disable=SC2086
run 0 ./gs-bench copy --max-bytes 64K --min-bytes 64K --memory shared $quick --json
only out "^\{\"op\":\"copy\",\"dtype\":\"f32\",\"bytes\":65536,.*\"raw_time_us\":null,"
run 0 ./gs-bench record --rounds 11
says out '^one entry: [0-9.]+ ns$'

for op in allgatherv alltoall broadcast gather reduce reduce_scatter scatter sendrecv \
    messages halo pool; do
    # shellcheck disable=SC2086
    run 0 ./gs-bench $op --dtype i16 --max-bytes 16 --min-bytes 16 $quick --json
    only out "^\{\"op\":\"$op\",\"dtype\":\"i16\",\"bytes\":16,"
done

run 0 ./gs-bench --help
says out '^  --min-bytes N '
for op in allreduce_avg allgather allgatherv alltoall broadcast gather reduce reduce_scatter \
    scatter sendrecv messages halo pool bootstrap queue bucket copy record reducer split \
    checksum ckpt; do
    says out "^  $op "
done
run 0 ./gs-bench --version
says out '^gs-bench \(gradsync\) [0-9]'

# wrong TEXT ARGUMENT...: refused with a line that begins so, and nothing on stdout.
wrong () {
    text=$1
    shift
    run 2 ./gs-bench "$@"
    says err "^gs-bench: $text"
    says err "^Try 'gs-bench --help'"
    quiet out
}
wrong 'an operation is missing'
wrong "there is no operation 'reducing'" reducing
wrong "one operation at a time: what is 'allgather'" allreduce_avg allgather
wrong '--colour is not an option' allgather --colour
wrong '--json=yes is not an option' allgather --json=yes
wrong '--rounds needs a value' allgather --rounds
wrong '--rounds 10: not a whole number from 11 ' allgather --rounds 10
wrong '--iterations 0: not a whole number from 1 ' allgather --iterations 0
wrong '--iterations 1e3: not a whole number' allgather --iterations 1e3
wrong '--warmup -1: not a whole number from 0 ' allgather --warmup -1
wrong '--dtype float: not one of f16 ' allgather --dtype float
wrong '--min-bytes 0: not a number of bytes' allgather --min-bytes 0
wrong '--max-bytes -4: not a number of bytes' allgather --max-bytes -4
wrong '--max-bytes K: not a number of bytes' allgather --max-bytes K
wrong '--max-bytes 4KB: not a number of bytes' allgather --max-bytes 4KB
wrong '--max-bytes 1025G: not a number of bytes' allgather --max-bytes 1025G
wrong '--max-bytes 99999999999999999999: not a number' allgather --max-bytes 99999999999999999999
wrong '--max-bytes 2: less than one element of f32, 4 bytes' allgather --max-bytes 2
wrong '--min-bytes 8388608: more than --max-bytes 4194304' allgather --min-bytes 8M
wrong 'bootstrap takes no --dtype' bootstrap --dtype f32
wrong 'record takes no --max-bytes' record --max-bytes 4
wrong '--memory disk: not host, shared or device' allreduce_avg --memory disk
wrong 'allgather is not measured with --memory device' allgather --memory device
wrong 'gather is not measured with --memory device' gather --memory device
wrong 'bootstrap is not measured with --memory shared' bootstrap --memory shared
wrong '--ranks goes with --memory device' allreduce_avg --ranks 2
wrong '--ranks 0: not a whole number from 1 ' queue --ranks 0

GS_TRANSPORT=ether run 1 ./gs-bench record
says err "GS_TRANSPORT='ether' is not one of auto"
if test -w /dev/full; then
    ./gs-bench record --rounds 11 >/dev/full 2>"$work/err" && fail "a full disk went unnoticed"
    says err '^gs-bench: cannot write'
fi
finish
