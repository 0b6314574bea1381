#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# turbulence.sh - in a held-out flow a short training beats Smagorinsky and no closure, a priori
# and a posteriori. On 1 to 4 ranks, and after a restart on others, the flow has the same bits,
# and what is averaged over ranks differs by rounding. Picture and file for ParaView are whole.
. "$(dirname "$0")/lib.sh"
words=(--size 128 --steps 800)
half=ck-000000000400.h5 end=ck-000000000800.h5
tolerance=1e-10
python=${PYTHON:-/usr/bin/python3}
hdf5=yes
! "$built/gs-info" | grep -q '^  hdf5  *no' || hdf5=no

# run NAME LAYOUT [ARGUMENT]...: its results are in $room/NAME, the table in table.txt there.
run () {
    local saving=()

    [[ $hdf5 = no ]] || saving=(--checkpoint "$room/$1/saved" --every 400)
    launch "$2 GS_TEST_SECONDS=300" 15-turbulence/turbulence "${words[@]}" --out "$room/$1" \
        "${saving[@]}" "${@:3}"
    ! grep '^turbulence:' "$room/output" || fail "$1 complains"
    sed -n '/^closure /,/^$/p' "$room/output" | grep . >"$room/$1/table.txt"
    cat "$room/$1/table.txt"
}

# better COLUMN SIGN NUMBER: by so much the network is above (SIGN 1) or below (-1) all others.
better () {
    awk -v column="$1" -v sign="$2" -v least="$3" '
        { value = $(NF - 5 + column) }
        $1 == "network" { network = value; seen++ }
        $1 == "Smagorinsky" || $1 " " $2 == "no closure" {
            if (!other++ || sign * value > sign * best)
                best = value
        }
        END { exit !(seen == 1 && other == 2 && sign * (network - best) >= least) }' \
        "$room/one/table.txt" || fail "the network is not better by $3 in column $1"
}

# Two runs come to the same: bits of the flow, and all else but for rounding.
same () { # NAME NAME
    diff "$room/$1/table.txt" "$room/$2/table.txt" || fail "tables of $1 and $2 differ"
    [[ $hdf5 = yes ]] || return 0
    "$built/gs-ckpt" diff --tolerance "$tolerance" "$room/$1/saved/$end" "$room/$2/saved/$end" \
        || fail "the trainings of $1 and $2 differ by more than $tolerance"
    ! "$built/gs-ckpt" diff "$room/$1/saved/$end" "$room/$2/saved/$end" | grep '^/sharded/' \
        || fail "the flows of $1 and $2 differ"
    "$built/gs-ckpt" diff --tolerance "$tolerance" "$room/$1"/fields/*.h5 \
        "$room/$2"/fields/*.h5 || fail "held-out flows of $1 and $2 differ by over $tolerance"
}

run one 1
better 1 1 0.5     # R2 of the sub-grid force
better 3 1 0.002   # correlation with the filtered fine flow at the end
better 5 -1 0.1    # decades of the spectrum
picture=$room/one/turbulence.svg
[[ $(head -n 1 "$picture") = '<?xml'* && $(tail -n 1 "$picture") = '</svg>' ]] \
    || fail "the picture is not a whole SVG file"
! grep -niE 'nan|[^a-z]inf' "$picture" || fail "the picture has numbers that are none"
if command -v xmllint >/dev/null; then
    xmllint --noout "$picture" || fail "the picture is not well-formed XML"
fi

run two 2
same one two
run three 3
same one three
run four 2x2
same one four

# Starts with the first half of the run on 2 ranks, and does the second.
goes_on () { # NAME LAYOUT
    mkdir -p "$room/$1/saved"
    cp "$room/two/saved/$half" "$room/$1/saved"
    run "$1" "$2" --resume
    grep -q 'goes on after step 400' "$room/output" || fail "$1 did not go on"
    same one "$1"
}

if [[ $hdf5 = yes ]]; then
    goes_on on-3 3
    goes_on on-1 1
fi

# The layout of image data in VTKHDF 1.0: cells of 4 cells of the fine grid, x first.
if [[ $hdf5 = yes ]] && "$python" -c 'import h5py' 2>/dev/null; then
    "$python" - "$room/three/fields.hdf" "$room/three/saved/$end" <<'PYTHON' \
        || fail "a file is not what ParaView opens"
import sys
import h5py

def check(path, cells, spacing, names):
    with h5py.File(path, "r") as file:
        root = file["VTKHDF"]
        assert root.attrs["Type"] == b"ImageData"
        assert list(root.attrs["WholeExtent"]) == [0, cells, 0, cells, 0, 0]
        assert list(root.attrs["Spacing"])[:2] == [spacing, spacing]
        assert list(root.attrs["Origin"]) == [0, 0, 0]
        assert sorted(root["CellData"]) == sorted(names), list(root["CellData"])
        for name, link in names.items():
            field = root["CellData"][name]
            assert field.shape[:2] == (cells, cells) and field.dtype == "f8"
            assert field == file["sharded/" + link]
            assert abs(field[...]).max() > 0
        if "flow_velocity" not in names:
            return
        u, v = (root["CellData/flow_velocity"][:, :, i] for i in (0, 1))
        curl = ((v[1:-1, 2:] - v[1:-1, :-2]) - (u[2:, 1:-1] - u[:-2, 1:-1])) / 2
        assert abs(curl - root["CellData/flow_vorticity"][1:-1, 1:-1]).max() < 1e-12

kinds = "fine", "no_closure", "smagorinsky", "network"
check(sys.argv[1], 32, 4, {"vorticity_" + kind: "vorticity/" + kind for kind in kinds})
check(sys.argv[2], 128, 1, {"flow_" + name: "flow/" + name for name in ("velocity", "vorticity")})
PYTHON
else
    echo "the files for ParaView were not opened: there is no h5py"
fi

refuses () { # WORDS-IN-THE-TEXT [ARGUMENT]...
    local status

    "$here/../timeout" 60 env GS_BOOT=single "$examples/15-turbulence/turbulence" \
        --out "$room/refused" "${@:2}" >/dev/null 2>"$room/stderr"
    status=$?
    ((status == 2)) || fail "'${*:2}': exit status $status, not 2; $(cat "$room/stderr")"
    grep -qF -- "$1" "$room/stderr" || fail "'${*:2}': no '$1' in: $(cat "$room/stderr")"
}

refuses 'unknown option --sise' --sise 8
refuses "--size needs a multiple of 4, not '130'" --size 130
refuses "--steps needs a whole number from 16 to 10000000, not 'ten'" --steps ten
refuses '--every and --resume need --checkpoint FOLDER' --resume
if [[ $hdf5 = yes ]]; then
    saved=$room/one/saved
    refuses "$saved has checkpoints: go on with --resume" "${words[@]}" --checkpoint "$saved"
    refuses "$saved has a flow of another --seed" "${words[@]}" --checkpoint "$saved" --resume \
        --seed 2
    refuses "$saved has more steps than --steps" --size 128 --steps 40 --checkpoint "$saved" \
        --resume
fi
