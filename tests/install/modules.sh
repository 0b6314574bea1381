# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# modules.sh - what both module systems must do with our module files; to be sourced by the test
# of one, which is named like its command. Two versions stand side by side in $room/site, where
# the module files of both are linked into one folder, as sites do.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

system=$(basename "$0" .sh)
places=("${GS_TEST_MODULES:-$top/build/modules}/$system")
[[ $system = lmod ]] && places+=(/usr/share/lmod/lmod/libexec/lmod)
[[ $system = lmod ]] || places+=(/usr/lib/*/modulecmd.tcl /usr/lib/modulecmd.tcl)
for command in "${places[@]}"; do
    [[ ! -x $command ]] || break
done
if [[ ! -x $command ]]; then
    echo "skip: $system is not here: tests/install/fetch-modules build/modules"
    exit 77
fi
examples=$top/doc/examples
# Variables of the module systems themselves.
notes='^(__MODULES_|_LMFILES_|_ModuleTable|LOADEDMODULES|MODULEPATH|(__)?LMOD_)'

# The shell function of the system. What it says goes to $room/message, also on failure.
module () {
    local text

    text=$("$command" bash "$@" 2>"$room/message") || return
    eval "$text" 2>>"$room/message"
}

# says TEXT: the last call of module did, wherever lines are broken.
says () {
    tr -s ' \n\t' ' ' <"$room/message" | grep -qF -- "$1" \
        || fail "$system does not say '$1': $(<"$room/message")"
}

# loads NAME ROOT: after loading NAME the installation in ROOT, and no other, is in use.
loads () {
    module load "$1" || fail "module load $1: $(<"$room/message")"
    in_use "$2"
}

in_use () { # ROOT
    local pair

    [[ ${GRADSYNC_ROOT-} = "$1" ]] || fail "GRADSYNC_ROOT is '${GRADSYNC_ROOT-}', not $1"
    for pair in PATH="$bindir" LD_LIBRARY_PATH="$libdir" LIBRARY_PATH="$libdir" \
        CPATH="$includedir" PKG_CONFIG_PATH="$pkgconfigdir" MANPATH="$mandir" \
        CMAKE_PREFIX_PATH="$prefix"; do
        starts "${pair%%=*}" "$(in_copy "$1" "${pair#*=}")"
    done
    [[ $MANPATH = *: ]] || fail "MANPATH leaves out the system's own manual: $MANPATH"
    [[ -e ${MANPATH%%:*}/man7/gradsync.7 ]] || fail "there is no manual in ${MANPATH%%:*}"
    [[ $(pkg-config --modversion gradsync) = "$GRADSYNC_VERSION" ]] \
        || fail "GRADSYNC_VERSION is $GRADSYNC_VERSION, not that of gradsync.pc"
    [[ $(command -v gs-info) = "$1"/* ]] || fail "gs-info is $(command -v gs-info)"
    env | grep -E "=.*$room/[a-z]" | grep -v "^[A-Za-z_]*\(MODULE\|LMFILES\|HOME\|PWD\)" \
        | grep -v "$1" && fail "the environment names another installation"
}

starts () { # VARIABLE FOLDER
    [[ ${!1-}: = "$2":* ]] || fail "$1 does not begin with $2: ${!1-}"
}

# What the user had, without the notes of the module system.
environment () {
    env -0 | tr '\n' ' ' | tr '\0' '\n' | sort \
        | grep -vE "$notes|^_="
}

build_programs () {
    must "${cc[@]}" -o average_c "$examples/01-average/average.c" -lgradsync
    [[ $fortran = no ]] || must "${fc[@]}" -o average_f -I"$GRADSYNC_FORTRAN_INC" \
        "$examples/01-average/average_f.f90" -lgradsync_fortran -lgradsync
}

check_programs () { # ROOT
    local program

    for program in ./average_?; do
        works "$program"
        uses "$program" "$(in_copy "$1" "$libdir")"
    done
}

# The same files as a later version, as far as they tell one.
make_next () { # FROM TO
    local folder

    folder=$(in_copy "$2" "$modulefiles")/gradsync
    must cp -a "$1" "$2"
    must mv "$folder/$version" "$folder/$next"
    must mv "$folder/$version.lua" "$folder/$next.lua"
    must sed -i "s/${version//./\\.}/$next/g" "$folder"/* "$(in_copy "$2" "$pkgconfigdir")"/*
}

# edit NAME VALUE FILE...: sets a variable of module files, as administrators are told to.
edit () {
    must sed -i -E -e "s|^(set $1 \\{).*(\\})\$|\\1$2\\2|" \
        -e "s|^(local $1 += \").*(\")\$|\\1$2\\2|" "${@:3}"
    grep -qF "$2" "${@:3}" || fail "$1 was not set in ${*:3}"
}

check_texts () {
    module whatis gradsync/"$version"
    says 'Description: gradient averaging'
    module help gradsync/"$version"
    says "gradsync $version averages gradients"
    says 'gs-run ./prog'
    module avail gradsync
    says "gradsync/$version"
    says "gradsync/$next"
    module show gradsync/"$version"
    says "$first"
}

# Two versions: the later is the default, and one takes the place of the other.
check_versions () {
    local before

    before=$(environment)
    loads gradsync "$second"
    module unload gradsync || fail "module unload gradsync: $(<"$room/message")"
    diff <(echo "$before") <(environment) || fail "unloading does not restore the environment"
    loads gradsync/"$version" "$first"
    build_programs
    check_programs "$first"
    module switch gradsync/"$version" gradsync/"$next" || fail "switch: $(<"$room/message")"
    in_use "$second"
    check_programs "$second"
    module unload gradsync
    diff <(echo "$before") <(environment) || fail "unloading does not restore the environment"
}

# Module files elsewhere: links, copies, and copies that lead nowhere.
check_places () {
    local central=$room/central/gradsync suffix

    mkdir -p "$central"
    for suffix in '' .lua; do
        must ln -s "$(in_copy "$first" "$modulefiles")/gradsync/$version$suffix" \
            "$central/linked$suffix"
        must cp "$(in_copy "$first" "$modulefiles")/gradsync/$version$suffix" \
            "$central/copied$suffix"
        edit prefix "$first" "$central/copied$suffix"
        must cp "$central/copied$suffix" "$central/lost$suffix"
        edit prefix "$room/nowhere" "$central/lost$suffix"
        must cp "$central/linked$suffix" "$central/needy$suffix"
        edit prefix "$first" "$central/needy$suffix"
        edit requires 'gs-compiler gs-mpi/2' "$central/needy$suffix"
    done
    export MODULEPATH=$room/central:$room/others
    loads gradsync/linked "$first"
    module unload gradsync
    loads gradsync/copied "$first"
    module unload gradsync
    loads gradsync/needy "$first"
    [[ ${gs_compiler-} = 2 && ${gs_mpi-} = 2 ]] || fail "what gradsync requires is not loaded"
    module unload gradsync
    [[ -z ${gs_compiler-}${gs_mpi-} ]] || fail "what gradsync required is still loaded"
    module load gradsync/lost && fail "a module that leads nowhere is loaded"
    says "gradsync $version is neither in "
    says " nor in $room/nowhere: set prefix in $central/lost"
    [[ -z ${GRADSYNC_ROOT+set} ]] || fail "a module that failed sets GRADSYNC_ROOT"
    module help gradsync/lost
    says 'averages gradients'
}

make_site () {
    local root

    must cp -a "$installed" "$first"
    edit requires '' "$(in_copy "$first" "$modulefiles")"/gradsync/*
    make_next "$first" "$second"
    mkdir -p site/modulefiles/gradsync
    for root in "$first" "$second"; do
        must ln -s "$(in_copy "$root" "$modulefiles")"/gradsync/* site/modulefiles/gradsync
    done
}

# Modules that stand for the compiler and MPI.
make_others () {
    local name

    for name in gs-compiler gs-mpi; do
        mkdir -p "others/$name"
        printf '#%%Module\nsetenv %s 2\n' "${name//-/_}" >"others/$name/2"
    done
}

# The prefix was moved, and the old place is gone.
check_moved () {
    local moved=$room/elsewhere/gradsync

    mkdir elsewhere && must mv "$first" "$moved"
    MODULEPATH=$(in_copy "$moved" "$modulefiles")
    loads gradsync "$moved"
    check_programs "$moved"
    module unload gradsync
}

for name in $(compgen -e | grep -E "$notes|^MODULE"); do
    unset "$name"
done
# Lmod takes out what is there twice.
PATH=$(tr : '\n' <<<"$PATH" | awk '!seen[$0]++' | paste -sd :)
unset MANPATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
export HOME=$room/home
mkdir -p home site
IFS=. read -r major minor patch <<<"$version"
next=$major.$((minor + 1)).$patch
first=$room/site/$version second=$room/site/$next
make_site
make_others
export MODULEPATH=$room/site/modulefiles
