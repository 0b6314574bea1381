# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_HDF5
#
# Serial HDF5 1.10 or later, by pkg-config (hdf5-serial before hdf5, whose meaning changes when a
# parallel flavour is installed) or --with-hdf5=DIR. Sets GS_HDF5_CPPFLAGS and GS_HDF5_LIBS.
AC_DEFUN([GS_CHECK_HDF5], [
    GS_WITH([hdf5], [checkpoints])
    gs_have_hdf5=no
    AS_IF([test "$gs_want_hdf5" != no], [
        AS_IF([test -n "$gs_dir_hdf5"],
              [GS_HDF5_CPPFLAGS="-isystem $gs_dir_hdf5/include"
               GS_HDF5_LIBS="-L$gs_dir_hdf5/lib -Wl,-rpath,$gs_dir_hdf5/lib -lhdf5"],
              [PKG_CHECK_MODULES([GS_PKG_HDF5], [hdf5-serial],
                                 [GS_HDF5_CPPFLAGS=$GS_PKG_HDF5_CFLAGS
                                  GS_HDF5_LIBS=$GS_PKG_HDF5_LIBS],
                                 [PKG_CHECK_MODULES([GS_PKG_HDF5_ANY], [hdf5],
                                                    [GS_HDF5_CPPFLAGS=$GS_PKG_HDF5_ANY_CFLAGS
                                                     GS_HDF5_LIBS=$GS_PKG_HDF5_ANY_LIBS],
                                                    [GS_HDF5_LIBS=-lhdf5])])])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_HDF5_CPPFLAGS" LIBS="$GS_HDF5_LIBS $LIBS"
        AC_MSG_CHECKING([for serial HDF5])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>
#ifdef H5_HAVE_PARALLEL
#error the serial flavour is needed
#endif]], [[return H5open ();]])],
                       [AC_MSG_RESULT([yes])
                        GS_FOUND([hdf5], [`$PKG_CONFIG --modversion hdf5-serial 2>/dev/null || $PKG_CONFIG --modversion hdf5 2>/dev/null || echo found`])
                        AC_DEFINE([HAVE_HDF5], [1], [serial HDF5 is there])],
                       [AC_MSG_RESULT([no])
                        GS_HDF5_CPPFLAGS= GS_HDF5_LIBS=
                        GS_NOT_FOUND([hdf5], [hdf5.h and libhdf5, serial flavour,])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
    ])
    AC_SUBST([GS_HDF5_CPPFLAGS])
    AC_SUBST([GS_HDF5_LIBS])
    AM_CONDITIONAL([HAVE_HDF5], [test "$gs_have_hdf5" = yes])
])
