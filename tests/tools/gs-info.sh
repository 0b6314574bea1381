#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# gs-info tells version, parts and settings, and names what it does not understand.
. "$(dirname "$0")/lib.sh"

version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' config.h)
variables=$(sed -n 's/^GSI_ENV ([A-Z_]*, "\([A-Z_]*\)".*/\1/p' "$top_srcdir/src/base/env.def")
test -n "$variables" || exit 99

run 0 ./gs-info
quiet err
says out "^gradsync $version\$"
says out '^  pmix  *[^ ]'
for v in $variables; do
    case $v in
    GS_RECORD_DIR) says out "^  $v  *$work  *environment " ;;
    *) says out "^  $v  *[^ ]+  *default " ;;
    esac
done

says out '^NCCL$'
says out '^  (not found|[0-9]+\.[0-9]+\.[0-9]+)  *[^ ]'
run 0 ./gs-info --nccl
quiet err
says out '^[ *] before 2\.18  *refused  *has no ncclCommSplit: load NCCL 2\.18'
says out '^[ *] 2\.23 to 2\.25  *workaround  *crashes '
run 2 ./gs-info --nccl --json
says err '^gs-info: --nccl: stands alone$'

run 0 ./gs-info --version
only out "^gs-info \(gradsync\) $version\$"
run 0 ./gs-info --help
says out '^Usage: gs-info '
quiet err

string='"([^"\\]|\\["\\]|\\u[0-9a-f]{4})*"'
setting="\{\"name\":$string,\"value\":$string,\
\"origin\":\"(default|environment)\",\"help\":$string\}"
GS_DEBUG_FILE=$(printf 'a"b\\c\td\377')
export GS_DEBUG_FILE
run 0 ./gs-info --json
quiet err
only out "^\{\"version\":$string,\"build\":\{$string:$string(,$string:$string)*\},\
\"settings\":\[$setting(,$setting)*\]\}\$"
says out '"name":"GS_DEBUG_FILE","value":"a\\"b\\\\c\\u0009d\\ufffd","origin":"environment"'
for v in $variables; do
    says out "\"name\":\"$v\""
done
unset GS_DEBUG_FILE

GS_TIMEOUT_MS=soon run 1 ./gs-info
says err "^gs-info: GS_TIMEOUT_MS='soon' is not a whole number"
GS_CHECK=maybe run 1 ./gs-info --json
says err "^gs-info: GS_CHECK='maybe' is not one of off\|args\|collective"
GS_TIMEOUT=5 run 0 ./gs-info
says out '^  GS_TIMEOUT is set, but gradsync has no such variable'

cat >"$work/site.env" <<'END'
# A=comment
GS_TEST_ONE=one
GS_TEST_TWO=two words

GS_TEST_THREE=three
  # GS_CHECK=off
GS_TIMEOUT_MS=5000
END
GS_PROFILE=$work/site.env
export GS_PROFILE
GS_TEST_ONE=one GS_TEST_TWO=other run 0 ./gs-info
says out "^Profile $work/site.env\$"
says out '^  GS_TEST_ONE  *one  *profile$'
says out '^  GS_TEST_TWO  *other  *environment$'
says out '^  GS_TEST_THREE  *-  *unset$'
GS_TEST_ONE=one GS_TEST_TWO=other run 0 ./gs-info --json
says out '"profile":\[\{"name":"GS_TEST_ONE","value":"one","origin":"profile"\},'

