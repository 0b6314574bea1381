! SPDX-License-Identifier: BSD-3-Clause
! gradsync_gather - the collectives of gradsync_gather.h on memory given by address, count and
! dtype: for device addresses, and for compilers without arguments of any type and rank (see
! gradsync_gather_array).
!
! The arguments stand in the order of gradsync_gather.h, whose contracts hold, but that what may
! be left out comes last:
!
!   comm    in   every rank calls
!   send, recv, block, field  in   addresses; c_null_ptr where a rank has nothing
!   count and its like        in   elements, integer(int64)
!   counts, displs, extents, offsets, shape   in   integer(c_size_t), of a size that is checked
!   dtype   in   GS_F32, ...
!   stream  in   optional: a CUDA stream as an integer; ignored on hosts
!   stat, errmsg  optional: see gradsync_comm
!
! N.B. lists that may be left out are not declared contiguous, for gfortran 12 looks into one that
! is absent to hand it on.
module gradsync_gather
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t, c_ptr, c_size_t
  use gradsync_c, only: c_comm_size
  use gradsync_c_gather
  use gradsync_support, only: begin, conclude, find, stream_or_default, text_to_c
  use gradsync_types, only: gs_comm, GS_OK
  implicit none
  private

  public :: gs_allgatherv, gs_gather, gs_gatherv, gs_scatter, gs_scatterv, gs_alltoall, &
    gs_alltoallv, gs_reduce, gs_reduce_scatter, gs_reduce_scatterv, gs_gather_field

  ! For gradsync_adjoint; not part of module gradsync.
  public :: check_list, size_of, turned

  interface gs_allgatherv
    module procedure allgatherv_address
  end interface gs_allgatherv

  interface gs_gather
    module procedure gather_address, gather_address_int32
  end interface gs_gather

  interface gs_gatherv
    module procedure gatherv_address
  end interface gs_gatherv

  interface gs_scatter
    module procedure scatter_address, scatter_address_int32
  end interface gs_scatter

  interface gs_scatterv
    module procedure scatterv_address
  end interface gs_scatterv

  interface gs_alltoall
    module procedure alltoall_address, alltoall_address_int32
  end interface gs_alltoall

  interface gs_alltoallv
    module procedure alltoallv_address
  end interface gs_alltoallv

  interface gs_reduce
    module procedure reduce_address
  end interface gs_reduce

  interface gs_reduce_scatter
    module procedure reduce_scatter_address, reduce_scatter_address_int32
  end interface gs_reduce_scatter

  interface gs_reduce_scatterv
    module procedure reduce_scatterv_address
  end interface gs_reduce_scatterv

  interface gs_gather_field
    module procedure gather_field_address
  end interface gs_gather_field

