! SPDX-License-Identifier: BSD-3-Clause
!
! gradsync_ftorch - hands the gradients of an FTorch model to a gradsync reducer.
!
! The contracts are in gradsync_ftorch.h. Every subroutine ends in stat and errmsg, as those of
! gradsync do; without stat a failure ends the program with its text.
module gradsync_ftorch
  use, intrinsic :: iso_c_binding
  use ftorch, only: torch_model
  use gradsync
  implicit none
  private

  public :: gs_ftorch_create, gs_ftorch_start, gs_ftorch_zero_grad, gs_ftorch_finish
  public :: gs_ftorch_get, gs_ftorch_destroy

  type, public :: gs_ftorch
    private
    type(c_ptr) :: address = c_null_ptr
  end type gs_ftorch

  ! A parameter of the model. The shape is that of libtorch, reversed: data is an array of Fortran
  ! of that shape.
  type, public :: gs_ftorch_parameter
    character(:), allocatable :: name
    integer(c_int) :: index = -1 ! of its gradient in the reducer
    integer(c_size_t), allocatable :: shape(:)
    integer(c_int) :: dtype = 0
    type(c_ptr) :: data = c_null_ptr, grad = c_null_ptr
  end type gs_ftorch_parameter

  integer, parameter :: dims_max = 15 ! GS_REDUCER_DIMS_MAX

  type, bind(c) :: c_parameter
    type(c_ptr) :: name
    integer(c_int) :: index, dims
    integer(c_size_t) :: shape(dims_max)
    integer(c_int) :: dtype
    type(c_ptr) :: data, grad
  end type c_parameter

  interface
    function c_create(model, comm, reducer, net, count) result(st) &
      bind(c, name='gs_ftorch_create')
      import :: c_int, c_ptr
      type(c_ptr), value :: model, comm, reducer
      type(c_ptr), intent(out) :: net
      integer(c_int), intent(out) :: count
      integer(c_int) :: st
    end function c_create

    function c_start(net, root) result(st) bind(c, name='gs_ftorch_start')
      import :: c_int, c_ptr
      type(c_ptr), value :: net
      integer(c_int), value :: root
      integer(c_int) :: st
    end function c_start

    function c_zero_grad(net) result(st) bind(c, name='gs_ftorch_zero_grad')
      import :: c_int, c_ptr
      type(c_ptr), value :: net
      integer(c_int) :: st
    end function c_zero_grad

    function c_finish(net) result(st) bind(c, name='gs_ftorch_finish')
      import :: c_int, c_ptr
      type(c_ptr), value :: net
      integer(c_int) :: st
    end function c_finish

    function c_get(net, at, parameter) result(st) bind(c, name='gs_ftorch_get')
      import :: c_int, c_parameter, c_ptr
      type(c_ptr), value :: net
      integer(c_int), value :: at
      type(c_parameter), intent(out) :: parameter
      integer(c_int) :: st
    end function c_get

    subroutine c_destroy(net) bind(c, name='gs_ftorch_destroy')
      import :: c_ptr
      type(c_ptr), value :: net
    end subroutine c_destroy

    function c_last_error() result(text) bind(c, name='gs_ftorch_last_error')
      import :: c_ptr
      type(c_ptr) :: text
    end function c_last_error

    pure function c_strlen(text) result(length) bind(c, name='strlen')
      import :: c_ptr, c_size_t
      type(c_ptr), value, intent(in) :: text
      integer(c_size_t) :: length
    end function c_strlen
  end interface

contains

  subroutine gs_ftorch_create(model, comm, reducer, net, count, stat, errmsg)
    type(torch_model), intent(in) :: model
    type(gs_comm), intent(in) :: comm
    type(gs_reducer), intent(in) :: reducer
    type(gs_ftorch), intent(out) :: net
    integer(c_int), intent(out) :: count
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_create(model%p, gs_comm_c_ptr(comm), gs_reducer_c_ptr(reducer), net%address, &
      count), stat, errmsg)
  end subroutine gs_ftorch_create

  subroutine gs_ftorch_start(net, root, stat, errmsg)
    type(gs_ftorch), intent(in) :: net
    integer(c_int), intent(in) :: root
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_start(net%address, root), stat, errmsg)
  end subroutine gs_ftorch_start

  subroutine gs_ftorch_zero_grad(net, stat, errmsg)
    type(gs_ftorch), intent(in) :: net
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_zero_grad(net%address), stat, errmsg)
  end subroutine gs_ftorch_zero_grad

  subroutine gs_ftorch_finish(net, stat, errmsg)
    type(gs_ftorch), intent(in) :: net
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call conclude(c_finish(net%address), stat, errmsg)
  end subroutine gs_ftorch_finish

  ! Parameter [at], from 0 as in C.
  subroutine gs_ftorch_get(net, at, parameter, stat, errmsg)
    type(gs_ftorch), intent(in) :: net
    integer(c_int), intent(in) :: at
    type(gs_ftorch_parameter), intent(out) :: parameter
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_parameter) :: c
    integer(c_int) :: st

    st = c_get(net%address, at, c)
    if (st == GS_OK) then
      parameter%name = text_of(c%name)
      parameter%index = c%index
      parameter%shape = c%shape(c%dims:1:-1)
      parameter%dtype = c%dtype
      parameter%data = c%data
      parameter%grad = c%grad
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_ftorch_get

  subroutine gs_ftorch_destroy(net)
    type(gs_ftorch), intent(inout) :: net

    call c_destroy(net%address)
    net%address = c_null_ptr
  end subroutine gs_ftorch_destroy

  subroutine conclude(st, stat, errmsg)
    integer(c_int), intent(in) :: st
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text

    if (present(stat)) stat = st
    if (st == GS_OK) return
    text = text_of(c_last_error())
    if (present(errmsg)) errmsg = text
    if (.not. present(stat)) error stop trim(gs_status_string(st) // ': ' // text)
  end subroutine conclude

  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: chars(:)
    integer :: i

    call c_f_pointer(address, chars, [c_strlen(address)])
    allocate (character(size(chars)) :: text)
    do i = 1, size(chars)
      text(i:i) = chars(i)
    end do
  end function text_of

end module gradsync_ftorch
