#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A release that was copied without its time stamps builds without Autotools.
. "$(dirname "$0")/lib.sh"

must make -C "$build" distdir distdir="$room/release" am__remove_distdir=: >log 2>&1
# As cp -r may leave it: what was made is older than what it was made from.
find release -type f -exec touch -d '2020-01-01' {} +
find release \( -name configure.ac -o -name '*.m4' -o -name Makefile.am \) ! -name aclocal.m4 \
    -exec touch -d '2020-01-02' {} +
mkdir tools built
for tool in autoconf autoheader automake aclocal; do
    printf '#!/bin/sh\necho "called: %s"\nexit 1\n' "$tool" >"tools/$tool"
    chmod +x "tools/$tool"
done
PATH=$room/tools:$PATH
options=(--disable-fortran)
for name in pmix mpi hdf5 cuda nccl check; do
    options+=("--without-$name")
done
cd built || exit 99
must ../release/configure -q AUTOCONF=autoconf AUTOHEADER=autoheader AUTOMAKE=automake \
    ACLOCAL=aclocal "${options[@]}" >../log 2>&1
make -n gs-info >../log 2>&1 || { tail -n 5 ../log; fail "make in a copy of a release"; }
grep 'called: ' ../log && fail "Autotools were called"
cd ..
finish "a copy of a release builds without Autotools"
