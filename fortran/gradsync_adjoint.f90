! SPDX-License-Identifier: BSD-3-Clause
! gradsync_adjoint - the gradients of collectives on memory given by address, count and dtype: for
! device addresses, and for compilers without arguments of any type and rank (see
! gradsync_adjoint_array).
!
! The arguments stand in the order of gradsync_adjoint.h, whose contracts hold, but that what may
! be left out comes last:
!
!   comm      in   every rank calls
!   grad_y, grad_x, grad  in   addresses; c_null_ptr where a rank has nothing
!   count, room           in   elements, integer(int64)
!   counts, displs, shape, extents, offsets   in   integer(c_size_t), of a size that is checked
!   dtype     in   GS_F32, ...
!   contract  in   optional: GS_GRAD_ADJOINT, which it is without, or GS_GRAD_OWN_SLOT
!   stream    in   optional: a CUDA stream as an integer; ignored on hosts
!   stat, errmsg   optional: see gradsync_comm
module gradsync_adjoint
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t, c_ptr, c_size_t
  use gradsync_c_adjoint
  use gradsync_gather, only: check_list, size_of, turned
  use gradsync_support, only: begin, conclude, find, stream_or_default
  use gradsync_types, only: gs_comm, GS_GRAD_ADJOINT, GS_OK
  implicit none
  private

  public :: gs_allgather_backward, gs_allgatherv_backward, gs_gather_backward, &
    gs_gatherv_backward, gs_scatter_backward, gs_scatterv_backward, gs_alltoall_backward, &
    gs_alltoallv_backward, gs_broadcast_backward, gs_allreduce_backward, gs_reduce_backward, &
    gs_reduce_scatter_backward, gs_reduce_scatterv_backward, gs_gather_field_backward

  ! For gradsync_adjoint_array; not part of module gradsync.
  public :: contract_or_default

  interface gs_allgather_backward
    module procedure allgather_address, allgather_address_int32
  end interface gs_allgather_backward

  interface gs_allgatherv_backward
    module procedure allgatherv_address
  end interface gs_allgatherv_backward

  interface gs_gather_backward
    module procedure gather_address, gather_address_int32
  end interface gs_gather_backward

  interface gs_gatherv_backward
    module procedure gatherv_address
  end interface gs_gatherv_backward

  interface gs_scatter_backward
    module procedure scatter_address, scatter_address_int32
  end interface gs_scatter_backward

  interface gs_scatterv_backward
    module procedure scatterv_address
  end interface gs_scatterv_backward

  interface gs_alltoall_backward
    module procedure alltoall_address, alltoall_address_int32
  end interface gs_alltoall_backward

  interface gs_alltoallv_backward
    module procedure alltoallv_address
  end interface gs_alltoallv_backward

  interface gs_broadcast_backward
    module procedure broadcast_address, broadcast_address_int32
  end interface gs_broadcast_backward

  interface gs_allreduce_backward
    module procedure allreduce_address, allreduce_address_int32
  end interface gs_allreduce_backward

  interface gs_reduce_backward
    module procedure reduce_address, reduce_address_int32
  end interface gs_reduce_backward

  interface gs_reduce_scatter_backward
    module procedure reduce_scatter_address, reduce_scatter_address_int32
  end interface gs_reduce_scatter_backward

  interface gs_reduce_scatterv_backward
    module procedure reduce_scatterv_address
  end interface gs_reduce_scatterv_backward

  interface gs_gather_field_backward
    module procedure gather_field_address
  end interface gs_gather_field_backward

