# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# matrix.sh - the builds of `./setup check` and the count of their results; sourced by setup,
# whose steps, log, jobs and mark of what runs aside it uses.

: "${log:?}" "${jobs:?}" "${aside:?}"
passed=0 failed=0 skipped=0
remarks=()            # a line for each test that failed or was skipped
running=()            # label, folder and beginning in the log of the step that runs
times=build/times     # seconds, step and name of each test
beside=$((jobs < 6 ? jobs + 2 : 8)) # tests that run side by side: they mostly wait
# For builds with sanitizers, which are slow: one layout of each program, and more time.
patient=(env GS_TEST_LAYOUTS=quick GS_TEST_SHORT=1 GS_TEST_SECONDS=300 CK_TIMEOUT_MULTIPLIER=10)

# Why a test was skipped, or where to look and what is there from its first failure on: in a copy,
# for another step may run the same test in the same build. A TAP driver says the reason in the
# line itself.
reason () { # KIND FOLDER TEST-AND-TITLE
    local test=${3%% *}
    local file=$2/${test%.*}.log kept

    if [[ $3 = *' # SKIP '* ]]; then
        echo "${3#* # SKIP }"
    elif [[ $1 = SKIP ]]; then
        grep -im1 skip "$file" 2>/dev/null || echo "no reason given"
    else
        kept=build/failed/$failed-${test//\//-}.log
        mkdir -p build/failed
        cp "$file" "$kept" 2>/dev/null && file=$kept
        echo "see $file"
        # A TAP program's own words come before its verdict.
        grep -m1 -B12 -A24 -E '^(FAILED|FAIL|not ok|[0-9]+%: )' "$file" 2>/dev/null \
            | grep -vE '^ok ' | sed 's/^/    /'
    fi
}

# Counts the results of a step: the lines PASS, SKIP, FAIL... that its tests wrote to the log
# after byte $4, or the step itself when there are none and it has ended.
count () { # LABEL FOLDER STATUS OFFSET
    local kind test before=$failed any=no

    while IFS=': ' read -r kind test; do
        any=yes
        case $kind in
        PASS | XFAIL)
            ((passed++))
            continue
            ;;
        SKIP) ((skipped++)) ;;
        *) ((failed++)) ;;
        esac
        remarks+=("$kind: $1: ${test%% # SKIP*}: $(reason "$kind" "$2" "$test")")
    done < <(tail -c +$(($4 + 1)) "$log" | grep -E '^(PASS|SKIP|XFAIL|FAIL|XPASS|ERROR): ')
    [[ $3 != stopped ]] || return 0
    if [[ $any = no && $3 = 77 ]]; then
        ((skipped++))
        remarks+=("SKIP: $1: $(tail -c +$(($4 + 1)) "$log" | grep -im1 'skip: ')")
    elif [[ $any = no && $3 = 0 ]]; then
        ((passed++))
    elif [[ $3 != 0 && $failed = "$before" ]]; then
        ((failed++))
        remarks+=("FAIL: $1: $(tail -n 20 "$log" | grep -vE '^(make.*|)$' | tail -n 1)")
    fi
}

# tests LABEL FOLDER COMMAND...: a step whose results are counted. It never ends the run.
tests () {
    local label=$1 folder=$2 offset status
    shift 2

    offset=$(stat -c %s "$log")
    rm -f "$folder/tests/times"
    running=("$label" "$folder" "$offset")
    step "$label" "$@"
    status=$?
    running=()
    count "$label" "$folder" "$status" "$offset"
    [[ ! -e $folder/tests/times ]] || sed "s|\$| ($label)|" "$folder/tests/times" >>"$times"
    return "$status"
}

# build_in LABEL FOLDER OPTION...: configures and builds; a failure counts as one failed test.
build_in () {
    local label=$1 folder=$2
    shift 2

    step "$label: configure" configure_in "$folder" "$@" \
        && step "$label: build" make -C "$folder" -j"$jobs" check TESTS= && return
    ((failed++))
    remarks+=("FAIL: $label: does not build, see $log")
    return 1
}

