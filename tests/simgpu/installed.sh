#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# installed.sh - what the tests on simulated GPUs run is what is installed, byte for byte but for
# where it looks for libraries, and was not built to fail on purpose.

# shellcheck source=../install/lib.sh
. "$(dirname "$0")/../install/lib.sh"
[[ -z $sanitizer ]] || { echo "skip: a build with sanitizers is never installed"; exit 77; }
library=$(find "$stage" -name 'libgradsync.so.*.*.*' -exec basename {} \;)
sha256sum "$stage$libdir/$library" "$build/.libs/$library"
cmp "$stage$libdir/$library" "$build/.libs/$library" || exit 1
"$build/gs-info" | grep 'fault injection  *no'
