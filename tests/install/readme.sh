#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands of README.md that build and start its examples work as they are printed, in an
# installation in the prefix that its configure line names.
. "$(dirname "$0")/lib.sh"
if [[ $pkgconfigdir != "$prefix/lib/pkgconfig" ]]; then
    echo "skip: this build's files for pkg-config go to $pkgconfigdir"
    exit 77
fi

# block TEXT: the commands of the block of README.md that has the text.
block () {
    awk -v text="$1" '/^```sh/ { inside = 1; lines = ""; next }
        /^```/ { if (inside && index (lines, text)) printf "%s", lines; inside = 0 }
        inside { lines = lines $0 "\n" }' "$top/README.md"
}

block configure >install
block pkg-config >use
export HOME=$room/home
named=$(sed -n 's/.*configure --prefix=\([^ ]*\).*/\1/p' install)
to=$(eval "echo $named")
[[ $to = "$HOME"/* ]] || fail "README's prefix is '$named'"
grep -q 'make install' install || fail "README does not install"
must mkdir -p "$HOME" tools
must cp -a "$installed" "$to"
must ln -s "$top/doc" doc

# The compilers of this build under the names that README uses, with its sanitizer.
cc[0]=$(command -v "${cc[0]}") fc[0]=$(command -v "${fc[0]}")
printf '#!/bin/sh\nexec %s "$@"\n' "${cc[*]}" >tools/cc
printf '#!/bin/sh\nexec %s "$@"\n' "${fc[*]}" >tools/gfortran
chmod +x tools/*
export PATH=$room/tools:$PATH
# What a machine with one core, and root, need.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
unset LD_LIBRARY_PATH PKG_CONFIG_PATH LIBRARY_PATH CPATH

wanted='1 ranks: 0.00 1.00 2.00'
[[ $fortran = yes ]] || sed -i '/gfortran\|average_f/d' use
if [[ $mpi = no ]] || ! command -v mpirun >/dev/null; then
    sed -i '/^mpirun/d' use
fi
while read -r _; do
    wanted+=$'\n2 ranks: 0.50 1.50 2.50'
done < <(grep '^mpirun' use)
(($(wc -l <use) >= 3)) || fail "README has no commands that use an installation: $(<use)"
timeout "${GS_TEST_SECONDS:-120}" bash -e use >output 2>&1 || fail "status $?: $(<output)"
# Launchers may have something to say, too.
printed=$(tr -s ' ' <output | sed -n 's/.*over \([12] ranks\)/\1/p')
[[ $printed = "$wanted" ]] || fail "README's commands print: $(<output)"
finish "README's commands work: $(wc -l <use)"
