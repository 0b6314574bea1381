#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# With DESTDIR the files lie under it and none names it; make uninstall leaves nothing.
# make installcheck sees that they are the files of an installation without it.
. "$(dirname "$0")/lib.sh"

files=$(find "$stage" ! -type d)
for name in gs-info gradsync.h libgradsync.so gradsync.7 gradsync.pc; do
    grep -q "/$name\$" <<<"$files" || fail "no $name is installed"
done
# libtool's .la files and the sanitizers' debug information name the build folder.
grep -rlF "$stage" "$stage" && fail "these files name DESTDIR"
grep -rlIF --exclude='*.la' "$build" "$stage" && fail "these files name the build folder"

for name in LICENSE README.md NEWS.md; do
    [[ -s $stage$docdir/$name ]] || fail "no $name in $docdir"
done
# What the loader finds by itself needs no run path.
while read -r name; do
    paths=$(readelf -d "$name" 2>/dev/null | sed -nE 's/.*R(UN)?PATH.*\[(.*)\]/\2/p')
    [[ ! $paths =~ (^|:)(/usr)?/lib ]] || fail "$name has the run path $paths"
done < <(find "$stage" -type f \( -name '*.so*' -o -path '*/bin/*' \))
# Modules need the shared library, so configure makes no other.
for option in --disable-shared --enable-static; do
    said=$(mkdir -p "$room/refused" && cd "$room/refused" && "$top/configure" "$option" 2>&1) \
        && fail "configure takes $option"
    [[ $said = *"shared library only"*"$option"* ]] || fail "configure $option says: $said"
done

must cp -a "$stage" copy
make -C "$build" uninstall DESTDIR="$room/copy" >log 2>&1 || { cat log; fail "make uninstall"; }
find copy ! -type d | grep . && fail "these files are left by make uninstall"
find copy -name '*gradsync*' | grep . && fail "these folders are left by make uninstall"
# In a prefix of its own nothing is left at all.
must cp -a "$installed" own
make -C "$build" uninstall prefix="$room/own" >log 2>&1 || { cat log; fail "make uninstall"; }
find own -mindepth 1 | grep . && fail "these are left in a prefix of its own"
finish "make install and uninstall are complete"
