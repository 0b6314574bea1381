#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# packaging.sh - the recipes of doc/packaging are Python, are for this version, and give configure
# only options that it has; each variant of Spack's is one of them.
. "$(dirname "$0")/lint.sh"
need python3 python3
if [[ ! -x configure ]]; then
    echo "configure is not there: run autoreconf -fi first"
    exit 99
fi

version=$(sed -n 's/^m4_define(\[gs_version\], \[\(.*\)\])$/\1/p' configure.ac)
options=$(./configure --help | grep -oE '^ +--(with|enable)-[a-z0-9-]+' | sed 's/^ *//' | sort -u)
((${#options} > 100)) || complain configure "its help shows no options"

has_option () { # NAME
    grep -qx -- "--$1" <<<"$options"
}

# check_python TEXT FILE...: the files are Python.
check_python () {
    local output

    output=$(python3 -c '
import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)' "${@:2}" 2>&1) || complain "$1" "$output"
}

check_recipe () { # FILE
    local option version_there

    while read -r option; do
        has_option "$option" || complain "$1" "names --$option, which configure does not have"
    done < <(grep -oE -- '--(with|without|enable|disable)-[a-z0-9-]+' "$1" \
        | sed 's/^--//; s/^without-/with-/; s/^disable-/enable-/' | sort -u)
    version_there=$(grep -oE '^ *version( = |\()["'\''][^"'\'']*' "$1" | sed "s/.*[\"']//")
    [[ $version_there = "$version" ]] \
        || complain "$1" "is for version $version_there, configure.ac for $version"
    ! (echo "$1" && cat "$1") | grep -oE 'gradsync-[0-9]+\.[0-9]+\.[0-9]+' \
        | grep -v -- "-$version" || complain "$1" "names the files of another version, above"
}

recipes=(doc/packaging/spack/package.py doc/packaging/easybuild/gradsync-*.eb)
check_python "the recipes are no Python" "${recipes[@]}"
for recipe in "${recipes[@]}"; do
    check_recipe "$recipe"
done
while read -r variant; do
    has_option "with-$variant" || has_option "enable-$variant" \
        || complain "${recipes[0]}" "variant $variant is no option of configure"
done < <(sed -n 's/^    variant("\([^"]*\)".*/\1/p' "${recipes[0]}")

# The script fills in the checksum of a tarball, in both.
copy=$(mktemp -d "${TMPDIR:-/tmp}/gs.XXXXXX") || exit 99
trap 'rm -rf "$copy"' EXIT
cp -R doc/packaging "$copy" && echo tarball >"$copy/gradsync-$version.tar.xz"
(cd "$copy" && packaging/checksums "gradsync-$version.tar.xz") >"$copy/out" 2>&1 \
    || complain doc/packaging/checksums "$(<"$copy/out")"
check_python "the recipes are no Python with a checksum" "${recipes[@]/#doc/$copy}"
sum=$(sha256sum <"$copy/gradsync-$version.tar.xz" | cut -c 1-64)
for recipe in "${recipes[@]}"; do
    grep -q "$sum" "${recipe/#doc/$copy}" \
        || complain "$recipe" "doc/packaging/checksums leaves it as it is"
done

finish "${#recipes[@]} recipes fit configure"
