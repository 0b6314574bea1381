#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# setup.sh - ./setup installs what is missing, notices what appears, and ends well when it is
# stopped or cannot go on. All programs that it calls are replaced; nothing is built here.

top=$(cd "${top_srcdir:-$(dirname "$0")/../..}" && pwd) || exit 99
room=$(mktemp -d "${TMPDIR:-/tmp}/gs-setup.XXXXXX") || exit 99
trap 'rm -rf "$room"' EXIT
trap 'exit 99' HUP INT TERM
failures=0

fail () {
    echo "FAILED: $*"
    ((failures++))
}

# replace NAME TEXT: the program is a script from now on.
replace () {
    printf '#!/bin/bash\n%s\n' "$2" >"$room/bin/$1" && chmod +x "$room/bin/$1"
}

# A place where ./setup finds everything, as user 1000 with sudo.
mkdir -p "$room"/{bin,tests/install,pc} && cd "$room" || exit 99
sed '/^PATH=/d' "$top/setup" >setup && chmod +x setup || exit 99
cp "$top/tests/procs.sh" "$top/tests/matrix.sh" tests || exit 99
echo 1.0 >pc/hdf5
for name in bash cat cut date diff dirname env find flock grep head kill ln mkdir nproc \
    printf readlink rm sed seq sleep sort stat tail tee tr true wc; do
    ln -s "$(type -P "$name")" "bin/$name" || exit 99
done
while IFS='|' read -r _ probes _; do
    for probe in $probes; do
        case $probe in
        pc:*) echo 1.0 >"pc/${probe#pc:}" ;;
        py:*) ;;
        *) [[ -e bin/$probe ]] || replace "$probe" : ;;
        esac
    done
done < <(sed -n "/^needs=/,/^)/s/^ *'\(.*\)'\$/\1/p" setup)
# shellcheck disable=SC2016 # expanded in there
{
replace id 'echo 1000'
replace sudo '[[ ! -e no-sudo ]] || exit 1; shift; exec "$@"'
replace systemctl 'echo "systemctl $*" >>calls; exit 1'
replace deb-systemd-helper 'echo "deb-systemd-helper $* ($DPKG_MAINTSCRIPT_PACKAGE)" >>calls'
replace update-rc.d 'echo "update-rc.d $*" >>calls'
replace invoke-rc.d 'echo "invoke-rc.d $*" >>calls'
replace pkg-config 'case $1 in --exists) [[ -e pc/$2 ]] ;; *) cat "$room/pc/$2" ;; esac'
replace python ''
replace make '. "$room/make.sh"'
: >make.sh
: >download.sh
# Packages of one program or library each are enough.
replace apt-get 'echo "apt-get $*" >>calls
[[ "$*" != *--download-only* ]] || . "$room/download.sh"
[[ "$*" != *install* || "$*" = *--download-only* ]] || . "$room/install.sh"'
}
echo '[[ "$*" != *libhdf5-dev* ]] || ln -s make bin/h5cc
[[ "$*" != *slurmctld* ]] || ln -s make bin/slurmctld' >install.sh
cat >configure <<'END'
#!/bin/bash
echo "configure $*" >>"$room/calls"
cp "$room/config.h.found" config.h
: >Makefile
: >config.status
END
chmod +x configure
touch -d '1 minute ago' configure
cp bin/make tests/install/fetch-modules
cp bin/make tests/install/fetch-cuda
echo >Makefile.in
echo >config.h.in
echo '/* #undef HAVE_CUDA */' >config.h.found
ln -s "$(type -P cp)" bin/cp

# A run has a clean environment, and signals that are not ignored, as in a terminal.
setup=(env -i "--default-signal=INT,HUP" "PATH=$room/bin" "room=$room" "PYTHON=$room/bin/python"
    "GS_SETUP_MARK=${GS_SETUP_MARK-}" ./setup) # the mark of the run that this test is part of

# run STATUS COMMAND [OPTION]...: what ./setup says is in output; what it called in calls.
run () {
    : >calls
    "${setup[@]}" "${@:2}" >output 2>&1
    [[ $? = "$1" ]] || fail "./setup ${*:2}: not status $1: $(<output)"
}

has () { # FILE TEXT
    grep -qF -- "$2" "$1" || fail "$step: no '$2' in $1: $(<"$1")"
}

has_not () { # FILE TEXT
    ! grep -qF -- "$2" "$1" || fail "$step: '$2' in $1: $(<"$1")"
}

