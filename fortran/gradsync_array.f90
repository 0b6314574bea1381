! SPDX-License-Identifier: BSD-3-Clause
! gradsync_array - what the procedures on Fortran arrays of any type and rank (Fortran 2018)
! share; built where the compiler has them. Private to the binding.
!
! Accepted is plain memory of a known kind: scalars, whole arrays with any lower bounds,
! allocatables, pointers, contiguous sections, size 0; real32, real64, complex of both, integers
! of 8 to 64 bits. Strided sections, unallocated and unassociated arrays, character, logical,
! derived types and other kinds are refused by name, and nothing is changed.
!
! N.B. gfortran 12 passes a component of an array of derived type, x%re or grid%u, as a copy and
! copies it back when the procedure returns. On hosts the result is right; a stream would outlive
! the copy, and a reducer or plan would keep its address.
module gradsync_array
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t, c_intptr_t
  use gradsync_structs, only: c_args
  use gradsync_support, only: conclude, given
  implicit none
  private
  public :: conclude_array, is_open, pack_args

contains

  ! 1 for an assumed-size array, whose last extent Fortran gives as -1.
  ! N.B. it must be asked here: gfortran 12 gives the C descriptor of x(0:*) an extent of 0 and
  ! that of x(-3:*) one of 3. But it gives -1 for x(3:1) and other empty sections that end two
  ! before their start, so these are taken for assumed-size; gfortran 14 for any empty expression.
  function is_open(array)
    type(*), dimension(..), asynchronous, intent(in) :: array
    integer(c_int) :: is_open

    is_open = 0
    if (rank(array) > 0) then
      if (size(array, dim=rank(array), kind=c_int64_t) < 0) is_open = 1
    end if
  end function is_open

  ! What a procedure got beside its arrays; [handle] is that of its first argument.
  function pack_args(handle, count, stream, as) result(args)
    integer(c_int64_t), intent(in) :: handle
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    type(c_args) :: args

    args%handle = handle
    args%stream = given(stream, 0_c_intptr_t)
    args%count = given(count, 0_c_int64_t)
    args%as = given(as, 0_c_int)
    args%count_given = merge(1, 0, present(count))
    args%as_given = merge(1, 0, present(as))
  end function pack_args

  ! N.B. for a character array as the actual argument gfortran 12 passes a hidden length that a
  ! type(*) dummy does not have, and we would take it for that of errmsg. So errmsg is not
  ! written then; gs_last_error has the text.
  subroutine conclude_array(st, args, stat, errmsg)
    integer(c_int), intent(in) :: st
    type(c_args), intent(in) :: args
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    if (args%is_character /= 0) then
      call conclude(st, stat)
    else
      call conclude(st, stat, errmsg)
    end if
  end subroutine conclude_array

end module gradsync_array
