! SPDX-License-Identifier: BSD-3-Clause
! gradsync_p2p - messages between pairs of ranks and groups of them, boundaries and halos; data by
! address here, as arrays in gradsync_p2p_array.
!
! The contracts are those of gradsync_p2p.h. With an address for a boundary or halo comes its
! dtype, which tells these procedures from those of gradsync_p2p_array. Dimensions are in the
! order of Fortran: the first index is the fastest, of shapes, extents, widths, and of the grid of
! ranks. Every subroutine ends in stat and errmsg, as in gradsync_comm.
module gradsync_p2p
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_int, c_int32_t, c_int64_t, &
    c_intptr_t, c_loc, c_null_ptr, c_ptr, c_size_t
  use gradsync_c, only: c_comm_name, c_handle_bind, c_handle_close, c_handle_find, &
    c_handle_open, c_handle_take, KIND_BOUNDARY, KIND_HALO
  use gradsync_c_gather, only: c_check_dtype, c_check_list
  use gradsync_c_p2p
  use gradsync_support, only: begin, conclude, find, stream_or_default, text_to_c
  use gradsync_types, only: boundary_of_handle, gs_boundary, gs_comm, gs_halo, &
    halo_of_handle, handle_of_boundary, handle_of_halo, GS_ERR_STATE, GS_OK
  implicit none
  private

  public :: gs_send, gs_recv, gs_group_begin, gs_group_end
  public :: gs_boundary_create, gs_boundary_forward, gs_boundary_backward, gs_boundary_destroy
  public :: gs_halo_create, gs_halo_exchange, gs_halo_adjoint, gs_halo_destroy

  ! For gradsync_p2p_array; not part of module gradsync.
  public :: crossing, find_boundary, find_halo

  interface gs_send
    module procedure send_address, send_address_int32
  end interface gs_send

  interface gs_recv
    module procedure recv_address, recv_address_int32
  end interface gs_recv

  ! Shapes and extents are integers of 64 or 32 bits, such as those of intrinsic shape.
  interface gs_boundary_create
    module procedure boundary_create, boundary_create_int32
  end interface gs_boundary_create

  interface gs_halo_create
    module procedure halo_create, halo_create_int32
  end interface gs_halo_create

  interface gs_boundary_forward
    module procedure forward_address
  end interface gs_boundary_forward

  interface gs_boundary_backward
    module procedure backward_address
  end interface gs_boundary_backward

  interface gs_halo_exchange
    module procedure exchange_address
  end interface gs_halo_exchange

  interface gs_halo_adjoint
    module procedure adjoint_address
  end interface gs_halo_adjoint

  ! What a handle leads to: the thing, and the arrays that it takes.
  type :: crossing
    type(c_ptr) :: thing = c_null_ptr
    integer(c_int) :: dtype = 0
    integer(c_int64_t), allocatable :: shape(:)
  end type crossing