ends () { # PATTERN of the last line
    tail -n 1 output | grep -qE "^$1\$" || fail "$step: the last line is not '$1': $(<output)"
}

step='what the demo needs is installed'
rm bin/h5cc
run 0 build
has calls 'install --yes --no-install-recommends libhdf5-dev'
has calls 'configure --with-hdf5'

step='it is configured once'
run 0 build
has_not calls configure

step='it is configured again after something'
echo 2.0 >pc/hdf5
run 0 build
has calls configure
rm pc/check
run 0 build
has calls configure
has output 'left out: Check'
replace mpicc-other :
ln -sf mpicc-other bin/mpicc
run 0 build
has calls configure
echo 1.0 >pc/check

step='services of packages are disabled, with systemd or without'
rm bin/slurmctld
run 0 check
has calls 'systemctl disable --now slurmctld'
has calls 'deb-systemd-helper disable slurmctld.service (slurmctld)'
has calls 'update-rc.d slurmctld disable'
has calls 'invoke-rc.d slurmctld stop'
has_not calls 'disable --now munge'

step='without sudo it says what to run'
: >no-sudo
rm bin/h5cc
run 1 build
has_not calls apt-get
ends '  sudo apt-get install --yes libhdf5-dev'
run 1 check
has output '  sudo apt-get install --yes libhdf5-dev'
ends '0 passed, 1 failed, 0 skipped'
rm no-sudo
ln -s make bin/h5cc

step='a folder that is not ours'
mv build build.mine
: >build # the same to mkdir, and it holds for root, too
run 1 build
has output 'cannot write to'
rm build
mv build.mine build

step='the demo of turbulence has a folder of its own, and takes --resume alone'
cat >tests/launch.sh <<'END'
#!/bin/bash
echo "launch $*" >>"$room/calls"
[[ ! -e launch.fails ]] || exit 1
mkdir -p demo-out/turbulence/checkpoints
echo >demo-out/turbulence/checkpoints/ck-000000000500.h5
echo >demo-out/turbulence/turbulence.svg
echo 'Held-out R2 of the sub-grid force: network 1, Smagorinsky 0'
END
chmod +x tests/launch.sh
mkdir -p demo-out/checkpoints && echo >demo-out/checkpoints/ck-000000000500.h5
run 0 demo turbulence
has calls '--layout 2x2 build/doc/examples/15-turbulence/turbulence --out demo-out/turbulence'
has output 'it goes on from there: ./setup demo turbulence --resume'
[[ $(grep -A 4 'What to try next' output | grep -c '    # ') = 3 ]] || fail "$step: what to try"
ends "Held-out R2 .*network 1, .*; picture: $room/demo-out/turbulence/turbulence.svg"
: >launch.fails
run 1 demo turbulence --resume
has calls '--checkpoint demo-out/turbulence/checkpoints --resume'
[[ -s demo-out/turbulence/checkpoints/ck-000000000500.h5 ]] || fail "$step: --resume from nothing"
[[ ! -e demo-out/turbulence/turbulence.svg ]] || fail "$step: an old picture is left"
run 1 demo turbulence
[[ ! -e demo-out/turbulence/checkpoints ]] || fail "$step: it would go on unasked"
[[ -s demo-out/checkpoints/ck-000000000500.h5 ]] || fail "$step: the other demo lost its state"
for words in 'turbulence --html' '--html turbulence' 'turbulence --resume --html'; do
    # shellcheck disable=SC2086 # the words are meant
    run 2 demo $words
    has output './setup demo turbulence takes --resume alone; --html is of ./setup demo'
    has_not calls launch
done
rm -r launch.fails demo-out

