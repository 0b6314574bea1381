# SPDX-License-Identifier: BSD-3-Clause
#
# GS_SANITIZER
#
# --enable-sanitizer=LIST (address,undefined,thread; fuzzer-no-link, of clang): adds the flags to GS_SANITIZER_FLAGS for
# everything that is compiled and linked; an error if the compiler does not know them. Without
# sanitizers GS_Z_DEFS makes a missing library fail our link, not the user's; with them it stays
# empty, because clang leaves the sanitizer's own symbols to the program.
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
    GS_Z_DEFS=
    AS_IF([test "$gs_sanitizer" = no], [GS_Z_DEFS=-Wl,-z,defs])
    AC_SUBST([GS_SANITIZER_FLAGS])
    AC_SUBST([GS_Z_DEFS])
    AM_CONDITIONAL([GS_SANITIZED], [test "$gs_sanitizer" != no])
    AS_CASE([$gs_sanitizer], [*fuzzer*], [gs_fuzzed=yes], [gs_fuzzed=no])
    AM_CONDITIONAL([GS_FUZZED], [test $gs_fuzzed = yes])
])
