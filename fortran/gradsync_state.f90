! SPDX-License-Identifier: BSD-3-Clause
! gradsync_state - what a type(gs_reducer) leads to: the reducer of C, and what Fortran must
! remember beside it. Private to the binding: module gradsync does not pass these names on.
module gradsync_state
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_int64_t, c_null_ptr, c_ptr
  use gradsync_c, only: c_handle_find, KIND_REDUCER
  use gradsync_c_reducer, only: c_gradient_set, c_reducer_add, c_reducer_grad, gradient
  use gradsync_support, only: text_to_c
  use gradsync_types, only: gs_bucket, gs_comm, gs_reducer, handle_of_reducer, GS_OK
  implicit none
  private
  public :: gs_bucket_f, bucket_box, reducer_state
  public :: add_gradient, find_gradient, find_reducer, find_state

  abstract interface
    ! Is called for a bucket, with the context that was set; returns GS_OK, or what the step shall
    ! fail of. May be called by a thread of the reducer's, one bucket at a time.
    function gs_bucket_f(bucket, context) result(status)
      import :: c_int, c_ptr, gs_bucket
      type(gs_bucket), intent(in) :: bucket
      type(c_ptr), intent(in) :: context
      integer(c_int) :: status
    end function gs_bucket_f
  end interface

  ! What C hands back to forward_bucket as its context.
  type :: bucket_box
    procedure(gs_bucket_f), pointer, nopass :: callback => null()
    type(c_ptr) :: context = c_null_ptr
    type(gs_comm) :: comm
  end type bucket_box

  type :: reducer_state
    type(c_ptr) :: reducer = c_null_ptr
    type(gs_comm) :: comm
    type(gradient), allocatable :: gradients(:) ! as they were added
    type(bucket_box), pointer :: hook => null(), averaged => null()
  end type reducer_state

contains

  ! What is behind a handle for procedure [call]; null with GS_ERR_STATE if it is gone.
  function find_state(reducer, call, st) result(state)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(reducer_state), pointer :: state
    type(c_ptr) :: address

    nullify (state)
    st = c_handle_find(handle_of_reducer(reducer), KIND_REDUCER, text_to_c(call), address)
    if (st == GS_OK) call c_f_pointer(address, state)
  end function find_state

  ! The same for those that need the reducer of C only.
  function find_reducer(reducer, call, st) result(address)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(c_ptr) :: address
    type(reducer_state), pointer :: state

    address = c_null_ptr
    state => find_state(reducer, call, st)
    if (st == GS_OK) address = state%reducer
  end function find_reducer

  ! Adds a gradient, at [address] or, with c_null_ptr, in storage of the reducer's, and remembers
  ! its bounds.
  function add_gradient(reducer, name, shape, dtype, address, lower, index) result(st)
    type(gs_reducer), intent(in) :: reducer
    character(*), intent(in) :: name
    integer(c_int64_t), intent(in) :: shape(:)
    integer(c_int), intent(in) :: dtype
    type(c_ptr), intent(in) :: address
    integer(c_int64_t), intent(in), optional :: lower(:)
    integer(c_int), intent(out), optional :: index
    integer(c_int) :: st
    type(reducer_state), pointer :: state
    type(gradient) :: added
    integer(c_int) :: lowers, number

    if (present(index)) index = -1
    lowers = 0
    if (present(lower)) lowers = size(lower)
    state => find_state(reducer, 'gs_reducer_add', st)
    if (st == GS_OK) st = c_gradient_set(added, size(shape), shape, dtype, lowers, lower)
    if (st /= GS_OK) return
    added%address = address
    st = c_reducer_add(state%reducer, text_to_c(name), added%dims, shape, dtype, address, number)
    if (st /= GS_OK) return
    state%gradients = [state%gradients, added]
    if (present(index)) index = number
  end function add_gradient

  ! The gradient of a number, with the address that it has now.
  function find_gradient(reducer, index, found) result(st)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    type(gradient), intent(out) :: found
    integer(c_int) :: st
    type(reducer_state), pointer :: state
    type(c_ptr) :: address

    state => find_state(reducer, 'gs_reducer_grad', st)
    if (st == GS_OK) st = c_reducer_grad(state%reducer, index, address)
    if (st /= GS_OK) return
    found = state%gradients(index + 1)
    found%address = address
  end function find_gradient

end module gradsync_state