# The same header and the same exported names in both builds.
same_interface () { # FOLDER FOLDER
    local folder names=()

    for folder; do
        make -C "$folder" install DESTDIR="$PWD/$folder/stage" || return
        names+=("$(nm -D --defined-only "$folder/.libs/libgradsync.so" | cut -d ' ' -f 2-)")
    done
    [[ -n ${names[0]} && ${names[0]} = "${names[1]}" ]] \
        || { diff <(echo "${names[0]}") <(echo "${names[1]}"); return 1; }
    for folder; do
        find "$folder/stage" -name 'gradsync*.h' -exec sha256sum {} + | sed 's|  .*/|  |' | sort \
            >"$folder/headers"
    done
    cmp "$1/headers" "$2/headers"
}

# Every file of the repository is in the tarball that distcheck made.
tarball_complete () { # FOLDER
    local missing why

    why=$(git ls-files 2>&1 >/dev/null) || { echo "skip: git: ${why%%$'\n'*}"; return 77; }
    missing=$(comm -23 <(git ls-files | grep -vE '(^|/)\.(gitignore|gitattributes)$' | sort) \
        <(tar -tf "$1"/gradsync-*.tar.xz | sed 's|^[^/]*/||' | sort))
    [[ -z $missing ]] || { echo "not in the tarball: $missing"; return 1; }
}

# LABEL: what each check of build-gcc begins with.
basics () {
    tests "$1lint and unit tests" build-gcc make -j"$beside" -C build-gcc check-basics
    tests "$1ABI" build-gcc make -C build-gcc check-abi
}

# What ./setup check does, in one build.
everyday () {
    # The one takes long and judges numbers, the others have each call fail once.
    local slow='tests/\(demo/wire\|simgpu/\(faults\|queued\)\)\.sh'
    local brief=(env GS_TEST_LAYOUTS=quick GS_TEST_SHORT=1)

    build_in "gcc" build-gcc --enable-werror "${gpus[@]}" || return
    basics ""
    tests "all other tests" build-gcc "${brief[@]}" make -j"$beside" -C build-gcc check-multi \
        BUT="$slow"
    tests "on simulated GPUs" build-gcc "${brief[@]}" make -j"$beside" -C build-gcc check-simgpu \
        BUT="$slow"
    nccl_versions "" 'multi/average multi/split'
    shared_gpus "" 1 'multi/average multi/device multi/reducer multi/split'
    mixed_gpus "" 'multi/average multi/device multi/reducer multi/split'
    tests "on a private Slurm" build-gcc "${brief[@]}" make -C build-gcc check-slurm-core
}

# One NCCL of each kind of behaviour (src/transport/nccl_versions.def); all else has the newest.
nccl_versions () { # PREFIX TESTS
    local version late

    for version in 2.18 2.22 2.24 2.26; do
        late=1
        [[ $version != 2.22 ]] || late=0 # which is refused else
        tests "$1on simulated GPUs, with NCCL $version" build-gcc env GS_TEST_LAYOUTS=quick \
            NCCL_RUNTIME_CONNECT="$late" SIM_NCCL_VERSION=$version \
            make -j"$beside" -C build-gcc check-simgpu SIMGPU="$2"
    done
}

# PREFIX GPUS TESTS: nodes that have so many, and mostly more ranks.
shared_gpus () {
    tests "$1on $2 simulated GPU(s) of each node" build-gcc env GS_TEST_LAYOUTS=quick \
        SIM_GPUS="$2" GS_TEST_SHARED_GPUS="$2" \
        make -j"$beside" -C build-gcc check-simgpu SIMGPU="$3"
}

# PREFIX TESTS: every other rank has no GPU.
mixed_gpus () {
    tests "$1on simulated GPUs of every other rank" build-gcc env GS_TEST_LAYOUTS=quick \
        GS_TRANSPORT=auto SIM_GPUS=2 SIM_BLIND_EVERY=2 \
        make -j"$beside" -C build-gcc check-simgpu SIMGPU="$2"
}

