! SPDX-License-Identifier: BSD-3-Clause
! gradsync_gradient - a reducer's gradients as Fortran arrays of any kind and rank (Fortran 2018).
!
! These procedures extend the generics of gradsync_reducer and gradsync_step. Those of
! gs_reducer_add can be told apart, by rules as in gradsync_array, because after [array] comes an
! array and after shape comes a number, dtype.
!
! N.B. gfortran 12 passes a component of an array of derived type, x%re or grid%u, as a copy. The
! reducer would keep its address: such a component must not be added.
module gradsync_gradient
  use, intrinsic :: iso_c_binding, only: c_double, c_double_complex, c_float, c_float_complex, &
    c_int, c_int16_t, c_int32_t, c_int64_t
  use gradsync_array, only: array_args, c_describe, conclude_array, is_open, pack_args
  use gradsync_c_reducer, only: gradient
  use gradsync_reducer, only: gs_reducer_add
  use gradsync_state, only: add_gradient, find_gradient
  use gradsync_step, only: gs_reducer_grad
  use gradsync_support, only: conclude, text_to_c
  use gradsync_types, only: gs_comm, gs_reducer, GS_OK
  implicit none
  private

  public :: gs_reducer_add, gs_reducer_grad

  ! Adds a gradient that is an array of the program's, which keeps it until the reducer is
  ! destroyed: a target or a pointer that is neither moved nor freed.
  interface gs_reducer_add
    module procedure add_array
  end interface gs_reducer_add

  ! Lets [p] be the gradient, with its bounds: a pointer of its rank and kind, integer(int16) for
  ! GS_F16 and GS_BF16. Another one is refused, and null after every failure.
  interface gs_reducer_grad
    module procedure grad_f32, grad_f64, grad_c64, grad_c128, grad_i16
  end interface gs_reducer_grad

  ! cfi.h, for each kind.
  interface
    function c_point_f32(found, index, g, p) bind(c, name="gsi_fortran_point") result(st)
      import :: c_float, c_int, gradient
      integer(c_int), value :: found, index
      type(gradient), intent(in) :: g
      real(c_float), pointer, intent(out) :: p(..)
      integer(c_int) :: st
    end function c_point_f32

    function c_point_f64(found, index, g, p) bind(c, name="gsi_fortran_point") result(st)
      import :: c_double, c_int, gradient
      integer(c_int), value :: found, index
      type(gradient), intent(in) :: g
      real(c_double), pointer, intent(out) :: p(..)
      integer(c_int) :: st
    end function c_point_f64

    function c_point_c64(found, index, g, p) bind(c, name="gsi_fortran_point") result(st)
      import :: c_float_complex, c_int, gradient
      integer(c_int), value :: found, index
      type(gradient), intent(in) :: g
      complex(c_float_complex), pointer, intent(out) :: p(..)
      integer(c_int) :: st
    end function c_point_c64

    function c_point_c128(found, index, g, p) bind(c, name="gsi_fortran_point") result(st)
      import :: c_double_complex, c_int, gradient
      integer(c_int), value :: found, index
      type(gradient), intent(in) :: g
      complex(c_double_complex), pointer, intent(out) :: p(..)
      integer(c_int) :: st
    end function c_point_c128

    function c_point_i16(found, index, g, p) bind(c, name="gsi_fortran_point") result(st)
      import :: c_int, c_int16_t, gradient
      integer(c_int), value :: found, index
      type(gradient), intent(in) :: g
      integer(c_int16_t), pointer, intent(out) :: p(..)
      integer(c_int) :: st
    end function c_point_i16
  end interface

contains

  ! Its bounds start at 1, or at [lower], for they do not come along with it. [as] tells what an
  ! integer(int16) array holds: GS_F16 or GS_BF16.
  subroutine add_array(reducer, name, array, lower, as, index, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    type(*), dimension(..), target, asynchronous, intent(inout) :: array
    integer(c_int32_t), intent(in), optional :: lower(:)
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: index
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    type(gradient) :: g
    integer(c_int64_t), allocatable :: bounds(:) ! not allocated it counts as not present
    integer(c_int) :: st

    if (present(index)) index = -1
    if (present(lower)) bounds = lower
    args = pack_args(gs_comm(), as=as)
    st = c_describe(args, text_to_c('gs_reducer_add'), array, is_open(array), g)
    if (st == GS_OK) &
      st = add_gradient(reducer, name, g%shape(:g%dims), g%dtype, g%address, bounds, index)
    call conclude_array(st, args, stat, errmsg)
  end subroutine add_array

  subroutine grad_f32(reducer, index, p, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    real(c_float), pointer, intent(out) :: p(..)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    st = find_gradient(reducer, index, found)
    st = c_point_f32(st, index, found, p)
    call conclude(st, stat, errmsg)
  end subroutine grad_f32

  subroutine grad_f64(reducer, index, p, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    real(c_double), pointer, intent(out) :: p(..)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    st = find_gradient(reducer, index, found)
    st = c_point_f64(st, index, found, p)
    call conclude(st, stat, errmsg)
  end subroutine grad_f64

  subroutine grad_c64(reducer, index, p, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    complex(c_float_complex), pointer, intent(out) :: p(..)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    st = find_gradient(reducer, index, found)
    st = c_point_c64(st, index, found, p)
    call conclude(st, stat, errmsg)
  end subroutine grad_c64

  subroutine grad_c128(reducer, index, p, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    complex(c_double_complex), pointer, intent(out) :: p(..)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    st = find_gradient(reducer, index, found)
    st = c_point_c128(st, index, found, p)
    call conclude(st, stat, errmsg)
  end subroutine grad_c128

  subroutine grad_i16(reducer, index, p, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    integer(c_int16_t), pointer, intent(out) :: p(..)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    st = find_gradient(reducer, index, found)
    st = c_point_i16(st, index, found, p)
    call conclude(st, stat, errmsg)
  end subroutine grad_i16

end module gradsync_gradient