# The table and the profile tell the same of a variable that both have.
GS_TIMEOUT_MS=5000 GS_CHECK=off run 0 ./gs-info
says out '^  GS_TIMEOUT_MS  *5000  *profile  *[^ ]'
says out '^  GS_TIMEOUT_MS  *5000  *profile$'
says out '^  GS_CHECK  *off  *environment '
says out '^  GS_PROFILE  *[^ ]+  *environment '
GS_TIMEOUT_MS=7000 run 0 ./gs-info
says out '^  GS_TIMEOUT_MS  *7000  *environment  *[^ ]'
says out '^  GS_TIMEOUT_MS  *7000  *environment$'
run 0 ./gs-info
says out '^  GS_TIMEOUT_MS  *[0-9]+  *default '
says out '^  GS_TIMEOUT_MS  *-  *unset$'
GS_TIMEOUT_MS=5000 run 0 ./gs-info --json
says out '"name":"GS_TIMEOUT_MS","value":"5000","origin":"profile","help"'
GS_PROFILE=$work/missing run 1 ./gs-info
says err "^gs-info: GS_PROFILE='$work/missing': No such file"
unset GS_PROFILE

run 2 ./gs-info --colour
says err '^gs-info: --colour: is not an option'
quiet out
run 2 ./gs-info file
says err '^gs-info: file: a FILE is taken with --record only'
run 2 ./gs-info --record
says err '^gs-info: --record: needs at least one FILE'
run 2 ./gs-info --record --json file
says err '^gs-info: --json: cannot be had with --record'
run 2 ./gs-info --hosts
says err '^gs-info: --hosts: needs a LAYOUT'
for layout in 1 2x 0x2 2+ x 2x2x2 -2 2x2000000 999999x999999; do
    run 2 ./gs-info --hosts "$layout"
    says err 'is no layout of two ranks or more'
done
run 2 ./gs-info --hosts 2 --json
says err '^gs-info: --json: cannot be had with --hosts'
run 2 ./gs-info --hosts 2 --record file
says err '^gs-info: --hosts: cannot be had with --record'
GS_TRANSPORT=ofi GS_OFI_MODULE=/nonexistent run 1 ./gs-info --hosts 2x2
says err "^gs-info: GS_OFI_MODULE='/nonexistent' cannot be read"
GS_MPI_MODULE=/nonexistent run 1 ./gs-info --hosts 2x2
says err "^gs-info: GS_MPI_MODULE='/nonexistent' cannot be read"
quiet out
run 0 ./gs-info
if grep -q '^  mpi  *no$' "$work/out"; then
    run 1 ./gs-info --hosts 2x2
    says err '^gs-info: no gradsync-mpi.so in '
else
    run 0 ./gs-info --hosts 2x4
    quiet err
    says out '^8 ranks, 2 nodes; '
    says out '^  sum  *to 16384 bytes  *small allgather: '
    says out '^  sum  *more  *hier: .* 4 on each node$'
    says out '^  allgather  *more  *hier: 4 of each node '
    says out '^  broadcast  *more  *hier: 4 of each node '
    run 0 ./gs-info --hosts 3
    says out '^3 ranks, 1 node; '
    says out '^  allgather  *more  *memory '
    run 0 ./gs-info --hosts 2+1+3
    says out '^6 ranks, 3 nodes; '
    says out '^  sum  *more  *hier: .* 1 on each node$'
    GS_HOST_ALGO=flat run 0 ./gs-info --hosts 2x4
    says out '^  sum  *more  *flat: '
    run 0 ./gs-info --hosts 8x1
    says out '^  sum  *to 49152 bytes  *rabenseifner: '
    says out '^  sum  *more  *flat: '
    GS_HOST_ALGO=rabenseifner run 0 ./gs-info --hosts 2x2
    says out '^  sum  *more  *rabenseifner: '
    for setting in GS_DETERMINISTIC=1 GS_HOST_ALGO=flat GS_HOST_ALGO=hier; do
        run 0 env "$setting" ./gs-info --hosts 8x1
        says out '^  sum  *to 16384 bytes  *small allgather: '
        says out '^  sum  *more  *flat: '
    done
    GS_DETERMINISTIC=1 run 0 ./gs-info --hosts 2x4
    says out '^  sum  *more  *flat: '
fi
if test -w /dev/full; then
    ./gs-info >/dev/full 2>"$work/err" && fail "a full disk went unnoticed"
    says err '^gs-info: cannot write'
fi
finish
