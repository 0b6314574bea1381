# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_PMIX
#
# PMIx 3 or later, by pkg-config or --with-pmix=DIR. Sets GS_PMIX_CPPFLAGS and GS_PMIX_LIBS and
# defines HAVE_PMIX. Only src/boot/boot_pmix.c uses it.
AC_DEFUN([GS_CHECK_PMIX], [
    GS_WITH([pmix], [bootstrap under srun --mpi=pmix and mpirun])
    gs_have_pmix=no
    AS_IF([test "$gs_want_pmix" != no], [
        AS_IF([test -n "$gs_dir_pmix"],
              [GS_PMIX_CPPFLAGS="-isystem $gs_dir_pmix/include"
               GS_PMIX_LIBS="-L$gs_dir_pmix/lib -Wl,-rpath,$gs_dir_pmix/lib -lpmix"],
              [PKG_CHECK_MODULES([GS_PKG_PMIX], [pmix >= 3],
                                 [GS_PMIX_CPPFLAGS=$GS_PKG_PMIX_CFLAGS
                                  GS_PMIX_LIBS=$GS_PKG_PMIX_LIBS],
                                 [GS_PMIX_LIBS=-lpmix])])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_PMIX_CPPFLAGS" LIBS="$GS_PMIX_LIBS $LIBS"
        AC_MSG_CHECKING([for PMIx_Fence_nb])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>]],
                                        [[return PMIx_Fence_nb (0, 0, 0, 0, 0, 0);]])],
                       [AC_MSG_RESULT([yes])
                        GS_FOUND([pmix], [`$PKG_CONFIG --modversion pmix 2>/dev/null || echo found`])
                        AC_DEFINE([HAVE_PMIX], [1], [PMIx is there])],
                       [AC_MSG_RESULT([no])
                        GS_PMIX_CPPFLAGS= GS_PMIX_LIBS=
                        GS_NOT_FOUND([pmix], [pmix.h and libpmix, version 3 or later,])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
        AS_IF([test "$gs_have_pmix" = yes], [GS_RUN_PATHS([GS_PMIX_LIBS], [PMIx_Initialized])])
    ])
    AC_SUBST([GS_PMIX_CPPFLAGS])
    AC_SUBST([GS_PMIX_LIBS])
    AM_CONDITIONAL([HAVE_PMIX], [test "$gs_have_pmix" = yes])
])
