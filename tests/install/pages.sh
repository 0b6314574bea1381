# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# pages.sh - runs the commands of pages of the guide and the examples in an installation; to be
# sourced.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for tool in python3 mpirun mpicc; do
    command -v $tool >/dev/null || { echo "skip: no $tool"; exit 77; }
done
[[ $fortran = yes && $mpi = yes ]] || { echo "skip: built without Fortran or MPI"; exit 77; }
"$installed/bin/gs-info" | grep -q '^  hdf5  *no' && { echo "skip: built without HDF5"; exit 77; }

# The compilers of this build under the names that pages use, with its sanitizer; and the prefix,
# as an installation that a user has made or a module has set up.
mkdir -p tools home
cc[0]=$(command -v "${cc[0]}") fc[0]=$(command -v "${fc[0]}")
printf '#!/bin/sh\nexec %s "$@"\n' "${cc[*]}" >tools/cc
printf '#!/bin/sh\nexec %s "$@"\n' "${fc[*]}" >tools/gfortran
printf '#!/bin/sh\nexec %s "$@"\n' "$(command -v mpicc) $sanitizer" >tools/mpicc
chmod +x tools/*
must cp -a "$installed" home/gradsync
export HOME=$room/home CC=cc FC=gfortran
export PATH=$room/tools:$HOME/gradsync/${bindir#"$prefix/"}:$PATH
PKG_CONFIG_PATH=$(in_copy "$HOME/gradsync" "$pkgconfigdir")
export PKG_CONFIG_PATH CMAKE_PREFIX_PATH=$HOME/gradsync
# What a machine with one core, and root, need.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
unset LD_LIBRARY_PATH LIBRARY_PATH CPATH CFLAGS FFLAGS

# page FILE FOLDER: the page's commands run in the folder, and print what it says.
page () {
    local seconds=${GS_TEST_SECONDS:-120}

    "$here/blocks" script "$1" >commands || { fail "$1"; return; }
    (cd "$2" && "$top/tests/timeout" "$seconds" bash -e "$room/commands") >output 2>&1 \
        || { fail "${1#"$top/"}: status $?: $(tail -n 30 output)"; return; }
    "$here/blocks" compare "$1" output || fail "${1#"$top/"}"
}
