#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# readers.sh - checkpoints for others: h5dump opens them, h5diff finds those of 1 and of 4 ranks
# equal, and h5py reads every array, type and attribute; check.py recomputes every checksum as
# doc/checkpoint-format.md says.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}
file=ck-000000000042.h5
sets=22 # data sets in /replicated and /sharded

for tool in h5dump h5diff; do
    if ! command -v "$tool" >/dev/null; then
        echo "skip: $tool is not installed (Debian: hdf5-tools)"
        exit 77
    fi
done
if ! "$python" -c 'import h5py' 2>/dev/null; then
    echo "skip: $python has no h5py (Debian: python3-h5py)"
    exit 77
fi

# check_dump FILE PATTERN...: h5dump's header of the file has lines like these.
check_dump () {
    local pattern

    h5dump -A "$1" >"$room/dump" 2>"$room/errors" || fail "h5dump $1: $(<"$room/errors")"
    for pattern in "${@:2}"; do
        grep -Eq -- "$pattern" "$room/dump" || fail "h5dump -A $1 has no line like: $pattern"
    done
    h5dump -o "$room/data" "$1" >"$room/dump" 2>&1 || fail "h5dump cannot read the data of $1"
}

# check_diff FILE FILE: equal but for /gs, and for /rank, which has a shape of its own.
check_diff () {
    local compared

    h5diff -v --exclude-path /gs --exclude-path /rank "$1" "$2" >"$room/diff" 2>&1
    case $? in
    0) ;;
    1) fail "h5diff: $(grep -B1 -E '^[1-9][0-9]* differences' "$room/diff")" ;;
    *) fail "h5diff: $(tail -n 5 "$room/diff")" ;;
    esac
    # It passes over what it cannot compare, and over what only one of them has.
    compared=$(grep -c '^dataset: ' "$room/diff")
    ((compared == sets)) || fail "h5diff compares $compared data sets, not $sets"
    if grep '^Not comparable' "$room/diff" | grep -v '/empty> is an empty dataset'; then
        fail "h5diff does not compare what is shown above"
    fi
}

# check_superblock FILE: of version 2, as HDF5 1.8 has it, by its bytes.
check_superblock () {
    local version

    version=$(od -An -tx1 -N9 "$1" | tr -d ' ')
    [[ $version = 894844460d0a1a0a02 ]] || fail "$1 begins with $version, not superblock 2"
}

check () { # FILE [RANKS]
    "$python" "$here/check.py" "$@" || fail "check.py $*"
}

mkdir "$room/one" "$room/four"
state 1 write "$room/one" 42
state 2x2 write "$room/four" 42
state 2 write-blocks "$room/four" 43
((failures == 0)) || finish

for ranks in one four; do
    check_superblock "$room/$ranks/$file"
    check_dump "$room/$ranks/$file" 'GROUP "conv1"' 'H5T_STD_U64LE' '16-bit little-endian|F16LE' \
        'H5T_IEEE_F32LE "r";' 'H5T_IEEE_F64LE "i";' '\(0\): "\(0:9, -2:3\)"'
done
check_diff "$room/one/$file" "$room/four/$file"
check "$room/one/$file" 1
check "$room/four/$file" 4
check "$room/four/ck-000000000043.h5"
check "$here/$file" 2
finish "h5dump, h5diff and h5py read what 1, 2 and 4 ranks wrote"
