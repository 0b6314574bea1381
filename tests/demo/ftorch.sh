#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ftorch.sh - 05-ftorch, built with an installed gradsync, FTorch and libtorch, trains the same
# network on 1, 2 and 4 ranks; and contrib/ftorch tells what is wrong.
#
# CMake finds FTorch and libtorch by CMAKE_PREFIX_PATH, FTORCH_DIR (a prefix) and Torch_DIR.
# PYTHON has torch, and writes the network. Where one of them is missing the test is skipped.
. "$(dirname "$0")/lib.sh"
top=$(cd "$here/../.." && pwd) || exit 99
python=${PYTHON:-/usr/bin/python3}
example=$room/doc/examples/05-ftorch
examples=$room

skip () {
    echo "skip: $*"
    exit 77
}

# logged COMMAND...: what must succeed; its output is shown if it does not.
logged () {
    "$@" >"$room/log" 2>&1 || fail "$*: $(tail -n 30 "$room/log")"
}

# What CMake knows of FTorch and libtorch: NAME=VALUE lines in $room/found.
probe () {
    mkdir "$room/probe"
    cat >"$room/probe/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(probe LANGUAGES C CXX)
find_package(Torch QUIET)
if(Torch_FOUND)
  find_package(FTorch QUIET)
  get_target_property(features torch INTERFACE_COMPILE_FEATURES)
endif()
if(FTorch_FOUND)
  get_target_property(modules FTorch::ftorch INTERFACE_INCLUDE_DIRECTORIES)
endif()
file(WRITE found "torch=${TORCH_LIBRARY}\nftorch=${FTorch_DIR}\nmodules=${modules}\n"
  "features=${features}\n")
END
    (cd "$room/probe" && cmake .) >"$room/log" 2>&1
    [[ -e $room/probe/found ]] || skip "CMake finds no libtorch that it can use (Torch_DIR, \
CMAKE_PREFIX_PATH): $(grep -m 1 -A 2 Error "$room/log" | tr -s ' \n' ' ')"
}

value () { # NAME
    sed -n "s/^$1=//p" "$room/probe/found"
}

stage='' prefix='' pkgconfigdir='' fortran='' mpi='' sanitizer=''
[[ -e $built/tests/install/stage.conf ]] || fail "no installed tree: run this by make check"
# shellcheck disable=SC1091 # it is generated
. "$built/tests/install/stage.conf"
[[ $fortran = yes && $mpi = yes ]] || skip "built without Fortran or MPI"
[[ -z $sanitizer ]] || skip "libtorch is not for builds with $sanitizer"
for tool in cmake c++ pkg-config; do
    command -v $tool >/dev/null || skip "no $tool"