# A minimal Debian 13 waits for packages most of the time, as Slurm does for its nodes.
begin_debian () {
    (
        export "${aside?}"
        tests/install/rootfs --suite trixie check
        echo $? >build/debian.status
    ) >build/debian.log 2>&1 </dev/null &
    debian=$!
}

end_debian () {
    [[ -e build/debian.log ]] || begin_debian
    while kill -0 "$debian" 2>/dev/null; do
        sleep 1
    done
    cat build/debian.log
    return "$(grep . build/debian.status || echo 99)"
}

# What it leaves out, in the same build.
thorough () {
    # The build with sanitizers has them.
    local others='tests/simgpu/\(bench\|devices\|faults\|queued\|sharing\|streams\)\.sh'
    local versioned='multi/average multi/device multi/reducer multi/split multi/split_order'
    local shared

    shared=$(cd tests/multi && printf 'multi/%s ' *.layouts)
    shared=${shared//.layouts/}

    basics "gcc: "
    tests "gcc: all other tests" build-gcc make -j"$beside" -C build-gcc check-multi
    tests "gcc: on simulated GPUs" build-gcc make -j"$beside" -C build-gcc check-simgpu \
        BUT="$others"
    nccl_versions "gcc: " "$versioned multi/stops fortran/devices"
    shared_gpus "gcc: " 1 "$shared"
    mixed_gpus "gcc: " "$shared"
    shared_gpus "gcc: " 2 'multi/allreduce multi/average multi/device multi/reduce multi/reducer'
    tests "gcc: all that is queued, with NCCL 2.24" build-gcc env SIM_NCCL_VERSION=2.24 \
        make -j"$beside" -C build-gcc check-simgpu SIMGPU=queued
    begin_debian
    tests "gcc: on a private Slurm" build-gcc env GS_TEST_SHORT=1 make -C build-gcc check-slurm
    tests "gcc: benchmarks, a short run" build-gcc make -C build-gcc check-perf CHECK_PERF=--smoke
    tests "gcc: unit tests under valgrind" build-gcc make -j"$jobs" -C build-gcc check-valgrind
    tests "gcc: distcheck" build-gcc make -j"$jobs" -C build-gcc distcheck-short
    tests "gcc: the tarball is complete" build-gcc tarball_complete build-gcc
}

build_sanitized () {
    build_in "sanitizers" build-sanitize --enable-sanitizer=address,undefined \
        --enable-fault-injection --enable-debug --enable-code-coverage CFLAGS=-g "${gpus[@]}"
}

# Each harness of tests/fuzz for 20 s, in a build of their own.
fuzz () {
    local why

    why=$(echo 'int LLVMFuzzerTestOneInput (void) { return 0; }' \
        | clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>&1) \
        || { echo "skip: no libFuzzer (Debian: libclang-rt-dev): ${why%%$'\n'*}"; return 77; }
    (configure_in build-fuzz CC=clang CXX=clang++ --disable-fortran --without-mpi --without-cuda \
        --without-nccl --enable-sanitizer=fuzzer-no-link,address,undefined \
        CFLAGS='-O1 -g') && make -C build-fuzz -j"$jobs" check-fuzz
}

# LABEL MAKE-ARGUMENT...: tests of the build with sanitizers.
sanitized () {
    tests "sanitizers: $1" build-sanitize "${patient[@]}" make -j"$beside" -C build-sanitize \
        "${@:2}"
}

# Data races: the unit tests, one layout of each program, and on simulated GPUs what queues. gcc
# 12's library does not start where the system randomises more than 28 bits of addresses
# (vm.mmap_rnd_bits is 32 on some), so there is no randomisation, unless that is forbidden.
races () {
    local queueing='multi/device multi/reducer multi/stops multi/threads fortran/devices'
    local run=(make -j"$beside" -C build-tsan)

    build_in "thread sanitizer" build-tsan --enable-sanitizer=thread --enable-debug \
        CFLAGS='-O1 -g' "${gpus[@]}" || return
    ! setarch -R true 2>/dev/null || run=(setarch -R "${run[@]}")
    run=("${patient[@]}" "${run[@]}")
    tests "thread sanitizer: unit tests" build-tsan "${run[@]}" check-unit
    tests "thread sanitizer: programs of several ranks" build-tsan "${run[@]}" check-programs
    tests "thread sanitizer: on simulated GPUs" build-tsan "${run[@]}" check-simgpu \
        SIMGPU="$queueing"
}

# What .ci/run adds to the everyday tests: one layout of each program.
continuous () {
    build_sanitized || return
    sanitized "unit tests" check-unit
    sanitized "programs of several ranks" check-programs
}

# The site of mkdocs.yml, with its tools from the Python index where Python has them not, and the
# guide as a book where there is Chromium.
site () {
    local python=${PYTHON:-python3}

    if ! "$python" -c 'import latex2mathml, material, mkdocs' 2>/dev/null; then
        python=build/site-tools/bin/python3
        [[ -x $python ]] || python3 -m venv build/site-tools
        "$python" -m pip install --quiet mkdocs-material latex2mathml \
            || { echo "skip: no mkdocs-material from the Python index"; return 77; }
    fi
    NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs build --strict --quiet --site-dir build/site \
        || return
    grep -q '<pre>' build/site/man/gs_allreduce_avg.3/index.html || return # by the hook
    HOME=$PWD/build "$python" doc/pdf.py build/site build/gradsync-guide.pdf
    case $? in
    0) (($(stat -c %s build/gradsync-guide.pdf) > 500000)) ;; # with pictures, and every chapter
    77) ;; # it has said why
    *) return 1 ;;
    esac
}

