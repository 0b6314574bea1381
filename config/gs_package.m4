# SPDX-License-Identifier: BSD-3-Clause
#
# GS_WITH(NAME, WHAT)
#
# Adds --with-NAME[=DIR] with three states, the same for every package:
#   check (default)  use it if it is found
#   yes or DIR       an error if it is not found, there if DIR is given
#   no               leave it out
# Sets gs_want_NAME to check, yes or no, and gs_dir_NAME to DIR or nothing. The report has NAME
# among the transports if WHAT begins with that word.
AC_DEFUN([GS_WITH], [
    m4_append_uniq([gs_packages], [$1], [, ])
    m4_if(m4_substr([$2], 0, 9), [transport], [m4_append_uniq([gs_transports], [$1], [, ])])
    AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1@<:@=DIR@:>@], [$2; default: if found])],
                [], [withval=check])
    gs_dir_$1=
    AS_CASE([$withval],
            [check|yes|no], [gs_want_$1=$withval],
            [/*], [gs_want_$1=yes; gs_dir_$1=$withval],
            [AC_MSG_ERROR([--with-$1 takes yes, no, check or an absolute folder, not '$withval'])])
])

# GS_RUN_PATHS(LIBS, FUNCTION)
#
# Takes the run paths, which pkg-config may give, out of the variable LIBS where a program that
# calls FUNCTION, without arguments, runs without: the loader finds the library by itself, and
# packagers refuse paths that say the same.
AC_DEFUN([GS_RUN_PATHS], [
    gs_bare=`AS_ECHO([" $$1"]) | $SED -e 's/ -Wl,-rpath@<:@ =,@:>@\(-Wl,\)*@<:@^ @:>@*//g' dnl
                                      -e 's/ -Wl,--enable-new-dtags//g'`
    gs_save_LIBS=$LIBS
    LIBS="$gs_bare $LIBS"
    AC_RUN_IFELSE([AC_LANG_CALL([], [$2])], [$1=$gs_bare], [], [:])
    LIBS=$gs_save_LIBS
])

# GS_DASH_L(VARIABLE, FOLDER, NAME)
#
# Sets VARIABLE to what links libNAME of FOLDER: -lNAME, or the file by its name, such as
# -l:libNAME.so.13, where there is no libNAME.so, as in the packages of the Python index.
AC_DEFUN([GS_DASH_L], [
    $1=-l$3
    for gs_file in "$2"/lib$3.so.*; do
        AS_IF([test -e "$gs_file" && test ! -e "$2/lib$3.so"], [$1=-l:${gs_file@%:@@%:@*/}])
    done
])

# GS_FOUND(NAME, VERSION) and GS_NOT_FOUND(NAME, LOOKED-FOR)
#
# End a package's macro: set gs_have_NAME and gs_version_NAME for the report and the conditional
# HAVE_NAME; a package asked for by name that is not found is an error that says what was sought.
AC_DEFUN([GS_FOUND], [gs_have_$1=yes; gs_version_$1=$2])
AC_DEFUN([GS_NOT_FOUND], [
    gs_have_$1=no
    AS_IF([test "$gs_want_$1" = yes],
          [AC_MSG_ERROR([--with-$1 was given, but $2 was not found${gs_dir_$1:+ under $gs_dir_$1}; see config.log])])
])