contains

  ! Sends [count] elements at [buf] to rank [peer].
  subroutine send_address(comm, buf, count, dtype, peer, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: buf
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, peer
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_send', 'count', count, address)
    if (st == GS_OK) st = c_send(address, buf, count, dtype, peer, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine send_address

  subroutine send_address_int32(comm, buf, count, dtype, peer, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: buf
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, peer
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call send_address(comm, buf, int(count, c_int64_t), dtype, peer, stream, stat, errmsg)
  end subroutine send_address_int32

  ! Receives [count] elements at [buf] from rank [peer].
  subroutine recv_address(comm, buf, count, dtype, peer, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: buf
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, peer
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_recv', 'count', count, address)
    if (st == GS_OK) st = c_recv(address, buf, count, dtype, peer, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine recv_address

  subroutine recv_address_int32(comm, buf, count, dtype, peer, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: buf
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, peer
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call recv_address(comm, buf, int(count, c_int64_t), dtype, peer, stream, stat, errmsg)
  end subroutine recv_address_int32

  ! The messages that follow go together, at gs_group_end. Until then their arrays stay where they
  ! are: no temporaries, and variables that may be copied have the attribute asynchronous.
  subroutine gs_group_begin(comm, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_group_begin', st)
    if (st == GS_OK) st = c_group_begin(address)
    call conclude(st, stat, errmsg)
  end subroutine gs_group_begin

  ! Ends a group and sends its messages off.
  subroutine gs_group_end(comm, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_group_end', st)
    if (st == GS_OK) st = c_group_end(address)
    call conclude(st, stat, errmsg)
  end subroutine gs_group_end

  ! Makes the boundary between two stages, which [from] and [to] are the ranks of: [shape] is that
  ! of the arrays that cross, of type [dtype].
  subroutine boundary_create(comm, from, to, shape, dtype, boundary, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: from, to, dtype
    integer(c_int64_t), intent(in) :: shape(:)
    type(gs_boundary), intent(out) :: boundary
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address, thing
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    address = find(comm, 'gs_boundary_create', st)
    if (st == GS_OK) st = check(shape, 'gs_boundary_create', 'shape')
    if (st == GS_OK) st = c_handle_open(KIND_BOUNDARY, handle)
    if (st == GS_OK) then
      st = c_boundary_create(address, from, to, reversed(shape), size(shape, kind=c_int), &
        dtype, thing)
      call keep(handle, st, thing, dtype, shape, address)
      if (st == GS_OK) boundary = boundary_of_handle(handle)
    end if
    call conclude(st, stat, errmsg)
  end subroutine boundary_create

  subroutine boundary_create_int32(comm, from, to, shape, dtype, boundary, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: from, to, dtype
    integer(c_int32_t), intent(in) :: shape(:)
    type(gs_boundary), intent(out) :: boundary
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call boundary_create(comm, from, to, int(shape, c_int64_t), dtype, boundary, stat, errmsg)
  end subroutine boundary_create_int32

  ! Hands [activations] from the stage before the boundary to the one behind it.
  subroutine forward_address(boundary, activations, dtype, stream, stat, errmsg)
    type(gs_boundary), intent(in) :: boundary
    type(c_ptr), intent(in) :: activations
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    integer(c_int) :: st

    state => find_boundary(boundary, 'gs_boundary_forward', st)
    if (st == GS_OK) st = c_check_dtype(text_to_c('gs_boundary_forward'), dtype, state%dtype)
    if (st == GS_OK) st = c_boundary_forward(state%thing, activations, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine forward_address

  ! Hands [gradients] from the stage behind the boundary to the one before it.
  subroutine backward_address(boundary, gradients, dtype, stream, stat, errmsg)
    type(gs_boundary), intent(in) :: boundary
    type(c_ptr), intent(in) :: gradients
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    integer(c_int) :: st

    state => find_boundary(boundary, 'gs_boundary_backward', st)
    if (st == GS_OK) st = c_check_dtype(text_to_c('gs_boundary_backward'), dtype, state%dtype)
    if (st == GS_OK) st = c_boundary_backward(state%thing, gradients, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine backward_address

  ! Ends a boundary; one that was never created is ignored.
  subroutine gs_boundary_destroy(boundary, stat, errmsg)
    type(gs_boundary), intent(in) :: boundary
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    handle = handle_of_boundary(boundary)
    st = c_handle_take(handle, KIND_BOUNDARY, text_to_c('gs_boundary_destroy'), address)
    call take(address, state)
    if (associated(state)) then
      st = c_handle_close(handle, address, c_boundary_destroy(state%thing))
      if (st /= GS_ERR_STATE) deallocate (state)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_boundary_destroy

  ! Describes a field of which each rank of a grid has a block with ghost layers: the array of a
  ! rank has extents + 2 * width elements in each dimension, the block in the middle.
  !
  !   grid      in   ranks in each dimension; rank 1 is the neighbour of rank 0 in the first of
  !                  them that has more than one
  !   extents   in   of this rank's block, without ghosts
  !   width     in   ghost layers on either side
  !   periodic  in   whether the first and the last block are neighbours
  !   dtype     in   GS_F64, ...
  subroutine halo_create(comm, grid, extents, width, periodic, dtype, halo, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: grid(:), dtype
    integer(c_int64_t), intent(in) :: extents(:), width(:)
    logical, intent(in) :: periodic(:)
    type(gs_halo), intent(out) :: halo
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(*), parameter :: call = 'gs_halo_create'
    type(c_ptr) :: address, thing
    integer(c_int64_t) :: handle
    integer(c_int) :: st, dims

    dims = size(grid, kind=c_int)
    address = find(comm, call, st)
    if (st == GS_OK) st = check(extents, call, 'extents', dims)
    if (st == GS_OK) st = check(width, call, 'width', dims)
    if (st == GS_OK) st = c_check_list(text_to_c(call), text_to_c('periodic'), &
      size(periodic, kind=c_int64_t), int(dims, c_int64_t), 0_c_int64_t)
    if (st == GS_OK) st = c_handle_open(KIND_HALO, handle)
    if (st == GS_OK) then
      st = c_halo_create(address, dims, grid(dims:1:-1), reversed(extents), reversed(width), &
        merge(1_c_int, 0_c_int, periodic(dims:1:-1)), dtype, thing)
      call keep(handle, st, thing, dtype, extents + 2 * width, address)
      if (st == GS_OK) halo = halo_of_handle(handle)
    end if
    call conclude(st, stat, errmsg)
  end subroutine halo_create

  subroutine halo_create_int32(comm, grid, extents, width, periodic, dtype, halo, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(in) :: grid(:), dtype
    integer(c_int32_t), intent(in) :: extents(:), width(:)
    logical, intent(in) :: periodic(:)
    type(gs_halo), intent(out) :: halo
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call halo_create(comm, grid, int(extents, c_int64_t), int(width, c_int64_t), periodic, &
      dtype, halo, stat, errmsg)
  end subroutine halo_create_int32

  ! Fills the ghosts of [field] with the cells that they are copies of.
  subroutine exchange_address(halo, field, dtype, stream, stat, errmsg)
    type(gs_halo), intent(in) :: halo
    type(c_ptr), intent(in) :: field
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    integer(c_int) :: st

    state => find_halo(halo, 'gs_halo_exchange', st)
    if (st == GS_OK) st = c_check_dtype(text_to_c('gs_halo_exchange'), dtype, state%dtype)
    if (st == GS_OK) st = c_halo_exchange(state%thing, field, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine exchange_address

  ! The adjoint: adds the ghosts of [grad] to the cells that they are copies of, and sets them to
  ! 0.
  subroutine adjoint_address(halo, grad, dtype, stream, stat, errmsg)
    type(gs_halo), intent(in) :: halo
    type(c_ptr), intent(in) :: grad
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    integer(c_int) :: st

    state => find_halo(halo, 'gs_halo_adjoint', st)
    if (st == GS_OK) st = c_check_dtype(text_to_c('gs_halo_adjoint'), dtype, state%dtype)
    if (st == GS_OK) st = c_halo_adjoint(state%thing, grad, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine adjoint_address

  ! Ends a halo; one that was never created is ignored.
  subroutine gs_halo_destroy(halo, stat, errmsg)
    type(gs_halo), intent(in) :: halo
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(crossing), pointer :: state
    type(c_ptr) :: address
    integer(c_int64_t) :: handle
    integer(c_int) :: st

    handle = handle_of_halo(halo)
    st = c_handle_take(handle, KIND_HALO, text_to_c('gs_halo_destroy'), address)
    call take(address, state)
    if (associated(state)) then
      st = c_handle_close(handle, address, c_halo_destroy(state%thing))
      if (st /= GS_ERR_STATE) deallocate (state)
    end if
    call conclude(st, stat, errmsg)
  end subroutine gs_halo_destroy

  ! What is behind a handle for procedure [call]; null with GS_ERR_STATE if it is gone.
  function find_boundary(boundary, call, st) result(state)
    type(gs_boundary), intent(in) :: boundary
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(crossing), pointer :: state
    type(c_ptr) :: address

    nullify (state)
    st = c_handle_find(handle_of_boundary(boundary), KIND_BOUNDARY, text_to_c(call), address)
    if (st == GS_OK) call c_f_pointer(address, state)
  end function find_boundary

  function find_halo(halo, call, st) result(state)
    type(gs_halo), intent(in) :: halo
    character(*), intent(in) :: call
    integer(c_int), intent(out) :: st
    type(crossing), pointer :: state
    type(c_ptr) :: address

    nullify (state)
    st = c_handle_find(handle_of_halo(halo), KIND_HALO, text_to_c(call), address)
    if (st == GS_OK) call c_f_pointer(address, state)
  end function find_halo

  subroutine take(address, state)
    type(c_ptr), intent(in) :: address
    type(crossing), pointer, intent(out) :: state

    nullify (state)
    if (c_associated(address)) call c_f_pointer(address, state)
  end subroutine take

  ! Keeps what a create made under its handle, or gives the handle back.
  subroutine keep(handle, st, thing, dtype, shape, comm)
    integer(c_int64_t), intent(in) :: handle, shape(:)
    integer(c_int), intent(in) :: st, dtype
    type(c_ptr), intent(in) :: thing, comm
    type(crossing), pointer :: state

    if (st /= GS_OK) then
      call c_handle_bind(handle, c_null_ptr, c_null_ptr, c_null_ptr)
      return
    end if
    allocate (state)
    state%thing = thing
    state%dtype = dtype
    state%shape = shape
    call c_handle_bind(handle, c_loc(state), comm, c_comm_name(comm))
  end subroutine keep

  ! Refuses a list with elements below 0, and one that has not [wanted] of them.
  function check(list, call, what, wanted) result(st)
    integer(c_int64_t), intent(in) :: list(:)
    character(*), intent(in) :: call, what
    integer(c_int), intent(in), optional :: wanted
    integer(c_int) :: st
    integer(c_int64_t) :: length

    length = size(list, kind=c_int64_t)
    if (present(wanted)) length = wanted
    st = c_check_list(text_to_c(call), text_to_c(what), size(list, kind=c_int64_t), &
      length, minval([list, 0_c_int64_t]))
  end function check

  pure function reversed(list) result(other)
    integer(c_int64_t), intent(in) :: list(:)
    integer(c_size_t) :: other(size(list))

    other = list(size(list):1:-1)
  end function reversed

end module gradsync_p2p
