# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_NCCL
#
# NCCL 2.18 or later: --with-nccl=DIR, else beside CUDA, else the compiler's own paths. Needs
# CUDA. Sets GS_NCCL_CPPFLAGS, GS_NCCL_LIBS, for programs that link it, and GS_NCCL_RPATH:
# gradsync loads it when it is needed. Policy: nccl* calls only in src/transport/coll_nccl*.c.
AC_DEFUN([GS_CHECK_NCCL], [
    GS_WITH([nccl], [transport between GPUs])
    gs_have_nccl=no
    AS_IF([test "$gs_want_nccl" != no && test "$gs_have_cuda" = yes], [
        GS_NCCL_CPPFLAGS=$GS_CUDA_CPPFLAGS
        GS_DASH_L([gs_nccl], [$gs_dir_nccl/lib], [nccl])
        GS_NCCL_LIBS="$GS_CUDA_LIBS $gs_nccl"
        AS_IF([test -n "$gs_dir_nccl"],
              [GS_NCCL_CPPFLAGS="-isystem $gs_dir_nccl/include $GS_NCCL_CPPFLAGS"
               GS_NCCL_RPATH="-Wl,-rpath,$gs_dir_nccl/lib -Wl,--enable-new-dtags"
               GS_NCCL_LIBS="-L$gs_dir_nccl/lib $GS_NCCL_RPATH $GS_NCCL_LIBS"])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_NCCL_CPPFLAGS" LIBS="$GS_NCCL_LIBS $LIBS"
        AC_MSG_CHECKING([for NCCL 2.18])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <nccl.h>
#if NCCL_VERSION_CODE < NCCL_VERSION (2, 18, 0)
#error NCCL 2.18 is needed
#endif]], [[int v; return ncclGetVersion (&v);]])],
                       [AC_MSG_RESULT([yes])
                        AC_COMPUTE_INT([gs_nccl_code], [NCCL_VERSION_CODE], [#include <nccl.h>])
                        GS_FOUND([nccl], [$((gs_nccl_code / 10000)).$((gs_nccl_code / 100 % 100)).$((gs_nccl_code % 100))])
                        AC_DEFINE([HAVE_NCCL], [1], [NCCL is there])],
                       [AC_MSG_RESULT([no])
                        GS_NCCL_CPPFLAGS= GS_NCCL_LIBS= GS_NCCL_RPATH=
                        GS_NOT_FOUND([nccl], [nccl.h and libnccl, version 2.18 or later,])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
    ], [test "$gs_want_nccl" = yes], [
        AC_MSG_ERROR([--with-nccl needs CUDA, which was not found or was left out])
    ])
    AC_SUBST([GS_NCCL_CPPFLAGS])
    AC_SUBST([GS_NCCL_LIBS])
    AC_SUBST([GS_NCCL_RPATH])
    AM_CONDITIONAL([HAVE_NCCL], [test "$gs_have_nccl" = yes])
])
