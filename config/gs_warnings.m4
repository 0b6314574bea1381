# SPDX-License-Identifier: BSD-3-Clause
#
# GS_WARNINGS
#
# Puts every warning option the C compiler understands into GS_WARN_CFLAGS, with -Werror at the
# end under --enable-werror. Each is probed, so an old or foreign compiler loses a warning only.
AC_DEFUN([GS_WARNINGS], [
    AC_LANG_PUSH([C])
    gs_warn=
    for gs_flag in -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 \
                   -Wundef -Wvla -Wpointer-arith -Wcast-qual -Wwrite-strings; do
        gs_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $gs_flag"
        AC_MSG_CHECKING([whether $CC takes $gs_flag])
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
                          [AC_MSG_RESULT([yes]); gs_warn="$gs_warn $gs_flag"],
                          [AC_MSG_RESULT([no])])
        CFLAGS=$gs_save_CFLAGS
    done
    AC_LANG_POP([C])
    AS_IF([test "$gs_werror" = yes], [gs_warn="$gs_warn -Werror"])
    AC_SUBST([GS_WARN_CFLAGS], [$gs_warn])
])

# GS_MODE_FLAG(FLAGS): into gs_mode, if the C compiler understands them.
AC_DEFUN([GS_MODE_FLAG], [
    gs_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_MSG_CHECKING([whether $CC takes $1])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes]); gs_mode="$gs_mode $1"],
                      [AC_MSG_RESULT([no])])
    CFLAGS=$gs_save_CFLAGS
])

# GS_MODE_FLAGS
#
# --enable-debug: -O0 and asserts; else asserts are compiled out and loops over arrays are
# vectorised also at -O2, which gcc before 13 does only where it costs no code at all.
# --enable-code-coverage: --coverage. In all of them products and sums are rounded one by one, as on
# GPUs and with other compilers: clang makes one operation of them where the CPU has it. Sets
# GS_MODE_CFLAGS.
AC_DEFUN([GS_MODE_FLAGS], [
    gs_mode=
    GS_MODE_FLAG([-ffp-contract=off])
    AS_IF([test "$gs_debug" = yes || test "$gs_code_coverage" = yes],
          [gs_mode="$gs_mode -O0 -g3"],
          [gs_mode="$gs_mode -DNDEBUG"
           GS_MODE_FLAG([-ftree-vectorize -fvect-cost-model=dynamic])])
    AS_IF([test "$gs_code_coverage" = yes], [gs_mode="$gs_mode --coverage"])
    AC_SUBST([GS_MODE_CFLAGS], [$gs_mode])
])
