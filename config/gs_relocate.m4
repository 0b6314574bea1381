# SPDX-License-Identifier: BSD-3-Clause
#
# GS_RELOCATE
#
# What installed files need in order to find the others from their own place, so that an installed
# tree can be moved. GS_BINDIR, GS_LIBDIR, GS_INCLUDEDIR, GS_MANDIR and GS_MODDIR are relative to
# the prefix; a folder that was put elsewhere stays absolute, and so does the way from it:
#   GS_PREFIX                  the prefix of configure
#   GS_PC_PREFIX, GS_PC_LIBDIR, GS_PC_INCLUDEDIR, GS_PC_MODDIR   in the terms of pkg-config
#   GS_PC_RPATH                linker flags with which programs find libdir; none in the system's folders
#   GS_CMAKE_PREFIX            in the terms of CMake
#   GS_BIN_TO_DATA             from bindir to datadir
#   GS_BIN_RPATH               linker flags with which a program finds libdir
#   RELOCATABLE                conditional: all folders are under the prefix
# And --with-modulefiles[=DIR], --with-modulefile-requires=LIST for environment modules:
#   HAVE_MODULEFILES, RELOCATABLE_MODULEFILES   conditionals: to be installed, under the prefix
#   GS_MODULEFILEDIR           where their folder gradsync goes
#   GS_MODULEFILE_UP           from that to the prefix
#   GS_MODULEFILE_REQUIRES     the list
AC_DEFUN([GS_RELOCATE], [
    GS_MODULEFILES
    gs_save_prefix=$prefix gs_save_exec_prefix=$exec_prefix
    AS_IF([test "$prefix" = NONE], [prefix=$ac_default_prefix])
    AS_IF([test "$exec_prefix" = NONE], [exec_prefix=$prefix])
    AC_SUBST([GS_PREFIX], [$prefix])
    GS_UNDER_PREFIX([GS_BINDIR], [$bindir])
    GS_UNDER_PREFIX([GS_LIBDIR], [$libdir])
    GS_UNDER_PREFIX([GS_INCLUDEDIR], [$includedir])
    GS_UNDER_PREFIX([GS_MANDIR], [$mandir])
    GS_UNDER_PREFIX([GS_MODDIR], [$moddir])
    GS_UNDER_PREFIX([gs_data], [$datadir])
    GS_UNDER_PREFIX([gs_modulefiles], [$GS_MODULEFILEDIR/gradsync])
    prefix=$gs_save_prefix exec_prefix=$gs_save_exec_prefix

    GS_UP_FROM([gs_bin_up], [$GS_BINDIR])
    GS_UP_FROM([gs_lib_up], [$GS_LIBDIR])
    GS_UP_FROM([GS_MODULEFILE_UP], [$gs_modulefiles])
    GS_JOIN([GS_PC_PREFIX], [\${pcfiledir}], [${gs_lib_up:+../$gs_lib_up}], [$GS_PREFIX])
    GS_JOIN([GS_CMAKE_PREFIX], [\${CMAKE_CURRENT_LIST_DIR}], [${gs_lib_up:+../../$gs_lib_up}],
            [$GS_PREFIX])
    GS_JOIN([GS_PC_LIBDIR], [\${prefix}], [$GS_LIBDIR], [])
    GS_JOIN([GS_PC_INCLUDEDIR], [\${prefix}], [$GS_INCLUDEDIR], [])
    GS_JOIN([GS_PC_MODDIR], [\${prefix}], [$GS_MODDIR], [])
    # A packager's /usr/lib is searched anyway, and its programs must not name it.
    AS_CASE([$GS_PREFIX,$GS_LIBDIR],
            [/,* | /usr,@<:@!/@:>@* | *,/lib* | *,/usr/lib*], [GS_PC_RPATH=],
            [GS_PC_RPATH=" -Wl,-rpath,\${libdir} -Wl,--enable-new-dtags"])
    AC_SUBST([GS_PC_RPATH])
    AS_CASE([$gs_bin_up,$gs_data], [,* | *,/*], [GS_BIN_TO_DATA=.],
            [GS_BIN_TO_DATA=$gs_bin_up/$gs_data])
    AS_CASE([$gs_bin_up,$GS_LIBDIR], [,* | *,/*], [GS_BIN_RPATH=],
            [GS_BIN_RPATH="-Wl,-rpath,'\$\$ORIGIN/$gs_bin_up/$GS_LIBDIR'"])
    # Installations with folders elsewhere are left out of the tests that move them.
    AS_CASE([,$GS_BINDIR,$GS_LIBDIR,$GS_INCLUDEDIR,$GS_MANDIR,$GS_MODDIR,$gs_data], [*,/*],
            [gs_relocatable=no], [gs_relocatable=yes])
    AM_CONDITIONAL([RELOCATABLE], [test $gs_relocatable = yes])
    AM_CONDITIONAL([RELOCATABLE_MODULEFILES],
                   [test $gs_relocatable,$gs_want_modulefiles = yes,yes &&
                    test -n "$GS_MODULEFILE_UP"])
    AS_IF([test $gs_want_modulefiles = yes], [gs_report_modulefiles=$gs_modulefiles],
          [gs_report_modulefiles=no])
    AC_SUBST([GS_BIN_TO_DATA])
    AC_SUBST([GS_BIN_RPATH])
])

# GS_MODULEFILES: the options of environment modules.
AC_DEFUN([GS_MODULEFILES], [
    AC_ARG_WITH([modulefiles], [AS_HELP_STRING([--with-modulefiles@<:@=DIR@:>@],
                [environment modules go to DIR/gradsync, default DATADIR/modulefiles])],
                [], [withval=yes])
    AS_CASE([$withval],
            [yes | no], [GS_MODULEFILEDIR=$datadir/modulefiles],
            [/* | '$'*], [GS_MODULEFILEDIR=$withval],
            [AC_MSG_ERROR(m4_normalize([--with-modulefiles takes yes, no or an absolute folder,
                                        not '$withval']))])
    AS_IF([test "$withval" = no], [gs_want_modulefiles=no], [gs_want_modulefiles=yes])
    AM_CONDITIONAL([HAVE_MODULEFILES], [test $gs_want_modulefiles = yes])
    AC_ARG_WITH([modulefile-requires], [AS_HELP_STRING([--with-modulefile-requires=LIST],
                [modules that gradsync's own needs loaded, such as "gcc/12 openmpi/4.1"])],
                [], [withval=no])
    AS_CASE([$withval],
            [yes], [AC_MSG_ERROR([--with-modulefile-requires needs the names of modules])],
            [no], [withval=],
            [*@<:@!A-Za-z0-9_./+=~\ -@:>@*],
            [AC_MSG_ERROR(m4_normalize([--with-modulefile-requires takes names with spaces
                                        between, not '$withval']))])
    AC_SUBST([GS_MODULEFILEDIR])
    AC_SUBST([GS_MODULEFILE_REQUIRES], [$withval])
    AC_SUBST([GS_MODULEFILE_UP])
])

# GS_UNDER_PREFIX(VARIABLE, FOLDER): FOLDER relative to prefix if it is under it, else absolute.
AC_DEFUN([GS_UNDER_PREFIX], [
    $1=$2
    # libdir is ${exec_prefix}/lib, mandir ${datarootdir}/man: variables within variables.
    for gs_level in 1 2 3 4; do
        eval $1=\"[$]$1\"
    done
    $1=${$1#"$prefix"/}
    AC_SUBST([$1])
])

# GS_UP_FROM(VARIABLE, FOLDER): the way up from FOLDER, ".." for each part; empty if absolute.
AC_DEFUN([GS_UP_FROM], [
    AS_CASE([$2], [/*], [$1=], [$1=`AS_ECHO(["$2"]) | $SED 's|@<:@^/@:>@@<:@^/@:>@*|..|g'`])
])

# GS_JOIN(VARIABLE, BASE, FOLDER, OTHERWISE): BASE/FOLDER; an absolute FOLDER alone; OTHERWISE if
# FOLDER is empty.
AC_DEFUN([GS_JOIN], [
    AS_CASE(["$3"], [''], [$1="$4"], [/*], [$1="$3"], [$1="$2/$3"])
    AC_SUBST([$1])
])
