#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# options.sh - the demo refuses options it does not understand and paths it cannot write, with
# status 2 and a text that names the culprit, before it works.
. "$(dirname "$0")/lib.sh"
demo=$examples/10-lorenz96/lorenz96_demo

refuses () { # WORDS-IN-THE-TEXT [ARGUMENT]...
    local status

    "$here/../timeout" 60 "$demo" "${@:2}" >"$room/stdout" 2>"$room/stderr"
    status=$?
    ((status == 2)) || fail "'${*:2}': exit status $status, not 2; $(cat "$room/stderr")"
    grep -qF -- "$1" "$room/stderr" || fail "'${*:2}': no '$1' in: $(cat "$room/stderr")"
    [[ ! -s $room/stdout ]] || fail "'${*:2}': worked on: $(cat "$room/stdout")"
}

touch "$room/file"
refuses 'unknown option --tracks' --tracks 8
refuses "unknown option 8" 8
refuses "--trajectories needs a whole number from 1 to 4096, not '0'" --trajectories 0
refuses "not 'eight'" --trajectories eight
refuses "not '8 9'" --trajectories '8 9'
refuses "not ''" --trajectories
refuses "not '-3'" --train-steps=-3
refuses "not '99999999999999999999'" --train-steps 99999999999999999999
refuses "not '1e3'" --run-time 1e3
refuses "--wire needs f64, f16 or bf16, not 'f32'" --wire f32
refuses "not ''" --wire
refuses '--out needs a path' --out ''
refuses '--weights-file needs a path' --out "$room" --weights-file
refuses '--checkpoint needs a path' --checkpoint
refuses "--every needs a whole number from 1 to 1000000, not '0'" --checkpoint "$room" --every 0
refuses '--resume takes no value' --checkpoint "$room" --resume=50
refuses '--html takes no value' --html=page
refuses '--live takes no value' --live=1
refuses '--pool takes no value' --pool=yes
refuses '--html shows how closures compare, which --run-time 0 leaves out' --html --run-time 0
refuses '--every and --resume need --checkpoint FOLDER' --resume
refuses '--every and --resume need --checkpoint FOLDER' --every 10
refuses "cannot write $room/file/loss.csv" --out "$room/file"
refuses "cannot write $room/none/w" --out "$room" --weights-file "$room/none/w"

"$here/../timeout" 60 "$demo" --help >"$room/stdout" 2>"$room/stderr" || fail "--help fails"
for option in trajectories train-steps run-time wire pool out weights-file checkpoint every \
    resume html live help; do
    grep -q -- "--$option" "$room/stdout" || fail "--help does not mention --$option"
done
[[ ! -s $room/stderr ]] || fail "--help writes to stderr: $(cat "$room/stderr")"

# A launched job that cannot write ends on all ranks, and says so once.
[[ -e $built/gradsync-mpi.la ]] || exit 0
"$here/../launch.sh" --live --layout 4 "$demo" --out "$room/file" >"$room/output" 2>&1
status=$?
((status != 77)) || exit 0
((status == 2)) || fail "4 ranks with a bad path: exit status $status; $(cat "$room/output")"
[[ $(grep -c 'cannot write' "$room/output") = 1 ]] || fail "not said once: $(cat "$room/output")"
