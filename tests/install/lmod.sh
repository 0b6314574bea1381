#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# With Lmod, module load gradsync is all that a user's build and run need.
. "$(dirname "$0")/modules.sh"

check_texts
check_versions

# Another version takes the place of the one that is loaded.
loads gradsync/"$version" "$first"
loads gradsync/"$next" "$second"
module unload gradsync

check_places

# The Tcl file serves Lmod as well.
rm central/gradsync/*.lua
loads gradsync/linked "$first"
module unload gradsync
check_moved
finish "the module works with Lmod"