step='the demo has a layout, of simulated GPUs where they can be had'
cat >tests/launch.sh <<'END'
#!/bin/bash
echo "launch $*" >>"$room/calls"
echo "GPUs ${SIM_GPUS-}, transport ${GS_TRANSPORT-}, device ${GS_DEVICE-}" >>"$room/calls"
echo "libraries ${LD_LIBRARY_PATH-}" >>"$room/calls"
mkdir -p demo-out/checkpoints
echo >demo-out/checkpoints/ck-000000000500.h5
echo >demo-out/lorenz96.svg
[[ $* != *--html* ]] || echo >demo-out/demo.html
echo 'Held-out R2: network 1'
END
# shellcheck disable=SC2016 # expanded in there
{
replace ../build/gs-info 'echo "gs-info $*" >>calls'
echo 'echo "make $*" >>"$room/calls"' >make.sh
}
run 0 demo
has calls '--layout 2x4 build/doc/examples/10-lorenz96/lorenz96_demo --out demo-out'
has calls 'GPUs , transport , device '
has_not calls gs-info
has output 'demo: 8 ranks as 2 simulated nodes of 4'
run 1 demo --layout 2x8x2
has output 'simulated GPUs need the CUDA toolkit'
has output '  ./setup demo --layout 2x8x0'
has_not calls launch
run 0 demo --layout 2x8x0 --html
has calls '--layout 2x8 build/doc/examples/10-lorenz96/lorenz96_demo --out demo-out'
has calls 'GPUs , transport , device host'
has_not calls simgpu
echo '#define HAVE_CUDA 1' >build/config.h
run 1 demo --layout 2x8x2
has output "simulated GPUs need NCCL's headers"
has_not calls launch
echo '#define HAVE_NCCL 1' >>build/config.h
run 0 demo --layout 2x8x2
has calls "simgpu"
has calls 'gs-info --layout 2x8x2'
has calls '--layout 2x8 build/doc/examples/10-lorenz96/lorenz96_demo --out demo-out'
has calls 'GPUs 2, transport nccl, device '
has calls "libraries $room/build/tests/simgpu/lib"
has output 'gradsync: ./setup demo --layout 2x8x2; '
has output 'demo: 16 ranks as 2 simulated nodes of 8'
has output 'goes on from the newest file: ./setup demo --resume --layout 2x8x2'
run 0 demo --resume --layout 2x8x2
has calls '--checkpoint demo-out/checkpoints --resume'
for words in '--layout' '--layout 2x8' '--layout 0x8x2' '--layout 2x8x17' '--layout --html'; do
    # shellcheck disable=SC2086 # the words are meant
    run 2 demo $words
    has output 'is no layout: give --layout NODESxRANKSxGPUS, such as 2x8x2'
    has_not calls launch
done
run 2 demo turbulence --layout 2x8x2
has output './setup demo turbulence takes --resume alone'
: >make.sh
rm -r tests/launch.sh demo-out

# stop SIGNAL COMMAND FILE: the same as run, stopped when the file is there.
stop () {
    local pid tries=200

    : >calls
    rm -f "$3"
    "${setup[@]}" "$2" >output 2>&1 &
    pid=$!
    until [[ -s $3 ]] || ((!--tries)); do
        sleep 0.1
    done
    ! "${setup[@]}" build >second 2>&1 || fail "$step: two work at once"
    has second 'another ./setup is at work here'
    kill -s "$1" "$pid"
    wait "$pid"
    [[ $? = 130 ]] || fail "$step: $1: not status 130: $(<output)"
    has output "stopped by SIG$1; nothing was left running"
}

step='a check that is stopped'
# shellcheck disable=SC2016 # they are for the replaced make
echo '[[ "$*" = *check-multi* ]] || exit 0
echo "PASS: tests/a.sh"
echo "SKIP: tests/b.sh"
echo "FAIL: tests/c.sh"
sleep 321 &
echo $! >sleeper
wait' >make.sh
sleeps () {
    # One that has ended and is not yet waited for has no command line.
    [[ -n $(tr -d '\0' 2>/dev/null </proc/"$(<sleeper)"/cmdline) ]]
}
for signal in INT TERM HUP; do
    stop "$signal" check sleeper
    ends '[1-9][0-9]* passed, 1 failed, 1 skipped'
    ! sleeps || fail "$step: SIG$signal leaves its processes"
done

step='a download is stopped'
rm bin/h5cc
# shellcheck disable=SC2016 # they are for the replaced apt-get
echo 'sleep 321 & echo $! >sleeper; wait' >download.sh
stop INT build sleeper
! sleeps || fail "$step: apt-get was left"
: >download.sh

step='packages are unpacked to the end, and then it stops'
# shellcheck disable=SC2016 # they are for the replaced apt-get
echo 'echo begun >unpacking; sleep 1; ln -s make bin/h5cc' >install.sh
stop INT build unpacking
[[ -e bin/h5cc ]] || fail "$step: apt-get was stopped"
has output 'waiting for apt-get'

((!failures)) || { echo "$failures failures"; exit 1; }
echo "./setup: packages, configuration, services and every way to end"
