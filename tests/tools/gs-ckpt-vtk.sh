#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-ckpt vtk makes files for VTK and h5py prints a program that reads a checkpoint: what they
# choose, refuse, and leave behind. What is in the files is looked at by tests/golden/vtk.sh.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}

one=$work/ck-000000000042.h5
cp "$top_srcdir/tests/golden/ck-000000000042.h5" "$one" && chmod u+w "$one" || exit 99
if ./gs-info | grep -q '^  hdf5  *no'; then
    run 1 ./gs-ckpt vtk "$one"
    says err 'built without HDF5'
    finish
fi

# no_file NAME...: and nothing that was begun.
no_file () {
    for name; do
        for left in "$work/$name"*; do
            test ! -e "$left" || fail "there is a file $left"
        done
    done
}

# Words.
run 2 ./gs-ckpt vtk
says err 'vtk: takes one FILE'
run 2 ./gs-ckpt vtk "$one" "$one"
says err 'vtk: takes one FILE'
run 2 ./gs-ckpt vtk "$one" -o
says err '^gs-ckpt: -o: needs a value'
run 2 ./gs-ckpt vtk "$one" --field
says err 'needs a value'
for numbers in 1 1,2,3,4 1,x '1,,' '1,2,' nan,1 ''; do
    run 2 ./gs-ckpt vtk "$one" --origin "$numbers"
    says err 'is no origin: 2 or 3 numbers'
done
for numbers in 1,0 1,-1 1,inf 2; do
    run 2 ./gs-ckpt vtk "$one" --spacing "$numbers"
    says err 'is no spacing: 2 or 3 numbers above 0'
done
run 2 ./gs-ckpt verify "$one" --force
says err '--force: is for flatten and vtk only'
run 2 ./gs-ckpt vtk "$one" --tolerance 1
says err 'is for diff only'
no_file ck-000000000042.hdf

# What it chooses, where it writes, what it leaves alone.
run 0 ./gs-ckpt vtk "$one"
only out 'ck-000000000042.hdf: 10 x 6 points; u$'
says err 'in 2 dimensions are for ParaView 5.12'
test -s "$work/ck-000000000042.hdf" || fail "no file"
run 1 ./gs-ckpt vtk "$one"
says err '42.hdf: is there already: give --force'
run 0 ./gs-ckpt vtk --force "$one"
cp "$work/ck-000000000042.hdf" "$work/before"
run 0 ./gs-ckpt vtk -o "$work/u.vti" "$one" --field u
only out 'u.vti: 10 x 6 points; u$'
quiet err
run 0 ./gs-ckpt vtk -o "$work/types.hdf" "$one" --field /replicated/types/f32 \
    --field /replicated/types/u8
only out 'types.hdf: 5 x 3 points; types_f32, types_u8$'
run 0 ./gs-ckpt vtk -o "$work/cells.hdf" "$one" --cells --origin 1,2 --spacing=3,4
only out 'cells.hdf: 11 x 7 points; u$'

# What cannot be shown: by name, and without a file.
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field v
says err 'it has no array /sharded/v; see gs-ckpt info'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field /gs/none
says err 'it has no array /gs/none;'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field ocean/temp
says err '/sharded/ocean/temp is complex'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field flags
says err '/sharded/flags is u8 \[13\]: VTK shows 2 or 3 dimensions'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field /replicated/empty
says err '/replicated/empty is f32 \[0, 7\]: VTK shows'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field u --field /replicated/types/f64
says err '/sharded/u is f64 \[6, 10\] and /replicated/types/f64 is f64 \[3, 5\]: they are not on'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field u --field u
says err 'are both u for VTK'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field u --spacing 1,2,3
says err '/sharded/u is f64 \[6, 10\]: VTK shows'
run 1 ./gs-ckpt vtk -o "$work/no" "$one" --field u --spacing 1,2,3 --origin 1,2
says err 'the grid has 2 dimensions, as many numbers'
run 1 ./gs-ckpt vtk -o "$work/nowhere/no" "$one"
says err 'nowhere/no.*: No such file'
run 1 ./gs-ckpt vtk -o "$work/no" "$work/types.hdf"
says err 'types.hdf: '
run 1 ./gs-ckpt vtk --force -o "$one" "$one"
says err '42.h5: is the checkpoint itself'
ln "$one" "$work/link"
run 1 ./gs-ckpt vtk --force -o "$work/link" "$one"
says err 'link: is the checkpoint itself'
no_file no
run 0 ./gs-ckpt verify "$one"

# Damage among the data: no file comes of it, and what there was is left.
where=$(h5dump -p -H -d /sharded/u "$one" 2>/dev/null | sed -n 's/^ *OFFSET *\([0-9]*\)$/\1/p')
if test -n "$where"; then
    cp "$one" "$work/bad.h5"
    printf '\001' | dd of="$work/bad.h5" bs=1 seek="$where" conv=notrunc 2>/dev/null
    for ending in hdf vti; do
        run 1 ./gs-ckpt vtk -o "$work/no.$ending" "$work/bad.h5"
        says err 'bad.h5: the checksum of .* is wrong'
        quiet out
    done
    run 1 ./gs-ckpt vtk --force -o "$work/ck-000000000042.hdf" "$work/bad.h5"
    cmp -s "$work/before" "$work/ck-000000000042.hdf" || fail "a file that there was is spoilt"
    no_file no
fi
for left in "$work"/*.tmp; do
    test ! -e "$left" || fail "left behind: $left"
done

# The program that reads it.
run 2 ./gs-ckpt h5py
says err 'h5py: takes one FILE'
run 2 ./gs-ckpt h5py --field u "$one"
says err '--field: is for vtk only'
run 1 ./gs-ckpt h5py "$work/before"
says err 'before: '
# N.B. The first byte is no UTF-8, the second ends a string of Python.
odd=$work/$(printf 'a\377"b')
mkdir "$odd" && cp "$one" "$odd" || exit 99
for file in "$one" "$odd/${one##*/}"; do
    run 0 ./gs-ckpt h5py "$file"
    quiet err
    says out '^    "/sharded/u",  # f64 \[6, 10\], gs_bounds \(0:9, -2:3\), .*units m s-1$'
    cp "$work/out" "$work/read.py"
    if ! "$python" -c 'import h5py' 2>/dev/null; then
        echo "no h5py for $python: the program of gs-ckpt h5py is not run (Debian: python3-h5py)"
        continue
    fi
    (cd / && PYTHONIOENCODING=utf-8 "$python" "$work/read.py") >"$work/out" 2>"$work/err" \
        || fail "the program fails"
    quiet err
    says out '^step 42$'
    says out '^/sharded/u float64 \(6, 10\)$'
    says out '^/replicated/types/bf16 float32 \(3, 5\)$'
    test "$(grep -c '^/' "$work/out")" -eq 24 || fail "not 24 arrays"
    if "$python" -c 'import matplotlib' 2>/dev/null; then
        MPLBACKEND=Agg "$python" "$work/read.py" "$work/u.png" >"$work/out" 2>"$work/err" \
            || fail "the program makes no picture"
        test "$(od -An -c -N4 "$work/u.png" | tr -d ' ')" = '211PNG' || fail "no PNG"
        rm -f "$work/u.png"
    else
        echo "no matplotlib for $python: no picture is made (Debian: python3-matplotlib)"
    fi
done
finish
