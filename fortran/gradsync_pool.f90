! SPDX-License-Identifier: BSD-3-Clause
! gradsync_pool - how pools are made, with functions in Fortran that evaluate batches of rows, and
! what they tell. What is called in each step: calls.def.
!
! The contracts are those of gradsync_pool.h. Every subroutine ends in stat and errmsg.
module gradsync_pool
  use, intrinsic :: iso_c_binding
  use gradsync_c
  use gradsync_support
  use gradsync_types
  implicit none
  private

  public :: gs_pool_create, gs_pool_destroy, gs_pool_get_info
  public :: gs_pool_batch_f, gs_pool_gradient_f

  abstract interface
    ! Evaluates [rows] rows: in(inputs, rows) gives out(outputs, rows), whose addresses these are
    ! (c_f_pointer). Returns GS_OK, or what the step shall fail of.
    function gs_pool_batch_f(rows, in, out, stream, context) result(status)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      integer(c_int64_t), intent(in) :: rows
      type(c_ptr), intent(in) :: in, out
      integer(c_intptr_t), intent(in) :: stream
      type(c_ptr), intent(in) :: context
      integer(c_int) :: status
    end function gs_pool_batch_f

    ! Takes gradients back: of grad_out(outputs, rows) and in it makes grad_in(inputs, rows).
    function gs_pool_gradient_f(rows, in, grad_out, grad_in, stream, context) result(status)
      import :: c_int, c_int64_t, c_intptr_t, c_ptr
      integer(c_int64_t), intent(in) :: rows
      type(c_ptr), intent(in) :: in, grad_out, grad_in
      integer(c_intptr_t), intent(in) :: stream
      type(c_ptr), intent(in) :: context
      integer(c_int) :: status
    end function gs_pool_gradient_f
  end interface

  type :: pool_box
    procedure(gs_pool_batch_f), pointer, nopass :: on_batch => null()
    procedure(gs_pool_gradient_f), pointer, nopass :: on_gradient => null()
    type(c_ptr) :: context = c_null_ptr
  end type pool_box

contains

  ! Makes a pool. Collective over [comm].
  !
  !   comm         in   outlives the pool
  !   inputs, outputs
  !                in   elements of a row, and of its result
  !   dtype        in   of both
  !   max_rows     in   that a rank has in a step at most
  !   pool         out  the new pool; never created, if this fails
  !   on_batch, on_gradient
  !                in   module or external procedures; on evaluators
  !   max_batch    in   rows of a batch at most
  !   evaluator    in   GS_EVALUATOR_*
  !   balance      in   GS_BALANCE_*
  !   context, stream
  !                in   handed to both
  !   name         in   shown in messages
  subroutine gs_pool_create(comm, inputs, outputs, dtype, max_rows, pool, on_batch, on_gradient, &
                            max_batch, evaluator, balance, context, stream, name, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    class(*), intent(in) :: inputs, outputs, max_rows ! of 32 or 64 bits
    integer(c_int), intent(in) :: dtype
    type(gs_pool), intent(out) :: pool
    procedure(gs_pool_batch_f), optional :: on_batch
    procedure(gs_pool_gradient_f), optional :: on_gradient
    class(*), intent(in), optional :: max_batch
    integer(c_int), intent(in), optional :: evaluator, balance
    type(c_ptr), intent(in), optional :: context
    integer(c_intptr_t), intent(in), optional :: stream
    character(*), intent(in), optional :: name
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_pool_create'
    character(kind=c_char), allocatable, target :: c_name(:)
    type(pool_box), pointer :: box
    type(c_pool_opts) :: opts
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    allocate (box)
    if (present(on_batch)) then
      box%on_batch => on_batch
      opts%on_batch = c_funloc(forward_batch)
    end if
    if (present(on_gradient)) then
      box%on_gradient => on_gradient
      opts%on_gradient = c_funloc(forward_gradient)
    end if
    box%context = given(context, c_null_ptr)
    opts%size = c_sizeof(opts)
    opts%context = c_loc(box)
    opts%stream = given(stream, 0_c_intptr_t)
    opts%dtype = dtype
    if (present(evaluator)) opts%evaluator = evaluator
    if (present(balance)) opts%balance = balance
    if (present(name)) then
      c_name = text_to_c(name)
      opts%name = c_loc(c_name)
    end if
    address = find(comm, call, st)
    call set_bytes(opts%inputs, call, 'inputs', inputs, st)
    call set_bytes(opts%outputs, call, 'outputs', outputs, st)
    call set_bytes(opts%max_rows, call, 'max_rows', max_rows, st)
    call set_bytes(opts%max_batch, call, 'max_batch', max_batch, st)
    if (st == GS_OK) st = f_pool_create(transfer(comm, handle), opts, handle)
    if (st == GS_OK) then
      pool = transfer(handle, pool)
    else
      deallocate (box)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_pool_create

  ! Ends a pool, for all copies of [pool]; before gs_comm_destroy. One that was never created is
  ! ignored.
  subroutine gs_pool_destroy(pool, stat, errmsg)
    type(gs_pool), intent(in) :: pool
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(pool_box), pointer :: box
    type(c_ptr) :: address
    integer(c_int) :: st

    st = f_pool_destroy(transfer(pool, 0_c_int64_t), address)
    if (c_associated(address)) then
      call c_f_pointer(address, box)
      deallocate (box)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_pool_destroy

  ! Tells what a pool is, and what it did on this rank.
  subroutine gs_pool_get_info(pool, info, stat, errmsg)
    type(gs_pool), intent(in) :: pool
    type(gs_pool_info), intent(out) :: info
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_pool_info) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    st = f_handle_find(transfer(pool, 0_c_int64_t), KIND_POOL, text_to_c('gs_pool_get_info'), &
      address)
    c%size = c_sizeof(c)
    if (st == GS_OK) st = c_pool_get_info(address, c)
    if (st == GS_OK) &
      info = gs_pool_info(c%evaluator /= 0, c%evaluators, c%device, c%in_flight, c%steps, &
                          c%rows, c%batches, c%taken)
    call conclude(st, stat, errmsg)
  end subroutine gs_pool_get_info

  ! The functions that C sees.
  function forward_batch(rows, in, out, stream, context) &
    bind(c, name="gsi_fortran_forward_batch") result(st)
    integer(c_size_t), value :: rows
    type(c_ptr), value :: in, out
    integer(c_intptr_t), value :: stream
    type(c_ptr), value :: context
    integer(c_int) :: st
    type(pool_box), pointer :: box

    call c_f_pointer(context, box)
    st = box%on_batch(int(rows, c_int64_t), in, out, stream, box%context)
  end function forward_batch

  function forward_gradient(rows, in, grad_out, grad_in, stream, context) &
    bind(c, name="gsi_fortran_forward_gradient") result(st)
    integer(c_size_t), value :: rows
    type(c_ptr), value :: in, grad_out, grad_in
    integer(c_intptr_t), value :: stream
    type(c_ptr), value :: context
    integer(c_int) :: st
    type(pool_box), pointer :: box

    call c_f_pointer(context, box)
    st = box%on_gradient(int(rows, c_int64_t), in, grad_out, grad_in, stream, box%context)
  end function forward_gradient
end module gradsync_pool
