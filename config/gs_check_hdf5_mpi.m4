# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_HDF5_MPI
#
# A parallel HDF5 of the MPI that GS_CHECK_MPI has found, by pkg-config (Debian's names), beside
# the serial one of GS_CHECK_HDF5. A test uses it as an application would, and skips without it;
# nothing else does. Sets GS_HDF5_MPI_CPPFLAGS and GS_HDF5_MPI_LIBS.
AC_DEFUN([GS_CHECK_HDF5_MPI], [
    gs_have_hdf5_mpi=no GS_HDF5_MPI_CPPFLAGS= GS_HDF5_MPI_LIBS=
    AS_IF([test "$gs_have_hdf5$gs_have_mpi" = yesyes], [
        AC_MSG_CHECKING([for parallel HDF5, for a test])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        for gs_flavour in openmpi mpich; do
            gs_flags=`$PKG_CONFIG --cflags hdf5-$gs_flavour 2>/dev/null` || continue
            GS_HDF5_MPI_CPPFLAGS=`echo " $GS_MPI_CPPFLAGS $gs_flags" | $SED 's/ -I/ -isystem /g'`
            GS_HDF5_MPI_LIBS=`$PKG_CONFIG --libs hdf5-$gs_flavour`
            CPPFLAGS="$gs_save_CPPFLAGS $GS_HDF5_MPI_CPPFLAGS -DGS_FLAVOUR_$gs_flavour"
            LIBS="$GS_HDF5_MPI_LIBS $gs_save_LIBS"
            AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error the parallel flavour is needed
#endif
#if defined OPEN_MPI != defined GS_FLAVOUR_openmpi
#error it is of another MPI
#endif]], [[return H5Pset_fapl_mpio (H5open (), MPI_COMM_WORLD, MPI_INFO_NULL);]])],
                           [gs_have_hdf5_mpi=$gs_flavour; break])
        done
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
        AC_MSG_RESULT([$gs_have_hdf5_mpi])
    ])
    AC_SUBST([GS_HDF5_MPI_CPPFLAGS])
    AC_SUBST([GS_HDF5_MPI_LIBS])
    AM_CONDITIONAL([HAVE_HDF5_MPI], [test "$gs_have_hdf5_mpi" != no])
])
