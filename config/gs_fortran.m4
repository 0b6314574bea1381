# SPDX-License-Identifier: BSD-3-Clause
#
# GS_PROG_FC
#
# --enable-fortran=yes|no|check, and the compiler. To be called before LT_INIT.
AC_DEFUN([GS_PROG_FC], [
    GS_THREE_STATES([fortran], [Fortran binding; default: if a compiler is found])
    AS_IF([test "$gs_want_fortran" = no], [FC=no])
    AC_PROG_FC([gfortran flang-new flang ifx nvfortran ftn xlf2008_r nagfor])
])

# GS_FORTRAN
#
# The Fortran binding. Looks for what it needs of Fortran 2008 and 2018, then for assumed-rank
# arguments of any type. Where these do not work, or with --disable-fortran-descriptors, the
# collectives take only type(c_ptr), count, dtype. Sets the conditionals HAVE_FORTRAN,
# HAVE_FORTRAN_DESCRIPTORS and HAVE_FORTRAN_MPI (mpi_f08 works with this compiler), GS_FCFLAGS
# (warnings, debugging, coverage, sanitizers), and moddir.
AC_DEFUN([GS_FORTRAN], [
    GS_THREE_STATES([fortran-descriptors],
                    [Fortran arrays of any type and rank as arguments; default: if they work])
    gs_have_fortran=no gs_have_descriptors=no gs_have_fortran_mpi=no gs_version_fortran=
    AS_IF([test -n "$FC" && test "$FC" != no], [
        AC_LANG_PUSH([Fortran])
        AC_FC_SRCEXT([f90], [GS_FORTRAN_COMPILER], [:])
        AS_IF([test "$gs_have_fortran" = yes], [
            AC_FC_MODULE_FLAG
            AC_FC_MODULE_OUTPUT_FLAG
            AC_FC_MODULE_EXTENSION
            GS_FORTRAN_FLAGS
            gs_version_fortran=`$FC --version 2>/dev/null | $SED 1q`
            gs_version_fortran=${gs_version_fortran:-$FC}
            AS_IF([test "$gs_want_fortran_descriptors" != no], [GS_FORTRAN_DESCRIPTORS])
            AS_IF([test "$gs_have_mpi" = yes], [GS_FORTRAN_MPI])
        ])
        AC_LANG_POP([Fortran])
    ])
    AS_IF([test "$gs_want_fortran" = yes && test "$gs_have_fortran" = no],
          [AC_MSG_ERROR(m4_normalize([--enable-fortran was given, but no Fortran compiler that works
                                      was found${FC:+ (tried $FC)}; see config.log]))])
    AS_IF([test "$gs_want_fortran_descriptors" = yes && test "$gs_have_descriptors" = no],
          [AC_MSG_ERROR(m4_normalize([--enable-fortran-descriptors was given, but
                                      ISO_Fortran_binding.h and ${FC:-a Fortran compiler} do not work
                                      together; see config.log]))])
    AM_CONDITIONAL([HAVE_FORTRAN], [test "$gs_have_fortran" = yes])
    AM_CONDITIONAL([HAVE_FORTRAN_DESCRIPTORS], [test "$gs_have_descriptors" = yes])
    AM_CONDITIONAL([HAVE_FORTRAN_MPI], [test "$gs_have_fortran_mpi" = yes])
    AC_SUBST([moddir], ['${includedir}/gradsync'])
])

# GS_THREE_STATES(NAME, HELP): --enable-NAME=yes|no|check; sets gs_want_NAME, dashes as
# underscores.
AC_DEFUN([GS_THREE_STATES], [
    AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [enableval=check])
    AS_CASE([$enableval], [yes|no|check], [],
            [AC_MSG_ERROR([--enable-$1 takes yes, no or check, not '$enableval'])])
    AS_VAR_SET([gs_want_]m4_translit([$1], [-], [_]), [$enableval])
])

