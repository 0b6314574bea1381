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
# The module was linked again, to find the library from where it is; its code is the same.
for file in "$stage$libdir/gradsync/gradsync-cuda.so" "$build/.libs/gradsync-cuda.so"; do
    objcopy -O binary -j .text -j .rodata -j .nv_fatbin "$file" code || exit 1
    [[ -s code ]] || exit 1
    sha256sum <code
done | sort -u >sums
[[ $(wc -l <sums) = 1 ]] || { echo "FAILED: another gradsync-cuda.so"; exit 1; }
"$build/gs-info" | grep 'fault injection  *no'
