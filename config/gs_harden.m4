# SPDX-License-Identifier: BSD-3-Clause
#
# GS_HARDEN
#
# What makes it harder to abuse a mistake of ours, where the compiler and the linker have it,
# unless --disable-hardening: calls of libc that know the room there is (only with optimisation,
# and not beside sanitizers, which know better), guards on the stack, tables of addresses that are
# filled in at the start and then read-only. Sets GS_HARD_CPPFLAGS, GS_HARD_CFLAGS, GS_HARD_LDFLAGS and
# gs_hardened, what was taken. Call after GS_SANITIZER and GS_MODE_FLAGS.
AC_DEFUN([GS_HARDEN], [
    GS_FEATURE([hardening], [yes], [guards against abuse of mistakes in memory])
    GS_HARD_CPPFLAGS= GS_HARD_CFLAGS= GS_HARD_LDFLAGS=
    AS_IF([test "$gs_hardening" = yes], [
        AS_IF([test "$gs_sanitizer,$gs_debug,$gs_code_coverage" = no,no,no],
              [GS_HARD_TRY([GS_HARD_CPPFLAGS], [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3],
                           [GS_HARD_TRY([GS_HARD_CPPFLAGS],
                                        [-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2])])])
        GS_HARD_TRY([GS_HARD_CFLAGS], [-fstack-protector-strong])
        GS_HARD_TRY([GS_HARD_LDFLAGS], [-Wl,-z,relro -Wl,-z,now])
    ])
    AC_SUBST([GS_HARD_CPPFLAGS])
    AC_SUBST([GS_HARD_CFLAGS])
    AC_SUBST([GS_HARD_LDFLAGS])
    gs_hardened=`AS_ECHO(["$GS_HARD_CPPFLAGS $GS_HARD_CFLAGS $GS_HARD_LDFLAGS"]) | $SED dnl
                 -e 's/-U_FORTIFY_SOURCE//' -e 's/^ *//; s/ *$//; s/   */ /g'`
    AS_IF([test -z "$gs_hardened"], [gs_hardened=no])
])

# GS_HARD_TRY(VARIABLE, FLAGS, OTHERWISE): adds FLAGS to VARIABLE if a program can be made with them.
AC_DEFUN([GS_HARD_TRY], [
    gs_save_CFLAGS=$CFLAGS
    CFLAGS="-Werror $CFLAGS $GS_MODE_CFLAGS $2"
    AC_MSG_CHECKING([whether $CC takes $2])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <string.h>]], [[char text[8]; strcpy (text, "text"); return text[0];]])],
                   [AC_MSG_RESULT([yes]); gs_took=yes], [AC_MSG_RESULT([no]); gs_took=no])
    CFLAGS=$gs_save_CFLAGS
    AS_IF([test $gs_took = yes], [$1="$$1 $2"], [$3])
])
