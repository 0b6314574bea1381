! SPDX-License-Identifier: BSD-3-Clause
! gradsync_stats - statistics and comparisons of memory given by address, for Fortran, and what
! has no arrays: merges, logical reductions, what was sent. Module gradsync_stats_array has the
! same on arrays.
!
! The contracts are those of gradsync_stats.h. Every subroutine ends in stat and errmsg, as in
! gradsync_comm.
module gradsync_stats
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_int, c_int64_t, c_intptr_t, c_loc, &
    c_null_ptr, c_ptr, c_size_t, c_sizeof
  use gradsync_c_gather, only: c_check_list
  use gradsync_c_stats
  use gradsync_support, only: begin, conclude, find, stream_or_default, text_to_c
  use gradsync_types, only: gs_array, gs_comm, gs_moments, gs_traffic, GS_OK
  implicit none
  private

  public :: gs_stats, gs_moments_merge, gs_all, gs_any, gs_compare
  public :: gs_comm_get_traffic, gs_comm_reset_traffic

  ! For gradsync_stats_array; not part of module gradsync.
  public :: tolerance_or_none

  ! Moments of each feature over the samples of all ranks. Collective over [comm].
  !
  !   x         in   address of samples * features elements, the features of a sample together
  !   moments   out  of size features
  !   mask, mask_width  optional, both or none: address of bytes, 1 for each sample or
  !                  [features]; values where it is 0 do not count
  interface gs_stats
    module procedure stats_address
  end interface gs_stats

  ! Compares arrays across ranks. Collective over [comm].
  !
  !   arrays     in  names, addresses, elements and types, in the same order on all ranks
  !   tolerance  in  optional, 0: all bits are equal
  interface gs_compare
    module procedure compare_list
  end interface gs_compare

