#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# resume.sh - the demo goes on from a checkpoint as if it had not stopped. 100 steps are 50 and,
# after a restart, 50: on as many ranks to the bit, on others to 1e-10; also after a SIGKILL.
# Trajectories feel neither the network nor other ranks: they are the same bits in any case.
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/procs.sh
. "$here/../procs.sh"
steps=100 tolerance=1e-10
half=ck-000000000050.h5 end=ck-000000000100.h5
export GS_DETERMINISTIC=1 GS_TEST_SECONDS=${GS_TEST_SECONDS:-300}

if "$built/gs-info" | grep -q '^  hdf5  *no'; then
    echo "skip: this build has no HDF5"
    exit 77
fi

# Sets words to the command line of a run whose results are in $room/NAME.
describe () { # NAME [OPTION]...
    words=(--train-steps "$steps" --out "$room/$1" --weights-file "$room/$1/weights"
           --checkpoint "$room/$1/ck" --run-time 0 "${@:2}")
}

trains () { # NAME LAYOUT [OPTION]...
    describe "$1" "${@:3}"
    launch "$2" 10-lorenz96/lorenz96_demo "${words[@]}"
}

says () { # TEXT
    grep -qF -- "$1" "$room/output" || fail "no '$1' in: $(cat "$room/output")"
}

# Starts NAME with the first half of another run, and does the second.
goes_on () { # NAME FROM LAYOUT [OPTION]...
    mkdir -p "$room/$1/ck"
    cp "$room/$2/ck/$half" "$room/$1/ck"
    trains "$1" "$3" --resume "${@:4}"
    says "resumed after step 50, from $room/$1/ck"
}

# The last checkpoints of two runs, and all that they have written besides.
same () { # NAME NAME
    "$built/gs-ckpt" diff "$room/$1/ck/$end" "$room/$2/ck/$end" || fail "$1 and $2 differ"
    diff -r --exclude=ck "$room/$1" "$room/$2" || fail "what $1 and $2 have written differs"
}

# The same, but for rounding in what is averaged over ranks.
close () { # NAME NAME
    "$built/gs-ckpt" diff --tolerance "$tolerance" "$room/$1/ck/$end" "$room/$2/ck/$end" \
        || fail "$1 and $2 differ by more than $tolerance"
    ! "$built/gs-ckpt" diff "$room/$1/ck/$end" "$room/$2/ck/$end" | grep '^/sharded/' \
        || fail "trajectories of $1 and $2 differ"
}

trains straight 4 --every "$steps" --run-time 1
[[ $(ls "$room/straight/ck") = "$end" ]] || fail "not one checkpoint: $(ls "$room/straight/ck")"
trains halves 4 --every 50
[[ $(ls "$room/halves/ck") = "$half"$'\n'"$end" ]] || fail "no halves: $(ls "$room/halves/ck")"
"$built/gs-ckpt" diff "$room/straight/ck/$end" "$room/halves/ck/$end" \
    || fail "a checkpoint changes the training"
"$built/gs-ckpt" diff --tolerance "$tolerance" "$room/halves/ck/$half" "$room/halves/ck/$end" \
    >"$room/moved" && fail "nothing has changed in 50 steps"
for array in replicated/{network,adam/mean,adam/square,adam/steps}/layer{1,2,3} \
    replicated/loss sharded/{x,y,quartic}; do
    grep -q "^/$array: " "$room/moved" || fail "/$array is the same after 50 steps more"
done

goes_on again halves 4 --run-time 1
same straight again # the evaluation, too
goes_on nodes halves 2x2
same halves nodes
for ranks in 1 3 10; do # with 10 ranks two have no trajectory
    goes_on "$ranks" halves "$ranks"
    close halves "$ranks"
done

# Nothing is left to do.
trains again 4 --resume --run-time 1
says "resumed after step 100"
same straight again

trains new 4 --resume
says "no checkpoint in $room/new/ck: from the beginning"
same halves new

# What cannot be meant changes nothing.
refuses () { # TEXT [OPTION]...
    local status

    cp -r "$room/halves" "$room/copy"
    describe halves "${@:2}"
    "$here/../launch.sh" --live --layout 2 "$examples/10-lorenz96/lorenz96_demo" "${words[@]}" \
        >"$room/output" 2>&1
    status=$?
    ((status == 2)) || fail "'${*:2}': exit status $status, not 2: $(cat "$room/output")"
    [[ $(grep -cF -- "$1" "$room/output") = 1 ]] || fail "no '$1', once: $(cat "$room/output")"
    diff -r "$room/copy" "$room/halves" || fail "'${*:2}' has changed something"
    rm -r "$room/copy"
}

refuses "$room/halves/ck has checkpoints: go on with --resume"
refuses "/replicated/loss is GS_F64 [100] there and GS_F64 [90]" --train-steps 90 --resume
refuses "/sharded/x is GS_F64 [8, 8] there and GS_F64 [8, 9]" --trajectories 9 --resume
refuses "folder $room/halves/loss.csv" --checkpoint "$room/halves/loss.csv"

saved () { # NAME: the names of what it has saved; what is still written has others
    find "$room/$1/ck" -name '*.h5' 2>/dev/null
}

# Starts a run and kills so many of its ranks as soon as it has saved something. False if it was
# done before that.
kills () { # RANKS
    local mark=GS_DEMO_MARK=$$-$RANDOM before pid run left=$1

    before=$(saved killed)
    describe killed --every 2 --resume
    env "$mark" "$here/../launch.sh" --live --layout 4 \
        "$examples/10-lorenz96/lorenz96_demo" "${words[@]}" >"$room/output" 2>&1 &
    run=$!
    while kill -0 "$run" 2>/dev/null && [[ $(saved killed) = "$before" ]]; do
        sleep 0.01
    done
    for pid in $(marked_procs "$mark"); do
        [[ $left -gt 0 && $(cat "/proc/$pid/comm" 2>/dev/null) = lorenz96_demo ]] || continue
        kill -s KILL "$pid" && ((left--))
    done
    ! wait "$run" && ((left < $1))
}

for ranks in 1 4; do
    for try in 1 2 3 4 5; do
        kills "$ranks" && break
        rm -r "$room/killed"
    done
    [[ ! -e $room/killed/ck/$end ]] || fail "it was done $try times before it was killed"
done
trains killed 4 --resume
says "resumed after step"
same halves killed