# The newest of LLVM's Fortran compilers that there is and has arguments of any rank: since 20.
newest_flang () {
    local name version best=19

    while read -r name; do
        version=$("$name" --version 2>/dev/null </dev/null \
            | sed -n '1s/.*flang.* version \([0-9]*\)\..*/\1/p')
        if ((${version:-0} > best)); then
            best=$version
            flang=$name
        fi
    done < <(compgen -c flang | sort -u)
    ((best > 19))
}

# Debian's newest package of it.
install_flang () {
    local name

    name=$(apt-cache search --names-only '^flang-[0-9]+$' | sed 's/ .*//' | sort -V | tail -n 1)
    [[ -n $name ]] && apt install --yes --no-install-recommends "$name"
}

# The Fortran binding of another compiler than gcc's, with its tests; but for mpi_f08, which
# distributions have for gfortran.
other_fortran () {
    local flang list

    if ! newest_flang && may_install; then
        # shellcheck disable=SC2034 # setup waits for it
        unpacking=yes
        step "flang: installing the newest package" install_flang
        # shellcheck disable=SC2034
        unpacking=no
    fi
    if ! newest_flang; then
        ((skipped++))
        remarks+=("SKIP: flang: there is no flang of LLVM 20 or later, nor a package of one")
        return
    fi
    build_in "flang" build-flang FC="$flang" --enable-fortran --enable-fortran-descriptors \
        || return
    list=$(cd build-flang && find tests/fortran -name '*.ft' | sort | xargs)
    tests "flang: Fortran tests" build-flang make -j"$beside" -C build-flang check \
        TESTS="$list tests/fortran/error_stop.sh"
}

