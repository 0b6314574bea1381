#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# node.sh - checkpoints with a file for each node: gs-ckpt lists, describes, verifies, compares
# and flattens them, and names what is damaged; any number of ranks reads them, and h5py reads
# the index.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}
ck="ck-000000000042"
timed=20 # bytes that depend on the time: itself, and three checksums of 4 bytes

# try STATUS ARGUMENT...: gs-ckpt; all that it says is in $room/said.
try () {
    local status

    ./gs-ckpt "${@:2}" >"$room/said" 2>&1
    status=$?
    ((status == $1)) || fail "exit status $status, not $1: gs-ckpt ${*:2}: $(<"$room/said")"
}

says () { # PATTERN
    grep -Eq -- "$1" "$room/said" || fail "no line like '$1' in: $(<"$room/said")"
}

quiet () {
    [[ ! -s $room/said ]] || fail "says: $(<"$room/said")"
}

# same FILE FILE: byte by byte, but for the time.
same () {
    local differ

    differ=$(cmp -l "$1" "$2" | wc -l)
    ((differ <= timed)) || fail "$1 and $2 differ in $differ bytes"
    [[ $(stat -c %s "$1") = "$(stat -c %s "$2")" ]] || fail "$1 and $2 are not of one length"
}

# A copy of the folder, to be damaged; its path is in $bad.
spoil () {
    rm -rf "$room/bad"
    cp -r "$room/node/$ck" "$room/bad"
    bad=$room/bad
}