contains

  ! recv = the pieces of all ranks, on all of them.
  subroutine allgatherv_address(comm, send, send_count, recv, recv_room, dtype, counts, &
    displs, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: send_count, recv_room
    integer(c_int), intent(in) :: dtype
    integer(c_size_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allgatherv', 'send_count', send_count, address)
    if (st == GS_OK) st = begin(comm, 'gs_allgatherv', 'recv_room', recv_room, address)
    if (st == GS_OK) st = check_list('gs_allgatherv', 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list('gs_allgatherv', 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_allgatherv(address, send, send_count, recv, recv_room, counts, displs, dtype, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine allgatherv_address

  ! recv of rank [root] = send of all ranks.
  subroutine gather_address(comm, send, recv, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_gather', 'count', count, address)
    if (st == GS_OK) &
      st = c_gather(address, send, recv, count, dtype, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gather_address

  subroutine gather_address_int32(comm, send, recv, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call gather_address(comm, send, recv, int(count, c_int64_t), dtype, root, stream, stat, &
      errmsg)
  end subroutine gather_address_int32

  ! recv of rank [root] = the pieces of all ranks.
  subroutine gatherv_address(comm, send, send_count, recv, recv_room, dtype, root, counts, &
    displs, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: send_count, recv_room
    integer(c_int), intent(in) :: dtype, root
    integer(c_size_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_gatherv', 'send_count', send_count, address)
    if (st == GS_OK) st = begin(comm, 'gs_gatherv', 'recv_room', recv_room, address)
    if (st == GS_OK) st = check_list('gs_gatherv', 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list('gs_gatherv', 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_gatherv(address, send, send_count, recv, recv_room, counts, displs, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gatherv_address

  ! recv = this rank's part of send of rank [root].
  subroutine scatter_address(comm, send, recv, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_scatter', 'count', count, address)
    if (st == GS_OK) &
      st = c_scatter(address, send, recv, count, dtype, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine scatter_address

  subroutine scatter_address_int32(comm, send, recv, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call scatter_address(comm, send, recv, int(count, c_int64_t), dtype, root, stream, stat, &
      errmsg)
  end subroutine scatter_address_int32

  ! recv = this rank's piece of send of rank [root], which gives counts.
  subroutine scatterv_address(comm, send, recv, recv_count, dtype, root, counts, displs, &
    stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: recv_count
    integer(c_int), intent(in) :: dtype, root
    integer(c_size_t), intent(in), optional :: counts(:), displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_scatterv', 'recv_count', recv_count, address)
    if (st == GS_OK) st = check_list('gs_scatterv', 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list('gs_scatterv', 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_scatterv(address, send, counts, displs, recv, recv_count, dtype, root, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine scatterv_address

  ! recv = the parts for this rank of send of all ranks.
  subroutine alltoall_address(comm, send, recv, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_alltoall', 'count', count, address)
    if (st == GS_OK) &
      st = c_alltoall(address, send, recv, count, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine alltoall_address

  subroutine alltoall_address_int32(comm, send, recv, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call alltoall_address(comm, send, recv, int(count, c_int64_t), dtype, stream, stat, errmsg)
  end subroutine alltoall_address_int32

  ! recv = the pieces for this rank of send of all ranks.
  subroutine alltoallv_address(comm, send, send_counts, recv, recv_counts, dtype, &
    send_displs, recv_displs, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_size_t), intent(in), contiguous :: send_counts(:), recv_counts(:)
    integer(c_int), intent(in) :: dtype
    integer(c_size_t), intent(in), optional :: send_displs(:), recv_displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_alltoallv', st)
    if (st == GS_OK) st = check_list('gs_alltoallv', 'send_counts', size_of(address), &
      send_counts)
    if (st == GS_OK) st = check_list('gs_alltoallv', 'recv_counts', size_of(address), &
      recv_counts)
    if (st == GS_OK) st = check_list('gs_alltoallv', 'send_displs', size_of(address), &
      send_displs)
    if (st == GS_OK) st = check_list('gs_alltoallv', 'recv_displs', size_of(address), &
      recv_displs)
    if (st == GS_OK) &
      st = c_alltoallv(address, send, send_counts, send_displs, recv, recv_counts, &
        recv_displs, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine alltoallv_address

  ! recv of rank [root] = sum, product, ... over the ranks, by [op].
  subroutine reduce_address(comm, send, recv, count, dtype, op, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_reduce', 'count', count, address)
    if (st == GS_OK) &
      st = c_reduce(address, send, recv, count, dtype, op, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_address

  ! recv = this rank's part of the sum, product, ... of send over the ranks, by [op].
  subroutine reduce_scatter_address(comm, send, recv, count, dtype, op, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_reduce_scatter', 'count', count, address)
    if (st == GS_OK) &
      st = c_reduce_scatter(address, send, recv, count, dtype, op, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_scatter_address

  subroutine reduce_scatter_address_int32(comm, send, recv, count, dtype, op, stream, stat, &
      errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_scatter_address(comm, send, recv, int(count, c_int64_t), dtype, op, stream, &
      stat, errmsg)
  end subroutine reduce_scatter_address_int32

  ! recv = this rank's part of the sum, product, ... of send over the ranks, by [op].
  subroutine reduce_scatterv_address(comm, send, counts, recv, recv_count, dtype, op, displs, &
    stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_size_t), intent(in), contiguous :: counts(:)
    integer(c_int64_t), intent(in) :: recv_count
    integer(c_int), intent(in) :: dtype, op
    integer(c_size_t), intent(in), optional :: displs(:)
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_reduce_scatterv', 'recv_count', recv_count, address)
    if (st == GS_OK) st = check_list('gs_reduce_scatterv', 'counts', size_of(address), counts)
    if (st == GS_OK) st = check_list('gs_reduce_scatterv', 'displs', size_of(address), displs)
    if (st == GS_OK) &
      st = c_reduce_scatterv(address, send, counts, displs, recv, recv_count, dtype, op, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_scatterv_address

  ! field of rank [root], or of all, = the blocks of all ranks, in their places.
  subroutine gather_field_address(comm, block, extents, offsets, field, shape, dtype, root, &
    stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: block, field
    integer(c_size_t), intent(in), contiguous :: extents(:), offsets(:), shape(:)
    integer(c_int), intent(in) :: dtype
    integer(c_int), intent(in), optional :: root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, receiver
    integer(c_int64_t) :: dims

    address = find(comm, 'gs_gather_field', st)
    dims = size(extents, kind=c_int64_t)
    if (st == GS_OK) st = check_list('gs_gather_field', 'extents', dims, extents)
    if (st == GS_OK) st = check_list('gs_gather_field', 'offsets', dims, offsets)
    if (st == GS_OK) st = check_list('gs_gather_field', 'shape', dims, shape)
    receiver = -1
    if (present(root)) receiver = root
    if (st == GS_OK) &
      st = c_gather_field(address, block, turned(extents), turned(offsets), field, &
        turned(shape), int(dims, c_int), dtype, receiver, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gather_field_address

  ! The number of ranks, as sizes of lists are counted.
  function size_of(address) result(ranks)
    type(c_ptr), intent(in) :: address
    integer(c_int64_t) :: ranks

    ranks = c_comm_size(address)
  end function size_of

  ! Refuses a list that is not of size [wanted], or has an element below 0; not one left out.
  function check_list(call, what, wanted, list) result(st)
    character(*), intent(in) :: call, what
    integer(c_int64_t), intent(in) :: wanted
    integer(c_size_t), intent(in), optional :: list(:)
    integer(c_int) :: st

    st = GS_OK
    if (.not. present(list)) return
    st = c_check_list(text_to_c(call), text_to_c(what), size(list, kind=c_int64_t), wanted, &
      int(min(minval(list), 0_c_size_t), c_int64_t))
  end function check_list

  ! In the order of C's dimensions.
  pure function turned(list)
    integer(c_size_t), intent(in) :: list(:)
    integer(c_size_t) :: turned(size(list))

    turned = list(size(list):1:-1)
  end function turned

end module gradsync_gather
