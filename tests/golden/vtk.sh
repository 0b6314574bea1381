#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# vtk.sh - fields on a grid: files of 1 and of 4 ranks begin with the same bytes, hold to the
# specification of VTKHDF, by links and without copies, and are whole for gradsync, also for a
# plan that knows of no grid. With a file for each node the index does, and all that is made of
# it is what is made of one file. gs-ckpt vtk makes files of them, and of those without a grid.
# h5py looks at all of them, and so does VTK; without it the test ends as one that was skipped.
. "$(dirname "$0")/lib.sh"
python=${PYTHON:-/usr/bin/python3}

if ! "$python" -c 'import h5py' 2>/dev/null; then
    echo "skip: $python has no h5py (Debian: python3-h5py)"
    exit 77
fi

run () { # PROGRAM ARGUMENT...
    "$@" >"$room/output" 2>&1 || fail "$*: $(<"$room/output")"
}

# Looks at FILE as an image of CHECKPOINT.
check () { # CHECKPOINT FILE ORIGIN SPACING FIELD...
    "$python" "$here/vtk.py" "$@" || fail "vtk.py $*"
}

beginning () { # FILE
    head -c "$(od -An -tu8 -j "$(($(stat -c %s "$1") - 4072))" -N8 "$1")" "$1"
}

# Whether the same file is made of another CHECKPOINT.
made_alike () { # FILE CHECKPOINT
    run ./gs-ckpt vtk -o "$room/alike.${1##*.}" --force "$2"
    cmp "$1" "$room/alike.${1##*.}" || fail "gs-ckpt vtk makes another file of $2"
}

grid () { # LAYOUT ARGUMENTS...
    launch grid "$@"
}

points=(/sharded/{u,ocean/temp,half,v,flags,number})
fields=("${points[@]}" /sharded/{p,flow}:cells)
declare -A origins=([2]='0.1,-2.5,0' [3]='0.1,-2.5,30') others=([2]='7,8' [3]='7,8,9')
declare -A spacings=([2]='0.01,0.5,1' [3]='0.01,0.5,3') rest=([2]=',0' [3]='')
mkdir "$room"/{one,four,node,none}
for dims in 2 3; do
    grid 1 write "$room/one" "$dims" "$dims"
    grid 2x2 write "$room/four" "$dims" "$dims" "$room/node"
done
grid 3 read "$room/four" 3 3 "$room/node"
grid 2x2 write "$room/four" 4 3p "$room/node"
grid 2 write "$room/four" 5 2b "$room/node"
grid 1 write "$room/none" 3 0
((failures == 0)) || finish

for dims in 2 3; do
    name=ck-00000000000$dims
    node=$room/node/$name
    origin=${origins[$dims]} spacing=${spacings[$dims]} other=${others[$dims]}
    cmp <(beginning "$room/one/$name.h5") <(beginning "$room/four/$name.h5") \
        || fail "files of 1 and of 4 ranks begin otherwise"
    for ranks in one four; do
        check "$room/$ranks/$name".h5{,} "$origin" "$spacing" "${fields[@]}"
        run "$python" "$here/check.py" "$room/$ranks/$name.h5"
        run ./gs-ckpt verify "$room/$ranks/$name.h5"
    done
    check "$node/index.h5"{,} "$origin" "$spacing" "${fields[@]}"
    run "$python" "$here/check_node.py" "$node"
    run ./gs-ckpt verify "$node"
    run ./gs-ckpt diff "$room"/{one,four}/"$name.h5"
    run ./gs-ckpt diff "$room/one/$name.h5" "$node"
    run ./gs-ckpt flatten "$node" -o "$room/flat.h5" --force
    run tests/golden/state.mt compare "$room/flat.h5" "$room/four/$name.h5"
    for path in "$room/four/$name.h5" "$node"; do
        run ./gs-ckpt info "$path"
        [[ $(grep -oE '  (at points|in cells)$' "$room/output" | sort | uniq -c \
            | tr -s '\n ' ' ') = ' 6 at points 2 in cells ' ]] \
            || fail "gs-ckpt info says: $(<"$room/output")"
    done
    # All fields, on the checkpoint's grid; some of them, on another one.
    for ending in hdf vti; do
        run ./gs-ckpt vtk -o "$room/all.$ending" --force "$room/four/$name.h5"
        check "$room/four/$name.h5" "$room/all.$ending" "$origin" "$spacing" "${fields[@]}"
        made_alike "$room/all.$ending" "$node"
        run ./gs-ckpt vtk -o "$room/some.$ending" --force "$room/four/$name.h5" --field u \
            --field v --origin "$other"
        check "$room/four/$name.h5" "$room/some.$ending" "$other${rest[$dims]}" "$spacing" \
            /sharded/u /sharded/v
    done