change () { # FILE OFFSET
    local old new

    old=$(od -An -tu1 -j "$2" -N 1 "$1")
    new=$(printf '\\x%02x' $((old ^ 1)))
    printf '%b' "$new" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# refused PATTERN: verify and flatten say so of the copy, and nothing is made of it.
refused () {
    try 1 verify "$bad"
    says "$1"
    try 1 flatten -o "$room/none.h5" "$bad"
    says "$1"
    compgen -G "$room/none.h5*" >/dev/null && fail "flatten made a file of: $1"
}

mkdir "$room/one" "$room/node" "$room/flat" "$room/large"
state 2x2 write "$room/one" 42
state 2x2 write-node "$room/node" 42
((failures == 0)) || finish
one=$room/one/$ck.h5 node=$room/node/$ck
parts=("$node"/part-*.h5)
last=${parts[-1]##*/}
bytes=$(cat "$node"/* | wc -c)
((bytes < 1 << 20)) || fail "a small state takes $bytes bytes"

try 0 list "$room/node"
says "^ +42  20[0-9T:Z-]+ +4 +$bytes  .*/$ck\$"
try 0 info "$node"
says '^  layout  node$'
says "^  part    $last  $(stat -c %s "$node/$last") bytes\$"
says '^  /sharded/u  f64 \[6, 10\]$'
says '^      units = m s-1$'
try 0 info "$one"
says '^  layout  single$'
try 0 verify "$node" "$node/" "$node/index.h5"
says "$ck: whole, step 42"
try 0 diff "$one" "$node"
quiet
try 0 diff "$node/index.h5" "$one"
quiet
for layout in 1 3; do
    state "$layout" read "$room/node" 42 4
done
# HDF5 is not asked what is in them.
echo 'long H5Fopen (void) { __builtin_trap (); }' >"$room/crash.c"
if ${CC:-cc} -w -shared -fPIC "$room/crash.c" -o "$room/crash.so" 2>/dev/null; then
    for file in "$one" "$node"; do
        ASAN_OPTIONS=${ASAN_OPTIONS-}:verify_asan_link_order=0 LD_PRELOAD=$room/crash.so \
            ./gs-ckpt info "$file" >"$room/said" 2>&1 || fail "info asks HDF5: $(<"$room/said")"
    done
fi

# What an overwrite that was cut off has left.
mv "$node" "$node.old"
try 0 list "$room/node"
says "^ +42  .*/$ck\.old\$"
try 0 verify "$node.old"
says "$ck.old: whole, step 42"
state 3 read "$room/node" 42 4
mv "$node.old" "$node"

# One file of it.
try 2 flatten
try 2 verify --force "$node"
says '--force: is for flatten and vtk only'
try 1 flatten "$one"
says 'is no folder of a checkpoint'
try 1 flatten -o "$room/flat/again.h5" "$one"
says 'is one file already'
try 0 flatten -o "$room/flat/$ck.h5" "$node"
same "$room/flat/$ck.h5" "$one"
tests/golden/state.mt compare "$room/flat/$ck.h5" "$one" >"$room/output" 2>&1 \
    || fail "flatten: $(<"$room/output")"
state 2 read "$room/flat" 42 4
try 1 flatten -o "$room/flat/$ck.h5" "$node"
says 'there is such a file; --force'
echo >"$room/flat/$ck.h5"
try 0 flatten --force -o "$room/flat/$ck.h5" "$node"
try 0 verify "$room/flat/$ck.h5"
for folder in "$node" "$node/" "$node/index.h5"; do
    try 0 flatten "$folder"
    same "$node.h5" "$one"
    try 0 list "$room/node"
    [[ $(wc -l <"$room/said") = 3 ]] || fail "list: $(<"$room/said")"
    rm "$node.h5"
done

# Blocks of more than 8 MiB, whose rows alternate.
state 2x2 write-field "$room/large" 42
state 2x2 write-field-node "$room/large" 43
try 0 diff "$room/large/$ck.h5" "$room/large/ck-000000000043"
quiet
try 0 flatten "$room/large/ck-000000000043"
try 0 verify "$room/large/ck-000000000043.h5"
try 0 diff "$room/large/$ck.h5" "$room/large/ck-000000000043.h5"
quiet

# Damage.
spoil
rm "$bad/$last"
refused "$last: open: No such file"
try 1 verify "$bad"
[[ $(grep -c . "$room/said") = 1 ]] || fail "one thing is said more than once: $(<"$room/said")"
spoil
truncate -s -1 "$bad/part-0000.h5"
refused 'part-0000.h5: it has [0-9]+ bytes and should have'
spoil
change "$bad/$last" 100
refused "$last: the checksum of the [0-9]+ bytes from 0 on is wrong"
spoil
change "$bad/index.h5" 100
refused 'index.h5: the checksum of the [0-9]+ bytes from 0 on is wrong'
spoil
change "$bad/index.h5" $(($(stat -c %s "$bad/index.h5") - 4096 + 80))
refused 'index.h5: the checksum of its trailer is wrong'
for word in 5 11 15; do # where the tables of blocks and of parts, and the map, begin
    spoil
    at=$(($(stat -c %s "$bad/index.h5") - 4096 + 8 * word))
    change "$bad/index.h5" "$(od -An -tu8 -j "$at" -N 8 "$bad/index.h5" | tr -d ' ')"
    refused 'index.h5: the checksum of the [0-9]+ bytes from [1-9][0-9]* on is wrong'
done
spoil
rm "$bad/index.h5"
refused 'index.h5: open: No such file'

if command -v h5dump >/dev/null; then
    spoil
    at=$(h5dump -p -H -d /sharded/u/3 "$bad/$last" | sed -n 's/^ *OFFSET *\([0-9]*\)$/\1/p')
    change "$bad/$last" "$at"
    refused "$last: the checksum of the [0-9]+ bytes from $at on is wrong"
    try 1 diff "$one" "$bad" # the block of rank 3 begins in the middle
    says '^/sharded/u: 1 numbers differ, the first is number 35: '
    [[ $(wc -l <"$room/said") = 1 ]] || fail "diff: $(<"$room/said")"
fi
if "$python" -c 'import h5py' 2>/dev/null; then
    "$python" "$here/check_node.py" "$node" 4 || fail "check_node.py"
    "$python" "$here/check.py" "$room/flat/$ck.h5" 4 || fail "check.py"
else
    echo "$python has no h5py: the index is not read (Debian: python3-h5py)"
fi
finish "checkpoints with a file for each node are read, judged and made one"
