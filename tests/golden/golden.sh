#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# golden.sh - a checkpoint written once, when the format was new, is read with every value right,
# on as many ranks, fewer and more; the same state is written today with the same bytes.
#
# ck-000000000042.h5 is of `state.mt write` on 2 ranks. It is never made again: a change of the
# format gets a file of its own beside it.
. "$(dirname "$0")/lib.sh"
made_by=       # the HDF5 1.10.8 laid it out, without the index that is written today
file=ck-000000000042.h5

mkdir "$room/old" "$room/new"
cp "$here/$file" "$room/old" || fail "cannot copy $here/$file"
for layout in 2 1 3; do
    state "$layout" read "$room/old" 42 2
done
if state 2 write "$room/new" 42; then
    state 2 read "$room/new" 42 2
    tests/golden/state.mt compare "$room/old/$file" "$room/new/$file" >"$room/output" 2>&1 \
        || fail "the same state is another file"
    cat "$room/output"
    # Another HDF5 may lay out the beginning otherwise, the same one does not. The format lets
    # gradsync do so, too: if that is meant, leave made_by empty.
    if [[ $hdf5 = "$made_by" ]] && grep -q 'laid out otherwise' "$room/output"; then
        fail "HDF5 is $made_by, as of the file: it is gradsync that lays out otherwise"
    fi
    cmp -s "$here/$file" "$room/old/$file" || fail "a read has changed the file"
fi
finish "the golden file is read and written, with HDF5 $hdf5"
