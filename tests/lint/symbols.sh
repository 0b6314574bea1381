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
    '^(EVP|CRYPTO|RAND|OPENSSL)_|^HMAC src/boot/wire'
    '^P?MPI_|^ompi_      src/mpi/ src/tools/bench/raw_mpi'
    '^fi_                src/ofi/'
    '^nccl               src/transport/coll_nccl src/tools/bench/raw_nccl'
    '^(__)?cuda|^cu[A-Z] cuda/ src/tools/bench/raw_nccl'
    '^H5                 src/ckpt/format/h5'
)

cd "$top_builddir" || exit 99
calls=$(mktemp "${TMPDIR:-/tmp}/gs.XXXXXX") || exit 99
trap 'rm -f "$calls"' EXIT
# Lines "object name source"; libtool puts the target's name before the source's.
find src fortran cuda -name '*.o' -exec "${nm[@]}" -A -u {} + 2>/dev/null | awk '{
    object = source = $1
    sub (/:$/, "", object)
    sub (/:$/, "", source)
    sub (/\.libs\//, "", source)
    if (match (source, /[^\/]*-/))
        source = substr (source, 1, RSTART - 1) substr (source, RSTART + RLENGTH)
    print object, $NF, source }' >"$calls"
objects=$(cut -d ' ' -f 1 "$calls" | sort -u | wc -l)
((objects > 10)) || complain "$top_builddir" "only $objects objects were found"

for entry in "${homes[@]}"; do
    read -r pattern paths <<<"$entry"
    while read -r object names; do
        complain "$object" "calls $names; only $paths may"
    done < <(awk -v pattern="$pattern" -v paths="$paths" '
        $2 ~ pattern {
            n = split (paths, path, " ")
            for (i = 1; i <= n; i++)
                if (index ($3, path[i]) == 1)
                    next
            calls[$1] = calls[$1] " " $2
        }
        END { for (object in calls) print object calls[object] }' "$calls")
done

needed=$(readelf -d .libs/libgradsync.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
found=$(grep -E '^lib(mpi|open-)' <<<"$needed") \
    && complain .libs/libgradsync.so "needs an MPI library: $found"

found=$(grep -E '^libfabric' <<<"$needed") \
    && complain .libs/libgradsync.so "needs libfabric: $found"

finish "$objects objects call foreign libraries in their homes only"
