#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# installed.sh - a C and a Fortran program are built against the installed gradsync as its manual
# says, by pkg-config alone, and average over the ranks. Run by make installcheck, which sets
# PKG_CONFIG_PATH, CC, FC, bindir and libdir.
here=$(cd "$(dirname "$0")" && pwd) || exit 99
room=$(mktemp -d "${TMPDIR:-/tmp}/gs.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
export LD_LIBRARY_PATH=${libdir:?}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

fail () {
    echo "installcheck: $*" >&2
    exit 1
}

# Runs program $1 alone and, if ranks can be launched, on two: each must print the mean of ranks.
run () {
    expect "$1" alone 0.0
    [[ ! -e $libdir/gradsync/gradsync-mpi.so ]] || ! command -v mpirun >/dev/null \
        || expect "$1" 2 0.5
}

expect () { # PROGRAM LAYOUT MEAN
    "$here/launch.sh" --live --layout "$2" "$room/$1" >"$room/out" || fail "$1 failed ($2)"
    grep -qx "mean of ranks $3" "$room/out" || fail "$1 ($2) printed: $(<"$room/out")"
    echo "installcheck: $1 works ($2)"
}

cat >"$room/prog_c.c" <<'END'
#include <gradsync.h>
#include <stdio.h>

int main (void)
{
    gs_comm_t *comm;
    double x;

    if (gs_comm_create (NULL, &comm))
        return fprintf (stderr, "%s\n", gs_last_error ()), 1;
    x = gs_comm_rank (comm);
    if (gs_allreduce_avg (comm, &x, 1, GS_F64, NULL) || gs_comm_destroy (comm))
        return fprintf (stderr, "%s\n", gs_last_error ()), 1;
    printf ("mean of ranks %.1f\n", x);
    return 0;
}
END
read -ra flags <<<"$(pkg-config --cflags --libs gradsync)"
${CC:-cc} -o "$room/prog_c" "$room/prog_c.c" "${flags[@]}" || fail "the C program does not build"
run prog_c

if pkg-config --exists gradsync-fortran; then
    cat >"$room/prog_f.f90" <<'END'
program prog_f
  use, intrinsic :: iso_fortran_env, only: real64
  use gradsync
  implicit none
  type(gs_comm) :: comm
  real(real64) :: x(1)

  call gs_comm_create(comm)
  x = gs_comm_rank(comm)
  call gs_allreduce_avg(comm, x)
  call gs_comm_destroy(comm)
  print '(a, f3.1)', 'mean of ranks ', x
end program prog_f
END
    read -ra flags <<<"$(pkg-config --cflags --libs gradsync-fortran)"
    ${FC:?} -o "$room/prog_f" "$room/prog_f.f90" "${flags[@]}" \
        || fail "the Fortran program does not build"
    run prog_f
fi

"${bindir:?}/gs-info" >"$room/out" || fail "gs-info failed"
echo "installcheck: gs-info works"
