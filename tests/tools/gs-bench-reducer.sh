#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-bench reducer on one rank: models, modes, and what is wrong with a file, by line.
. "$(dirname "$0")/lib.sh"

quick='--warmup 1 --rounds 11'
number='[0-9]+\.[0-9]+'
modes='per-tensor flat no-overlap overlap packed'

# modes_are NAME...: the lines of JSON are of these modes, in this order.
modes_are () {
    test "$(sed 's/.*"mode":"\([^"]*\)".*/\1/' "$work/out" | tr '\n' ' ')" = "$* " \
        || fail "the modes are not: $*"
}

# shellcheck disable=SC2086 # options and modes are words
run 0 ./gs-bench reducer --model mlp --json $quick
quiet err
only out "^\{\"op\":\"reducer\",\"mode\":\"[a-z-]+\",\"model\":\"mlp\",\"dtype\":\"f32\",\
\"bytes\":3158016,\"ranks\":1,\"nodes\":1,\"transport\":\"self\",\"compute_us\":0,\
\"exposed_us\":-?$number,\"time_us\":$number,\"raw_time_us\":null,\"ratio\":null\}\$"
# shellcheck disable=SC2086
modes_are $modes

# shellcheck disable=SC2086
run 0 ./gs-bench reducer --model mlp --json --compute-us 100 --mode flat,overlap --wire bf16 \
    --first-bytes 4K --bucket-bytes 1M --last-bytes 1 $quick
modes_are compute flat overlap
only out '"compute_us":100,'
awk -F'"time_us":' '$2 + 0 < 10 { wrong = 1 } END { exit wrong }' "$work/out" \
    || fail "100 us of work take nearly no time"

# The models of the installation have as many elements as they say.
# model NAME TENSORS BYTES
model () {
    # shellcheck disable=SC2086
    run 0 ./gs-bench reducer --model "$1" --mode no-overlap $quick
    says out '^gs-bench reducer: 1 rank on 1 node, transport self, 11 rounds$'
    says out "^$1: $2 tensors, $3 bytes, after 0 us of work\$"
    says out "^no-overlap +$number +$number +-\$"
}
model mlp 24 3158016
model resnet50 161 102228128
params=$top_srcdir/src/tools/bench/models/transformer.params
awk '!/^#/ && NF { size = 1; for (i = 3; i <= NF; i++) size *= $i; elements += size; tensors++ }
    END { exit !(tensors == 148 && elements == 124439808) }' "$params" \
    || fail "transformer.params has not 148 tensors of 124439808 elements"

# Files: types side by side, a scalar, comments, no newline at the end.
{
    printf '#\na f64 3 4 # twelve\n\nb f32 5\n  s\tf64\r\nh f16 7\ng bf16 1 1\nz c64 2\n'
    printf 'e f8_e4m3 3\nf f8_e5m2 2\ny c128 1'
} >"$work/mixed \"1\""
# shellcheck disable=SC2086
run 0 ./gs-bench reducer --model "$work/mixed \"1\"" --json $quick
only out '"model":"[^"]*/mixed \\"1\\"","dtype":null,"bytes":177,'
# shellcheck disable=SC2086
modes_are $modes

# refuses LINES TEXT: a file with these lines is refused with FILE and TEXT.
refuses () {
    # shellcheck disable=SC2059 # it has \n
    printf "$1" >"$work/model"
    run 1 ./gs-bench reducer --model "$work/model"
    quiet out
    only err "^gs-bench\[0/1\]: $work/model$2"
}
refuses '# x\na f32 3 4\nb float 3\n' ":3: type 'float' is not one of \
f16 bf16 f32 f64 c64 c128 f8_e4m3 f8_e5m2\$"
refuses 'a i32 3\n' ":1: type 'i32' is not one of "
refuses '\n\na\n' ":3: no type behind the name 'a'\$"
refuses 'a f32 0\n' ":1: extent '0' is not a whole number from 1\$"
refuses 'a f32 -3\n' ":1: extent '-3' is not"
refuses 'a f32 3x\n' ":1: extent '3x' is not"
refuses 'a f32 3,4\n' ":1: extent '3,4' is not"
refuses 'a f32 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n' ':1: more than 15 extents$'
refuses 'a f32 3\nb f32\na f64 3\n' ":3: the name 'a' is that of line 1 already\$"
refuses 'a f32 1000000 1000000\n' ':1: the tensor is too large: more than 1099511627776 bytes$'
refuses 'a f32 99999999999999999999\n' ':1: the tensor is too large'
refuses 'a f64 1000 100000000\nb f64 1000 100000000\n' ':2: all together more than 1099511627776 '
refuses '# nothing\n' ': there is no tensor in it$'
run 1 ./gs-bench reducer --model "$work"
says err "^gs-bench\[0/1\]: $work: Is a directory\$"
run 1 ./gs-bench reducer --model "$work/none"
says err "^gs-bench\[0/1\]: $work/none: No such file or directory\$"
run 1 ./gs-bench reducer --model resnet
says err '^gs-bench\[0/1\]: resnet: No such file.*, and no model of the installation has '

# wrong TEXT ARGUMENT...: refused with a line that begins so, and nothing on stdout.
wrong () {
    text=$1
    shift
    run 2 ./gs-bench "$@"
    says err "^gs-bench: $text"
    quiet out
}
wrong 'reducer needs --model: resnet50, transformer, mlp or a file' reducer
wrong "--mode fast: 'fast' is not one of per-tensor flat " reducer --model mlp --mode fast
wrong "--mode flat,: '' is not one of per-tensor " reducer --model mlp --mode flat,
wrong "--mode raw-flat: 'raw-flat' is not one of " reducer --model mlp --mode raw-flat
wrong '--wire f32: not f16, bf16, f8_e4m3 or f8_e5m2' reducer --model mlp --wire f32
wrong '--compute-us -1: not a whole number from 0 ' reducer --model mlp --compute-us -1
wrong '--bucket-bytes 0: not a number of bytes' reducer --model mlp --bucket-bytes 0
wrong '--rounds 3: not a whole number from 11 ' reducer --model mlp --rounds 3
wrong 'reducer takes no --dtype' reducer --model mlp --dtype f32
wrong 'allgather takes no --model' allgather --model mlp
wrong 'record takes no --warmup' record --warmup 3
wrong 'reducer is not measured with --memory shared' reducer --model mlp --memory shared
wrong '--ranks goes with --memory device' reducer --model mlp --ranks 2
finish
