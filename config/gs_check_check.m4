# SPDX-License-Identifier: BSD-3-Clause
#
# GS_CHECK_CHECK
#
# The unit test library Check, by pkg-config. Only make check needs it.
AC_DEFUN([GS_CHECK_CHECK], [
    GS_WITH([check], [unit tests, for make check])
    gs_have_check=no
    AS_IF([test "$gs_want_check" != no],
          [PKG_CHECK_MODULES([CHECK], [check >= 0.10],
                             [GS_FOUND([check], [`$PKG_CONFIG --modversion check`])],
                             [GS_NOT_FOUND([check], [check.pc, version 0.10 or later,])])])
    AM_CONDITIONAL([HAVE_CHECK], [test "$gs_have_check" = yes])
])
