! SPDX-License-Identifier: BSD-3-Clause
! gradsync_device - arrays in memory of a communicator's device: of its GPU, or of the host.
!
! The contracts are those of gradsync.h. Addresses are type(c_ptr); the host must not follow them
! itself. c_f_pointer makes an array of one that the collectives take like any other.
!
!   comm     in   a communicator
!   bytes    in   integer(int32) or integer(int64)
!   memory   out  of gs_device_alloc; in for gs_device_free, which ignores c_null_ptr
!   dst,src  in   addresses of the host (c_loc of a target) or of the device
!   stream   in   optional: a CUDA stream as an integer; ignored on hosts
!   stat, errmsg  optional: see gradsync_comm
module gradsync_device
  use, intrinsic :: iso_c_binding, only: c_int, c_int32_t, c_int64_t, c_intptr_t, c_null_ptr, &
    c_ptr
  use gradsync_c, only: c_device_alloc, c_device_copy, c_device_free
  use gradsync_support, only: begin, conclude, find, stream_or_default
  use gradsync_types, only: gs_comm, GS_OK
  implicit none
  private

  public :: gs_device_alloc, gs_device_free, gs_device_copy

  ! Makes an array, aligned to 256 bytes and not initialised; c_null_ptr on failure.
  interface gs_device_alloc
    module procedure alloc_bytes, alloc_bytes_int32
  end interface gs_device_alloc

  ! Copies between any two places, of the host or of the device.
  interface gs_device_copy
    module procedure copy_bytes, copy_bytes_int32
  end interface gs_device_copy

contains

  subroutine alloc_bytes(comm, bytes, memory, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int64_t), intent(in) :: bytes
    type(c_ptr), intent(out) :: memory
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    memory = c_null_ptr
    st = begin(comm, 'gs_device_alloc', 'bytes', bytes, address)
    if (st == GS_OK) st = c_device_alloc(address, bytes, memory)
    call conclude(st, stat, errmsg)
  end subroutine alloc_bytes

  subroutine alloc_bytes_int32(comm, bytes, memory, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int32_t), intent(in) :: bytes
    type(c_ptr), intent(out) :: memory
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call alloc_bytes(comm, int(bytes, c_int64_t), memory, stat, errmsg)
  end subroutine alloc_bytes_int32

  ! Frees what gs_device_alloc made with [comm], before that is destroyed.
  subroutine gs_device_free(comm, memory, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: memory
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_device_free', st)
    if (st == GS_OK) st = c_device_free(address, memory)
    call conclude(st, stat, errmsg)
  end subroutine gs_device_free

  subroutine copy_bytes(comm, dst, src, bytes, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: dst, src
    integer(c_int64_t), intent(in) :: bytes
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    st = begin(comm, 'gs_device_copy', 'bytes', bytes, address)
    if (st == GS_OK) st = c_device_copy(address, dst, src, bytes, stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine copy_bytes

  subroutine copy_bytes_int32(comm, dst, src, bytes, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: dst, src
    integer(c_int32_t), intent(in) :: bytes
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg

    call copy_bytes(comm, dst, src, int(bytes, c_int64_t), stream, stat, errmsg)
  end subroutine copy_bytes_int32

end module gradsync_device
