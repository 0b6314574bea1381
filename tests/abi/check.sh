#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check.sh [--baseline] - compares the ABI of the built library with the baseline in this folder.
#
# Removed or changed: failure. Added: failure unless doc/NEWS.md names the function. With
# --baseline (make abi-baseline) the baseline is written anew, for a change that is meant. It is
# made on x86-64 by gcc with debug information; elsewhere there is nothing to compare with.
cd "${top_srcdir:?}" || exit 99
library=${top_builddir:?}/.libs/libgradsync.so
version=$(sed -n 's/^m4_define(\[gs_version\], \[\([0-9]*\.[0-9]*\).*/\1/p' configure.ac)
baseline=tests/abi/gradsync-$version.abi

skip () {
    echo "skip: $*"
    exit 77
}

dump () {
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed \
        --suppressions tests/abi/private.abignore --out-file "$1" "$library"
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
report=$(abidiff --suppressions tests/abi/private.abignore "$baseline" "$now")
status=$?
if ((status == 0)); then
    echo "the ABI is that of $baseline"
    exit 0
fi
echo "$report"
((!(status & 3))) || exit 99
if ! abidiff --no-added-syms --suppressions tests/abi/private.abignore "$baseline" "$now" >/dev/null; then
    echo "The ABI of $version is changed. If that is meant: doc/NEWS.md, configure.ac (gs_abi)," \
        "then make abi-baseline."
    exit 1
fi
while read -r name; do
    grep -qw "$name" doc/NEWS.md && continue
    echo "$name is new and doc/NEWS.md does not name it"
    exit 1
done < <(sed -n "s/.*\[A\] .*{\(gs_[a-z_0-9]*\).*/\1/p" <<<"$report")
echo "only additions, all of them in doc/NEWS.md"
