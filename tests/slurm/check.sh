# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check.sh - what the tests on a private Slurm share; to be sourced.
#
#   room     an empty folder, the working directory; removed at the end
#   top      the top of the sources
#   build    the top of the build, where one stands by default
#   cluster  the program that makes a cluster
#   PATH     has gs-run, gs-env and gs-info

export OMPI_MCA_mpi_yield_when_idle=1 # ranks outnumber the CPUs
# shellcheck disable=SC2034 # for those who source this
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd) || exit 99
cluster=$top/tests/slurm/cluster
script=$top/tests/slurm/${0##*/}
failures=0

if [[ ! -x $build/tests/slurm/act ]]; then
    echo "$build/tests/slurm/act is not there: run make check, or set top_builddir"
    exit 99
fi
# Inside the cluster GS_INSIDE is the room that the script made outside of it.
room=${GS_INSIDE:-$(mktemp -d "${TMPDIR:-/tmp}/gs-test.XXXXXX")} && [[ -d $room ]] || exit 99
[[ -n ${GS_INSIDE-} ]] || trap 'rm -rf "$room"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$room" || exit 99

# gs-run as installed, but with the tools of the build.
mkdir -p prefix/bin prefix/share/gradsync && ln -sfn "$top/slurm" prefix/share/gradsync/slurm \
    && cp "$build/slurm/gs-run" "$build/slurm/gs-env" prefix/bin || exit 99
PATH=$room/prefix/bin:$build:$PATH

# await SECONDS COMMAND...: waits until the command succeeds; false when it does not in time.
await () {
    local end=$((SECONDS + $1))
    shift

    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.2
    done
}

# out has all of these texts.
says () { # TEXT...
    local text

    for text; do
        grep -qF -- "$text" out || { echo "not said: $text" >>out; return 1; }
    done
}

# Skips the script where no cluster can be had.
need_cluster () {
    "$cluster" run --nodes 1 true
    case $? in
    0) ;;
    77) exit 77 ;;
    *) exit 1 ;;
    esac
}

# Runs the script again inside a cluster made with the options $@, and ends with its status.
enter_cluster () {
    [[ -z ${GS_INSIDE-} ]] || return 0
    GS_INSIDE=$room top_builddir=$build "$cluster" run "$@" -- "$BASH" "$script"
    exit
}

all_idle () {
    [[ -z $(squeue -h) ]] && ! sinfo -h -N -p normal -o %T | grep -qvx idle
}

# Makes the nodes of the cluster free again, whatever a failed check has left there.
free_nodes () {
    [[ -n ${GS_CLUSTER-} ]] || return 0
    scancel --user=root
    await 70 all_idle && return # Slurm gives up on a step that does not end after 60 s
    scontrol update nodename=ALL state=resume
    await 10 all_idle
}

# N.B. On two cores Slurm itself loses a step now and then: a check that fails is made once more,
# on free nodes, and the log says so.
once_more () { # NAME COMMAND...
    echo "again - $1"
    [[ ! -s out ]] || sed 's/^/    /' out
    shift
    free_nodes
    cd "$room" && "$@"
}

# With GS_SLURM_CORE, of core.sh, only what is marked by core is checked.
check () { # NAME COMMAND...
    local name=$1 begin=$SECONDS
    [[ -z ${GS_SLURM_CORE-} || ${marked-} = yes ]] || return 0
    shift
    if "$@" || once_more "$name" "$@"; then
        echo "ok - $name ($((SECONDS - begin)) s)"
    else
        echo "FAILED - $name"
        failures=$((failures + 1))
        [[ ! -s out ]] || sed 's/^/    /' out
    fi
    rm -f out
}

core () { # NAME COMMAND...
    local marked=yes
    check "$@"
}

finish () {
    ((failures == 0)) || echo "$failures failed"
    exit $((failures > 0))
}
