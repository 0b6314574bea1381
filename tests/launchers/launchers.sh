#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by name
#
# launchers.sh - who finds whom: each row of the table in gradsync(7), with what there is of Open
# MPI, MPICH and Slurm here. What is not there is left out by name.

top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
script=$top/tests/launchers/launchers.sh
who=$build/tests/launchers/who
failures=0 rows=0

[[ -x $who ]] || { echo "$who is not there: run make check, or set top_builddir"; exit 99; }
# Inside a Slurm of our own GS_INSIDE is the room that was made outside of it.
room=${GS_INSIDE:-$(mktemp -d "${TMPDIR:-/tmp}/gs-test.XXXXXX")} && [[ -d $room ]] || exit 99
[[ -n ${GS_INSIDE-} ]] || trap 'rm -rf "$room"' EXIT
export GS_DEBUG=info GS_RECORD=memory OMPI_MCA_mpi_yield_when_idle=1
for name in "${!GS_TEST_@}" "${!SLURM_STEP@}" "${!PMI@}" SLURM_JOB_ID SLURM_NTASKS \
    OMPI_COMM_WORLD_SIZE; do
    unset "$name"
done

# ---- What there is ---------------------------------------------------------------------------

# Prints the first of the programs $2... whose --version has the text $1.
program_of () {
    local text=$1 program
    shift

    for program; do
        [[ $("$program" --version 2>&1) != *"$text"* ]] || { echo "$program"; return; }
    done 2>/dev/null
}

# Prints the kind of MPI library that the file $1 needs.
kind_of () {
    case $(ldd "$1") in
    *libmpich*) echo mpich ;;
    *libmpi.so*) echo openmpi ;;
    esac
}

