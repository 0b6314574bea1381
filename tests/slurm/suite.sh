#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # check_programs calls the function
#
# suite.sh [NAME]... - the programs of tests/multi and tests/fortran, as steps of a real Slurm.
#
# Each program runs as 2 x 4 and 4 x 4, with the settings of its .layouts file. NAMEs, like
# multi/average, choose some. GS_TEST_SHORT: 2 x 4 with the first settings, 4 x 4 for a few.

# shellcheck source=check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=steps.sh
. "$top/tests/slurm/steps.sh"
chosen=${GS_SUITE-$*}
few=" multi/average multi/messages multi/reducer multi/topology "
GS_SUITE=$chosen enter_cluster --nodes 4

# 2 x 4 with each of the program's settings, 4 x 4 with the first of them.
choose_layouts () { # PROGRAM
    local all name=${1#tests/}

    read_settings "$1" 2
    all=("${layouts[@]}")
    if [[ -n ${GS_TEST_SHORT-} ]]; then
        layouts=("${all[0]}")
        [[ $few = *" ${name%.*} "* ]] || return
        all=("${all[0]}")
    fi
    read_settings "$1" 4
    layouts=("${all[@]}" "${layouts[0]}")
}

# shellcheck disable=SC2086 # names are words
check_programs choose_layouts $chosen
finish
