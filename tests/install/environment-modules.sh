#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# With Environment Modules, module load gradsync is all that a user's build and run need.
. "$(dirname "$0")/modules.sh"

check_texts
check_versions

# One version excludes another, and what is loaded stays.
loads gradsync/"$version" "$first"
module load gradsync/"$next" && fail "two versions are loaded together"
says 'conflict'
in_use "$first"
module unload gradsync

check_places
module --no-auto load gradsync/needy && fail "a module is loaded without what it requires"
says gs-compiler
check_moved
finish "the module works with Environment Modules"
