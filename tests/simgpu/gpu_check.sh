#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# gpu_check.sh - tests/gpu/check on a machine that has a C compiler, nvcc and CUDA and NCCL as
# Python packages, and nothing else: no configure, make, MPI, PMIx, Autotools and launcher. The
# packages have the simulated libraries, and its nvcc hands out the kernels of this build. Real
# GPUs are then asked by the same steps. One run with what there is, and one that has no OpenSSL
# and no time for more than to look around.

: "${top_srcdir:?run me by make check}" "${top_builddir:?}"
source=$(cd "$top_srcdir" && pwd) && cd "$top_builddir" || exit 99
objects=$PWD
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-gpucheck.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
nvcc=$(sed -n 's/^NVCC = //p' Makefile)
nccl=$(sed -n 's/^GS_NCCL_CPPFLAGS = -\(I\|isystem\) *\([^ ]*\).*/\2/p' Makefile)
read -ra cc <<<"${CC:-cc}"
tools='[ awk basename bash cat cp cut date dirname env expr grep head hostname id ls mkdir mktemp
    mv nproc paste printf ps readlink realpath rm sed seq sh sleep sort tail tee timeout tr true
    uname wc xargs ar as ld objdump nm strip'
failures=0

fail () {
    echo "FAILED - $*"
    sed 's/^/    /' "$room/out"
    ((++failures))
}

# What the machine has: $room/bin and $room/venv. What it has not gives an error if it is asked.
make_machine () {
    local tool nvidia=$room/venv/lib/python3.11/site-packages/nvidia

    mkdir -p "$room"/{bin,hidden,no-openssl/openssl} "$nvidia"/{cu13/bin,nccl/lib}
    for tool in $tools "${cc[0]}" cc; do
        ln -sf "$(command -v "$tool")" "$room/bin/${tool##*/}" || exit 99
    done
    for tool in mpi.h pmix.h pmix_server.h; do
        echo "#error $tool is hidden" >"$room/hidden/$tool"
    done
    echo '#error OpenSSL is hidden' >"$room/no-openssl/openssl/hmac.h"
    ln -s "$(dirname "$(dirname "$nvcc")")/include" "$nvidia/cu13/include"
    ln -s "${nccl:-$nvidia/cu13/include}" "$nvidia/nccl/include"
    ln -s "$objects/tests/simgpu/lib" "$nvidia/cu13/lib"
    ln -s "$objects/tests/simgpu/lib/libnccl.so.2" "$nvidia/nccl/lib"
    cat >"$nvidia/cu13/bin/nvcc" <<END
#!/bin/bash
while ((\$#)); do
    case \$1 in
    -c) from=\${2%.cu}; shift ;;
    -o) to=\$2; shift ;;
    --version) echo "release 0.0" ;;
    esac
    shift
done
[[ -z \$from ]] || cp "$objects/\${from%/*}/.libs/\${from##*/}.o" "\$to"
END
    chmod +x "$nvidia/cu13/bin/nvcc"
}

# check SECONDS ARGUMENT...: a run there; false if it does not end by itself soon after its time.
check () {
    env -i PATH="$room/bin" HOME="$room" TMPDIR="$room" VIRTUAL_ENV="$room/venv" SIM_GPUS=1 \
        CC="${cc[*]} -I$room/hidden ${hide-}" CFLAGS=-O0 \
        timeout "$1" "$source/tests/gpu/check" --results "$room/page" "${@:2}" \
        >"$room/out" 2>&1
}

page_has () { # PATTERN
    grep -qE "$1" "$room/page" || { fail "the page has no '$1'"; cat "$room/page"; }
}

make_machine
command -v mpirun >/dev/null && [[ -e $room/bin/mpirun ]] && fail "mpirun is not hidden"
some='^(build|contexts|absent|2000 averages|killed|exchange, 2|halo, 4|queued graph, 2'
some+='|rules of NCCL, size [24])'
check 600 --minutes 9 --only "$some" \
    || fail "exit status $?"
for name in build 'contexts, 2 ranks' 'contexts, on hosts' 'absent rank beside a graph' \
    '2000 averages behind an absent rank' 'killed rank' 'killed rank beside replays' \
    'exchange, 2 ranks' 'halo, 4 ranks' 'queued graph, 2 ranks' 'rules of NCCL, size 2' \
    'rules of NCCL, size 4'; do
    page_has "^\| $name \| passed \|"
done
page_has "NCCL 2[.][0-9.]+ .*site-packages/nvidia/nccl/lib/libnccl.so.2\): 12 passed, 0 fail"
page_has '^- not run foreign-stream, 2 ranks # skip: needs more GPUs'
page_has '^\| average, 4 ranks \| not run \| left out by --only \|'

hide=-I$room/no-openssl check 60 --minutes 0.2 || fail "no time: exit status $?"
page_has '^\| build \| not run \| no time left'
page_has '^- openssl: no openssl/hmac.h'
names=$("$source/tests/gpu/check" --list | wc -l)
(($(grep -cE '^\| .* \| (passed|not run) \|' "$room/page") == names)) \
    || fail "not all of $names steps are on the page"
((failures)) || echo "$names steps, without MPI, PMIx, Autotools and a launcher"
exit $((failures > 0))