contains

  subroutine stats_address(comm, x, samples, features, dtype, moments, mask, mask_width, stream, &
    stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(c_ptr), intent(in) :: x
    integer(c_int64_t), intent(in) :: samples, features
    integer(c_int), intent(in) :: dtype
    type(gs_moments), intent(inout), contiguous :: moments(:)
    type(c_ptr), intent(in), optional :: mask
    integer(c_int64_t), intent(in), optional :: mask_width
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address, masks
    integer(c_int64_t) :: width
    integer(c_int) :: st

    masks = c_null_ptr
    if (present(mask)) masks = mask
    width = 0
    if (present(mask_width)) width = mask_width
    st = begin(comm, 'gs_stats', 'samples', samples, address)
    if (st == GS_OK) st = begin(comm, 'gs_stats', 'features', features, address)
    if (st == GS_OK) st = begin(comm, 'gs_stats', 'mask_width', width, address)
    if (st == GS_OK) st = check_size('gs_stats', 'moments', moments, features)
    if (st == GS_OK) &
      st = c_stats(address, x, samples, features, dtype, masks, width, moments, &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine stats_address

  ! Adds what is known of some values to what is known of others. Local.
  subroutine gs_moments_merge(into, from, stat, errmsg)
    type(gs_moments), intent(inout), contiguous :: into(:)
    type(gs_moments), intent(in), contiguous :: from(:)
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int) :: st

    st = check_size('gs_moments_merge', 'into', into, size(from, kind=c_int64_t))
    if (st == GS_OK) st = c_moments_merge(into, from, size(from, kind=c_size_t))
    call conclude(st, stat, errmsg)
  end subroutine gs_moments_merge

  ! res = whether [flag] is true on all ranks. Collective over [comm].
  subroutine gs_all(comm, flag, res, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    logical, intent(in) :: flag
    logical, intent(inout) :: res
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, number

    address = find(comm, 'gs_all', st)
    if (st == GS_OK) &
      st = c_all(address, merge(1_c_int, 0_c_int, flag), number, stream_or_default(stream))
    if (st == GS_OK) res = number /= 0
    call conclude(st, stat, errmsg)
  end subroutine gs_all

  ! res = whether [flag] is true on any rank. Collective over [comm].
  subroutine gs_any(comm, flag, res, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    logical, intent(in) :: flag
    logical, intent(inout) :: res
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st, number

    address = find(comm, 'gs_any', st)
    if (st == GS_OK) &
      st = c_any(address, merge(1_c_int, 0_c_int, flag), number, stream_or_default(stream))
    if (st == GS_OK) res = number /= 0
    call conclude(st, stat, errmsg)
  end subroutine gs_any

  subroutine compare_list(comm, arrays, tolerance, stream, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_array), intent(in) :: arrays(:)
    real(c_double), intent(in), optional :: tolerance
    integer(c_intptr_t), intent(in), optional :: stream
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_array) :: list(size(arrays))
    character(kind=c_char), allocatable, target :: names(:)
    type(c_ptr) :: address
    integer :: i, at
    integer(c_int) :: st

    address = find(comm, 'gs_compare', st)
    allocate (names(sum([(length(arrays(i)) + 1, i=1, size(arrays))])))
    at = 1
    do i = 1, size(arrays)
      list(i) = c_array(c_null_ptr, arrays(i)%data, arrays(i)%count, arrays(i)%dtype)
      if (st == GS_OK) st = begin(comm, 'gs_compare', 'count', arrays(i)%count, address)
      if (.not. allocated(arrays(i)%name)) cycle ! which is refused
      names(at:at + length(arrays(i))) = text_to_c(arrays(i)%name)
      list(i)%name = c_loc(names(at))
      at = at + length(arrays(i)) + 1
    end do
    if (st == GS_OK) &
      st = c_compare(address, list, size(list, kind=c_size_t), tolerance_or_none(tolerance), &
        stream_or_default(stream))
    call conclude(st, stat, errmsg)
  end subroutine compare_list

  ! Tells how much this rank has sent by calls of [op], 'allreduce_avg' for instance, or by all.
  subroutine gs_comm_get_traffic(comm, traffic, op, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    type(gs_traffic), intent(inout) :: traffic
    character(*), intent(in), optional :: op
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_traffic) :: c
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_comm_get_traffic', st)
    c%size = c_sizeof(c)
    if (st == GS_OK) then
      if (present(op)) then
        st = c_comm_get_traffic(address, text_to_c(op), c)
      else
        st = c_comm_get_traffic(address, traffic=c)
      end if
    end if
    if (st == GS_OK) &
      traffic = gs_traffic(c%calls, c%bytes, c%within, c%between, c%within_known /= 0, &
        c%between_known /= 0)
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_get_traffic

  ! Begins to count anew.
  subroutine gs_comm_reset_traffic(comm, stat, errmsg)
    type(gs_comm), intent(in) :: comm
    integer(c_int), intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: address
    integer(c_int) :: st

    address = find(comm, 'gs_comm_reset_traffic', st)
    if (st == GS_OK) st = c_comm_reset_traffic(address)
    call conclude(st, stat, errmsg)
  end subroutine gs_comm_reset_traffic

  ! Of the name, without the NUL that C wants.
  pure function length(array)
    type(gs_array), intent(in) :: array
    integer :: length

    length = 0
    if (allocated(array%name)) length = len_trim(array%name)
  end function length

  pure function tolerance_or_none(tolerance) result(given)
    real(c_double), intent(in), optional :: tolerance
    real(c_double) :: given

    given = 0
    if (present(tolerance)) given = tolerance
  end function tolerance_or_none

  function check_size(call, what, moments, wanted) result(st)
    character(*), intent(in) :: call, what
    type(gs_moments), intent(in) :: moments(:)
    integer(c_int64_t), intent(in) :: wanted
    integer(c_int) :: st

    st = c_check_list(text_to_c(call), text_to_c(what), size(moments, kind=c_int64_t), wanted, &
      0_c_int64_t)
  end function check_size

end module gradsync_stats
