#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hardening.sh - what configure says of hardening is true of what was built.
. "$(dirname "$0")/lib.sh"

read -ra flags < <(./gs-info | sed -n 's/^ *hardening  *//p')
((${#flags[@]})) || { echo "gs-info says nothing of hardening"; exit 1; }
if [[ ${flags[*]} = no ]]; then
    echo "skip: built with --disable-hardening, or for a compiler without"
    exit 77
fi
command -v readelf >/dev/null || { echo "skip: no readelf (Debian: binutils)"; exit 77; }

# FILE WHAT PATTERN READELF-OPTION: the file has it.
has () {
    readelf -W "$4" "$1" | grep -qE "$3" && return
    echo "$1: built with $2, but has no $3"
    failed=1
}

failed=0
for file in .libs/libgradsync*.so .libs/gradsync-*.so .libs/gs-info; do
    [[ -e $file ]] || continue
    for flag in "${flags[@]}"; do
        case $flag in
        -Wl,-z,relro) has "$file" "$flag" GNU_RELRO -l ;;
        -Wl,-z,now) has "$file" "$flag" 'BIND_NOW|FLAGS_1.*NOW' -d ;;
        esac
    done
done
for flag in "${flags[@]}"; do
    case $flag in
    -fstack*) has .libs/libgradsync.so "$flag" __stack_chk_fail --dyn-syms ;;
    -D_FORTIFY*) has .libs/libgradsync.so "$flag" '__[a-z]+_chk' --dyn-syms ;;
    esac
done
exit "$failed"
