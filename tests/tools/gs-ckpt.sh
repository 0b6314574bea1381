#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-ckpt lists, describes and verifies checkpoints, finds what differs, names what is damaged.
. "$(dirname "$0")/lib.sh"

golden=$top_srcdir/tests/golden/ck-000000000042.h5
mkdir "$work/files" || exit 99
one=$work/files/ck-000000000042.h5 two=$work/two.h5
cp "$golden" "$one" && cp "$golden" "$two" && chmod u+w "$one" "$two" || exit 99

run 0 ./gs-ckpt --help
says out '^Usage: gs-ckpt list '
run 0 ./gs-ckpt --version
only out '^gs-ckpt \(gradsync\) [0-9.]+$'
run 2 ./gs-ckpt
says err 'needs a command'
run 2 ./gs-ckpt --what
says err '^gs-ckpt: --what: is not an option'
run 2 ./gs-ckpt diff --tolerance x a b
says err 'x: is no tolerance'

if ./gs-info | grep -q '^  hdf5  *no'; then
    run 1 ./gs-ckpt list "$work/files"
    says err 'built without HDF5'
    exit $((failures > 0))
fi

run 2 ./gs-ckpt reverse a
says err 'reverse: is not a command'
run 2 ./gs-ckpt verify --tolerance 1 "$one"
says err 'is for diff only'
run 2 ./gs-ckpt diff "$one"
says err 'takes two FILEs'

run 0 ./gs-ckpt list "$work/files"
quiet err
says out '^ +42  20[0-9-]+T[0-9:]+Z +2 +[0-9]+  .*/ck-000000000042.h5$'
run 1 ./gs-ckpt list "$work/nowhere"
says err 'nowhere: No such file'

# Names that would command a terminal are shown.
odd=$work/$(printf 'a\033[2J')
mkdir "$odd" && cp "$one" "$odd" || exit 99
run 0 ./gs-ckpt list "$odd"
says out '/a\\x1b\[2J/ck-000000000042.h5$'
run 1 ./gs-ckpt info "$odd/nothing"
says err '/a\\x1b\[2J/nothing'

run 0 ./gs-ckpt info "$one"
quiet err
says out '^  step    42$'
says out '^  ranks   2$'
says out '^  /replicated/.*  bf16 \['
says out '^      gs_order = C$'
run 0 ./gs-ckpt verify "$one" "$two"
only out 'h5: whole, step 42$'
run 0 ./gs-ckpt diff "$one" "$two"
quiet out

# A file without an index of gradsync's own is HDF5's to look at: a crash of that is told.
cat >"$work/crash.c" <<'END'
long H5Fopen (void) { __builtin_trap (); }
END
if ${CC:-cc} -w -shared -fPIC "$work/crash.c" -o "$work/crash.so" 2>/dev/null; then
    run 1 env LD_PRELOAD="$work/crash.so" \
        ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" ./gs-ckpt info "$one"
    says err '42.h5: HDF5 crashes over what is in it'
fi

# A number of a checkpoint that is changed, where its offset is: verify finds it, diff tells it.
where=$(h5dump -p -H -d /replicated/types/f64 "$two" 2>/dev/null \
    | sed -n 's/^ *OFFSET *\([0-9]*\)$/\1/p')
if test -n "$where"; then
    printf '\001' | dd of="$two" bs=1 seek="$where" conv=notrunc 2>/dev/null
    run 1 ./gs-ckpt verify "$one" "$two"
    says out '42.h5: whole'
    says err 'two.h5: the checksum of .* is wrong'
    run 1 ./gs-ckpt diff "$one" "$two"
    only out '^/replicated/types/f64: 1 numbers differ, the first is number 0: '
    run 0 ./gs-ckpt diff --tolerance 1e-10 "$one" "$two"
    # Infinity is near to nothing.
    printf '\000\000\000\000\000\000\360\177' \
        | dd of="$two" bs=1 seek="$where" conv=notrunc 2>/dev/null
    run 1 ./gs-ckpt diff --tolerance 1e-10 "$one" "$two"
    only out '^/replicated/types/f64: 1 numbers differ, the first is number 0: .*inf'
fi
dd if="$golden" of="$two" bs=1000 count=30 2>/dev/null
run 1 ./gs-ckpt verify "$two"
says err 'two.h5: '
run 1 ./gs-ckpt diff "$one" "$two"
exit $((failures > 0))
