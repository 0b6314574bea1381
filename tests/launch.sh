#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# launch.sh - runs one multi-rank program in several layouts of ranks and nodes.

usage () {
    cat <<'END'
usage: launch.sh [OPTION]... PROGRAM [ARGUMENT]...

Runs PROGRAM once per layout and prints a TAP line for each.

  --layout "LAYOUT [VARIABLE=VALUE]..."  run this layout; may be repeated
  --live         one layout, output as it comes, no TAP; exits with the program's status
  --or-one-node  where nodes cannot be simulated, say so and put all ranks on one
  --help         this text

LAYOUT is RANKS (on one node), NODESxRANKS (RANKS on each of NODES simulated nodes), RANKS+RANKS
(on one node after the other, or more) or "alone" (no launcher). Without --layout the lines of
PROGRAM's .layouts file, beside its source, are taken, else 1, 4 and 2x2. Such a line begins with
"quick", what is run each time, or "all". The settings after a layout go into the environment.
These are read here as well:

  GS_TEST_SECONDS      time limit of one launch, default 60; longer where many processes run
  GS_TEST_LAYOUTS      "quick": only those lines of a .layouts file; default "all". Where nodes
                       cannot be simulated a quick line for nodes is replaced by one without
  GS_TEST_MPIRUN_ARGS  more words for mpirun
  GS_TEST_LAUNCHER     instead of mpirun, for example "srun --mpi=pmix -N %N -n %n": %n is the
                       number of ranks, %N of nodes

A program that cannot run here says so in a line with the word "skip" and exits with 77.
Exit status: 0 passed, 77 nothing could be run, 99 wrong use, else failed.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 99
# shellcheck source=tests/procs.sh
. "$here/procs.sh"

mark=GS_LAUNCH_MARK=$$-$RANDOM$RANDOM
room=''    # private folder of the running launch; TMPDIR of its ranks
records='' # where they keep flight records and shared memory: memory, if there is /dev/shm
live=no
one_node_will_do=no

die () {
    echo "launch.sh: $*" >&2
    exit 99
}

make_room () {
    local parent=${TMPDIR:-/tmp}

    room=$(mktemp -d "$parent/gs.XXXXXX") || die "cannot make a folder in $parent"
    records=$(mktemp -d /dev/shm/gs.XXXXXX 2>/dev/null) && return
    records=$room/records
    mkdir "$records"
}

clean_up () {
    end_marked "$mark"
    rm -rf ${room:+"$room"} ${records:+"$records"}
    room='' records=''
}

# Prints how nodes can be simulated here: "direct", "user" (in a user namespace) or nothing.
node_way () {
    if unshare --uts hostname gs-probe 2>/dev/null; then
        echo direct
    elif unshare -r --uts hostname gs-probe 2>/dev/null; then
        echo user
    fi
}

# Adds what Open MPI 4 and 5, whose launcher is PRRTE, have different words for: loopback only,
# and what a killed rank leaves behind lies in our own folders.
add_words_of_version () {
    if [[ $(mpirun --version 2>/dev/null) = *"(Open MPI) "[1-4].* ]]; then
        launcher+=(--oversubscribe --mca oob_tcp_if_include lo --mca orte_tmpdir_base "$room"
                   --mca plm_rsh_agent "$here/fakersh"
                   --mca btl_vader_single_copy_mechanism none
                   --mca btl_vader_backing_directory "$records")
    else
        launcher+=(--map-by ":OVERSUBSCRIBE" --prtemca prte_tmpdir_base "$room"
                   --prtemca plm_ssh_agent "$here/fakersh"
                   --mca smsc "^cma,knem,xpmem" --mca btl_sm_backing_directory "$records")
    fi
}

# Sets launcher for [total] ranks: so many on each node as the other arguments say, or without
# any on this node as it is. False, with the reason in why, when that cannot be.
build_launcher () {
    local total=$1 nodes=$(($# - 1)) spread=("${@:2}") way='' hosts='' i words more

    launcher=()
    if [[ -n ${GS_TEST_LAUNCHER-} ]]; then
        words=${GS_TEST_LAUNCHER//%n/$total}
        read -ra launcher <<<"${words//%N/$((nodes ? nodes : 1))}"
        return 0
    fi
    why="no mpirun in PATH (Debian: openmpi-bin)"
    command -v mpirun >/dev/null || return 1
    if ((nodes)); then
        why="nodes cannot be simulated: no UTS or user namespaces here"
        way=$(node_way)
        [[ -n $way ]] || return 1
        for ((i = 1; i <= nodes; i++)); do
            hosts+="${hosts:+,}n$i:${spread[i - 1]}"
        done
        launcher+=(--host "$hosts")
    fi
    why=
    launcher+=(-n "$total" --bind-to none --mca btl_tcp_if_include lo
               --mca osc_sm_backing_directory "$records")
    add_words_of_version
    ((total <= $(nproc))) || launcher+=(--mca mpi_yield_when_idle 1)
    [[ $way != user && $(id -u) != 0 ]] || launcher+=(--allow-run-as-root)
    read -ra more <<<"${GS_TEST_MPIRUN_ARGS-}"
    launcher=(mpirun "${launcher[@]}" "${more[@]}")
    # psec native: munge would see through the user namespace and refuse the ranks.
    [[ $way != user ]] || launcher=(env PMIX_MCA_psec=native unshare -r "${launcher[@]}")
}

# Sets launcher for a layout, as build_launcher does.
parse_layout () {
    local ranks=() total=0 i

    if [[ $1 = alone ]]; then
        launcher=()
        return 0
    fi
    if [[ $1 =~ ^[1-9][0-9]*$ ]]; then
        build_launcher "$1"
        return
    elif [[ $1 =~ ^([1-9][0-9]*)x([1-9][0-9]*)$ ]]; then
        for ((i = 0; i < BASH_REMATCH[1]; i++)); do
            ranks+=("${BASH_REMATCH[2]}")
        done
    elif [[ $1 =~ ^[1-9][0-9]*(\+[1-9][0-9]*)+$ ]]; then
        IFS=+ read -ra ranks <<<"$1"
    else
        die "'$1' is no layout: give RANKS, NODESxRANKS, RANKS+RANKS... or alone"
    fi
    for i in "${ranks[@]}"; do
        total=$((total + i))
    done
    build_launcher "$total" "${ranks[@]}" && return 0
    [[ $one_node_will_do = yes && -n ${why##no mpirun*} ]] || return 1
    echo "$why; all ranks are put on one node" >&2
    build_launcher "$total"
}

# Prints what the ranks did last.
show_records () {
    local file

    for file in "$records"/*.ring; do
        if [[ -e ${file%.ring}.txt ]]; then
            cat "${file%.ring}.txt"
        elif [[ -e $file && -x ./gs-info ]]; then
            ./gs-info --record "$file"
        fi
    done
}

# Runs the program under the launcher with the settings $@. Returns its status; not 0 either
# when it was stopped at the limit or left a process behind.
run_program () {
    local limit=${GS_TEST_SECONDS:-60} status pid

    # Where ranks end one by one after a failure Open MPI 5 wants it by another name; and then it
    # ends others when a connection closes, unless failures are said to be tolerated.
    [[ " $* ${!OMPI_MCA_orte_*} " != *" OMPI_MCA_orte_allowed_exit_without_sync"[=\ ]* ]] \
        || set -- PRTE_MCA_prte_allowed_exit_without_sync=1 OMPI_MCA_mpi_ft_enable=1 "$@"
    env "$@" "$mark" TMPDIR="$room" GS_RECORD_DIR="$records" \
        "$here/timeout" "$limit" "${launcher[@]}" "${program[@]}" </dev/null &
    wait $! # in the background, so that a signal is handled at once
    status=$?
    if ((status == 124 || status == 137)); then
        echo "no end after $limit seconds or more; flight records of the ranks:"
        show_records
    elif ! await_marked "$mark" 20; then
        echo "left processes behind:"
        for pid in $(marked_procs "$mark"); do
            echo "$pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        done
        ((status)) || status=1
    fi
    return "$status"
}

# Runs one line of a layouts file. 77, with the reason in why, when it cannot be run.
run_line () {
    local layout=$1 status=77 setting
    local GS_TEST_SECONDS=${GS_TEST_SECONDS-} GS_TEST_MPIRUN_ARGS=${GS_TEST_MPIRUN_ARGS-}
    shift

    for setting; do
        case $setting in
        GS_TEST_SECONDS=*) GS_TEST_SECONDS=${setting#*=} ;;
        GS_TEST_MPIRUN_ARGS=*) GS_TEST_MPIRUN_ARGS=${setting#*=} ;;
        ?*=*) ;;
        *) die "'$setting' after layout '$layout' is not VARIABLE=VALUE" ;;
        esac
    done
    make_room
    if parse_layout "$layout"; then
        if [[ $live = yes ]]; then
            run_program "$@"
            status=$?
        else
            run_program "$@" >"$room/output" 2>&1
            status=$?
            why=$(grep -im1 skip "$room/output") || why="the program gave no reason"
            sed 's/^/# /' "$room/output"
        fi
    fi
    clean_up
    return "$status"
}

# Prints the lines of a .layouts file that begin with the word WORD, without it.
lines_of () { # WORD FILE
    sed -nE "s/^$1 +//p" "$2"
}

# Sets layouts from the file beside the program's source, else to the defaults.
read_layouts () {
    local file=${program[0]%.*}.layouts which=${GS_TEST_LAYOUTS:-all}

    [[ $file = /* ]] || file=${top_srcdir:-$here/..}/${file#./}
    if [[ ! -e $file ]]; then
        layouts=(1 4 2x2)
        return
    fi
    ! grep -nvE '^((quick|all) .|#|$)' "$file" || die "$file: a line is neither 'quick' nor 'all'"
    mapfile -t layouts < <(lines_of quick "$file")
    ((${#layouts[@]})) || die "$file has no line 'quick LAYOUT'"
    case $which in
    quick)
        [[ -n ${GS_TEST_LAUNCHER-} || -n $(node_way) || ${layouts[*]%% *} != *[x+]* ]] \
            || mapfile -t layouts < <(lines_of '(quick|all)' "$file" | grep -m1 -E '^[2-9]( |$)')
        ;;
    all) mapfile -t -O ${#layouts[@]} layouts < <(lines_of all "$file") ;;
    *) die "GS_TEST_LAYOUTS is '$which', neither 'quick' nor 'all'" ;;
    esac
    ((${#layouts[@]})) || mapfile -t layouts < <(lines_of quick "$file")
}

# Runs every layout and speaks TAP: output as comments, then the result.
run_all () {
    local i line status failed=0 skipped=0

    echo "1..${#layouts[@]}"
    for i in "${!layouts[@]}"; do
        read -ra line <<<"${layouts[i]}"
        run_line "${line[@]}"
        status=$?
        case $status in
        0) echo "ok $((i + 1)) - ${layouts[i]}" ;;
        77) echo "ok $((i + 1)) - ${layouts[i]} # SKIP $why"; ((skipped++)) ;;
        *) echo "not ok $((i + 1)) - ${layouts[i]}: exit status $status"; failed=1 ;;
        esac
    done
    ((skipped < ${#layouts[@]})) || return 77
    return "$failed"
}

layouts=()
while (($#)); do
    case $1 in
    --layout) [[ $# -gt 1 ]] || die "--layout needs a value"; layouts+=("$2"); shift ;;
    --live) live=yes ;;
    --or-one-node) one_node_will_do=yes ;;
    --help) usage; exit 0 ;;
    --) shift; break ;;
    -*) die "unknown option '$1'; see launch.sh --help" ;;
    *) break ;;
    esac
    shift
done
(($#)) || die "no program given; see launch.sh --help"
program=("$@")
[[ ${program[0]} = */* ]] || program[0]=./${program[0]}
[[ -x ${program[0]} ]] || die "${program[0]} is not there or cannot be run"
((${#layouts[@]})) || read_layouts

for signal in HUP INT TERM; do
    # shellcheck disable=SC2064 # the signal's name is meant now
    trap "clean_up; trap - $signal; kill -s $signal $$" "$signal"
done

if [[ $live = no ]]; then
    run_all
else
    ((${#layouts[@]} == 1)) || die "--live takes exactly one layout"
    read -ra line <<<"${layouts[0]}"
    run_line "${line[@]}"
    status=$?
    ((status != 77)) || echo "launch.sh: ${why:-the program skipped}" >&2
    exit "$status"
fi
