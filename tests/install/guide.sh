#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands of the guide print what it says. Each page starts in a folder that has doc/ and
# slurm/ as the sources do, with the programs of an installation in PATH.
. "$(dirname "$0")/pages.sh"

count=0
for file in "$top"/doc/guide/*.md; do
    rm -rf sources && must mkdir -p sources/doc sources/slurm
    must cp -R "$top/doc/examples" sources/doc
    must cp -R "$top/slurm/templates" sources/slurm
    chmod -R u+w sources
    page "$file" sources
    ((count++))
done
finish "$count pages of the guide show what happens"
