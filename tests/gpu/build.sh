#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# build.sh FOLDER TEST... - builds the library, without MPI and PMIx, and the programs that
# tests/gpu/check runs, into FOLDER: with a C compiler and nvcc, without configure and make. What
# is compiled stands in the Makefile.am files. FOLDER/found has what was found as assignments,
# FOLDER/missing a line "PARTS: WHAT" for what was not; what needs it is not built.

build=${1:?} && mkdir -p "$build" && cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 99
read -ra cc <<<"${CC:-cc}"
set -o pipefail
shopt -s nullglob
: >"$build/missing"

missing () { # PARTS WHAT
    echo "$1: $2" >>"$build/missing"
}

# Prints the first of the files that there is.
first () {
    local file

    for file; do
        [[ ! -e $file ]] || { echo "$file"; return; }
    done
    return 1
}

# ---- CUDA and NCCL, also as Python packages have them ----

# Sets packages to the folders nvidia of Python packages, roots to where CUDA may be.
find_roots () {
    local python nvcc folder

    packages=()
    [[ -z ${VIRTUAL_ENV-} ]] || packages+=("$VIRTUAL_ENV"/lib/python3*/site-packages/nvidia)
    for python in python3 python; do
        while read -r folder; do
            [[ ! -d $folder/nvidia ]] || packages+=("$folder/nvidia")
        done < <("$python" -c 'import sys; print("\n".join(filter(None, sys.path)))' 2>/dev/null)
    done
    packages+=({/usr,/usr/local,~/.local,/opt/*}/lib/python3*/{site,dist}-packages/nvidia)
    nvcc=$(command -v "${NVCC:-nvcc}")
    roots=(${CUDA_HOME:+"$CUDA_HOME"})
    [[ -z $nvcc ]] || roots+=("$(dirname "$(dirname "$(realpath "$nvcc")")")")
    for folder in "${packages[@]}"; do
        roots+=("$folder"/cu1[0-9] "$folder"/cuda_{nvcc,runtime,cccl})
    done
    roots+=(/usr/local/cuda /usr)
}

find_all () {
    local folder libs=() bins=() includes=() nccl_includes=() nccl_libs=() include nccl_include

    find_roots
    for folder in "${roots[@]}"; do
        bins+=("$folder/bin/nvcc")
        includes+=("$folder/include/cuda_runtime_api.h")
        libs+=("$folder"/lib64/libcudart.so.* "$folder"/lib/{,*-linux-gnu/}libcudart.so.*)
    done
    for folder in ${NCCL_HOME:+"$NCCL_HOME"} "${packages[@]/%//nccl}" "${roots[@]}"; do
        nccl_includes+=("$folder/include/nccl.h")
        nccl_libs+=("$folder"/{lib64,lib,lib/*-linux-gnu}/libnccl.so.2)
    done
    nvcc=$(command -v "${NVCC:-nvcc}" || first "${bins[@]}") \
        || missing all "no nvcc (NVCC, PATH, CUDA_HOME, Python packages, /usr/local/cuda)"
    include=$(first "${includes[@]}") || missing all "no cuda_runtime_api.h"
    cudart=$(first "${libs[@]}") || missing all "no libcudart"
    nccl_include=$(first "${nccl_includes[@]}") || missing nccl "no nccl.h"
    nccl=$(first "${nccl_libs[@]}") || missing nccl "no libnccl.so.2"
    printf '%s\n' "nvcc=$nvcc" "cudart=$cudart" "nccl=$nccl" >"$build/found"
    cuda_flags=(-isystem "$(dirname "$include")")
    [[ -z $nccl_include ]] || nccl_flags=(-isystem "$(dirname "$nccl_include")")
}

# Whether the compiler takes the include lines and symbols of stdin, with these libraries.
links () {
    "${cc[@]}" -x c - -o "$build/probe" "$@" 2>/dev/null
}

has () { # PART: whether nothing that it needs is missing
    ! grep -qE "^(all|$1): " "$build/missing"
}

# ---- Compilation ----

# Prints the words of a variable in a Makefile.am where these conditions hold.
words_of () { # VARIABLE FILE
    awk -v variable="$1" -v true="$conditions" '
        /^if / { no = sub (/^!/, "", $2); on[++depth] = (!index (true, " " $2 " ")) == no; next }
        /^else/ { on[depth] = !on[depth]; next }
        /^endif/ { depth--; next }
        {
            for (i = 1; i <= depth; i++) if (!on[i]) next
            if (!going && ($1 != variable || $2 !~ /^[+]?=$/)) next
            for (i = going ? 1 : 3; i <= NF; i++) if ($i ~ /[.](c|cu)$/) print $i
            going = /\\$/
        }' "$2"
}

# Compiles the files of stdin into $build/FOLDER with these commands, as many at once as there are
# processors.
compile_with () { # FOLDER COMMAND...
    local folder=$build/$1
    shift

    mkdir -p "$folder"
    # shellcheck disable=SC2016 # sh expands them
    xargs -P "$(nproc)" -I{} sh -c 'file=$1 to=$2/$(echo "$1" | tr / -).o; shift 2
        "$@" -c "$file" -o "$to" || exit 255' - {} "$folder" "$@"
}

compile () { # FOLDER FLAG...
    compile_with "$1" "${cc[@]}" -std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -Wall -fPIC \
        -pthread ${CFLAGS:+$CFLAGS} -I"$build" -Isrc -I. -Itests "${@:2}"
}

link () { # FILE WORD...
    "${cc[@]}" -pthread -o "$build/$1" "${@:2}" -Wl,-rpath,"$build" -lm -ldl
}

write_config () {
    local version name

    version=$(sed -nE 's/^m4_define\(\[gs_version\], \[(.*)\]\)/\1/p' configure.ac)
    {
        printf '#define %s 1\n' HAVE_CUDA
        ! has nccl || echo "#define HAVE_NCCL 1"
        echo "#define PACKAGE_VERSION \"$version\""
        for name in PMIX OPENSSL MPI OFI HDF5 CUDA NCCL FORTRAN HARDENING SANITIZER; do
            echo "#define GS_INFO_$name \"$([[ $conditions = *"HAVE_$name "* ]] && echo yes \
                || echo no)\""
        done
    } >"$build/config.h"
}

nvcc_compile () { # FOLDER
    compile_with "$1" "$nvcc" -std=c++17 -O3 --fmad=false -arch=native \
        -Xcompiler -fPIC,-fno-exceptions,-fno-rtti "${cuda_flags[@]}" -Isrc -I.
}

build_kernels () {
    words_of gs_cuda_sources cuda/Makefile.am | nvcc_compile cu || return
    ! has check || echo tests/simgpu/kernels.cu | nvcc_compile rules-cu
}

build_library () {
    {
        words_of libgsformat_la_SOURCES src/Makefile.am
        words_of libgs_la_SOURCES src/Makefile.am
    } | compile gs "${nccl_flags[@]}" "${cuda_flags[@]}" || return
    words_of libgscuda_la_SOURCES cuda/Makefile.am | compile cuda "${cuda_flags[@]}" || return
    wait "$kernels" || return
    link libgradsync.so -shared -Wl,-soname,libgradsync.so -Wl,-z,defs \
        -Wl,--version-script=src/gradsync.map "$build"/gs/*.o "${crypto[@]}" || return
    link gradsync-cuda.so -shared -Wl,-z,defs -Wl,--version-script=cuda/module.map \
        "$build"/cuda/*.o "$build"/cu/*.o "$build/libgradsync.so" "$cudart" -lstdc++
}

build_tools () {
    words_of gs_info_SOURCES src/tools/Makefile.am | compile info || return
    link gs-info "$build"/info/*.o "$build/libgradsync.so" || return
    words_of gs_bench_SOURCES src/tools/Makefile.am \
        | compile bench -DBENCH_BIN_TO_DATA='""' -DBENCH_PKGDATADIR='""' || return
    link gs-bench "$build"/bench/*.o "$build/libgradsync.so" || return
    has nccl || return 0
    echo src/tools/bench/raw_nccl.c | compile raw "${nccl_flags[@]}" "${cuda_flags[@]}" || return
    link gs-bench-nccl.so -shared "$build"/raw/*.o "$nccl" "$cudart"
}

# The kernels' tests reach private functions; those of several ranks link the library.
build_tests () {
    local name

    printf '%s\n' tests/gpu/{kernels,bandwidth}.c tests/multi/data.c \
        tests/simgpu/{buckets,queued,replayed,streams}.c "${multi[@]/%/.c}" \
        | compile tests "${cuda_flags[@]}" || return
    for name in kernels bandwidth; do
        link "$name" "$build/tests/tests-gpu-$name.c.o" "$build"/{gs,cuda,cu}/*.o "$cudart" \
            "${crypto[@]}" -lstdc++ || return
    done
    for name in buckets queued replayed streams; do
        link "$name" "$build/tests/tests-simgpu-$name.c.o" "$build/libgradsync.so" "$cudart" \
            || return
    done
    for name in "${multi[@]}"; do
        link "$(basename "$name")" "$build/tests/${name//\//-}.c.o" \
            "$build/tests/tests-multi-data.c.o" "$build/libgradsync.so" || return
    done
}

# The rules of tests/simgpu, linked to what was found.
build_rules () {
    if has nccl; then
        words_of tests_simgpu_test_nccl_SOURCES tests/simgpu/nccl.am \
            | compile rules "${nccl_flags[@]}" "${cuda_flags[@]}" || return
        link test_nccl "$build"/rules/*.o "$nccl" "$cudart" || return
    fi
    has check || return 0
    words_of tests_simgpu_runtime_SOURCES tests/simgpu/Makefile.am \
        | compile runtime-o "${cuda_flags[@]}" || return
    link runtime "$build"/runtime-o/*.o "$build"/rules-cu/*.o "$cudart" "${check[@]}" -lstdc++
}

# ---- All of it ----

conditions=' HAVE_CUDA HAVE_SIMGPU HAVE_CHECK ' multi=("${@:2}")
crypto=() check=() nccl_flags=() cuda_flags=()
find_all
! has nccl || conditions+='HAVE_NCCL '
if links -lcrypto <<<'#include <openssl/hmac.h>
int main (void) { return !HMAC (EVP_sha256 (), "", 0, 0, 0, 0, 0); }'; then
    conditions+='HAVE_OPENSSL ' crypto=(-lcrypto)
else
    missing openssl "no openssl/hmac.h and libcrypto, with which ranks meet without a launcher"
fi
for words in -lcheck "-lcheck -lsubunit -lrt -lm"; do
    read -ra check <<<"$words"
    links "${check[@]}" <<<'#include <check.h>
int main (void) { return !suite_create (""); }' && break
    check=()
done
((${#check[@]})) || missing check "no check.h and libcheck"
has all || { sed -n 's/^all: /skip: /p' "$build/missing"; exit 77; }
write_config || exit 1
build_kernels &
kernels=$!
build_library && build_tools && build_tests && build_rules
