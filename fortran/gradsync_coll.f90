! SPDX-License-Identifier: BSD-3-Clause
! gradsync_coll - the collectives on memory given by address, count and dtype: for device
! addresses, and for compilers without arguments of any type and rank (see gradsync_array).
!
! The arguments stand in the order of gradsync.h, whose contracts hold:
!
!   comm    in   every rank calls
!   ptr     in   address of [count] contiguous elements, which are read and written
!   count   in   elements, integer(int32) or integer(int64)
!   dtype   in   GS_F32, ...
!   stream  in   optional: a CUDA stream as an integer; ignored on hosts
!   stat, errmsg  optional: see gradsync_comm
module gradsync_coll
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int32_t, c_int64_t, c_intptr_t, &
    c_ptr
  use gradsync_c, only: c_allgather, c_allreduce, c_allreduce_avg, c_allreduce_wavg, &
    c_barrier, c_broadcast
  use gradsync_support, only: begin, conclude, find, stream_or_default
  use gradsync_types, only: gs_comm, GS_OK
  implicit none
  private

  public :: gs_allreduce_avg, gs_allreduce_wavg, gs_allreduce, gs_broadcast, gs_allgather
  public :: gs_barrier

  ! Average over the ranks, in place.
  interface gs_allreduce_avg
    module procedure avg_address, avg_address_int32
  end interface gs_allreduce_avg

  ! Average weighted by each rank's [weight], in place.
  interface gs_allreduce_wavg
    module procedure wavg_address, wavg_address_int32
  end interface gs_allreduce_wavg

  ! Sum, product, minimum or maximum over the ranks, in place.
  interface gs_allreduce
    module procedure reduce_address, reduce_address_int32
  end interface gs_allreduce

  ! Copies the memory of rank [root] to all ranks.
  interface gs_broadcast
    module procedure broadcast_address, broadcast_address_int32
  end interface gs_broadcast

  ! Collects [send] of all ranks in [recv], in rank order: size times [count] elements.
  interface gs_allgather
    module procedure allgather_address, allgather_address_int32
  end interface gs_allgather

contains

  subroutine avg_address(comm, ptr, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allreduce_avg', 'count', count, address)
    if (st == GS_OK) &
      st = c_allreduce_avg(address, ptr, count, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine avg_address

  subroutine avg_address_int32(comm, ptr, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call avg_address(comm, ptr, int(count, c_int64_t), dtype, stream, stat, errmsg)
  end subroutine avg_address_int32

  subroutine wavg_address(comm, ptr, count, dtype, weight, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    real(c_double), intent(in) :: weight
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allreduce_wavg', 'count', count, address)
    if (st == GS_OK) &
      st = c_allreduce_wavg(address, ptr, count, dtype, weight, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine wavg_address

  subroutine wavg_address_int32(comm, ptr, count, dtype, weight, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    real(c_double), intent(in) :: weight
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call wavg_address(comm, ptr, int(count, c_int64_t), dtype, weight, stream, stat, errmsg)
  end subroutine wavg_address_int32

  subroutine reduce_address(comm, ptr, count, dtype, op, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allreduce', 'count', count, address)
    if (st == GS_OK) &
      st = c_allreduce(address, ptr, count, dtype, op, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine reduce_address

  subroutine reduce_address_int32(comm, ptr, count, dtype, op, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, op
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call reduce_address(comm, ptr, int(count, c_int64_t), dtype, op, stream, stat, errmsg)
  end subroutine reduce_address_int32

  subroutine broadcast_address(comm, ptr, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_broadcast', 'count', count, address)
    if (st == GS_OK) &
      st = c_broadcast(address, ptr, count, dtype, root, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine broadcast_address

  subroutine broadcast_address_int32(comm, ptr, count, dtype, root, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: ptr
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype, root
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call broadcast_address(comm, ptr, int(count, c_int64_t), dtype, root, stream, stat, &
                errmsg)
  end subroutine broadcast_address_int32

  subroutine allgather_address(comm, send, recv, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int64_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_allgather', 'count', count, address)
    if (st == GS_OK) &
      st = c_allgather(address, send, recv, count, dtype, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine allgather_address

  subroutine allgather_address_int32(comm, send, recv, count, dtype, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: send, recv
    integer(c_int32_t), intent(in) :: count
    integer(c_int), intent(in) :: dtype
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call allgather_address(comm, send, recv, int(count, c_int64_t), dtype, stream, stat, &
                errmsg)
  end subroutine allgather_address_int32

  ! Returns when every rank has called it; on GPUs, queues that on [stream].
  subroutine gs_barrier(comm, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_barrier', st)
    if (st == GS_OK) st = c_barrier(address, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine gs_barrier

end module gradsync_coll