contains

  ! Of gs_allgather: grad_x of count elements, by [contract].
  subroutine allgather_address(comm, grad_y, grad_x, count, dtype, contract, stream, stat, &
    errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_int), intent(in), optional :: contract
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allgather_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_allgather_backward(address, grad_y, grad_x, count, dtype, &
        contract_or_default(contract), stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine allgather_address

  subroutine allgather_address_int32(comm, grad_y, grad_x, count, dtype, contract, stream, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_int), intent(in), optional :: contract
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allgather_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, contract, stream, &
      stat, errmsg)
  end subroutine allgather_address_int32

  ! Of gs_allgatherv, with the counts of all ranks on each.
  subroutine allgatherv_address(comm, grad_y, counts, grad_x, count, dtype, displs, contract, &
    stream, stat, errmsg)
    character(*), parameter :: name = 'gs_allgatherv_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_size_t), intent(in), contiguous :: counts(:)
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_size_t), intent(in), optional :: displs(:)
    integer(c_int), intent(in), optional :: contract
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, name, 'count', count, address)
    if (st == GS_OK) st = check_list(name, 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list(name, 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_allgatherv_backward(address, grad_y, counts, displs, grad_x, count, dtype, &
        contract_or_default(contract), stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine allgatherv_address

  ! Of gs_gather: grad_x = this rank's part of grad_y of rank [root].
  subroutine gather_address(comm, grad_y, grad_x, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_gather_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_gather_backward(address, grad_y, grad_x, count, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gather_address

  subroutine gather_address_int32(comm, grad_y, grad_x, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call gather_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, root, stream, stat, &
      errmsg)
  end subroutine gather_address_int32

  ! Of gs_gatherv; rank [root] gives counts.
  subroutine gatherv_address(comm, grad_y, grad_x, count, dtype, root, counts, displs, stream, &
    stat, errmsg)
    character(*), parameter :: name = 'gs_gatherv_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_size_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, name, 'count', count, address)
    if (st == GS_OK) st = check_list(name, 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list(name, 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_gatherv_backward(address, grad_y, counts, displs, grad_x, count, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gatherv_address

  ! Of gs_scatter: grad_x of rank [root] = grad_y of all ranks.
  subroutine scatter_address(comm, grad_y, grad_x, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_scatter_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_scatter_backward(address, grad_y, grad_x, count, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine scatter_address

  subroutine scatter_address_int32(comm, grad_y, grad_x, count, dtype, root, stream, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call scatter_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, root, stream, stat, &
      errmsg)
  end subroutine scatter_address_int32

  ! Of gs_scatterv: counts as for gs_gatherv.
  subroutine scatterv_address(comm, grad_y, count, grad_x, room, dtype, root, counts, displs, &
    stream, stat, errmsg)
    character(*), parameter :: name = 'gs_scatterv_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count, room
    integer(c_int), intent(in) :: dtype, root
    integer(c_size_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, name, 'count', count, address)
    if (st == GS_OK) st = begin(comm, name, 'room', room, address)
    if (st == GS_OK) st = check_list(name, 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list(name, 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_scatterv_backward(address, grad_y, count, grad_x, room, counts, displs, dtype, &
        root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine scatterv_address

  ! Of gs_alltoall.
  subroutine alltoall_address(comm, grad_y, grad_x, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_alltoall_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_alltoall_backward(address, grad_y, grad_x, count, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine alltoall_address

  subroutine alltoall_address_int32(comm, grad_y, grad_x, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call alltoall_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, stream, stat, &
      errmsg)
  end subroutine alltoall_address_int32

  ! Of gs_alltoallv, with its counts and displacements.
  subroutine alltoallv_address(comm, grad_y, recv_counts, grad_x, send_counts, dtype, &
    recv_displs, send_displs, stream, stat, errmsg)
    character(*), parameter :: name = 'gs_alltoallv_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_size_t), intent(in), contiguous :: recv_counts(:), send_counts(:)
    integer(c_int), intent(in) :: dtype
    integer(c_size_t), intent(in), optional :: recv_displs(:), send_displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, name, st)
    if (st == GS_OK) st = check_list(name, 'recv_counts', size_of(address), recv_counts)
    if (st == GS_OK) st = check_list(name, 'send_counts', size_of(address), send_counts)
    if (st == GS_OK) st = check_list(name, 'recv_displs', size_of(address), recv_displs)
    if (st == GS_OK) st = check_list(name, 'send_displs', size_of(address), send_displs)
    if (st == GS_OK) &
      st = c_alltoallv_backward(address, grad_y, recv_counts, recv_displs, grad_x, &
        send_counts, send_displs, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine alltoallv_address

  ! Of gs_broadcast: grad_x of rank [root] = the sum of grad_y over the ranks.
  subroutine broadcast_address(comm, grad_y, grad_x, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_broadcast_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_broadcast_backward(address, grad_y, grad_x, count, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine broadcast_address

  subroutine broadcast_address_int32(comm, grad_y, grad_x, count, dtype, root, stream, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call broadcast_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, root, stream, &
      stat, errmsg)
  end subroutine broadcast_address_int32

  ! Of gs_allreduce with [op] GS_SUM, and of gs_allreduce_avg with GS_AVG; in place.
  subroutine allreduce_address(comm, grad, count, dtype, op, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allreduce_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_allreduce_backward(address, grad, count, dtype, op, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine allreduce_address

  subroutine allreduce_address_int32(comm, grad, count, dtype, op, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allreduce_address(comm, grad, int(count, c_int64_t), dtype, op, stream, stat, errmsg)
  end subroutine allreduce_address_int32

  ! Of gs_reduce with GS_SUM: grad of all ranks = that of rank [root].
  subroutine reduce_address(comm, grad, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_reduce_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_reduce_backward(address, grad, count, dtype, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_address

  subroutine reduce_address_int32(comm, grad, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_address(comm, grad, int(count, c_int64_t), dtype, root, stream, stat, errmsg)
  end subroutine reduce_address_int32

  ! Of gs_reduce_scatter with GS_SUM: grad_x = grad_y of all ranks.
  subroutine reduce_scatter_address(comm, grad_y, grad_x, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_reduce_scatter_backward', 'count', count, address)
    if (st == GS_OK) &
      st = c_reduce_scatter_backward(address, grad_y, grad_x, count, dtype, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_scatter_address

  subroutine reduce_scatter_address_int32(comm, grad_y, grad_x, count, dtype, stream, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_scatter_address(comm, grad_y, grad_x, int(count, c_int64_t), dtype, stream, &
      stat, errmsg)
  end subroutine reduce_scatter_address_int32

  ! Of gs_reduce_scatterv with GS_SUM, with the counts of all ranks on each.
  subroutine reduce_scatterv_address(comm, grad_y, count, grad_x, room, counts, dtype, displs, &
    stream, stat, errmsg)
    character(*), parameter :: name = 'gs_reduce_scatterv_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_size_t), intent(in), contiguous :: counts(:)
    integer(c_int64_t), intent(in) :: count, room
    integer(c_int), intent(in) :: dtype
    integer(c_size_t), intent(in), optional :: displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, name, 'count', count, address)
    if (st == GS_OK) st = begin(comm, name, 'room', room, address)
    if (st == GS_OK) st = check_list(name, 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list(name, 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_reduce_scatterv_backward(address, grad_y, count, grad_x, room, counts, displs, &
        dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_scatterv_address

  ! Of gs_gather_field by its block.
  subroutine gather_field_address(comm, grad_y, shape, grad_x, extents, offsets, dtype, root, &
    stream, stat, errmsg)
    character(*), parameter :: name = 'gs_gather_field_backward'
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: grad_y, grad_x
    integer(c_size_t), intent(in), contiguous :: shape(:), extents(:), offsets(:)
    integer(c_int), intent(in) :: dtype
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, receiver
    integer(c_int64_t) :: dims

    address = find(comm, name, st)
    dims = size(extents, kind=c_int64_t)
    if (st == GS_OK) st = check_list(name, 'shape', dims, shape)
    if (st == GS_OK) st = check_list(name, 'extents', dims, extents)
    if (st == GS_OK) st = check_list(name, 'offsets', dims, offsets)
    receiver = -1
    if (present(root)) receiver = root
    if (st == GS_OK) &
      st = c_gather_field_backward(address, grad_y, turned(shape), grad_x, turned(extents), &
        turned(offsets), int(dims, c_int), dtype, receiver, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gather_field_address

  ! A contract that was not given is right for any loss.
  pure function contract_or_default(contract) result(given)
    integer(c_int), intent(in), optional :: contract
    integer(c_int) :: given

    given = GS_GRAD_ADJOINT
    if (present(contract)) given = contract
  end function contract_or_default

end module gradsync_adjoint