done

check "$room/four/ck-000000000004.h5"{,} "${origins[3]}" "${spacings[3]}" "${points[@]}"

# Data of several blocks of checksums.
file=$room/four/ck-000000000005.h5
run ./gs-ckpt vtk "$file"
run ./gs-ckpt vtk "$file" -o "$room/large.vti"
for image in "${file%.h5}.hdf" "$room/large.vti"; do
    check "$file" "$image" "${origins[2]}" "${spacings[2]}" /sharded/ocean/temp /sharded/u
    made_alike "$image" "$room/node/ck-000000000005"
done

# A file for each node: by a link, and what does not become of it.
node=$room/node/ck-000000000004
ln -s "$node/index.h5" "$room/field.hdf"
check "$room/field.hdf"{,} "${origins[3]}" "${spacings[3]}" "${points[@]}"
for path in "$node"{,/,/index.h5}; do
    run ./gs-ckpt vtk "$path"
    rm "$node.hdf" || fail "no file beside $path"
done
for name in index part-0001; do
    ./gs-ckpt vtk --force -o "$node/$name.h5" "$node" \
        2>"$room/output" && fail "$name.h5 is overwritten"
    grep -q 'is the checkpoint itself' "$room/output" || fail "gs-ckpt says: $(<"$room/output")"
done
./gs-ckpt h5py "$node" >"$room/read.py" || fail "gs-ckpt h5py"
run "$python" "$room/read.py"
grep -q '^/sharded/u float64 (4, 5, 6)$' "$room/output" || fail "it prints $(<"$room/output")"
rm "$node/part-0001.h5"
"$python" "$room/read.py" 2>"$room/output" && fail "a part is missing, and it is read"
grep -q 'part-0001.h5' "$room/output" || fail "it prints $(<"$room/output")"
./gs-ckpt vtk "$node" 2>"$room/output" && fail "a part is missing"
grep -q 'part-0001.h5: open: No such file' "$room/output" || fail "it says $(<"$room/output")"
[[ ! -e $node.hdf ]] || fail "a file was made without a part"

# Without a grid: what has the usual shape; what was asked for; the same in cells.
file=$room/none/ck-000000000003.h5
"$python" -c 'import h5py, sys; sys.exit("VTKHDF" in h5py.File(sys.argv[1], "r"))' "$file" \
    || fail "a group /VTKHDF that nobody asked for"
run ./gs-ckpt vtk "$file"
check "$file" "${file%.h5}.hdf" 0,0,0 1,1,1 /sharded/{u,ocean/temp,half,flags,number}
for ending in hdf vti; do
    run ./gs-ckpt vtk "$file" --field=v --field=/sharded/half -o "$room/asked.$ending"
    check "$file" "$room/asked.$ending" 0,0,0 1,1,1 /sharded/v /sharded/half
    run ./gs-ckpt vtk "$file" --cells --field p --field flow --spacing=1,2.5,1e-3 \
        -o "$room/cells.$ending"
    check "$file" "$room/cells.$ending" 0,0,0 1,2.5,1e-3 /sharded/p:cells /sharded/flow:cells
    run ./gs-ckpt vtk "$file" --field /replicated/w -o "$room/flat.$ending"
    check "$file" "$room/flat.$ending" 0,0,0 1,1,1 /replicated/w
done
if ((failures == 0)) && ! "$python" -c 'import vtkmodules' 2>/dev/null; then
    echo "skip: h5py finds all as specified; $python has no VTK to read it (Debian: python3-vtk9)"
    exit 77
fi
finish "fields are where the grid says"
