! SPDX-License-Identifier: BSD-3-Clause
! gradsync_p2p_array - messages, boundaries and halos on Fortran arrays of any type and rank
! (Fortran 2018).
!
! What gradsync_array says of arrays, count, stream, as, stat and errmsg holds. A boundary or halo
! knows its type and shape: the array must have both, or be of another rank and as many elements.
module gradsync_p2p_array
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t, c_ptr
  use gradsync_array, only: array_args, conclude_array, is_open, pack_args
  use gradsync_c_p2p, only: c_boundary_backward, c_boundary_forward, c_halo_adjoint, &
    c_halo_exchange
  use gradsync_p2p, only: crossing, find_boundary, find_halo, gs_boundary_backward, &
    gs_boundary_forward, gs_halo_adjoint, gs_halo_exchange, gs_recv, gs_send
  use gradsync_support, only: stream_or_default, text_to_c
  use gradsync_types, only: gs_boundary, gs_comm, gs_halo, GS_OK
  implicit none
  private

  public :: gs_send, gs_recv, gs_boundary_forward, gs_boundary_backward, gs_halo_exchange, &
    gs_halo_adjoint

  interface gs_send
    module procedure send_array, send_array_int32
  end interface gs_send

  interface gs_recv
    module procedure recv_array, recv_array_int32
  end interface gs_recv

  interface gs_boundary_forward
    module procedure forward_array
  end interface gs_boundary_forward

  interface gs_boundary_backward
    module procedure backward_array
  end interface gs_boundary_backward

  interface gs_halo_exchange
    module procedure exchange_array
  end interface gs_halo_exchange

  interface gs_halo_adjoint
    module procedure adjoint_array
  end interface gs_halo_adjoint

  ! cfi_p2p.h, in its order.
  interface
    function c_send_array(args, buf, is_open, peer) bind(c, name="gsi_fortran_send") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(in) :: buf
      integer(c_int), value :: is_open, peer
      integer(c_int) :: st
    end function c_send_array

    function c_recv_array(args, buf, is_open, peer) bind(c, name="gsi_fortran_recv") result(st)
      import :: array_args, c_int
      type(array_args), intent(inout) :: args
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open, peer
      integer(c_int) :: st
    end function c_recv_array

    function c_match_array(args, call, name, buf, is_open, dtype, dims, shape, address) &
      bind(c, name="gsi_fortran_match") result(st)
      use, intrinsic :: iso_c_binding, only: c_char
      import :: array_args, c_int, c_int64_t, c_ptr
      type(array_args), intent(inout) :: args
      character(kind=c_char), intent(in) :: call(*), name(*)
      type(*), dimension(..), asynchronous, intent(inout) :: buf
      integer(c_int), value :: is_open, dtype, dims
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), intent(out) :: address
      integer(c_int) :: st
    end function c_match_array
  end interface

contains

  ! Sends buf, or its first [count] elements, to rank [peer].
  subroutine send_array(comm, buf, peer, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: buf
    integer(c_int), intent(in) :: peer
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_send_array(args, buf, is_open(buf), peer)
    call conclude_array(st, args, stat, errmsg)
  end subroutine send_array

  subroutine send_array_int32(comm, buf, peer, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(in) :: buf
    integer(c_int), intent(in) :: peer
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call send_array(comm, buf, peer, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine send_array_int32

  ! Receives buf, or its first [count] elements, from rank [peer].
  subroutine recv_array(comm, buf, peer, count, stream, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: peer
    integer(c_int64_t), intent(in), optional :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(array_args) :: args
    integer(c_int) :: st

    args = pack_args(comm, count, stream, as)
    st = c_recv_array(args, buf, is_open(buf), peer)
    call conclude_array(st, args, stat, errmsg)
  end subroutine recv_array

  subroutine recv_array_int32(comm, buf, peer, stream, count, as, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(*), dimension(..), asynchronous, intent(inout) :: buf
    integer(c_int), intent(in) :: peer
    integer(c_int32_t), intent(in) :: count
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(in), optional :: as
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call recv_array(comm, buf, peer, int(count, c_int64_t), stream, as, stat, errmsg)
  end subroutine recv_array_int32

  ! Hands activations from the stage before the boundary to the one behind it.
  subroutine forward_array(boundary, activations, stream, stat, errmsg)
    type(gs_boundary), intent(in) :: boundary
    type(*), dimension(..), asynchronous, intent(inout) :: activations
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_boundary_forward'
    type(crossing), pointer :: state
    type(array_args) :: args
    type(c_ptr) :: address
    integer(c_int) :: st

    args = pack_args(gs_comm())
    state => find_boundary(boundary, call, st)
    if (st == GS_OK) st = c_match_array(args, text_to_c(call), text_to_c('activations'), &
      activations, is_open(activations), state%dtype, size(state%shape), state%shape, address)
    if (st == GS_OK) st = c_boundary_forward(state%thing, address, stream_or_default(stream))
    call conclude_array(st, args, stat, errmsg)
  end subroutine forward_array

  ! Hands gradients from the stage behind the boundary to the one before it.
  subroutine backward_array(boundary, gradients, stream, stat, errmsg)
    type(gs_boundary), intent(in) :: boundary
    type(*), dimension(..), asynchronous, intent(inout) :: gradients
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_boundary_backward'
    type(crossing), pointer :: state
    type(array_args) :: args
    type(c_ptr) :: address
    integer(c_int) :: st

    args = pack_args(gs_comm())
    state => find_boundary(boundary, call, st)
    if (st == GS_OK) st = c_match_array(args, text_to_c(call), text_to_c('gradients'), &
      gradients, is_open(gradients), state%dtype, size(state%shape), state%shape, address)
    if (st == GS_OK) st = c_boundary_backward(state%thing, address, stream_or_default(stream))
    call conclude_array(st, args, stat, errmsg)
  end subroutine backward_array

  ! Fills the ghosts of field with the cells that they are copies of.
  subroutine exchange_array(halo, field, stream, stat, errmsg)
    type(gs_halo), intent(in) :: halo
    type(*), dimension(..), asynchronous, intent(inout) :: field
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_halo_exchange'
    type(crossing), pointer :: state
    type(array_args) :: args
    type(c_ptr) :: address
    integer(c_int) :: st

    args = pack_args(gs_comm())
    state => find_halo(halo, call, st)
    if (st == GS_OK) st = c_match_array(args, text_to_c(call), text_to_c('field'), field, &
      is_open(field), state%dtype, size(state%shape), state%shape, address)
    if (st == GS_OK) st = c_halo_exchange(state%thing, address, stream_or_default(stream))
    call conclude_array(st, args, stat, errmsg)
  end subroutine exchange_array

  ! The adjoint: adds the ghosts of grad to the cells that they are copies of, and sets them to 0.
  subroutine adjoint_array(halo, grad, stream, stat, errmsg)
    type(gs_halo), intent(in) :: halo
    type(*), dimension(..), asynchronous, intent(inout) :: grad
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_halo_adjoint'
    type(crossing), pointer :: state
    type(array_args) :: args
    type(c_ptr) :: address
    integer(c_int) :: st

    args = pack_args(gs_comm())
    state => find_halo(halo, call, st)
    if (st == GS_OK) st = c_match_array(args, text_to_c(call), text_to_c('grad'), grad, &
      is_open(grad), state%dtype, size(state%shape), state%shape, address)
    if (st == GS_OK) st = c_halo_adjoint(state%thing, address, stream_or_default(stream))
    call conclude_array(st, args, stat, errmsg)
  end subroutine adjoint_array

end module gradsync_p2p_array
