#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# version.sh - configure.ac, gradsync.h, gradsync.map, NEWS and the ABI baseline tell one version.
. "$(dirname "$0")/lint.sh"

version=$(sed -n 's/^m4_define(\[gs_version\], \[\(.*\)\])$/\1/p' configure.ac)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] \
    || complain configure.ac "no gs_version of the form 1.2.3, but '$version'"

header=
for part in MAJOR MINOR PATCH; do
    header+=.$(sed -n "s/^#define GS_VERSION_$part //p" src/gradsync.h)
done
[[ ${header#.} = "$version" ]] \
    || complain src/gradsync.h "GS_VERSION_* say ${header#.}, configure.ac $version"

for node in "GRADSYNC_${version%.*}" "GRADSYNC_PRIVATE_$version"; do
    grep -q "^$node {" src/gradsync.map || complain src/gradsync.map "has no node $node"
done
grep -q "^## $version" doc/NEWS.md || complain doc/NEWS.md "has no section for $version"
[[ -e tests/abi/gradsync-${version%.*}.abi ]] \
    || complain tests/abi "has no gradsync-${version%.*}.abi: run make abi-baseline"

finish "version $version everywhere"
