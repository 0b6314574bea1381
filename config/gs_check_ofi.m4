# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_OFI
#
# libfabric 1.14 or later, by pkg-config or --with-ofi=DIR. Sets GS_OFI_CPPFLAGS and GS_OFI_LIBS.
# Only the module gradsync-ofi.so uses them; libgradsync never links to libfabric.
AC_DEFUN([GS_CHECK_OFI], [
    GS_WITH([ofi], [transport between hosts on libfabric (a module loaded on demand)])
    gs_have_ofi=no
    AS_IF([test "$gs_want_ofi" != no], [
        AS_IF([test -n "$gs_dir_ofi"],
              [GS_OFI_CPPFLAGS="-isystem $gs_dir_ofi/include"
               GS_OFI_LIBS="-L$gs_dir_ofi/lib -Wl,-rpath,$gs_dir_ofi/lib -lfabric"],
              [PKG_CHECK_MODULES([GS_PKG_OFI], [libfabric >= 1.14],
                                 [GS_OFI_CPPFLAGS=$GS_PKG_OFI_CFLAGS
                                  GS_OFI_LIBS=$GS_PKG_OFI_LIBS],
                                 [GS_OFI_LIBS=-lfabric])])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_OFI_CPPFLAGS" LIBS="$GS_OFI_LIBS $LIBS"
        AC_MSG_CHECKING([for libfabric 1.14])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <rdma/fabric.h>
#if FI_MAJOR_VERSION < 1 || (FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION < 14)
#error libfabric 1.14 is needed
#endif]], [[return fi_version () == 0;]])],
                       [AC_MSG_RESULT([yes])
                        GS_FOUND([ofi], [`$PKG_CONFIG --modversion libfabric 2>/dev/null || echo found`])
                        AC_DEFINE([HAVE_OFI], [1], [libfabric is there])],
                       [AC_MSG_RESULT([no])
                        GS_OFI_CPPFLAGS= GS_OFI_LIBS=
                        GS_NOT_FOUND([ofi], [rdma/fabric.h and libfabric, version 1.14 or later,])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
        AS_IF([test "$gs_have_ofi" = yes], [GS_RUN_PATHS([GS_OFI_LIBS], [fi_version])])
    ])
    AC_SUBST([GS_OFI_CPPFLAGS])
    AC_SUBST([GS_OFI_LIBS])
    AM_CONDITIONAL([HAVE_OFI], [test "$gs_have_ofi" = yes])
])