# GS_FORTRAN_COMPILER: sets gs_have_fortran. A sanitizer's run-time library comes with the C
# compiler, so with one both compilers must be of the same family.
AC_DEFUN([GS_FORTRAN_COMPILER], [
    AC_MSG_CHECKING([whether $FC knows iso_c_binding and the error stop of Fortran 2018])
    gs_save_FCFLAGS=$FCFLAGS
    FCFLAGS="$FCFLAGS $GS_SANITIZER_FLAGS"
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
program probe
  use, intrinsic :: iso_c_binding, only: c_size_t, c_sizeof
  implicit none
  character(:), allocatable :: text
  integer(c_size_t) :: n
  n = c_sizeof(n)
  text = 'n is negative'
  if (n < 0) error stop text // '!'
end program probe]])], [gs_have_fortran=yes])
    FCFLAGS=$gs_save_FCFLAGS
    AC_MSG_RESULT([$gs_have_fortran])
    AS_IF([test "$gs_sanitizer" != no && test "$ac_cv_fc_compiler_gnu" = yes], [
        AC_MSG_CHECKING([whether the sanitizers of $CC and $FC are the same])
        AS_CASE([`$CC --version 2>/dev/null`],
                [*clang*], [gs_have_fortran=no])
        AC_MSG_RESULT([$gs_have_fortran])
    ])
])

# GS_FORTRAN_FLAGS: sets GS_FCFLAGS; warnings are probed one by one. Two are taken back for the
# tests: where they compare reals equal bits are meant, and getters may be left out of an .and.
# N.B. with -fcoarray=single or lib gfortran 12 makes types with allocatable components larger
# than a module says that was compiled without; one compiled with it gives all programs the same.
AC_DEFUN([GS_FORTRAN_FLAGS], [
    GS_FCFLAGS=
    AS_IF([test "$gs_debug" = yes || test "$gs_code_coverage" = yes], [gs_fc_mode="-O0 -g"],
          [gs_fc_mode=])
    AS_IF([test "$gs_code_coverage" = yes], [gs_fc_mode="$gs_fc_mode --coverage"])
    AS_IF([test "$gs_werror" = yes], [gs_fc_mode="$gs_fc_mode -Werror"])
    gs_save_FCFLAGS=$FCFLAGS
    for gs_flag in -fcoarray=single -std=f2018 -Wall -Wextra -pedantic -Wno-compare-reals \
                   -Wno-function-elimination $gs_fc_mode; do
        FCFLAGS="$gs_save_FCFLAGS $GS_FCFLAGS $gs_flag"
        AC_MSG_CHECKING([whether $FC takes $gs_flag])
        AC_LINK_IFELSE([AC_LANG_PROGRAM()],
                       [AC_MSG_RESULT([yes]); GS_FCFLAGS="$GS_FCFLAGS $gs_flag"],
                       [AC_MSG_RESULT([no])])
    done
    FCFLAGS=$gs_save_FCFLAGS
    # gfortran computes with the strides of arguments that are not there, and does not use them.
    AS_IF([test -n "$GS_SANITIZER_FLAGS"],
          [GS_FCFLAGS="$GS_FCFLAGS $GS_SANITIZER_FLAGS -fno-sanitize=signed-integer-overflow"])
    AC_SUBST([GS_FCFLAGS])
])

