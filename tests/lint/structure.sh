#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# structure.sh - files of different folders do not depend on each other in a circle, by includes
# or calls, nor do more than three of one folder, but for those that are known; and no name of a
# struct or of a static function is defined in more than two files.
. "$(dirname "$0")/lint.sh"
need python3 python3

found=$(python3 tests/lint/structure --check . 2>&1) || complain src "$found"

finish "no circle of files that may not be, no name with three meanings"
