# SPDX-License-Identifier: BSD-3-Clause
#
# GS_FORTRAN
#
# --enable-fortran=yes|no|check: the Fortran binding. Looks for a Fortran 2008 compiler with
# iso_c_binding, and for assumed-rank arguments of any type with ISO_Fortran_binding.h
# (Fortran 2018). Without the latter, or with --disable-fortran-descriptors, only the procedures
# that take type(c_ptr), count, dtype are built. Sets the conditionals HAVE_FORTRAN,
# HAVE_FORTRAN_DESCRIPTORS and HAVE_FORTRAN_MPI (mpi_f08 works with this compiler).
AC_DEFUN([GS_FORTRAN], [
    AC_ARG_ENABLE([fortran], [AS_HELP_STRING([--enable-fortran], [Fortran binding; default: if a compiler is found])],
                  [], [enableval=check])
    gs_want_fortran=$enableval
    gs_have_fortran=no gs_have_descriptors=no gs_have_fortran_mpi=no
    AS_IF([test "$gs_want_fortran" != no], [
        AC_PROG_FC([gfortran flang-new flang ifx nvfortran ftn xlf2008_r nagfor])
    ])
    AS_IF([test -n "$FC"], [
        AC_LANG_PUSH([Fortran])
        AC_FC_SRCEXT([f90])
        AC_MSG_CHECKING([for Fortran 2008 with iso_c_binding])
        AC_LINK_IFELSE([AC_LANG_SOURCE([[
program probe
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_size_t) :: n
  n = c_sizeof(n)
  if (n < 0) error stop 1
end program probe]])], [gs_have_fortran=yes], [gs_have_fortran=no])
        AC_MSG_RESULT([$gs_have_fortran])
        AC_LANG_POP([Fortran])
    ])
    AS_IF([test "$gs_want_fortran" = yes && test "$gs_have_fortran" = no],
          [AC_MSG_ERROR([--enable-fortran was given, but no Fortran 2008 compiler with iso_c_binding was found])])
    AC_ARG_ENABLE([fortran-descriptors], [AS_HELP_STRING([--disable-fortran-descriptors],
                  [only type(c_ptr) procedures in the Fortran binding; default: what the compiler can do])],
                  [], [enableval=check])
    AS_IF([test "$gs_have_fortran" = yes && test "$enableval" != no], [GS_FORTRAN_DESCRIPTORS])
    AS_IF([test "$enableval" = yes && test "$gs_have_descriptors" = no],
          [AC_MSG_ERROR([--enable-fortran-descriptors was given, but the Fortran compiler has no working assumed rank with ISO_Fortran_binding.h])])
    AS_IF([test "$gs_have_fortran" = yes && test "$gs_have_mpi" = yes], [GS_FORTRAN_MPI])
    AS_IF([test "$gs_have_fortran" = yes], [gs_version_fortran=$FC], [gs_version_fortran=])
    AM_CONDITIONAL([HAVE_FORTRAN], [test "$gs_have_fortran" = yes])
    AM_CONDITIONAL([HAVE_FORTRAN_DESCRIPTORS], [test "$gs_have_descriptors" = yes])
    AM_CONDITIONAL([HAVE_FORTRAN_MPI], [test "$gs_have_fortran_mpi" = yes])
    AC_SUBST([moddir], ['${includedir}/gradsync'])
])

# GS_FORTRAN_DESCRIPTORS: sets gs_have_descriptors.
AC_DEFUN([GS_FORTRAN_DESCRIPTORS], [
    AC_CHECK_HEADER([ISO_Fortran_binding.h], [
        AC_LANG_PUSH([Fortran])
        AC_MSG_CHECKING([for assumed-rank arguments of any type])
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
module probe
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine probe_c(buf) bind(c)
      type(*), dimension(..), asynchronous, intent(inout) :: buf
    end subroutine probe_c
  end interface
contains
  subroutine call_it(buf)
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    call probe_c(buf)
  end subroutine call_it
end module probe]])], [gs_have_descriptors=yes], [gs_have_descriptors=no])
        AC_MSG_RESULT([$gs_have_descriptors])
        AC_LANG_POP([Fortran])
    ])
])

# GS_FORTRAN_MPI: sets gs_have_fortran_mpi and GS_FORTRAN_MPI_FLAGS.
AC_DEFUN([GS_FORTRAN_MPI], [
    AC_ARG_VAR([MPIFC], [MPI compiler wrapper for Fortran])
    AC_PATH_PROGS([MPIFC], [mpifort mpif90], [no], [`dirname "$MPICC"`$PATH_SEPARATOR$PATH])
    AS_IF([gs_mpi_show=`"$MPIFC" --showme:compile 2>/dev/null`], [GS_FORTRAN_MPI_FLAGS=$gs_mpi_show],
          [gs_mpi_show=`"$MPIFC" -show 2>/dev/null`],
          [GS_FORTRAN_MPI_FLAGS=`GS_PICK_FLAGS([-I* | -J* | -M*], [$gs_mpi_show])`])
    gs_save_FCFLAGS=$FCFLAGS
    FCFLAGS="$FCFLAGS $GS_FORTRAN_MPI_FLAGS"
    AC_LANG_PUSH([Fortran])
    AC_MSG_CHECKING([for a usable mpi_f08 module])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
module probe
  use mpi_f08, only: MPI_Comm
  implicit none
contains
  pure integer function handle(comm)
    type(MPI_Comm), intent(in) :: comm
    handle = comm%MPI_VAL
  end function handle
end module probe]])], [gs_have_fortran_mpi=yes], [gs_have_fortran_mpi=no])
    AC_MSG_RESULT([$gs_have_fortran_mpi])
    AC_LANG_POP([Fortran])
    FCFLAGS=$gs_save_FCFLAGS
    AC_SUBST([GS_FORTRAN_MPI_FLAGS])
])
