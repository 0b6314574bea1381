! SPDX-License-Identifier: BSD-3-Clause
! gradsync_stats_array - statistics and comparisons of Fortran arrays of any type and rank
! (Fortran 2018).
!
! What gradsync_array says of arrays, stream, as, stat and errmsg holds.
!
! N.B. the order of arguments is what tells these from the procedures of gradsync_stats.
module gradsync_stats_array
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_intptr_t
  use gradsync_array, only: array_args, conclude_array, is_open, pack_args
  use gradsync_stats, only: gs_compare, gs_stats, tolerance_or_none
  use gradsync_support, only: text_to_c
  use gradsync_types, only: gs_comm, gs_moments
  implicit none
  private

  public :: gs_stats, gs_compare

  ! Moments of each feature over the samples of all ranks. Collective over [comm].
  !
  !   x        in   the last dimension runs over the samples of this rank, the others over the
  !                 features; an array of rank 1 is one feature, a scalar one value
  !   moments  out  of as many elements as x has features, in array element order
  !   mask     in   optional: logical, contiguous, of the shape of x, or of rank 1 with an element
  !                 for each sample; values where it is .false. do not count
  interface gs_stats
    module procedure stats_array
  end interface gs_stats

  ! Compares an array across ranks; it is called [name] in messages. Collective over [comm].
  interface gs_compare
    module procedure compare_array
  end interface gs_compare

  ! cfi_stats.h, in its order.
  interface
    function c_stats_array(args, x, is_open, mask, moments, features) &
      bind(c, name="gsi_fortran_stats") result(st)
      import :: array_args, c_int, c_int64_t, gs_moments
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: x
      integer(c_int), value :: is_open
      type(*), dimension(..), intent(in), optional :: mask
      type(gs_moments), intent(inout) :: moments(*)
      integer(c_int64_t), value :: features
      integer(c_int) :: st
    end function c_stats_array

    function c_compare_array(args, name, x, is_open, tolerance) &
      bind(c, name="gsi_fortran_compare") result(st)
      import :: array_args, c_char, c_double, c_int
      type(array_args), intent(inout) :: args
      character(kind=c_char), intent(in) :: name(*)
      type(*), dimension(..), asynchronous, intent(in) :: x
      integer(c_int), value :: is_open
      real(c_double), value :: tolerance
      integer(c_int) :: st
    end function c_compare_array
  end interface

contains

  subroutine stats_array(comm, x, moments, mask, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: x
    type(gs_moments), intent(inout), contiguous :: moments(:)
    type(*), dimension(..), intent(in), optional :: mask
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_stats_array(args, x, is_open(x), mask, moments, size(moments, kind=c_int64_t))
    call conclude_array(st, args, stat, errmsg)
  end subroutine stats_array

  subroutine compare_array(comm, name, x, tolerance, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    character(*), intent(in) :: name
    type(*), dimension(..), asynchronous, intent(in) :: x
    real(c_double), intent(in), optional :: tolerance
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, stream=stream, as=as)
    st = c_compare_array(args, text_to_c(name), x, is_open(x), tolerance_or_none(tolerance))
    call conclude_array(st, args, stat, errmsg)
  end subroutine compare_array

end module gradsync_stats_array
