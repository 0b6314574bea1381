! SPDX-License-Identifier: BSD-3-Clause
! gradsync_step - the steps of a reducer: gradients that become ready, averages, scalars.
!
! The contracts are those of gradsync_reducer.h.
!
!   reducer  in  a reducer that is committed
!   index    in  number of a gradient or of a scalar, from 0, as the add gave it
!   stream   in  optional: a CUDA stream as an integer; ignored on hosts
!   stat, errmsg  optional: see gradsync_comm
module gradsync_step
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_intptr_t, c_null_ptr, c_ptr
  use gradsync_c_reducer
  use gradsync_state, only: find_gradient, find_reducer, find_state, reducer_state
  use gradsync_support, only: conclude, stream_or_default
  use gradsync_types, only: gs_reducer, GS_OK
  implicit none
  private

  public :: gs_reducer_grad, gs_reducer_ready, gs_reducer_skip, gs_reducer_finish
  public :: gs_reducer_no_sync, gs_reducer_weight, gs_reducer_join
  public :: gs_reducer_set_scalar, gs_reducer_get_scalar, gs_reducer_norm, gs_reducer_broadcast

  ! Where a gradient is: its address here, an array pointer with module gradsync_gradient.
  interface gs_reducer_grad
    module procedure grad_address
  end interface gs_reducer_grad

contains

  ! [ptr] is c_null_ptr on failure and for a gradient without elements.
  subroutine grad_address(reducer, index, ptr, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    type(c_ptr), intent(out) :: ptr
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(gradient) :: found
    integer(c_int) :: st

    ptr = c_null_ptr
    st = find_gradient(reducer, index, found)
    if (st == GS_OK) ptr = found%address
    call conclude(st, stat, errmsg)
  end subroutine grad_address

  ! Says that a gradient of this step is complete.
  subroutine gs_reducer_ready(reducer, index, stream, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_ready', st)
    if (st == GS_OK) st = c_reducer_ready(address, index, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_ready

  ! Says that a gradient is not computed in this step: it counts as 0.
  subroutine gs_reducer_skip(reducer, index, stream, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_skip', st)
    if (st == GS_OK) st = c_reducer_skip(address, index, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_skip

  ! Ends a step: afterwards all gradients are averages. Collective.
  subroutine gs_reducer_finish(reducer, stream, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_finish', st)
    if (st == GS_OK) st = c_reducer_finish(address, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_finish

  ! Begins or ends accumulation: while it is on, steps do not communicate.
  subroutine gs_reducer_no_sync(reducer, on, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    logical, intent(in) :: on
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_no_sync', st)
    if (st == GS_OK) st = c_reducer_no_sync(address, merge(1_c_int, 0_c_int, on))
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_no_sync

  ! Gives this rank's weight in the next step. Collective.
  subroutine gs_reducer_weight(reducer, weight, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    real(c_double), intent(in) :: weight
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_weight', st)
    if (st == GS_OK) st = c_reducer_weight(address, weight)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_weight

  ! Takes part in a step of the others, for a rank that has no more data, until [done] is .true.:
  ! then all ranks had none. Collective.
  subroutine gs_reducer_join(reducer, done, stream, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    logical, intent(out) :: done
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, all_done

    all_done = 0
    address = find_reducer(reducer, 'gs_reducer_join', st)
    if (st == GS_OK) st = c_reducer_join(address, stream_or_default(stream), all_done)
    done = st == GS_OK .and. all_done /= 0
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_join

  ! Sets this rank's value of a scalar.
  subroutine gs_reducer_set_scalar(reducer, index, value, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    real(c_double), intent(in) :: value
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_set_scalar', st)
    if (st == GS_OK) st = c_reducer_set_scalar(address, index, value)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_set_scalar

  ! What became of a scalar in the last step.
  subroutine gs_reducer_get_scalar(reducer, index, value, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    integer(c_int), intent(in) :: index
    real(c_double), intent(out) :: value
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_get_scalar', st)
    if (st == GS_OK) st = c_reducer_get_scalar(address, index, value)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_get_scalar

  ! The norm of the averaged gradient of the last step.
  subroutine gs_reducer_norm(reducer, norm, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    real(c_double), intent(out) :: norm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find_reducer(reducer, 'gs_reducer_norm', st)
    if (st == GS_OK) st = c_reducer_norm(address, norm)
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_norm

  ! Gives all ranks the parameters of rank [root]: [params] are addresses, one for each gradient,
  ! c_null_ptr to leave one out. Collective.
  subroutine gs_reducer_broadcast(reducer, params, root, stream, stat, errmsg)
    type(gs_reducer), intent(in) :: reducer
    type(c_ptr), intent(in) :: params(:)
    integer(c_int), intent(in) :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(reducer_state), pointer :: state
    integer(c_int) :: st

    state => find_state(reducer, 'gs_reducer_broadcast', st)
    if (st == GS_OK) st = c_params_check(size(params), size(state%gradients))
    if (st == GS_OK) &
      st = c_reducer_broadcast(state%reducer, params, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_reducer_broadcast

end module gradsync_step
