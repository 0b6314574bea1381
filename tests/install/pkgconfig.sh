#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs outside the tree build and run with what pkg-config says about a moved installation.
. "$(dirname "$0")/lib.sh"

must cp -a "$installed" "$room/moved"
lib=$(in_copy "$room/moved" "$libdir")
PKG_CONFIG_PATH=$(in_copy "$room/moved" "$pkgconfigdir")
export PKG_CONFIG_PATH

read -ra flags <<<"$(pkg-config --cflags --libs gradsync)"
must "${cc[@]}" -o average_c "$top/doc/examples/01-average/average.c" "${flags[@]}"
works ./average_c
uses ./average_c "$lib"
want "$version" pkg-config --modversion gradsync

if [[ $fortran = yes ]]; then
    read -ra flags <<<"$(pkg-config --cflags --libs gradsync-fortran)"
    must "${fc[@]}" -o average_f "$top/doc/examples/01-average/average_f.f90" "${flags[@]}"
    works ./average_f
    uses ./average_f "$lib"
    want "$version" pkg-config --modversion gradsync-fortran
    # C names are called by the program itself, so both libraries must be named.
    want ' -lgradsync' pkg-config --libs gradsync-fortran
fi

# There is no static library: --static says the same, and what it says builds.
want "$(pkg-config --libs gradsync)" pkg-config --static --libs gradsync
read -ra flags <<<"$(pkg-config --static --cflags --libs gradsync)"
must "${cc[@]}" -o static_c "$top/doc/examples/01-average/average.c" "${flags[@]}"
works ./static_c

# The programs of a moved tree find its library and data without any variable, by links too.
bin=$(in_copy "$room/moved" "$bindir")
want "gradsync $version" "$bin/gs-info"
uses "$bin/gs-info" "$lib"
profiles=$("$bin/gs-run" --profile list | wc -l)
must touch "$(in_copy "$room/moved" "$pkgdatadir")/slurm/profiles/outside.env"
mkdir links && ln -s "$bin/gs-run" links/gs-run
want outside "$bin/gs-run" --profile list
want outside links/gs-run --profile list
want '3158016 bytes' "$bin/gs-bench" reducer --model mlp --rounds 11
ln -s "$bin/gs-bench" links/gs-bench
want '3158016 bytes' links/gs-bench reducer --model mlp --rounds 11
((profiles > 0)) || fail "gs-run finds no profiles"
finish "pkg-config describes a moved installation"