# ./setup check --all, after what one build does.
other_builds () {
    local nothing=(--without-pmix --without-openssl --without-mpi --without-ofi --without-hdf5
        --without-cuda --without-nccl --disable-fortran --enable-werror)
    # They take long, and judge numbers, the order of calls, or what is installed; the programs
    # themselves run in other tests, too.
    local long='^tests/\(demo/\(resume\|skill\|weights\|wire\)\|multi/ckpt_r[a-z]*\)\.sh'
    long+='\|^tests/\(multi/chaos\.sh\|install/\)'

    build_in "clang" build-clang --enable-werror CC=clang CXX=clang++ "${gpus[@]}" \
        && tests "clang: unit tests" build-clang make -j"$jobs" -C build-clang check-unit
    if build_sanitized; then
        sanitized "unit tests" check-unit
        sanitized "all other tests" check-multi BUT="$long"
        sanitized "on simulated GPUs" coverage-gpu
        sanitized "coverage of src/" coverage
    fi
    races
    tests "fuzzing" build-fuzz fuzz
    tests "the site" build site
    other_fortran
    build_in "nothing optional" build-bare "${nothing[@]}" \
        && tests "nothing optional: all but lint" build-bare \
            make -j"$beside" -C build-bare check-code \
        && tests "nothing optional: same interface" build-bare same_interface build-gcc build-bare
}

# What the tests ran on, for doc/guide/support.md: name and version, one on each line.
versions () {
    local line program

    for program in gcc clang gfortran mpirun mpiexec.mpich srun cmake h5dump nvcc openssl; do
        line=$("$program" --version 2>/dev/null </dev/null | grep -m1 '[0-9]\.[0-9]') \
            || line=$("$program" version 2>/dev/null </dev/null) || line='not there'
        printf '%-14s %s\n' "$program" "$line"
    done
    for program in pmix ompi mpich hdf5-serial hdf5; do
        printf '%-14s %s\n' "$program.pc" \
            "$(pkg-config --modversion "$program" 2>/dev/null || echo 'not there')"
    done
}

# What failed or was skipped, and the sums: the last line, also of a run that ends early.
summary () {
    local remark

    ((!${#running[@]})) || count "${running[0]}" "${running[1]}" stopped "${running[2]}"
    ((!${#remarks[@]})) || printf '\n'
    for remark in "${remarks[@]}"; do
        echo "$remark"
    done
    echo "$passed passed, $failed failed, $skipped skipped"
}

# Whether there is a CUDA toolkit, and NCCL's header for it.
has_cuda () {
    local nvcc

    nvcc=$(command -v nvcc || echo "${CUDA_HOME-}/bin/nvcc")
    [[ -x $nvcc ]] && echo '#include <nccl.h>' | "${CC:-cc}" -E -x c - -o /dev/null \
        -I"$(dirname "$(readlink -f "$nvcc")")/../include" 2>/dev/null
}

# Sets gpus to options of configure where there is no CUDA toolkit with NCCL.
provide_cuda () {
    local folder=$PWD/build/cuda

    gpus=()
    ! has_cuda || return 0
    step "packages: CUDA's compiler, runtime and NCCL in build/cuda" \
        tests/install/fetch-cuda "$folder"
    case $? in
    0) gpus=(--with-cuda="$folder/nvidia/cu13" --with-nccl="$folder/nvidia/nccl") ;;
    77)
        ((skipped++))
        remarks+=("SKIP: all on simulated GPUs: $(tail -n 1 "$log")")
        ;;
    *)
        ((failed++))
        remarks+=("FAIL: CUDA's compiler for the simulated GPUs: $(tail -n 1 "$log")")
        ;;
    esac
}

check () { # [--all | --continuous]
    local gpus kinds=(demo option check)

    [[ ${1-} != --all ]] || kinds+=(all)
    start "${kinds[@]}"
    : >"$times"
    rm -rf build/debian.* build/failed
    if command -v apt-get >/dev/null; then # without it tests of modules skip, and say so
        step "packages: two module systems in build/modules" tests/install/fetch-modules \
            build/modules
    fi
    provide_cuda
    case ${1-} in
    --all)
        build_in "gcc" build-gcc --enable-werror "${gpus[@]}" && thorough
        other_builds
        tests "./setup check on a minimal Debian 13" build end_debian
        printf '\nThe 20 slowest tests, in seconds:\n'
        sort -rn "$times" | head -n 20
        ;;
    --continuous) everyday; continuous ;;
    *) everyday ;;
    esac
    versions >build/versions
    summary
    ((!failed))
}
