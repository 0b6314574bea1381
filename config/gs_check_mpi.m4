# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_MPI
#
# An MPI 3 library, through its compiler wrapper: MPICC, --with-mpi=DIR (DIR/bin/mpicc) or mpicc
# in PATH. Sets GS_MPI_CPPFLAGS and GS_MPI_LIBS from what the wrapper says, and MPIRUN for tests.
# Only the module gradsync-mpi.so uses them; libgradsync never links to MPI.
AC_DEFUN([GS_CHECK_MPI], [
    GS_WITH([mpi], [transport between hosts (a module loaded on demand)])
    AC_ARG_VAR([MPICC], [MPI compiler wrapper for C])
    gs_have_mpi=no
    AS_IF([test "$gs_want_mpi" != no], [
        AS_IF([test -n "$gs_dir_mpi"], [MPICC=$gs_dir_mpi/bin/mpicc])
        AC_PATH_PROGS([MPICC], [${MPICC:-mpicc mpicc.openmpi mpicc.mpich}])
        AS_IF([gs_mpi_show=`"$MPICC" --showme:compile 2>/dev/null`],
              [GS_MPI_CPPFLAGS=$gs_mpi_show
               GS_MPI_LIBS=`"$MPICC" --showme:link 2>/dev/null`],
              [gs_mpi_show=`"$MPICC" -show 2>/dev/null`],
              [gs_mpi_show=`echo "$gs_mpi_show" | $SED 's/^@<:@^ @:>@* *//'`
               GS_MPI_CPPFLAGS=`GS_PICK_FLAGS([-I* | -D*], [$gs_mpi_show])`
               GS_MPI_LIBS=`GS_PICK_FLAGS([-L* | -l* | -Wl*], [$gs_mpi_show])`])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_MPI_CPPFLAGS" LIBS="$GS_MPI_LIBS $LIBS"
        AC_MSG_CHECKING([for MPI 3])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#if MPI_VERSION < 3
#error MPI 3 is needed
#endif]], [[MPI_Comm c; MPI_Request r; return MPI_Comm_idup (MPI_COMM_WORLD, &c, &r);]])],
                       [AC_MSG_RESULT([yes])
                        GS_MPI_NAME([gs_mpi_name])
                        GS_FOUND([mpi], ["$gs_mpi_name, $MPICC"])
                        AC_DEFINE([HAVE_MPI], [1], [MPI is there])],
                       [AC_MSG_RESULT([no])
                        GS_MPI_CPPFLAGS= GS_MPI_LIBS=
                        GS_NOT_FOUND([mpi], [an mpicc of an MPI 3 library])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
    ])
    GS_MPI_SYSTEM_CPPFLAGS=`echo " $GS_MPI_CPPFLAGS" | $SED 's/ -I/ -isystem /g'`
    AC_SUBST([GS_MPI_CPPFLAGS], [$GS_MPI_SYSTEM_CPPFLAGS])
    AC_SUBST([GS_MPI_LIBS])
    AC_PATH_PROGS([MPIRUN], [mpirun mpiexec], [no])
    AM_CONDITIONAL([HAVE_MPI], [test "$gs_have_mpi" = yes])
])

# GS_PICK_FLAGS(PATTERN, WORDS): shell text that prints the WORDS that match the case PATTERN.
m4_define([GS_PICK_FLAGS], [for gs_word in $2; do case $gs_word in $1@:}@ printf '%s ' "$gs_word";; esac; done])

# GS_MPI_NAME(VARIABLE): which MPI mpi.h is of, such as Open MPI 4.1.4, as its macros say.
m4_define([GS_MPI_NAME], [
    AC_LANG_CONFTEST([AC_LANG_SOURCE([[#include <mpi.h>
#ifdef OMPI_MAJOR_VERSION
gs: Open MPI OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
#elif defined I_MPI_VERSION
gs: Intel MPI I_MPI_VERSION
#elif defined MPICH_VERSION
gs: MPICH MPICH_VERSION
#else
gs: MPI MPI_VERSION MPI_SUBVERSION
#endif
]])])
    $1=`$CC -E $CPPFLAGS conftest.$ac_ext 2>/dev/null | awk '/^gs: / {
        gsub (/"/, "")
        for (i = 2; i <= NF; i++)
            printf "%s%s", $i, i == NF ? "\n" : $i ~ /^@<:@0-9@:>@+$/ ? "." : " "
    }'`
])
