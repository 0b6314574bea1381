#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Each folder of doc/examples but 05-ftorch, copied out of the tree, builds with an installed
# gradsync by its Makefile and by CMake, and its README's commands print what that says.
. "$(dirname "$0")/pages.sh"

count=0
for folder in "$top"/doc/examples/*/; do
    name=$(basename "$folder")
    [[ $name != 05-ftorch ]] || continue # needs FTorch: tests/demo/ftorch.sh
    must mkdir "$name"
    must cp "$folder"* "$name" 2>/dev/null
    chmod -R u+w "$name"
    page "$folder/README.md" "$name"
    if command -v cmake >/dev/null; then
        (cd "$name" && CFLAGS=-O0 FFLAGS=-O0 cmake -B build && cmake --build build) >output 2>&1 \
            || fail "$name: CMake: $(tail -n 20 output)"
    fi
    ((count++))
done
((count > 6)) || fail "$count folders in $top/doc/examples"
finish "$count folders of examples work outside the tree"
