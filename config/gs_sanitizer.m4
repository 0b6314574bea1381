# SPDX-License-Identifier: BSD-3-Clause
#
# GS_SANITIZER
#
# --enable-sanitizer=LIST (address,undefined,thread): adds the flags to GS_SANITIZER_FLAGS for
# everything that is compiled and linked; an error if the compiler does not know them.
AC_DEFUN([GS_SANITIZER], [
    AC_ARG_ENABLE([sanitizer], [AS_HELP_STRING([--enable-sanitizer=LIST],
                  [address,undefined,thread: build with these sanitizers, default none])],
                  [], [enableval=no])
    gs_sanitizer=$enableval
    GS_SANITIZER_FLAGS=
    AS_IF([test "$gs_sanitizer" = yes], [AC_MSG_ERROR([--enable-sanitizer needs a list, for example address,undefined])])
    AS_IF([test "$gs_sanitizer" != no], [
        GS_SANITIZER_FLAGS="-fsanitize=$gs_sanitizer -fno-omit-frame-pointer -fno-sanitize-recover=all"
        gs_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $GS_SANITIZER_FLAGS"
        AC_MSG_CHECKING([whether $CC takes $GS_SANITIZER_FLAGS])
        AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
                       [AC_MSG_ERROR([the compiler cannot build with --enable-sanitizer=$gs_sanitizer])])
        CFLAGS=$gs_save_CFLAGS
    ])
    AC_SUBST([GS_SANITIZER_FLAGS])
    AM_CONDITIONAL([GS_SANITIZED], [test "$gs_sanitizer" != no])
])
