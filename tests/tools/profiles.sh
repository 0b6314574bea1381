#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# profiles.sh - the site profiles that are shipped are read by gs-run and by gs-info, and
# gs-run names what is wrong with one.
. "$(dirname "$0")/lib.sh"

# gs-run as installed, and an srun that shows the environment it was started in.
build=$PWD
make -s DESTDIR="$work/stage" install-binSCRIPTS install-dist_slurmprofilesDATA || exit 99
gs_run=$(find "$work/stage" -name gs-run)
mkdir "$work/bin" && printf '#!/bin/sh\nexec "%s/gs-info"\n' "$build" >"$work/bin/srun" \
    && chmod +x "$work/bin/srun" || exit 99
PATH=$work/bin:$PATH
cd "$work" || exit 99

# dry STATUS PROFILE
dry () {
    run "$1" "$gs_run" --dry-run --profile "$2" --mpi=pmix --no-gpus -n1 prog
}

# sets NAME=VALUE...: the last dry run gives the program each, as a word of its own.
sets () {
    for setting; do
        (
            eval "set -- $(cat out)"
            for word; do
                test "$word" != "$setting" || exit 0
            done
            exit 1
        ) || fail "not set: $setting"
    done
}

# has TEXT: a line of the last stdout is TEXT.
has () {
    grep -Fqx -e "$1" out || fail "stdout has no line '$1'"
}

# shipped NAME: gs-run sets all of the profile, and gs-info tells that it comes from there.
shipped () {
    grep '^[A-Z]' "$top_srcdir/slurm/profiles/$1.env" >settings || fail "$1 has no settings"
    while IFS= read -r line; do
        unset "${line%%=*}"
    done <settings
    dry 0 "$1"
    quiet err
    while IFS= read -r line; do
        sets "$line"
    done <settings

    cp out line.sh
    run 0 sh line.sh
    quiet err
    says out "^Profile .*/slurm/profiles/$1\.env\$"
    while IFS= read -r line; do
        has "$(printf '  %-28s %-16s profile' "${line%%=*}" "${line#*=}")"
    done <settings
    test "$(sed '1,/^Profile /d' out | wc -l)" -eq "$(wc -l <settings)" \
        || fail "gs-info shows other settings than $1 has"
}

for file in "$top_srcdir"/slurm/profiles/*.env; do
    name=${file##*/}
    shipped "${name%.env}"
done
run 0 "$gs_run" --profile list
has gh200-slingshot

# A file of the site's own; the program may run in another folder than gs-run.
mkdir here
printf '# c\n  # indented: A=1\n\t\n\nGS_TEST_A=one=1#2\nGS_TEST_B=a b' >here/own.env
dry 0 here/own.env
quiet err
sets "GS_TEST_A=one=1#2" "GS_TEST_B=a b" "GS_PROFILE=$work/here/own.env"
if grep -q indented out; then
    fail "a comment became a setting"
fi
dry 0 "$work/here/own.env"
sets "GS_PROFILE=$work/here/own.env"
cp out line.sh
run 0 sh line.sh
has "$(printf '  %-28s %-16s profile' GS_TEST_B "a b")"
test "$(sed '1,/^Profile /d' out | wc -l)" -eq 2 || fail "gs-info takes a comment for a setting"

# refuses TEXT FORMAT: of a profile written so, at its second line.
refuses () {
    # shellcheck disable=SC2059 # the format is the profile
    printf "$2" >here/bad.env
    dry 2 here/bad.env
    quiet out
    says err "^gs-run: here/bad\.env:2: $1"
}

printf 'GS_TEST_A=1\r\n' >here/bad.env
dry 2 here/bad.env
says err '^gs-run: here/bad\.env:1: .*carriage return'
refuses '.*carriage return' '# c\nGS_TEST_A=1\r\n'
refuses ".*'GS_TEST_A=\"two words\"'.*quotes" '# c\nGS_TEST_A="two words"\n'
refuses ".*quotes" "# c\nGS_TEST_A='1'\n"
refuses ".*'GS_TEST_A=1 # c'.*comment" '# c\nGS_TEST_A=1 # c\n'
refuses ".*comment" '# c\n  GS_TEST_A=1\t# c\n'
refuses "'export A=1' is not NAME=VALUE" '\nexport A=1\n'
refuses "'  A=1' is not NAME=VALUE" '\n  A=1\n'
refuses "'A-B=1' is not NAME=VALUE" '\nA-B=1\n'
run 2 "$gs_run" --dry-run --profile nowhere prog
says err "^gs-run: no profile 'nowhere' "
finish
