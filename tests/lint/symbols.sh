#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# symbols.sh - each foreign library is called in its home only, and libgradsync needs no MPI.
. "$(dirname "$0")/lint.sh"
read -ra nm <<<"${NM:-nm}" # it may carry options
need "${nm[0]}" binutils
need readelf binutils
need_build .libs/libgradsync.so

# Names that match a pattern may be called by objects whose source starts with one of the paths.
# gs-bench measures the raw libraries beside ours.
homes=(
    '^PMIx_              src/boot/boot_pmix src/tools/bench/raw_pmix'
    '^P?MPI_|^ompi_      src/mpi/ src/tools/bench/raw_mpi'
    '^nccl               src/coll/coll_nccl src/tools/bench/raw_nccl'
    '^(__)?cuda|^cu[A-Z] cuda/ src/tools/bench/raw_nccl'
    '^H5                 src/ckpt/h5'
)

check_object () { # OBJECT UNDEFINED-NAMES
    local entry pattern paths path found
    local source=${1/.libs\//}
    source=${source%/*}/${source##*-} # libtool puts the target's name before the source's

    for entry in "${homes[@]}"; do
        read -r pattern paths <<<"$entry"
        for path in $paths; do
            [[ $source != "$path"* ]] || continue 2
        done
        found=$(grep -E "$pattern" <<<"$2" | tr '\n' ' ')
        [[ -z $found ]] || complain "$1" "calls $found; only $paths may"
    done
}

cd "$top_builddir" || exit 99
objects=0
while read -r object; do
    check_object "$object" "$("${nm[@]}" -u "$object" | awk '{ print $NF }')"
    ((objects++))
done < <(find src fortran cuda -name '*.o' 2>/dev/null)
((objects > 10)) || complain "$top_builddir" "only $objects objects were found"

needed=$(readelf -d .libs/libgradsync.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
found=$(grep -E '^lib(mpi|open-)' <<<"$needed") \
    && complain .libs/libgradsync.so "needs an MPI library: $found"

finish "$objects objects call foreign libraries in their homes only"