# Makes $room/KIND.so, gradsync-mpi.so for this kind of MPI, where that is there.
make_module () { # KIND
    local file=$build/.libs/gradsync-mpi.so

    if [[ ! -e $file ]]; then
        return
    elif [[ $(kind_of "$file") = "$1" ]]; then
        ln -s "$file" "$room/$1.so"
    elif echo '#include <mpi.h>' | "mpicc.$1" -E - >/dev/null 2>&1; then
        "mpicc.$1" -std=gnu11 -D_GNU_SOURCE -DHAVE_CONFIG_H -O1 -fPIC -shared -I"$build" \
            -I"$top/src" "$top"/src/host/*.c "$top"/src/mpi/*.c \
            -Wl,--version-script="$top/src/mpi/module.map" -o "$room/$1.so" \
            "$build/.libs/libgradsync.so" -lm >"$room/out" 2>&1 \
            || say_row FAILED "a module for $1"
    fi
}

# ---- Rows ------------------------------------------------------------------------------------

say_row () { # OK NAME
    rows=$((rows + 1))
    echo "$1 - $2"
    [[ $1 = ok ]] || { sed 's/^/    /' "$room/out"; failures=$((failures + 1)); }
}

out_has () { # TEXT...
    local text

    for text; do
        grep -qF -- "$text" "$room/out" || { echo "not said: $text" >>"$room/out"; return 1; }
    done
}

limited () { # COMMAND... or a function of ours
    local words=(timeout -k 5 60)

    ! declare -F "$1" >/dev/null || words=()
    "${words[@]}" "$@" >"$room/out" 2>&1
}

# All RANKS find each other by WAY.
finds () { # NAME RANKS WAY COMMAND...
    local name=$1 ranks=$2 way=$3 ok='FAILED'
    shift 3

    limited "$@" && [[ $(grep -c "found $ranks\$" "$room/out") = "$ranks" ]] \
        && out_has "'world': $ranks ranks on " "boot $way (" && ok=ok
    say_row "$ok" "$name: $ranks ranks by $way"
}

# No rank finds anybody, and each says why: TEXT. N.B. Open MPI 4 may end the program itself.
fails () { # NAME TEXT COMMAND...
    local name=$1 text=$2 ok='FAILED'
    shift 2

    ! limited "$@" && ! grep -q "found [0-9]*\$" "$room/out" \
        && { out_has GS_ERR_BOOT "$text" || out_has "not built with SLURM's PMI support"; } \
        && ok=ok
    say_row "$ok" "$name: GS_ERR_BOOT"
}

left_out () { # ROWS WHY
    echo "left out, $2: $1"
}

# Open MPI's mpirun, with what version and machine need, for a LAYOUT of tests/launch.sh.
by_mpirun () { # LAYOUT [VARIABLE=VALUE]...
    "$top/tests/launch.sh" --or-one-node --layout "$*" "$who"
}

# ---- The table -------------------------------------------------------------------------------

warns_alone () {
    SLURM_JOB_ID=1 SLURM_NTASKS=8 timeout -k 5 60 "$who" \
        && out_has "alone, in a Slurm job of 8 tasks"
}

check_nothing () {
    finds "nothing" 1 single "$who"
    finds "nothing, in a Slurm job" 1 single warns_alone
    [[ ! -e $build/.libs/gradsync-mpi.so ]] \
        || fails "nothing, with PMI_SIZE=4" "4 tasks (PMI_SIZE)" env PMI_RANK=0 PMI_SIZE=4 "$who"
    finds "nothing, with PMI_SIZE=4 and GS_BOOT=single" 1 single \
        env PMI_RANK=0 PMI_SIZE=4 GS_BOOT=single "$who"
}

check_openmpi () {
    local name
    name=$(mpirun --version 2>&1 | head -n 1)

    if [[ $name != *"Open MPI"* ]]; then
        left_out "mpirun of Open MPI" "mpirun in PATH is not Open MPI's"
        return
    fi
    if [[ -e $room/openmpi.so ]]; then
        finds "$name" 4 pmix by_mpirun 4 "GS_MPI_MODULE=$room/openmpi.so"
        finds "$name, two nodes" 4 pmix by_mpirun 2x2 "GS_MPI_MODULE=$room/openmpi.so"
        finds "$name, GS_BOOT=mpi" 4 mpi by_mpirun 4 GS_BOOT=mpi "GS_MPI_MODULE=$room/openmpi.so"
        finds "$name, trapping floating-point exceptions" 2 pmix \
            by_mpirun 2 GS_TEST_TRAPS=1 "GS_MPI_MODULE=$room/openmpi.so"
    else
        left_out "$name, Open MPI" "no module for Open MPI"
    fi
    if [[ -e $room/mpich.so ]]; then
        fails "$name, MPICH" "MPICH" by_mpirun 4 "GS_MPI_MODULE=$room/mpich.so"
    else
        left_out "$name, MPICH" "no MPICH (Debian: libmpich-dev)"
    fi
}

check_mpich () {
    local mpiexec

    mpiexec=$(program_of HYDRA mpiexec.mpich mpiexec.hydra mpiexec)
    if [[ -z $mpiexec ]]; then
        left_out "mpiexec of MPICH" "it is not installed (Debian: mpich)"
        return
    fi
    [[ ! -e $room/mpich.so ]] \
        || finds "mpiexec of MPICH, MPICH" 4 mpi \
            "$mpiexec" -n 4 -env GS_MPI_MODULE "$room/mpich.so" "$who"
    [[ ! -e $room/openmpi.so ]] \
        || fails "mpiexec of MPICH, Open MPI" "announces 4 tasks (PMI_SIZE), but Open MPI" \
            "$mpiexec" -n 4 -env GS_MPI_MODULE "$room/openmpi.so" "$who"
}

# Inside a Slurm.
check_srun () {
    local name

    name=$(srun --version)
    [[ ! -e $room/openmpi.so ]] || export GS_MPI_MODULE=$room/openmpi.so
    finds "$name, --mpi=pmix, Open MPI" 4 pmix srun --mpi=pmix -N2 -n4 "$who"
    fails "$name, --mpi=none" "4 tasks (SLURM_STEP_NUM_TASKS)" srun --mpi=none -N2 -n4 "$who"
    fails "$name, --mpi=none, GS_BOOT=mpi" "4 tasks (SLURM_STEP_NUM_TASKS), but Open MPI" \
        env GS_BOOT=mpi srun --mpi=none -N2 -n4 "$who"
    fails "$name, --mpi=pmi2, Open MPI" "4 tasks" srun --mpi=pmi2 -N2 -n4 "$who"
    # shellcheck disable=SC2016 # expanded by the job
    finds "$name, no srun" 1 single salloc --quiet -N2 -n4 "$who"
    out_has "alone, in a Slurm job of 4 tasks" || say_row FAILED "$name, no srun: a warning"
}

finish () {
    ((failures == 0)) || echo "$failures of $rows rows failed"
    exit $((failures > 0))
}

if [[ -n ${GS_INSIDE-} ]]; then
    check_srun
    finish
fi
for kind in openmpi mpich; do
    make_module "$kind"
done
check_nothing
if [[ -e $room/openmpi.so || -e $room/mpich.so ]]; then
    check_openmpi
    check_mpich
    GS_INSIDE=$room top_builddir=$build "$top/tests/slurm/cluster" run --nodes 2 --gpus 0 -- \
        "$BASH" "$script" 2>"$room/cluster"
    case $? in
    0) ;;
    77) left_out "srun" "$(sed 's/^cluster: //' "$room/cluster")" ;;
    *) cat "$room/cluster"; failures=$((failures + 1)) ;;
    esac
else
    left_out "mpirun, mpiexec, srun" "this build has no gradsync-mpi.so"
fi
finish
