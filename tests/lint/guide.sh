#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# guide.sh - each block of README.md, the guide and the examples is run by a test or is part of a
# file; pages that are made from the sources are what the sources make; the page on failures names
# texts that the library has; README.md has 150 lines at most; the site has all pages.
. "$(dirname "$0")/lint.sh"
need python3 python3

pages=(README.md CONTRIBUTING.md doc/guide/*.md doc/examples/*/README.md)
said=$(tests/install/blocks check "${pages[@]}") || complain blocks "$said"
cmp -s <(tests/lint/texts) doc/guide/error-texts.md \
    || complain doc/guide/error-texts.md "is behind: tests/lint/texts >doc/guide/error-texts.md"
cmp -s <(tests/lint/layers) doc/guide/layers.svg \
    || complain doc/guide/layers.svg "is behind: tests/lint/layers >doc/guide/layers.svg"
lines=$(wc -l <README.md)
((lines <= 150)) || complain README.md "$lines lines, 150 are allowed"

nav=$(<mkdocs.yml)
for page in doc/guide/*.md; do
    [[ $nav = *" ${page#doc/}"* ]] || complain "$page" "is not in mkdocs.yml"
    grep -q "  $page \\\\\?$" doc/Makefile.am || complain "$page" "is not in doc/Makefile.am"
done

# Texts in the first column of the table of failures are in the library; … is anything.
texts=$(<doc/guide/error-texts.md)
# shellcheck disable=SC2016 # the quotes are for sed
while read -r text; do
    pattern=${text//…/*}
    # shellcheck disable=SC2053 # it is a pattern
    [[ $texts = *$pattern* ]] \
        || complain doc/guide/when-it-hangs.md "the library has no text '$text'"
done < <(sed -n '/^## By error text/,/^## [^B]/s/^| \(`[^|]*`\) |.*/\1/p' \
    doc/guide/when-it-hangs.md | grep -oE '`[^`]+`' | tr -d '`')

# The oldest versions that configure and the library ask for stand in the table of versions.
while read -r name version; do
    grep -qE "^\| $name .*[^0-9.]${version//./\\.}([^0-9]|$)" doc/guide/support.md \
        || complain doc/guide/support.md "does not name $name $version"
done < <(sed -nE 's/.*\[pmix >= ([0-9.]+)\].*/PMIx \1/p
    s/.*\[libcrypto >= ([0-9.]+)\].*/OpenSSL \1/p
    s/.*gradsync needs NCCL ([0-9.]+) or later.*/NCCL \1/p' \
    config/gs_*.m4 src/transport/coll_nccl_load.c)

finish "$said"
