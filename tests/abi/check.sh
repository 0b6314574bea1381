#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check.sh [--baseline] - compares the ABI of the built library with the baseline in this folder.
#
# Removed or changed: failure. Added: failure unless doc/NEWS.md names the function. With
# --baseline (make abi-baseline) the baseline is written anew, for a change that is meant. It is
# made on x86-64 by gcc with debug information; elsewhere there is nothing to compare with.
#
# Run by make in the build folder, which sets top_srcdir. That must be the path the compiler was
# given, since abidw tells public types from private ones by the name of their header.
here=$(cd "$(dirname "$0")" && pwd) || exit 99
library=.libs/libgradsync.so
top=$here/../..
version=$(sed -n 's/^m4_define(\[gs_version\], \[\([0-9]*\.[0-9]*\).*/\1/p' "$top/configure.ac")
baseline=$here/gradsync-$version.abi
news=$top/doc/NEWS.md

skip () {
    echo "skip: $*"
    exit 77
}

dump () {
    abidw --exported-interfaces-only --header-file "${top_srcdir:?}/src/gradsync.h" \
        --header-file "${top_srcdir:?}/src/gradsync_group.h" \
        --header-file "${top_srcdir:?}/src/gradsync_adjoint.h" \
        --header-file "${top_srcdir:?}/src/gradsync_ckpt.h" \
        --header-file "${top_srcdir:?}/src/gradsync_collectives.h" \
        --header-file "${top_srcdir:?}/src/gradsync_gather.h" \
        --header-file "${top_srcdir:?}/src/gradsync_p2p.h" \
        --header-file "${top_srcdir:?}/src/gradsync_pool.h" \
        --header-file "${top_srcdir:?}/src/gradsync_reducer.h" \
        --header-file "${top_srcdir:?}/src/gradsync_stats.h" \
        --drop-private-types --no-corpus-path --no-comp-dir-path --no-elf-needed \
        --suppressions "$here/private.abignore" --out-file "$1" "$library" || return
    grep -q "enumerator name='GS_ERR_STATE'" "$1" && return
    echo "abidw took $top_srcdir/src/gradsync.h for a private header"
    return 1
}

differences () { # OPTION...
    abidiff "$@" --suppressions "$here/private.abignore" "$baseline" "$now"
}

[[ -e $library ]] || { echo "$library is not there: run make first"; exit 99; }
command -v abidiff >/dev/null || skip "abidiff is not installed (Debian: abigail-tools)"
[[ $(uname -m) = x86_64 ]] || skip "the baseline is for x86-64"
readelf -S "$library" | grep -q '\.debug_info' || skip "the library has no debug information"

if [[ ${1-} = --baseline ]]; then
    dump "$baseline" && echo "$baseline written"
    exit
fi

now=$(mktemp) || exit 99
trap 'rm -f "$now"' EXIT
dump "$now" || exit 99
report=$(differences)
status=$?
if ((status == 0)); then
    echo "the ABI is that of $baseline"
    exit 0
fi
echo "$report"
((!(status & 3))) || exit 99
if ! differences --no-added-syms >/dev/null; then
    echo "The ABI of $version has changed. If that is meant, say so in doc/NEWS.md, adapt" \
        "gs_abi in configure.ac and run make abi-baseline."
    exit 1
fi
while read -r name; do
    grep -qw "$name" "$news" && continue
    echo "$name is new and doc/NEWS.md does not name it"
    exit 1
done < <(sed -n "s/.*\[A\] .*{\(gs_[a-z_0-9]*\).*/\1/p" <<<"$report")
echo "only additions, all of them in doc/NEWS.md"
