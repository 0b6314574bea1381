#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-info --record prints flight records, newest last, and says what is damaged.
. "$(dirname "$0")/lib.sh"

# 300 operations, more than the ring holds, then the agreements of gs-bench and a destroy.
GS_RECORD_KEEP=1 run 0 ./gs-bench allgather --dtype f64 --max-bytes 8 \
    --iterations 30 --warmup 0 --rounds 11
set -- "$work"/gradsync-*.ring
test -f "$1" || { echo "no record was kept"; exit 1; }
good=$1

# numbers: the operations shown in the last run, one a line.
numbers () {
    sed -n 's/^#\([0-9]*\) .*/\1/p' "$work/out"
}

run 0 ./gs-info --record "$good"
quiet err
says out '^gradsync flight record: communicator gs-bench, rank 0 of 1, host '
says out '^#[0-9]+ +[0-9:.]+ +allgather +GS_F64 +count 1 .* GS_OK$'
tail -n 1 "$work/out" | grep -q ' destroy ' || fail "the newest operation is not last"
numbers >"$work/shown"
sort -n "$work/shown" | cmp -s - "$work/shown" || fail "the operations are not in order"
last=$(tail -n 1 "$work/shown")
test "$last" -gt 256 || fail "the ring was not filled, the test tests nothing"

# spoil FILE OFFSET BYTES: a copy of the record with printf-escaped bytes at an offset.
spoil () {
    cp "$good" "$1"
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$work/dd" || exit 99
}

# The layout of src/base/record.h: a header of 240 bytes, 256 entries of 48 bytes each for the
# operations of all ranks, as many for messages.
header=240
entry=48
size=$((header + 2 * 256 * entry))
test "$(wc -c <"$good")" -eq "$size" || { echo "the layout changed: adapt this test"; exit 1; }
slot=$(((last - 5) % 256))
at=$((header + slot * entry))

spoil "$work/number" "$at" '\377\377\377\377\377\377\377\017'
run 1 ./gs-info --record "$work/number"
says err "entry $slot \(operation #[0-9]+\) is damaged: it has a number that does not belong"
says err '1 of the last 256 operations are lost'
test "$(numbers | tail -n 1)" -eq "$last" || fail "a wild number hides the newest operation"

spoil "$work/escape" 40 '\033]0;title\007\033[2J\0' # the communicator's name
run 0 ./gs-info --record "$work/escape"
says out 'communicator \\x1b\]0;title\\x07\\x1b\[2J, rank 0'
grep -q "$(printf '\033')" "$work/out" && fail "what a file has commands the terminal"

spoil "$work/operation" $((at + 32)) '\143'
run 1 ./gs-info --record "$work/operation"
says err 'is damaged: it has an unknown operation'
numbers | grep -qx $((last - 5)) && fail "a damaged entry was printed"

spoil "$work/type" $((at + 36)) '\143'
run 1 ./gs-info --record "$work/type"
says err 'is damaged: it has an unknown type'

spoil "$work/time" $((at + 8)) '\0\0\0\0\0\0\0\200'
run 1 ./gs-info --record "$work/time"
says err 'is damaged: it has an impossible time'

spoil "$work/rank" 20 '\377\377\377\377'
run 1 ./gs-info --record "$work/rank"
says err 'damaged header: rank -1 of 1'
says out '^#[0-9]+ '

spoil "$work/version" 12 '\011'
run 1 ./gs-info --record "$work/version"
says err 'was written by another version of gradsync'
quiet out

head -c $((at + 10)) "$good" >"$work/cut"
run 1 ./gs-info --record "$work/cut"
says err "is cut off at byte $((at + 10)) of $size"

head -c 50 "$good" >"$work/stub"
run 1 ./gs-info --record "$work/stub"
says err 'is cut off within its header, at byte 50'

: >"$work/empty"
head -c "$size" /dev/zero >"$work/zeros"
head -c "$size" /dev/urandom >"$work/noise"
for file in empty zeros noise; do
    run 1 ./gs-info --record "$work/$file"
    says err "$file: is not a flight record"
done

run 1 ./gs-info --record "$work/absent" "$good"
says err 'absent: cannot be opened: '
says out ' destroy '
run 1 ./gs-info --record "$work"
says err 'cannot be read: '
finish
