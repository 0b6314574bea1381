# SPDX-License-Identifier: BSD-3-Clause
#
# GS_FEATURE(NAME, DEFAULT, HELP)
#
# Adds --enable-NAME. Sets gs_NAME (dashes as underscores) to yes or no, the automake
# conditional GS_NAME and, when yes, the C macro GS_NAME.
AC_DEFUN([GS_FEATURE], [
    AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$3, default $2])],
                  [], [enableval=$2])
    AS_CASE([$enableval], [yes|no], [],
            [AC_MSG_ERROR([--enable-$1 takes yes or no, not '$enableval'])])
    AS_VAR_SET([gs_]m4_translit([$1], [-], [_]), [$enableval])
    AM_CONDITIONAL([GS_]m4_toupper(m4_translit([$1], [-], [_])), [test "$enableval" = yes])
    AS_IF([test "$enableval" = yes],
          [AC_DEFINE([GS_]m4_toupper(m4_translit([$1], [-], [_])), [1], [$3])])
])
