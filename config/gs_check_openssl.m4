# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_OPENSSL
#
# OpenSSL's libcrypto, 1.1.1 or later, by pkg-config or --with-openssl=DIR. Sets
# GS_OPENSSL_CPPFLAGS and GS_OPENSSL_LIBS and defines HAVE_OPENSSL. Only src/boot/wire.c uses it.
AC_DEFUN([GS_CHECK_OPENSSL], [
    GS_WITH([openssl], [bootstrap by an id that the program carries])
    gs_have_openssl=no
    AS_IF([test "$gs_want_openssl" != no], [
        AS_IF([test -n "$gs_dir_openssl"],
              [gs_lib=lib
               AS_IF([test -e "$gs_dir_openssl/lib64/libcrypto.so"], [gs_lib=lib64])
               GS_OPENSSL_CPPFLAGS="-isystem $gs_dir_openssl/include"
               GS_OPENSSL_LIBS="-L$gs_dir_openssl/$gs_lib -Wl,-rpath,$gs_dir_openssl/$gs_lib -lcrypto"],
              [PKG_CHECK_MODULES([GS_PKG_OPENSSL], [libcrypto >= 1.1.1],
                                 [GS_OPENSSL_CPPFLAGS=$GS_PKG_OPENSSL_CFLAGS
                                  GS_OPENSSL_LIBS=$GS_PKG_OPENSSL_LIBS],
                                 [GS_OPENSSL_LIBS=-lcrypto])])
        gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
        CPPFLAGS="$CPPFLAGS $GS_OPENSSL_CPPFLAGS" LIBS="$GS_OPENSSL_LIBS $LIBS"
        AC_MSG_CHECKING([for HMAC of libcrypto])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <openssl/hmac.h>]],
                                        [[return !HMAC (EVP_sha256 (), "", 0, 0, 0, 0, 0);]])],
                       [AC_MSG_RESULT([yes])
                        GS_FOUND([openssl], [`$PKG_CONFIG --modversion libcrypto 2>/dev/null || echo found`])
                        AC_DEFINE([HAVE_OPENSSL], [1], [libcrypto of OpenSSL is there])],
                       [AC_MSG_RESULT([no])
                        GS_OPENSSL_CPPFLAGS= GS_OPENSSL_LIBS=
                        GS_NOT_FOUND([openssl], [openssl/hmac.h and libcrypto, version 1.1.1 or later,])])
        CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
    ])
    AC_SUBST([GS_OPENSSL_CPPFLAGS])
    AC_SUBST([GS_OPENSSL_LIBS])
    AM_CONDITIONAL([HAVE_OPENSSL], [test "$gs_have_openssl" = yes])
])
