#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# selftest.sh - sees each lint fail: plants one violation after the other in a copy of the tree.
#
# The copy of the build holds only what the lints look at: the libraries and the objects.
. "$(dirname "$0")/lint.sh"
need_build .libs/libgradsync.so
copy=$(mktemp -d "${TMPDIR:-/tmp}/gs.XXXXXX") || exit 99
trap 'rm -rf "$copy"' EXIT
trap 'exit 1' HUP INT TERM
found=0
planted=$copy/planted # lists what differs in the copy: files below $copy

make_copy () {
    local item

    mkdir -p "$copy/tree" "$copy/build" || exit 99
    for item in setup .ci .clang-format configure configure.ac Makefile.am CITATION.cff LICENSE \
        {CONTRIBUTING,README,SECURITY}.md mkdocs.yml config src cuda fortran tests doc slurm \
        contrib; do
        [[ ! -e $item ]] || cp -R "$item" "$copy/tree/"
    done
    chmod -R u+w "$copy/tree"
    (cd "$top_builddir" && find src fortran cuda -name '*.o' 2>/dev/null
        ls .libs/*.so .libs/gs-*) 2>/dev/null \
        | tar -C "$top_builddir" -chf - -T - | tar -C "$copy/build" -xf -
}

# Makes the copy what it was before the last violation.
undo () {
    local file

    while read -r file; do
        rm -f "$copy/$file"
        [[ ! -e ${file#tree/} ]] || cp "${file#tree/}" "$copy/$file"
        [[ ! -e ${file#tree/} ]] || chmod u+w "$copy/$file"
    done <"$planted"
    : >"$planted"
}

# seen LINT WORDS: the lint fails on the copy as it is now, and says WORDS.
seen () {
    local output status

    output=$(top_srcdir=$copy/tree top_builddir=$copy/build "$copy/tree/tests/$1" 2>&1)
    status=$?
    if ((status == 77)); then
        echo "$1: not seen failing: $output"
    elif ((status != 1)); then
        complain "$1" "exit status $status, not 1, on a planted violation ($2): $output"
    elif [[ $output != *"$2"* ]]; then
        complain "$1" "failed, but does not say '$2': $output"
    else
        echo "$1: seen failing: $2"
        ((found++))
    fi
    undo
}

# plant FILE: standard input becomes the end of FILE in the copy.
plant () {
    echo "tree/$1" >>"$planted"
    cat >>"$copy/tree/$1"
}

# plant_object FILE: compiles standard input to FILE in the copy of the build.
plant_object () {
    echo "build/$1" >>"$planted"
    ${CC:-cc} -x c -c -o "$copy/build/$1" -
}

# change FILE EXPRESSION: edits FILE in the copy; an edit that changes nothing is an error here.
change () {
    echo "tree/$1" >>"$planted"
    sed -i.before "$2" "$copy/tree/$1"
    ! cmp -s "$copy/tree/$1" "$copy/tree/$1.before" || complain "$1" "nothing was planted: $2"
    rm "$copy/tree/$1.before"
}

# drop FILE: it is not in the copy.
drop () {
    echo "tree/$1" >>"$planted"
    rm "$copy/tree/$1"
}

checksums () {
    find "$copy/tree" "$copy/build" -type f -exec cksum {} + | sort
}

make_copy
sums=$(checksums)

echo 'int gsi_planted;' | plant src/base/planted.c
seen lint/spdx.sh src/base/planted.c
yes '' | head -n 601 | plant src/base/planted.c
seen lint/size.sh "src/base/planted.c: more than 600 lines"
{ printf '{\n'; yes '' | head -n 79; printf '}\n'; } | plant src/base/planted.c
seen lint/size.sh "a function of 81 lines"
printf '%99s\n' x | plant src/base/planted.c
seen lint/size.sh "99 columns"
{ echo 'subroutine planted()'; yes '' | head -n 79; echo 'end subroutine planted'; } \
    | plant fortran/planted.f90
seen lint/size.sh "a function of 81 lines"

echo 'TESTS += tests/multi/starved.mt' | plant tests/multi/Makefile.am
seen lint/stems.sh "of which make runs one: tests/multi/starved.mt tests/multi/starved.sh"

echo '#include "core/comm.h"' | plant src/transport/planted.c
seen lint/includes.sh '"core/comm.h": transport may include only'
echo '#include "mpi/mpi_env.h"' | plant src/comm/planted.c
seen lint/includes.sh '"mpi/mpi_env.h": comm may include only'
echo '#include "comm.h"' | plant src/comm/planted.c
seen lint/includes.sh 'write includes from src/'
echo '#include "gradsync_reducer.h"' | plant src/comm/planted.c
seen lint/includes.sh '"gradsync_reducer.h": gradsync.h has it'
echo '#include "gradsync_group.h"' | plant src/comm/planted.c
seen lint/includes.sh '"gradsync_group.h": gradsync.h has it'
echo '#include "gradsync_stats.h"' | plant src/comm/planted.c
seen lint/includes.sh '"gradsync_stats.h": gradsync.h has it'
echo 'static void planted (void) { gsi_call_no_memory (NULL, 0, ""); }' | plant src/core/query.c
seen lint/structure.sh 'files of different folders may not'
for planted_file in src/base/log.c src/base/env.c src/base/dims.c; do
    printf 'static void planted (void)\n{\n}\n' | plant $planted_file
done
seen lint/structure.sh 'planted is defined in more than two files'
echo '#include <pmix.h>' | plant src/boot/boot.c
seen lint/includes.sh '<pmix.h> may be included by'
echo '#include <hdf5.h>' | plant src/ckpt/load/read.c
seen lint/includes.sh '<hdf5.h> may be included by src/ckpt/format/h5'
echo '#include "ckpt/save/save.h"' | plant src/ckpt/plan/plan.c
seen lint/includes.sh '"ckpt/save/save.h": ckpt/plan may include only'
echo '#include "ckpt/format/h5_use.h"' | plant src/tools/gs-ckpt.c
seen lint/includes.sh '"ckpt/format/h5_use.h": has <hdf5.h> in it'

change src/feature/consensus.c '/"gs_flag_any"/s/gsi_result //'
seen lint/results.sh "gs_flag_any: returns past gsi_result"
change src/feature/consensus.c 's/^gs_status_t gs_flag_any/extern gs_status_t gs_flag_any/'
seen lint/results.sh "definitions of"
change src/feature/consensus.c 's/gsi_last_text ()/gs_last_error ()/'
seen lint/results.sh "asks gs_last_error"

change configure.ac 's/^m4_define(\[gs_version\].*/m4_define([gs_version], [0.0.7])/'
seen lint/version.sh "configure.ac 0.0.7"

echo 'GSI_ENV (GSI_ENV_PLANTED, "GS_PLANTED", TEXT, "", 0, 0, NULL, "")' | plant src/base/env.def
seen lint/env.sh "does not mention GS_PLANTED"
printf '.TP\n.B GS_PLANTED\nPlanted.\n' | plant doc/man/gradsync.7
seen lint/env.sh "names GS_PLANTED"
echo 'static const char *planted (void) { return getenv ("GS_BOOT"); }' | plant src/comm/comm.c
seen lint/env.sh "reads a GS_* variable"
change src/transport/nccl_versions.def 's/"crashes behind/"dies behind/'
seen lint/env.sh "has not: 2.23 to 2.25: workaround NCCL dies behind"
printf '.TP\n.BR 2.99 ": supported"\n' | plant doc/man/gradsync.7
seen lint/env.sh "has 8 rows of NCCL's versions"

drop doc/man/gs_barrier.3
seen lint/manual.sh "doc/man/gs_barrier.3: is not there"
change doc/man/gs_allreduce_avg.3 's/dtype/type/g'
seen lint/manual.sh "gs_allreduce_avg's parameter dtype"
change doc/man/gs_barrier.3 's/gs_stream_t/int/'
seen lint/manual.sh "gs_barrier.3: the synopsis has no \"gs_status_t gs_barrier("
change doc/man/gs_comm_destroy.3 's/GS_ERR_MISMATCH/GS_ERR_ARG/'
seen lint/manual.sh "gs_comm_destroy.3: GS_ERR_MISMATCH of src/gradsync.h is not told"
change doc/man/gs_ckpt_add_replicated.3 's/lower/below/g'
seen lint/manual.sh "gs_ckpt_add_replicated.3: does not name lower of fortran/calls.def"
change src/gradsync_collectives.h '/^ \* Since/d'
seen lint/manual.sh "gradsync_collectives.h: gs_barrier: contract without Since"
change src/gradsync_reducer.h '/^ \* Since/d'
seen lint/manual.sh "gradsync_reducer.h: gs_reducer_finish: contract without Since"

echo '.no_such_macro' | plant doc/man/gs_barrier.3
seen lint/documents.sh "no_such_macro"
echo '.ds planted text' | plant doc/man/gs_barrier.3
seen lint/documents.sh "pages define nothing: doc/man/gs_barrier.3"
change doc/Makefile.am '/gs_barrier.3/d'
seen lint/documents.sh "doc/man/gs_barrier.3: is not in doc/Makefile.am"
drop doc/man/gs_comm_rank.3
echo '.so man3/gs_planted.3' | plant doc/man/gs_comm_rank.3
seen lint/documents.sh "points to gs_planted.3"
change README.md 's/gs_comm_destroy/gs_comm_abort/'
seen lint/guide.sh "differs from doc/examples/01-average/average.c"
# shellcheck disable=SC2016 # the quotes are for Markdown
printf '```sh\necho planted\n```\n\n```c\nint planted;\n```\n' | plant doc/guide/gpus.md
seen lint/guide.sh "nothing runs this block, and it is of no file"
change doc/examples/03-reducer/train.c 's/GS_AVG/GS_SUM/'
seen lint/guide.sh "reducers.md:"
echo 'int gsi_p (void) { return gsi_fail (GS_ERR_ARG, "this text was planted"); }' \
    | plant src/base/log.c
seen lint/guide.sh "doc/guide/error-texts.md: is behind"
echo '#include "grad/order.h"' | plant src/mpi/small_allgather.c
seen lint/guide.sh "doc/guide/layers.svg: is behind"
change doc/guide/when-it-hangs.md 's/no PMIx server answers/no server was planted/'
seen lint/guide.sh "the library has no text 'no server was planted'"
yes '' | head -n 150 | plant README.md
seen lint/guide.sh "150 are allowed"
echo planted | plant doc/guide/planted.md
seen lint/guide.sh "doc/guide/planted.md: is not in mkdocs.yml"
change doc/guide/support.md 's/2\.18/2.17/g'
seen lint/guide.sh "does not name NCCL 2.18"
change doc/examples/03-reducer/train.c 's/0\.05/0.06/'
seen lint/documents.sh "its example differs from doc/examples/03-reducer/train.c"
change doc/examples/08-checkpoint/plot.py 's/plt.colorbar/plt.planted/'
seen lint/documents.sh "its program differs from doc/examples/08-checkpoint/plot.py"
echo 'See [there](doc/planted.md).' | plant README.md
seen lint/documents.sh "links to doc/planted.md"
change doc/man/gradsync.7 's/gs_flag_all\\fP/gs_planted\\fP/'
seen lint/documents.sh "doc/man/gradsync.7: there is no page gs_planted(3)"

change doc/packaging/spack/package.py 's/--without-modulefiles/--without-planted/'
seen lint/packaging.sh "names --with-planted, which configure does not have"
change doc/packaging/spack/package.py 's/variant("mpi"/variant("planted"/'
seen lint/packaging.sh "variant planted is no option"
change doc/packaging/spack/package.py 's/version("0/version("7/'
seen lint/packaging.sh "is for version 7"
change doc/packaging/spack/package.py 's/gradsync-0/gradsync-7/'
seen lint/packaging.sh "names the files of another version"
for recipe in doc/packaging/easybuild/*.eb; do
    echo "planted = '" | plant "$recipe"
done
seen lint/packaging.sh "unterminated string"

change src/gradsync.map 's/    gs_barrier;/&\n    gs_planted;/'
seen lint/fortran.sh "gs_planted is not public"
change fortran/calls.def '/^gs_comm_wait:/d'
seen lint/fortran.sh "gs_comm_wait is not public"
change src/gradsync.h 's/^    GS_MAX = 4,/&\n    GS_PLANTED = 5,/'
seen lint/fortran.sh "GS_PLANTED is missing"
change src/gradsync.h 's/^    GS_MAX = 4,/    GS_MAX = 5,/'
seen lint/fortran.sh "GS_MAX is 4, in C 5"
change src/gradsync_reducer.h 's/^    GS_OVERLAP_OFF = 2,/    GS_OVERLAP_OFF = 5,/'
seen lint/fortran.sh "GS_OVERLAP_OFF is 2, in C 5"

echo 'typedef int class;' | plant src/gradsync.h
seen lint/cxx.sh "c++"
echo '#include <stdio.h>' | plant src/gradsync.h
seen lint/cxx.sh "src/gradsync.h: includes more than"
echo '#include <stdint.h>' | plant src/gradsync_reducer.h
seen lint/cxx.sh "src/gradsync_reducer.h: includes more than nothing"
echo '#include <stdint.h>' | plant src/gradsync_group.h
seen lint/cxx.sh "src/gradsync_group.h: includes more than nothing"
echo '#include <stdint.h>' | plant src/gradsync_stats.h
seen lint/cxx.sh "src/gradsync_stats.h: includes more than nothing"
change src/gradsync_reducer.h '/^#error/d'
seen lint/cxx.sh "does not say that gradsync.h is to be included"

echo 'int MPI_Init (void *, void *); int gsi_planted (void) { return MPI_Init (0, 0); }' \
    | plant_object src/comm/planted.o
seen lint/symbols.sh "src/comm/planted.o: calls MPI_Init"
echo 'int PMIx_Fence (void); int gsi_planted (void) { return PMIx_Fence (); }' \
    | plant_object src/boot/libgs_la-planted.o
seen lint/symbols.sh "src/boot/libgs_la-planted.o: calls PMIx_Fence"

change src/gradsync.map 's/    gs_barrier;/&\n    gs_planted;/'
seen lint/exports.sh "not in the library: gs_planted"
change src/gradsync.map 's/    gsi_fail;/&\n    gsi_planted;/'
seen lint/exports.sh "gsi_planted" # who imports it is known only in a build with all of them
echo 'int gs_planted (void);' | plant src/gradsync.h
seen lint/exports.sh "in gradsync.h, not in the public nodes of src/gradsync.map: gs_planted"
echo 'int gs_planted (void);' | plant src/gradsync_reducer.h
seen lint/exports.sh "in gradsync.h, not in the public nodes of src/gradsync.map: gs_planted"

echo '/* ---- 8. Planted ---- */' | plant src/gradsync_stats.h
seen lint/manual.sh "there are two sections 8"
# shellcheck disable=SC2016 # the quotes are for C
echo 'void gsi_p (void) { gsi_log (GS_LOG_INFO, "planted", "text"); }' | plant src/base/log.c
seen lint/manual.sh "does not list the topic planted"
change slurm/Makefile.am 's|slurm/gs-run$|& slurm/gs-planted|'
seen lint/manual.sh "doc/man/gs-planted.1: is not there"

diff <(echo "$sums") <(checksums) || complain selftest "violations were left in the copy"
# The other lints look at each file for itself: a few do.
rm -rf "$copy"/tree/{cuda,fortran,doc,src/[!b]*,tests/[!l]*}
echo 'int   gsi_planted( void );' | plant src/base/planted.c
seen lint/format.sh src/base/planted.c
# shellcheck disable=SC2016 # the planted script must not be expanded here
printf '#!/bin/sh\nrm -r $1\n' | plant tests/planted.sh
seen lint/shell.sh tests/planted.sh
printf '/* t%sh planted word */' e | plant src/base/planted.c # in two parts: it is linted too
seen lint/spelling.sh src/base/planted.c

finish "$found violations were planted and found"