done
export CMAKE_PREFIX_PATH=$stage$prefix:${FTORCH_DIR-}:${CMAKE_PREFIX_PATH-} OMP_NUM_THREADS=1
probe
[[ $(value torch) = /* ]] || skip "no libtorch by Torch_DIR or CMAKE_PREFIX_PATH"
[[ $(value ftorch) = /* ]] || skip "no FTorch by FTORCH_DIR or CMAKE_PREFIX_PATH"
for folder in $(value modules | tr ';' ' '); do
    [[ ! -e $folder/ftorch_optim.mod ]] || optimizers=$folder
done
[[ -n ${optimizers-} ]] || skip "FTorch in $(value ftorch) has no optimizers; one after 1.1.0 has"
"$python" -c 'import torch' 2>/dev/null \
    || skip "no torch for $python (PYTHON), which writes the network"

mkdir -p "$example" "$room/contrib"
cp "$top"/doc/examples/05-ftorch/* "$example"
cp -R "$top/contrib/ftorch" "$room/contrib"
chmod -R u+w "$room"
logged "$python" -W ignore "$example/network.py" "$room/net.pt"
logged "$python" -W ignore "$example/network.py" "$room/other.pt" 2

# By CMake, and by the Makefile.
logged cmake -S "$example" -B "$room/by-cmake" -DCMAKE_BUILD_TYPE=Release
logged cmake --build "$room/by-cmake"
libtorch=$(value torch)
ftorch=$(value ftorch)
standard=c++17
[[ $(value features) != *cxx_std_20* ]] || standard=c++20
export PKG_CONFIG_PATH=$stage$pkgconfigdir:${ftorch%/cmake/*}/pkgconfig
by_make=(make -C "$example" TORCH="${libtorch%/lib/*}" CXXFLAGS="-O2 -std=$standard"
    FC="${FC:-gfortran}")
logged "${by_make[@]}"

# Trains on RANKS: replicas, in place, with buckets that leave in the backward pass, and the
# losses of one rank.
trains () { # RANKS PROGRAM ARGUMENT...
    local words="on $1 ranks by $2"

    launch "$@"
    grep -q '^10 parameters of 50049 numbers, the same bits on all ranks' "$room/output" \
        || fail "no replicas $words: $(<"$room/output")"
    grep -q '^10 gradients averaged where' "$room/output" \
        || fail "gradients are not in place $words: $(<"$room/output")"
    awk '/ buckets averaged before/ { early = $1 } /^gradients come in/ { during = $5 }
        END { exit !(early > 0 && during > 30) }' "$room/output" \
        || fail "no overlap $words: $(<"$room/output")"
    sed -nE 's/^step .*, loss +//p' "$room/output" >"$room/losses"
    [[ -e $room/losses.first ]] || cp "$room/losses" "$room/losses.first"
    paste "$room/losses.first" "$room/losses" | awk '
        { off = ($1 - $2) / $1; off = off < 0 ? -off : off; if (off > most) most = off }
        NR == 1 { first = $1 }
        END { print "losses differ by " most + 0 " at most"
              exit !(NR == 5 && most <= 1e-9 && $1 < first / 3) }' >"$room/words" \
        || fail "another training $words: $(<"$room/words"): $(<"$room/output")"
    echo "$words: $(<"$room/words"); $(tail -n 2 "$room/output" | paste -s -d , | sed 's/,/, /')"
}

trains 1 by-cmake/train "$room/net.pt"
trains 2 by-cmake/train "$room/net.pt"
trains 4 by-cmake/train "$room/net.pt"
trains 2 doc/examples/05-ftorch/train "$room/net.pt"

# Few ranks evaluate the network for all: each has what it makes of its own rows, to rounding.
evaluates () { # RANKS PROGRAM
    launch "$1" "$2" "$room/net.pt"
    awk '/ off the own evaluation/ { seen = 1; rows = $4; off = $NF }
        END { exit !(seen && rows > 0 && off < 1e-13) }' "$room/output" \
        || fail "on $1 ranks $2: $(<"$room/output")"
    echo "on $1 ranks by $2: $(<"$room/output")"
}

for program in by-cmake doc/examples/05-ftorch; do
    evaluates 1 $program/evaluate
    evaluates 4 $program/evaluate
    evaluates 4 $program/evaluate_cpp
done

# All but rank 0 read another network: that of rank 0 counts.
cat >"$room/own_file" <<END
#!/bin/sh
test "\${PMIX_RANK:-0}" = 0 || exec "$room/by-cmake/train" "$room/other.pt"
exec "$room/by-cmake/train" "$room/net.pt"
END
chmod +x "$room/own_file"
trains 2 own_file

# changed SCRIPT: the example as sed's SCRIPT makes it, on one rank.
changed () {
    sed "$1" "$top/doc/examples/05-ftorch/train.f90" >"$example/train.f90"
    ! cmp -s "$example/train.f90" "$top/doc/examples/05-ftorch/train.f90" || fail "sed: $1"
    logged "${by_make[@]}"
    "$here/../timeout" 120 "$example/train" "$room/net.pt" >"$room/output" 2>&1
}

refused () { # SCRIPT TEXT
    ! changed "$1" || fail "not refused: $1"
    grep -qF "$2" "$room/output" || fail "no '$2': $(<"$room/output")"
}

refused '/call torch_model_load/d' 'gs_ftorch_create: model or comm is NULL'
refused '/call gs_reducer_commit/d' "gs_ftorch_start: parameter '0.weight': "
refused '/call gs_ftorch_start/d' 'gs_ftorch_zero_grad: call gs_ftorch_start first'
refused 's/call gs_ftorch_start.*/&; &/' 'gs_ftorch_start: it was started before'
refused 's/call gs_ftorch_create.*/&; &/' "parameter '0.weight': "
refused 's/torch_tensor_backward(loss)/&; call gs_reducer_ready(reducer, 0)/' 'gs_reducer_ready'
refused 's/call torch_tensor_backward(loss)/call torch_tensor_backward(loss, .true.); &/' \
    "gs_ftorch_finish: parameter '"

# The zero_grad of an optimizer leaves gradients where they are, or is found out.
if changed 's/gs_ftorch_zero_grad(net)/torch_optim_zero_grad(optimizer)/'; then
    diff "$room/losses.first" <(sed -nE 's/^step .*, loss +//p' "$room/output") \
        || fail "another training after zero_grad of an optimizer"
else
    grep -q "is no longer in the reducer's memory" "$room/output" || fail "$(<"$room/output")"
fi
