#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# modules.sh - the library and the tools start where there is no MPI, no CUDA and no NCCL: they do
# not need them, and say what was missing when GPUs are asked for.
. "$(dirname "$0")/lib.sh"

command -v readelf >"$work/out" || { echo "skip: no readelf"; exit 77; }
tools='gs-info gs-bench gs-ckpt .libs/gs-info .libs/gs-bench .libs/gs-ckpt'
for file in .libs/libgradsync.so $tools; do
    test ! -e "$file" || readelf -d "$file" >>"$work/needed" 2>/dev/null
done
cp "$work/needed" "$work/out" || exit 99
says out 'NEEDED.*\[libgradsync\.so'
grep -E 'NEEDED.*\[lib(mpi|cudart|cuda|nccl|stdc\+\+)' "$work/needed" >"$work/out"
quiet out

# A module whose CUDA runtime this host does not have.
mkdir "$work/gone" || exit 99
echo 'int gone (void) { return 1; }' >"$work/gone.c"
echo 'int gone (void); int user (void) { return gone (); }' >"$work/user.c"
${CC:-cc} -shared -fPIC -o "$work/gone/libcudart_gone.so" "$work/gone.c" \
    && ${CC:-cc} -shared -fPIC -o "$work/user.so" "$work/user.c" -L"$work/gone" -lcudart_gone \
    || exit 99
rm "$work/gone/libcudart_gone.so"
GS_CUDA_MODULE=$work/user.so
export GS_CUDA_MODULE
missing='cannot load .*/user\.so: libcudart_gone\.so: '
run 0 env GS_DEBUG=info doc/examples/01-average/average
says err "$missing.*Its CUDA runtime must be "
run 1 ./gs-bench queue --max-bytes 64
says err "transport nccl was asked for, but $missing"
finish