# GS_FORTRAN_DESCRIPTORS: sets gs_have_descriptors, and GS_CFI_CPPFLAGS to where
# ISO_Fortran_binding.h is when only the Fortran compiler knows: gfortran says so, flang has it
# beside its programs, and there it comes before that of gcc. A program tries whether type,
# kind and extents arrive: gfortran before 12 ends it on allocatable scalars and null pointers,
# flang before 20 has no arguments of any rank.
AC_DEFUN([GS_FORTRAN_DESCRIPTORS], [
    AC_MSG_CHECKING([for arguments of any type and rank])
    gs_flang=`$FC --version 2>/dev/null | $SED -n 's|^InstalledDir: \(.*\)/bin$|\1|p'`
    AS_IF([test -n "$gs_flang"], [gs_flang="-isystem $gs_flang/include/flang"])
    gs_save_CPPFLAGS=$CPPFLAGS gs_save_LIBS=$LIBS
    for gs_flag in "$gs_flang" "-idirafter `$FC -print-file-name=include 2>/dev/null`"; do
        CPPFLAGS="$gs_save_CPPFLAGS $gs_flag"
        AC_LANG_PUSH([C])
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <ISO_Fortran_binding.h>
int gs_probe (CFI_cdesc_t *, CFI_cdesc_t *, CFI_cdesc_t *, CFI_cdesc_t *);
int gs_probe (CFI_cdesc_t *a, CFI_cdesc_t *b, CFI_cdesc_t *c, CFI_cdesc_t *d)
{
    return a->type == CFI_type_double && a->elem_len == 8 && a->rank == 2 &&
           a->dim[0].extent == 2 && a->dim[1].extent == 3 && a->dim[1].sm == 16 &&
           b->type == CFI_type_float_Complex && b->elem_len == 8 && b->rank == 1 &&
           b->dim[0].extent == 2 && b->dim[0].sm == 16 &&
           c->type == CFI_type_int32_t && c->elem_len == 4 && c->rank == 0 && c->base_addr &&
           d->type == CFI_type_float && d->elem_len == 4 && d->rank == 1 && !d->base_addr;
}]])],        [cp conftest.$ac_objext gs_probe.$ac_objext], [rm -f gs_probe.$ac_objext])
        AC_LANG_POP([C])
        AS_IF([test -f gs_probe.$ac_objext], [
            LIBS="gs_probe.$ac_objext $gs_save_LIBS"
            AC_RUN_IFELSE([GS_DESCRIPTOR_PROGRAM], [gs_have_descriptors=yes], [],
                          [AC_LINK_IFELSE([GS_DESCRIPTOR_PROGRAM], [gs_have_descriptors=yes])])
        ])
        AS_IF([test "$gs_have_descriptors" = yes], [GS_CFI_CPPFLAGS=$gs_flag; break])
    done
    CPPFLAGS=$gs_save_CPPFLAGS LIBS=$gs_save_LIBS
    rm -f gs_probe.$ac_objext
    AC_MSG_RESULT([$gs_have_descriptors])
    AC_SUBST([GS_CFI_CPPFLAGS])
])
# Its module is named so that configure removes it.
m4_define([GS_DESCRIPTOR_PROGRAM], [AC_LANG_SOURCE([[
module conftest
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  interface
    function gs_probe(a, b, c, d) bind(c) result(right)
      import :: c_int
      type(*), dimension(..), asynchronous, intent(inout) :: a, b, c, d
      integer(c_int) :: right
    end function gs_probe
  end interface
contains
  subroutine through(a, b, c, d)
    type(*), dimension(..), asynchronous, intent(inout) :: a, b, c, d
    if (gs_probe(a, b, c, d) /= 1) error stop 1
  end subroutine through
end module conftest
program main
  use conftest
  implicit none
  double precision :: a(2, 3)
  complex :: b(3)
  integer(c_int), allocatable :: c
  real, pointer :: d(:)
  allocate (c)
  nullify (d)
  call through(a, b(1:3:2), c, d)
end program main]])])

# GS_FORTRAN_MPI: sets gs_have_fortran_mpi, GS_FORTRAN_MPI_FCFLAGS and, for the tests,
# GS_FORTRAN_MPI_LIBS.
AC_DEFUN([GS_FORTRAN_MPI], [
    AC_ARG_VAR([MPIFC], [MPI compiler wrapper for Fortran])
    AC_PATH_PROGS([MPIFC], [${MPIFC:-mpifort mpif90}], [no], [`AS_DIRNAME(["$MPICC"])`$PATH_SEPARATOR$PATH])
    AS_IF([gs_mpi_show=`"$MPIFC" --showme:compile 2>/dev/null`],
          [GS_FORTRAN_MPI_FCFLAGS=$gs_mpi_show
           GS_FORTRAN_MPI_LIBS=`"$MPIFC" --showme:link 2>/dev/null`],
          [gs_mpi_show=`"$MPIFC" -show 2>/dev/null`],
          [GS_FORTRAN_MPI_FCFLAGS=`GS_PICK_FLAGS([-I* | -J* | -M*], [$gs_mpi_show])`
           GS_FORTRAN_MPI_LIBS=`GS_PICK_FLAGS([-L* | -l* | -Wl*], [$gs_mpi_show])`])
    gs_save_FCFLAGS=$FCFLAGS gs_save_LIBS=$LIBS
    FCFLAGS="$FCFLAGS $GS_FORTRAN_MPI_FCFLAGS" LIBS="$GS_FORTRAN_MPI_LIBS $LIBS"
    AC_MSG_CHECKING([for a usable mpi_f08 module])
    AC_LINK_IFELSE([AC_LANG_SOURCE([[
program probe
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
  integer :: rank
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank)
  if (comm%MPI_VAL == rank) error stop 1
end program probe]])], [gs_have_fortran_mpi=yes])
    AC_MSG_RESULT([$gs_have_fortran_mpi])
    FCFLAGS=$gs_save_FCFLAGS LIBS=$gs_save_LIBS
    AC_SUBST([GS_FORTRAN_MPI_FCFLAGS])
    AC_SUBST([GS_FORTRAN_MPI_LIBS])
])
